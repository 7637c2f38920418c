"""The progress bar: it counts rounds, tells cells, and can be left out."""

import io

from rich.console import Console

from halfseen import LowRankWorld
from halfseen.simulation.cells import Cell, CellKey
from halfseen.simulation.methods import METHODS
from halfseen.simulation.progress import progress_over

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
    with progress_over(CELLS, missing, console=console) as done:
        for cell in finished:
            done(cell)
    return console.file.getvalue()


def test_the_bar_ends_with_all_cells():
    assert "small" in shown(CELLS, CELLS)
    assert "100% 3/3 cells" in shown(CELLS, CELLS)


def test_the_share_is_one_of_rounds_and_the_count_one_of_cells():
    assert "10% 1/3 cells" in shown(CELLS, CELLS[:1])


def test_cells_that_were_finished_before_count_but_take_no_time():
    assert " 33% 2/3 cells" in shown(CELLS[1:], CELLS[1:2])


def test_with_nothing_to_do_the_bar_is_full():
    assert "100% 3/3 cells" in shown([], [])


def test_no_cells_and_no_bar_need_no_console(capsys):
    for cells, wanted in (([], True), (CELLS, False)):
        with progress_over(cells, cells, shown=wanted) as done:
            done(CELLS[0])
    assert capsys.readouterr().out == ""
