"""Many cells at once: parallel over processes or whatever joblib runs on."""

import os
from collections.abc import Callable, Iterator, Sequence

import joblib
from threadpoolctl import threadpool_limits

from halfseen import checks
from halfseen.simulation.cells import Cell, Result, run_cell


def run_cells(
    cells: Sequence[Cell],
    *,
    jobs: int | None = None,
    run: Callable[[Cell], Result] = run_cell,
) -> Iterator[tuple[Cell, Result]]:
    """Yield every cell with its result, in the order in which they finish.

    Parameters
    ----------
    cells : sequence of Cell
    jobs : int, optional
        How many at once; by default all cores, or what the joblib backend in force
        (`joblib.parallel_config`) says.
    run : callable
        What turns a cell into its result.
    """
    if jobs is not None:
        jobs = checks.integer("jobs", jobs, 1)
    # Long ones first, so that no core waits for a straggler.
    order = sorted(range(len(cells)), key=lambda index: -cells[index].horizon)
    tasks = (joblib.delayed(_run_at)(run, index, cells[index]) for index in order)
    parallel = joblib.Parallel(
        n_jobs=jobs if jobs is not None else _default_jobs(),
        return_as="generator_unordered",
        batch_size=1,
        pre_dispatch="2*n_jobs",
    )
    for index, result in parallel(tasks):
        yield cells[index], result


def _default_jobs() -> int | None:
    """Return the number of cores, or None where a backend is in force that knows better."""
    backend, jobs = joblib.parallel.get_active_backend()
    own = type(backend).__name__ == "LokyBackend" and jobs is None
    return len(os.sched_getaffinity(0)) if own else None


def _run_at(
    run: Callable[[Cell], Result], index: int, cell: Cell
) -> tuple[int, Result]:
    with threadpool_limits(1):
        return index, run(cell)
