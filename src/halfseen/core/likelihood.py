"""The subspace of half-seen arms by maximum likelihood: probabilistic PCA with missing entries.

An arm is x = Wz + noise with z standard normal in `rank` dimensions and independent noise of
variance σ² on every feature. Hidden entries do not enter the likelihood, so no observation
probability is needed. The corrected covariance converges like 1/√n; for arms of nearly exact low
rank this estimate is accurate as soon as there are enough entries to determine the subspace.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from halfseen import checks
from halfseen.core.krylov import block_krylov
from halfseen.core.moments import corrected_covariance
from halfseen.core.operators import LARGEST_DENSE_DIM, CovarianceOperator
from halfseen.core.subspace import top_eigenpairs
from halfseen.errors import InvalidInputError
from halfseen.lazy import LazyModule
from halfseen.values import FloatArray

_kernels = LazyModule("halfseen.kernels.likelihood")

NOISE_FLOOR = 1e-6
"""Smallest σ², as a share of the mean square of seen entries: without a floor the likelihood of
exactly low-rank arms has no maximum."""

MAX_STEPS = 60
TOLERANCE = 1e-3
"""EM stops when a step gains less than this per seen entry, in units of log-likelihood."""

MOST_WORK = 2e10
"""Largest work of one fit, as counted by `step_work`: about 1.5 seconds on one core."""

# If a start was fitted to far larger arms, its loadings are clipped here, in units of the present
# arms: larger ones are rounding. Arms of root mean square 1 stay far below.
_LARGEST_LOADING = 1e5
# Work outside matrix products takes this many times longer (measured).
_CUBE = 4.0
# A spectral start is blurred, so that EM can correct its errors.
_START_NOISE = 0.3
_START_VARIANCE = 0.1
# Beyond the arms' rank eigenvalues lie close together, and a start need not separate them.
_START_TOLERANCE = 1e-2
_FEW_ARMS = 8  # times these many are fewer than the features
_FIRST_COUNT = 4  # eigenpairs computed at first


class Ppca(NamedTuple):
    """Arms x = Wz + noise, z standard normal.

    Attributes
    ----------
    loadings : ndarray, shape (dim, rank)
        W.
    noise : float
        σ² > 0, the variance of the noise on each feature.
    """

    loadings: FloatArray
    noise: float

    @property
    def rank(self) -> int:
        """Number of latent dimensions."""
        return int(self.loadings.shape[1])

    def subspace(self) -> tuple[FloatArray, FloatArray]:
        """Return an orthonormal basis of W's span, shape (dim, rank), and variances along it.

        Columns are in descending order of variance, each with its largest entry positive.

        Examples
        --------
        >>> basis, variances = Ppca(np.array([[3.0], [-4.0]]), 1.0).subspace()
        >>> basis.round(9).tolist(), variances.round(9).tolist()
        ([[-0.6], [0.8]], [25.0])
        """
        basis, scales, _ = np.linalg.svd(self.loadings, full_matrices=False)
        largest = np.abs(basis).argmax(axis=0)
        signs = np.where(basis[largest, np.arange(self.rank)] < 0.0, -1.0, 1.0)
        return np.ascontiguousarray(basis * signs), scales**2

    def truncated(self, rank: int) -> "Ppca":
        """Return the model with its weakest directions moved into the noise."""
        basis, variances = self.subspace()
        lost = float(variances[rank:].sum()) / len(basis)
        return Ppca(basis[:, :rank] * np.sqrt(variances[:rank]), self.noise + lost)

    def scaled(self, factor: float) -> "Ppca":
        """Return the model of arms multiplied by `factor`."""
        return Ppca(self.loadings * factor, self.noise * factor * factor)


class Fit(NamedTuple):
    """A fitted model and details of the fit.

    Attributes
    ----------
    model : Ppca
    log_likelihood : float
        Of all seen entries under `model`.
    n_steps : int
        Expectation steps over all starts.
    """

    model: Ppca
    log_likelihood: float
    n_steps: int


class Arms:
    """Half-seen arms in the layout of the compiled loops, in units of their root mean square.

    Arms without a seen entry are left out: they carry no information.

    Parameters
    ----------
    table : ndarray, shape (n, dim)
        NaN where hidden.
    """

    __slots__ = (
        "counts",
        "dim",
        "feature_squares",
        "filled",
        "n_entries",
        "seen",
        "squares",
        "unit",
    )

    def __init__(self, table: FloatArray) -> None:
        table = np.ascontiguousarray(table, dtype=np.float64)
        n, self.dim = len(table), int(table.shape[1])
        self.unit: float = _kernels.root_mean_square(table)
        if self.unit <= 0.0:
            self.unit = 1.0
        filled, seen = np.empty((n, self.dim)), np.empty((n, self.dim))
        squares, counts = np.empty(n), np.empty(n)
        self.feature_squares = np.empty(self.dim)
        shown = _kernels.take_in(
            table, self.unit, filled, seen, squares, counts, self.feature_squares
        )
        self.filled, self.seen = filled[:shown], seen[:shown]
        self.squares, self.counts = squares[:shown], counts[:shown]
        self.n_entries = int(self.counts.sum())

    def __len__(self) -> int:
        return len(self.filled)


class Spectrum:
    """The top eigenpairs of the corrected covariance of some arms, computed when needed.

    Parameters
    ----------
    arms : Arms
    observe_prob : float or ndarray of shape (dim,), optional
        By default each feature's share of the arms that show it.
    """

    def __init__(self, arms: Arms, observe_prob: float | FloatArray | None = None) -> None:
        self._arms = arms
        if observe_prob is None:
            observe_prob = np.maximum(arms.seen.sum(axis=0), 1.0) / max(1, len(arms))
        self._observe_prob = observe_prob
        self._covariance: FloatArray | CovarianceOperator | None = None
        self._values, self._vectors = np.empty(0), np.empty((arms.dim, 0))

    def start(self, rank: int) -> Ppca:
        """Return a model of that rank to start from, blurred, in the units of the table."""
        arms = self._arms
        if self._covariance is None:
            self._covariance = self._corrected()
        if rank > len(self._values):
            self._values, self._vectors = self._pairs(rank)
        scales = np.sqrt(np.maximum(self._values[:rank], _START_VARIANCE))
        return Ppca(self._vectors[:, :rank] * scales, _START_NOISE).scaled(arms.unit)

    def _pairs(self, rank: int) -> tuple[FloatArray, FloatArray]:
        dim = self._arms.dim
        if isinstance(self._covariance, CovarianceOperator):
            values, vectors = block_krylov(
                self._covariance.product, dim, rank, tolerance=_START_TOLERANCE
            )
            return values[::-1], vectors[:, ::-1]
        assert self._covariance is not None
        return top_eigenpairs(
            self._covariance, min(dim, max(rank, _FIRST_COUNT, 2 * len(self._values)))
        )

    def _corrected(self) -> FloatArray | CovarianceOperator:
        arms = self._arms
        # With few arms, products are cheaper than the matrix, which may not fit in memory.
        if arms.dim > LARGEST_DENSE_DIM or _FEW_ARMS * len(arms) < arms.dim:
            return CovarianceOperator(arms.filled, self._observe_prob)
        products = arms.filled.T @ arms.filled
        return corrected_covariance(products, len(arms), self._observe_prob)


def spectral_start(
    table: FloatArray, rank: int, observe_prob: float | FloatArray | None = None
) -> Ppca:
    """Return a model to start from: the blurred top eigenpairs of the corrected covariance.

    Parameters
    ----------
    table : ndarray, shape (n, dim)
        NaN where hidden.
    rank : int
    observe_prob : float or ndarray of shape (dim,), optional
        By default each feature's share of the arms that show it.
    """
    return Spectrum(Arms(table), observe_prob).start(rank)


def fit_likelihood(
    table: FloatArray,
    starts: Sequence[Ppca],
    *,
    max_steps: int = MAX_STEPS,
    tolerance: float = TOLERANCE,
) -> Fit:
    """Return the most likely model that EM reaches from several starts of equal rank.

    Parameters
    ----------
    table : ndarray, shape (n, dim)
        NaN where hidden; at least one entry is seen.
    starts : sequence of Ppca
    max_steps : int
        Per start.
    tolerance : float
        EM stops when a step gains less log-likelihood per seen entry than this.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> table = random.normal(size=(60, 1)) * np.array([[1.0, 2.0, -1.0]])
    >>> table[random.random(table.shape) < 0.3] = np.nan
    >>> fit = fit_likelihood(table, [spectral_start(table, 1)])
    >>> (fit.model.loadings[:, 0] / fit.model.loadings[0, 0]).round(2).tolist()
    [1.0, 2.0, -1.0]
    """
    return fit_arms(Arms(table), starts, max_steps=max_steps, tolerance=tolerance)


def fit_arms(
    arms: Arms, starts: Sequence[Ppca], *, max_steps: int = MAX_STEPS, tolerance: float = TOLERANCE
) -> Fit:
    """Like `fit_likelihood`, for prepared arms."""
    if arms.n_entries == 0:
        raise InvalidInputError("a likelihood needs at least one seen entry, got none")
    checks.integer("max_steps", max_steps, 1)
    fits = [_climb(arms, start, max_steps, tolerance) for start in starts]
    best = max(fits, key=lambda fit: fit.log_likelihood)  # the first of equals
    return best._replace(n_steps=sum(fit.n_steps for fit in fits))


def step_work(n_arms: int, dim: int, rank: int) -> float:
    """Return the work of one EM step, in multiplications of a matrix product.

    Each arm and each feature has a system of its own to solve.
    """
    return float(n_arms * rank * rank * dim) + _CUBE * (n_arms + dim) * float(rank) ** 3


def _climb(arms: Arms, start: Ppca, max_steps: int, tolerance: float) -> Fit:
    """Take EM steps until one gains too little or the budget is used up."""
    affordable = int(MOST_WORK / step_work(max(1, len(arms)), arms.dim, max(1, start.rank)))
    max_steps = min(max_steps, max(1, affordable))
    model = start.scaled(1.0 / arms.unit)
    loadings = np.array(model.loadings.T, order="C")
    np.clip(loadings, -_LARGEST_LOADING, _LARGEST_LOADING, out=loadings)
    likelihood, noise, n_steps = _kernels.climb(
        arms.filled,
        arms.seen,
        arms.squares,
        arms.counts,
        arms.feature_squares,
        loadings,
        min(max(NOISE_FLOOR, model.noise), _LARGEST_LOADING**2),
        NOISE_FLOOR,
        max_steps,
        tolerance * arms.n_entries,
    )
    # The density of x is that of x / unit, divided by unit for each entry.
    likelihood -= arms.n_entries * math.log(arms.unit)
    return Fit(Ppca(loadings.T.copy(), noise).scaled(arms.unit), likelihood, n_steps)


def log_likelihood(table: FloatArray, model: Ppca) -> float:
    """Return the log-density of the seen entries of a table (n, dim), NaN where hidden.

    Noise below the floor is raised to it.
    """
    arms = Arms(table)
    return _climb(arms, model, 0, 0.0).log_likelihood if len(arms) else 0.0
