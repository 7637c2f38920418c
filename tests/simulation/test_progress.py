"""The progress bar: it counts rounds, tells cells, and can be left out."""

import io
import sys

import pytest
from rich.console import Console

from halfseen import LowRankWorld
from halfseen.simulation.cells import Cell, CellKey
from halfseen.simulation.methods import METHODS
from halfseen.simulation.simulate import _with_bar, run

CELLS = [
    Cell(
        key=CellKey("small", "default", None, "uniform", seed),
        world=LowRankWorld(horizon=horizon),
        method=METHODS["uniform"],
    )
    for seed, horizon in enumerate([100, 300, 600])
]


def shown(missing, finished):
    """Return what a person has seen at the end."""
    console = Console(file=io.StringIO(), width=100)
    for _ in _with_bar([(cell, None) for cell in finished], CELLS, missing, console):
        pass
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("missing", "finished", "told"),
    [
        (CELLS, CELLS, "100% 3/3 cells"),
        (CELLS, CELLS[:1], " 10% 1/3 cells"),
        (CELLS[1:], CELLS[1:2], " 33% 2/3 cells"),
        ([], [], "100% 3/3 cells"),
    ],
    ids=["all", "some", "the rest of an earlier run", "nothing to do"],
)
def test_the_share_is_one_of_rounds_and_the_count_one_of_cells(missing, finished, told):
    assert told in shown(missing, finished)


def test_a_bar_is_shown_where_it_is_wanted(capsys):
    run(CELLS[:1], jobs=1)
    assert capsys.readouterr().out == ""
    run(CELLS[:1], jobs=1, progress=True)
    assert "1/1 cells" in capsys.readouterr().out


def test_without_rich_there_is_no_bar(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich", None)
    assert [row["status"] for row in run(CELLS[:1], jobs=1, progress=True).per_seed] == ["ok"]
    assert capsys.readouterr().out == ""
