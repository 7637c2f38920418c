"""The reward model: r = b + φ'θ + c'δ_i + noise, with prior scales by evidence.

Rewards are centred and divided by the deviation of the noise, and features come times their scales
τ, so that θ and δ are standard normal. With A_i = I + Σcc', B_i = Σcφ' and s_i = Σcr over the
rewards of item i, and its coefficients δ_i integrated out (`items`),

    V = I + Σφφ' − Σ_i B_i'A_i⁻¹B_i,   θ ~ N(V⁻¹(Σφr − Σ_i B_i'A_i⁻¹s_i), V⁻¹),

and the reward of an arm of item i has the mean φ̃'E[θ] + c'A_i⁻¹s_i and the variance
φ̃'V⁻¹φ̃ + c'A_i⁻¹c, where φ̃ = φ − B_i'A_i⁻¹c.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from halfseen import checks, state
from halfseen.errors import ArchiveError
from halfseen.factors.rows import Keys, item_keys
from halfseen.latent.evidence import (
    HIGHEST,
    ITEM,
    LOWEST,
    Evidence,
    Rewards,
    Scales,
    narrowed,
    positive,
)
from halfseen.latent.features import (
    BY_ITEM,
    CONTEXT,
    CROSSED,
    FILLED,
    LATENT,
    MASK,
    MOST_CROSSED,
    Features,
    size,
)
from halfseen.latent.history import Rows, Summary
from halfseen.latent.items import MOST_SUMS, Items, ItemsField
from halfseen.linear.drawing import win_shares
from halfseen.linear.ridge import Ridge
from halfseen.values import LARGEST, FloatArray, Slate

CENTRES: Mapping[str, float] = {
    LATENT: 0.0,
    FILLED: 0.0,
    MASK: -1.0,
    ITEM: 0.0,
    CONTEXT[LATENT]: -1.0,
    CONTEXT[FILLED]: -1.0,
    CONTEXT[MASK]: -2.0,
    CROSSED: -1.0,
    BY_ITEM[LATENT]: 0.0,
    BY_ITEM[FILLED]: 0.0,
    BY_ITEM[MASK]: -1.0,
}
"""Centre of the prior of each group's log τ."""

NEGLIGIBLE = -4.0
"""A group whose log τ is not above this is left out: it moves rewards by 2 % of their noise."""

# Rewards farther from the mean than this many deviations of the noise are clipped.
_LARGEST_TARGET = 1e50
# A model that has grown may have so many times as many products, or sums, as a new one.
_MORE_PRODUCTS, _MORE_SUMS = 2, 4


class Candidates(NamedTuple):
    """The arms of a slate, given the rewards of their items, computed once per round.

    Their rewards are points'θ + offset + a rest of some variance.

    Attributes
    ----------
    points : ndarray, shape (n_arms, n_features)
        φ − Σφc'A⁻¹c.
    keys : ndarray of uint64, shape (n_arms,)
        Which item each arm is. If items have no coefficients, this and the following are empty.
    offsets, variances : ndarray, shape (n_arms,)
        c'A⁻¹Σcr and c'A⁻¹c, in units of the noise.
    """

    points: FloatArray
    keys: Keys = np.empty(0, dtype=np.uint64)
    offsets: FloatArray = np.empty(0)
    variances: FloatArray = np.empty(0)


