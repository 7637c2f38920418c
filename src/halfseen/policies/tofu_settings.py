"""Everything that can be set on TOFU-POV, validated once."""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from halfseen import checks
from halfseen.core import theory
from halfseen.core.epochs import EpochSchedule
from halfseen.core.moments import ObserveProb
from halfseen.core.rank import FixedRank, RankRule, as_rule
from halfseen.core.replay import Replay
from halfseen.errors import InvalidSettingError


@dataclass(frozen=True, slots=True, kw_only=True)
class TofuSettings:
    """Settings of `TofuPov`, which documents them; immutable and complete."""

    dim: int
    rank: RankRule
    observe_prob: ObserveProb
    horizon: int | None
    schedule: EpochSchedule
    ridge: float
    failure_prob: float
    theta_bound: float
    noise_scale: float
    arm_bound: float
    top_eigenvalue: float
    last_eigenvalue: float | None
    bonus_scale: float
    impute_ridge: float
    replay: Replay
    radius_scale: float

    @classmethod
    def checked(
        cls,
        *,
        rank: Any,
        observe_prob: Any,
        burn_in: Any,
        n_arms: int | None,
        top_eigenvalue: float | None,
        replay: Any,
        growth: float,
        **others: Any,
    ) -> "TofuSettings":
        """Return validated settings from the constructor's arguments."""
        dim = checks.integer("dim", others.pop("dim"), 1)
        arm_bound = checks.real("arm_bound", others.pop("arm_bound"), 0.0, low_open=True)
        if top_eigenvalue is None:
            top_eigenvalue = arm_bound**2  # always true: λ₁ ≤ E‖x‖² ≤ B_X²
        rule = as_rule(rank)
        rule.check(dim)
        settings = cls(
            dim=dim,
            rank=rule,
            observe_prob=_checked_observe_prob(observe_prob, dim),
            schedule=EpochSchedule(burn_in=1 if burn_in == "theory" else burn_in, growth=growth),
            arm_bound=arm_bound,
            top_eigenvalue=checks.real("top_eigenvalue", top_eigenvalue, 0.0, low_open=True),
            replay=Replay(checks.one_of("replay", replay, tuple(Replay))),
            **others,
        )
        settings._check_rest()
        return settings._with_theory_burn_in(n_arms) if burn_in == "theory" else settings

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

    def _check_rest(self) -> None:
        if self.horizon is not None:
            checks.integer("horizon", self.horizon, 1)
        checks.real("ridge", self.ridge, 0.0, low_open=True)
        checks.failure_prob("failure_prob", self.failure_prob)
        for name in ("theta_bound", "noise_scale", "bonus_scale", "impute_ridge", "radius_scale"):
            checks.real(name, getattr(self, name), 0.0)
        if self.last_eigenvalue is not None:
            checks.real(
                "last_eigenvalue", self.last_eigenvalue, 0.0, self.top_eigenvalue, low_open=True
            )
        elif self.bonus_scale > 0.0:
            raise InvalidSettingError(
                "bonus_scale > 0 needs last_eigenvalue (λ_m of the arms' covariance), got None"
            )

    def _with_theory_burn_in(self, n_arms: int | None) -> "TofuSettings":
        if self.last_eigenvalue is None or n_arms is None or self.observe_prob is None:
            raise InvalidSettingError(
                "burn_in='theory' needs last_eigenvalue, n_arms and observe_prob, got "
                f"{self.last_eigenvalue}, {n_arms} and {self.observe_prob}: give them or a number"
            )
        length = theory.burn_in_length(
            dim=self.dim,
            n_arms=checks.integer("n_arms", n_arms, 1),
            arm_bound=self.arm_bound,
            top_eigenvalue=self.top_eigenvalue,
            last_eigenvalue=self.last_eigenvalue,
            observe_prob=float(np.min(self.observe_prob)),
            failure_prob=self.lemma_failure_prob,
            horizon=self.horizon,
        )
        return replace(self, schedule=replace(self.schedule, burn_in=length))


def _checked_observe_prob(observe_prob: Any, dim: int) -> ObserveProb:
    if observe_prob is None:
        return None
    if np.ndim(observe_prob) == 0:
        return checks.probability("observe_prob", observe_prob)
    probs = np.array(observe_prob, dtype=np.float64)
    if probs.shape != (dim,):
        raise InvalidSettingError(
            f"observe_prob must be one number or one per feature, shape ({dim},), got shape "
            f"{probs.shape}"
        )
    for feature, prob in enumerate(probs):
        checks.probability(f"observe_prob[{feature}]", float(prob))
    probs.setflags(write=False)
    return probs
