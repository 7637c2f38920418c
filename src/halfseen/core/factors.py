"""A latent model of half-seen arms, fitted by maximum likelihood: factor analysis with holes.

An arm is x = μ + Wz + ε with z standard normal in `rank` dimensions and independent noise of
variance ψ_j on feature j. Hidden entries do not enter the likelihood, so no observation probability
is needed. Features are standardised first, so units and offsets do not matter.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen import archive
from halfseen.lazy import LazyModule
from halfseen.linear.covariance import LARGEST_DENSE_DIM, CovarianceOperator, corrected_covariance
from halfseen.linear.eigen import block_krylov, top_eigenpairs
from halfseen.linear.lift import Lift
from halfseen.values import LARGEST, LARGEST_POINT, FloatArray

_kernels = LazyModule("halfseen.kernels.factors")
_arm_features = LazyModule("halfseen.kernels.arm_features")

NOISE_FLOOR = 1e-6
"""Smallest ψ_j, as a share of the feature's variance: without a floor the likelihood of exactly
low-rank arms has no maximum."""

MAX_STEPS = 60
TOLERANCE = 1e-3
"""EM stops when a step gains less than this per seen entry, in units of log-likelihood."""

NOISE_PRIOR = 4.0
"""Each feature's noise counts this many entries of the common level besides its own."""

MOST_WORK = 2e10
"""Largest work of one fit, as counted by `step_work`: about 1.5 seconds on one core."""

# A feature whose deviation is below this share of its largest entry is constant up to rounding.
_CONSTANT = 1e-12
# Work outside matrix products takes this many times longer (measured).
_CUBE = 4.0
# A spectral start is blurred, so that EM can correct its errors.
_START_NOISE = 0.3
_START_VARIANCE = 0.1
# Beyond the arms' rank eigenvalues lie close together, and a start need not separate them.
_START_TOLERANCE = 1e-2
_ARMS_FOR_MATRIX = 1 / 8  # share of the features; with fewer arms no covariance matrix is made
_FIRST_COUNT = 4  # eigenpairs computed at first
# Loadings and means of a start, in deviations of the present arms, are clipped here: larger ones
# come from arms in another unit.
_LARGEST_LOADING = 1e5


class Factors(NamedTuple):
    """Arms x = location + scale·(Wz + ε), z standard normal, ε_j of variance ψ_j.

    Attributes
    ----------
    location, scale : ndarray, shape (dim,)
        In the features' own units. A scale of 0 means that the feature does not vary, or was not
        seen often enough to tell; such a feature is ignored.
    loadings : ndarray, shape (rank, dim)
        W', for standardised features.
    noise : ndarray, shape (dim,)
        ψ, for standardised features.
    """

    location: FloatArray
    scale: FloatArray
    loadings: FloatArray
    noise: FloatArray

    @property
    def dim(self) -> int:
        """Number of features."""
        return len(self.location)

    @property
    def rank(self) -> int:
        """Number of latent dimensions."""
        return len(self.loadings)

    @property
    def explains_all(self) -> bool:
        """Whether no feature has more noise than the floor, up to a factor of 2."""
        return self.rank > 0 and bool((self.noise <= 2.0 * NOISE_FLOOR)[self.scale > 0.0].all())

    def lift(self, scale: float = 1.0) -> Lift:
        """Return the map from residuals (`residuals`) to the posterior mean of z, times a scale."""
        basis = np.ascontiguousarray((self.loadings / np.sqrt(self.noise)).T)
        return Lift(basis, 1.0, np.full(self.rank, scale))

    def residuals(self, table: FloatArray) -> FloatArray:
        """Return (x − location)/(scale·√ψ) of arms (n, dim); NaN where hidden or ignored.

        Entries farther away than 1000 deviations are clipped.
        """
        rest, table = np.empty(table.shape), np.ascontiguousarray(table)
        _arm_features.subtract(table, self.location, self.scale, np.sqrt(self.noise), rest)
        return rest

    def latent(self, table: FloatArray) -> FloatArray:
        """Return the posterior means of z of arms (n, dim), shape (n, rank)."""
        if self.rank == 0:
            return np.zeros((len(table), 0))
        return self.lift().coordinates(self.residuals(table))

    def fill(self, table: FloatArray) -> FloatArray:
        """Return the arms (n, dim) with hidden entries replaced by their posterior means.

        An entry that was never seen is filled with the location.
        """
        filled = self.location + self.scale * (self.latent(table) @ self.loadings)
        return np.where(table == table, table, filled)

    def widened(self, dim: int) -> "Factors":
        """Return the model with more features, of which nothing is known."""
        more = (0, dim - self.dim)
        return Factors(
            np.pad(self.location, more),
            np.pad(self.scale, more),
            np.pad(self.loadings, ((0, 0), more)),
            np.pad(self.noise, more, constant_values=1.0),
        )

    def state(self) -> dict[str, Any]:
        """Return everything as arrays."""
        return dict(self._asdict())

    @classmethod
    def restored(cls, state: dict[str, Any], dim: int) -> "Factors":
        """Return the model that `state` described."""
        location = archive.array(state, "location", (dim,), low=-LARGEST_POINT, high=LARGEST_POINT)
        scale = archive.array(state, "scale", (dim,), low=0.0, high=2.0 * LARGEST)
        loadings = archive.array(
            state, "loadings", (None, dim), low=-_LARGEST_LOADING, high=_LARGEST_LOADING
        )
        noise = archive.array(state, "noise", (dim,), low=NOISE_FLOOR, high=_LARGEST_LOADING**2)
        return cls(location, scale, loadings, noise)


