"""Features of arms and of their context: each side, and their products."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from halfseen.core.features import FILLED, LATENT, MASK, Features, Grouped, sliced
from halfseen.core.group_scales import ITEM, Scales
from halfseen.core.offers import Offer
from halfseen.values import FloatArray

CONTEXT = {LATENT: "context-latent", FILLED: "context-filled", MASK: "context-mask"}
"""The groups of the context's features: the same for all arms of a round."""

CROSSED = "crossed"
"""The group of the products of the arm's features with those of the context."""

BY_ITEM = {LATENT: "item-latent", FILLED: "item-filled", MASK: "item-mask"}
"""The groups of the context's features whose coefficients differ by item."""

MOST_CROSSED = 1000
"""Largest number of products."""

MANY_CROSSED = 300
"""Beyond this, latent coordinates are enough on a side that has some. Where items come back, it is
the limit: what a context means for an item is learned by item, and the time and memory of that
grow with the number of products."""

MOST_BY_ITEM = 200
"""Largest number of the context's features whose coefficients differ by item."""

Sides = tuple[tuple[str, ...], tuple[str, ...]]
"""The groups of arms, and of contexts, whose features are multiplied."""


class JointFeatures(Grouped):
    """Maps half-seen arms with a half-seen context to the features of the reward model.

    After the groups of the arm come those of the context, and the products of both sides. The
    features of the context are also the parts whose coefficients differ by item.

    Parameters
    ----------
    option, context : Features
        Of each side, without scales.
    groups : sequence of str
        Those of `option`, of `CONTEXT`, and `CROSSED`.
    item_groups : sequence of str
        Those of `BY_ITEM`.
    sides : Sides
    scales : Scales, optional
        By default all are 1.
    """

    __slots__ = ("_crossed", "_item_sources", "_sides", "context", "option")

    unnamed = (LATENT, CONTEXT[LATENT], BY_ITEM[LATENT], CROSSED)

    def __init__(
        self,
        option: Features,
        context: Features,
        groups: Sequence[str],
        item_groups: Sequence[str],
        sides: Sides,
        scales: Scales | None = None,
    ) -> None:
        self.option, self.context, self._sides = option, context, sides
        self._crossed = _places(option, sides[0]), _places(context, sides[1])
        sizes = {name: _size(columns) for name, columns in option.columns.items()}
        sizes |= {CONTEXT[name]: _size(columns) for name, columns in context.columns.items()}
        sizes[CROSSED] = len(self._crossed[0]) * len(self._crossed[1])
        super().__init__({name: sizes[name] for name in groups}, scales, option.intercept)
        found = {name: context.columns[name] for name in BY_ITEM if BY_ITEM[name] in item_groups}
        self._item_sources = list(found.values())
        by_item = {BY_ITEM[name]: _size(columns) for name, columns in found.items()}
        self.item_columns = sliced({ITEM: 1} | by_item, 0)

    def points_of(self, offer: Offer) -> FloatArray:
        """Return the features of arms with their contexts, shape (n, n_features)."""
        option, context = self._sided(offer)
        points = np.empty((offer.n_arms, self.n_features))
        points[:, 0] = self._first
        for group, columns in self.columns.items():
            if group in self.option.columns:
                part = option[:, self.option.columns[group]]
            elif group == CROSSED:
                part = self._products(option, context)
            else:
                part = context[:, self.context.columns[_PLAIN[group]]]
            np.multiply(self.scales[group], part, out=points[:, columns])
        return points

    def _sided(self, offer: Offer) -> tuple[FloatArray, FloatArray]:
        assert offer.contexts is not None
        return self.option.points(offer.table), self.context.points(offer.contexts)

    def _products(self, option: FloatArray, context: FloatArray) -> FloatArray:
        left, right = option[:, self._crossed[0]], context[:, self._crossed[1]]
        products = left[:, :, None] * right[:, None, :]
        return products.reshape(len(option), left.shape[1] * right.shape[1]) / self._crossed_norm

    @property
    def _crossed_norm(self) -> float:
        """About the norm of the products: each group of a side has norm 1."""
        return math.sqrt(max(1, len(self._sides[0])) * max(1, len(self._sides[1])))

    def parts_of(self, offer: Offer) -> FloatArray:
        """Return the parts whose coefficients differ by item: 1, and features of the context."""
        assert offer.contexts is not None
        points = self.context.points(offer.contexts)
        ones = np.ones((len(points), 1))
        parts = np.hstack([ones, *(points[:, columns] for columns in self._item_sources)])
        return np.broadcast_to(parts, (offer.n_arms, parts.shape[1]))

    def scaled(
        self, scales: Scales, groups: Sequence[str], item_groups: Sequence[str]
    ) -> "JointFeatures":
        """Return some of the groups with scales."""
        return JointFeatures(self.option, self.context, groups, item_groups, self._sides, scales)

    @property
    def sides(self) -> Sides:
        """The groups of arms, and of contexts, whose features are multiplied."""
        return self._sides

    def alike(self, other: Grouped) -> FloatArray:
        """Return the matrix that takes each feature of others for the one of the same name."""
        matrix = super().alike(other)
        if (
            CROSSED in self.columns
            and isinstance(other, JointFeatures)
            and CROSSED in other.columns
        ):
            left, right = (
                mine.alike(theirs)[np.ix_(old, new)]
                for mine, theirs, old, new in (
                    (self.option, other.option, other._crossed[0], self._crossed[0]),
                    (self.context, other.context, other._crossed[1], self._crossed[1]),
                )
            )
            matrix[other.columns[CROSSED], self.columns[CROSSED]] = np.kron(left, right)
        return matrix

    def crossed_theta(self, offer: Offer, theta: FloatArray) -> FloatArray:
        """Return what the context of a round adds to the coefficients of the arms' features.

        Shape (n,) with n features of `option`, the intercept among them.
        """
        added = np.zeros(self.option.n_features)
        if CROSSED in self.columns:
            assert offer.contexts is not None
            right = self.context.points(offer.contexts)[0, self._crossed[1]]
            weights = theta[self.columns[CROSSED]].reshape(-1, len(right))
            added[self._crossed[0]] = self.scales[CROSSED] / self._crossed_norm * (weights @ right)
        return added

    def context_theta(
        self, offer: Offer, theta: FloatArray, own: FloatArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """Return the coefficients of the context's features: for all arms, and more for each.

        Shapes (n,) and (n_arms, n) with n features of `context`, the intercept among them.

        Parameters
        ----------
        offer : Offer
        theta : ndarray, shape (n_features,)
        own : ndarray, shape (n_arms, n_parts), optional
            The coefficients of each arm's item.
        """
        shared = np.zeros(self.context.n_features)
        each = np.zeros((offer.n_arms, self.context.n_features))
        for plain, group in CONTEXT.items():
            if group in self.columns:
                columns = self.context.columns[plain]
                shared[columns] = self.scales[group] * theta[self.columns[group]]
        if CROSSED in self.columns:
            left = self.option.points(offer.table)[:, self._crossed[0]]
            weights = theta[self.columns[CROSSED]].reshape(left.shape[1], -1)
            scale = self.scales[CROSSED] / self._crossed_norm
            each[:, self._crossed[1]] += scale * (left @ weights)
        if own is not None:
            for plain, group in BY_ITEM.items():
                if group in self.item_columns:
                    each[:, self.context.columns[plain]] += own[:, self.item_columns[group]]
        return shared, each


_PLAIN: Mapping[str, str] = {name: plain for plain, name in CONTEXT.items()}


AnyFeatures = Features | JointFeatures


def _by_item(context: Features) -> list[str]:
    """Return the groups whose coefficients differ by item: all, or else latent coordinates.

    The time of a round grows with the square of their number, that of an opening with its cube.
    """
    for groups in (tuple(context.columns), (LATENT,)):
        found = [group for group in groups if group in context.columns]
        if sum(_size(context.columns[group]) for group in found) <= MOST_BY_ITEM:
            return [BY_ITEM[group] for group in found]
    return []


def joint(option: Features, context: Features, sides: Sides) -> JointFeatures:
    """Return all groups that may enter the reward model, without scales; `sides` are multiplied."""
    groups = [*option.columns, *(CONTEXT[group] for group in context.columns)]
    by_item = _by_item(context)
    if all(sides):
        groups.append(CROSSED)
    return JointFeatures(option, context, groups, by_item, sides)


def _places(side: Features, groups: Sequence[str]) -> NDArray[np.int64]:
    """Return the columns of some groups."""
    columns = [side.columns[group] for group in groups]
    places = [np.arange(each.start, each.stop) for each in columns]
    return np.concatenate([np.empty(0, dtype=np.int64), *places])


def _size(columns: slice) -> int:
    return int(columns.stop - columns.start)


def chosen_sides(option: Features, context: Features, *, by_item: bool) -> Sides:
    """Return the groups to multiply: latent coordinates and filled entries, if these are not many.

    Otherwise latent coordinates, or filled entries on a side without any. Nothing if that is still
    too many, or a side has nothing. With `by_item`, coefficients of the context differ by item.
    """
    most_latent = MANY_CROSSED if by_item else MOST_CROSSED
    for groups, most in (((LATENT, FILLED), MANY_CROSSED), ((LATENT,), most_latent)):
        sides = [
            tuple(name for name in groups if name in side.columns)
            or tuple(name for name in (FILLED,) if name in side.columns)
            for side in (option, context)
        ]
        sizes = [
            sum(_size(side.columns[name]) for name in chosen)
            for side, chosen in zip((option, context), sides, strict=True)
        ]
        if 0 < sizes[0] * sizes[1] <= most:
            return sides[0], sides[1]
    return (), ()
