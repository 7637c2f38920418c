"""Prior scales of groups of features in the reward regression, chosen by evidence.

A reward is r = b + Σ_g φ_g'θ_g + c'δ_i + noise, with θ_g ~ N(0, σ²τ_g²), and the same for the
groups of columns of c. With θ and δ integrated out, the rewards have the covariance σ²K,

    K = I + Σ_g τ_g² Φ_gΦ_g',

where Φ_g for a group of c has columns for each item, which are 0 for rewards of other items. With
b and σ eliminated the log-evidence is

    −½((n − 1 + n₀) log σ² + log det K + log 1'K⁻¹1),
    (n − 1 + n₀)σ² = min_b (r − b1)'K⁻¹(r − b1) + .05 n₀,

for rewards divided by their root mean square, where n₀ = 2 + n/50 pseudo-rewards keep σ from 0;
without an intercept n takes the place of n − 1, and log 1'K⁻¹1 is left out. Each log τ_g has a
prior N(centre, 1): while rewards carry no evidence about a scale, its prior keeps it large enough
to explore. For item effects the centre is relative to the deviation between items' means: an item
that is played again and again shows how small the noise is, but nothing about other items.

Coefficients are a = θ/τ ~ N(0, σ²) here, and θ̄ = θ/(στ) ~ N(0, I) in `reward_model` and `items`.
With δ integrated out, a has the precision V/σ², V = I + Σφφ' − Σ_i B_i'A_i⁻¹B_i, φ times τ. With
a_g = E[θ_g]/τ_g and C_gg the posterior covariance of the coefficients of a group in units of
their prior covariance, the gradient of the evidence, to which that of the prior is added, is

    ∂/∂ log τ_g = ‖a_g‖²/σ² − tr(I − C_gg),

and the average information 2 a_g'(I − C)_gl a_l/σ² takes the place of the Hessian (Gilmour,
Thompson and Cullis, Average information REML, 1995), less what eliminating σ takes, plus the prior,
and more on the diagonal where a scale is far too large: a few steps move all scales at once.

For everything that differs by item, τ² is its posterior mean: while few items were played its
posterior is wide, and the mode understates how different the others may be.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotri, dtrtri

from halfseen.latent.groups import ITEM, group_of
from halfseen.latent.items import ItemStatistics
from halfseen.values import FloatArray

Groups = Mapping[str, NDArray[np.int64]]
"""For each prior scale the indices of the columns that have it."""

LOWEST, HIGHEST = -6.0, 8.0
"""Of log τ."""

# The search ends when a step is expected to gain less than this, or after so many.
_LEAST_GAIN = 0.01
_MOST_STEPS = 12
# No scale moves farther than this in one step; a step that loses is shortened down to this.
_LONGEST_STEP, _SHORTEST_STEP = 2.0, 0.05
# Least information about the log scale of items: rounding can make it negative.
_LEAST_INFORMATION = 0.25
# The noise estimate includes pseudo-rewards whose squared residual is this share of the rewards'
# variance. There are so many, as a few rewards do not prove that there is no noise, and so many per
# reward, as no number of labels that are predicted without error proves that the model is exact: σ²
# is at least about a thousandth of the variance.
_PRIOR_REWARDS, _PRIOR_RATE = 2.0, 0.02
_PRIOR_SHARE = 0.05
# Smallest variance between items' means, in units of the mean square: without an intercept all
# rewards may be equal.
_LEAST_ITEM_VARIANCE = 1e-6
# Matrices of this size are inverted one by one.
_LARGE = 32
# What is below this share of the largest is rounding.
_ROUNDING = 1e-12
# Nodes and weights of Gauss–Hermite quadrature for a normal distribution.
_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(7)


class Scales(NamedTuple):
    """Scales of a reward regression.

    Attributes
    ----------
    logs : dict
        log τ of each group.
    noise_scale : float
        σ > 0, in the unit of the rewards.
    n_effective : float
        Effective number of coefficients, tr(I − C): the mean squared error of estimates is about
        σ² times this over the number of rewards.
    """

    logs: dict[str, float]
    noise_scale: float
    n_effective: float = 0.0

    def log_of(self, group: str) -> float:
        """Return log τ of a group; a category that came later has that of the other columns."""
        return self.logs[group] if group in self.logs else self.logs[group_of(group)]

    def write(self, groups: Groups, taus: FloatArray) -> None:
        """Write τ of each column."""
        for group, columns in groups.items():
            taus[columns] = math.exp(self.log_of(group))


class SufficientStatistics(NamedTuple):
    """What the posterior depends on: products of features and rewards.

    Attributes
    ----------
    products : ndarray, shape (n_features + 1, n_features + 1)
        Σ(φ, r)(φ, r)' over the rewards, whose first feature is 1, or 0 without an intercept.
    items : ItemStatistics
        By item: the columns of Σcc', then those of B = Σcφ', then s = Σcr.
    n_rewards : float
    pure_error_squares : float
        Sum of squared rewards that `products` lack: of equal arms around their means.
    """

    products: FloatArray
    items: ItemStatistics
    n_rewards: float
    pure_error_squares: float

    def in_unit(self, unit: float) -> "SufficientStatistics":
        """Return the same with rewards divided by a unit."""
        products, sums = self.products.copy(), self.items.sums.copy()
        products[-1] /= unit
        products[:, -1] /= unit
        sums[:, :, -1] /= unit
        items = self.items._replace(sums=sums)
        return SufficientStatistics(
            products, items, self.n_rewards, self.pure_error_squares / unit**2
        )

    def select(self, features: Any, item_columns: Any) -> "SufficientStatistics":
        """Return the statistics of some of the columns of φ, and of c, given by their indices."""
        k, columns = self.items.n_columns, np.append(features, len(self.products) - 1)
        sums = self.items.sums[:, item_columns][:, :, np.concatenate([item_columns, k + columns])]
        return self._replace(
            products=self.products[np.ix_(columns, columns)], items=self.items._replace(sums=sums)
        )

    def items_integrated_out(self, taus: FloatArray) -> "Marginal":
        """Return what remains with all coefficients of items integrated out.

        `taus`, shape (n_item_columns,), are their prior deviations D. With A = I + DΣcc'D and
        [B, s] = DΣc(φ, r)', the products become Σ(φ, r)(φ, r)' − Σ_i [B, s]'A⁻¹[B, s].
        """
        k, sums = self.items.n_columns, self.items.sums
        covariances, log_dets = _item_covariances(sums[:, :, :k], taus)
        outer = np.array(sums[:, :, k:], order="C")
        outer *= taus[:, None]
        slopes = covariances @ outer
        flat = (-1, outer.shape[2])
        explained = outer.reshape(flat).T @ slopes.reshape(flat)
        return Marginal(self.products - explained, covariances, slopes, log_dets)

    def contexts_integrated_out(self, taus: FloatArray) -> "SufficientStatistics":
        """Return the statistics with all coefficients of items but their effects integrated out.

        The column of effects, the first one of c, is treated like the features.
        """
        k, sums, taus = self.items.n_columns, self.items.sums, taus[1:]
        covariances, _ = _item_covariances(sums[:, 1:, 1:k], taus)
        outer = np.concatenate([sums[:, 1:, :1], sums[:, 1:, k:]], axis=2)
        outer *= taus[:, None]
        slopes = covariances @ outer
        flat = (-1, outer.shape[2] - 1)
        explained = outer[:, :, 1:].reshape(flat).T @ slopes[:, :, 1:].reshape(flat)
        kept = np.concatenate([sums[:, :1, :1], sums[:, :1, k:]], axis=2)
        kept -= outer[:, :, :1].transpose(0, 2, 1) @ slopes
        return self._replace(
            products=self.products - explained, items=self.items._replace(sums=kept)
        )


def _item_covariances(products: FloatArray, taus: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return A⁻¹ and log det A of each item, A = I + DΣcc'D, given Σcc' and D."""
    precisions = taus[:, None] * products * taus
    diagonal = np.arange(len(taus))
    # Less than its share of the trace would be lost to rounding.
    traces = np.trace(precisions, axis1=1, axis2=2)
    precisions[:, diagonal, diagonal] += np.maximum(1.0, _ROUNDING * traces)[:, None]
    precisions, roots = safe_cholesky(precisions)
    log_dets = 2.0 * np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
    return _inverses(precisions, roots), log_dets


