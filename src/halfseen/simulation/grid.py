"""Many cells at once: in this process, in several, or on a cluster."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import NamedTuple

from halfseen import checks
from halfseen.errors import HalfseenError, InvalidSettingError
from halfseen.lazy import from_extra
from halfseen.policies.base import Policy
from halfseen.policies.registry import register_policy, registered
from halfseen.simulation.cells import Cell, Result, run_together
from halfseen.simulation.cluster import run_on_cluster
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


class _Task(NamedTuple):
    """Cells of one realization, by their places in the caller's list, with the policies they name.

    A worker does not run the caller's script, so it must be given the classes defined there.
    Plugins come first: a worker imports them before it unpickles their classes.
    """

    plugins: Plugins
    places: Sequence[int]
    cells: Sequence[Cell]
    policies: Sequence[type[Policy]]


_Call = Callable[[], list[tuple[int, Result]]]
"""Runs a task, here or in a worker, and returns its results by place."""


def run_cells(
    cells: Sequence[Cell],
    *,
    jobs: int | None = None,
    cluster: str | None = None,
    run: Callable[[Sequence[Cell]], Sequence[Result]] = run_together,
) -> Iterator[tuple[Cell, Result]]:
    """Yield every cell with its result, in the order in which they finish.

    Parameters
    ----------
    cells : sequence of Cell
    jobs : int, optional
        How many processes; by default all cores, or what the joblib backend in force
        (`joblib.parallel_config`) says.
    cluster : str, optional
        Address of a Dask scheduler whose workers run the cells instead.
    run : callable
        What turns cells of the same world and seed into their results.

    Raises
    ------
    InvalidSettingError
        Both jobs and a cluster were given.
    ClusterError
        The cluster cannot be reached or used.
    HalfseenError
        A worker was killed from outside. Results that were yielded before remain valid.
    """
    if jobs is not None and cluster is not None:
        raise InvalidSettingError(
            f"jobs must not be given with a cluster, which has its own workers, got {jobs}"
        )
    if jobs is not None:
        jobs = checks.integer("jobs", jobs, 1)

    def calls(n_workers: int) -> Iterator[_Call]:
        for places in _groups(cells, n_workers):
            yield partial(_run_task, run, _task(cells, places), os.getpid())

    if cluster is not None:
        found = run_on_cluster(calls, cluster)
    elif jobs == 1:
        found = (call() for call in calls(1))
    else:
        found = _in_parallel(calls, jobs)
    # Here as well, for workers that are threads of this process.
    with _one_blas_thread():
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
        yield from parallel(joblib.delayed(call)() for call in calls(n_workers))
    except TerminatedWorkerError:
        raise HalfseenError(
            "a worker process was killed from outside, most often because memory ran out: run "
            "again with fewer jobs"
        ) from None


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


def _task(cells: Sequence[Cell], places: Sequence[int]) -> _Task:
    chosen, policies = [cells[place] for place in places], {}
    for name in (name for cell in chosen for name in cell.method.policies()):
        with suppress(HalfseenError):  # an unknown name fails its own cell
            policies[name] = registered(name)
    return _Task(loaded_plugins(), places, chosen, list(policies.values()))


def _run_task(
    run: Callable[[Sequence[Cell]], Sequence[Result]], task: _Task, caller: int
) -> list[tuple[int, Result]]:
    """Return the results of a task by place."""
    for policy in task.policies:
        register_policy(policy)
    with _one_blas_thread(forever=os.getpid() != caller):
        return list(zip(task.places, run(task.cells), strict=True))


_n_modules = 0  # imported when BLAS was last limited to one thread; 0 while it is not


@contextmanager
def _one_blas_thread(*, forever: bool = False) -> Iterator[None]:
    """Limit BLAS to one thread; in a worker `forever`, as another cell may still be running there.

    Finding the libraries takes as long as many rounds, so it is repeated only after imports.
    """
    global _n_modules
    if threadpool_limits is None or len(sys.modules) == _n_modules:
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
    """End this worker when its caller ends; only the caller handles Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == caller:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
