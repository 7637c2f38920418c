"""Cells go to workers in groups: every one is run once, and nobody waits for a slow one."""

import os
import sys
import threading
import time
from types import ModuleType

import joblib
import pytest

from halfseen.simulation import grid
from halfseen.simulation.cells import Cell, CellKey, Result
from halfseen.simulation.grid import run_cells
from halfseen.simulation.methods import METHODS

WORLD = {"kind": "low-rank", "dim": 4, "rank": 1, "n_arms": 2, "horizon": 5}


def cells_of(n_cells):
    return [
        Cell(
            key=CellKey("small", "default", 0.3, "uniform", seed),
            world=WORLD,
            method=METHODS["uniform"],
            horizon=5,
        )
        for seed in range(n_cells)
    ]


def tasks_of(n_cells):
    return [grid._Task(index, cell, None, None) for index, cell in enumerate(cells_of(n_cells))]


def told(cell):
    return Result(status="ok", seconds=0.0, diagnostics={"seed": cell.key.seed})


@pytest.mark.parametrize("n_cells", [0, 1, 7, 100])
@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_every_cell_is_run_once(n_cells, n_jobs):
    with joblib.parallel_config(backend="threading", n_jobs=n_jobs):
        found = list(run_cells(cells_of(n_cells), run=told))
    assert sorted(cell.key.seed for cell, _ in found) == list(range(n_cells))
    assert all(result.diagnostics == {"seed": cell.key.seed} for cell, result in found)


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_cells_that_come_back_unplayed_are_run_by_whoever_is_free(monkeypatch, backend):
    monkeypatch.setattr(grid, "_GROUP_SECONDS", 0.0)
    ran = []

    def noted(cell):
        ran.append(cell.key.seed)
        return told(cell)

    with joblib.parallel_config(backend=backend, n_jobs=2):
        found = list(run_cells(cells_of(40), run=noted if backend == "threading" else told))
    assert sorted(cell.key.seed for cell, _ in found) == list(range(40))
    assert len(ran) == (40 if backend == "threading" else 0)


def test_a_group_begins_no_cell_when_its_time_is_over(monkeypatch):
    monkeypatch.setattr(grid, "_GROUP_SECONDS", 0.05)

    def slow(cell):
        time.sleep(0.03)
        return told(cell)

    results, left = grid._run_group(slow, tasks_of(6), caller=os.getpid())
    assert 1 <= len(results) <= 2
    assert [index for index, _ in results] + left == list(range(6))


def test_one_cell_at_a_time_where_there_is_one_worker():
    sizes = [len(arguments[1]) for _, arguments, _ in groups_of(40, jobs=1)]
    assert sizes == [1] * 40


def test_groups_are_small_at_the_end():
    sizes = [len(arguments[1]) for _, arguments, _ in groups_of(40, jobs=2)]
    assert sum(sizes) == 40
    assert max(sizes) == sizes[0] == 8
    assert sizes[-4:] == [1, 1, 1, 1]


def groups_of(n_cells, jobs):
    return grid._groups(cells_of(n_cells), grid.deque(range(n_cells)), jobs, told)


def test_a_slow_cell_keeps_no_other_waiting():
    """One cell waits for all others but those that may be in its own group, of at most eight."""
    others = threading.Semaphore(0)

    def run(cell):
        if cell.key.seed == 0:
            for _ in range(24 - 8):
                assert others.acquire(timeout=20)
        else:
            others.release()
        return told(cell)

    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert len(list(run_cells(cells_of(24), run=run))) == 24


def test_blas_is_looked_for_again_only_after_an_import(monkeypatch):
    looks = []
    limits = grid.threadpool_limits
    monkeypatch.setattr(grid, "threadpool_limits", lambda n: looks.append(n) or limits(n))
    monkeypatch.setattr(grid, "_n_modules", 0)
    with limits(None):  # as in a worker, whose limits stay
        grid._run_group(told, tasks_of(5), caller=0)
        assert looks == [1]
        monkeypatch.setitem(sys.modules, "a_new_library", ModuleType("a_new_library"))
        grid._run_group(told, tasks_of(5), caller=0)
        assert looks == [1, 1]
