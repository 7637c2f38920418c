"""The smallest unit of a simulation: one method, one world, one seed."""

import json
import math
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from halfseen import checks, worlds
from halfseen.errors import HalfseenError
from halfseen.simulation.fingerprints import fingerprint
from halfseen.simulation.measures import MEASURE, measured
from halfseen.simulation.methods import Method
from halfseen.simulation.runner import Player, Trace, in_chunks
from halfseen.worlds.base import Realization, World
from halfseen.worlds.registry import world_from

assert worlds.__all__  # importing the package registers every world

_DECODER = json.JSONDecoder(parse_constant=lambda _: None)


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


@dataclass(frozen=True, kw_only=True)
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
    built : World, optional
        The world that the plain form describes, where it was built before.
    """

    key: CellKey
    world: Mapping[str, Any] | World
    method: Method
    horizon: int
    points: int = 100
    built: World | None = field(default=None, compare=False, repr=False)

    @cached_property
    def fingerprint(self) -> str | None:
        """Digest of all that decides the result; None where it cannot be known."""
        if not isinstance(self.world, Mapping):
            return None
        return fingerprint(
            self.world, self.method, seed=self.key.seed, points=self.points, built=self.built
        )

    def build_world(self) -> World:
        """Return the world, which is built only if nobody did so before."""
        if self.built is not None:
            return self.built
        return world_from(self.world) if isinstance(self.world, Mapping) else self.world

    def realize(self) -> Realization:
        """Return the realization that the method plays."""
        return self.build_world().realize(self.key.seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came out of a cell.

    Attributes
    ----------
    status : "ok", "failed" or "skipped"
    seconds : float
        Time of its own, and an equal share of the time for making rounds that several cells play.
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

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Result":
        """Return the result that `to_dict` described; ValueError or TypeError if it is none."""
        lists = {name: tuple(plain[name]) for name in ("rounds", "regret", "ranks")}
        result = cls(**{**plain, **lists})
        checks.one_of("status", result.status, ("ok", "failed", "skipped"))
        for rounds in result.rounds:
            checks.integer("rounds", rounds, 1)
        for number in (result.seconds, *result.regret):
            checks.real("a number", number)
        for maybe in (result.final_regret, result.final_rank, *result.ranks):
            if maybe is not None:
                checks.real("a number or nothing", maybe)
        texts = isinstance(result.error, str) and isinstance(result.note, str)
        if not texts or not isinstance(result.diagnostics, Mapping | None):
            raise TypeError
        if not len(result.rounds) == len(result.regret) == len(result.ranks):
            raise ValueError
        return result


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


def skipped(cell: Cell) -> Result:
    """Return the result of a cell that is not run, with the reason."""
    return Result(status="skipped", seconds=0.0, note=cell.method.skip)


def run_cell(cell: Cell) -> Result:
    """Run a cell alone."""
    (result,) = run_together([cell])
    return result


def run_together(cells: Sequence[Cell]) -> list[Result]:
    """Run cells of the same world and seed on one realization, and return their results in order.

    An exception in one of them becomes its failed result, with the traceback, and the others go on.
    An exception of the world fails all.
    """
    started, runs = time.perf_counter(), [_Run(cell) for cell in cells]
    try:
        realization = cells[0].realize()
        for run in runs:
            run.attempt(run.begin, realization)
        _play(runs, realization)
        known = _known(realization)
        for run in runs:
            run.attempt(run.end, known)
    except Exception:
        for run in runs:
            run.error = run.error or traceback.format_exc()
    shared = time.perf_counter() - started - math.fsum(run.seconds for run in runs)
    return [run.result(shared / len(runs)) for run in runs]


class _Run:
    """A cell under way, with the time that it has taken itself."""

    def __init__(self, cell: Cell) -> None:
        self.cell, self.seconds, self.error = cell, 0.0, ""
        self.player: Player | None = None
        self._measured: dict[str, Any] = {}
        self._outcome: Result | None = None

    def attempt(self, step: Callable[[Any], None], argument: Any) -> None:
        """Take a step, unless one has failed; an exception makes this cell fail, and no other."""
        if self.error:
            return
        started = time.perf_counter()
        try:
            step(argument)
        except Exception:
            self.error = traceback.format_exc()
        self.seconds += time.perf_counter() - started

    def begin(self, realization: Realization) -> None:
        """Build the policy, or measure."""
        method, facts = self.cell.method, realization.facts
        if method.policy == MEASURE:
            self._measured = measured(realization, **method.settings)
        else:
            self.player = Player(method.build(facts), facts.horizon)

    def end(self, known: Mapping[str, Any]) -> None:
        """Collect what the policy has paid and what it tells, or what was measured."""
        if self.player is None:
            diagnostics = _plain({**self._measured, **known})
            self._outcome = Result(status="ok", seconds=0.0, diagnostics=diagnostics)
        else:
            diagnostics = _plain({**(self.player.policy.diagnostics() or {}), **known})
            self._outcome = _played(self.player.trace(), self.cell.points, diagnostics)

    def result(self, shared_seconds: float) -> Result:
        """Return the result, with a share of the time that was taken for several cells."""
        seconds = self.seconds + shared_seconds
        if self._outcome is None:
            return Result(status="failed", seconds=seconds, error=self.error)
        return replace(self._outcome, seconds=seconds)


def _play(runs: Sequence[_Run], realization: Realization) -> None:
    """Let all policies play the realization, some rounds at a time."""
    players = [(run, run.player, run.cell.method.view) for run in runs if run.player is not None]
    if not players:
        return
    for shown in in_chunks(realization.rounds(), {view for _, _, view in players}):
        for run, player, view in players:
            run.attempt(player.play, shown[view])


def _played(trace: Trace, points: int, diagnostics: dict[str, Any]) -> Result:
    if not np.isfinite(trace.regret).all():
        raise HalfseenError("the regret is not finite")
    at = kept_rounds(len(trace.regret), points)
    ranks = [None if math.isnan(rank) else rank for rank in trace.ranks[at - 1].tolist()]
    return Result(
        status="ok",
        seconds=0.0,
        final_regret=trace.final_regret,
        final_rank=ranks[-1],
        rounds=tuple(at.tolist()),
        regret=tuple(trace.regret[at - 1].tolist()),
        ranks=tuple(ranks),
        diagnostics=diagnostics,
    )


def _known(realization: Realization) -> dict[str, float]:
    """Return what a realization itself tells, whoever plays it."""
    irreducible = getattr(realization, "irreducible_regret", None)
    return {} if irreducible is None else {"irreducible": float(irreducible())}


def _plain(diagnostics: Mapping[str, Any]) -> dict[str, Any]:
    """Return diagnostics as a store gives them back: lists for tuples, None for NaN and ±inf."""
    plain: dict[str, Any] = _DECODER.decode(json.dumps(diagnostics))
    return plain
