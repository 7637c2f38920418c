"""Features of the reward model: an intercept, latent coordinates, filled arms, and masks."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from halfseen.core.factors import Factors
from halfseen.core.group_scales import ITEM, Scales
from halfseen.core.offers import Offer
from halfseen.core.reasons import moved_by_seeing
from halfseen.lazy import LazyModule
from halfseen.values import FloatArray

_kernels = LazyModule("halfseen.kernels.arm_features")

LATENT, FILLED, MASK = "latent", "filled", "mask"
GROUPS = (LATENT, FILLED, MASK)

INTERCEPT = 1000.0
"""The intercept's scale: its prior is practically flat, as rewards are centred."""


class Grouped:
    """Features of the reward model, group after group; the first one is the intercept.

    Attributes
    ----------
    n_features : int
    columns, scales : dict
        For each group the slice of its columns, and its scale.
    item_columns : dict
        For each group of parts whose coefficients differ by item the slice of its columns.
    intercept : bool
    """

    __slots__ = ("_first", "columns", "intercept", "item_columns", "n_features", "scales")

    # Groups whose features have no names, so that those of two models cannot be told to be alike.
    unnamed: tuple[str, ...] = (LATENT,)

    def __init__(self, widths: Mapping[str, int], scales: Scales | None, intercept: bool) -> None:
        self.intercept = intercept
        self._first = (1.0 if scales is None else INTERCEPT) if intercept else 0.0
        self.scales = {group: 1.0 if scales is None else scales.of(group) for group in widths}
        self.columns = sliced(widths, 1)
        self.n_features = 1 + sum(widths.values())
        self.item_columns = {ITEM: slice(0, 1)}

    @property
    def n_parts(self) -> int:
        """Number of coefficients that each item has of its own, if items have effects."""
        return max(each.stop for each in self.item_columns.values())

    def rescaled(self, points: FloatArray, columns: Mapping[str, slice]) -> FloatArray:
        """Return what `points` would return, given features without scales and their columns."""
        parts = [self._first * points[:, :1]]
        parts += [self.scales[group] * points[:, columns[group]] for group in self.columns]
        return np.hstack(parts)

    def alike(self, other: "Grouped") -> FloatArray:
        """Return the matrix that takes each feature of others for the one of the same name.

        Shape (other.n_features, n_features). Features that came later are the last of their group.
        Latent coordinates of another number have no names.
        """
        matrix = self._alike(self.columns, other.columns, (other.n_features, self.n_features))
        matrix[0, 0] = 1.0
        return matrix

    def parts_alike(self, other: "Grouped") -> FloatArray:
        """Return the same for parts that differ by item, shape (other.n_parts, n_parts)."""
        return self._alike(self.item_columns, other.item_columns, (other.n_parts, self.n_parts))

    def _alike(
        self, ours: Mapping[str, slice], theirs: Mapping[str, slice], shape: tuple[int, int]
    ) -> FloatArray:
        matrix = np.zeros(shape)
        for group, columns in ours.items():
            old = theirs.get(group, slice(0, 0))
            n_new, n_old = columns.stop - columns.start, old.stop - old.start
            if n_new == n_old or group not in self.unnamed:
                matrix[old, columns] = np.eye(n_old, n_new)
        return matrix


def sliced(widths: Mapping[str, int], first: int) -> dict[str, slice]:
    """Return the columns of groups that stand side by side."""
    columns = {}
    for group, width in widths.items():
        columns[group] = slice(first, first + width)
        first += width
    return columns


