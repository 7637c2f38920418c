"""A latent model of half-seen rows: factor analysis with missing entries, by EM.

A row is x = μ + Wz + ε with z standard normal in `rank` dimensions and independent noise of
variance ψ_j on feature j. Hidden entries do not enter the likelihood, so no observation probability
is needed. EM finds the most likely μ and W, and the most probable ψ under a weak prior. Features
are standardised first, so units and offsets do not matter: location = centre + scale·μ, where μ is
what EM still finds after centring. With the seen entries Ω of a row, M = I + W_Ω'Ψ_Ω⁻¹W_Ω and
f = (z, 1), EM alternates

    E[z] = M⁻¹W_Ω'Ψ_Ω⁻¹(x_Ω − μ_Ω),   Cov[z] = M⁻¹   and   (w_j, μ_j) = (Σ E[ff'])⁻¹ Σ x_j E[f],

the sums over the rows that show feature j, and the evidence chooses the rank (`RankSearch`).
"""

from typing import NamedTuple

import numpy as np

from halfseen.lazy import LazyModule
from halfseen.linear.covariance import LARGEST_DENSE_DIM, CovarianceOperator, corrected_covariance
from halfseen.linear.eigen import top_eigenpairs
from halfseen.linear.lift import Lift
from halfseen.state import Array, Value
from halfseen.values import LARGEST, LARGEST_POINT, FloatArray

_kernels = LazyModule("halfseen.kernels.factors")
_row_features = LazyModule("halfseen.kernels.arm_features")

NOISE_FLOOR = 1e-6
"""Smallest ψ_j, as a share of the feature's variance: without a floor the likelihood of exactly
low-rank rows has no maximum."""

MAX_STEPS = 60
TOLERANCE = 1e-3
"""EM stops when a step gains less than this per seen entry, in units of log-likelihood."""

NOISE_PRIOR = 4.0
"""Each feature's noise counts this many entries of the common noise besides its own."""

MOST_WORK = 2e10
"""Largest work of one fit, as counted by `step_work`: about 1.5 seconds on one core."""

# A feature whose deviation is below this share of its largest entry is constant up to rounding.
_CONSTANT = 1e-12
# Work outside matrix products takes this many times longer (measured).
_CUBE = 4.0
# A spectral start is blurred, so that EM can correct its errors.
_START_NOISE = 0.3
_START_VARIANCE = 0.1
# Beyond the rows' rank eigenvalues lie close together, and a start need not separate them.
_START_TOLERANCE = 1e-2
_ROWS_FOR_MATRIX = 1 / 8  # share of the features; with fewer rows no covariance matrix is made
_FIRST_COUNT = 4  # eigenpairs computed at first
# Loadings and means of a start, in deviations of the present rows, are clipped here: larger ones
# come from rows in another unit.
_LARGEST_LOADING = 1e5


class Factors(NamedTuple):
    """Rows x = location + scale·(Wz + ε), z standard normal, ε_j of variance ψ_j.

    Attributes
    ----------
    location, scale : ndarray, shape (dim,)
        In the features' own units. A scale of 0 means that the feature does not vary, or was not
        seen often enough to estimate one; such a feature is ignored.
    loadings : ndarray, shape (rank, dim)
        W', for standardised features.
    noise : ndarray, shape (dim,)
        ψ, for standardised features.
    """

    location: FloatArray
    scale: FloatArray
    loadings: FloatArray
    noise: FloatArray

    @classmethod
    def unknown(cls, dim: int) -> "Factors":
        """Return a model that ignores all features."""
        return cls(np.zeros(dim), np.zeros(dim), np.zeros((0, dim)), np.ones(dim))

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

    def lift(self) -> Lift:
        """Return the map from residuals (`residuals`) to the posterior mean of z."""
        basis = np.ascontiguousarray((self.loadings / np.sqrt(self.noise)).T)
        return Lift(basis, 1.0, np.ones(self.rank))

    def residuals(self, table: FloatArray) -> FloatArray:
        """Return (x − location)/(scale·√ψ) of rows (n, dim); NaN where hidden or ignored.

        Entries farther away than 1000 deviations are clipped.
        """
        rest, table = np.empty(table.shape), np.ascontiguousarray(table)
        _row_features.standardise(table, self.location, self.scale, np.sqrt(self.noise), rest)
        return rest

    def latent(self, table: FloatArray) -> FloatArray:
        """Return the posterior means of z of rows (n, dim), shape (n, rank)."""
        if self.rank == 0:
            return np.zeros((len(table), 0))
        return self.lift().coordinates(self.residuals(table))

    def fill(self, table: FloatArray) -> FloatArray:
        """Return the rows (n, dim) with hidden entries replaced by their posterior means.

        An entry that was never seen is filled with the location.
        """
        filled = self.location + self.scale * (self.latent(table) @ self.loadings)
        return np.where(table == table, table, filled)

    def widened(self, dim: int) -> "Factors":
        """Return the model with more features, of which nothing is known."""
        if dim == self.dim:
            return self
        more = (0, dim - self.dim)
        return Factors(
            np.pad(self.location, more),
            np.pad(self.scale, more),
            np.pad(self.loadings, ((0, 0), more)),
            np.pad(self.noise, more, constant_values=1.0),
        )


