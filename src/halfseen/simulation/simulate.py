"""Policies in a world over many seeds: the run of any study."""

import importlib.util
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from halfseen import checks
from halfseen.errors import HalfseenError, InvalidSettingError, StudyError
from halfseen.lazy import from_extra
from halfseen.log import logger
from halfseen.policies.base import Policy
from halfseen.policies.registry import register_policy
from halfseen.simulation import cluster
from halfseen.simulation.cells import Cell, CellKey, Result, run_cell
from halfseen.simulation.methods import MEASURE, MEASURES, Method, OwnMethod, method_from
from halfseen.simulation.results import Results, prob_of, versions
from halfseen.simulation.store import Store
from halfseen.worlds.base import World

try:
    from threadpoolctl import threadpool_limits
except ModuleNotFoundError:  # it comes with the extra `paper`
    threadpool_limits = None

_MOST_JOBS = 1024  # each is a process of some hundred megabytes


def simulate(
    policies: Iterable[str] | Mapping[str, Any],
    world: World,
    seeds: Iterable[int],
    *,
    name: str = "simulation",
    jobs: int | None = None,
    out: str | Path | None = None,
    points: int = 100,
    progress: bool = False,
) -> Results:
    """Run policies on the same realizations of a world and return their regrets.

    Parameters
    ----------
    policies : list of str, or mapping from a key to settings, Method, or function
        Standard methods by key, perhaps with other settings; or, for your own policy, a
        function from `Facts` (dim, horizon, seed, …) to a fresh policy.
    world : World
    seeds : iterable of int
    name : str
        Of the study, in the tables.
    jobs : int, optional
        Processes; all cores by default. `joblib.parallel_config` chooses another backend.
    out : path, optional
        Folder for the results. Finished cells found there are not run again.
    points : int
        Rounds at which regret over time is kept.
    progress : bool
        Show a progress bar (needs the extra `paper`).

    Returns
    -------
    Results
        Failed cells are in `failures`; the others are complete.

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
    place = CellKey(name, "default", prob_of(world), "", 0)
    cells = [
        Cell(key=place._replace(method=key, seed=seed), world=world, method=method, points=points)
        for key, method in methods.items()
        for seed in each
    ]
    study: dict[str, Any] = {"name": name, "title": name, "seeds": each}
    own = [key for key, method in methods.items() if isinstance(method, OwnMethod)]
    if own and out is not None:
        raise InvalidSettingError(
            f"results of {own} cannot be stored, because a function cannot be recognized in a "
            "later run: register the policy and name it, or leave out `out`"
        )
    with nullcontext() if out is not None else suppress(InvalidSettingError):
        plain = {key: method.to_dict() for key, method in methods.items()}
        setting = {"world": world.to_dict(), "observe_prob": [], "methods": plain}
        study["settings"] = {"default": setting}
    store = None if out is None else Store(out)
    results = run(cells, store, manifest={"study": study}, jobs=jobs, progress=progress)
    warn_of_failures(results)
    return results


def warn_of_failures(results: Results) -> None:
    """Log how many cells failed, and why; raise HalfseenError if all did."""
    if not results.failures:
        return
    reason = "the first because of " + results.failures[0][1].strip().splitlines()[-1]
    n_failed, n_cells = len(results.failures), len(results.per_seed)
    if n_failed == n_cells:
        raise HalfseenError(f"no cell could run, {reason}")
    logger.warning("%d of %d cells failed, %s; see results.failures", n_failed, n_cells, reason)


def run(
    cells: Sequence[Cell],
    store: Store | None = None,
    *,
    jobs: int | None = None,
    progress: bool = False,
    write: bool = True,
    manifest: Mapping[str, Any] | None = None,
) -> Results:
    """Run the cells that a store does not have, and return (and write) the tables of all.

    Finished cells are kept in the store, and tables are written there if `write`. `manifest` is
    what `manifest.json` records besides versions and duration.
    """
    started = time.perf_counter()
    finished: dict[CellKey, Result] = {}
    with nullcontext() if store is None else store.writing():
        missing = cells if store is None else store.missing(cells)
        running: Iterable[tuple[Cell, Result]] = run_cells(missing, jobs=jobs)
        if progress and missing:
            with from_extra("paper"):
                from rich.progress import track
            running = track(running, f"{len(missing)} cells to run", total=len(missing))
        for cell, result in running:
            if store is not None:
                store.add(cell, result)
            finished[cell.key] = result
    if store is not None:  # it may have run a cell under another name
        found = ((cell.key, store.get(cell)) for cell in cells)
        finished |= {key: result for key, result in found if result is not None}
    results = Results.of((cell, finished[cell.key]) for cell in cells)
    results.manifest = {
        **(manifest or {}),
        "versions": versions(),
        "seeds": list(dict.fromkeys(cell.key.seed for cell in cells)),
        "cells": len(cells),
        "cells_run_now": len(missing),
        "cells_failed": len(results.failures),
        "seconds": round(time.perf_counter() - started, 1),
    }
    if store is not None and write:
        results.write(store.folder)
    return results


def run_cells(
    cells: Sequence[Cell], *, jobs: int | None = None, run: Callable[[Cell], Result] = run_cell
) -> Iterator[tuple[Cell, Result]]:
    """Yield every cell with its result, in the order in which they finish.

    `jobs` is the number of processes; by default it is all cores, or what the joblib backend in
    force (`joblib.parallel_config`) says.

    Raises
    ------
    HalfseenError
        A worker was killed from outside. Results that were yielded before remain valid.
    """
    if jobs is not None:
        jobs = checks.integer("jobs", jobs, 1, _MOST_JOBS)
    with _one_blas_thread():
        if jobs == 1 or len(cells) <= 1:  # starting a process takes longer than most cells
            for cell in cells:
                yield cell, run(cell)
        else:
            for place, result in _in_parallel(cells, jobs, run):
                yield cells[place], result


def _one_blas_thread() -> AbstractContextManager[Any]:
    return nullcontext() if threadpool_limits is None else threadpool_limits(1)


def _in_parallel(
    cells: Sequence[Cell], jobs: int | None, run: Callable[[Cell], Result]
) -> Iterator[tuple[int, Result]]:
    """Yield results with the places of their cells, in the order in which they finish."""
    with from_extra("paper", "set jobs=1"):
        import joblib
        from joblib.externals.loky.process_executor import TerminatedWorkerError
    # Long ones first, so that no core waits for the last.
    order = sorted(range(len(cells)), key=lambda place: -cells[place].horizon)
    backend, workers = joblib.parallel.get_active_backend()
    if (client := getattr(backend, "client", None)) is not None:  # of Dask
        calls = [(_run_in_worker, _named_in(cells[at]), at, cells[at], run) for at in order]
        yield from cluster.run_on(client, calls)
        return
    if jobs is None and workers is None:
        jobs = joblib.cpu_count()
    parallel = joblib.Parallel(
        n_jobs=jobs,
        # Some backends, as that of Ray, have no results before all are there.
        return_as="generator_unordered" if backend.supports_return_generator else "list",
        batch_size=1,
        initializer=_begin_worker,  # used by backends that start processes
        initargs=(os.getpid(), tuple(_plugins)),
    )
    task = joblib.delayed(_run_in_worker)
    try:
        with _ctrl_c_ignored():  # workers are started here, and inherit it before they import
            found = parallel(task(_named_in(cells[at]), at, cells[at], run) for at in order)
        yield from found
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


def _begin_worker(caller: int, names: Sequence[str]) -> None:
    """Load plugins, and end this worker when its caller ends; only the caller handles Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == caller:
            time.sleep(0.5)
        os._exit(1)

    if os.getppid() == caller:  # workers of Ray are started by others
        threading.Thread(target=watch, daemon=True).start()
    for name in names:
        load_plugin(name)


