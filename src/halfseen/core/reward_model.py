"""The reward model of `LatentUcb`: regression on groups of features, and effects of items."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen import checks
from halfseen.core.drawing import win_shares
from halfseen.core.factors import row_keys
from halfseen.core.features import FILLED, LATENT, MASK, Features
from halfseen.core.group_scales import ITEM, Scales, estimate_scales
from halfseen.core.items import Items
from halfseen.core.reasons import Reasons
from halfseen.core.ridge import Ridge
from halfseen.core.samples import Samples
from halfseen.errors import ArchiveError
from halfseen.values import LARGEST, FloatArray

CENTRES: Mapping[str, float] = {LATENT: 0.0, FILLED: 0.0, MASK: -1.0, ITEM: 0.0}
"""Centre of the prior of each group's log τ."""

NEGLIGIBLE = -4.0
"""A group whose log τ is not above this is left out: it moves rewards by 2 % of their noise."""

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
        unscaled: Features,
        table: FloatArray,
        samples: Samples,
        *,
        item_effects: bool = False,
        last: Mapping[str, float] | None = None,
    ) -> "RewardModel":
        """Return the model of some rewards, which are not all equal.

        Parameters
        ----------
        unscaled : Features
            Without scales.
        table : ndarray, shape (n, dim)
            The different arms that were played, NaN where hidden, in the order of first plays.
        samples : Samples
            Their rewards.
        item_effects : bool
        last : mapping, optional
            log τ of the previous model, from which the search starts.
        """
        shift = samples.mean() if unscaled.intercept else 0.0
        points = unscaled.points(table)
        groups = [*unscaled.columns, *([ITEM] if item_effects else [])]
        scales = estimate_scales(
            points,
            unscaled.columns,
            samples,
            centres={group: CENTRES[group] for group in groups},
            intercept=unscaled.intercept,
            last=last,
        )
        features = unscaled.scaled(scales, _telling(unscaled, scales))
        points = features.rescaled(samples.stacked(points), unscaled.columns)
        targets = samples.targets(shift) / scales.noise
        roots = np.sqrt(samples.weights(scales.of(ITEM)))
        model = Ridge.fitted(roots[:, None] * points, roots * targets, ridge=1.0)
        items = None
        if item_effects:
            items = Items.of(table, samples.counts, targets[: len(table)], scales.of(ITEM))
        return cls(features, scales, shift, model, items)

    def score(
        self, table: FloatArray, width_scale: float, item_width: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return scores, estimates and widths of arms (n, dim), shape (3, n), and their features.

        The width is that of the regression and of the item's effect together, each times its
        factor.
        """
        points = self.features.points(table)
        _, parts = self.model.score(points, lambda log_det, n_samples: width_scale)
        if self.items is not None:
            parts[1:] = self.items.scored(table, parts[1], parts[2], item_width)
        parts *= self.scales.noise
        parts[1] += self.shift
        np.add(parts[1], parts[2], out=parts[0])
        return parts, points

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

    def win_shares(
        self,
        table: FloatArray,
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
        white, own = width_scale * self.model.whitened(points), None
        if self.items is not None:
            rest = 1.0 - self.items.shrunk(table)[0]
            white = rest[:, None] * white
            own = item_width * self.items.scale * np.sqrt(rest)
        means = estimates / self.scales.noise
        return win_shares(row_keys(table), means, white, played, random, own)

    def reasons(self, table: FloatArray, width_scale: float, item_width: float) -> Reasons:
        """Return the parts of the scores of arms (n, dim)."""
        features, noise, theta = self.features, self.scales.noise, self.model.estimate
        (_, estimates, widths), points = self.score(table, width_scale, item_width)
        own = np.zeros(len(table))
        if self.items is not None:
            own = estimates - (self.shift + noise * (points @ theta))
        return Reasons(
            self.shift + noise * float(theta[0] * points[0, 0]),
            noise * features.weights(theta) * features.deviations(table),
            noise * features.missing(table, theta),
            own,
            widths,
        )

    def moved_by_seeing(self, table: FloatArray, groups: Sequence[Sequence[int]]) -> FloatArray:
        """Return by which deviation estimates of arms (n, dim) move if groups are seen."""
        moved = self.features.moved_by_seeing(table, self.model.estimate, groups)
        if self.items is not None:
            moved *= 1.0 - self.items.shrunk(table)[0][:, None]
        moved *= self.scales.noise
        return moved

    def information(self) -> float:
        """Return log det of regression and item effects, the intercept left out."""
        total = self.model.log_det - 2.0 * math.log(abs(self.model.factor[0, 0]))
        if self.items is not None:
            total += float(np.log1p(self.items.scale**2 * self.items.counts).sum())
        return total

    def fork(self) -> "RewardModel":
        """Return a copy that can learn; afterwards this one must learn no more."""
        return RewardModel(self.features, self.scales, self.shift, self.model.fork(), self.items)

    def copied(self) -> "RewardModel":
        """Return an independent copy."""
        return RewardModel(self.features, self.scales, self.shift, self.model.copied(), self.items)

    def widened(
        self, unscaled: Features, old: NDArray[np.uint64], new: NDArray[np.uint64]
    ) -> "RewardModel":
        """Return the model with more features, which no reward has used.

        `old` and `new` are the keys of the known items without and with these features.
        """
        features = unscaled.scaled(self.scales, list(self.features.columns))
        places = features.alike(self.features).argmax(axis=1)
        model = self.model.widened(features.n_features, places)
        items = None if self.items is None else self.items.renamed(old, new)
        return RewardModel(features, self.scales, self.shift, model, items)

    def learn_all(self, table: FloatArray, rewards: FloatArray) -> None:
        """Add the rewards of several arms (n, dim)."""
        for arm, point, reward in zip(table, self.features.points(table), rewards, strict=True):
            self.learn(arm, point, float(reward))

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
    def restored(cls, state: dict[str, Any], unscaled: Features) -> "RewardModel":
        """Return the model that `state` described."""
        groups = [
            checks.one_of("groups", group, tuple(unscaled.columns)) for group in state["groups"]
        ]
        if len(set(groups)) < len(groups):
            raise ArchiveError(f"groups must be different, got {groups}")
        has_items = state["items"] is not None
        scales = Scales.restored(state, [*unscaled.columns, *([ITEM] if has_items else [])])
        features = unscaled.scaled(scales, groups)
        model = Ridge(features.n_features, ridge=1.0)
        model.restore(state["model"])
        items = Items.restored(state["items"], scales.of(ITEM)) if has_items else None
        shift = checks.real("shift", state["shift"], -LARGEST, LARGEST)
        return cls(features, scales, shift, model, items)


def _telling(unscaled: Features, scales: Scales) -> list[str]:
    """Return the groups that move rewards, at least one if there is any."""
    largest = max((scales.logs[group] for group in unscaled.columns), default=NEGLIGIBLE)
    least = min(largest, math.nextafter(NEGLIGIBLE, math.inf))
    return [group for group in unscaled.columns if scales.logs[group] >= least]
