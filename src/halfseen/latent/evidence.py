"""Prior scales of groups of features in the reward regression, chosen by evidence.

A reward is r = b + Σ_g φ_g'θ_g + c'δ_i + noise, with θ_g ~ N(0, σ²τ_g²) and δ_i ~ N(0, σ²τ_h²) for
the columns of group h. With θ and δ integrated out, the rewards have the covariance σ²K,

    K = I + Σ_g τ_g² Φ_gΦ_g' + Σ_h τ_h² Z_hZ_h',

and with b and σ eliminated the log-evidence is −½(n log(r'Pr/n) + log det K). Each x_g = log τ_g
has a prior N(centre, 1): while rewards carry no evidence about a scale, its prior keeps it large
enough to explore. For item effects the centre is relative to the deviation between items' means: an
item that is played again and again shows how small the noise is, but nothing about other items.

With a_g the posterior mean and M_gg the posterior covariance of the coefficients of a group, in
units of their prior deviations and of σ, the gradient is

    ∂/∂x_g = ‖a_g‖²/σ² − tr(I − M_gg),

and the average information 2 a_g'(I − M)_gh a_h/σ² takes the place of the Hessian (Gilmour,
Thompson and Cullis, Average information REML, 1995): a few steps move all scales at once.

For everything that differs by item, τ² is its posterior mean: while few items were played its
posterior is wide, and the mode understates how different the others may be.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from halfseen.latent.items import Block, Items, ItemSums
from halfseen.values import FloatArray

ITEM = "item"
"""The group of item effects."""

LOWEST, HIGHEST = -6.0, 8.0
"""Of log τ."""

# The search ends when a step is expected to gain less than this, or after so many.
_LEAST_GAIN = 0.01
_MOST_STEPS = 12
# No scale moves farther than this in one step.
_LONGEST_STEP = 2.0
# The noise estimate includes this many pseudo-rewards whose squared residual is this share of the
# rewards' variance: a few rewards do not prove that there is no noise.
_PRIOR_REWARDS = 2.0
_PRIOR_SHARE = 0.05
# Smallest variance between items' means, in units of the mean square: without an intercept all
# rewards may be equal.
_LEAST_SPREAD = 1e-6
# What is below this share of the largest is rounding.
_ROUNDING = 1e-12
# Nodes and weights of Gauss and Hermite's rule for a normal law.
_NODES, _NODE_WEIGHTS = np.array([-1.0, 0.0, 1.0]) * math.sqrt(3.0), np.array([1.0, 4.0, 1.0]) / 6.0


class Scales(NamedTuple):
    """Scales of a reward regression.

    Attributes
    ----------
    logs : dict
        log τ of each group.
    noise : float
        σ > 0, in the unit of the rewards.
    """

    logs: dict[str, float]
    noise: float

    def of(self, group: str) -> float:
        """Return τ of a group, 0 if it has none."""
        return math.exp(self.logs[group]) if group in self.logs else 0.0

    def spread(self, columns: Mapping[str, slice]) -> FloatArray:
        """Return τ of the group of each column, for groups that stand side by side."""
        return _spread({group: self.of(group) for group in columns}, columns)


class Rewards(NamedTuple):
    """What a regression needs of rewards.

    Attributes
    ----------
    gram : ndarray, shape (n_features + 1, n_features + 1)
        Σ(φ, r)(φ, r)' over the rewards, whose first feature is 1, or 0 without an intercept.
    items : ItemSums
        Σc(c, φ, r)' by item.
    n : float
        Number of rewards.
    within : float
        Sum of squared rewards that `gram` lacks: of equal arms around their means.
    """

    gram: FloatArray
    items: ItemSums
    n: float
    within: float

    def in_unit(self, unit: float) -> "Rewards":
        """Return the same with rewards divided by a unit."""
        gram, sums = self.gram.copy(), self.items.sums.copy()
        gram[-1] /= unit
        gram[:, -1] /= unit
        sums[:, :, -1] /= unit
        return Rewards(gram, self.items._replace(sums=sums), self.n, self.within / unit**2)

    def marginal(self, scales: FloatArray) -> "Marginal":
        """Return the rewards with the coefficients of items integrated out.

        `scales`, shape (n_parts,), are their prior deviations.
        """
        k, sums = self.items.n_parts, self.items.sums
        inner = scales[:, None] * sums[:, :, :k] * scales
        inner[:, np.arange(k), np.arange(k)] += 1.0
        roots = _stable_roots(inner)
        inverses = np.asarray(np.linalg.inv(roots))
        white = inverses @ (scales[:, None] * sums[:, :, k:])
        rows = white.reshape(-1, white.shape[2])
        log_dets = 2.0 * np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
        return Marginal(self.gram - rows.T @ rows, inverses, white, log_dets)

    def fit(
        self, scales: FloatArray, part_scales: FloatArray
    ) -> tuple[FloatArray, FloatArray, Items]:
        """Return V = I + Σφφ' of scaled features without item coefficients, Σφr, and the items."""
        marginal = self.marginal(part_scales)
        gram = marginal.gram
        precision = scales[:, None] * gram[:-1, :-1] * scales
        precision.ravel()[:: len(scales) + 1] += 1.0
        factors = marginal.roots.transpose(0, 2, 1) @ marginal.roots
        sums = part_scales[:, None] * self.items.sums[:, :, self.items.n_parts :]
        sums[:, :, :-1] *= scales
        blocks = Block(factors, sums, marginal.log_dets)
        return precision, scales * gram[:-1, -1], Items.of(self.items.keys, blocks)