def _named_in(cell: Cell) -> list[Any]:
    """Return the measure or the classes that a cell names, which a worker may not know."""
    with suppress(HalfseenError, LookupError):  # an unknown name fails the cell
        if cell.method.policy == MEASURE:
            return [MEASURES[cell.method.settings["measure"]]]
        return list(cell.method.classes())
    return []


def _run_in_worker(
    named: Sequence[Any], place: int, cell: Cell, run: Callable[[Cell], Result]
) -> tuple[int, Result]:
    for each in named:
        if not isinstance(each, type):
            MEASURES[cell.method.settings["measure"]] = each
        elif issubclass(each, Policy):  # ingredients are known once they are unpickled
            register_policy(each)
    with _one_blas_thread():
        return place, run(cell)


def rooted(world: World) -> World:
    """Return a world with absolute paths, which workers in another folder find."""
    given = {name: getattr(world, name, None) for name in world.data_paths()}
    return world.replace(**{name: os.path.abspath(path) for name, path in given.items() if path})


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
    if isinstance(policies, str) or not isinstance(policies, Iterable):
        policies = [policies]
    methods: dict[str, Method] = {}
    for key in policies:
        if not isinstance(key, str):
            raise InvalidSettingError(
                f"policies must be keys such as 'tofu', or a mapping from keys, got {key!r}"
            )
        try:
            methods[key] = method_from(key, policies[key] if isinstance(policies, Mapping) else {})
            methods[key].check()
        except HalfseenError as error:
            raise InvalidSettingError(f"policies[{key!r}]: {error}") from None
    if not methods:
        raise InvalidSettingError("policies must name at least one, such as 'tofu', got none")
    return methods


# Plugins: a user's files and modules, which register policies and worlds when imported

_plugins: list[str] = []  # absolute paths and names of modules, in the order of imports


def load_plugin(name: str) -> None:
    """Import a plugin once.

    Parameters
    ----------
    name : str
        A Python file, or a module that can be imported or is in the current folder.

    Raises
    ------
    StudyError
        It does not exist, or its import fails.
    """
    path = Path(name if name.endswith(".py") else f"{name}.py")
    try:
        if name.endswith(".py") or (path.exists() and importlib.util.find_spec(name) is None):
            name = str(path.resolve())
            _import_file(Path(name))
        else:
            importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise StudyError(
            f"plugin {name!r} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    if name not in _plugins:
        _plugins.append(name)


def _import_file(path: Path) -> None:
    """Import a file as a module of its name; it can import modules in the same folder."""
    if not path.is_file():
        raise FileNotFoundError("there is no such file")
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    module = importlib.import_module(path.stem)
    if getattr(module, "__file__", None) != str(path):
        raise ImportError(f"another module is called {path.stem!r}: rename the file")
