"""Prior scales of groups of features in the reward regression, chosen by evidence.

A reward is r = b + Σ_g φ_g'θ_g + c'δ_i + noise, with θ_g ~ N(0, σ²τ_g²) and δ_i ~ N(0, σ²τ_h²) for
the columns of group h. With θ and δ integrated out, the rewards have the covariance σ²K,

    K = I + Σ_g τ_g² Φ_gΦ_g' + Σ_h τ_h² Z_hZ_h',

and with b and σ eliminated the log-evidence is −½(n log σ² + log det K), where nσ² is r'K⁻¹r with
b eliminated, plus two pseudo-rewards that keep σ from 0. Each x_g = log τ_g has a prior
N(centre, 1): while rewards carry no evidence about a scale, its prior keeps it large enough to
explore. For item effects the centre is relative to the deviation between items' means: an item that
is played again and again shows how small the noise is, but nothing about other items.

With δ integrated out, θ has the precision V = I + Σφφ' − Σ_i B_i'A_i⁻¹B_i (`reward_model`).
With a_g = E[θ_g]/τ_g and C_gg the posterior covariance of the coefficients of a group in units of
their prior covariance, the gradient of the evidence, to which that of the prior is added, is

    ∂/∂x_g = ‖a_g‖²/σ² − tr(I − C_gg),

and the average information 2 a_g'(I − C)_gh a_h/σ² takes the place of the Hessian (Gilmour,
Thompson and Cullis, Average information REML, 1995): a few steps move all scales at once.

For everything that differs by item, τ² is its posterior mean: while few items were played its
posterior is wide, and the mode understates how different the others may be.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dtrtri

from halfseen.latent.items import Block, Items, ItemSums
from halfseen.values import FloatArray

ITEM = "item"
"""The group of item effects."""

LOWEST, HIGHEST = -6.0, 8.0
"""Of log τ."""

# The search ends when a step is expected to gain less than this, or after so many.
_LEAST_GAIN = 0.01
_MOST_STEPS = 12
# No scale moves farther than this in one step; a step that loses is shortened down to this.
_LONGEST_STEP, _SHORTEST_STEP = 2.0, 0.05
# The noise estimate includes this many pseudo-rewards whose squared residual is this share of the
# rewards' variance: a few rewards do not prove that there is no noise.
_PRIOR_REWARDS = 2.0
_PRIOR_SHARE = 0.05
# Smallest variance between items' means, in units of the mean square: without an intercept all
# rewards may be equal.
_LEAST_SPREAD = 1e-6
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

    def marginal(self, scales: FloatArray, first: int = 0) -> "Marginal":
        """Return the rewards with the coefficients of items integrated out, from a part on.

        `scales`, shape (n_parts,), are their prior deviations D. With A = I + DΣcc'D and
        B = DΣc(φ, r)', the products Σ(φ, r)(φ, r)' become Σ(φ, r)(φ, r)' − Σ_i B'A⁻¹B. Parts before
        the first one are treated like features.
        """
        sums, scales = self.items.sums, scales[first:]
        k, n_parts = len(scales), self.items.n_parts
        blocks = scales[:, None] * sums[:, first:, first:n_parts] * scales
        blocks[:, np.arange(k), np.arange(k)] += 1.0
        blocks, roots = positive(blocks)
        covariances = np.asarray(np.linalg.inv(blocks))
        outer = np.concatenate([sums[:, first:, :first], sums[:, first:, n_parts:]], axis=2)
        outer *= scales[:, None]
        means = covariances @ outer
        rows = (-1, outer.shape[2] - first)
        gram = self.gram - outer[:, :, first:].reshape(rows).T @ means[:, :, first:].reshape(rows)
        kept = np.concatenate([sums[:, :first, :first], sums[:, :first, n_parts:]], axis=2)
        kept -= outer[:, :, :first].transpose(0, 2, 1) @ means
        log_det = 2.0 * np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
        rest = Rewards(gram, self.items._replace(sums=kept), self.n, self.within)
        return Marginal(rest, covariances, means, log_det)

    def fit(
        self, scales: FloatArray, part_scales: FloatArray
    ) -> tuple[FloatArray, FloatArray, Items]:
        """Return V and V·E[θ] of scaled features, with items integrated out, and the items."""
        (gram, *_), covariances, _, log_dets = self.marginal(part_scales)
        precision = scales[:, None] * gram[:-1, :-1] * scales
        precision.ravel()[:: len(scales) + 1] += 1.0
        sums = part_scales[:, None] * self.items.sums[:, :, self.items.n_parts :]
        sums[:, :, :-1] *= scales
        blocks = Block(covariances, sums, log_dets)
        return precision, scales * gram[:-1, -1], Items.of(self.items.keys, blocks)


class Marginal(NamedTuple):
    """Rewards with item coefficients integrated out.

    Attributes
    ----------
    rewards : Rewards
        Of what remains.
    covariances : ndarray, shape (n_items, n_parts, n_parts)
        A⁻¹.
    means : ndarray, shape (n_items, n_parts, n_features + 1)
        A⁻¹B.
    log_dets : ndarray, shape (n_items,)
        log det A.
    """

    rewards: Rewards
    covariances: FloatArray
    means: FloatArray
    log_dets: FloatArray


class Posterior(NamedTuple):
    """The posterior of all coefficients at some scales.

    Attributes
    ----------
    value : float
        The log density of the scales.
    noise : float
        σ², in units.
    rests : ndarray
        log τ minus their centres.
    scales : ndarray, shape (n_features − 1,)
        τ of each feature.
    total : float
        Precision of the intercept, item coefficients integrated out; 1 without an intercept.
    slopes : ndarray, shape (n_features,)
        Of features and rewards on the intercept.
    inverse : ndarray, shape (n_features − 1, n_features − 1)
        L⁻¹ with LL' = V.
    means : ndarray, shape (n_features − 1,)
        E[θ] of scaled features.
    marginal : Marginal
    """

    value: float
    noise: float
    rests: FloatArray
    scales: FloatArray
    total: float
    slopes: FloatArray
    inverse: FloatArray
    means: FloatArray
    marginal: Marginal


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
    groups : list of str
        In the order of log τ.
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
        self._n_groups = len(columns)
        self.groups = [*columns, *item_columns]
        self._centres = np.array([centres[group] for group in self.groups])
        self._n = rewards.n - intercept + _PRIOR_REWARDS
        self._of_feature, self._of_part = _indicators(columns), _indicators(item_columns)
        self._is_item = np.array([float(group == ITEM) for group in self.groups])
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
        best = self.posterior(logs)
        gradient, information = self.derivatives(best)
        for _ in range(_MOST_STEPS):
            step = _newton_step(logs, gradient, information)
            if 0.5 * float(gradient @ step) < _LEAST_GAIN:
                break
            moved = np.clip(logs + step, LOWEST, HIGHEST)
            tried = self.posterior(moved)
            while tried.value < best.value and np.abs(step).max() > _SHORTEST_STEP:
                step = 0.25 * step
                moved = np.clip(logs + step, LOWEST, HIGHEST)
                tried = self.posterior(moved)
            if tried.value <= best.value:
                break
            logs, best = moved, tried
            gradient, information = self.derivatives(best)
        if len(self.groups) > self._n_groups:
            logs = self._with_mean_squares(logs, information)
            best = self.posterior(logs)
        found = dict(zip(self.groups, logs.tolist(), strict=True))
        return Scales(found, self.unit * math.sqrt(best.noise))

    def _with_mean_squares(self, logs: FloatArray, information: FloatArray) -> FloatArray:
        """Return the scales with ½ log E[τ²] for each group of items, given the others' modes.

        That of effects, the first group, is integrated by Gauss–Hermite quadrature between the
        mode of its density and that of τ² times it, which is two variances above. Of other groups,
        which have many coefficients per item, the density is approximated by a normal one.
        """
        found, place = logs.copy(), self._n_groups
        variances = 1.0 / information.diagonal()[place:]
        found[place:] += variances
        nodes = 0.5 * variances[0] + math.sqrt(variances[0]) * _NODES
        effects = self._rewards.marginal(self._of_part @ np.exp(logs[place:]), 1).rewards
        values = []
        for node in nodes.tolist():
            moved = logs.copy()
            moved[place] += node
            values.append(self.posterior(moved, effects).value)
        weights = np.log(_NODE_WEIGHTS) + np.array(values) + 0.5 * _NODES**2
        weights = np.exp(weights - weights.max())
        mean = float(weights @ np.exp(2.0 * nodes) / weights.sum())
        found[place] = logs[place] + 0.5 * math.log(mean)
        return np.clip(found, LOWEST, HIGHEST)

    def posterior(self, logs: FloatArray, rewards: Rewards | None = None) -> Posterior:
        """Return the posterior at some log τ.

        By default of all rewards; others may have items with an effect alone.
        """
        rewards = self._rewards if rewards is None else rewards
        taus = np.exp(logs)
        scales = self._of_feature @ taus[: self._n_groups]
        part_scales = self._of_part @ taus[self._n_groups :]
        marginal = rewards.marginal(part_scales[: rewards.items.n_parts])
        gram, log_det = marginal.rewards.gram, float(marginal.log_dets.sum())
        total, slopes = 1.0, np.zeros(len(gram) - 1)
        if self._intercept:  # eliminated
            total = max(float(gram[0, 0]), _ROUNDING * rewards.n)
            slopes = gram[0, 1:] / total
            log_det += math.log(total / rewards.n)
        gram = gram[1:, 1:] - total * slopes[:, None] * slopes
        precision = scales[:, None] * gram[:-1, :-1] * scales
        # Less than its share of the trace would be lost to rounding.
        precision.ravel()[:: len(scales) + 1] += max(1.0, _ROUNDING * float(precision.trace()))
        root = positive(precision[None])[1][0]
        inverse = _inverse(root)
        white = inverse @ (scales * gram[:-1, -1])
        left = max(0.0, float(gram[-1, -1]) - float(white @ white))
        noise = (left + rewards.within + _PRIOR_REWARDS * _PRIOR_SHARE) / self._n
        log_det += 2.0 * float(np.log(root.diagonal()).sum())
        rests = logs - self._centres
        rests += self._is_item * (0.5 * math.log(noise) - self._log_spread)
        value = -0.5 * (self._n * math.log(noise) + log_det + float(rests @ rests))
        means = white @ inverse
        return Posterior(value, noise, rests, scales, total, slopes, inverse, means, marginal)

    def derivatives(self, at: Posterior) -> tuple[FloatArray, FloatArray]:
        """Return the gradient of the log density by log τ, and the average information."""
        inverse, means = at.inverse, at.means
        covariances, n_groups = at.marginal.covariances, self._n_groups
        n_items, k = covariances.shape[:2]
        # 1 − the posterior variance of each coefficient, and the means δ of items.
        known = 1.0 - (inverse * inverse).sum(axis=0)
        ones, moved = at.marginal.means[:, :, 0], at.marginal.means[:, :, 1:]
        moved = moved - ones[:, :, None] * at.slopes  # with the intercept eliminated
        own = moved[:, :, -1] - moved[:, :, :-1] @ (at.scales * means)
        moved = (moved[:, :, :-1] * at.scales).reshape(n_items * k, len(at.scales))
        flat = math.sqrt(self._intercept / at.total) * ones
        spread = ((moved @ inverse.T) ** 2).sum(axis=1).reshape(n_items, k)
        variances = np.diagonal(covariances, axis1=1, axis2=2) + spread + flat**2
        squares = np.append(means**2 @ self._of_feature, (own**2).sum(axis=0) @ self._of_part)
        squares /= at.noise
        effective = np.append(
            known @ self._of_feature, (1.0 - variances).sum(axis=0) @ self._of_part
        )
        # a_g'M_gh a_h of the posterior means a of each two groups.
        by_group, by_part = (
            np.zeros((len(means), len(squares))),
            np.zeros((n_items, k, len(squares))),
        )
        by_group[:, :n_groups] = means[:, None] * self._of_feature
        by_part[:, :, n_groups:] = own[:, :, None] * self._of_part
        rows = by_part.reshape(n_items * k, len(squares))
        shared = rows.T @ (covariances @ by_part).reshape(rows.shape)
        level, white = flat.ravel() @ rows, inverse @ (by_group - moved.T @ rows)
        shared += level[:, None] * level + white.T @ white
        information = 2.0 * (np.diag(squares) - shared / at.noise)
        information -= 2.0 / self._n * squares[:, None] * squares
        # Far from the mode, where a scale is too large for its coefficients, it understates.
        information += np.diag(2.0 * np.maximum(effective - squares, 0.0))
        # The prior; that of item effects depends on the noise, and so on all scales.
        slopes = np.eye(len(squares)) - self._is_item[:, None] * (squares / self._n)
        information += slopes.T @ slopes
        return squares - effective - at.rests @ slopes, information


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


def positive(blocks: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return blocks I + a positive matrix each, (n, k, k), and their Cholesky factors."""
    try:
        return blocks, np.asarray(np.linalg.cholesky(blocks))
    except np.linalg.LinAlgError:  # the rest is lost to rounding: no eigenvalue is below 1
        values, vectors = np.linalg.eigh(0.5 * (blocks + blocks.transpose(0, 2, 1)))
        rows = np.sqrt(np.maximum(values, 1.0))[:, :, None] * vectors.transpose(0, 2, 1)
        roots = np.asarray(np.linalg.qr(rows, mode="r")).transpose(0, 2, 1)
        roots = roots * np.where(np.diagonal(roots, axis1=1, axis2=2) < 0.0, -1.0, 1.0)[:, None]
        return roots @ roots.transpose(0, 2, 1), roots


def _indicators(columns: Mapping[str, slice]) -> FloatArray:
    """Return a matrix with a 1 where a column belongs to a group, for groups side by side."""
    return np.eye(len(columns))[np.repeat(np.arange(len(columns)), _sizes(columns))]


def _spread(scales: Mapping[str, float], columns: Mapping[str, slice]) -> FloatArray:
    """Return the scale of the group of each column, for groups that stand side by side."""
    each = np.array([scales[group] for group in columns], dtype=np.float64)
    return np.repeat(each, _sizes(columns))


def _sizes(columns: Mapping[str, slice]) -> NDArray[np.int64]:
    return np.array([each.stop - each.start for each in columns.values()], dtype=np.int64)
