"""The smallest unit of a simulation: one method plays the rounds of one world and one seed.

The fingerprint of a cell covers all that decides its result, so that results of other code are
never mixed in: the settings, the seed, the contents of data files, the versions of the libraries
that compute, the modules of halfseen that compute (not those that draw, judge or print), and the
user's own files: those of the classes in the cell, and what these import from the same folder.
"""

import hashlib
import json
import math
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib import metadata
from itertools import repeat
from modulefinder import ModuleFinder
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import halfseen
from halfseen import checks
from halfseen.errors import HalfseenError
from halfseen.policies.abilities import Reports, UsesContext
from halfseen.policies.base import Policy
from halfseen.simulation.methods import MEASURE, MEASURES, VIEWS, Method
from halfseen.values import FloatArray, Slate
from halfseen.worlds.base import Realization, Round, World


class Trace(NamedTuple):
    """What a policy paid, by round.

    `regret` is cumulative pseudo-regret: best mean among the offered arms less the chosen one's,
    without noise. `ranks` are the numbers of dimensions in which the policy chose; NaN for one
    without dimensions.
    """

    regret: FloatArray
    ranks: FloatArray

    @property
    def final_regret(self) -> float:
        """Regret after the last round."""
        return float(self.regret[-1])


def play(policy: Policy, realization: Realization, view: str = "masked") -> Trace:
    """Run a policy on all rounds of a realization and return its regret.

    Parameters
    ----------
    policy : Policy
    realization : Realization
        If it has a method `displayed` with one item per round, the policy absorbs after each round
        the arms of that item, unless it is None.
    view : "masked" or "full"

    Examples
    --------
    >>> from halfseen import LowRankWorld, Uniform
    >>> realization = LowRankWorld(dim=6, rank=2, horizon=50).realize(seed=0)
    >>> trace = play(Uniform(dim=6), realization)
    >>> trace.regret.shape, trace.final_regret > 0.0
    ((50,), True)

    Notes
    -----
    Paper: eq:app-reg-definition
    """
    checks.one_of("view", view, VIEWS)
    losses = np.zeros(realization.facts.horizon)
    ranks = np.full(realization.facts.horizon, math.nan)
    displays = getattr(realization, "displayed", lambda: repeat(None))()
    for index, round in enumerate(realization.rounds()):
        slate = _full(round) if view == "full" else round.slate
        if slate.context is not None and not isinstance(policy, UsesContext):
            slate = slate.without_context()
        decision = policy.choose(slate)
        rank = policy.current_rank
        policy.learn(decision, round.reward(decision.arm))
        if (display := next(displays, None)) is not None:
            policy.absorb(_full(display) if view == "full" else display.slate)
        losses[index] = round.means.item(round.means.argmax()) - round.means.item(decision.arm)
        if rank is not None:
            ranks[index] = rank
    return Trace(np.cumsum(losses), ranks)


def _full(round: Round) -> Slate:
    """Return all arms with nothing hidden; the context is shown as it is seen."""
    return Slate(round.arms, context=round.slate.context, items=round.slate.items)


_DECODER = json.JSONDecoder(parse_constant=lambda _: None)