class Fit(NamedTuple):
    """A fitted model and details of the fit.

    Attributes
    ----------
    model : Factors
    log_likelihood : float
        Of all seen entries, standardised, under `model`.
    objective : float
        The same plus the logarithm of the prior of the noise, up to a constant: what EM increases.
    evidence : float
        Log-likelihood averaged over all loadings, by Laplace's method; the rank with the largest
        evidence is chosen.
    n_steps : int
        Steps of EM.
    """

    model: Factors
    log_likelihood: float
    objective: float
    evidence: float
    n_steps: int


class Arms:
    """Half-seen arms in the layout of the compiled loops, standardised.

    Arms without a seen entry are left out: they carry no information.

    Parameters
    ----------
    table : ndarray, shape (n, dim)
        NaN where hidden.
    weights : ndarray, shape (n,), optional
        How much each arm counts; by default 1.
    through_origin : bool
        Whether the mean of every feature is known to be 0.
    """

    def __init__(
        self,
        table: FloatArray,
        weights: FloatArray | None = None,
        *,
        through_origin: bool = False,
    ) -> None:
        shown = (table == table).any(axis=1)
        table = np.ascontiguousarray(table[shown], dtype=np.float64)
        self.dim = int(table.shape[1])
        self.weights = np.ones(len(table)) if weights is None else weights[shown].copy()
        self.has_mean = not through_origin
        self.centre, self.scale = _units(table, self.weights, through_origin)
        standard = np.empty(table.shape)
        _arm_features.subtract(table, self.centre, self.scale, np.ones(self.dim), standard)
        seen = standard == standard
        self.seen = seen.astype(np.float64)
        self.filled = np.where(seen, standard, 0.0)
        self.counts: FloatArray = self.weights @ self.seen
        # Features that were never seen count as if they were not there.
        self.n_features = int(np.count_nonzero((table == table).any(axis=0)))
        self.n_entries = int(np.count_nonzero(seen))

    def __len__(self) -> int:
        return len(self.filled)

    def empty_model(self) -> Factors:
        """Return the model of rank 0 with each feature's own mean and variance."""
        return self.model(np.zeros((1, self.dim)), np.ones(self.dim), 0)

    def standardised(self, model: Factors) -> tuple[FloatArray, FloatArray]:
        """Return loadings, with the mean below them if there is one, and noise in these units."""
        known = (model.scale > 0.0) & (self.scale > 0.0)
        unit = np.where(known, self.scale, 1.0)
        ratio = np.minimum(np.where(known, model.scale / unit, 0.0), _LARGEST_LOADING)
        rows = model.loadings * ratio
        if self.has_mean:
            mean = np.where(known, (model.location - self.centre) / unit, 0.0)
            rows = np.vstack([rows, mean])
        noise = np.where(known, model.noise * ratio * ratio, 1.0)
        np.clip(rows, -_LARGEST_LOADING, _LARGEST_LOADING, out=rows)
        return np.ascontiguousarray(rows), np.clip(noise, NOISE_FLOOR, _LARGEST_LOADING**2)

    def model(self, rows: FloatArray, noise: FloatArray, rank: int) -> Factors:
        """Return the model with standardised loadings, a mean below them, and noise."""
        location = self.centre
        if self.has_mean:
            location = location + self.scale * rows[rank]
        loadings = np.clip(rows[:rank], -_LARGEST_LOADING, _LARGEST_LOADING)
        return Factors(location, self.scale, loadings, noise)


def _units(
    table: FloatArray, weights: FloatArray, through_origin: bool
) -> tuple[FloatArray, FloatArray]:
    """Return centre and deviation of every feature, over its seen entries.

    The deviation is 0 if the feature does not vary, or is seen in fewer than two arms.
    """
    seen = table == table
    filled = np.where(seen, table, 0.0)
    size = np.abs(filled).max(axis=0, initial=0.0)
    unit = np.where(size > 0.0, size, 1.0)  # squares of shares neither overflow nor vanish
    shares, weighted = filled / unit, seen * weights[:, None]
    total = weighted.sum(axis=0)
    total[total == 0.0] = 1.0
    mean = np.zeros(table.shape[1])
    if not through_origin:
        mean = (weighted * shares).sum(axis=0) / total
    rest = np.where(seen, shares - mean, 0.0)
    deviation = np.sqrt((weighted * rest * rest).sum(axis=0) / total)
    return unit * mean, np.where(deviation > _CONSTANT, unit * deviation, 0.0)


