"""Latent coordinates of half-seen arms in a frozen basis."""

from typing import Any

import numpy as np

from halfseen import _kernels, checks
from halfseen.errors import InvalidSettingError, Unidentifiable
from halfseen.values import LARGEST, BoolArray, FloatArray, Slate

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
    latent, identified = identified_coordinates(basis, slate._table, ridge)
    if not identified.all():
        raise unidentifiable(slate, int(identified.argmin()), basis.shape[1])
    return latent


def identified_coordinates(
    basis: FloatArray, table: FloatArray, ridge: float
) -> tuple[FloatArray, BoolArray]:
    """Return the coordinates of all arms and which of them their seen entries determine.

    Parameters
    ----------
    basis : ndarray, shape (dim, rank)
    table : ndarray, shape (n_arms, dim)
        NaN where hidden.
    ridge : float

    Returns
    -------
    latent : ndarray, shape (n_arms, rank)
        Zero where not identified.
    identified : ndarray of bool, shape (n_arms,)
    """
    latent = np.empty((len(table), basis.shape[1]))
    identified = np.empty(len(table), dtype=np.bool_)
    basis = np.ascontiguousarray(basis, dtype=np.float64)
    _kernels.coordinates(basis, table, ridge, latent, identified)
    return latent, identified


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