class Marginal(NamedTuple):
    """Statistics with item coefficients integrated out.

    Attributes
    ----------
    products : ndarray, shape (n_features + 1, n_features + 1)
        What remains of Σ(φ, r)(φ, r)'.
    covariances : ndarray, shape (n_items, n_item_columns, n_item_columns)
        A⁻¹.
    slopes : ndarray, shape (n_items, n_item_columns, n_features + 1)
        A⁻¹[B, s].
    log_dets : ndarray, shape (n_items,)
        log det A.
    """

    products: FloatArray
    covariances: FloatArray
    slopes: FloatArray
    log_dets: FloatArray


class CoefficientPosterior(NamedTuple):
    """The posterior of all coefficients at some scales.

    Attributes
    ----------
    log_density : float
        Of the scales: log-evidence plus log-prior.
    noise_variance : float
        σ².
    offsets : ndarray
        log τ minus their prior centres.
    taus : ndarray, shape (n_features − 1,)
        τ of each feature.
    intercept_precision : float
        With item coefficients integrated out; 1 without an intercept.
    column_means : ndarray, shape (n_features,)
        Of features and rewards, which eliminate the intercept; 0 without one.
    root_inverse : ndarray, shape (n_features − 1, n_features − 1)
        L⁻¹ with LL' = V.
    mean : ndarray, shape (n_features − 1,)
        a = E[θ]/τ.
    marginal : Marginal
    """

    log_density: float
    noise_variance: float
    offsets: FloatArray
    taus: FloatArray
    intercept_precision: float
    column_means: FloatArray
    root_inverse: FloatArray
    mean: FloatArray
    marginal: Marginal


