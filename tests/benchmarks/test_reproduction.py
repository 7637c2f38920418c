"""The comparison of a whole study: both sides do the same, or times are not compared."""

import pytest

from benchmarks import budget, reproduction
from benchmarks.reproduction import Reproduction
from halfseen.simulation import simulate
from halfseen.studies.builtin import builtin_study


@pytest.fixture(scope="module")
def cell():
    study = builtin_study("synthetic").narrowed(methods=[reproduction.METHOD], seeds=[0])
    return study.cells()[0]


def test_both_sides_have_the_same_regret(cell):
    tables, place = simulate.run([cell], jobs=1), (cell.key.p, cell.key.seed)
    regret = reproduction._play_yardstick(*place)
    reproduction._refuse_different(tables, {place: regret})
    with pytest.raises(RuntimeError, match=f"differ at p = {cell.key.p}, seed 0"):
        reproduction._refuse_different(tables, {place: regret + 0.1})


def test_the_yardstick_makes_the_rounds_of_the_study(cell):
    assert reproduction._world(cell.key.p) == cell.world


def test_the_row_shows_the_factor_and_gives_no_verdict():
    found = Reproduction(100, ours=0.5, yardstick=13.0, ratio=26.0, ours_alone=0.9, worlds_alone=0)
    row = budget.reproduction_row(found._replace(ratio=24.9))
    assert row.measured.startswith("24.9 times as fast")
    assert row.met is None
