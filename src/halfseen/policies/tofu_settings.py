"""Everything that can be set on TOFU-POV, validated once."""

from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import Any

import numpy as np

from halfseen import checks
from halfseen.core import theory
from halfseen.core.collector import Collector
from halfseen.core.confidence import LARGEST_SCALE
from halfseen.core.epochs import EpochSchedule
from halfseen.core.held_out import HeldOutRank
from halfseen.core.latent import checked_impute_ridge
from halfseen.core.moments import Moments, ObserveProb
from halfseen.core.operators import LARGEST_DENSE_DIM
from halfseen.core.rank import FixedRank, RankRule, as_rule
from halfseen.core.replay import Replay
from halfseen.core.reservoir import Reservoir
from halfseen.core.ridge import SMALLEST_RIDGE
from halfseen.errors import InvalidSettingError
from halfseen.values import LARGEST

# Below, divisions by p² could leave the range of numbers.
SMALLEST_PROB = 1e-6

SUBSPACES = ("covariance", "likelihood")
FEATURES = ("least-squares", "posterior-mean")
EXPLORATIONS = ("ucb", "thompson", "greedy")
# However little memory there may be.
_FEWEST_ROWS = 2
ESTIMATED = "estimated"
COUNTED = "counted"


@dataclass(frozen=True, slots=True, kw_only=True)
class TofuSettings:
    """Settings of `TofuPov`, which documents them; immutable and complete."""

    dim: int
    rank: RankRule
    observe_prob: ObserveProb | str
    horizon: int | None
    schedule: EpochSchedule
    ridge: float | str
    failure_prob: float
    theta_bound: float | str
    noise_scale: float | str
    arm_bound: float
    top_eigenvalue: float
    last_eigenvalue: float | None
    bonus_scale: float
    impute_ridge: float
    replay: Replay
    radius_scale: float
    subspace: str
    features: str
    exploration: str
    fallback: bool
    memory_bytes: int
    seed: int

    @classmethod
    def checked(
        cls,
        *,
        dim: int,
        rank: Any,
        observe_prob: Any,
        horizon: int | None,
        burn_in: Any,
        ridge: Any,
        failure_prob: float,
        theta_bound: Any,
        noise_scale: Any,
        arm_bound: float,
        top_eigenvalue: float | None,
        last_eigenvalue: float | None,
        n_arms: int | None,
        bonus_scale: float,
        impute_ridge: float,
        replay: Any,
        growth: float,
        radius_scale: float,
        subspace: str,
        features: str,
        exploration: str,
        fallback: bool,
        memory_bytes: int,
        seed: int,
    ) -> "TofuSettings":
        """Return validated settings from the constructor's arguments."""
        dim = checks.integer("dim", dim, 1)
        arm_bound = checks.real("arm_bound", arm_bound, 1 / LARGEST, LARGEST)
        if top_eigenvalue is None:
            top_eigenvalue = arm_bound**2  # always true: λ₁ ≤ E‖x‖² ≤ B_X²
        top_eigenvalue = checks.real("top_eigenvalue", top_eigenvalue, 0.0, low_open=True)
        if last_eigenvalue is not None:
            last_eigenvalue = checks.real(
                "last_eigenvalue", last_eigenvalue, 0.0, top_eigenvalue, low_open=True
            )
        elif bonus_scale and checks.real("bonus_scale", bonus_scale, 0.0):
            raise InvalidSettingError(
                "bonus_scale > 0 needs last_eigenvalue (λ_m of the arms' covariance), got None"
            )
        rule = as_rule(rank)
        rule.check(dim)
        if n_arms is not None:
            n_arms = checks.integer("n_arms", n_arms, 1)
        settings = cls(
            dim=dim,
            rank=rule,
            observe_prob=_checked_observe_prob(observe_prob, dim),
            horizon=None if horizon is None else checks.integer("horizon", horizon, 1),
            schedule=EpochSchedule(burn_in=_checked_burn_in(burn_in), growth=growth),
            ridge=_estimated_or("ridge", ridge, SMALLEST_RIDGE, LARGEST),
            failure_prob=checks.failure_prob("failure_prob", failure_prob),
            theta_bound=_estimated_or("theta_bound", theta_bound, 0.0, LARGEST_SCALE),
            noise_scale=_estimated_or("noise_scale", noise_scale, 0.0, LARGEST_SCALE),
            arm_bound=arm_bound,
            top_eigenvalue=top_eigenvalue,
            last_eigenvalue=last_eigenvalue,
            bonus_scale=checks.real("bonus_scale", bonus_scale, 0.0, LARGEST_SCALE),
            impute_ridge=checked_impute_ridge(impute_ridge),
            replay=Replay(checks.one_of("replay", replay, tuple(mode.value for mode in Replay))),
            radius_scale=checks.real("radius_scale", radius_scale, 0.0, LARGEST_SCALE),
            subspace=checks.one_of("subspace", subspace, SUBSPACES),
            features=checks.one_of("features", features, FEATURES),
            exploration=checks.one_of("exploration", exploration, EXPLORATIONS),
            fallback=_checked_fallback(fallback, replay),
            memory_bytes=checks.integer("memory_bytes", memory_bytes, 1),
            seed=checks.integer("seed", seed, 0),
        )
        settings._check_theory_has_numbers()
        return settings._with_theory_burn_in(n_arms) if burn_in == "theory" else settings

    @property
    def keeps_arms(self) -> bool:
        """Whether arms themselves are kept, and not only their moments."""
        needed = self.subspace == "likelihood" or isinstance(self.rank, HeldOutRank)
        return needed or not self.fits_dense

    @property
    def fits_dense(self) -> bool:
        """Whether matrices of dim² are possible; beyond, nothing works in all features."""
        return self.dim <= LARGEST_DENSE_DIM

    @property
    def may_fall_back(self) -> bool:
        """Whether zero-filled OFUL may play epochs."""
        return self.fallback and self.fits_dense

    @property
    def estimates_scales(self) -> bool:
        """Whether something about rewards is estimated from them."""
        return ESTIMATED in (self.ridge, self.theta_bound, self.noise_scale)

    def collector(self) -> Collector:
        """Return what keeps of the offered arms what these settings need."""
        if self.keeps_arms:
            max_rows = max(_FEWEST_ROWS, self.memory_bytes // (8 * self.dim))
            return Reservoir(self.dim, max_rows=max_rows, seed=self.seed)
        counts = self.observe_prob is None or isinstance(self.observe_prob, str)
        return Moments(self.dim, count_pairs=counts)

    def _check_theory_has_numbers(self) -> None:
        if self.bonus_scale > 0.0 and self.theta_bound == ESTIMATED:
            raise InvalidSettingError("bonus_scale > 0 needs a theta_bound, got 'estimated'")

    @property
    def lemma_failure_prob(self) -> float:
        """δ_rep/4, at which the lemmas on the representation are invoked.

        δ_rep is half of δ; where the rank is chosen, a quarter, and δ_rank the other quarter.
        """
        share = 2.0 if isinstance(self.rank, FixedRank) else 4.0
        return self.failure_prob / share / 4.0

    def misspecification(self, *, n_arms: int, round: int, observe_prob: float) -> float:
        """Return b_e for a subspace estimated from `n_arms` arms, times the bonus scale."""
        if self.bonus_scale == 0.0 or self.last_eigenvalue is None:
            return 0.0
        assert not isinstance(self.theta_bound, str)
        error = theory.subspace_error(
            n_arms=n_arms,
            arm_bound=self.arm_bound,
            top_eigenvalue=self.top_eigenvalue,
            last_eigenvalue=self.last_eigenvalue,
            observe_prob=observe_prob,
            log_term=theory.log_term(
                dim=self.dim,
                failure_prob=self.lemma_failure_prob,
                horizon=self.horizon,
                round=round,
            ),
        )
        return self.bonus_scale * theory.misspecification(
            theta_bound=self.theta_bound,
            arm_bound=self.arm_bound,
            observe_prob=observe_prob,
            subspace_error=error,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain JSON types."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        schedule = plain.pop("schedule")
        plain |= {"burn_in": schedule.burn_in, "growth": schedule.growth}
        plain["rank"] = self.rank.to_dict()
        plain["replay"] = str(self.replay)
        if isinstance(self.observe_prob, np.ndarray):
            plain["observe_prob"] = self.observe_prob.tolist()
        return plain

    def _with_theory_burn_in(self, n_arms: int | None) -> "TofuSettings":
        prob = self.observe_prob
        if self.last_eigenvalue is None or n_arms is None or prob is None or isinstance(prob, str):
            raise InvalidSettingError(
                "burn_in='theory' needs last_eigenvalue, n_arms and observe_prob, got "
                f"{self.last_eigenvalue}, {n_arms} and {self.observe_prob}: give them or a number"
            )
        length = theory.burn_in_length(
            dim=self.dim,
            n_arms=n_arms,
            arm_bound=self.arm_bound,
            top_eigenvalue=self.top_eigenvalue,
            last_eigenvalue=self.last_eigenvalue,
            observe_prob=float(np.min(prob)),
            failure_prob=self.lemma_failure_prob,
            horizon=self.horizon,
        )
        return replace(self, schedule=replace(self.schedule, burn_in=length))


def _checked_burn_in(burn_in: Any) -> int:
    if isinstance(burn_in, str):
        checks.one_of("burn_in (a number of rounds or a word)", burn_in, ("theory",))
        return 1  # until it is worked out
    return checks.integer("burn_in", burn_in, 1)


def _checked_prob(name: str, value: Any) -> float:
    prob = checks.probability(name, value)
    return checks.real(name, prob, SMALLEST_PROB, 1.0)


def _estimated_or(name: str, value: Any, low: float, high: float) -> float | str:
    if isinstance(value, str):
        return checks.one_of(f"{name} (a number or a word)", value, (ESTIMATED,))
    return checks.real(name, value, low, high)


def _checked_fallback(fallback: Any, replay: Any) -> bool:
    if not isinstance(fallback, bool):
        raise InvalidSettingError(f"fallback must be True or False, got {fallback!r}")
    if fallback and replay != Replay.FULL:
        raise InvalidSettingError(
            f"fallback=True needs replay='full', from which zero-filled OFUL learns, got {replay!r}"
        )
    return fallback


def _checked_observe_prob(observe_prob: Any, dim: int) -> ObserveProb | str:
    if isinstance(observe_prob, str):
        words = ("unknown", COUNTED)
        word = checks.one_of("observe_prob (numbers or a word)", observe_prob, words)
        return COUNTED if word == COUNTED else None
    if observe_prob is None:
        return None
    if isinstance(observe_prob, np.ndarray) and observe_prob.ndim == 0:
        observe_prob = observe_prob.item()
    if isinstance(observe_prob, Real) or not hasattr(observe_prob, "__len__"):
        return _checked_prob("observe_prob", observe_prob)
    try:
        probs = np.array(observe_prob, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidSettingError(
            f"observe_prob must be one number in (0, 1] or one per feature, got {observe_prob!r}"
        ) from None
    if probs.shape != (dim,):
        raise InvalidSettingError(
            f"observe_prob must be one number or one per feature, shape ({dim},), got shape "
            f"{probs.shape}"
        )
    for feature, prob in enumerate(probs):
        _checked_prob(f"observe_prob[{feature}]", float(prob))
    probs.setflags(write=False)
    return probs