class Features(Grouped):
    """Maps half-seen arms to the features of the reward model, group after group.

    - The intercept: 1, or 0 if there is none.
    - "latent": the posterior means of the latent coordinates.
    - "filled": the arm in deviations from the mean, hidden entries filled in.
    - "mask": 1 or 0 for a seen or hidden entry, minus the share of arms that show it. Features that
      are always hidden together count once.

    Each group is scaled so that its norm is about 1, and then multiplied by its scale.

    Parameters
    ----------
    model : Factors
    shares : ndarray, shape (dim,)
        Share of the arms that show each feature.
    groups : sequence of str
    holes : ndarray of int
        Features whose masks count.
    scales : Scales, optional
        By default all are 1, also that of the intercept, which is `INTERCEPT` otherwise.
    intercept : bool
    """

    __slots__ = ("_holes", "_lift", "_model", "_roots", "_shares", "_sizes")

    def __init__(
        self,
        model: Factors,
        shares: FloatArray,
        groups: Sequence[str],
        scales: Scales | None = None,
        *,
        holes: NDArray[np.int64] | None = None,
        intercept: bool = True,
    ) -> None:
        self._model, self._shares = model, shares
        self._holes = np.arange(model.dim) if holes is None else holes
        self._roots = np.sqrt(model.noise)
        spread = float((shares * (1.0 - shares))[self._holes].sum())
        norms = {
            LATENT: math.sqrt(max(1, model.rank)),
            FILLED: math.sqrt(max(1, int(np.count_nonzero(model.scale)))),
            MASK: math.sqrt(spread) if spread > 0.0 else 1.0,
        }
        widths = {LATENT: model.rank, FILLED: model.dim, MASK: len(self._holes)}
        super().__init__({group: widths[group] for group in groups}, scales, intercept)
        self._sizes = {group: scale / norms[group] for group, scale in self.scales.items()}
        # Of latent coordinates, in the scale of their group.
        self._lift = model.lift(self._sizes.get(LATENT, 1.0)) if model.rank else None

    @property
    def model(self) -> Factors:
        """The latent model of the arms."""
        return self._model

    def points_of(self, offer: Offer) -> FloatArray:
        """Return the features of arms, shape (n, n_features)."""
        return self.points(offer.table)

    def parts_of(self, offer: Offer) -> FloatArray:
        """Return the parts whose coefficients differ by item, shape (n, n_parts): 1."""
        return np.ones((offer.n_arms, 1))

    def points(self, table: FloatArray) -> FloatArray:
        """Return the features of arms (n, dim), NaN where hidden, shape (n, n_features)."""
        model, columns, sizes = self._model, self.columns, self._sizes
        points = np.empty((len(table), self.n_features))
        points[:, 0] = self._first
        rest = np.empty(table.shape)
        _kernels.subtract(table, model.location, model.scale, self._roots, rest)
        latent = np.empty((len(table), 0))
        if self._lift is not None:
            latent = self._lift.coordinates(rest)
            if LATENT in columns:
                points[:, columns[LATENT]] = latent
        if FILLED in columns:
            unit = sizes.get(LATENT, 1.0)
            first = columns[FILLED].start
            _kernels.write_filled(
                rest, latent / unit, self._roots, model.loadings, sizes[FILLED], first, points
            )
        if MASK in columns:
            first = columns[MASK].start
            _kernels.write_mask(table, self._shares, self._holes, sizes[MASK], first, points)
        return points

    def weights(self, theta: FloatArray) -> FloatArray:
        """Return what a deviation of each entry of a filled arm adds to θ'φ, shape (dim,).

        The posterior mean of z given what is seen is that given the filled arm, as both are linear:
        E[z | seen] = E[E[z | all] | seen]. So θ'φ is linear in the filled arm, with weights that
        do not depend on what is seen.
        """
        model, columns = self._model, self.columns
        weights = np.zeros(model.dim)
        if FILLED in columns:
            weights += self._sizes[FILLED] * theta[columns[FILLED]]
        if LATENT in columns:
            precise = model.loadings / self._roots
            precision = np.eye(model.rank) + precise @ precise.T
            direction = np.linalg.solve(precision, theta[columns[LATENT]])
            weights += self._sizes[LATENT] * (direction @ (precise / self._roots))
        return weights * (model.scale > 0.0)

    def deviations(self, table: FloatArray) -> FloatArray:
        """Return filled arms (n, dim) in deviations from the mean, clipped."""
        model = self._model
        seen = model.residuals(table) * self._roots
        return np.where(seen == seen, seen, model.latent(table) @ model.loadings)

    def missing(self, table: FloatArray, theta: FloatArray) -> FloatArray:
        """Return what the mask of arms (n, dim) adds to θ'φ, shape (n, dim)."""
        parts = np.zeros(table.shape)
        if MASK in self.columns:
            seen = (table == table) - self._shares
            weights = self._sizes[MASK] * theta[self.columns[MASK]]
            parts[:, self._holes] = seen[:, self._holes] * weights
        return parts

    def moved_by_seeing(
        self, table: FloatArray, theta: FloatArray, groups: Sequence[Sequence[int]]
    ) -> FloatArray:
        """Return by which deviation θ'φ of each arm moves if groups of features are seen.

        Shape (n, n_groups). Masks stay as they are: that we look is no news.
        """
        model, weights = self._model, self.weights(theta)
        hidden = (table != table) & (model.scale > 0.0)
        given = model.loadings * (model.scale > 0.0), model.noise, weights, groups
        return np.array([moved_by_seeing(each, *given) for each in hidden])

    def scaled(self, scales: Scales, groups: Sequence[str]) -> "Features":
        """Return some of the groups with scales."""
        model, shares, holes = self._model, self._shares, self._holes
        return Features(model, shares, groups, scales, holes=holes, intercept=self.intercept)
