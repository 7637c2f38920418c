"""Cells go to workers in groups: every one is run once, and nobody waits for a slow one."""

import threading

import joblib
import pytest

from halfseen import LowRankWorld
from halfseen.simulation import workers as grid
from halfseen.simulation.cells import Cell, CellKey, Result
from halfseen.simulation.methods import METHODS
from halfseen.simulation.workers import run_cells

WORLD = LowRankWorld(dim=4, rank=1, n_arms=2, horizon=5)


def cells_of(n_seeds, n_methods=1, horizon=5):
    world = WORLD.replace(horizon=horizon)
    return [
        Cell(
            key=CellKey("small", "default", 0.3, f"uniform-{number}", seed),
            world=world,
            method=METHODS["uniform"],
        )
        for number in range(n_methods)
        for seed in range(n_seeds)
    ]


def told(cells):
    return [Result(status="ok", seconds=0.0, error=str(cell.key)) for cell in cells]


@pytest.mark.parametrize("n_seeds", [0, 1, 7, 50])
@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_every_cell_is_run_once(n_seeds, n_jobs):
    cells = cells_of(n_seeds, n_methods=2)
    with joblib.parallel_config(backend="threading", n_jobs=n_jobs):
        found = list(run_cells(cells, run=told))
    assert sorted(cell.key for cell, _ in found) == sorted(cell.key for cell in cells)
    assert all(result.error == str(cell.key) for cell, result in found)


def test_a_task_is_a_realization_and_the_methods_that_play_it():
    cells = cells_of(20, n_methods=3)
    groups = grid._groups(cells, n_workers=2)
    assert len(groups) == 20
    for group in groups:
        assert len({cells[place].key.seed for place in group}) == 1
        assert [cells[place].key.method for place in group] == [f"uniform-{n}" for n in range(3)]


def test_other_worlds_are_other_tasks():
    cells = cells_of(1, n_methods=40) + cells_of(1, n_methods=40, horizon=6)
    groups = grid._groups(cells, n_workers=1)
    assert all(len({cells[place].horizon for place in group}) == 1 for group in groups)
    assert cells[groups[0][0]].horizon == 6  # long ones first


def test_a_slow_task_keeps_no_other_waiting():
    others = threading.Semaphore(0)

    def run(cells):
        for cell in cells:
            if cell.key.seed == 0:
                assert all(others.acquire(timeout=20) for _ in range(23))
            else:
                others.release()
        return told(cells)

    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert len(list(run_cells(cells_of(24), run=run))) == 24