class _ItemMoments(NamedTuple):
    """Posterior means and variances of δ in units of τ, (n_items, k), and slopes behind them.

    `on_theta`, shape (n_items · k, n_features − 1), and `on_intercept`, shape (n_items, k), are
    by how much δ falls when θ, or the intercept in units of its deviation, grows.
    """

    means: FloatArray
    variances: FloatArray
    on_theta: FloatArray
    on_intercept: FloatArray


class Evidence:
    """Log posterior density of the scales, up to a constant.

    `posterior` is the density at given scales, with all that it is made of, `derivatives` are its
    slope and curvature, and `maximise` climbs by Newton-type steps.

    Parameters
    ----------
    statistics : SufficientStatistics
        Of rewards that are centred if there is an intercept, and not all equal.
    columns, item_columns : mapping
        For each group the indices of its columns, of norm about 1: of φ, and of c.
    centres : mapping
        Centre of each group's log τ.
    intercept : bool

    Attributes
    ----------
    unit : float
        Root mean square of the rewards, in which σ is measured.
    groups : list of str
        In the order of log τ.
    """

    def __init__(
        self,
        statistics: SufficientStatistics,
        columns: Groups,
        item_columns: Groups,
        centres: Mapping[str, float],
        *,
        intercept: bool = True,
    ) -> None:
        total = float(statistics.products[-1, -1]) + statistics.pure_error_squares
        self.unit = math.sqrt(total / statistics.n_rewards)
        self._statistics, self._intercept = statistics.in_unit(self.unit), intercept
        self._n_groups = len(columns)
        self.groups = [*columns, *item_columns]
        self._centres = np.array([centres[group_of(group)] for group in self.groups])
        self._n_pseudo = _PRIOR_REWARDS + _PRIOR_RATE * statistics.n_rewards
        self._n = statistics.n_rewards - intercept + self._n_pseudo
        self._members = _indicators(columns, len(statistics.products) - 1)[1:]
        self._item_members = _indicators(item_columns, statistics.items.n_columns)
        self._is_item = np.array([float(group == ITEM) for group in self.groups])
        self._log_item_deviation = self._between_items()

    def _between_items(self) -> float:
        """Return the log deviation between the items' means, at least that which noise causes.

        A single item says nothing about it: then that of the rewards.
        """
        items, n = self._statistics.items, self._statistics.n_rewards
        if len(items.keys) < 2:
            return 0.0
        counts, totals = items.counts, items.sums[:, 0, -1]
        means = totals / counts
        by_chance = max(0.0, n - float(totals @ means)) * len(means) / n**2
        return 0.5 * math.log(max(float(means.var()), by_chance, _LEAST_ITEM_VARIANCE))

    def maximise(self, start: Mapping[str, float]) -> Scales:
        """Return the most likely scales, found from others; by item the mean of τ² given these."""
        pairs = zip(self.groups, self._centres.tolist(), strict=True)
        logs = np.array([start.get(group, centre) for group, centre in pairs])
        best = self.posterior(logs)
        gradient, information = self.derivatives(best)
        for _ in range(_MOST_STEPS):
            step = _newton_step(logs, gradient, information)
            if 0.5 * float(gradient @ step) < _LEAST_GAIN:
                break
            moved = np.clip(logs + step, LOWEST, HIGHEST)
            tried = self.posterior(moved)
            while tried.log_density < best.log_density and np.abs(step).max() > _SHORTEST_STEP:
                step = 0.25 * step
                moved = np.clip(logs + step, LOWEST, HIGHEST)
                tried = self.posterior(moved)
            if tried.log_density <= best.log_density:
                break
            logs, best = moved, tried
            gradient, information = self.derivatives(best)
        if len(self.groups) > self._n_groups:
            logs = self._with_mean_squares(logs, information)
            best = self.posterior(logs)
        found = dict(zip(self.groups, logs.tolist(), strict=True))
        n_effective = float(self._n_effective(best, self._item_moments(best)).sum())
        return Scales(found, self.unit * math.sqrt(best.noise_variance), n_effective)

    def _with_mean_squares(self, logs: FloatArray, information: FloatArray) -> FloatArray:
        """Return the scales with ½ log E[τ²] for each group of items, given the others' modes.

        That of effects, the first group, is integrated by Gauss–Hermite quadrature between the
        mode of its density and that of τ² times it, which is two variances above. Of other groups,
        which have many coefficients per item, the density is approximated by a normal one.
        """
        found, place = logs.copy(), self._n_groups
        variances = 1.0 / np.maximum(information.diagonal()[place:], _LEAST_INFORMATION)
        found[place:] += variances
        nodes = 0.5 * variances[0] + math.sqrt(variances[0]) * _NODES
        item_taus = self._item_members @ np.exp(logs[place:])
        effects = self._statistics.contexts_integrated_out(item_taus)
        values = []
        for node in nodes.tolist():
            moved = logs.copy()
            moved[place] += node
            values.append(self.posterior(moved, effects).log_density)
        weights = np.log(_NODE_WEIGHTS) + np.array(values) + 0.5 * _NODES**2
        weights = np.exp(weights - weights.max())
        mean = float(weights @ np.exp(2.0 * nodes) / weights.sum())
        found[place] = logs[place] + 0.5 * math.log(mean)
        return np.clip(found, LOWEST, HIGHEST)

    def posterior(
        self, logs: FloatArray, statistics: SufficientStatistics | None = None
    ) -> CoefficientPosterior:
        """Return the posterior at some log τ.

        By default of all rewards; others may have items with an effect alone.
        """
        given = self._statistics if statistics is None else statistics
        by_group = np.exp(logs)
        taus = self._members @ by_group[: self._n_groups]
        item_taus = self._item_members @ by_group[self._n_groups :]
        marginal = given.items_integrated_out(item_taus[: given.items.n_columns])
        products, log_det = marginal.products, float(marginal.log_dets.sum())
        intercept_precision, column_means = 1.0, np.zeros(len(products) - 1)
        if self._intercept:  # eliminated
            intercept_precision = max(float(products[0, 0]), _ROUNDING * given.n_rewards)
            column_means = products[0, 1:] / intercept_precision
            log_det += math.log(intercept_precision / given.n_rewards)
        products = products[1:, 1:] - intercept_precision * column_means[:, None] * column_means
        precision = taus[:, None] * products[:-1, :-1] * taus
        # Less than its share of the trace would be lost to rounding.
        precision.ravel()[:: len(taus) + 1] += max(1.0, _ROUNDING * float(precision.trace()))
        root = safe_cholesky(precision[None])[1][0]
        root_inverse = _inverse(root)
        white = root_inverse @ (taus * products[:-1, -1])
        residual = (
            max(0.0, float(products[-1, -1]) - float(white @ white)) + given.pure_error_squares
        )
        noise_variance = (residual + self._n_pseudo * _PRIOR_SHARE) / self._n
        log_det += 2.0 * float(np.log(root.diagonal()).sum())
        offsets = logs - self._centres
        offsets += self._is_item * (0.5 * math.log(noise_variance) - self._log_item_deviation)
        penalty = float(offsets @ offsets)
        return CoefficientPosterior(
            log_density=-0.5 * (self._n * math.log(noise_variance) + log_det + penalty),
            noise_variance=noise_variance,
            offsets=offsets,
            taus=taus,
            intercept_precision=intercept_precision,
            column_means=column_means,
            root_inverse=root_inverse,
            mean=white @ root_inverse,
            marginal=marginal,
        )

    def derivatives(self, at: CoefficientPosterior) -> tuple[FloatArray, FloatArray]:
        """Return the gradient of the log density by log τ, and the average information."""
        items = self._item_moments(at)
        squares = self._by_group(at.mean**2, (items.means**2).sum(axis=0)) / at.noise_variance
        n_effective = self._n_effective(at, items)
        information = self._average_information(at, items, squares)
        # Far from the mode, where a scale is too large for its coefficients, it understates.
        information += np.diag(2.0 * np.maximum(n_effective - squares, 0.0))
        # The prior; that of item effects depends on the noise, and so on all scales.
        slopes = np.eye(len(squares)) - self._is_item[:, None] * (squares / self._n)
        information += slopes.T @ slopes
        return squares - n_effective - at.offsets @ slopes, information

    def _n_effective(self, at: CoefficientPosterior, items: _ItemMoments) -> FloatArray:
        """Return tr(I − C_gg) of each group."""
        variances = (at.root_inverse * at.root_inverse).sum(axis=0)
        return self._by_group(1.0 - variances, (1.0 - items.variances).sum(axis=0))

    def _by_group(self, features: FloatArray, item_columns: FloatArray) -> FloatArray:
        """Return the sums of values of the columns of φ, and of c, over each group."""
        return np.append(features @ self._members, item_columns @ self._item_members)

    def _item_moments(self, at: CoefficientPosterior) -> _ItemMoments:
        covariances, slopes = at.marginal.covariances, at.marginal.slopes
        n_items, k = covariances.shape[:2]
        ones, slopes = slopes[:, :, 0], slopes[:, :, 1:]
        slopes = slopes - ones[:, :, None] * at.column_means  # with the intercept eliminated
        means = slopes[:, :, -1] - slopes[:, :, :-1] @ (at.taus * at.mean)
        on_theta = (slopes[:, :, :-1] * at.taus).reshape(n_items * k, len(at.taus))
        on_intercept = math.sqrt(self._intercept / at.intercept_precision) * ones
        by_theta = ((on_theta @ at.root_inverse.T) ** 2).sum(axis=1).reshape(n_items, k)
        variances = np.diagonal(covariances, axis1=1, axis2=2) + by_theta + on_intercept**2
        return _ItemMoments(means, variances, on_theta, on_intercept)

    def _average_information(
        self, at: CoefficientPosterior, items: _ItemMoments, squares: FloatArray
    ) -> FloatArray:
        """Return 2 a_g'(I − C)_gl a_l/σ² for each two groups, with σ eliminated."""
        n_items, k = items.means.shape
        features = np.zeros((len(at.mean), len(squares)))
        features[:, : self._n_groups] = at.mean[:, None] * self._members
        effects = np.zeros((n_items, k, len(squares)))
        effects[:, :, self._n_groups :] = items.means[:, :, None] * self._item_members
        rows = effects.reshape(n_items * k, len(squares))
        shared = rows.T @ (at.marginal.covariances @ effects).reshape(rows.shape)
        on_intercept = items.on_intercept.ravel() @ rows
        white = at.root_inverse @ (features - items.on_theta.T @ rows)
        shared += on_intercept[:, None] * on_intercept + white.T @ white
        information = 2.0 * (np.diag(squares) - shared / at.noise_variance)
        return np.asarray(information - 2.0 / self._n * squares[:, None] * squares)


