"""Latent coordinates of half-seen arms in a frozen basis, and arms filled in from them."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from halfseen import params
from halfseen.errors import Unidentifiable
from halfseen.linear.lift import Lift, checked_impute_ridge
from halfseen.tofu.ingredient import Ingredient
from halfseen.values import LARGEST, FloatArray, Slate

# A prior variance below this share of the largest one, or a negative estimate, is raised to it.
_SMALLEST_SHARE = 1e-3


class Imputation(Ingredient, ABC):
    """Maps the seen entries of arms to their coordinates in the frozen basis of an epoch.

    Examples
    --------
    >>> from halfseen import TofuPov
    >>> class ZeroFilled(Imputation):
    ...     '''Hidden entries count as zero.'''
    ...     def lift(self, basis, eigenvalues):
    ...         return lambda arms: np.nan_to_num(arms) @ basis
    >>> TofuPov(dim=4, rank=1, observe_prob=0.5, imputation=ZeroFilled()).imputation
    ZeroFilled()
    """

    needs_eigenvalues: ClassVar[bool] = True
    """Whether it uses the variances along the basis. If not, set it to False: then it also works
    with a subspace estimator that has none."""

    @abstractmethod
    def lift(self, basis: FloatArray, eigenvalues: FloatArray) -> Callable[[FloatArray], Any]:
        """Return a function from arms (n, dim), NaN where hidden, to coordinates (n, rank).

        An arm that its seen entries do not identify has NaN.
        `basis`, shape (dim, rank), has orthonormal columns; `eigenvalues`, shape (rank,), are the
        estimated variances along them, NaN if they are not known.
        """


class LeastSquares(Imputation):
    """Hidden entries by least squares on the seen ones, with a ridge.

    Examples
    --------
    >>> lift = LeastSquares(ridge=0.0).lift(np.array([[0.6], [0.8]]), np.ones(1))
    >>> lift(np.array([[3.0, np.nan], [np.nan, np.nan]])).tolist()
    [[5.0], [nan]]

    Notes
    -----
    Paper: eq:imputation_operator
    """

    needs_eigenvalues = False

    ridge: float = params.custom(
        default=1e-5,
        check=lambda name, value: checked_impute_ridge(value),
        kind="float",
        doc="ρ ≥ 0. With 0, as in the paper, the seen entries of some arms do not identify them.",
    )

    def lift(self, basis: FloatArray, eigenvalues: FloatArray) -> Callable[[FloatArray], Any]:
        """Return the map to U'x̂ = (1 + ρ)a; `coordinates` derives it."""
        return Lift.least_squares(basis, self.ridge).coordinates


class PosteriorMean(Imputation):
    """The posterior mean of an arm's coordinates, whose prior variances are the eigenvalues.

    An arm that shows few entries is drawn towards zero, where least squares inflates it.

    Examples
    --------
    >>> lift = PosteriorMean(noise=1.0).lift(np.array([[0.6], [0.8]]), np.array([2.0]))
    >>> lift(np.array([[3.0, np.nan], [3.0, 4.0], [np.nan, np.nan]])).round(2).tolist()
    [[2.09], [3.33], [0.0]]
    """

    noise: float = params.real(
        default=0.1,
        low=0.0,
        high=LARGEST,
        low_open=True,
        doc="""Variance of an entry's noise, as a share of the mean variance that the subspace gives
    an entry: the sum of the eigenvalues over `dim`.""",
    )

    def lift(self, basis: FloatArray, eigenvalues: FloatArray) -> Callable[[FloatArray], Any]:
        """Return the map to posterior means."""
        variances = np.maximum(eigenvalues, _SMALLEST_SHARE * np.abs(eigenvalues).max())
        noise = self.noise * float(variances.sum()) / len(basis)
        return Lift.posterior_mean(basis, variances, noise).coordinates


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
    latent = Lift.least_squares(basis, ridge).coordinates(slate.table)
    check_identified(slate, latent)
    return latent


def check_identified(slate: Slate, latent: FloatArray) -> None:
    """Raise `Unidentifiable` if an arm of a slate has no coordinates; report the first one."""
    if math.isnan(np.vdot(latent, latent)):  # quicker than asking of each entry
        arm = int(np.isnan(latent).any(axis=1).argmax())
        n_seen = int(np.count_nonzero(slate.mask[arm]))
        entries = "entry" if n_seen == 1 else "entries"
        raise Unidentifiable(
            f"arm {arm} shows {n_seen} {entries}, too few to determine {latent.shape[1]} latent "
            "coordinates: set impute_ridge > 0 or lower the rank"
        )


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