class Marginal(NamedTuple):
    """Rewards with item coefficients integrated out, where A = LL' for each item.

    Attributes
    ----------
    gram : ndarray, shape (n_features + 1, n_features + 1)
        Σ(φ, r)(φ, r)' − ΣB'A⁻¹B.
    roots : ndarray, shape (n_items, n_parts, n_parts)
        L⁻¹.
    white : ndarray, shape (n_items, n_parts, n_features + 1)
        L⁻¹B with B = DΣc(φ, r)'.
    log_dets : ndarray, shape (n_items,)
        log det A.
    """

    gram: FloatArray
    roots: FloatArray
    white: FloatArray
    log_dets: FloatArray


class _Point(NamedTuple):
    """The evidence at some scales, with its first and second derivatives by log τ."""

    value: float
    noise: float  # σ², in units
    gradient: FloatArray
    information: FloatArray


class Evidence:
    """Log posterior density of the scales, up to a constant.

    Parameters
    ----------
    rewards : Rewards
        Centred if there is an intercept; not all equal.
    columns, item_columns : mapping
        For each group its columns, of norm about 1: of features, and of parts.
    centres : mapping
        Centre of each group's log τ.
    intercept : bool

    Attributes
    ----------
    unit : float
        Root mean square of the rewards, in which noise is measured.
    """

    def __init__(
        self,
        rewards: Rewards,
        columns: Mapping[str, slice],
        item_columns: Mapping[str, slice],
        centres: Mapping[str, float],
        *,
        intercept: bool = True,
    ) -> None:
        total = float(rewards.gram[-1, -1]) + rewards.within
        self.unit = math.sqrt(total / rewards.n)
        self._rewards, self._intercept = rewards.in_unit(self.unit), intercept
        self._columns, self._item_columns = columns, item_columns
        self.groups = [*columns, *item_columns]
        self._centres = np.array([centres[group] for group in self.groups])
        self._n = rewards.n - intercept + _PRIOR_REWARDS
        self._of_feature, self._of_part = _indicators(columns), _indicators(item_columns)
        self._is_item = np.array([group == ITEM for group in self.groups], dtype=np.float64)
        self._log_spread = self._item_spread()

    def _item_spread(self) -> float:
        """Return the log deviation between the items' means, at least that which noise causes.

        A single item says nothing about it: then that of the rewards.
        """
        items = self._rewards.items
        if len(items.keys) < 2:
            return 0.0
        counts, totals = items.counts, items.sums[:, 0, -1]
        means = totals / counts
        inside = max(0.0, self._rewards.n - float(totals @ means))
        noise = inside * len(means) / self._rewards.n**2
        return 0.5 * math.log(max(float(means.var()), noise, _LEAST_SPREAD))

    def maximise(self, start: Mapping[str, float]) -> Scales:
        """Return the most likely scales, found from others; by item the mean of τ² given these."""
        pairs = zip(self.groups, self._centres.tolist(), strict=True)
        logs = np.array([start.get(group, centre) for group, centre in pairs])
        best = self.at(logs)
        for _ in range(_MOST_STEPS):
            step = self._step(logs, best)
            if 0.5 * float(best.gradient @ step) < _LEAST_GAIN:
                break
            moved = np.clip(logs + step, LOWEST, HIGHEST)
            tried = self.at(moved)
            while tried.value < best.value and np.abs(step).max() > 0.05:
                step = 0.25 * step
                moved = np.clip(logs + step, LOWEST, HIGHEST)
                tried = self.at(moved)
            if tried.value <= best.value:
                break
            logs, best = moved, tried
        logs = self._with_mean_squares(logs, best)
        noise = self.value(logs)[1]
        found = dict(zip(self.groups, logs.tolist(), strict=True))
        return Scales(found, self.unit * math.sqrt(noise))

    def _step(self, logs: FloatArray, point: _Point) -> FloatArray:
        """Return a step of Newton's kind; a scale at a bound does not move beyond it."""
        gradient = point.gradient
        free = ((logs > LOWEST) | (gradient > 0.0)) & ((logs < HIGHEST) | (gradient < 0.0))
        step = np.zeros(len(logs))
        some = point.information[np.ix_(free, free)]
        step[free] = np.linalg.solve(some, gradient[free])
        longest = float(np.abs(step).max(initial=0.0))
        return step * min(1.0, _LONGEST_STEP / max(longest, 1e-300))

    def _with_mean_squares(self, logs: FloatArray, mode: _Point) -> FloatArray:
        """Return the scales with ½ log E[τ²] for each group of items, given the others' modes.

        That of effects is integrated by Gauss and Hermite's rule between the mode of its density
        and that of τ² times it, which is two variances above. Of other groups, which have many
        coefficients per item, the density is taken for a normal law.
        """
        found = logs.copy()
        for place in range(len(self._columns), len(self.groups)):
            variance = 1.0 / float(mode.information[place, place])
            higher = variance
            if self._is_item[place]:
                nodes = 0.5 * variance + math.sqrt(variance) * _NODES
                values = [self.value(_moved(logs, place, node))[0] for node in nodes.tolist()]
                weights = np.log(_NODE_WEIGHTS) + np.array(values) + 0.5 * _NODES**2
                weights = np.exp(weights - weights.max())
                higher = 0.5 * math.log(weights @ np.exp(2.0 * nodes) / weights.sum())
            found[place] = min(max(logs[place] + higher, LOWEST), HIGHEST)
        return found

    def value(self, logs: FloatArray) -> tuple[float, float]:
        """Return the log density and the noise variance, in units."""
        solved = self._solved(logs)
        return solved.value, solved.left / self._n

    def _solved(self, logs: FloatArray) -> "_Solved":
        taus = np.exp(logs)
        n_groups = len(self._columns)
        scales, part_scales = self._of_feature @ taus[:n_groups], self._of_part @ taus[n_groups:]
        marginal = self._rewards.marginal(part_scales)
        gram, log_det = marginal.gram, float(marginal.log_dets.sum())
        total, slopes = 1.0, np.zeros(len(gram) - 1)
        if self._intercept:  # eliminated
            total = max(float(gram[0, 0]), _ROUNDING * self._rewards.n)
            slopes = gram[0, 1:] / total
            log_det += math.log(total / self._rewards.n)
            gram = gram[1:, 1:] - total * np.outer(slopes, slopes)
        else:
            gram = gram[1:, 1:]
        precision = scales[:, None] * gram[:-1, :-1] * scales
        # Less than its share of the trace would be lost to rounding.
        precision.ravel()[:: len(scales) + 1] += max(1.0, _ROUNDING * float(precision.trace()))
        root = np.asarray(np.linalg.cholesky(precision))
        white = solve_triangular(root, scales * gram[:-1, -1], lower=True, check_finite=False)
        left = max(0.0, float(gram[-1, -1]) - float(white @ white))
        left += self._rewards.within + _PRIOR_REWARDS * _PRIOR_SHARE
        log_det += 2.0 * float(np.log(root.diagonal()).sum())
        rests = logs - self._centres
        rests += self._is_item * (0.5 * math.log(left / self._n) - self._log_spread)
        value = -0.5 * (self._n * math.log(left / self._n) + log_det + float(rests @ rests))
        return _Solved(value, left, rests, marginal, scales, total, slopes, root, white)

    def at(self, logs: FloatArray) -> _Point:
        """Return the log density with its derivatives."""
        value, left, rests, marginal, scales, total, slopes, root, white = self._solved(logs)
        noise, n_groups = left / self._n, len(self._columns)
        # Posterior means a, and 1 − the posterior variance of each coefficient, by group.
        means = solve_triangular(root, white, lower=True, trans=1, check_finite=False)
        inverse = solve_triangular(
            root, np.eye(len(root)), lower=True, check_finite=False, overwrite_b=True
        )
        known = 1.0 - (inverse * inverse).sum(axis=0)
        theta = scales * means
        n_items, k = marginal.white.shape[:2]
        # Of items: with the intercept eliminated, L⁻¹B(φ − slope).
        back = marginal.roots.transpose(0, 2, 1)
        ones, points = marginal.white[:, :, 0], marginal.white[:, :, 1:]
        points = points - ones[:, :, None] * slopes
        own = points[:, :, -1] - points[:, :, :-1] @ theta
        own = (back @ own[:, :, None])[:, :, 0]
        turned = (back @ (points[:, :, :-1] * scales)).reshape(n_items * k, len(scales))
        spread = ((turned @ inverse.T) ** 2).sum(axis=1).reshape(n_items, k)
        flat = (back @ ones[:, :, None])[:, :, 0] ** 2 * (self._intercept / total)
        variances = (back * back).sum(axis=2) + spread + flat
        squares = np.append(means**2 @ self._of_feature, (own**2).sum(axis=0) @ self._of_part)
        effective = np.append(
            known @ self._of_feature, (1.0 - variances).sum(axis=0) @ self._of_part
        )
        # The whitened columns z_g of the posterior means of each group.
        by_group = np.zeros((len(scales), len(logs)))
        by_group[:, :n_groups] = means[:, None] * self._of_feature
        by_part = np.zeros((n_items, k, len(logs)))
        by_part[:, :, n_groups:] = own[:, :, None] * self._of_part
        first = marginal.roots @ by_part
        flat_first = first.reshape(n_items * k, len(logs))
        scaled = points[:, :, :-1].reshape(n_items * k, len(scales)) * scales
        middle = ones.reshape(n_items * k) @ flat_first * math.sqrt(self._intercept / total)
        last = inverse @ (by_group - scaled.T @ flat_first)
        shared = flat_first.T @ flat_first + np.outer(middle, middle) + last.T @ last
        squares = squares / noise
        information = 2.0 * (np.diag(squares) - shared / noise)
        information -= 2.0 / self._n * np.outer(squares, squares)
        # Far from the mode, where a scale is too large for its coefficients, it understates.
        information += np.diag(2.0 * np.maximum(effective - squares, 0.0))
        # The prior; that of item effects depends on the noise, and so on all scales.
        slopes_of_rests = np.eye(len(logs)) - np.outer(self._is_item, squares / self._n)
        information += slopes_of_rests.T @ slopes_of_rests
        gradient = squares - effective - slopes_of_rests.T @ rests
        return _Point(value, noise, gradient, information)