def _newton_step(logs: FloatArray, gradient: FloatArray, information: FloatArray) -> FloatArray:
    """Return a Newton-type step; a scale at a bound does not move beyond it."""
    free = ((logs > LOWEST) | (gradient > 0.0)) & ((logs < HIGHEST) | (gradient < 0.0))
    step = np.zeros(len(logs))
    step[free] = np.linalg.solve(information[np.ix_(free, free)], gradient[free])
    longest = float(np.abs(step).max(initial=0.0))
    return step * min(1.0, _LONGEST_STEP / max(longest, 1e-300))


def _inverse(root: FloatArray) -> FloatArray:
    """Return the inverse of a lower triangular matrix."""
    return np.asarray(dtrtri(root.T, lower=0)[0]).T if len(root) else root


def _inverses(matrices: FloatArray, roots: FloatArray) -> FloatArray:
    """Return the inverses of positive matrices (n, k, k), given their Cholesky factors."""
    if roots.shape[1] < _LARGE:  # numpy is faster for many small ones
        return np.asarray(np.linalg.inv(matrices))
    upper = np.stack([np.triu(dpotri(root.T)[0]) for root in roots])
    inverses: FloatArray = upper + upper.transpose(0, 2, 1)
    inverses[:, np.arange(roots.shape[1]), np.arange(roots.shape[1])] *= 0.5
    return inverses