class RewardModel:
    """Rewards given the features of arms.

    Attributes
    ----------
    features : Features
        With scales.
    scales : Scales
    shift : float
        Subtracted from rewards.
    ridge : Ridge
        Of θ, in units of the noise.
    items : Items
    """

    __slots__ = ("features", "items", "ridge", "scales", "shift")

    def __init__(
        self, features: Features, scales: Scales, shift: float, ridge: Ridge, items: Items
    ) -> None:
        self.features, self.scales, self.shift = features, scales, shift
        self.ridge, self.items = ridge, items

    @classmethod
    def fitted(
        cls,
        unscaled: Features,
        rows: Rows,
        within: float = 0.0,
        summary: Summary | None = None,
        last: Mapping[str, float] | None = None,
    ) -> "RewardModel":
        """Return the model of some rewards, which are not all equal.

        Parameters
        ----------
        unscaled : Features
            Without scales.
        rows : Rows
            Different arms.
        within : float
            Root of the sum of squared differences between rewards and the means in `rows`.
        summary : Summary, optional
            Of more rewards.
        last : mapping, optional
            log τ of the previous model, from which the search starts.
        """
        shift = _mean(rows, summary) if unscaled.intercept else 0.0
        points, parts = unscaled.design(rows.arms, rows.contexts)
        given = parts, rows, within, summary, shift
        fewer, columns = narrowed(points, unscaled.columns) if summary is None else (points, {})
        rewards = _rewards(points, *given)
        is_narrow = fewer.shape[1] < points.shape[1]
        evidence = Evidence(
            _rewards(fewer, *given) if is_narrow else rewards,
            columns if is_narrow else unscaled.columns,
            unscaled.item_columns,
            CENTRES,
            intercept=unscaled.intercept,
        )
        scales = evidence.maximise(last or {})
        features = _scaled(unscaled, scales)
        kept, kept_parts = (
            _kept(unscaled.columns, features.columns, 1),
            _kept(unscaled.item_columns, features.item_columns, 0),
        )
        rewards = _some(rewards.in_unit(scales.noise), kept, kept_parts)
        precision, response, items = rewards.fit(features.scales, features.part_scales)
        ridge = Ridge(features.n_features, ridge=1.0)
        root = np.ascontiguousarray(positive(precision[None])[1][0].T)
        white = solve_triangular(root, response, trans=1, check_finite=False)
        log_det = 2.0 * float(np.log(root.diagonal()).sum())
        ridge.set_root(root, white, log_det, len(points))
        return cls(features, scales, shift, ridge, items)

    def candidates(self, slate: Slate, contexts: FloatArray) -> Candidates:
        """Return the arms of a slate, with their context (1, context_dim)."""
        table = slate._table
        points, parts = self.features.design(table, contexts)
        if not self.features.n_parts:
            return Candidates(points)
        keys = item_keys(table, slate._items)
        return Candidates(points, keys, *self.items.condition(keys, parts, points))

    def score(self, arms: Candidates, width_scale: float, item_width: float) -> FloatArray:
        """Return scores, estimates and widths of arms, shape (3, n).

        The width is that of the regression and of the item's coefficients together, each times its
        factor.
        """
        _, parts = self.ridge.score(arms.points, lambda log_det, n_samples: width_scale)
        if self.features.n_parts:
            parts[1] += arms.offsets
            parts[2] = np.sqrt(parts[2] * parts[2] + item_width * item_width * arms.variances)
        parts *= self.scales.noise
        parts[1] += self.shift
        np.add(parts[1], parts[2], out=parts[0])
        return parts

    def draw(self, arms: Candidates, random: np.random.Generator) -> FloatArray:
        """Return rewards of arms under parameters drawn from the posterior, minus the estimates.

        With V = R'R, u = R'⁻¹φ and g standard normal, u·g has the posterior's variance φ'V⁻¹φ.
        """
        ridge = self.ridge
        drawn = Ridge(ridge.dim, ridge=ridge.ridge)
        normals = random.standard_normal(ridge.dim)
        drawn.set_root(ridge.factor, normals, ridge.log_det, ridge.n_samples)
        rests = drawn.predict(arms.points)[0]
        if self.features.n_parts:
            items, copies = np.unique(arms.keys, return_inverse=True)
            effects = random.standard_normal(len(items))[copies]
            rests = rests + np.sqrt(arms.variances) * effects
        return self.scales.noise * rests

    def win_shares(
        self,
        keys: Keys,
        arms: Candidates,
        estimates: FloatArray,
        played: int,
        random: np.random.Generator,
    ) -> FloatArray:
        """Return how often each arm is best in draws as of `draw`, whose best is `played`."""
        white = self.ridge.whitened(arms.points)
        own = np.sqrt(arms.variances) if self.features.n_parts else None
        return win_shares(keys, estimates / self.scales.noise, white, played, random, own)

    def information(self) -> float:
        """Return log det of regression and items, the intercept left out."""
        total = self.ridge.log_det - 2.0 * math.log(abs(self.ridge.factor[0, 0]))
        return total + self.items.information()

    def fork(self) -> "RewardModel":
        """Return a copy that can learn; afterwards this one must learn no more."""
        given = self.features, self.scales, self.shift, self.ridge.fork(), self.items.fork()
        return RewardModel(*given)

    def copied(self) -> "RewardModel":
        """Return an independent copy."""
        given = self.features, self.scales, self.shift, self.ridge.copied(), self.items.copied()
        return RewardModel(*given)

    def widened(self, unscaled: Features, old: Keys, new: Keys) -> "RewardModel":
        """Return the model with more features, which no reward has used.

        `old` and `new` are the keys of the known items without and with these features.
        """
        groups, item_groups = list(self.features.columns), list(self.features.item_columns)
        features = unscaled.scaled(self.scales, groups, item_groups)
        matching = features.matching(self.features)
        ridge = self.ridge.widened(features.n_features, matching.argmax(axis=1))
        items = self.items.widened(features.matching_parts(self.features), matching, old, new)
        return RewardModel(features, self.scales, self.shift, ridge, items)

    def learn(self, arm: FloatArray, context: FloatArray, key: int, reward: float) -> None:
        """Add the reward of an arm (dim,) with its context (context_dim,) and item key."""
        (point,), (part,) = self.features.design(arm[None], context[None])
        target = (reward - self.shift) / self.scales.noise
        target = min(max(target, -_LARGEST_TARGET), _LARGEST_TARGET)
        self.ridge.update(*self.items.update(key, part, point, target))

    def learn_all(self, rows: Rows) -> None:
        """Add rewards one by one."""
        keys = rows.keys.tolist()
        for arm, context, key, reward in zip(
            rows.arms, rows.contexts, keys, rows.rewards.tolist(), strict=True
        ):
            self.learn(arm, context, key, reward)

    def is_too_large(self, features: Features) -> bool:
        """Return whether features have grown far beyond the bounds of a model fitted anew."""
        n_products = size(features.columns.get(CROSSED, slice(0, 0)))
        n_sums = len(self.items) * features.n_parts * (features.n_parts + features.n_features + 1)
        return n_products > _MORE_PRODUCTS * MOST_CROSSED or n_sums > _MORE_SUMS * MOST_SUMS


