"""A factor model of half-seen rows: mean, loadings, noise and rank, from the seen entries alone.

A row is x = μ + Wz + ε with z ~ N(0, I) in `rank` dimensions and independent noise ε_j ~ N(0, ψ_j).
Features are standardised first, so units and offsets do not matter. With the seen entries Ω of a
row, M = I + W_Ω'Ψ_Ω⁻¹W_Ω and f = (z, 1), one step of EM (`fit_factors`) is

    E[z] = M⁻¹W_Ω'Ψ_Ω⁻¹(x_Ω − μ_Ω),   Cov[z] = M⁻¹,
    (w_j, μ_j) = (Σ E[ff'])⁻¹ Σ x_j E[f],
    ψ_j = (q_j + 4ψ̄)/(n_j + 4),   ψ̄ = Σ q_j / Σ n_j,

where sums are over the rows that show feature j, n_j is their number, and q_j the expected sum of
squared residuals, Σ x_j² − (w_j, μ_j)'Σ x_j E[f]. Hidden entries are not part of the likelihood, so
no observation probability is needed.

A fit of a larger rank starts from one of a smaller rank and the top eigenvectors of the covariance
of its residuals (`extended`), one of a smaller rank from the top singular vectors of Ψ^(−½)W
(`reduced`). The rank (`choose_rank`) has the largest evidence, the likelihood averaged over all
loadings by Laplace's method:

    log-likelihood − ½ Σ_j log det(I + Σ E[zz']/ψ_j) − ½ ‖W‖².

A larger rank has more loadings to average over, so the evidence falls when a direction explains
less than it costs, and no entries need to be held out.
"""

from typing import NamedTuple

import numpy as np

from halfseen.lazy import LazyModule
from halfseen.linear.covariance import LARGEST_DENSE_DIM, CovarianceOperator, corrected_covariance
from halfseen.linear.eigen import top_eigenpairs
from halfseen.linear.lift import Lift
from halfseen.values import FloatArray

_kernels = LazyModule("halfseen.kernels.factors")
_arm_features = LazyModule("halfseen.kernels.arm_features")

NOISE_FLOOR = 1e-6
"""Smallest ψ_j, as a share of the feature's variance: without a floor the likelihood of exactly
low-rank rows has no maximum."""

NOISE_PRIOR = 4.0
"""ψ_j is estimated as if the feature had this many more entries, of the mean noise ψ̄."""

MAX_STEPS = 60
TOLERANCE = 1e-3
"""EM stops when a step increases the log-likelihood by less than this per seen entry."""

LARGEST_LOADING = 1e5
"""Loadings and means of a start, in deviations of the present rows, are clipped here: larger ones
come from rows in another unit."""

FEW_ROWS = 400
"""With fewer rows a fit may be wrong, so that none starts from the last one."""

SEARCH_ROWS = 2000
"""Rows on which a rank is chosen, at most."""

MOST_WORK = 4e9
"""Largest work of one fit, and by default of a search, as counted by `step_work`: about .4 seconds
on one core."""

# A feature whose deviation is below this share of its largest entry is constant up to rounding.
_CONSTANT = 1e-12
# Variance of a new latent dimension along its direction, in units of the noise, at least.
_LEAST_VARIANCE = 0.1
# With fewer rows than this share of the features, products are cheaper than a covariance matrix.
_ROWS_FOR_MATRIX = 1 / 8
# Beyond the rows' rank eigenvalues lie close together, and a start need not separate them.
_START_TOLERANCE = 1e-2
# The search ends after this many ranks in a row without a larger evidence: two directions of equal
# variance may help only together.
_PATIENCE = 2
# Large ranks are tried in steps of this share: the evidence hardly changes between neighbours.
_STEP_SHARE = 1 / 8
# Work outside matrix products takes this many times longer (measured).
_CUBE = 4.0


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
        _arm_features.standardise(table, self.location, self.scale, np.sqrt(self.noise), rest)
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


