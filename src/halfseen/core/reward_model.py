"""The reward model of `LatentUcb`: regression on groups of features, and effects of items."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen import checks
from halfseen.core.context_features import (
    BY_ITEM,
    CONTEXT,
    CROSSED,
    MOST_CROSSED,
    AnyFeatures,
    JointFeatures,
)
from halfseen.core.drawing import win_shares
from halfseen.core.features import FILLED, LATENT, MASK
from halfseen.core.group_scales import ITEM, Scales, estimate_scales
from halfseen.core.item_coefficients import Adjusted, ItemCoefficients
from halfseen.core.item_sums import MOST_SUMS, ItemSums, rooted
from halfseen.core.items import Items
from halfseen.core.offers import Offer
from halfseen.core.samples import Samples
from halfseen.errors import ArchiveError
from halfseen.linear.ridge import Ridge
from halfseen.values import LARGEST, FloatArray

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
# Eigenvalues of a Gram matrix below this share of the largest are rounding.
_ROUNDING = 1e-14


class RewardModel:
    """Rewards given the features of arms: intercept, groups with prior scales, and item effects.

    Rewards are centred by `shift` and divided by the deviation of the noise, so every number in the
    regression is in units of the noise.

    Attributes
    ----------
    features : Features or JointFeatures
    scales : Scales
    shift : float
    model : Ridge
    items : Items, ItemCoefficients or None
        None if items have no effects. They have coefficients where there is a context, or where
        the features of an item may change.
    """

    __slots__ = ("features", "items", "model", "scales", "shift")

    def __init__(
        self,
        features: AnyFeatures,
        scales: Scales,
        shift: float,
        model: Ridge,
        items: Items | ItemCoefficients | None,
    ) -> None:
        self.features, self.scales, self.shift = features, scales, shift
        self.model, self.items = model, items

    @classmethod
    def fitted(
        cls,
        unscaled: AnyFeatures,
        offer: Offer,
        samples: Samples,
        *,
        item_effects: bool = False,
        last: Mapping[str, float] | None = None,
    ) -> "RewardModel":
        """Return the model of some rewards, which are not all equal.

        Parameters
        ----------
        unscaled : Features or JointFeatures
            Without scales.
        offer : Offer
            The different arms that were played, in the order of first plays.
        samples : Samples
            Their rewards.
        item_effects : bool
        last : mapping, optional
            log τ of the previous model, from which the search starts.
        """
        shift = samples.mean() if unscaled.intercept else 0.0
        points = unscaled.points_of(offer)
        sums, by_item = None, [ITEM] if item_effects else []
        if item_effects and (offer.contexts is not None or offer.items is not None):
            sums, by_item = _sums(unscaled, offer, points, samples, shift), [*unscaled.item_columns]
        scales = estimate_scales(
            points,
            unscaled.columns,
            samples,
            centres={group: CENTRES[group] for group in (*unscaled.columns, *by_item)},
            intercept=unscaled.intercept,
            last=last,
            sums=sums,
            item_columns=unscaled.item_columns,
        )
        features = _scaled(unscaled, scales)
        points = features.rescaled(samples.stacked(points), unscaled.columns)
        targets = samples.targets(shift) / scales.noise
        if sums is not None:
            return cls(
                features,
                scales,
                shift,
                *_by_item(unscaled, features, scales, points, targets, samples, sums),
            )
        roots = np.sqrt(samples.weights(scales.of(ITEM)))
        model = Ridge.fitted(roots[:, None] * points, roots * targets, ridge=1.0)
        items = None
        if item_effects:
            items = Items.of(offer.keys, samples.counts, targets[: offer.n_arms], scales.of(ITEM))
        return cls(features, scales, shift, model, items)

    def _adjusted(self, offer: Offer, points: FloatArray) -> Adjusted:
        """Return arms with features, given what their items paid."""
        if self.items is None:
            nothing = np.zeros(offer.n_arms)
            return Adjusted(points, nothing, nothing)
        return self.items.adjusted(offer.keys, self.features.parts_of(offer), points)

    def score(
        self, offer: Offer, width_scale: float, item_width: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return scores, estimates and widths of arms, shape (3, n), and their features.

        The width is that of the regression and of the item's effect together, each times its
        factor.
        """
        points = self.features.points_of(offer)
        if self.items is None:
            _, parts = self.model.score(points, lambda log_det, n_samples: width_scale)
        else:
            known, offsets, variances = self._adjusted(offer, points)
            _, parts = self.model.score(known, lambda log_det, n_samples: width_scale)
            parts[1] += offsets
            parts[2] = np.sqrt(parts[2] * parts[2] + item_width * item_width * variances)
        parts *= self.scales.noise
        parts[1] += self.shift
        np.add(parts[1], parts[2], out=parts[0])
        return parts, points

    def draw(
        self,
        offer: Offer,
        random: np.random.Generator,
        width_scale: float,
        item_width: float,
    ) -> FloatArray:
        """Return rewards of arms under parameters drawn from the posterior, minus the estimates.

        With V = R'R, u = R'⁻¹φ and g standard normal, u·g has the posterior's variance φ'V⁻¹φ.
        """
        model = self.model
        drawn = Ridge(model.dim, ridge=model.ridge)
        normals = width_scale * random.standard_normal(model.dim)
        drawn.set_root(model.factor, normals, model.log_det, model.n_samples)
        known, _, variances = self._adjusted(offer, self.features.points_of(offer))
        rests = drawn.predict(known)[0]
        if self.items is not None:
            items, copies = np.unique(offer.keys, return_inverse=True)
            effects = random.standard_normal(len(items))[copies]
            rests = rests + item_width * np.sqrt(variances) * effects
        return self.scales.noise * rests

    def win_shares(
        self,
        offer: Offer,
        points: FloatArray,
        estimates: FloatArray,
        played: int,
        random: np.random.Generator,
        width_scale: float,
        item_width: float,
    ) -> FloatArray:
        """Return how often each arm is best in draws like that of `draw`, whose best is `played`.

        `points` are the features of the arms, `estimates` their estimates.
        """
        known, _, variances = self._adjusted(offer, points)
        white = width_scale * self.model.whitened(known)
        own = None if self.items is None else item_width * np.sqrt(variances)
        means = estimates / self.scales.noise
        return win_shares(offer.keys, means, white, played, random, own)

    def information(self) -> float:
        """Return log det of regression and item effects, the intercept left out."""
        total = self.model.log_det - 2.0 * math.log(abs(self.model.factor[0, 0]))
        return total + (0.0 if self.items is None else self.items.information())

    def fork(self) -> "RewardModel":
        """Return a copy that can learn; afterwards this one must learn no more."""
        return RewardModel(self.features, self.scales, self.shift, self.model.fork(), self.items)

    def copied(self) -> "RewardModel":
        """Return an independent copy."""
        return RewardModel(self.features, self.scales, self.shift, self.model.copied(), self.items)

    def widened(
        self, unscaled: AnyFeatures, old: NDArray[np.uint64], new: NDArray[np.uint64]
    ) -> "RewardModel":
        """Return the model with more features, which no reward has used.

        `old` and `new` are the keys of the known items without and with these features.
        """
        features = _scaled_as(unscaled, self.scales, self.features)
        places = features.alike(self.features).argmax(axis=1)
        model = self.model.widened(features.n_features, places)
        items = self.items
        if isinstance(items, Items):
            items = items.renamed(old, new)
        elif items is not None:
            parts = features.parts_alike(self.features).argmax(axis=1)
            scales = self.scales.spread(features.item_columns)
            items = items.widened(scales, parts, places, features.n_features, old, new)
        return RewardModel(features, self.scales, self.shift, model, items)

    def learn_all(self, offer: Offer, rewards: FloatArray) -> None:
        """Add the rewards of several arms."""
        points = self.features.points_of(offer)
        for arm, reward in enumerate(rewards):
            self.learn(offer.one(arm), points[arm], float(reward))

    def learn(self, offer: Offer, point: FloatArray, reward: float) -> None:
        """Add the reward of an arm with its features."""
        target = min(
            max((reward - self.shift) / self.scales.noise, -_LARGEST_TARGET), _LARGEST_TARGET
        )
        if self.items is not None:
            part = self.features.parts_of(offer)[0]
            self.items, point, target = self.items.after(int(offer.keys[0]), part, point, target)
        self.model.update(point, target)

    def state(self) -> dict[str, Any]:
        """Return scales, regression and items."""
        return {
            "groups": list(self.features.columns),
            "item_groups": list(self.features.item_columns),
            "logs": self.scales.logs,
            "noise": self.scales.noise,
            "shift": self.shift,
            "model": self.model.state(),
            "items": None if self.items is None else self.items.state(),
        }

    @classmethod
    def restored(cls, state: dict[str, Any], unscaled: AnyFeatures) -> "RewardModel":
        """Return the model that `state` described."""
        groups, item_groups = (
            _restored_groups(state[name], known)
            for name, known in (
                ("groups", unscaled.columns),
                ("item_groups", unscaled.item_columns),
            )
        )
        has_items = state["items"] is not None
        is_keyed = has_items and "means" not in state["items"]
        own = [*unscaled.item_columns] if is_keyed else [ITEM] if has_items else []
        scales = Scales.restored(state, [*unscaled.columns, *own])
        features = _chosen(unscaled, scales, groups, item_groups)
        model = Ridge(features.n_features, ridge=1.0)
        model.restore(state["model"])
        items: Items | ItemCoefficients | None = None
        if is_keyed:
            spread = scales.spread(features.item_columns)
            items = ItemCoefficients.restored(state["items"], spread, features.n_features)
        elif has_items:
            items = Items.restored(state["items"], scales.of(ITEM))
        shift = checks.real("shift", state["shift"], -LARGEST, LARGEST)
        return cls(features, scales, shift, model, items)


