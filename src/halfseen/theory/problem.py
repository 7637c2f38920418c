"""The constants of a bandit problem that the theory uses, in one validated value."""

import math
from dataclasses import dataclass

from halfseen import checks
from halfseen.errors import InvalidSettingError

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The constants that all bounds depend on.

    Parameters
    ----------
    dim, rank : int
        d and m: length of an arm, dimension of the subspace that the arms span.
    n_arms, horizon : int
        K arms per slate, T rounds.
    observe_prob : float
        p in (0, 1], the probability that an entry is seen.
    arm_bound : float
        B_X, the largest norm of an arm. Infinite for Gaussian arms: then every error bound is
        infinite, and functions that return a number of rounds raise an error.
    top_eigenvalue : float, optional
        λ̄, an upper bound on the largest eigenvalue of E[xx']; by default `arm_bound**2`, which is
        always valid.
    last_eigenvalue : float
        λ_m, the smallest nonzero eigenvalue of E[xx'].
    incoherence : float
        μ in [1, sqrt(d / m)]: 1 when the subspace is spread evenly over the coordinates.
    theta_bound, noise_scale : float
        S bounds the norm of the reward parameter; rewards are R-sub-Gaussian.

    Raises
    ------
    InvalidSettingError
        A value is out of range, or the spectrum is impossible: m·λ_m is at most the trace of
        E[xx'] and so at most B_X².

    Notes
    -----
    Paper: ass:bounded_actions
    Paper: ass:spectrum

    Examples
    --------
    >>> problem = Problem(
    ...     dim=4, rank=2, n_arms=5, horizon=100, observe_prob=0.5, arm_bound=2.0,
    ...     last_eigenvalue=1.0, incoherence=1.0, theta_bound=1.0, noise_scale=0.1,
    ... )
    >>> problem.top_eigenvalue
    4.0
    >>> round(problem.conditioning ** 2, 12)
    8.0
    """

    dim: int
    rank: int
    n_arms: int
    horizon: int
    observe_prob: float
    arm_bound: float
    # None means arm_bound**2; `__post_init__` replaces it, so that it is always a float.
    top_eigenvalue: float = None  # type: ignore[assignment]
    last_eigenvalue: float
    incoherence: float
    theta_bound: float
    noise_scale: float

    def __post_init__(self) -> None:
        checks.integer("dim", self.dim, 1)
        checks.integer("rank", self.rank, 1, self.dim)
        checks.integer("n_arms", self.n_arms, 1)
        checks.integer("horizon", self.horizon, 1)
        checks.probability("observe_prob", self.observe_prob)
        _positive_or_infinite("arm_bound", self.arm_bound)
        if self.top_eigenvalue is None:
            object.__setattr__(self, "top_eigenvalue", self.arm_bound**2)
        _positive_or_infinite("top_eigenvalue", self.top_eigenvalue)
        checks.real("last_eigenvalue", self.last_eigenvalue, 0, low_open=True)
        checks.real("theta_bound", self.theta_bound, 0, low_open=True)
        checks.real("noise_scale", self.noise_scale, 0)
        widest = math.sqrt(self.dim / self.rank)
        checks.real("incoherence", self.incoherence, 1 - _ROUNDING, widest * (1 + _ROUNDING))
        ceiling = min(self.top_eigenvalue, self.arm_bound**2 / self.rank)
        if self.last_eigenvalue > ceiling * (1 + _ROUNDING):
            raise InvalidSettingError(
                "last_eigenvalue must be at most top_eigenvalue and arm_bound**2 / rank, "
                f"here {ceiling:g}, got {self.last_eigenvalue!r}"
            )

    @property
    def conditioning(self) -> float:
        """κ = B_X sqrt(λ̄) / (λ_m sqrt(m)): at least 1, and 1 for a flat spectrum with tight B_X."""
        spread = self.arm_bound * math.sqrt(self.top_eigenvalue)
        return spread / (self.last_eigenvalue * math.sqrt(self.rank))


def _positive_or_infinite(name: str, value: float) -> None:
    if value != math.inf:
        checks.real(name, value, 0, low_open=True)