class Fit(NamedTuple):
    """A fitted model and details of the fit.

    Attributes
    ----------
    model : Factors
    factor_means : ndarray, shape (rank + 1, n), or (rank, n) without a mean
        E[f] of each row under `model`.
    log_likelihood : float
        Of all seen entries, standardised, under `model`.
    evidence : float
        Logarithm of the likelihood averaged over all loadings, by Laplace's method; the rank with
        the largest evidence is chosen.
    n_steps : int
        Steps of EM.
    work : float
        As counted by `step_work`.
    """

    model: Factors
    factor_means: FloatArray
    log_likelihood: float
    evidence: float
    n_steps: int
    work: float


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
        self.centre, self.scale = np.empty(self.dim), np.empty(self.dim)
        self.zero_filled, self.seen = np.empty(table.shape), np.empty(table.shape)
        _arm_features.standardise_rows(
            table,
            self.weights,
            self.has_mean,
            _CONSTANT,
            self.centre,
            self.scale,
            self.zero_filled,
            self.seen,
        )
        # Features that were never seen count as if they were not there.
        self.n_features = int(np.count_nonzero((table == table).any(axis=0)))
        self.n_entries = int(np.count_nonzero(self.seen))

    def __len__(self) -> int:
        return len(self.zero_filled)

    @property
    def largest_rank(self) -> int:
        """The largest rank with no more loadings than there are entries."""
        n = self.n_features
        return max(0, min(n - 1, len(self) - 1, self.n_entries // (n + 1)))

    def empty_model(self) -> Factors:
        """Return the model of rank 0 with each feature's own mean and variance."""
        return self.model(np.zeros((1, self.dim)), np.ones(self.dim), 0)

    def standardised(self, model: Factors) -> tuple[FloatArray, FloatArray]:
        """Return coefficients, W' with μ below it if there is a mean, and ψ in these units."""
        known = (model.scale > 0.0) & (self.scale > 0.0)
        unit = np.where(known, self.scale, 1.0)
        ratio = np.minimum(np.where(known, model.scale / unit, 0.0), LARGEST_LOADING)
        coefficients = model.loadings * ratio
        if self.has_mean:
            mean = np.where(known, (model.location - self.centre) / unit, 0.0)
            coefficients = np.vstack([coefficients, mean])
        noise = np.where(known, model.noise * ratio * ratio, 1.0)
        np.clip(coefficients, -LARGEST_LOADING, LARGEST_LOADING, out=coefficients)
        return np.ascontiguousarray(coefficients), np.clip(noise, NOISE_FLOOR, LARGEST_LOADING**2)

    def model(self, coefficients: FloatArray, noise: FloatArray, rank: int) -> Factors:
        """Return the model with coefficients, W' and μ below it, and ψ of standardised features."""
        location = self.centre
        if self.has_mean:
            location = location + self.scale * coefficients[rank]
        loadings = np.clip(coefficients[:rank], -LARGEST_LOADING, LARGEST_LOADING)
        return Factors(location, self.scale, loadings, noise)


def fit_factors(
    rows: HalfSeenRows, start: Factors, *, max_steps: int = MAX_STEPS, tolerance: float = TOLERANCE
) -> Fit:
    """Return the model that EM reaches from a start, which has its rank.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> table = 5.0 + random.normal(size=(60, 1)) * np.array([[1.0, 2.0, -1.0]])
    >>> table[random.random(table.shape) < 0.3] = np.nan
    >>> rows = HalfSeenRows(table)
    >>> empty = fit_factors(rows, rows.empty_model())
    >>> model = fit_factors(rows, extended(rows, empty, 1)).model
    >>> model.fill(np.array([[6.0, np.nan, np.nan]])).round(2).tolist()
    [[6.0, 7.0, 4.0]]
    """
    coefficients, noise = rows.standardised(start)
    factor_means = np.empty((len(coefficients), len(rows)))
    one_step = step_work(len(rows), rows.dim, start.rank)
    log_likelihood, evidence, n_steps = _kernels.em(
        rows.zero_filled,
        rows.seen,
        rows.weights,
        coefficients,
        noise,
        factor_means,
        start.rank,
        NOISE_PRIOR,
        NOISE_FLOOR,
        min(max_steps, max(1, int(MOST_WORK / one_step))),
        tolerance * rows.n_entries,
    )
    model = rows.model(coefficients, noise, start.rank)
    work = (1 + n_steps) * one_step
    return Fit(model, factor_means, log_likelihood, evidence, n_steps, work)


def step_work(n_rows: int, dim: int, rank: int) -> float:
    """Return the work of one EM step, in multiplications of a matrix product.

    Each row and each feature has its own system to solve.
    """
    rank = max(1, rank)
    return float(max(1, n_rows) * dim * rank**2) + _CUBE * (n_rows + dim) * float(rank) ** 3


def extended(rows: HalfSeenRows, fit: Fit, rank: int) -> Factors:
    """Return a start of a larger rank: the fit, and directions that its residuals have in common.

    These are the top eigenvectors of the corrected covariance of (x − μ − W E[z])/√ψ.
    """
    coefficients, noise = rows.standardised(fit.model)
    deviations, old = np.sqrt(noise), fit.model.rank
    residuals = (rows.zero_filled - rows.seen * (fit.factor_means.T @ coefficients)) / deviations
    shares = np.maximum(rows.seen.sum(axis=0), 1.0) / len(rows)
    if rows.dim > LARGEST_DENSE_DIM or len(rows) < _ROWS_FOR_MATRIX * rows.n_features:
        operator = CovarianceOperator(residuals, shares)
        values, vectors = top_eigenpairs(operator, rank - old, tolerance=_START_TOLERANCE)
    else:
        covariance = corrected_covariance(residuals.T @ residuals, len(rows), shares)
        values, vectors = top_eigenpairs(covariance, rank - old)
    new = deviations * (vectors * np.sqrt(np.maximum(values - 1.0, _LEAST_VARIANCE))).T
    return rows.model(np.vstack([coefficients[:old], new, coefficients[old:]]), noise, rank)


def reduced(model: Factors, rank: int) -> Factors:
    """Return the model with its strongest directions only, if it has more than so many."""
    if model.rank <= rank:
        return model
    deviations = np.sqrt(model.noise)
    _, values, directions = np.linalg.svd(model.loadings / deviations, full_matrices=False)
    return model._replace(loadings=values[:rank, None] * directions[:rank] * deviations)


def fit_rank(rows: HalfSeenRows, rank: int, last: Factors | None = None) -> Fit:
    """Return a fit of a given rank, or of the largest one that the rows determine."""
    start, rank = _start(rows, last), min(rank, rows.largest_rank)
    if start.rank < rank:
        start = extended(rows, fit_factors(rows, start), rank)
    return fit_factors(rows, reduced(start, rank))


def choose_rank(
    rows: HalfSeenRows, last: Factors | None = None, *, most_work: float = MOST_WORK
) -> Fit:
    """Return the fit with the largest evidence.

    The search starts from the last model, with few rows from rank 0, and goes up until two larger
    ranks have no larger evidence. If none had, it goes down. A fit that explains all entries ends
    it.

    Parameters
    ----------
    rows : HalfSeenRows
    last : Factors, optional
        The previous model.
    most_work : float
        As counted by `step_work`; then the best fit so far is returned. One larger rank is tried
        in any case.
    """
    first = fit_factors(rows, reduced(_start(rows, last), rows.largest_rank))
    best = fit = first
    work, rank, n_worse = fit.work, fit.model.rank, 0
    is_over = fit.model.explains_all
    while not is_over and rank < rows.largest_rank and n_worse < _PATIENCE:
        rank = min(rows.largest_rank, rank + max(1, int(_STEP_SHARE * rank)))
        fit = fit_factors(rows, extended(rows, fit, rank))
        n_worse = 0 if fit.evidence > best.evidence else n_worse + 1
        best, work = best if n_worse else fit, work + fit.work
        is_over = fit.model.explains_all or work > most_work
    fit, rank = first, first.model.rank
    while not is_over and best is fit and rank > 0:
        rank -= max(1, int(_STEP_SHARE * rank))
        fit = fit_factors(rows, reduced(fit.model, rank))
        best, work = fit if fit.evidence >= best.evidence else best, work + fit.work
        is_over = work > most_work
    return best


def _start(rows: HalfSeenRows, last: Factors | None) -> Factors:
    return rows.empty_model() if last is None or len(rows) < FEW_ROWS else last