def factors_field(dim: str) -> Value:
    """Return the field of a model of rows whose size has a name (`halfseen.state`)."""
    return Value(
        Factors,
        location=Array((dim,), low=-LARGEST_POINT, high=LARGEST_POINT),
        scale=Array((dim,), low=0.0, high=2.0 * LARGEST),
        loadings=Array((None, dim), low=-_LARGEST_LOADING, high=_LARGEST_LOADING),
        noise=Array((dim,), low=NOISE_FLOOR, high=_LARGEST_LOADING**2),
    )


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
        Logarithm of the likelihood averaged over all loadings, by Laplace's method; the rank with
        the largest evidence is chosen.
    n_steps : int
        Steps of EM.
    """

    model: Factors
    log_likelihood: float
    objective: float
    evidence: float
    n_steps: int


class HalfSeenRows:
    """Half-seen rows in the layout of the compiled loops, standardised.

    Rows without a seen entry are left out: they carry no information.

    Parameters
    ----------
    table : ndarray, shape (n, dim)
        NaN where hidden.
    weights : ndarray, shape (n,), optional
        How much each row counts; by default 1.
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
        self.centre, self.scale = _centre_and_scale(table, self.weights, through_origin)
        standard = np.empty(table.shape)
        _row_features.standardise(table, self.centre, self.scale, np.ones(self.dim), standard)
        seen = standard == standard
        self.seen = seen.astype(np.float64)
        self.zero_filled = np.where(seen, standard, 0.0)
        self.counts: FloatArray = self.weights @ self.seen
        # Features that were never seen count as if they were not there.
        self.n_features = int(np.count_nonzero((table == table).any(axis=0)))
        self.n_entries = int(np.count_nonzero(seen))

    def __len__(self) -> int:
        return len(self.zero_filled)

    def empty_model(self) -> Factors:
        """Return the model of rank 0 with each feature's own mean and variance."""
        return self.model(np.zeros((1, self.dim)), np.ones(self.dim), 0)

    def standardised(self, model: Factors) -> tuple[FloatArray, FloatArray]:
        """Return coefficients, W' with μ below it if there is a mean, and ψ in these units."""
        known = (model.scale > 0.0) & (self.scale > 0.0)
        unit = np.where(known, self.scale, 1.0)
        ratio = np.minimum(np.where(known, model.scale / unit, 0.0), _LARGEST_LOADING)
        coefficients = model.loadings * ratio
        if self.has_mean:
            mean = np.where(known, (model.location - self.centre) / unit, 0.0)
            coefficients = np.vstack([coefficients, mean])
        noise = np.where(known, model.noise * ratio * ratio, 1.0)
        np.clip(coefficients, -_LARGEST_LOADING, _LARGEST_LOADING, out=coefficients)
        return np.ascontiguousarray(coefficients), np.clip(noise, NOISE_FLOOR, _LARGEST_LOADING**2)

    def model(self, coefficients: FloatArray, noise: FloatArray, rank: int) -> Factors:
        """Return the model with coefficients, W' and μ below it, and ψ of standardised features."""
        location = self.centre
        if self.has_mean:
            location = location + self.scale * coefficients[rank]
        loadings = np.clip(coefficients[:rank], -_LARGEST_LOADING, _LARGEST_LOADING)
        return Factors(location, self.scale, loadings, noise)