class RewardsField(NamedTuple):
    """The field of a reward model.

    Attributes
    ----------
    unscaled : Features
        Without scales.
    """

    unscaled: Features

    def dump(self, value: RewardModel) -> dict[str, Any]:
        """Return scales, regression and items."""
        return {
            "groups": list(value.features.columns),
            "item_groups": list(value.features.item_columns),
            "logs": value.scales.logs,
            "noise": value.scales.noise,
            "shift": value.shift,
            "ridge": state.dump(value.ridge),
            "items": ItemsField().dump(value.items),
        }

    def load(self, name: str, plain: Any, sizes: state.Sizes) -> RewardModel:
        """Return the model after checking its parts."""
        known = [*self.unscaled.columns, *self.unscaled.item_columns]
        logs = {
            group: checks.real("logs", plain["logs"][group], LOWEST, HIGHEST) for group in known
        }
        scales = Scales(logs, checks.real("noise", plain["noise"], 0.0, LARGEST, low_open=True))
        groups = [checked_groups(plain[name], tuple(known)) for name in ("groups", "item_groups")]
        features = self.unscaled.scaled(scales, *groups)
        ridge = Ridge(features.n_features, ridge=1.0)
        state.restore(ridge, plain["ridge"])
        sizes = state.Sizes(n_parts=features.n_parts, n_sums=features.n_features + 1)
        items = ItemsField().load("items", plain["items"], sizes)
        shift = checks.real("shift", plain["shift"], -LARGEST, LARGEST)
        return RewardModel(features, scales, shift, ridge, items)


def checked_groups(given: Any, known: tuple[str, ...]) -> list[str]:
    """Return the names of saved groups after checking them."""
    groups = [checks.one_of("groups", group, known) for group in given]
    if len(set(groups)) < len(groups):
        raise ArchiveError(f"groups must be different, got {groups}")
    return groups


def _mean(rows: Rows, summary: Summary | None) -> float:
    """Return the mean of all rewards."""
    own = float(rows.counts @ rows.rewards / rows.counts.sum())
    if summary is None:
        return own
    n = float(rows.counts.sum()) + summary.n_rewards
    return own + float(summary.rows[:, 0] @ summary.targets(own)) / n


def _rewards(
    points: FloatArray,
    parts: FloatArray,
    rows: Rows,
    within: float,
    summary: Summary | None,
    shift: float,
) -> Rewards:
    """Return the products of rewards with their features, kept ones and those in a summary."""
    counts = rows.counts
    samples = np.column_stack([points, rows.rewards - shift]) * np.sqrt(counts)[:, None]
    gram, n = np.asarray(samples.T @ samples), float(counts.sum())
    items = rows.by_item(parts, points, shift)
    if summary is not None:
        gram, n = gram + summary.gram(shift), n + summary.n_rewards
        items = items.plus(summary.items)
    return Rewards(gram, items, n, within**2)


def _kept(old: Mapping[str, slice], new: Mapping[str, slice], n_first: int) -> FloatArray:
    """Return the places of some groups' columns among all, after the first ones."""
    places = [np.arange(old[group].start, old[group].stop) for group in new]
    return np.concatenate([np.arange(n_first), *places]).astype(np.int64)


def _some(rewards: Rewards, features: Any, parts: Any) -> Rewards:
    """Return the rewards for some of the features, and some of the parts."""
    k, sums = rewards.items.n_parts, rewards.items.sums
    columns = np.append(features, len(rewards.gram) - 1)
    kept = sums[:, parts][:, :, np.concatenate([parts, k + columns])]
    items = rewards.items._replace(sums=kept)
    return rewards._replace(gram=rewards.gram[np.ix_(columns, columns)], items=items)


def _scaled(unscaled: Features, scales: Scales) -> Features:
    """Return the groups that move rewards, with their scales; at least one if there is any."""
    largest = max((scales.logs[group] for group in unscaled.columns), default=NEGLIGIBLE)
    least = min(largest, math.nextafter(NEGLIGIBLE, math.inf))
    groups = [group for group in unscaled.columns if scales.logs[group] >= least]
    by_item = [
        group for group in unscaled.item_columns if group == ITEM or scales.logs[group] > NEGLIGIBLE
    ]
    return unscaled.scaled(scales, groups, by_item)
