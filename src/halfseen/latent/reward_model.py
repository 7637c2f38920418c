"""The reward model: r = φ'θ + c'δ_i + noise, with prior scales by evidence.

Rewards are centred, and features come times their scales τ, so that the coefficients are a = θ/τ
and d_i = δ_i/τ, each with the prior N(0, σ²I). The intercept is the first of a. The posterior of a
is `ridge`, with V and u of `regression`; that of d_i given a is in `items`. The expected reward of
an arm of item i has the mean and the variance

    φ̃'E[a] + c'A_i⁻¹s_i,   σ²(φ̃'V⁻¹φ̃ + c'A_i⁻¹c),   φ̃ = φ − B_i'A_i⁻¹c.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.latent.drift import FIXED, Drift
from halfseen.latent.evidence import Evidence, Scales, reduced_design
from halfseen.latent.features import Features, size
from halfseen.latent.groups import BY_ITEM, CROSSED, ITEM, ROW_GROUPS
from halfseen.latent.history import Observations
from halfseen.latent.items import ItemPosterior, Items
from halfseen.latent.regression import Posterior
from halfseen.latent.statistics import Statistics, sums_by_item
from halfseen.linear.drawing import win_shares
from halfseen.linear.ridge import Ridge
from halfseen.values import FloatArray, Slate
from halfseen.values.rows import Keys, item_keys

NEGLIGIBLE = math.exp(-4.0)
"""A column whose τ is below this is left out: it moves rewards by at most 2 % of their noise."""


class Candidates(NamedTuple):
    """The arms of a slate, given the rewards of their items, computed once per round.

    Attributes
    ----------
    phi : ndarray, shape (n_arms, n_features)
        φ̃ = φ − B'A⁻¹c.
    keys : ndarray of uint64, shape (n_arms,)
        Which item each arm is. If items have no coefficients, this and the following are empty.
    item_means, item_variances : ndarray, shape (n_arms,)
        c'A⁻¹s and c'A⁻¹c.
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
    columns, item_columns : ndarray of int
        The columns of φ, and of c, that are not negligible.
    taus, item_taus : ndarray
        Their τ.
    constant_share : float
        η, the share of the variance of differences between arms that contexts do not change.
    scales : Scales
    centre : float
        Mean of the rewards, without their level.
    ridge : Ridge
        Posterior of a.
    items : Items
        Posteriors of d_i given a.
    drift : Drift
        Of the level of rewards.
    """

    features: Features
    columns: NDArray[np.int64]
    item_columns: NDArray[np.int64]
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
        """E[θ] of all columns of φ, shape (n_features,)."""
        theta = np.zeros(self.features.n_features)
        theta[self.columns] = self.taus * self.ridge.estimate
        return theta

    @property
    def shift(self) -> float:
        """r̄, which is subtracted from rewards: the centre and the level now."""
        return self.centre + self.drift.level

    @classmethod
    def prior(
        cls, features: Features, scales: Scales, centre: float = 0.0, drift: Drift = FIXED
    ) -> "RewardModel":
        """Return the model of some scales before the first reward."""
        taus = scales.taus(features.blocks, features.n_features)
        item_taus = scales.taus(features.item_blocks, features.n_item_columns)
        # Of φ one block stays in any case; of c its first column, the effects of items.
        least = min(NEGLIGIBLE, taus[1:].max(initial=0.0))
        columns = np.flatnonzero(taus >= least)
        item_columns = np.flatnonzero((item_taus >= NEGLIGIBLE) | (np.arange(len(item_taus)) == 0))
        return cls(
            features,
            columns,
            item_columns,
            taus[columns],
            item_taus[item_columns],
            _constant_share(features, taus, item_taus),
            scales,
            centre,
            Ridge(len(columns), ridge=1.0),
            Items.unknown(len(item_columns), len(columns)),
            drift,
        )

    @classmethod
    def fitted(
        cls,
        features: Features,
        rows: Observations,
        summary: Statistics | None = None,
        last_logs: Mapping[str, float] | None = None,
        drift: Drift = FIXED,
    ) -> "RewardModel":
        """Return the model of some rewards, which are not all equal.

        Parameters
        ----------
        features : Features
            All groups that may matter.
        rows : Observations
        summary : Statistics, optional
            Of more rewards.
        last_logs : mapping, optional
            log τ of the previous model, from which the search starts.
        drift : Drift
            Of the level of rewards, which was subtracted from those in `rows`.
        """
        centre = _mean(rows, summary) if features.intercept else 0.0
        phi, c = features.design(rows.arms, rows.contexts)
        statistics = rows.statistics(phi, c, shift=centre)
        if summary is not None:
            statistics = statistics.plus(summary)
        trial, blocks = statistics, features.blocks  # on which scales are tried
        if summary is None and any(len(each) > len(phi) for each in blocks.values()):
            reduced, blocks = reduced_design(phi, blocks)
            trial = rows.statistics(reduced, c, shift=centre)
        scales = Evidence(trial, blocks, features.item_blocks).maximise(last_logs or {})
        model = cls.prior(features, scales, centre, drift)
        statistics = statistics.select(model.columns, model.item_columns)
        posterior = Posterior(statistics, model.taus, model.item_taus)
        root = np.ascontiguousarray(posterior.root.T)
        model.ridge.set_root(root, posterior.white, 0.0, int(statistics.n_rewards))
        by_item = ItemPosterior(posterior.item_covariances, posterior.item_sums)
        return model._replace(items=Items(statistics.keys, by_item))

    def design(self, table: FloatArray, contexts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return τφ and τc of arms, with contexts (n or 1, context_dim)."""
        phi, c = self.features.design(table, contexts)
        phi, c = phi.take(self.columns, axis=1), c.take(self.item_columns, axis=1)
        phi *= self.taus
        c *= self.item_taus
        return phi, c

    def candidates(self, slate: Slate, contexts: FloatArray) -> Candidates:
        """Return the arms of a slate, with their context (1, context_dim)."""
        table = slate.table
        phi, c = self.design(table, contexts)
        if not self.features.n_items:
            return Candidates(phi)  # φ̃ = φ
        keys = self.keys(table, slate.items)
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
        estimates, widths = self.ridge.predict(arms.phi)
        estimates, variances = estimates + self.shift, (alpha * widths) ** 2
        if self.features.n_items:
            estimates += arms.item_means
            variances += item_alpha**2 * arms.item_variances
        widths = self.scales.noise_scale * np.sqrt(variances)
        return np.array([estimates + widths, estimates, widths])

    def draw(self, arms: Candidates, random: np.random.Generator) -> FloatArray:
        """Return rewards of arms under parameters drawn from the posterior, minus the estimates.

        With V = R'R, u = R'⁻¹φ̃ and g standard normal, σu·g has the posterior's variance σ²φ̃'V⁻¹φ̃.
        """
        normals = random.standard_normal(self.ridge.dim)
        drawn_rewards = (self.ridge.whitened(arms.phi) * normals).sum(axis=1)
        if self.features.n_items:
            items, copies = np.unique(arms.keys, return_inverse=True)
            effects = random.standard_normal(len(items))[copies]
            drawn_rewards += np.sqrt(arms.item_variances) * effects
        return np.asarray(self.scales.noise_scale * drawn_rewards)

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
        own = np.sqrt(arms.item_variances) if self.features.n_items else None
        return win_shares(keys, estimates / self.scales.noise_scale, white, played, random, own)

    def expecting(
        self, arms: FloatArray, contexts: FloatArray, items: NDArray[np.int64]
    ) -> "RewardModel":
        """Return a model for widths alone, which counts rows whose rewards are not known yet.

        Widths do not depend on the rewards themselves (Desautels, Krause & Burdick, Parallelizing
        exploration-exploitation tradeoffs in Gaussian process bandit optimization, 2014).
        """
        ridge, own = self.ridge.fork(), self.items.fork()
        phi, c = self.design(arms, contexts)
        if self.features.n_items:
            for row, key in enumerate(self.keys(arms, items).tolist()):
                phi[row], _ = own.update(key, c[row], phi[row], 0.0)
        ridge.insert(phi, np.zeros(len(phi)))
        return self._replace(ridge=ridge, items=own)

    def residuals(self, rows: Observations) -> FloatArray:
        """Return rewards minus estimates, shape (n,)."""
        phi, c = self.design(rows.arms, rows.contexts)
        a = self.ridge.estimate
        estimates = self.centre + phi @ a
        if self.features.n_items:
            keys, numbers = np.unique(self.keys(rows.arms, rows.items), return_inverse=True)
            estimates += (c * self.items.coefficients(keys, a)[numbers]).sum(axis=1)
        return rows.rewards - estimates

    def information(self, rows: Observations, columns: FloatArray) -> FloatArray:
        """Return Z'K⁻¹Z for columns Z (n, k), where σ²K is the covariance of all rewards.

        Z is 0 for rewards that are not in `rows`. With E_i = Σcz' over the rewards of item i, it is
        Z'Z − Σ_i E_i'A_i⁻¹E_i − (Z'φ̃)V⁻¹(Z'φ̃)', and Z'φ̃ = Z'φ − Σ_i E_i'A_i⁻¹B_i.
        """
        phi, c = self.design(rows.arms, rows.contexts)
        weighted = rows.counts[:, None] * columns
        products, cross = columns.T @ weighted, weighted.T @ phi
        if self.features.n_items:
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
        """Return the model with one more reward.

        Also returns the square of the reward's residual, in units of its predictive variance. While
        other rewards are pending (`moves_level` is False), the level stays: clicks come early, and
        zeros late.

        Parameters
        ----------
        arm, context : ndarray, shapes (dim,) and (context_dim,)
        item : int
            Item id.
        """
        ridge, items, target = self.ridge.fork(), self.items.fork(), reward - self.shift
        (phi,), (c,) = self.design(arm[None], context[None])
        if self.features.n_items:
            (key,) = self.keys(arm[None], np.array([item])).tolist()
            phi, target = items.update(key, c, phi, target)
        (estimate,), (width,) = ridge.predict(phi[None])
        residual = target - float(estimate)
        ridge.update(phi, target)
        drift = self.drift.updated(residual) if moves_level else self.drift
        model = self._replace(ridge=ridge, items=items, drift=drift)
        deviations = residual / self.scales.noise_scale
        return model, deviations * deviations / (1.0 + float(width) ** 2)


def _mean(rows: Observations, summary: Statistics | None) -> float:
    """Return the mean of all rewards."""
    total, n = float(rows.counts @ rows.rewards), float(rows.counts.sum())
    if summary is not None:
        total, n = total + summary.n_rewards * summary.mean, n + summary.n_rewards
    return total / n


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
