"""When epochs start, what they replay, and one epoch: a frozen basis and a regression in it."""

import inspect
import math
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from halfseen import checks
from halfseen.errors import ArchiveError, InvalidSettingError
from halfseen.linear.history import next_start
from halfseen.linear.ridge import Confidence, RadiusOf, Ridge, checked_array
from halfseen.state import Basis, Built, Each, Maybe, Part, Real, Value, Whole
from halfseen.tofu.imputation import check_identified
from halfseen.tofu.ingredient import Ingredient, ingredient
from halfseen.tofu.rank import Known, Selection
from halfseen.tofu.subspace import Offered
from halfseen.values import LARGEST_POINT, FloatArray, Slate

if TYPE_CHECKING:
    from halfseen.tofu.policy import TofuPov


class EpochSchedule(NamedTuple):
    """Rounds 1 … burn_in, then epochs that start at τ₀ = burn_in + 1 and grow by a factor.

    τ_{e+1} = max(τ_e + 1, ⌈g·τ_e⌉); g = 2 in the paper. The schedule depends on the round alone.

    Attributes
    ----------
    burn_in : int
    growth : float
        g > 1; infinite for a single epoch.

    Examples
    --------
    >>> EpochSchedule(burn_in=30).starts(400)
    [31, 62, 124, 248]

    Notes
    -----
    Paper: alg:bandits
    """

    burn_in: int
    growth: float = 2.0

    def next_start(self, start: int) -> int:
        """Return the start of the epoch after the one that starts at `start`."""
        return sys.maxsize if self.growth == math.inf else next_start(start, self.growth)

    def starts(self, horizon: int) -> list[int]:
        """Return the starts of all epochs up to and including round `horizon`."""
        found, start = [], self.burn_in + 1
        while start <= horizon:
            found.append(start)
            start = self.next_start(start)
        return found


_KNOWN = ("round", "arm", "by_burn_in", "is_first")


class ReplayRule(Ingredient, ABC):
    """Decides which earlier rewards enter the regression of a new epoch, in the new basis.

    The method `replays` has those of its four arguments, by name, that the rule looks at.

    Examples
    --------
    >>> from halfseen import TofuPov
    >>> class WithoutBurnIn(ReplayRule):
    ...     '''All rewards but those of the burn-in policy.'''
    ...     def replays(self, *, by_burn_in):
    ...         return not by_burn_in
    >>> TofuPov(dim=4, rank=1, observe_prob=0.5, replay=WithoutBurnIn()).replay
    WithoutBurnIn()
    """

    _looks_at: ClassVar[tuple[str, ...]] = _KNOWN

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        taken = inspect.signature(cls.replays).parameters.values()
        if any(each.kind is each.VAR_KEYWORD for each in taken):
            return
        cls._looks_at = tuple(each.name for each in taken if each.name != "self")
        for name in cls._looks_at:
            checks.one_of(f"an argument of {cls.__name__}.replays", name, _KNOWN)

    def is_replayed(self, **known: Any) -> bool:
        """Return what `replays` says, given all four arguments."""
        return bool(self.replays(**{name: known[name] for name in self._looks_at}))

    @abstractmethod
    def replays(self, *args: Any, **known: Any) -> bool:
        """Return whether epochs learn the reward of an earlier decision again.

        It is asked when the reward comes, and again after the first epoch with a rank above 0 has
        opened. Rewards that no later epoch learns are not kept.

        Parameters
        ----------
        round : int
            In which the decision was made, from 1.
        arm : ndarray, shape (dim,)
            The chosen arm, NaN where hidden.
        by_burn_in : bool
            Whether the burn-in policy made the decision.
        is_first : bool
            Whether the epoch is the first one with a rank above 0, or a later one.
        """


