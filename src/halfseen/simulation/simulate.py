"""Policies in a world over many seeds, in this process, in several, or on a cluster."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from halfseen import checks, params
from halfseen.errors import HalfseenError, InvalidSettingError
from halfseen.lazy import from_extra
from halfseen.log import logger
from halfseen.policies.base import Policy
from halfseen.policies.registry import register_policy, registered
from halfseen.progress import with_bar
from halfseen.simulation.cells import Cell, CellKey, Result, run_together, skipped
from halfseen.simulation.cluster import run_on_cluster
from halfseen.simulation.methods import MEASURES, Method, method_from
from halfseen.simulation.plugins import Plugins, loaded_plugins
from halfseen.simulation.results import Results, prob_of, versions
from halfseen.simulation.store import Store
from halfseen.worlds.base import Facts, World

try:
    from threadpoolctl import threadpool_limits
except ModuleNotFoundError:  # it comes with the extra `paper`
    threadpool_limits = None

# A task is a realization with the methods that play it, so that it is drawn once for all of them.
# The rounds of a task, over all its methods, are limited, so that a kill loses only seconds; and
# tasks are split until there are several for every worker, so that none is idle.
_MOST_ROUNDS = 8000
_TASKS_PER_WORKER = 4


class _Batch(NamedTuple):
    """Cells of one realization, by their places in the caller's list, with the policies they name.

    A worker does not run the caller's script, so it must be given the classes defined there.
    Plugins come first: a worker imports them before it unpickles their classes.
    """

    plugins: Plugins
    places: Sequence[int]
    cells: Sequence[Cell]
    policies: Sequence[type[Policy]]
    measures: Sequence[Callable[..., Any]]


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
            yield partial(_run_batch, run, _batch(cells, places), os.getpid())

    if cluster is not None:
        found = run_on_cluster(calls, cluster)
    elif jobs == 1 or len(cells) <= 1:  # starting a process takes longer than most cells
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


def _batch(cells: Sequence[Cell], places: Sequence[int]) -> _Batch:
    chosen, policies = [cells[place] for place in places], {}
    for name in (name for cell in chosen for name in cell.method.policies()):
        with suppress(HalfseenError):  # an unknown name fails its own cell
            policies[name] = registered(name)
    # Unpickling a measure imports its module, which registers it.
    wanted = {cell.method.settings.get("measure") for cell in chosen if not cell.method.policies()}
    measures = [MEASURES[name] for name in MEASURES if name in wanted]
    return _Batch(loaded_plugins(), places, chosen, list(policies.values()), measures)


def _run_batch(
    run: Callable[[Sequence[Cell]], Sequence[Result]], task: _Batch, caller: int
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


class OwnMethod(Method):
    """A method that is a function from facts to a fresh policy, for quick experiments."""

    make: Callable[[Facts], Policy] = params.custom(check=lambda _, value: value, kind="callable")

    def build(self, facts: Facts) -> Policy:
        """Return a fresh policy."""
        return self.make(facts)


def simulate(
    policies: Iterable[str] | Mapping[str, Any],
    world: World,
    seeds: Iterable[int],
    *,
    name: str = "simulation",
    jobs: int | None = None,
    cluster: str | None = None,
    out: str | Path | None = None,
    again: bool = False,
    points: int = 100,
    progress: bool = False,
) -> Results:
    """Let policies play the same realizations of a world and return their regrets.

    Parameters
    ----------
    policies : list of str, or mapping from a key to settings, Method, or function
        Standard methods by key, perhaps with other settings; or, for a policy of your own, a
        function from `Facts` (dim, horizon, seed, …) to a fresh policy.
    world : World
    seeds : iterable of int
    name : str
        Of the study, in the tables.
    jobs : int, optional
        Processes; all cores by default. `joblib.parallel_config` chooses another backend.
    cluster : str, optional
        Address of a Dask scheduler whose workers run the cells instead (docs/many-machines.md).
    out : path, optional
        Folder for the results. Finished cells found there are not run again.
    again : bool
        Run them again all the same.
    points : int
        Rounds at which regret over time is kept.
    progress : bool
        Show a progress bar, if rich is installed.

    Returns
    -------
    Results
        Failed cells are in `failures`, those of methods with a reason to `skip` them in `skipped`;
        the others are complete.

    Raises
    ------
    HalfseenError
        No cell could run; the message has the first reason.

    Examples
    --------
    >>> from halfseen import LowRankWorld
    >>> world = LowRankWorld(dim=6, rank=1, horizon=20)
    >>> results = simulate(["zf-oful", "uniform"], world, range(2), jobs=1)
    >>> [(row["method"], row["n"]) for row in results.summary]
    [('zf-oful', 2), ('uniform', 2)]
    """
    methods, each = methods_from(policies), seeds_from(seeds)
    checks.integer("points", points, 2)
    if not isinstance(world, World):
        raise InvalidSettingError(
            f"must be a world, such as LowRankWorld(), got {world!r}", name="world"
        )
    world = rooted(world)
    cells = [
        Cell(
            key=CellKey(name, "default", prob_of(world), key, seed),
            world=world,
            method=method,
            points=points,
        )
        for key, method in methods.items()
        for seed in each
    ]
    run_options: Any = {"jobs": jobs, "cluster": cluster, "again": again, "progress": progress}
    study: dict[str, Any] = {"name": name, "title": name, "seeds": each}
    if out is not None:
        _check_storable(methods)
    with nullcontext() if out is not None else suppress(InvalidSettingError):
        plain = {key: method.to_dict() for key, method in methods.items()}
        setting = {"world": world.to_dict(), "observe_prob": [], "methods": plain}
        study["settings"] = {"default": setting}
    store = None if out is None else Store(out)
    return _warned(run(cells, store, manifest={"study": study}, **run_options))


def _warned(results: Results) -> Results:
    """Log that cells failed, if some did; raise HalfseenError if all did."""
    if results.failures:
        error = results.failures[0][1].strip().splitlines()[-1]
        n_failed = len(results.failures)
        n_cells = len(results.per_seed) - len(results.skipped)
        if n_failed == n_cells:
            raise HalfseenError(f"no cell could run, the first because of {error}")
        logger.warning("%d of %d cells failed: %s (see results.failures)", n_failed, n_cells, error)
    return results


def run(
    cells: Sequence[Cell],
    store: Store | None = None,
    *,
    jobs: int | None = None,
    cluster: str | None = None,
    again: bool = False,
    timing: bool = True,
    progress: bool = False,
    write: bool = True,
    manifest: Mapping[str, Any] | None = None,
) -> Results:
    """Run the cells that a store does not have, and return (and write) the tables of all.

    Parameters
    ----------
    cells : sequence of Cell
        Those of methods that are skipped are not run.
    store : Store, optional
        Where finished cells are kept and tables are written.
    jobs, cluster, again, progress
        As in `simulate`.
    timing : bool
        Whether tables have seconds.
    write : bool
        Whether tables are written into the store's folder.
    manifest : mapping, optional
        What `manifest.json` records besides versions and duration.
    """
    started = time.perf_counter()
    playing = [cell for cell in cells if not cell.method.skip]
    finished = {cell.key: skipped(cell) for cell in cells if cell.method.skip}
    if store is not None and again:
        store.forget(playing)
    elif store is not None:
        store.borrow(playing)
    missing = playing if store is None else store.missing(playing)
    running = run_cells(missing, jobs=jobs, cluster=cluster)
    for cell, result in _with_bar(running, cells, missing) if progress and cells else running:
        if store is not None:
            store.add(cell, result)
        finished[cell.key] = result
    if store is not None:  # it may have run a cell under another name
        found = ((cell.key, store.get(cell)) for cell in playing)
        finished |= {key: result for key, result in found if result is not None}
    results = Results.of(((cell, finished[cell.key]) for cell in cells), timing=timing)
    results.manifest = {
        **(manifest or {}),
        "versions": versions(),
        "seeds": list(dict.fromkeys(cell.key.seed for cell in cells)),
        "cells": len(cells),
        "cells_run_now": len(missing),
        "cells_failed": len(results.failures),
        "cells_skipped": len(results.skipped),
        "seconds": round(time.perf_counter() - started, 1),
    }
    if store is not None and write:
        results.write(store.folder)
    return results


def _with_bar(
    results: Iterable[tuple[Cell, Result]],
    cells: Sequence[Cell],
    missing: Sequence[Cell],
    console: Any = None,
) -> Iterator[tuple[Cell, Result]]:
    """Yield results with a bar over rounds, so that the time left is right if horizons differ."""
    if console is None:
        with suppress(ModuleNotFoundError):
            from rich import get_console

            console = get_console()
    n_before = len(cells) - len(missing)
    return with_bar(
        cells[0].key.study,
        sum(cell.horizon for cell in missing),
        results,
        lambda found: found[0].horizon,
        note=lambda n_done: f"{n_before + n_done}/{len(cells)} cells",
        patience=0.0,
        console=console,
    )


def rooted(world: World) -> World:
    """Return a world with absolute paths, which workers in another folder find."""
    paths = [name for name in world.data_paths() if getattr(world, name) is not None]
    return world.replace(**{name: os.path.abspath(getattr(world, name)) for name in paths})


def seeds_from(seeds: Iterable[int]) -> list[int]:
    """Return seeds as a list, at least one and none twice."""
    if not isinstance(seeds, Iterable):
        raise InvalidSettingError(
            f"must be several, such as range(10), got {seeds!r}", name="seeds"
        )
    each = [checks.integer("seed", seed, 0) for seed in seeds]
    if not each or len(set(each)) < len(each):
        raise InvalidSettingError(f"seeds must be different integers, at least one, got {each}")
    return each


def methods_from(policies: Iterable[str] | Mapping[str, Any]) -> dict[str, Method]:
    """Return methods by key, as `simulate` takes them."""
    if isinstance(policies, str):
        policies = [policies]
    if not isinstance(policies, Iterable):
        raise InvalidSettingError(
            f"policies must be keys such as 'tofu', or a mapping from keys, got {policies!r}"
        )
    methods: dict[str, Method] = {}
    for key in policies:
        value = policies[key] if isinstance(policies, Mapping) else {}
        if not isinstance(key, str):
            raise InvalidSettingError(
                f"policies must be keys such as 'tofu', or a mapping from keys, got {key!r}"
            )
        if isinstance(value, Method):
            methods[key] = value
        elif isinstance(value, Mapping):
            methods[key] = method_from(key, value)
        elif callable(value):
            methods[key] = OwnMethod(policy=key, make=value)
        else:
            raise InvalidSettingError(
                f"policies[{key!r}] must be settings, a Method or a function, got {value!r}"
            )
    for key, method in methods.items():
        if not isinstance(method, OwnMethod):
            for error in method.mistakes().values():
                raise InvalidSettingError(f"policies[{key!r}]: {error}")
    if not methods:
        raise InvalidSettingError("policies must name at least one, such as 'tofu', got none")
    return methods


def _check_storable(methods: Mapping[str, Method]) -> None:
    """Raise InvalidSettingError if the results of a method cannot be stored."""
    own = [key for key, method in methods.items() if isinstance(method, OwnMethod)]
    if own:
        raise InvalidSettingError(
            f"results of {own} cannot be stored, because a function cannot be recognized in a "
            "later run: register the policy and name it, or leave out `out`"
        )
