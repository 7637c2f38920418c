"""The reward model: r = φ'θ + c'δ_i + noise, with prior scales by evidence.

Rewards are centred and divided by the deviation σ of the noise, and features come times their
scales τ, so that the coefficients are θ̄ = θ/(στ) ~ N(0, I), and δ̄_i likewise. The intercept is the
first of θ̄. The posterior of θ̄ is `ridge`, with precision V and mean V⁻¹u of `regression`; that of
δ̄_i given θ̄ is in `items`. The expected reward of an arm of item i has, in units of σ, the mean and
the variance

    φ̃'E[θ̄] + c'A_i⁻¹s_i,   φ̃'V⁻¹φ̃ + c'A_i⁻¹c,   φ̃ = φ − B_i'A_i⁻¹c.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.factors.rows import Keys, item_keys
from halfseen.latent.drift import FIXED, Drift
from halfseen.latent.evidence import (
    LOWEST,
    Evidence,
    Scales,
    reduced_design,
)
from halfseen.latent.features import Features, column_indices, size
from halfseen.latent.groups import BY_ITEM, CROSSED, ITEM, ROW_GROUPS, group_of
from halfseen.latent.history import Observations
from halfseen.latent.items import ItemPosterior, Items
from halfseen.latent.regression import Posterior, Statistics, sums_by_item
from halfseen.linear.drawing import win_shares
from halfseen.linear.ridge import Ridge
from halfseen.values import FloatArray, Slate

NEGLIGIBLE = -4.0
"""A group whose log τ is not above this is left out: it moves rewards by 2 % of their noise."""

# Rewards farther from the mean than this many deviations of the noise are clipped.
_LARGEST_TARGET = 1e50


class Candidates(NamedTuple):
    """The arms of a slate, given the rewards of their items, computed once per round.

    Attributes
    ----------
    phi : ndarray, shape (n_arms, n_features)
        φ̃ = φ − B'A⁻¹c.
    keys : ndarray of uint64, shape (n_arms,)
        Which item each arm is. If items have no coefficients, this and the following are empty.
    item_means, item_variances : ndarray, shape (n_arms,)
        c'A⁻¹s and c'A⁻¹c, in units of the noise.
    """

    phi: FloatArray
    keys: Keys = np.empty(0, dtype=np.uint64)
    item_means: FloatArray = np.empty(0)
    item_variances: FloatArray = np.empty(0)


class RewardModel(NamedTuple):
    """Rewards given the features of arms.

    Attributes
    ----------
    features : Features
        Without negligible groups.
    taus, item_taus : ndarray, shapes (n_features,) and (n_item_columns,)
        τ of each column of φ, and of c.
    constant_share : float
        η, the share of the variance of differences between arms that contexts do not change.
    scales : Scales
    centre : float
        Mean of the rewards, without their level.
    ridge : Ridge
        Posterior of θ̄.
    items : Items
        Posteriors of δ̄_i given θ̄.
    drift : Drift
        Of the level of rewards.
    """

    features: Features
    taus: FloatArray
    item_taus: FloatArray
    constant_share: float
    scales: Scales
    centre: float
    ridge: Ridge
    items: Items
    drift: Drift = FIXED

    @property
    def theta(self) -> FloatArray:
        """E[θ]/σ, the coefficients of φ, shape (n_features,)."""
        return self.taus * self.ridge.estimate

    @property
    def shift(self) -> float:
        """r̄, which is subtracted from rewards: the centre and the level now."""
        return self.centre + self.drift.level

    @classmethod
    def of(
        cls,
        features: Features,
        scales: Scales,
        centre: float,
        ridge: Ridge,
        items: Items,
        drift: Drift = FIXED,
    ) -> "RewardModel":
        """Return the model of features and their scales."""
        taus, item_taus = _taus(features, scales)
        share = _constant_share(features, taus, item_taus)
        return cls(features, taus, item_taus, share, scales, centre, ridge, items, drift)

    @classmethod
    def fitted(
        cls,
        features: Features,
        rows: Observations,
        pure_error: float = 0.0,
        summary: Statistics | None = None,
        last: Mapping[str, float] | None = None,
        drift: Drift = FIXED,
    ) -> "RewardModel":
        """Return the model of some rewards, which are not all equal.

        Parameters
        ----------
        features : Features
            All groups that may matter.
        rows : Observations
            Different arms.
        pure_error : float
            Root of the sum of squared differences between rewards and the means in `rows`.
        summary : Statistics, optional
            Of more rewards.
        last : mapping, optional
            log τ of the previous model, from which the search starts.
        drift : Drift
            Of the level of rewards, which was subtracted from those in `rows`.
        """
        centre = _mean(rows, summary) if features.intercept else 0.0
        phi, c = features.design(rows.arms, rows.contexts)
        statistics = rows.statistics(phi, c, shift=centre, pure_error=pure_error)
        reduced, blocks = statistics, features.blocks
        if summary is not None:
            reduced = statistics = statistics.plus(summary)
        elif any(len(each) > len(phi) for each in blocks.values()):
            few, blocks = reduced_design(phi, blocks)
            reduced = rows.statistics(few, c, shift=centre, pure_error=pure_error)
        scales = Evidence(reduced, blocks, features.item_blocks).maximise(last or {})
        kept = _not_negligible(features, scales)
        some = statistics.select(
            np.append(0, column_indices(features.columns, kept.columns)),
            column_indices(features.item_columns, kept.item_columns),
        )
        posterior = Posterior(some, *_taus(kept, scales))
        sums, white = posterior.item_sums, posterior.white / scales.noise_scale
        sums[:, :, -1] /= scales.noise_scale
        ridge, root = Ridge(kept.n_features, ridge=1.0), np.ascontiguousarray(posterior.root.T)
        ridge.set_root(root, white, posterior.log_det_v, int(some.n_rewards))
        items = Items(some.keys, ItemPosterior(posterior.item_covariances, sums))
        return cls.of(kept, scales, centre, ridge, items, drift)

    def design(self, table: FloatArray, contexts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return τφ and τc of arms, with contexts (n or 1, context_dim)."""
        phi, c = self.features.design(table, contexts)
        phi *= self.taus
        c *= self.item_taus
        return phi, c

    def candidates(self, slate: Slate, contexts: FloatArray) -> Candidates:
        """Return the arms of a slate, with their context (1, context_dim)."""
        table = slate._table
        phi, c = self.design(table, contexts)
        if not self.features.n_item_columns:
            return Candidates(phi)  # φ̃ = φ
        keys = self.keys(table, slate._items)
        conditioned, means, variances = self.items.conditioned(keys, c, phi)
        return Candidates(conditioned, keys, means, variances)

    def keys(self, table: FloatArray, items: NDArray[np.int64] | None) -> Keys:
        """Return which item each arm (n, dim or more) is.

        Features that came later count if an arm shows more than a 0 there.
        """
        dim = self.features.arm.model.dim
        if table.shape[1] == dim:
            return item_keys(table, items)
        later = np.nan_to_num(table[:, dim:]).any(axis=1)
        return np.where(later, item_keys(table, items), item_keys(table[:, :dim], items))

    def score(self, arms: Candidates, alpha: float, item_alpha: float) -> FloatArray:
        """Return scores, estimates and widths σ√(α² φ̃'V⁻¹φ̃ + α_item² c'A⁻¹c), shape (3, n)."""
        _, scores = self.ridge.score(arms.phi, lambda log_det, n_samples: alpha)
        if self.features.n_item_columns:
            scores[1] += arms.item_means
            scores[2] = np.sqrt(scores[2] ** 2 + item_alpha**2 * arms.item_variances)
        scores *= self.scales.noise_scale
        scores[1] += self.shift
        np.add(scores[1], scores[2], out=scores[0])
        return scores

    def draw(self, arms: Candidates, random: np.random.Generator) -> FloatArray:
        """Return rewards of arms under parameters drawn from the posterior, minus the estimates.

        With V = R'R, u = R'⁻¹φ and g standard normal, u·g has the posterior's variance φ'V⁻¹φ.
        """
        ridge = self.ridge
        drawn = Ridge(ridge.dim, ridge=ridge.ridge)
        normals = random.standard_normal(ridge.dim)
        drawn.set_root(ridge.factor, normals, ridge.log_det, ridge.n_samples)
        drawn_rewards = drawn.predict(arms.phi)[0]
        if self.features.n_item_columns:
            items, copies = np.unique(arms.keys, return_inverse=True)
            effects = random.standard_normal(len(items))[copies]
            drawn_rewards = drawn_rewards + np.sqrt(arms.item_variances) * effects
        return self.scales.noise_scale * drawn_rewards

    def win_shares(
        self,
        keys: Keys,
        arms: Candidates,
        estimates: FloatArray,
        played: int,
        random: np.random.Generator,
    ) -> FloatArray:
        """Return how often each arm is best in draws as of `draw`, whose best is `played`."""
        white = self.ridge.whitened(arms.phi)
        own = np.sqrt(arms.item_variances) if self.features.n_item_columns else None
        return win_shares(keys, estimates / self.scales.noise_scale, white, played, random, own)

    def copied(self) -> "RewardModel":
        """Return an independent copy."""
        return self._replace(ridge=self.ridge.copied(), items=Items(*self.items.sorted()))

    def residuals(self, rows: Observations) -> FloatArray:
        """Return rewards minus estimates, shape (n,)."""
        phi, c = self.design(rows.arms, rows.contexts)
        theta = self.ridge.estimate
        estimates = phi @ theta
        if self.features.n_item_columns:
            keys, numbers = np.unique(self.keys(rows.arms, rows.items), return_inverse=True)
            estimates += (c * self.items.coefficients(keys, theta)[numbers]).sum(axis=1)
        return np.asarray(rows.rewards - self.centre - self.scales.noise_scale * estimates)

    def information(self, rows: Observations, columns: FloatArray) -> FloatArray:
        """Return Z'K⁻¹Z for columns Z (n, k), where σ²K is the covariance of all rewards.

        Z is 0 for rewards that are not in `rows`. With E_i = Σcz' over the rewards of item i, it is
        Z'Z − Σ_i E_i'A_i⁻¹E_i − (Z'φ̃)V⁻¹(Z'φ̃)', and Z'φ̃ = Z'φ − Σ_i E_i'A_i⁻¹B_i.
        """
        phi, c = self.design(rows.arms, rows.contexts)
        weighted = rows.counts[:, None] * columns
        products, cross = columns.T @ weighted, weighted.T @ phi
        if self.features.n_item_columns:
            keys, sums = sums_by_item(self.keys(rows.arms, rows.items), c, weighted)
            items = self.items.of_each(keys)
            slopes = (items.covariance @ sums).reshape(-1, columns.shape[1])
            products -= sums.reshape(slopes.shape).T @ slopes
            cross -= slopes.T @ items.sums[:, :, :-1].reshape(len(slopes), -1)
        white = self.ridge.whitened(cross)
        return np.asarray(products - white @ white.T)

    def updated(
        self,
        arm: FloatArray,
        context: FloatArray,
        item: int,
        reward: float,
        *,
        moves_level: bool = True,
    ) -> tuple["RewardModel", float]:
        """Return the model with one more reward; this one must not be updated again.

        Also returns the square of the reward's residual, in units of its predictive variance. While
        other rewards are pending (`moves_level` is False), the level stays: clicks come early, and
        zeros late.

        Parameters
        ----------
        arm, context : ndarray, shapes (dim,) and (context_dim,)
        item : int
            Item id.
        """
        sigma, ridge, items = self.scales.noise_scale, self.ridge.fork(), self.items.fork()
        (phi,), (c,) = self.design(arm[None], context[None])
        target = (reward - self.shift) / sigma
        target = min(max(target, -_LARGEST_TARGET), _LARGEST_TARGET)
        if self.features.n_item_columns:
            (key,) = self.keys(arm[None], np.array([item])).tolist()
            phi, target = items.update(key, c, phi, target)
        (estimate,), (width,) = ridge.predict(phi[None])
        residual = target - float(estimate)
        ridge.update(phi, target)
        drift = self.drift.updated(sigma * residual) if moves_level else self.drift
        model = self._replace(ridge=ridge, items=items, drift=drift)
        return model, residual * residual / (1.0 + float(width) ** 2)


