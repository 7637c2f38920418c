"""Many cells at once: parallel over processes or whatever joblib runs on."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache

import joblib
from joblib.externals.loky.process_executor import TerminatedWorkerError
from threadpoolctl import threadpool_limits

from halfseen import checks
from halfseen.errors import HalfseenError
from halfseen.policies.base import Policy
from halfseen.policies.registry import register, registered
from halfseen.simulation.cells import Cell, Result, run_cell
from halfseen.worlds.base import World
from halfseen.worlds.registry import register_world, world_from


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

    Raises
    ------
    HalfseenError
        A worker was killed from outside. What was yielded before stands.
    """
    if jobs is not None:
        jobs = checks.integer("jobs", jobs, 1)
    # Long ones first, so that no core waits for a straggler.
    order = sorted(range(len(cells)), key=lambda index: -cells[index].horizon)
    tasks = (
        joblib.delayed(_run_at)(run, index, cells[index], *_classes(cells[index]), os.getpid())
        for index in order
    )
    parallel = joblib.Parallel(
        n_jobs=jobs if jobs is not None else _default_jobs(),
        return_as="generator_unordered",
        batch_size=1,
        pre_dispatch="2*n_jobs",
    )
    try:
        # Held here as well, for workers that are threads of this process.
        with threadpool_limits(1):
            for index, result in parallel(tasks):
                yield cells[index], result
    except TerminatedWorkerError:
        raise HalfseenError(
            "a worker process was killed from outside, most often because memory ran out: run "
            "again with fewer jobs"
        ) from None


def _default_jobs() -> int | None:
    """Return the number of cores, or None where a backend is in force that knows better."""
    backend, jobs = joblib.parallel.get_active_backend()
    own = type(backend).__name__ == "LokyBackend" and jobs is None
    return joblib.cpu_count() if own else None


def _run_at(
    run: Callable[[Cell], Result],
    index: int,
    cell: Cell,
    policy: type[Policy] | None,
    world: type[World] | None,
    caller: int,
) -> tuple[int, Result]:
    # A worker does not run the caller's script, so it does not know the classes defined there.
    if policy is not None:
        register(policy)
    if world is not None and isinstance(cell.world, Mapping):
        register_world(cell.world["kind"])(world)
    if os.getppid() == caller:
        _end_with(caller)
    limits = threadpool_limits(1)
    try:
        return index, run(cell)
    finally:
        if os.getpid() == caller:  # elsewhere the limit stays: another cell may still be running
            limits.restore_original_limits()


@cache
def _end_with(caller: int) -> None:
    """Let this worker end when its caller has been killed, instead of waiting for more work."""

    def watch() -> None:
        while os.getppid() == caller:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _classes(cell: Cell) -> tuple[type[Policy] | None, type[World] | None]:
    """Return the classes that a cell names; None where they are not named."""
    policy = world = None
    with suppress(HalfseenError):  # running the cell will tell
        policy = registered(cell.method.policy)
    with suppress(HalfseenError):
        world = type(world_from(cell.world)) if isinstance(cell.world, Mapping) else None
    return policy, world
