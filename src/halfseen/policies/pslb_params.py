"""The parameters of PSLB, declared once, and its projection bonus."""

import math
from typing import Any

import numpy as np

from halfseen import checks
from halfseen.core.confidence import LARGEST_SCALE
from halfseen.core.rank import Known, as_rule
from halfseen.errors import InvalidSettingError
from halfseen.params import choice, custom, integer, real
from halfseen.policies.base import Policy
from halfseen.policies.ridge_policy import Optimism, scale_param
from halfseen.values import LARGEST

_STRUCTURE = ("top_eigenvalue", "last_eigenvalue", "alpha")


def _structure_param(doc: str) -> Any:
    return real(default=None, low=1 / LARGEST_SCALE, high=LARGEST_SCALE, doc=doc)


class PslbParams(Optimism, Policy):
    """Parameters of PSLB, and quantities derived from them."""

    rank: Any = custom(
        check=lambda name, value: as_rule(value),
        plain=lambda rule: rule.to_dict(),
        kind="int or RankRule",
        doc="""Dimension of the subspace, or a rule that chooses it from the spectrum of the
    zero-filled arms. In rounds with rank 0 OFUL plays in all features.""",
    )
    burn_in: int = integer(
        default=30,
        low=0,
        high=checks.LARGEST_HORIZON,
        doc="Rounds before the subspace is estimated.",
    )
    refresh: str = choice(
        default="once",
        words=("once", "every-round"),
        doc="Whether the subspace of round `burn_in` + 1 is kept for all later rounds.",
    )
    search: str = choice(
        default="exact",
        words=("exact", "sampled"),
        doc="""The exact maximum over both sets, or the maximum over random candidates, as
    published.""",
    )
    n_samples: int = integer(
        default=256, low=0, doc="Random candidates per round in the sampled search."
    )
    arm_bound: float = real(default=1.0, low=1 / LARGEST, high=LARGEST_SCALE, doc="L.")
    top_eigenvalue: float | None = _structure_param("λ⁺ of the projection bonus.")
    last_eigenvalue: float | None = _structure_param("λ⁻ of the projection bonus.")
    alpha: float | None = _structure_param("α. Give all three, or none: then there is no bonus.")
    nuisance_variance: float = scale_param(
        0.0, doc="σ², the variance of arms outside the subspace."
    )
    observe_prob: float = custom(
        default=1.0,
        check=lambda name, value: _one_prob(value),
        kind="float, array or None",
        doc="Used by threshold rules only: the mean over features, 1 for None.",
    )
    horizon: int | None = integer(
        default=None, low=1, high=checks.LARGEST_HORIZON, doc="Used by threshold rules only."
    )
    seed: int = integer(default=0, low=0, doc="Seed of the sampled search; nothing else is random.")

    def check_together(self) -> None:
        """Raise `InvalidSettingError` if parameters contradict each other."""
        self.rank.check(self.dim)
        given = [name for name in _STRUCTURE if getattr(self, name) is not None]
        if not given and self.nuisance_variance == 0.0:
            return
        top, last = self.top_eigenvalue, self.last_eigenvalue
        if len(given) < len(_STRUCTURE) or top is None or last is None:
            raise InvalidSettingError(
                "the projection bonus needs top_eigenvalue, last_eigenvalue and alpha, or none of "
                f"them and no nuisance_variance, got {', '.join(given) or 'nuisance_variance'} only"
            )
        if top < last:
            raise InvalidSettingError(
                f"top_eigenvalue must be at least last_eigenvalue = {last}, got {top}"
            )

    def known(self, n_arms: int, round: int) -> Known:
        """Return what a threshold rule may use after `n_arms` arms in `round` rounds."""
        top = self.arm_bound**2 if self.top_eigenvalue is None else self.top_eigenvalue
        return Known(
            n_arms=n_arms,
            round=round,
            horizon=self.horizon,
            observe_prob=self.observe_prob,
            failure_prob=self.failure_prob,
            epoch_failure_prob=self.failure_prob,
            arm_bound=self.arm_bound,
            top_eigenvalue=top,
        )

    def projection_bonus(self, *, rank: int, n_samples: int, arms_per_round: float) -> float:
        """Return how much the error of the projection can add to the projected radius.

        L·S·φ·sqrt(Γ m log(1 + nL²/(mλ))) for n samples, with Γ = (L²/λ) log(1 + L²/λ),
        φ = 2G sqrt(α/K · log(2d/δ)), G = 2g + 4 sqrt(g λ⁺/λ⁻) and g = σ²/λ⁻: zero without nuisance
        or if λ⁺, λ⁻ and α are not given.
        """
        if self.top_eigenvalue is None or self.last_eigenvalue is None or self.alpha is None:
            return 0.0
        nuisance = self.nuisance_variance / self.last_eigenvalue
        spread = self.top_eigenvalue / self.last_eigenvalue
        structure = 2.0 * nuisance + 4.0 * math.sqrt(spread * nuisance)
        share = self.alpha / arms_per_round * math.log(2 * self.dim / self.failure_prob)
        per_arm = self.arm_bound**2 / self.ridge
        potential = per_arm * math.log1p(per_arm) * rank * math.log1p(n_samples * per_arm / rank)
        scale = self.arm_bound * self.theta_bound
        return scale * 2.0 * structure * math.sqrt(share) * math.sqrt(potential)


def _one_prob(observe_prob: Any) -> float:
    """Return the single p that a rule uses: the mean over features, 1 if it is unknown."""
    if observe_prob is None:
        return 1.0
    if isinstance(observe_prob, np.ndarray | list | tuple):
        given = np.ravel(np.asarray(observe_prob, dtype=object)).tolist()
        probs = [checks.probability("observe_prob", prob) for prob in given]
        if probs:
            return math.fsum(probs) / len(probs)
    return checks.probability("observe_prob", observe_prob)
