"""Cells in this process, in several, or on the machines of a Dask cluster.

joblib's own Dask backend is not used, because it hangs when a call has killed several workers: the
scheduler gives the calls of a worker that died to another one.
"""

import logging
import os
import pickle
import platform
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import halfseen
from halfseen import checks
from halfseen.errors import ClusterError, HalfseenError, InvalidSettingError
from halfseen.lazy import from_extra
from halfseen.policies.registry import register_policy, registered
from halfseen.simulation.cells import Cell, Result, library_versions, run_together
from halfseen.simulation.methods import MEASURES
from halfseen.simulation.plugins import Plugins, loaded_plugins

try:
    from threadpoolctl import threadpool_limits
except ModuleNotFoundError:  # it comes with the extra `paper`
    threadpool_limits = None

if TYPE_CHECKING:
    from distributed import Client

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
        jobs = checks.integer("jobs", jobs, 1, _MOST_JOBS)

    def calls(n_workers: int) -> Iterator[_Call]:
        for places in _groups(cells, n_workers):
            chosen = [cells[place] for place in places]
            # Plugins come first: a worker imports them before it unpickles their classes.
            what = (loaded_plugins(), places, chosen, _named_in(chosen))
            yield partial(_run_task, *what, run, os.getpid())

    if cluster is not None:
        found = run_on_cluster(calls, cluster)
    elif jobs == 1 or len(cells) <= 1:  # starting a process takes longer than most cells
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


# On a cluster

_PATIENCE = 5  # seconds in which a scheduler must answer, and then have a worker

T = TypeVar("T")


def run_on_cluster(calls: Callable[[int], Iterable[Callable[[], T]]], address: str) -> Iterator[T]:
    """Yield what calls return, in the order in which they finish.

    Parameters
    ----------
    calls : callable
        Returns the calls for a number of workers.
    address : str
        Of a Dask scheduler, such as "tcp://10.0.0.1:8786".

    Raises
    ------
    ClusterError
        The scheduler does not answer, was lost or has no workers; or workers have other versions of
        the libraries that compute, or die. Results that were yielded before remain valid.
    """
    with from_extra("cluster"):
        import cloudpickle
        from distributed import KilledWorker, as_completed
    with _silenced("distributed", "distributed.client"), _connected(address) as client:
        n_workers = sum(client.nthreads().values())
        own = _versions()
        # Pickled here: the scheduler unpickles what it is given, and must not import a user's code.
        packed = (cloudpickle.dumps(call) for call in calls(n_workers))
        futures = [client.submit(_call, each, own, pure=False) for each in packed]
        try:
            for future in as_completed(futures, loop=client.loop):
                yield future.result()
                future.release()
        except KilledWorker as error:
            raise ClusterError(
                f"the same cells ended {error.allowed_failures + 1} workers, the last one "
                f"{error.last_worker.address}, most often because memory ran out"
            ) from None
        except CancelledError:
            raise ClusterError(f"the scheduler at {address} was lost") from None


@contextmanager
def _connected(address: str) -> "Iterator[Client]":
    """Yield a client that has workers; closing it cancels its calls."""
    from distributed import Client
    from distributed.comm import get_address_host_port

    try:
        # A client takes long to report that nobody answers, and starts a cluster of its own if the
        # address is empty.
        there = get_address_host_port(address, strict=True)
        socket.create_connection(there, timeout=_PATIENCE).close()
        client = Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError):
        raise ClusterError(
            f"no Dask scheduler answers at {address!r}: start one with `dask scheduler`, which "
            "prints its address"
        ) from None
    with client:
        try:
            client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError:
            raise ClusterError(
                f"the scheduler at {address} has no workers: start some with "
                f"`dask worker {address}`"
            ) from None
        yield client


@contextmanager
def _silenced(*names: str) -> Iterator[None]:
    """Suppress tracebacks of errors that are reported in one sentence."""
    levels = {log: log.level for log in map(logging.getLogger, names)}
    for log in levels:
        log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for log, level in levels.items():
            log.setLevel(level)


def _call(packed: bytes, wanted: dict[str, str]) -> Any:
    """Run a call in a worker if its versions are those of the caller."""
    own = _versions()
    differing = [name for name in own if own[name] != wanted[name]]
    if differing:
        other = "; ".join(f"{name} {own[name]}, not {wanted[name]}" for name in differing)
        raise ClusterError(f"a worker on {platform.node()} has {other}: install the same versions")
    return pickle.loads(packed)()  # noqa: S301 (it comes from the cluster that was asked for)


def _versions() -> dict[str, str]:
    return {"halfseen": halfseen.__version__, **library_versions()}
