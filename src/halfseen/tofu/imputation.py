"""Latent coordinates of half-seen arms in a frozen basis, and arms filled in from them."""

import numpy as np

from halfseen.errors import Unidentifiable
from halfseen.linear.lift import Lift, checked_impute_ridge
from halfseen.values import FloatArray, Slate


def coordinates(basis: FloatArray, slate: Slate, ridge: float = 0.0) -> FloatArray:
    """Return U'x̂ of every arm, where x̂ keeps seen entries and fills in the rest.

    With G = U_Ω'U_Ω, b = U_Ω'x_Ω and (G + ρI)a = b, seen entries contribute b and filled ones
    (I − G)a, so U'x̂ = b + (I − G)a = (1 + ρ)a. The filled vector is never built.

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
    latent = Lift.least_squares(basis, ridge).coordinates(slate._table)
    check_identified(slate, latent)
    return latent


def check_identified(slate: Slate, latent: FloatArray) -> None:
    """Raise `Unidentifiable` if an arm of a slate has no coordinates; report the first one."""
    missed = np.isnan(latent).any(axis=1)
    if missed.any():
        arm = int(missed.argmax())
        n_seen = int(np.count_nonzero(slate.mask[arm]))
        raise Unidentifiable(arm=arm, n_seen=n_seen, rank=latent.shape[1])


def fill(basis: FloatArray, slate: Slate, ridge: float = 0.0) -> FloatArray:
    """Return imputed arms: seen entries unchanged, hidden ones from the subspace.

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