def _mean(rows: Observations, summary: Statistics | None) -> float:
    """Return the mean of all rewards."""
    total, n = float(rows.counts @ rows.rewards), float(rows.counts.sum())
    if summary is not None:
        total, n = total + summary.n_rewards * summary.mean, n + summary.n_rewards
    return total / n


def _taus(features: Features, scales: Scales) -> tuple[FloatArray, FloatArray]:
    """Return τ of each column of φ, and of c."""
    taus = scales.taus(features.blocks, features.n_features)
    return taus, scales.taus(features.item_blocks, features.n_item_columns)


def _constant_share(features: Features, taus: FloatArray, item_taus: FloatArray) -> float:
    """Return η: columns of a group, together about of norm 1, move rewards by the mean of τ²."""
    variances = {
        group: float(np.mean(each[columns] ** 2))
        for each, groups in ((taus, features.columns), (item_taus, features.item_columns))
        for group, columns in groups.items()
        if size(columns)
    }
    constant = sum(variances.get(group, 0.0) for group in (*ROW_GROUPS, ITEM))
    varying = sum(variances.get(group, 0.0) for group in (CROSSED, *BY_ITEM.values()))
    return constant / (constant + varying) if varying else 1.0


def _not_negligible(features: Features, scales: Scales) -> Features:
    """Return the groups that move rewards; at least one if there is any."""
    logs: dict[str, float] = {}
    for block in (*features.blocks, *features.item_blocks):
        group = group_of(block)
        logs[group] = max(logs.get(group, LOWEST), scales.logs[block])
    groups = [group for group in features.columns if logs[group] > NEGLIGIBLE]
    if features.columns and not groups:
        groups = [max(features.columns, key=logs.__getitem__)]
    by_item = [
        group for group in features.item_columns if group == ITEM or logs[group] > NEGLIGIBLE
    ]
    return features.only(groups, by_item)