def reduced_design(
    phi: FloatArray, columns: Groups
) -> tuple[FloatArray, dict[str, NDArray[np.int64]]]:
    """Return φ with no more columns than rows in each group, and the same products by group.

    The evidence depends on the products ΦgΦg' alone. With fewer rewards than columns,
    Φg' = QR gives the columns R'.
    """
    blocks, kept, first = [phi[:, :1]], {}, 1
    for group, old in columns.items():
        block = phi[:, old]
        if len(block) < block.shape[1]:
            block = np.asarray(np.linalg.qr(block.T, mode="r")).T
        blocks.append(block)
        kept[group] = np.arange(first, first + block.shape[1])
        first += block.shape[1]
    return np.hstack(blocks), kept


def safe_cholesky(blocks: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return blocks I + a positive matrix each, (n, k, k), and their Cholesky factors."""
    try:
        return blocks, np.asarray(np.linalg.cholesky(blocks))
    except np.linalg.LinAlgError:  # the rest is lost to rounding: no eigenvalue is below 1
        values, vectors = np.linalg.eigh(0.5 * (blocks + blocks.transpose(0, 2, 1)))
        rows = np.sqrt(np.maximum(values, 1.0))[:, :, None] * vectors.transpose(0, 2, 1)
        roots = np.asarray(np.linalg.qr(rows, mode="r")).transpose(0, 2, 1)
        roots = roots * np.where(np.diagonal(roots, axis1=1, axis2=2) < 0.0, -1.0, 1.0)[:, None]
        return roots @ roots.transpose(0, 2, 1), roots


def _indicators(groups: Groups, n_columns: int) -> FloatArray:
    """Return a matrix with a 1 where a column belongs to a group."""
    members = np.zeros((n_columns, len(groups)))
    for group, columns in enumerate(groups.values()):
        members[columns, group] = 1.0
    return members