def is_too_large(features: AnyFeatures, items: Items | ItemCoefficients | None) -> bool:
    """Return whether features have grown far beyond the bounds of a model that is fitted anew."""
    if not isinstance(features, JointFeatures):
        return False
    crossed = features.columns.get(CROSSED, slice(0, 0))
    if crossed.stop - crossed.start > _MORE_PRODUCTS * MOST_CROSSED:
        return True
    if not isinstance(items, ItemCoefficients):
        return False
    n_parts = features.n_parts
    size = len(items.blocks) * n_parts * (n_parts + features.n_features + 1)
    return size > _MORE_SUMS * MOST_SUMS


def _restored_groups(given: Any, known: Mapping[str, Any]) -> list[str]:
    groups = [checks.one_of("groups", group, tuple(known)) for group in given]
    if len(set(groups)) < len(groups):
        raise ArchiveError(f"groups must be different, got {groups}")
    return groups


def _sums(
    unscaled: AnyFeatures, offer: Offer, points: FloatArray, samples: Samples, shift: float
) -> ItemSums:
    """Return the sums over the rewards of each item, kept ones and those in a summary."""
    parts = unscaled.parts_of(offer)
    sums = ItemSums.of(offer.keys, parts, points, samples.counts, samples.means, shift)
    others = samples.others
    return sums if others is None or others.items is None else sums.plus(others.items)


