"""PSLB: optimism over what a projected and an ambient confidence set have in common."""

from typing import Any, NamedTuple

import numpy as np

from halfseen import checks
from halfseen.core.confidence import Confidence
from halfseen.core.ellipsoids import optimistic_parts
from halfseen.core.moments import Moments
from halfseen.core.rank import RankRule
from halfseen.core.ridge import Ridge
from halfseen.lazy import LazyModule
from halfseen.policies.base import Note, Policy
from halfseen.policies.pslb_search import Projection, Sets, sampled_parts
from halfseen.policies.pslb_settings import PslbSettings
from halfseen.policies.registry import register
from halfseen.seeding import stream
from halfseen.values import Decision, FloatArray, Slate

_kernels = LazyModule("halfseen.kernels.ellipsoids")


class Subspace(NamedTuple):
    """Where a policy plays, and how many arms per round its directions come from."""

    projection: Projection
    arms_per_round: float

    @property
    def basis(self) -> FloatArray:
        """Directions, shape (dim, rank)."""
        return self.projection.basis

    @property
    def rank(self) -> int:
        """Number of directions."""
        rank: int = self.basis.shape[1]
        return rank


@register
class Pslb(Policy):
    """Projected stochastic linear bandit (Lale et al. 2019), on the slate as it is seen.

    For the first `burn_in` rounds OFUL plays in all features. Then the principal directions of all
    offered arms, the round's own included, give a subspace; all samples projected on it give one
    confidence set, the regression in all features casts another into it, and each arm's score is
    its largest value over both. What is hidden counts as zero, in the directions, too: on half-seen
    arms this is the zero-filled baseline, on full ones PSLB itself.

    Parameters
    ----------
    dim : int
        Number of features.
    rank : int or RankRule
        Dimension of the subspace, or how to choose it from the spectrum of the arms as seen. In
        rounds with rank 0 OFUL plays in all features.
    burn_in : int
        Rounds before the subspace is estimated.
    refresh : "once" or "every-round"
        Whether the subspace stays as it is in round `burn_in` + 1.
    search : "exact" or "sampled"
        The largest value over both sets, or the largest of random candidates, as published.
    n_samples : int
        Random candidates per round of the sampled search.
    ridge, failure_prob, theta_bound, noise_scale : float
        λ, δ, S, R of both sets. A reward in [0, 1] has R = 0.5.
    radius_scale : float
        Multiplies both radii; 1 is the theory's.
    arm_bound : float
        L.
    top_eigenvalue, last_eigenvalue, alpha : float, optional
        λ⁺, λ⁻ and α of the projection bonus, all or none; without them there is no bonus.
    nuisance_variance : float
        σ² of what arms have outside of the subspace.
    observe_prob : float, array or None
        Used by threshold rules alone, which take the mean over features, and 1 for None.
    horizon : int, optional
        Used by threshold rules alone.
    seed : int
        Of the sampled search; nothing else is random.
    max_open : int
        How many decisions wait for their reward at most; the oldest is forgotten first.

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

    told = ("dim", "rank", "noise_scale", "observe_prob", "horizon", "seed")

    def __init__(
        self,
        *,
        dim: int,
        rank: int | RankRule,
        burn_in: int = 30,
        refresh: str = "once",
        search: str = "exact",
        n_samples: int = 256,
        ridge: float = 1.0,
        failure_prob: float = 0.05,
        theta_bound: float = 1.0,
        noise_scale: float = 0.5,
        radius_scale: float = 1.0,
        arm_bound: float = 1.0,
        top_eigenvalue: float | None = None,
        last_eigenvalue: float | None = None,
        alpha: float | None = None,
        nuisance_variance: float = 0.0,
        observe_prob: Any = 1.0,
        horizon: int | None = None,
        seed: int = 0,
        max_open: int = 10_000,
    ) -> None:
        super().__init__(dim=dim, max_open=max_open)
        self._settings = settings = PslbSettings(
            dim=self.dim,
            rank=rank,  # type: ignore[arg-type]
            burn_in=burn_in,
            refresh=refresh,
            search=search,
            n_samples=n_samples,
            ridge=ridge,
            failure_prob=failure_prob,
            theta_bound=theta_bound,
            noise_scale=noise_scale,
            radius_scale=radius_scale,
            arm_bound=arm_bound,
            top_eigenvalue=top_eigenvalue,
            last_eigenvalue=last_eigenvalue,
            alpha=alpha,
            nuisance_variance=nuisance_variance,
            observe_prob=observe_prob,
            horizon=horizon,
            seed=seed,
        )
        self._model = Ridge(self.dim, ridge=settings.ridge)
        self._confidence = Confidence(
            ridge=settings.ridge,
            theta_bound=settings.theta_bound,
            noise_scale=settings.noise_scale,
            failure_prob=settings.failure_prob,
            radius_scale=settings.radius_scale,
        )
        # None when the subspace has been estimated for good.
        self._moments: Moments | None = Moments(self.dim)
        self._subspace: Subspace | None = None
        self._n_fallbacks = 0
        # Kept apart from the generator: a choice that fails draws nothing.
        self._random = stream(settings.seed, "pslb")
        self._random_state = self._random.bit_generator.state

    @property
    def current_rank(self) -> int:
        """Rank of the subspace; all features where there is none."""
        return (self._subspace and self._subspace.rank) or self.dim

    @property
    def n_fallbacks(self) -> int:
        """Rounds in which no parameter was found in both sets and OFUL chose in all features."""
        return self._n_fallbacks

    def diagnostics(self) -> dict[str, Any]:
        """Return the number of fallbacks and the rank."""
        return {"n_fallbacks": self._n_fallbacks, "rank": self.current_rank}

    def settings(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain JSON types."""
        return self._settings.to_dict() | {"max_open": self.max_open}

    def _choose(self, slate: Slate) -> Decision:
        # All that may fail comes first and changes nothing.
        moments, subspace, reserved = self._moments, self._subspace, None
        if moments is not None and self._round >= self._settings.burn_in:
            subspace = self._estimated(slate, moments)
            if self._settings.refresh == "once":
                moments = None
        if moments is not None:
            reserved = moments.reserve(slate._table)
        parts, plays = None, subspace is not None and subspace.rank > 0
        if subspace is not None and plays:
            parts = self._parts(slate, subspace)
        fell_back = plays and parts is None
        if parts is None:
            arm, parts = self._ambient(slate)
        else:
            arm = int(parts[0].argmax())
        if plays and self._settings.search == "sampled":
            self._random_state = self._random.bit_generator.state
        if moments is not None:
            moments.add(slate._table, reserved)
        self._moments, self._subspace = moments, subspace
        self._n_fallbacks += fell_back
        return self._answer(slate, arm, parts)

    def _estimated(self, slate: Slate, moments: Moments) -> Subspace:
        """Return the principal directions of all arms before and in a slate, as they are seen."""
        settings, round = self._settings, self._round + 1
        values, n_arms = slate.values, moments.n_arms + slate.n_arms
        second_moment = (moments.second_moment() + values.T @ values) / n_arms
        basis = settings.rank.select(second_moment, settings.known(n_arms, round)).basis
        return Subspace(Projection(self._model, basis), n_arms / round)

    def _ambient(self, slate: Slate) -> tuple[int, FloatArray]:
        model = self._model
        radius = self._confidence.total(model.log_det, model.n_samples)
        return model.score(slate._table, radius)

    def _parts(self, slate: Slate, subspace: Subspace) -> FloatArray | None:
        """Return score, estimate and width of each arm over both sets; None if they do not meet."""
        settings, basis = self._settings, subspace.basis
        points = np.empty((slate.n_arms, subspace.rank))
        _kernels.project(slate._table, basis, points)
        sets = self._sets(subspace)
        if settings.search == "exact":
            return sets and optimistic_parts(points, *sets)
        self._random.bit_generator.state = self._random_state
        return sets and sampled_parts(points, sets, settings.n_samples, self._random)

    def _sets(self, subspace: Subspace) -> Sets | None:
        settings, model = self._settings, self._model
        bonus = settings.radius_scale * settings.projection_bonus(
            rank=subspace.rank,
            n_samples=model.n_samples,
            arms_per_round=subspace.arms_per_round,
        )
        return subspace.projection.sets(model, self._confidence, bonus)

    def _learn(self, note: Note, reward: float) -> None:
        if self._subspace is None:
            self._model.update(note.arm, reward)
        else:
            self._subspace.projection.learn(self._model, note.arm, reward)

    def _absorb(self, slate: Slate) -> None:
        if self._moments is not None:
            self._moments.absorb(slate)

    def _state(self) -> dict[str, Any]:
        return {
            "model": self._model.state(),
            "moments": None if self._moments is None else self._moments.state(),
            "subspace": self._subspace
            and {
                "projection": self._subspace.projection.state(),
                "arms_per_round": self._subspace.arms_per_round,
            },
            "n_fallbacks": self._n_fallbacks,
            "random": self._random_state,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self._model.restore(state["model"])
        if state["moments"] is None:
            self._moments = None
        elif self._moments is not None:
            self._moments.restore(state["moments"])
        if state["subspace"] is not None:
            self._subspace = Subspace(
                Projection.restored(self._model, state["subspace"]["projection"]),
                checks.real("arms_per_round", state["subspace"]["arms_per_round"], 0.0),
            )
        self._n_fallbacks = checks.integer("n_fallbacks", state["n_fallbacks"], 0)
        self._random.bit_generator.state = state["random"]
        self._random_state = self._random.bit_generator.state
