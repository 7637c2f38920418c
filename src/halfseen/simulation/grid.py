"""Many cells at once: parallel over processes or whatever joblib runs on."""

import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

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

# Sending a cell to another process costs as much as a hundred cheap rounds, so several go at once.
# What is not begun after so many seconds comes back: no worker waits for it, a kill loses little.
_LARGEST_GROUP = 8
_GROUP_SECONDS = 0.1


class _Task(NamedTuple):
    """A cell by its place in the caller's list, with the classes that it names."""

    place: int
    cell: Cell
    policy: type[Policy] | None
    world: type[World] | None


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
    waiting = deque(sorted(range(len(cells)), key=lambda index: -cells[index].horizon))
    jobs = jobs if jobs is not None else _default_jobs()
    parallel = joblib.Parallel(
        n_jobs=jobs,
        return_as="generator_unordered",
        batch_size=1,
        pre_dispatch="2*n_jobs",
        initializer=_end_with,  # used by backends that start processes
        initargs=(os.getpid(),),
    )
    try:
        # Held here as well, for workers that are threads of this process.
        with _one_blas_thread():
            while waiting:
                for results, left in parallel(_groups(cells, waiting, jobs, run)):
                    waiting.extendleft(reversed(left))
                    for index, result in results:
                        yield cells[index], result
    except TerminatedWorkerError:
        raise HalfseenError(
            "a worker process was killed from outside, most often because memory ran out: run "
            "again with fewer jobs"
        ) from None


def _groups(
    cells: Sequence[Cell], waiting: deque[int], jobs: int | None, run: Callable[[Cell], Result]
) -> Iterator[Any]:
    """Take groups of cells from those that wait: large ones first, single cells at the end."""
    n_workers = joblib.effective_n_jobs(jobs)
    largest = _LARGEST_GROUP if n_workers > 1 else 1
    while waiting:
        size = max(1, min(largest, len(waiting) // (2 * n_workers)))
        group = [waiting.popleft() for _ in range(size)]
        tasks = [_Task(index, cells[index], *_classes(cells[index])) for index in group]
        yield joblib.delayed(_run_group)(run, tasks, os.getpid())


def _default_jobs() -> int | None:
    """Return the number of cores, or None where a backend is in force that knows better."""
    backend, jobs = joblib.parallel.get_active_backend()
    own = type(backend).__name__ == "LokyBackend" and jobs is None
    return joblib.cpu_count() if own else None


def _run_group(
    run: Callable[[Cell], Result], tasks: Sequence[_Task], caller: int
) -> tuple[list[tuple[int, Result]], list[int]]:
    """Return results by place, of one cell at least, and the places of those not begun."""
    ended = time.monotonic() + _GROUP_SECONDS
    results: list[tuple[int, Result]] = []
    while len(results) < len(tasks) and (not results or time.monotonic() < ended):
        task = tasks[len(results)]
        # A worker does not run the caller's script, so it does not know the classes defined there.
        if task.policy is not None:
            register(task.policy)
        if task.world is not None and isinstance(task.cell.world, Mapping):
            register_world(task.cell.world["kind"])(task.world)
        with _one_blas_thread(forever=os.getpid() != caller):
            results.append((task.place, run(task.cell)))
    return results, [task.place for task in tasks[len(results) :]]


_n_modules = 0  # when BLAS was last held to one thread; 0 when it is not


@contextmanager
def _one_blas_thread(*, forever: bool = False) -> Iterator[None]:
    """Hold BLAS to one thread; in a worker `forever`, as another cell may still be running there.

    Looking for libraries takes as long as many rounds, and only imports bring new ones.
    """
    global _n_modules
    if len(sys.modules) == _n_modules:
        yield
        return
    limits = threadpool_limits(1)
    _n_modules = len(sys.modules)
    try:
        yield
    finally:
        if not forever:
            limits.restore_original_limits()
            _n_modules = 0


def _end_with(caller: int) -> None:
    """Let this worker end with its caller, who alone answers Ctrl-C, and not wait for more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == caller:
            time.sleep(0.5)
        os._exit(1)

    if os.getppid() == caller:  # else nobody could tell
        threading.Thread(target=watch, daemon=True).start()


def _classes(cell: Cell) -> tuple[type[Policy] | None, type[World] | None]:
    """Return the classes that a cell names; None where they are not named."""
    policy = world = None
    with suppress(HalfseenError):  # running the cell will tell
        policy = registered(cell.method.policy)
    with suppress(HalfseenError):
        world = type(world_from(cell.world)) if isinstance(cell.world, Mapping) else None
    return policy, world