def _by_item(
    unscaled: AnyFeatures,
    features: AnyFeatures,
    scales: Scales,
    points: FloatArray,
    targets: FloatArray,
    samples: Samples,
    sums: ItemSums,
) -> tuple[Ridge, ItemCoefficients]:
    """Return the regression, and the coefficients of items, in units of the noise.

    `points` and `targets` are those of all samples, `sums` in the features without scales.
    """
    k, old = sums.n_parts, sums.sums
    kept = np.concatenate(
        [
            np.arange(columns.start, columns.stop)
            for group, columns in unscaled.item_columns.items()
            if group in features.item_columns
        ]
    )
    rows = features.rescaled(old[:, kept, k:-1].reshape(-1, old.shape[2] - k - 1), unscaled.columns)
    scaled = np.concatenate(
        [
            old[:, kept][:, :, kept],
            rows.reshape(len(old), len(kept), -1),
            old[:, kept, -1:] / scales.noise,
        ],
        axis=2,
    )
    sums = sums._replace(sums=scaled)
    spread = scales.spread(features.item_columns)
    joint = np.column_stack([points, targets])
    gram = joint.T @ (samples.weights(0.0)[:, None] * joint) - sums.taken_away(spread)[0]
    rows, short, _ = rooted(gram, _ROUNDING)
    return Ridge.fitted(rows, short, ridge=1.0), ItemCoefficients.of(sums, spread)


def _scaled(unscaled: AnyFeatures, scales: Scales) -> AnyFeatures:
    """Return the groups that move rewards, with their scales; at least one if there is any."""
    largest = max((scales.logs[group] for group in unscaled.columns), default=NEGLIGIBLE)
    least = min(largest, math.nextafter(NEGLIGIBLE, math.inf))
    groups = [group for group in unscaled.columns if scales.logs[group] >= least]
    by_item = [
        group
        for group in unscaled.item_columns
        if group == ITEM or scales.logs.get(group, NEGLIGIBLE) > NEGLIGIBLE
    ]
    return _chosen(unscaled, scales, groups, by_item)


def _scaled_as(unscaled: AnyFeatures, scales: Scales, known: AnyFeatures) -> AnyFeatures:
    """Return the groups that other features have, with scales."""
    return _chosen(unscaled, scales, list(known.columns), list(known.item_columns))


def _chosen(
    unscaled: AnyFeatures, scales: Scales, groups: Sequence[str], item_groups: Sequence[str]
) -> AnyFeatures:
    if isinstance(unscaled, JointFeatures):
        return unscaled.scaled(scales, groups, item_groups)
    return unscaled.scaled(scales, groups)