class CellKey(NamedTuple):
    """The name of a cell in every table; `p` is None where the world has no such probability."""

    study: str
    setting: str
    p: float | None
    method: str
    seed: int


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What to run; `points` is the number of rounds at which regret is kept."""

    key: CellKey
    world: World
    method: Method
    points: int = 100

    @property
    def horizon(self) -> int:
        """Rounds of the world, to estimate the time left; 1 where they are not known."""
        return getattr(self.world, "horizon", None) or 1

    @cached_property
    def fingerprint(self) -> str | None:
        """Digest of all that decides the result; None where it cannot be known."""
        return fingerprint(self.world, self.method, seed=self.key.seed, points=self.points)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came out of a cell.

    `status` is "ok" or "failed", with the traceback in `error`; `seconds` is the time for drawing
    the rounds and playing them. `regret` and `ranks` are those after `rounds`, counted from 1.
    `diagnostics` are what the policy reports about its run, in plain JSON types; and as
    "irreducible" the regret that no policy can avoid, where the world knows it.
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

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Result":
        """Return the result that `asdict` made plain; KeyError or TypeError if it is none."""
        lists = {name: tuple(plain[name]) for name in ("rounds", "regret", "ranks")}
        return cls(**{**plain, **lists})


def kept_rounds(horizon: int, points: int) -> NDArray[np.int64]:
    """Return at most `points` rounds spread evenly from 1 to the horizon, both included.

    >>> kept_rounds(10, 4).tolist()
    [1, 4, 7, 10]
    """
    spread = np.linspace(1, horizon, min(points, horizon))
    return np.unique(np.round(spread).astype(np.int64))


def run_cell(cell: Cell) -> Result:
    """Run a cell; if it raises, the result is a failed one with the traceback."""
    started = time.perf_counter()
    try:
        found = {"status": "ok", **_outcome(cell)}
    except Exception:
        found = {"status": "failed", "error": traceback.format_exc()}
    return Result(seconds=time.perf_counter() - started, **found)


def _outcome(cell: Cell) -> dict[str, Any]:
    """Return the fields of the result of a cell that works."""
    realization, method = cell.world.realize(cell.key.seed), cell.method
    irreducible = getattr(realization, "irreducible_regret", None)
    known = {} if irreducible is None else {"irreducible": float(irreducible())}
    if method.policy == MEASURE:
        settings = dict(method.settings)
        found = MEASURES[settings.pop("measure")](realization, **settings)
        return {"diagnostics": _plain({**found, **known})}
    policy = method.build(realization.facts)
    trace = play(policy, realization, method.view)
    if not np.isfinite(trace.regret).all():
        raise HalfseenError("the regret is not finite")
    found = Reports.of(policy).diagnostics() or {}
    at = kept_rounds(len(trace.regret), cell.points)
    ranks = [None if math.isnan(rank) else rank for rank in trace.ranks[at - 1].tolist()]
    return {
        "final_regret": trace.final_regret,
        "final_rank": ranks[-1],
        "rounds": tuple(at.tolist()),
        "regret": tuple(trace.regret[at - 1].tolist()),
        "ranks": tuple(ranks),
        "diagnostics": _plain({**found, **known}),
    }


def _plain(diagnostics: Mapping[str, Any]) -> dict[str, Any]:
    """Return diagnostics as a store gives them back: lists for tuples, None for NaN and ±inf."""
    plain: dict[str, Any] = _DECODER.decode(json.dumps(diagnostics))
    return plain


# Fingerprints

_FORMAT = 3  # of stored results: raise it when the meaning of a stored field changes
_PACKAGE = Path(halfseen.__file__).parent
_INSTALLED = {"site-packages", "dist-packages"}

# Folders and modules that cannot change what a cell computes.
_NOT_COMPUTING = (
    *("__main__.py", "agent", "cli.py", "log.py", "report", "service", "sklearn.py", "testing"),
    "tools",
    *(f"paper/{name}.py" for name in ("claims", "published", "study")),
    *("paper/__init__.py", "paper/studies"),
    *(f"simulation/{name}.py" for name in ("cluster", "results", "simulate", "store", "tune")),
)


def fingerprint(world: World, method: Method, *, seed: int, points: int) -> str | None:
    """Return a digest of settings, code, data and versions.

    None if the file of a class is not known, as in a notebook, or if the world has no plain form.
    """
    try:
        # The contents of data files count, not their places.
        data = {name: _data_digest(path) for name, path in world.data_paths().items()}
        settings = [world.to_dict() | data, method.to_dict(), seed, points]
        parts = (type(getattr(world, name)) for name in world.parameters)
        classes = (type(world), *parts, *method.classes())
        own = sorted({file for each in classes for file in _own_files(each)})
        code = [library_versions(), package_digest(), _contents(own)]
        return _hex(json.dumps([_FORMAT, code, settings], sort_keys=True).encode())
    except (HalfseenError, TypeError, LookupError, ImportError):
        return None


@cache
def library_versions() -> dict[str, str]:
    """Return the versions of the libraries that compute."""
    return {name: metadata.version(name) for name in ("numpy", "scipy", "numba")}


@cache
def package_digest() -> str:
    """Return a digest of the modules of halfseen that compute, read once per process."""
    parts = (f"{name}\n".encode() + (_PACKAGE / name).read_bytes() for name in computing_modules())
    return _hex(b"\n".join((halfseen.__version__.encode(), *parts)))


def computing_modules() -> list[str]:
    """Return the files of halfseen that can change the result of a cell, as relative paths."""
    files = (path.relative_to(_PACKAGE) for path in _PACKAGE.rglob("*.py"))
    skipped = {Path(name) for name in _NOT_COMPUTING}
    return sorted(file.as_posix() for file in files if not skipped & {file, *file.parents})


def _own_files(thing: type) -> Iterator[Path]:
    """Yield the files of the user's own behind a class and its bases.

    LookupError if a class is not found in its module: it may depend on anything.
    """
    for base in thing.__mro__:
        top = base.__module__.partition(".")[0]
        if top in ("halfseen", "builtins"):
            continue
        module = sys.modules[base.__module__]
        try:
            is_found = attrgetter(base.__qualname__)(module) is base
        except AttributeError:
            is_found = False
        if not is_found or not hasattr(module, "__file__"):
            raise LookupError
        if top not in sys.stdlib_module_names:
            yield from _files_behind(base.__module__, Path(str(module.__file__)))


@cache
def _files_behind(name: str, file: Path) -> list[Path]:
    """Return the files of a module and of all that it imports from its folder.

    Of a package that folder is the one which contains it. An installed package counts as a whole.
    """
    depth = name.count(".") + (file.stem == "__init__")
    root = file.parents[depth]
    if _INSTALLED & set(root.parts):
        return sorted(root.joinpath(name.partition(".")[0]).rglob("*.py")) or [file]
    finder = ModuleFinder(path=[str(root)], excludes=["halfseen"])
    if name == "__main__":
        finder.run_script(str(file))
    else:
        finder.import_hook(name)
    found = (getattr(module, "__file__", None) for module in finder.modules.values())
    return [Path(path) for path in found if path]


def _data_digest(path: Path) -> str:
    """Return a digest of a file, or of the files of a folder; "" where there is nothing."""
    if not path.exists():
        return ""
    return _contents(sorted(path.iterdir()) if path.is_dir() else [path])


def _contents(files: Iterable[Path]) -> str:
    stamps = [(file, file.stat()) for file in files if file.is_file()]
    return _content_digest(tuple((file, at.st_mtime_ns, at.st_size) for file, at in stamps))


@lru_cache(maxsize=8)  # every cell of a world asks, and its data may be large
def _content_digest(stamps: tuple[tuple[Path, int, int], ...]) -> str:
    digest = hashlib.sha256()
    for path, _, _ in stamps:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _hex(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