class _Solved(NamedTuple):
    """The regression at some scales: its precision is root·root'."""

    value: float
    left: float
    rests: FloatArray
    marginal: Marginal
    scales: FloatArray
    total: float
    slopes: FloatArray
    root: FloatArray
    white: FloatArray


def _moved(logs: FloatArray, place: int, step: float) -> FloatArray:
    moved = logs.copy()
    moved[place] += step
    return moved


def narrowed(
    points: FloatArray, columns: Mapping[str, slice]
) -> tuple[FloatArray, dict[str, slice]]:
    """Return points with as few columns as rows in each group, and the same products by group.

    The evidence depends on the products ΦgΦg' alone. With fewer rewards than columns,
    Φg' = QR gives the columns R'.
    """
    blocks, kept, first = [points[:, :1]], {}, 1
    for group, old in columns.items():
        block = points[:, old]
        if len(block) < block.shape[1]:
            block = np.asarray(np.linalg.qr(block.T, mode="r")).T
        blocks.append(block)
        kept[group] = slice(first, first + block.shape[1])
        first += block.shape[1]
    return np.hstack(blocks), kept


def _stable_roots(inner: FloatArray) -> FloatArray:
    """Return Cholesky factors of I + a positive matrix each."""
    try:
        return np.asarray(np.linalg.cholesky(inner))
    except np.linalg.LinAlgError:  # projected sums may be off by rounding: clip eigenvalues at 1
        values, vectors = np.linalg.eigh(0.5 * (inner + inner.transpose(0, 2, 1)))
        values = np.maximum(values, 1.0)
        mended = (vectors * values[:, None, :]) @ vectors.transpose(0, 2, 1)
        return np.asarray(np.linalg.cholesky(mended))


def _indicators(columns: Mapping[str, slice]) -> FloatArray:
    """Return a matrix with a 1 where a column belongs to a group, for groups side by side."""
    return np.eye(len(columns))[np.repeat(np.arange(len(columns)), _sizes(columns))]


def _spread(scales: Mapping[str, float], columns: Mapping[str, slice]) -> FloatArray:
    """Return the scale of the group of each column, for groups that stand side by side."""
    each = np.array([scales[group] for group in columns], dtype=np.float64)
    return np.repeat(each, _sizes(columns))


def _sizes(columns: Mapping[str, slice]) -> NDArray[np.int64]:
    return np.array([each.stop - each.start for each in columns.values()], dtype=np.int64)
