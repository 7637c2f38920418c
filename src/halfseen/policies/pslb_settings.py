"""Everything that can be set on PSLB, validated once, and its projection bonus."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from halfseen import checks
from halfseen.core.confidence import LARGEST_SCALE
from halfseen.core.rank import Known, SpectralRule, as_rule
from halfseen.core.ridge import SMALLEST_RIDGE
from halfseen.errors import InvalidSettingError
from halfseen.values import LARGEST

REFRESHES = ("once", "every-round")
SEARCHES = ("exact", "sampled")
_STRUCTURE = ("top_eigenvalue", "last_eigenvalue", "alpha")


@dataclass(frozen=True, slots=True, kw_only=True)
class PslbSettings:
    """Settings of `Pslb`, which documents them; immutable and complete."""

    dim: int
    rank: SpectralRule
    burn_in: int
    refresh: str
    search: str
    n_samples: int
    ridge: float
    failure_prob: float
    theta_bound: float
    noise_scale: float
    radius_scale: float
    arm_bound: float
    top_eigenvalue: float | None
    last_eigenvalue: float | None
    alpha: float | None
    nuisance_variance: float
    observe_prob: float
    horizon: int | None
    seed: int

    def __post_init__(self) -> None:
        rule, horizon = as_rule(self.rank), self.horizon
        if not isinstance(rule, SpectralRule):
            raise InvalidSettingError(
                "rank must be a number or a rule on the spectrum, got "
                f"{type(rule).__name__}, which needs the arms themselves"
            )
        rule.check(checks.integer("dim", self.dim, 1))
        self._store(
            rank=rule,
            burn_in=checks.integer("burn_in", self.burn_in, 0),
            refresh=checks.one_of("refresh", self.refresh, REFRESHES),
            search=checks.one_of("search", self.search, SEARCHES),
            n_samples=checks.integer("n_samples", self.n_samples, 0),
            ridge=checks.real("ridge", self.ridge, SMALLEST_RIDGE, LARGEST),
            failure_prob=checks.failure_prob("failure_prob", self.failure_prob),
            arm_bound=checks.real("arm_bound", self.arm_bound, 1 / LARGEST, LARGEST_SCALE),
            observe_prob=_one_prob(self.observe_prob),
            horizon=None if horizon is None else checks.integer("horizon", horizon, 1),
            seed=checks.integer("seed", self.seed, 0),
        )
        for name in ("theta_bound", "noise_scale", "radius_scale", "nuisance_variance"):
            self._store(**{name: checks.real(name, getattr(self, name), 0.0, LARGEST_SCALE)})
        self._check_structure()

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
        """Return what the error of the projection may add to the projected radius.

        L·S·φ·sqrt(Γ m log(1 + nL²/(mλ))) for n samples, with Γ = (L²/λ) log(1 + L²/λ),
        φ = 2G sqrt(α/K · log(2d/δ)), G = 2g + 4 sqrt(g λ⁺/λ⁻) and g = σ²/λ⁻: zero without nuisance,
        and where λ⁺, λ⁻ and α are not given.
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

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain JSON types."""
        return asdict(self) | {"rank": self.rank.to_dict()}

    def _check_structure(self) -> None:
        """Check λ⁺, λ⁻ and α: all of them, or none and then no nuisance either."""
        given = [name for name in _STRUCTURE if getattr(self, name) is not None]
        if not given and self.nuisance_variance == 0.0:
            return
        if len(given) < len(_STRUCTURE):
            raise InvalidSettingError(
                "the projection bonus needs top_eigenvalue, last_eigenvalue and alpha, or none of "
                f"them and no nuisance_variance, got {', '.join(given) or 'nuisance_variance'} only"
            )
        for name in _STRUCTURE:
            value = checks.real(name, getattr(self, name), 1 / LARGEST_SCALE, LARGEST_SCALE)
            self._store(**{name: value})
        if self.top_eigenvalue < self.last_eigenvalue:  # type: ignore[operator]
            raise InvalidSettingError(
                f"top_eigenvalue must be at least last_eigenvalue = {self.last_eigenvalue}, got "
                f"{self.top_eigenvalue}"
            )

    def _store(self, **checked: Any) -> None:
        """Keep checked values as plain ones, so that all settings can be written as JSON."""
        for name, value in checked.items():
            object.__setattr__(self, name, value)


def _one_prob(observe_prob: Any) -> float:
    """Return the one p that a rule uses: the mean over features, 1 where it is unknown."""
    if observe_prob is None:
        return 1.0
    if isinstance(observe_prob, np.ndarray | list | tuple):
        given = np.ravel(np.asarray(observe_prob, dtype=object)).tolist()
        probs = [checks.probability("observe_prob", prob) for prob in given]
        if probs:
            return math.fsum(probs) / len(probs)
    return checks.probability("observe_prob", observe_prob)
