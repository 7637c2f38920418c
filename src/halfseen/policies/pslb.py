"""PSLB: optimism over the intersection of a projected and an ambient confidence set."""

from typing import Any, ClassVar, NamedTuple

import numpy as np

from halfseen import checks
from halfseen.core.ellipsoids import optimistic_parts
from halfseen.core.moments import Moments
from halfseen.core.ridge import Ridge
from halfseen.lazy import LazyModule
from halfseen.policies.pslb_params import PslbParams
from halfseen.policies.pslb_search import Projection, Sets, sampled_parts
from halfseen.policies.registry import register_policy
from halfseen.seeding import stream
from halfseen.state import Built, Maybe, Part, RandomState, Whole
from halfseen.values import LARGEST, Choice, FloatArray, Note, Slate

_kernels = LazyModule("halfseen.kernels.ellipsoids")


class Subspace(NamedTuple):
    """The subspace in which a policy plays, and the mean number of arms per round before it."""

    projection: Projection
    arms_per_round: float

    def state(self) -> dict[str, Any]:
        """Return projection and mean."""
        projection = self.projection.state()
        return {"projection": projection, "arms_per_round": self.arms_per_round}

    @classmethod
    def restored(cls, policy: "Pslb", saved: dict[str, Any]) -> "Subspace":
        """Return the subspace that `state` described."""
        arms_per_round = checks.real("arms_per_round", saved["arms_per_round"], 0.0, LARGEST)
        return cls(Projection.restored(policy._model, saved["projection"]), arms_per_round)

    @property
    def basis(self) -> FloatArray:
        """Directions, shape (dim, rank)."""
        return self.projection.basis

    @property
    def rank(self) -> int:
        """Number of directions."""
        rank: int = self.basis.shape[1]
        return rank


@register_policy
class Pslb(PslbParams):
    """Projected stochastic linear bandit (Lale et al. 2019); hidden entries count as zero.

    For the first `burn_in` rounds OFUL plays in all features. Then the principal directions of all
    offered arms, including those of the current round, span a subspace. The samples projected on it
    give one confidence set, and the regression in all features, projected on it, gives another. The
    score of an arm is its largest value over the intersection of both. Hidden entries count as zero
    in the directions, too: on half-seen arms this is a zero-filled baseline, on full ones it is
    PSLB itself.

    Examples
    --------
    >>> policy = Pslb(dim=4, rank=1, burn_in=2)
    >>> random = np.random.default_rng(0)
    >>> for _ in range(3):
    ...     slate = np.where(random.random((3, 4)) < 0.5, random.normal(size=(3, 1)), np.nan)
    ...     policy.learn(policy.choose(slate), 0.1)
    >>> policy.current_rank, policy.n_fallbacks
    (1, 0)

    Notes
    -----
    In the projection bonus t is the number of rewards learned, and K the number of arms absorbed
    over the number of rounds, both when the subspace was estimated.
    """

    STATE: ClassVar = {
        "_model": Part(),
        "_moments": Maybe(Part()),
        "_subspace": Maybe(Built(Subspace)),
        "_n_fallbacks": Whole(),
        "_random_state": RandomState(),
    }

    needs = ("dim", "rank", "noise_scale", "observe_prob", "horizon", "seed")

    def setup(self) -> None:
        """Start with an empty regression and no subspace."""
        self.check_together()
        self._model = Ridge(self.dim, ridge=self.ridge)
        self._confidence = self.confidence()
        # None once the subspace is final.
        self._moments: Moments | None = Moments(self.dim)
        self._subspace: Subspace | None = None
        self._n_fallbacks = 0
        self._random = stream(self.seed, "pslb")
        self._random_state = self._random.bit_generator.state

    @property
    def current_rank(self) -> int:
        """Rank of the subspace; the number of features if there is no subspace."""
        return (self._subspace and self._subspace.rank) or self.dim

    @property
    def n_fallbacks(self) -> int:
        """Rounds in which the two sets did not intersect and OFUL chose in all features."""
        return self._n_fallbacks

    def diagnostics(self) -> dict[str, Any]:
        """Return the number of fallbacks and the rank."""
        return {"n_fallbacks": self._n_fallbacks, "rank": self.current_rank}

    def decide(self, slate: Slate) -> Choice:
        """Choose by the largest value over both sets, or by OFUL if they do not intersect."""
        if self._moments is not None and self._round >= self.burn_in:
            self._subspace = self._estimated(slate, self._moments)
            if self.refresh == "once":
                self._moments = None
        self.observe(slate)
        parts = None
        if self._subspace is not None and self._subspace.rank > 0:
            parts = self._parts(slate, self._subspace)
            self._n_fallbacks += parts is None
        if parts is None:
            return Choice(*self._ambient(slate))
        return Choice(int(parts[0].argmax()), parts)

    def _estimated(self, slate: Slate, moments: Moments) -> Subspace:
        """Return the principal directions of all zero-filled arms up to and including a slate."""
        round = self._round + 1
        values, n_arms = slate.values, moments.n_arms + slate.n_arms
        second_moment = (moments.second_moment() + values.T @ values) / n_arms
        basis = self.rank.select(second_moment, self.known(n_arms, round)).basis
        return Subspace(Projection(self._model, basis), n_arms / round)

    def _ambient(self, slate: Slate) -> tuple[int, FloatArray]:
        return self._model.score(slate._table, self._confidence.total)

    def _parts(self, slate: Slate, subspace: Subspace) -> FloatArray | None:
        """Return score, estimate and width of each arm; None if the sets do not intersect."""
        basis = subspace.basis
        points = np.empty((slate.n_arms, subspace.rank))
        _kernels.project(slate._table, basis, points)
        sets = self._sets(subspace)
        if self.search == "exact":
            return sets and optimistic_parts(points, *sets)
        random = self._random.bit_generator
        random.state = self._random_state  # so that a failed choice draws nothing
        parts = sets and sampled_parts(points, sets, self.n_samples, self._random)
        self._random_state = random.state
        return parts

    def _sets(self, subspace: Subspace) -> Sets | None:
        model = self._model
        bonus = self.radius_scale * self.projection_bonus(
            rank=subspace.rank,
            n_samples=model.n_samples,
            arms_per_round=subspace.arms_per_round,
        )
        return subspace.projection.sets(model, self._confidence, bonus)

    def update(self, note: Note, reward: float) -> None:
        """Add the arm to the regression, and to its projection on the subspace."""
        model = self._model.copied()
        if self._subspace is None:
            model.update(note.arm, reward)
        else:
            projection = self._subspace.projection.fork()
            projection.learn(model, note.arm, reward)
            self._subspace = self._subspace._replace(projection=projection)
        self._model = model

    def observe(self, slate: Slate) -> None:
        """Add the arms to those that determine the subspace, until it is final."""
        if self._moments is not None:
            moments = self._moments.fork()
            moments.add(slate._table)
            self._moments = moments