def _centre_and_scale(
    table: FloatArray, weights: FloatArray, through_origin: bool
) -> tuple[FloatArray, FloatArray]:
    """Return centre and deviation of every feature, over its seen entries.

    The deviation is 0 if the feature does not vary, or is seen in fewer than two rows.
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
    rows: HalfSeenRows,
    start: Factors,
    *,
    common_noise: bool = False,
    max_steps: int = MAX_STEPS,
    tolerance: float = TOLERANCE,
) -> Fit:
    """Return the model that EM reaches from a start.

    Parameters
    ----------
    rows : HalfSeenRows
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
    >>> rows = HalfSeenRows(table)
    >>> model = fit_factors(rows, Spectrum(rows).start(1), common_noise=True).model
    >>> model.fill(np.array([[6.0, np.nan, np.nan]])).round(2).tolist()
    [[6.0, 7.0, 4.0]]
    """
    rank = start.rank
    coefficients, noise = rows.standardised(start)
    mean_noise = float(rows.counts @ noise) / max(1.0, float(rows.counts.sum()))
    if common_noise:
        noise[:] = mean_noise
    most_steps = int(MOST_WORK / step_work(max(1, len(rows)), rows.dim, max(1, rank)))
    likelihood, objective, evidence, n_steps = _kernels.em(
        rows.zero_filled,
        rows.seen,
        rows.weights,
        coefficients,
        noise,
        rank,
        mean_noise,
        NOISE_PRIOR,
        NOISE_FLOOR,
        common_noise,
        min(max_steps, max(1, most_steps)),
        tolerance * rows.n_entries,
    )
    return Fit(rows.model(coefficients, noise, rank), likelihood, objective, evidence, n_steps)


def step_work(n_rows: int, dim: int, rank: int) -> float:
    """Return the work of one EM step, in multiplications of a matrix product.

    Each row and each feature has its own system to solve.
    """
    return float(n_rows * rank * rank * dim) + _CUBE * (n_rows + dim) * float(rank) ** 3


class Spectrum:
    """Starts of EM from the corrected covariance of some rows, computed when needed."""

    def __init__(self, rows: HalfSeenRows) -> None:
        self._rows = rows
        self._covariance: FloatArray | CovarianceOperator | None = None
        self._values, self._vectors = np.empty(0), np.empty((rows.dim, 0))

    def start(self, rank: int) -> Factors:
        """Return a model of that rank to start from: the top eigenpairs, blurred."""
        if rank > len(self._values):
            self._values, self._vectors = self._pairs(rank)
        scales = np.sqrt(np.maximum(self._values[:rank], _START_VARIANCE))
        coefficients, rows = (self._vectors[:, :rank] * scales).T, self._rows
        if rows.has_mean:
            coefficients = np.vstack([coefficients, np.zeros(rows.dim)])
        return rows.model(coefficients, np.full(rows.dim, _START_NOISE), rank)

    def _pairs(self, rank: int) -> tuple[FloatArray, FloatArray]:
        dim = self._rows.dim
        if self._covariance is None:
            self._covariance = self._corrected()
        if isinstance(self._covariance, CovarianceOperator):
            return top_eigenpairs(self._covariance, rank, tolerance=_START_TOLERANCE)
        count = min(dim, max(rank, _FIRST_COUNT, 2 * len(self._values)))
        return top_eigenpairs(self._covariance, count)

    def _corrected(self) -> FloatArray | CovarianceOperator:
        rows = self._rows
        shares = np.maximum(rows.seen.sum(axis=0), 1.0) / max(1, len(rows))
        # With few rows, products are cheaper than the matrix, which may not fit in memory.
        if rows.dim > LARGEST_DENSE_DIM or len(rows) < _ROWS_FOR_MATRIX * rows.n_features:
            return CovarianceOperator(rows.zero_filled, shares)
        return corrected_covariance(rows.zero_filled.T @ rows.zero_filled, len(rows), shares)


# With fewer rows the search begins at rank 0, and with fewer than the second number every fit is
# compared with one from a fresh start: a fit to few rows may be wrong.
FEW_ROWS = 400
_FRESH_START_ROWS = 1000
# With a mean noise below this share of the variance, a fresh start cannot do better.
_NEGLIGIBLE = 1e-4
# The search ends after this many ranks in a row without improvement, at its beginning and later:
# two directions of equal variance may help only together.
_FIRST_PATIENCE = 3
_PATIENCE = 2
# Large ranks are tried in steps of this share: evidence hardly changes between neighbours.
_STEP_SHARE = 1 / 8
SEARCH_ROWS = 2000
"""The rank is chosen on this many rows, evenly spaced; the model is then fitted to all."""

# After this much work, as counted by `step_work`, a search returns the best rank so far: about .4
# seconds on one core.
_MOST_SEARCH_WORK = 4e9


class RankSearch:
    """Fits of several ranks to the same rows.

    The evidence averages the likelihood over all loadings, which a larger rank has more of. So it
    falls when another direction explains less than it costs, and there is no need to hold out
    entries: every entry is used for the fit, and no order of features or rows matters.

    Parameters
    ----------
    rows : HalfSeenRows
    last : Factors, optional
        The previous model; the fit of its rank also starts from it.
    most_work : float
        As counted by `step_work`; then the best rank so far is returned.

    Attributes
    ----------
    is_complete : bool
        Whether a larger rank was found to be worse, or not needed. Otherwise work ran out before.
    """

    def __init__(
        self,
        rows: HalfSeenRows,
        last: Factors | None = None,
        *,
        most_work: float = _MOST_SEARCH_WORK,
    ) -> None:
        self._rows, self._last, self._most_work = rows, last, most_work
        self._spectrum = Spectrum(rows)
        self._fits: dict[int, Fit] = {}
        self._work, self.is_complete = 0.0, True

    def fit(self, rank: int) -> Fit:
        """Fit a rank from the spectrum and, if the last model has it, from that; keep the best."""
        if rank not in self._fits:
            self._fits[rank] = self._better(rank)
        return self._fits[rank]

    def _better(self, rank: int) -> Fit:
        continued = None
        if self._last is not None and self._last.rank == rank:
            continued = self._counted(fit_factors(self._rows, self._last))
            if not self._may_gain(continued):
                return continued
        start = self._spectrum.start(rank)
        common = self._counted(fit_factors(self._rows, start, common_noise=True))
        fresh = self._counted(fit_factors(self._rows, common.model))
        # Below the tolerance of EM the two are equally good. The continued one is taken then, so
        # that rounding does not decide.
        least = TOLERANCE * self._rows.n_entries
        if continued is None or fresh.objective > continued.objective + least:
            return fresh
        return continued

    def run(self) -> Fit:
        """Return the fit with the largest evidence."""
        highest = self.identifiable_rank(None)
        last_rank = 0 if self._last is None else self._last.rank
        first = 0 if len(self._rows) < FEW_ROWS else min(last_rank, highest)
        best, misses, rank = self.fit(first), 0, first
        while rank < highest:
            rank = min(highest, rank + max(1, int(_STEP_SHARE * rank)))
            fit = self.fit(rank)
            misses = 0 if fit.evidence > best.evidence else misses + 1
            best = fit if misses == 0 else best
            patience = _FIRST_PATIENCE if best.model.rank == 0 else _PATIENCE
            if misses == patience or fit.model.explains_all:
                break
            if self._is_exhausted:
                self.is_complete = misses > 0
                break
        while best.model.rank == first > 0 and not self._is_exhausted:
            first -= max(1, int(_STEP_SHARE * first))
            fit = self.fit(first)
            best = fit if fit.evidence >= best.evidence else best
        return best

    @property
    def _is_exhausted(self) -> bool:
        return self._work > self._most_work

    def identifiable_rank(self, rank: int | None) -> int:
        """Return a rank, or the largest one with no more loadings than there are entries."""
        rows = self._rows
        n = rows.n_features
        most = min(n - 1, len(rows) - 1, rows.n_entries // (n + 1))
        return max(0, most if rank is None else min(most, rank))

    def _may_gain(self, fit: Fit) -> bool:
        noise = fit.model.noise[fit.model.scale > 0.0]
        return len(self._rows) < _FRESH_START_ROWS and bool(noise.mean() > _NEGLIGIBLE)

    def _counted(self, fit: Fit) -> Fit:
        rank = max(1, fit.model.rank)
        self._work += (1 + fit.n_steps) * step_work(len(self._rows), self._rows.dim, rank)
        return fit