class Replay(StrEnum):
    """Which earlier rewards enter the regression of a new epoch, in the new basis.

    A burn-in reward is one that the burn-in policy earned, during burn-in or in an epoch of rank 0.

    Examples
    --------
    >>> Replay("full") is Replay.FULL
    True
    >>> [each.value for each in Replay]
    ['none', 'burn-in-once', 'burn-in', 'full']
    """

    NONE = "none"
    """None: Algorithm 1 literally."""
    BURN_IN_ONCE = "burn-in-once"
    """Burn-in rewards, in the first epoch that has a rank above 0."""
    BURN_IN = "burn-in"
    """Burn-in rewards, in every epoch."""
    FULL = "full"
    """All rewards so far, in every epoch."""

    def replays(self, *, by_burn_in: bool, is_first: bool, **known: Any) -> bool:
        """Return whether epochs learn a reward again (see `ReplayRule`)."""
        if self is Replay.FULL or self is Replay.NONE:
            return self is Replay.FULL
        return by_burn_in and (is_first or self is Replay.BURN_IN)

    is_replayed = replays


def replay_param(default: str, doc: str) -> Any:
    """Declare a parameter that is a replay rule, or a word for one."""
    words = tuple(mode.value for mode in Replay)
    return ingredient(
        ReplayRule,
        default=default,
        shorthand=lambda name, value: Replay(checks.one_of(name, value, words)),
        words=", ".join(f'"{word}"' for word in words),
        doc=doc,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochRecord:
    """What happened when an epoch opened.

    Attributes
    ----------
    epoch, round : int
        Index of the epoch and its first round.
    n_arms : int
        Arms absorbed before it.
    rank : int
        Directions kept; 0 means that the burn-in policy plays the epoch.
    eigenvalues : tuple of float
        Top of the spectrum of the corrected covariance, descending.
    threshold : float or None
        Smallest eigenvalue that is kept; None for a fixed rank.
    failure_prob, misspecification : float
        δ_e, and b_e times the bonus scale.
    """

    epoch: int
    round: int
    n_arms: int
    rank: int
    eigenvalues: tuple[float, ...]
    threshold: float | None
    failure_prob: float
    misspecification: float


class Assumed(NamedTuple):
    """What a policy assumes of rewards, and the factor on its radius.

    Attributes
    ----------
    ridge, theta_bound, noise_scale, radius_scale : float
        λ, S, R, and a factor that is 1 in the paper.
    """

    ridge: float
    theta_bound: float
    noise_scale: float
    radius_scale: float

    @classmethod
    def of(cls, policy: "TofuPov") -> "Assumed":
        """Return the parameters of a policy."""
        return cls(policy.ridge, policy.theta_bound, policy.noise_scale, policy.radius_scale)


class Radius(Ingredient, ABC):
    """The radius of the confidence ellipsoid of an epoch: the factor of the widths of arms.

    Examples
    --------
    >>> from halfseen import TofuPov
    >>> class RootOfSamples(Radius):
    ...     '''As in classical UCB: the root of the logarithm of the number of samples.'''
    ...     def radius(self, record, assumed):
    ...         return lambda log_det, n: assumed.noise_scale * math.sqrt(2 * math.log(2 + n))
    >>> TofuPov(dim=4, rank=1, observe_prob=0.5, radius=RootOfSamples()).radius
    RootOfSamples()
    """

    @abstractmethod
    def radius(self, record: EpochRecord, assumed: Assumed) -> RadiusOf:
        """Return a function from log(det V / λ^rank) and the number of samples to the radius.

        The samples are those of the epoch's regression, replayed ones included.

        Parameters
        ----------
        record : EpochRecord
            Its `failure_prob` is δ_e, its `misspecification` b_e; it also has the first round, the
            rank and the number of arms before the epoch.
        assumed : Assumed
            λ, S, R and the factor as `ridge`, `theta_bound`, `noise_scale` and `radius_scale`.
        """


class SelfNormalized(Radius):
    """The paper's radius β_e of penalty, noise and bias (`halfseen.linear.ridge.Confidence`).

    Examples
    --------
    >>> from halfseen import TofuPov
    >>> TofuPov(dim=4, rank=1, observe_prob=0.5).radius
    SelfNormalized()
    """

    def radius(self, record: EpochRecord, assumed: Assumed) -> RadiusOf:
        """Return β_e."""
        return Confidence(
            **assumed._asdict(),
            failure_prob=record.failure_prob,
            misspecification=record.misspecification,
        ).total


RECORD = Value(
    EpochRecord,
    epoch=Whole(),
    round=Whole(1),
    n_arms=Whole(),
    rank=Whole(),
    eigenvalues=Each(Real()),
    threshold=Maybe(Real()),
    failure_prob=Real(0.0, 1.0, low_open=True),
    misspecification=Real(0.0, LARGEST_POINT),
)


class Epoch:
    """A subspace frozen at the start of an epoch, and the regression in its coordinates.

    Attributes
    ----------
    basis : ndarray, shape (dim, rank)
        Orthonormal basis of the subspace.
    radius : callable
        From `log_det` and `n_samples` of the regression to the factor of its widths.
    """

    def __init__(
        self, settings: "TofuPov", record: EpochRecord, basis: FloatArray, model: Ridge
    ) -> None:
        if basis.shape[1] != record.rank:
            raise ArchiveError(f"a basis must have {record.rank} columns, got {basis.shape[1]}")
        self.record, self.basis, self.model = record, basis, model
        if record.rank > 0:
            eigenvalues = np.array(record.eigenvalues[: record.rank] or [math.nan] * record.rank)
            self._lift = settings.imputes.lift(basis, eigenvalues)
        self.radius = settings.radius.radius(record, Assumed.of(settings))

    @classmethod
    def open(cls, settings: "TofuPov", offered: Offered, round: int, index: int) -> "Epoch":
        """Estimate the subspace from all offered arms and freeze it."""
        failure_prob = settings.epoch_failure_prob(index)
        covariance, observe_prob = settings.subspace.estimate(offered, settings.observe_prob)
        known = Known(
            n_arms=offered.n_arms,
            round=round - 1,
            horizon=settings.horizon,
            observe_prob=observe_prob,
            failure_prob=settings.failure_prob,
            epoch_failure_prob=failure_prob,
            arm_bound=settings.arm_bound,
            top_eigenvalue=settings.eigenvalue_bound,
        )
        # The rule takes the top eigenvectors: this is Û_e.
        found = settings.rank.select(covariance, known)
        if not isinstance(found, Selection):
            raise InvalidSettingError(
                f"{type(settings.rank).__name__}.select must return a Selection, got {found!r:.60}"
            )
        basis, eigenvalues, threshold = found
        rank = checks.integer("the selected rank", basis.shape[1], 0, settings.dim)
        basis = checked_array(basis, (settings.dim, rank))  # compiled loops do not check bounds
        record = EpochRecord(
            epoch=index,
            round=round,
            n_arms=offered.n_arms,
            rank=rank,
            eigenvalues=tuple(eigenvalues.tolist()),
            threshold=threshold,
            failure_prob=failure_prob,
            misspecification=settings.misspecification(known),
        )
        return cls(settings, record, basis, Ridge(max(1, rank), ridge=settings.ridge))

    def replay(self, arms: FloatArray, rewards: FloatArray) -> None:
        """Add earlier rewards of the arms that are identified in this basis."""
        points = self._lift(arms)  # the coordinates U'x̂ in the new basis
        identified = ~np.isnan(points[:, 0])
        self.model.insert(points[identified], rewards[identified])

    def score(self, slate: Slate) -> tuple[int, FloatArray]:
        """Return the chosen arm; and score, estimate and width of each, shape (3, n_arms)."""
        points = self._lift(slate.table)
        check_identified(slate, points)
        return self.model.score(points, self.radius)

    def fork(self) -> "Epoch":
        """Return an independent copy."""
        fork = object.__new__(Epoch)
        fork.__dict__.update(self.__dict__)
        fork.model = self.model.fork()
        return fork

    def learn(self, arm: FloatArray, reward: float) -> None:
        """Add a reward of this epoch, or a late one that it would have replayed."""
        point = self._lift(arm[None])[0]
        if not math.isnan(point.item(0)):
            self.model.update(point, reward)


EPOCH = Built(
    Epoch,
    record=RECORD,
    basis=Basis(("dim", "n_directions")),
    model=Part(lambda sizes: Ridge(max(1, sizes["n_directions"]), ridge=sizes.owner.ridge)),
)
"""The field of an epoch in the state of a policy."""
