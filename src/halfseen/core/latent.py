"""Latent coordinates of half-seen arms in a frozen basis."""

from typing import Any, NamedTuple

import numpy as np

from halfseen import _kernels, checks
from halfseen.errors import InvalidSettingError, Unidentifiable
from halfseen.lazy import LazyModule
from halfseen.values import LARGEST, BoolArray, FloatArray, Slate

_em_kernels = LazyModule("halfseen._em_kernels")

SMALLEST_IMPUTE_RIDGE = 1e-10
"""Below, rounding would decide where seen entries do not."""


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


class Lift(NamedTuple):
    """How the seen entries of an arm become its latent coordinates.

    They are scales·a with (W_Ω'W_Ω + ρI)a = W_Ω'x_Ω.

    Attributes
    ----------
    basis : ndarray, shape (dim, rank)
        W, C-contiguous.
    ridge : float
        ρ ≥ 0.
    scales : ndarray, shape (rank,)
    noise : float
        Variance of an entry's noise; a has posterior covariance noise·(W_Ω'W_Ω + ρI)⁻¹.
    """

    basis: FloatArray
    ridge: float
    scales: FloatArray
    noise: float = 0.0

    @property
    def rank(self) -> int:
        """Number of coordinates."""
        return int(self.basis.shape[1])

    @classmethod
    def least_squares(cls, basis: FloatArray, ridge: float) -> "Lift":
        """Return what gives U'x̂ of the paper's imputation, which is (1 + ρ)a exactly."""
        basis = np.ascontiguousarray(basis, dtype=np.float64)
        return cls(basis, ridge, np.full(basis.shape[1], 1.0 + ridge))

    @classmethod
    def posterior_mean(
        cls, basis: FloatArray, variances: FloatArray, noise: float, unit: float = 1.0
    ) -> "Lift":
        """Return what gives the posterior mean (G + σ²Λ⁻¹)⁻¹b in the coordinates of a basis.

        Parameters
        ----------
        basis : ndarray, shape (dim, rank)
            Orthonormal columns; G = U_Ω'U_Ω and b = U_Ω'x_Ω.
        variances : ndarray, shape (rank,)
            Λ: prior variances along the columns, the prior mean being 0.
        noise : float
            σ² > 0 of every entry; at least 1e-10 of the mean of Λ counts.
        unit : float
            Coordinates are given in this unit.
        """
        # Only the ratio of noise to prior matters: no overflow, whatever the arms' scale.
        mean = float(variances.mean()) or 1.0
        scales = np.sqrt(variances / mean)
        ridge = max(noise / mean, SMALLEST_IMPUTE_RIDGE)
        return cls(np.ascontiguousarray(basis * scales), ridge, scales / unit, ridge * mean)

    def coordinates(self, table: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Return coordinates (n, rank) of half-seen arms (n, dim), and which are identified."""
        latent = np.empty((len(table), self.rank))
        identified = np.empty(len(table), dtype=np.bool_)
        _kernels.coordinates(self.basis, table, self.ridge, self.scales, latent, identified)
        return latent, identified

    def covariances(self, table: FloatArray) -> FloatArray:
        """Return what hidden entries leave open: posterior covariances, shape (n, rank, rank)."""
        seen = (table == table).astype(np.float64)
        rank = self.rank
        outer = self.basis[:, :, None] * self.basis[:, None, :]
        grams = (seen @ outer.reshape(len(outer), -1)).reshape(-1, rank, rank)
        inverses = np.linalg.inv(grams + self.ridge * np.eye(rank))
        scaled: FloatArray = self.noise * inverses * np.multiply.outer(self.scales, self.scales)
        return scaled

    def hidden_variances(self, table: FloatArray, theta: FloatArray) -> FloatArray:
        """Return the variance of θ'z that hidden entries leave open, shape (n,)."""
        squares = np.zeros(len(table))
        if self.noise > 0.0:
            direction = self.scales * theta
            _em_kernels.hidden_squares(self.basis, table, self.ridge, direction, squares)
        return self.noise * squares


def coordinates(basis: FloatArray, slate: Slate, ridge: float = 0.0) -> FloatArray:
    """Return U'x̂ of every arm, where x̂ keeps what is seen and fills in the rest.

    With G = U_Ω'U_Ω, b = U_Ω'x_Ω and (G + ρI)a = b, seen entries contribute b and filled ones
    (I − G)a, so that U'x̂ = b + (I − G)a = (1 + ρ)a: the filled vector is never built.

    Parameters
    ----------
    basis : ndarray, shape (dim, rank)
        Orthonormal columns.
    slate : Slate
    ridge : float
        ρ: 0, as in the paper, or at least 1e-10.

    Returns
    -------
    latent : ndarray, shape (n_arms, rank)

    Raises
    ------
    Unidentifiable
        The seen entries of an arm do not determine its coordinates (ρ = 0 only).

    Examples
    --------
    >>> basis = np.array([[0.6], [0.8]])
    >>> coordinates(basis, Slate([[3.0, float("nan")]])).tolist()
    [[5.0]]
    """
    slate, ridge = Slate.of(slate, basis.shape[0]), checked_impute_ridge(ridge)
    latent, identified = Lift.least_squares(basis, ridge).coordinates(slate._table)
    if not identified.all():
        raise unidentifiable(slate, int(identified.argmin()), basis.shape[1])
    return latent


def unidentifiable(slate: Slate, arm: int, rank: int) -> Unidentifiable:
    """Return the error that says why `arm` has no coordinates."""
    return Unidentifiable(arm=arm, n_seen=int(np.count_nonzero(slate.mask[arm])), rank=rank)


def fill(basis: FloatArray, slate: Slate, ridge: float = 0.0) -> FloatArray:
    """Return imputed arms: seen entries bit by bit, hidden ones from the subspace.

    Parameters
    ----------
    basis : ndarray, shape (dim, rank)
    slate : Slate
    ridge : float
        ρ ≥ 0.

    Returns
    -------
    filled : ndarray, shape (n_arms, dim)

    Raises
    ------
    Unidentifiable
        As `coordinates`.

    Examples
    --------
    >>> basis = np.array([[0.6], [0.8]])
    >>> fill(basis, Slate([[3.0, float("nan")]])).tolist()
    [[3.0, 4.0]]

    Notes
    -----
    Paper: eq:imputation_operator
    """
    slate = Slate.of(slate, basis.shape[0])
    latent = coordinates(basis, slate, ridge) / (1.0 + ridge)
    return np.where(slate.mask, slate.values, latent @ basis.T)
