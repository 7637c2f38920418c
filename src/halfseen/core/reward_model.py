"""The reward model of `LatentUcb`: regression on groups of features, and effects of items."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from halfseen import checks
from halfseen.core.factors import Factors, row_keys
from halfseen.core.features import FILLED, GROUPS, LATENT, MASK, Features
from halfseen.core.group_scales import ITEM, Samples, Scales, estimate_scales, sample_weights
from halfseen.core.items import Items
from halfseen.core.ridge import Ridge
from halfseen.errors import ArchiveError
from halfseen.values import LARGEST, FloatArray

CENTRES: Mapping[str, float] = {LATENT: 0.0, FILLED: 0.0, MASK: -1.0, ITEM: 0.0}
"""Centre of the prior of each group's log τ."""

# Rewards farther from the mean than this many deviations of the noise are clipped.
_LARGEST_TARGET = 1e50


class RewardModel:
    """Rewards given the features of arms: intercept, groups with prior scales, and item effects.

    Rewards are centred by `shift` and divided by the deviation of the noise, so every number in the
    regression is in units of the noise.

    Attributes
    ----------
    features : Features
    scales : Scales
    shift : float
    model : Ridge
    items : Items or None
        None if items have no effects.
    """

    __slots__ = ("features", "items", "model", "scales", "shift")

    def __init__(
        self, features: Features, scales: Scales, shift: float, model: Ridge, items: Items | None
    ) -> None:
        self.features, self.scales, self.shift = features, scales, shift
        self.model, self.items = model, items

    @classmethod
    def fitted(
        cls,
        latent: Factors,
        shares: FloatArray,
        groups: Sequence[str],
        arms: FloatArray,
        rewards: FloatArray,
        *,
        weights: FloatArray | None = None,
        intercept: bool = True,
        item_effects: bool = False,
        last: Mapping[str, float] | None = None,
    ) -> "RewardModel":
        """Return the model of some rewards, which are not all equal.

        Parameters
        ----------
        latent : Factors
        shares : ndarray, shape (dim,)
            Share of the offered arms that show each feature.
        groups : sequence of str
            Groups of `Features`.
        arms : ndarray, shape (n, dim)
            The played arms, NaN where hidden.
        rewards : ndarray, shape (n,)
        weights : ndarray, shape (n,), optional
            How much each reward counts; by default 1.
        intercept, item_effects : bool
        last : mapping, optional
            log τ of the previous model, from which the search starts.
        """
        keys, first, numbers = np.unique(row_keys(arms), return_index=True, return_inverse=True)
        # Samples are in the order of their first play: that of keys depends on the arms' units, and
        # sums in another order are rounded differently.
        order = np.argsort(first)
        places = np.argsort(order)
        samples = Samples.of(places[numbers], rewards, weights)
        shift = float(samples.counts @ samples.means / samples.counts.sum()) if intercept else 0.0
        unscaled = Features(latent, shares, groups, intercept=intercept)
        points = unscaled.points(np.ascontiguousarray(arms[first[order]]))
        centres = {group: CENTRES[group] for group in groups}
        if item_effects:
            centres[ITEM] = CENTRES[ITEM]
        scales = estimate_scales(
            {group: points[:, columns] for group, columns in unscaled.columns.items()},
            samples,
            centres=centres,
            intercept=intercept,
            last=last,
        )
        for group, columns in unscaled.columns.items():
            points[:, columns] *= scales.of(group)
        targets = (samples.means - shift) / scales.noise
        roots = np.sqrt(sample_weights(samples.counts, scales.of(ITEM)))
        model = Ridge.fitted(roots[:, None] * points, roots * targets, ridge=1.0)
        items = None
        if item_effects:
            counts, means = samples.counts[places], targets[places]
            items = Items.of(keys, counts, means, scales.of(ITEM), first)
        features = Features(latent, shares, groups, scales, intercept=intercept)
        return cls(features, scales, shift, model, items)

    def score(
        self, table: FloatArray, width_scale: float, item_width: float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return estimates and widths of arms (n, dim), and their features.

        The width is that of the regression and of the item's effect together, each times its
        factor.
        """
        points = self.features.points(table)
        estimates, deviations = self.model.predict(points)
        widths = width_scale * deviations
        if self.items is not None:
            estimates, widths = self.items.scored(table, estimates, widths, item_width)
        noise = self.scales.noise
        return self.shift + noise * estimates, noise * widths, points

    def draw(
        self,
        table: FloatArray,
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
        rests = drawn.predict(self.features.points(table))[0]
        if self.items is not None:
            rests = self.items.drawn(table, rests, random, item_width)
        return self.scales.noise * rests

    def fork(self) -> "RewardModel":
        """Return a copy that can learn; afterwards this one must learn no more."""
        return RewardModel(self.features, self.scales, self.shift, self.model.fork(), self.items)

    def learn(self, arm: FloatArray, point: FloatArray | None, reward: float) -> None:
        """Add the reward of an arm (dim,); `point` are its features, if they are known."""
        if point is None:
            point = self.features.points(arm[None, :])[0]
        target = min(
            max((reward - self.shift) / self.scales.noise, -_LARGEST_TARGET), _LARGEST_TARGET
        )
        if self.items is not None:
            self.items, weight, target = self.items.after(arm, target)
            point, target = math.sqrt(weight) * point, math.sqrt(weight) * target
        self.model.update(point, target)

    def state(self) -> dict[str, Any]:
        """Return scales, regression and items."""
        return {
            "groups": list(self.features.columns),
            "logs": self.scales.logs,
            "noise": self.scales.noise,
            "shift": self.shift,
            "model": self.model.state(),
            "items": None if self.items is None else self.items.state(),
        }

    @classmethod
    def restored(
        cls, state: dict[str, Any], latent: Factors, shares: FloatArray, *, intercept: bool
    ) -> "RewardModel":
        """Return the model that `state` described."""
        groups = [checks.one_of("groups", group, GROUPS) for group in state["groups"]]
        if len(set(groups)) < len(groups):
            raise ArchiveError(f"groups must be different, got {groups}")
        has_items = state["items"] is not None
        scales = Scales.restored(state, [*groups, *([ITEM] if has_items else [])])
        features = Features(latent, shares, groups, scales, intercept=intercept)
        model = Ridge(features.n_features, ridge=1.0)
        model.restore(state["model"])
        items = Items.restored(state["items"], scales.of(ITEM)) if has_items else None
        shift = checks.real("shift", state["shift"], -LARGEST, LARGEST)
        return cls(features, scales, shift, model, items)