def fit_factors(
    arms: Arms,
    start: Factors,
    *,
    common_noise: bool = False,
    max_steps: int = MAX_STEPS,
    tolerance: float = TOLERANCE,
) -> Fit:
    """Return the model that EM reaches from a start.

    Parameters
    ----------
    arms : Arms
    start : Factors
    common_noise : bool
        Whether all standardised features have the same noise. Otherwise each has its own, drawn
        towards the mean of the start's noise.
    max_steps : int
    tolerance : float
        EM stops when a step gains less than this per seen entry.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> table = 5.0 + random.normal(size=(60, 1)) * np.array([[1.0, 2.0, -1.0]])
    >>> table[random.random(table.shape) < 0.3] = np.nan
    >>> arms = Arms(table)
    >>> model = fit_factors(arms, Spectrum(arms).start(1), common_noise=True).model
    >>> model.fill(np.array([[6.0, np.nan, np.nan]])).round(2).tolist()
    [[6.0, 7.0, 4.0]]
    """
    rank = start.rank
    rows, noise = arms.standardised(start)
    level = float(arms.counts @ noise) / max(1.0, float(arms.counts.sum()))
    if common_noise:
        noise[:] = level
    affordable = int(MOST_WORK / step_work(max(1, len(arms)), arms.dim, max(1, rank)))
    likelihood, objective, evidence, n_steps = _kernels.climb(
        arms.filled,
        arms.seen,
        arms.weights,
        rows,
        noise,
        rank,
        level,
        NOISE_PRIOR,
        NOISE_FLOOR,
        common_noise,
        min(max_steps, max(1, affordable)),
        tolerance * arms.n_entries,
    )
    return Fit(arms.model(rows, noise, rank), likelihood, objective, evidence, n_steps)


def step_work(n_arms: int, dim: int, rank: int) -> float:
    """Return the work of one EM step, in multiplications of a matrix product.

    Each arm and each feature has a system of its own to solve.
    """
    return float(n_arms * rank * rank * dim) + _CUBE * (n_arms + dim) * float(rank) ** 3


class Spectrum:
    """Starts of EM from the corrected covariance of some arms, computed when needed."""

    def __init__(self, arms: Arms) -> None:
        self._arms = arms
        self._covariance: FloatArray | CovarianceOperator | None = None
        self._values, self._vectors = np.empty(0), np.empty((arms.dim, 0))

    def start(self, rank: int) -> Factors:
        """Return a model of that rank to start from: the top eigenpairs, blurred."""
        if rank > len(self._values):
            self._values, self._vectors = self._pairs(rank)
        scales = np.sqrt(np.maximum(self._values[:rank], _START_VARIANCE))
        rows, arms = (self._vectors[:, :rank] * scales).T, self._arms
        if arms.has_mean:
            rows = np.vstack([rows, np.zeros(arms.dim)])
        return arms.model(rows, np.full(arms.dim, _START_NOISE), rank)

    def _pairs(self, rank: int) -> tuple[FloatArray, FloatArray]:
        dim = self._arms.dim
        if self._covariance is None:
            self._covariance = self._corrected()
        if isinstance(self._covariance, CovarianceOperator):
            values, vectors = block_krylov(
                self._covariance.product, dim, rank, tolerance=_START_TOLERANCE
            )
            return values[::-1], vectors[:, ::-1]
        count = min(dim, max(rank, _FIRST_COUNT, 2 * len(self._values)))
        return top_eigenpairs(self._covariance, count)

    def _corrected(self) -> FloatArray | CovarianceOperator:
        arms = self._arms
        shares = np.maximum(arms.seen.sum(axis=0), 1.0) / max(1, len(arms))
        # With few arms, products are cheaper than the matrix, which may not fit in memory.
        if arms.dim > LARGEST_DENSE_DIM or len(arms) < _ARMS_FOR_MATRIX * arms.n_features:
            return CovarianceOperator(arms.filled, shares)
        return corrected_covariance(arms.filled.T @ arms.filled, len(arms), shares)


def row_keys(table: FloatArray) -> NDArray[np.uint64]:
    """Return a number per row, the same for rows with equal values and equal holes.

    >>> keys = row_keys(np.array([[1.0, np.nan], [1.0, 2.0], [1.0, np.nan]]))
    >>> bool(keys[0] == keys[2]), bool(keys[0] == keys[1])
    (True, False)
    """
    table = np.ascontiguousarray(table)
    keys = np.empty(len(table), dtype=np.uint64)
    _arm_features.row_keys(table, table.view(np.uint64), keys)
    return keys
