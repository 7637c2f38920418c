"""Cells in this process, or in several."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import Any

from halfseen import checks
from halfseen.errors import HalfseenError
from halfseen.lazy import from_extra
from halfseen.policies.registry import register_policy, registered
from halfseen.simulation.cells import Cell, Result, run_together
from halfseen.simulation.methods import MEASURES
from halfseen.simulation.plugins import Plugins, loaded_plugins

try:
    from threadpoolctl import threadpool_limits
except ModuleNotFoundError:  # it comes with the extra `paper`
    threadpool_limits = None

# A task is a realization with the methods that play it, so that it is drawn once for all of them.
# The rounds of a task, over all its methods, are limited, so that a kill loses only seconds; and
# tasks are split until there are several for every worker, so that none is idle.
_MOST_ROUNDS = 8000
_TASKS_PER_WORKER = 4
# Each is a process of some hundred megabytes.
_MOST_JOBS = 1024


_Call = Callable[[], list[tuple[int, Result]]]
"""Runs a task, here or in a worker, and returns its results by place."""


def run_cells(
    cells: Sequence[Cell],
    *,
    jobs: int | None = None,
    run: Callable[[Sequence[Cell]], Sequence[Result]] = run_together,
) -> Iterator[tuple[Cell, Result]]:
    """Yield every cell with its result, in the order in which they finish.

    Parameters
    ----------
    cells : sequence of Cell
    jobs : int, optional
        How many processes; by default all cores, or what the joblib backend in force
        (`joblib.parallel_config`) says.
    run : callable
        What turns cells of the same world and seed into their results.

    Raises
    ------
    HalfseenError
        A worker was killed from outside. Results that were yielded before remain valid.
    """
    if jobs is not None:
        jobs = checks.integer("jobs", jobs, 1, _MOST_JOBS)

    def calls(n_workers: int) -> Iterator[_Call]:
        for places in _groups(cells, n_workers):
            chosen = [cells[place] for place in places]
            # Plugins come first: a worker imports them before it unpickles their classes.
            what = (loaded_plugins(), places, chosen, _named_in(chosen))
            yield partial(_run_task, *what, run, os.getpid())

    if jobs == 1 or len(cells) <= 1:  # starting a process takes longer than most cells
        found = (call() for call in calls(1))
    else:
        found = _in_parallel(calls, jobs)
    with nullcontext() if threadpool_limits is None else threadpool_limits(1):
        for results in found:
            for place, result in results:
                yield cells[place], result


def _in_parallel(
    calls: Callable[[int], Iterator[_Call]], jobs: int | None
) -> Iterator[list[tuple[int, Result]]]:
    """Yield what the calls for a number of workers return, in the order in which they finish."""
    with from_extra("paper", "set jobs=1"):
        import joblib
        from joblib.externals.loky.process_executor import TerminatedWorkerError
    if jobs is None:
        backend, n_jobs = joblib.parallel.get_active_backend()
        is_default = type(backend).__name__ == "LokyBackend" and n_jobs is None
        jobs = joblib.cpu_count() if is_default else None  # else the backend decides
    parallel = joblib.Parallel(
        n_jobs=jobs,
        return_as="generator_unordered",
        batch_size=1,
        pre_dispatch="2*n_jobs",
        initializer=_end_with,  # used by backends that start processes
        initargs=(os.getpid(),),
    )
    try:
        n_workers = joblib.effective_n_jobs(jobs)
        with _ctrl_c_ignored():  # workers are started here, and inherit it before they import
            results = parallel(joblib.delayed(call)() for call in calls(n_workers))
        yield from results
    except TerminatedWorkerError:
        raise HalfseenError(
            "a worker process was killed from outside, most often because memory ran out: run "
            "again with fewer jobs"
        ) from None


@contextmanager
def _ctrl_c_ignored() -> Iterator[None]:
    """Ignore Ctrl-C for a moment, where this thread may: only the main thread handles signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _groups(cells: Sequence[Cell], n_workers: int) -> list[list[int]]:
    """Return tasks as places of cells, long ones first, so that no core waits for the last."""
    alike: dict[tuple[int, int], list[int]] = {}
    for place, cell in enumerate(cells):
        alike.setdefault((id(cell.world), cell.key.seed), []).append(place)
    most_cells = max(1, len(cells) // (_TASKS_PER_WORKER * n_workers))
    groups = []
    for places in alike.values():
        horizon = cells[places[0]].horizon
        fitting = _MOST_ROUNDS // horizon if horizon > 1 else 1  # 1 where it is not known
        size = max(1, min(most_cells, fitting))
        groups += [places[at : at + size] for at in range(0, len(places), size)]
    return sorted(groups, key=lambda group: -len(group) * cells[group[0]].horizon)


def _named_in(cells: Sequence[Cell]) -> list[Any]:
    """Return the policies and measures that cells name.

    A worker does not run the caller's script, so it must be given the classes defined there.
    Unpickling a measure imports its module, which registers it.
    """
    found: dict[str, Any] = {}
    for method in (cell.method for cell in cells):
        for name in method.policies():
            with suppress(HalfseenError):  # an unknown name fails its own cell
                found[name] = registered(name)
        measure = method.settings.get("measure")
        if measure in MEASURES and not method.policies():
            found[measure] = MEASURES[measure]
    return list(found.values())


def _run_task(
    plugins: Plugins,
    places: Sequence[int],
    cells: Sequence[Cell],
    named: Sequence[Any],
    run: Callable[[Sequence[Cell]], Sequence[Result]],
    caller: int,
) -> list[tuple[int, Result]]:
    """Return the results of a task by place."""
    for each in named:
        if isinstance(each, type):
            register_policy(each)
    if threadpool_limits is not None and os.getpid() != caller:
        threadpool_limits(1)  # for good, as another cell may still be running in this worker
    return list(zip(places, run(cells), strict=True))


def _end_with(caller: int) -> None:
    """End this worker when its caller ends; only the caller handles Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == caller:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
