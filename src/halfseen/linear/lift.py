"""The map from the seen entries of an arm to its coordinates in a basis."""

from typing import Any

import numpy as np

from halfseen import checks
from halfseen.errors import InvalidSettingError
from halfseen.lazy import LazyModule
from halfseen.values import LARGEST, FloatArray

_kernel = LazyModule("halfseen.kernels.lift")

# Without a ridge, a pivot below this share of the largest diagonal entry is rounding: the arm is
# not identified.
_PIVOT_TOLERANCE = 1e-12

SMALLEST_IMPUTE_RIDGE = 1e-10
"""A smaller ridge would be lost to rounding."""


def checked_impute_ridge(value: Any) -> float:
    """Return ρ if it is 0 or large enough to mean something.

    >>> checked_impute_ridge(1e-20)
    Traceback (most recent call last):
    halfseen.errors.InvalidSettingError: impute_ridge must be 0 or at least 1e-10, got 1e-20
    """
    ridge = checks.real("impute_ridge", value, 0.0, LARGEST)
    if 0.0 < ridge < SMALLEST_IMPUTE_RIDGE:
        raise InvalidSettingError(
            f"impute_ridge must be 0 or at least {SMALLEST_IMPUTE_RIDGE:g}, got {value!r}"
        )
    return ridge


class Lift:
    """Maps the seen entries of an arm to its latent coordinates.

    These are scales·a with (W_Ω'W_Ω + ρI)a = W_Ω'x_Ω.

    Parameters
    ----------
    basis : ndarray, shape (dim, rank)
        W.
    ridge : float
        ρ ≥ 0.
    scales : ndarray, shape (rank,)

    Attributes
    ----------
    columns : ndarray, shape (rank, dim)
        Those of W.
    rank : int
        Number of coordinates.
    """

    __slots__ = ("columns", "rank", "ridge", "scales")

    def __init__(self, basis: FloatArray, ridge: float, scales: FloatArray) -> None:
        self.columns = np.ascontiguousarray(basis.T)
        self.ridge = ridge
        self.scales = scales
        self.rank = int(basis.shape[1])

    @classmethod
    def least_squares(cls, basis: FloatArray, ridge: float) -> "Lift":
        """Return the lift to U'x̂ of the paper's imputation, which equals (1 + ρ)a."""
        return cls(basis, ridge, np.full(basis.shape[1], 1.0 + ridge))

    @classmethod
    def posterior_mean(cls, basis: FloatArray, variances: FloatArray, noise: float) -> "Lift":
        """Return the lift to the posterior mean (G + σ²Λ⁻¹)⁻¹b in the coordinates of a basis.

        Parameters
        ----------
        basis : ndarray, shape (dim, rank)
            Orthonormal columns; G = U_Ω'U_Ω and b = U_Ω'x_Ω.
        variances : ndarray, shape (rank,)
            Λ: prior variances along the columns; the prior mean is 0.
        noise : float
            σ² > 0 of every entry; raised to 1e-10 of the mean of Λ if smaller.
        """
        # Only the ratio of noise to prior matters, so no scale of the arms overflows.
        mean = float(variances.mean()) or 1.0
        scales = np.sqrt(variances / mean)
        ridge = min(max(noise / mean, SMALLEST_IMPUTE_RIDGE), LARGEST)
        return cls(basis * scales, ridge, scales)

    def coordinates(self, table: FloatArray) -> FloatArray:
        """Return the coordinates of half-seen arms (n, dim), shape (n, rank).

        NaN for an arm whose seen entries do not identify it; with a ridge all are identified.
        """
        points = np.empty((len(table), self.rank))
        _kernel.lift(table, self.columns, self.ridge, self.scales, _PIVOT_TOLERANCE, points)
        return points
