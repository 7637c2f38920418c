"""The smallest unit of a simulation: one method, one world, one seed."""

import hashlib
import json
import math
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from halfseen import worlds
from halfseen.errors import BudgetExceededError, HalfseenError
from halfseen.simulation.measures import MEASURE, measured
from halfseen.simulation.methods import Method
from halfseen.simulation.runner import Trace, play
from halfseen.worlds.base import Realization, World
from halfseen.worlds.registry import world_from

assert worlds.__all__  # importing the package registers every world

_DECODER = json.JSONDecoder(parse_constant=lambda _: None)
_FORMAT = 1  # of stored results: raise it when the meaning of a stored field changes
# The sources that have a say in what a cell gives.
_DECIDING = (
    "core",
    "data",
    "policies",
    "seeding.py",
    "simulation/measures",
    "simulation/runner.py",
    "values.py",
    "worlds",
)


class CellKey(NamedTuple):
    """How a cell is called in every table.

    Attributes
    ----------
    study, setting : str
    p : float or None
        Observation probability; None where the world has none.
    method : str
    seed : int
    """

    study: str
    setting: str
    p: float | None
    method: str
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What to run.

    Attributes
    ----------
    key : CellKey
    world : mapping or World
        A world, or the plain form of one.
    method : Method
    horizon : int
        Rounds of the world, for estimates of the time left.
    points : int
        In how many rounds regret is kept.
    """

    key: CellKey
    world: Mapping[str, Any] | World
    method: Method
    horizon: int
    points: int = 100

    @property
    def fingerprint(self) -> str:
        """Digest of all that decides the result: with another setting it is another cell.

        The code that plays counts, too: results of an older version are not mixed with new ones.
        """
        world = self.world
        if isinstance(world, Mapping) and (data := _data_digest(world)):
            world = {**world, "path": data}  # what a table holds counts, not where it lies
        plain = [_FORMAT, _code_digest(), self.key.seed, world, self.method.to_dict(), self.points]
        return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16]


@cache
def _code_digest() -> str:
    home, digest = files("halfseen"), hashlib.sha256()
    kernels = sorted(file.name for file in home.iterdir() if file.name.endswith("kernels.py"))
    for part in (*kernels, *_DECIDING):
        for file in _sources(home.joinpath(*part.split("/"))):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _sources(place: Traversable) -> Iterator[Traversable]:
    if place.is_dir():
        for inner in sorted(place.iterdir(), key=lambda inner: inner.name):
            yield from _sources(inner)
    elif place.name.endswith((".py", ".npz")):
        yield place


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came out of a cell.

    Attributes
    ----------
    status : "ok", "failed" or "skipped"
        A run that takes longer than its method may is skipped.
    seconds : float
    final_regret, final_rank : float or None
    rounds : tuple of int
        The rounds at which `regret` and `ranks` are kept, counted from 1.
    regret, ranks : tuple of float or None
    diagnostics : mapping
        What the policy tells about its run, plain JSON types; and as "irreducible" the regret that
        nobody can avoid, where the world knows it.
    error : str
        Traceback of a failed cell.
    note : str
        Why a cell was skipped.
    """

    status: str
    seconds: float
    final_regret: float | None = None
    final_rank: float | None = None
    rounds: tuple[int, ...] = ()
    regret: tuple[float, ...] = ()
    ranks: tuple[float | None, ...] = ()
    diagnostics: Mapping[str, Any] | None = None
    error: str = ""
    note: str = ""

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to run."""
        return self.status != "failed"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return asdict(self)


@lru_cache(maxsize=64)
def kept_rounds(horizon: int, points: int) -> "np.ndarray[Any, np.dtype[np.int64]]":
    """Return at most `points` rounds spread evenly from 1 to the horizon, both included; read-only.

    >>> kept_rounds(10, 4).tolist()
    [1, 4, 7, 10]
    """
    spread = np.linspace(1, horizon, min(points, horizon))
    kept = np.unique(np.round(spread).astype(np.int64))
    kept.setflags(write=False)
    return kept


def run_cell(cell: Cell) -> Result:
    """Play a cell; an exception becomes a failed result with its traceback."""
    started = time.perf_counter()
    try:
        realization = _realization(cell)
        known = _known(realization)
        if cell.method.policy == MEASURE:
            told = _plain({**measured(realization, **cell.method.settings), **known})
            seconds = time.perf_counter() - started
            return Result(status="ok", seconds=seconds, diagnostics=told)
        policy = cell.method.build(realization.facts)
        try:
            budget = cell.method.budget_seconds or math.inf
            trace = play(policy, realization, cell.method.view, budget_seconds=budget)
        except BudgetExceededError as over:
            told = _plain(known)
            return Result(status="skipped", seconds=over.seconds, diagnostics=told, note=str(over))
        told = _plain({**(policy.diagnostics() or {}), **known})
        return _played(trace, cell.points, time.perf_counter() - started, told)
    except Exception:
        return Result(
            status="failed",
            seconds=time.perf_counter() - started,
            error=traceback.format_exc(),
        )


def _played(trace: Trace, points: int, seconds: float, told: dict[str, Any]) -> Result:
    at = kept_rounds(len(trace.regret), points)
    ranks = [None if math.isnan(rank) else rank for rank in trace.ranks[at - 1].tolist()]
    if not np.isfinite(trace.regret).all():
        raise HalfseenError("the regret is not finite")
    return Result(
        status="ok",
        seconds=seconds,
        final_regret=trace.final_regret,
        final_rank=ranks[-1],
        rounds=tuple(at.tolist()),
        regret=tuple(trace.regret[at - 1].tolist()),
        ranks=tuple(ranks),
        diagnostics=told,
    )


def _known(realization: Realization) -> dict[str, float]:
    """Return what a realization itself tells, whoever plays it."""
    irreducible = getattr(realization, "irreducible_regret", None)
    return {} if irreducible is None else {"irreducible": float(irreducible())}


def _plain(diagnostics: Mapping[str, Any]) -> dict[str, Any]:
    """Return diagnostics as a store gives them back: lists for tuples, None for NaN and ±inf."""
    told: dict[str, Any] = _DECODER.decode(json.dumps(diagnostics))
    return told


def _realization(cell: Cell) -> Realization:
    if isinstance(cell.world, Mapping):
        return _realized(json.dumps(cell.world), _data_digest(cell.world), cell.key.seed)
    return cell.world.realize(cell.key.seed)


@lru_cache(maxsize=2)  # the methods of a seed often come one after another
def _realized(world: str, data: str, seed: int) -> Realization:
    return world_from(json.loads(world)).realize(seed)


def _data_digest(world: Mapping[str, Any]) -> str:
    """Return a digest of the data that a plain world reads from disk; "" where it reads none."""
    path = world.get("path")
    if not isinstance(path, str) or not Path(path).exists():
        return ""
    place = Path(path)
    files = sorted(file for file in place.iterdir()) if place.is_dir() else [place]
    return _digest(tuple((file, file.stat().st_mtime_ns, file.stat().st_size) for file in files))


@lru_cache(maxsize=8)  # tables may be large, cells are many
def _digest(files: tuple[tuple[Path, int, int], ...]) -> str:
    digest = hashlib.sha256()
    for path, _, _ in files:
        if path.is_file():
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
