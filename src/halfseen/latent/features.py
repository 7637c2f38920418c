"""Features of the reward model: φ = (1000, τ_g φ_g, …), group after group.

The first column belongs to the intercept, whose τ is 1000. A row x of arms, with the factor model
x = μ + Wz + ε, gives the groups

    latent: E[z | x_Ω],   filled: (E[x | x_Ω] − location)/scale, seen entries clipped at ±1000,
    mask: 1[j ∈ Ω] − share of rows that show j.

A row of contexts gives the same groups, and both sides together the products of their columns.
Each group is divided by about its norm and multiplied by its prior scale τ_g. The columns c of a
context whose coefficients differ by item are (τ, τ_g c_g, …). Without a context its side has no
columns.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from halfseen.factors.model import Factors
from halfseen.latent.evidence import INTERCEPT, Scales
from halfseen.latent.groups import (
    BY_ITEM,
    CONTEXT_GROUPS,
    CROSSED,
    FILLED,
    ITEM,
    LATENT,
    MASK,
    ROW_GROUPS,
)
from halfseen.latent.plausible import no_limits, plausible
from halfseen.lazy import LazyModule
from halfseen.values import FloatArray

_kernels = LazyModule("halfseen.kernels.arm_features")

MOST_CROSSED = 1000
"""Largest number of products."""

MANY_CROSSED = 300
"""Beyond this, latent coordinates are enough on a side that has some. Where items come back, it is
the limit: what a context means for an item is learned by item, and the time and memory of that
grow with the number of products."""

MOST_BY_ITEM = 600
"""Largest number of the context's columns whose coefficients differ by item: the time of a round
grows with the square of their number, that of an opening with its cube times that of items."""

# That number times the number of items is at most this, unless it is below the second one.
_MOST_ITEM_COEFFICIENTS, _ALWAYS_BY_ITEM = 1200, 200

Crossing = tuple[tuple[str, ...], tuple[str, ...]]
"""The groups of arms, and of contexts, whose columns are multiplied."""

# Groups whose columns have no names, so that those of two models cannot be matched.
_UNNAMED = (LATENT, CONTEXT_GROUPS[LATENT], BY_ITEM[LATENT], CROSSED)


class RowFeatures:
    """Maps half-seen rows, of arms or of contexts, to groups of columns of norm about 1.

    Parameters
    ----------
    model : Factors
        Of the rows.
    shares : ndarray, shape (dim,)
        Share of the rows that show each feature.
    groups : sequence of str
        Among `ROW_GROUPS`.
    first_levels : mapping
        Further levels of categories, each with the first one: all are hidden together, so that the
        mask of the first is enough.
    limits : ndarray, shape (2, dim), optional
        Values beyond these are hidden; by default none.

    Attributes
    ----------
    columns : dict
        For each group the slice of its columns.
    sources : dict
        The features with a common prior scale: for each category, known by its first level, its
        levels, and for "" all others.
    """

    __slots__ = (
        "_first_levels", "_holes", "_lift", "_limits", "_noise_deviations", "_norms", "columns",
        "model", "n_columns", "shares", "sources",
    )  # fmt: skip

    def __init__(
        self,
        model: Factors,
        shares: FloatArray,
        groups: Sequence[str],
        first_levels: Mapping[int, int] = MappingProxyType({}),
        limits: FloatArray | None = None,
    ) -> None:
        self.model, self.shares, self._first_levels = model, shares, first_levels
        self._limits = no_limits(model.dim) if limits is None else limits
        first = np.arange(model.dim)
        first[list(first_levels)] = list(first_levels.values())
        self._holes = np.flatnonzero(first == np.arange(model.dim))
        categories = np.unique(list(first_levels.values())).astype(np.int64)
        self.sources = {"": np.flatnonzero(~np.isin(first, categories))}
        self.sources |= {f" {each}": np.flatnonzero(first == each) for each in categories}
        self._noise_deviations = np.sqrt(model.noise)
        variance = float((shares * (1.0 - shares))[self._holes].sum())
        self._norms = {
            LATENT: math.sqrt(max(1, model.rank)),
            FILLED: math.sqrt(max(1, int(np.count_nonzero(model.scale)))),
            MASK: math.sqrt(variance) if variance > 0.0 else 1.0,
        }
        sizes = {LATENT: model.rank, FILLED: model.dim, MASK: len(self._holes)}
        self.columns = side_by_side({group: sizes[group] for group in groups}, 0)
        self.n_columns = sum(sizes[group] for group in groups)
        self._lift = model.lift() if model.rank else None

    def only(self, groups: Sequence[str]) -> "RowFeatures":
        """Return some of the groups."""
        kept = [group for group in self.columns if group in groups]
        if len(kept) == len(self.columns):
            return self
        return RowFeatures(self.model, self.shares, kept, self._first_levels, self._limits)

    def shown(self, table: FloatArray) -> FloatArray:
        """Return rows with implausible values hidden, and without features that came later."""
        return plausible(np.ascontiguousarray(table[:, : self.model.dim]), self._limits)

    def design(self, table: FloatArray) -> FloatArray:
        """Return the columns of rows (n, dim or more), NaN where hidden, shape (n, n_columns)."""
        phi = np.empty((len(table), self.n_columns))
        self.write(table, phi, 0)
        return phi

    def write(self, table: FloatArray, phi: FloatArray, first: int) -> None:
        """Write the columns of rows (n, dim) into `phi` from a column on."""
        model, columns, table = self.model, self.columns, self.shown(table)
        if LATENT in columns or FILLED in columns:
            residuals, latent = np.empty(table.shape), np.empty((len(table), 0))
            _kernels.standardise(
                table, model.location, model.scale, self._noise_deviations, residuals
            )
            if self._lift is not None:
                latent = self._lift.coordinates(residuals)
            if LATENT in columns:
                phi[:, first : first + model.rank] = latent / self._norms[LATENT]
            if FILLED in columns:
                start, unit = first + columns[FILLED].start, 1.0 / self._norms[FILLED]
                _kernels.write_filled(
                    residuals, latent, self._noise_deviations, model.loadings, unit, start, phi
                )
        if MASK in columns:
            start, unit = first + columns[MASK].start, 1.0 / self._norms[MASK]
            _kernels.write_mask(table, self.shares, self._holes, unit, start, phi)

    def weights(self, theta: FloatArray) -> FloatArray:
        """Return what a deviation of each entry of a filled row adds to θ'φ, shape (dim,).

        The posterior mean of z given what is seen is that given the filled row, as both are linear:
        E[z | seen] = E[E[z | all] | seen]. So θ'φ is linear in the filled row, with weights that
        do not depend on what is seen.
        """
        model, columns = self.model, self.columns
        weights = np.zeros(model.dim)
        if FILLED in columns:
            weights += theta[columns[FILLED]] / self._norms[FILLED]
        if LATENT in columns:
            precise = model.loadings / self._noise_deviations
            precision = np.eye(model.rank) + precise @ precise.T
            direction = np.linalg.solve(precision, theta[columns[LATENT]])
            weights += (direction @ (precise / self._noise_deviations)) / self._norms[LATENT]
        return weights * (model.scale > 0.0)

    def deviations(self, table: FloatArray) -> FloatArray:
        """Return filled rows (n, dim) in deviations from the mean, clipped."""
        model, table = self.model, self.shown(table)
        seen = model.residuals(table) * self._noise_deviations
        return np.where(seen == seen, seen, model.latent(table) @ model.loadings)

    def missing(self, table: FloatArray, theta: FloatArray) -> FloatArray:
        """Return what the mask of rows (n, dim) adds to θ'φ, shape (n, dim)."""
        table = self.shown(table)
        added = np.zeros(table.shape)
        if MASK in self.columns:
            seen = ((table == table) - self.shares) * (self.shares > 0.0)
            weights = theta[self.columns[MASK]] / self._norms[MASK]
            added[:, self._holes] = seen[:, self._holes] * weights
        return added


class Features:
    """Maps half-seen arms with a half-seen context to φ and c.

    φ is 1, all columns of the arm, some of the context's, and products; c is 1 and some of the
    context's columns.

    Parameters
    ----------
    arm, context : RowFeatures
        Of arms, and of contexts.
    groups : sequence of str
        Of φ: of `CONTEXT_GROUPS`, and `CROSSED`; all groups of `arm` are in φ anyway.
    item_groups : sequence of str
        Of c: `ITEM` and those of `BY_ITEM`; empty if items have no effects.
    crossing : Crossing
        What is multiplied.
    scales : Scales, optional
        By default all are 1, also that of the intercept, which is `INTERCEPT` otherwise.
    intercept : bool
        Without one, the first feature is 0.

    Attributes
    ----------
    columns, item_columns : dict
        For each group the slice of its columns: of φ, and of c.
    scale_blocks, item_scale_blocks : dict
        For each prior scale the indices of its columns, of φ and of c: a group, or of a group of
        filled rows the levels of one category.
    n_features, n_item_columns : int
    taus, item_taus : ndarray, shapes (n_features,) and (n_item_columns,)
        τ of each column.
    """

    __slots__ = (
        "_by_item",
        "_left",
        "_norm",
        "_right",
        "_shared",
        "arm",
        "columns",
        "context",
        "crossing",
        "intercept",
        "item_columns",
        "item_scale_blocks",
        "item_taus",
        "n_features",
        "n_item_columns",
        "scale_blocks",
        "taus",
    )  # fmt: skip

    def __init__(
        self,
        arm: RowFeatures,
        context: RowFeatures,
        groups: Sequence[str],
        item_groups: Sequence[str] = (),
        crossing: Crossing = ((), ()),
        scales: Scales | None = None,
        *,
        intercept: bool = True,
    ) -> None:
        self.arm, self.context, self.crossing = arm, context, crossing
        self.intercept = intercept
        self._left = column_indices(arm.columns, crossing[0])
        self._right = column_indices(context.columns, crossing[1])
        # About the norm of the products: each group of a side has norm 1.
        self._norm = math.sqrt(max(1, len(crossing[0])) * max(1, len(crossing[1])))
        shared = [plain for plain in context.columns if CONTEXT_GROUPS[plain] in groups]
        by_item = [plain for plain in context.columns if BY_ITEM[plain] in item_groups]
        self._shared = column_indices(context.columns, shared)
        self._by_item = column_indices(context.columns, by_item)
        sizes = {name: size(columns) for name, columns in arm.columns.items()}
        sizes |= {CONTEXT_GROUPS[plain]: size(context.columns[plain]) for plain in shared}
        if CROSSED in groups:
            sizes[CROSSED] = len(self._left) * len(self._right)
        own = {ITEM: 1} if ITEM in item_groups else {}
        own |= {BY_ITEM[plain]: size(context.columns[plain]) for plain in by_item}
        self.columns, self.item_columns = side_by_side(sizes, 1), side_by_side(own, 0)
        self.n_features, self.n_item_columns = 1 + sum(sizes.values()), sum(own.values())
        self.taus, self.item_taus = np.ones(self.n_features), np.ones(self.n_item_columns)
        self.scale_blocks = self._by_source(self.columns)
        self.item_scale_blocks = self._by_source(self.item_columns)
        if scales is not None:
            self.taus[0] = INTERCEPT
            scales.write(self.scale_blocks, self.taus)
            scales.write(self.item_scale_blocks, self.item_taus)
        self.taus[0] *= intercept

    def _by_source(self, columns: Mapping[str, slice]) -> dict[str, NDArray[np.int64]]:
        """Return the indices of columns that share a prior scale."""
        found: dict[str, NDArray[np.int64]] = {}
        for group, each in columns.items():
            sources = {"": np.arange(size(each))}
            if group in (FILLED, CONTEXT_GROUPS[FILLED], BY_ITEM[FILLED]):
                sources = (self.arm if group == FILLED else self.context).sources
            named = {group + name: each.start + own for name, own in sources.items()}
            found |= {name: own for name, own in named.items() if len(own) or len(named) == 1}
        return found

    def scaled(
        self, scales: Scales, groups: Sequence[str], item_groups: Sequence[str]
    ) -> "Features":
        """Keep some groups, and the columns that products need, and multiply each by its τ."""
        crossing: Crossing = self.crossing if CROSSED in groups else ((), ())
        context_groups = {plain for plain, group in CONTEXT_GROUPS.items() if group in groups}
        context_groups |= {plain for plain, group in BY_ITEM.items() if group in item_groups}
        return Features(
            self.arm.only([*groups, *crossing[0]]),
            self.context.only([*context_groups, *crossing[1]]),
            groups,
            item_groups,
            crossing,
            scales,
            intercept=self.intercept,
        )

    def design(self, table: FloatArray, contexts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return φ and c of arms, shapes (n, n_features) and (n, n_item_columns).

        `contexts` has shape (n, context_dim), or (1, context_dim) if all arms share it.
        """
        phi, c = (np.empty((len(table), n)) for n in (self.n_features, self.n_item_columns))
        phi[:, 0] = c[:, :1] = 1.0
        self.arm.write(table, phi, 1)
        if self.context.n_columns:
            context = self.context.design(contexts)
            first = 1 + self.arm.n_columns
            crossed = first + len(self._shared)
            phi[:, first:crossed] = context[:, self._shared]
            if CROSSED in self.columns:
                left, right = phi[:, 1 + self._left], context[:, self._right] / self._norm
                products = left[:, :, None] * right[:, None, :]
                phi[:, crossed:] = products.reshape(len(phi), -1)
            c[:, 1:] = context[:, self._by_item]
        phi *= self.taus
        c *= self.item_taus
        return phi, c

    def matching(self, other: "Features") -> FloatArray:
        """Return the matrix that takes each feature of others for the one of the same name.

        Shape (other.n_features, n_features). Features that came later are the last of their group.
        Latent coordinates of another number have no names.
        """
        shape = other.n_features, self.n_features
        matrix = _matching(self.columns, other.columns, shape)
        matrix[0, 0] = 1.0
        if CROSSED in self.columns and CROSSED in other.columns:
            left, right = (
                _matching(mine.columns, theirs.columns, (theirs.n_columns, mine.n_columns))[
                    np.ix_(old, new)
                ]
                for mine, theirs, old, new in (
                    (self.arm, other.arm, other._left, self._left),
                    (self.context, other.context, other._right, self._right),
                )
            )
            matrix[other.columns[CROSSED], self.columns[CROSSED]] = np.kron(left, right)
        return matrix

    def item_matching(self, other: "Features") -> FloatArray:
        """Return the same for the columns of c, shape (other.n_item_columns, n_item_columns)."""
        return _matching(
            self.item_columns, other.item_columns, (other.n_item_columns, self.n_item_columns)
        )

    def arm_theta(self, theta: FloatArray) -> FloatArray:
        """Return the coefficients of the arm's columns, without those of products, (n_columns,)."""
        own: FloatArray = (self.taus * theta)[1 : 1 + self.arm.n_columns]
        return own

    def _crossed(self, theta: FloatArray) -> FloatArray:
        """Return the coefficients of products, one row for each column of the arm."""
        columns = self.columns.get(CROSSED, slice(0, 0))
        weights = (self.taus * theta)[columns] / self._norm
        return weights.reshape(len(self._left), len(self._right))

    def crossed_theta(self, contexts: FloatArray, theta: FloatArray) -> FloatArray:
        """Return what the context (1, context_dim) of a round adds to `arm_theta`."""
        added = np.zeros(self.arm.n_columns)
        added[self._left] = self._crossed(theta) @ self.context.design(contexts)[0, self._right]
        return added

    def context_theta(
        self, table: FloatArray, theta: FloatArray, own: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the coefficients of the context's columns: for all arms, and more for each.

        Shapes (n_columns,) and (n, n_columns). `own`, shape (n, n_item_columns), has the
        coefficients δ of each arm's item.
        """
        shared, each = (
            np.zeros(self.context.n_columns),
            np.zeros((len(table), self.context.n_columns)),
        )
        first = 1 + self.arm.n_columns
        shared[self._shared] = (self.taus * theta)[first : first + len(self._shared)]
        each[:, self._by_item] = (self.item_taus * own)[:, 1:]
        each[:, self._right] += self.arm.design(table)[:, self._left] @ self._crossed(theta)
        return shared, each


def joint_features(
    arm: RowFeatures,
    context: RowFeatures,
    crossing: Crossing,
    *,
    n_items: int,
    intercept: bool = True,
) -> Features:
    """Return all groups that may enter the reward model, without scales."""
    groups = [*arm.columns, *(CONTEXT_GROUPS[group] for group in context.columns)]
    if all(crossing):
        groups.append(CROSSED)
    item_groups = [ITEM, *_by_item(context, n_items)] if n_items else []
    return Features(arm, context, groups, item_groups, crossing, intercept=intercept)


def chosen_crossing(arm: RowFeatures, context: RowFeatures, *, n_items: int) -> Crossing:
    """Return the groups to multiply: latent coordinates and filled entries, if these are not many.

    Otherwise latent coordinates, or filled entries on a side without any. Nothing if that is still
    too many, or a side has nothing. With items, coefficients of the context differ by item.
    """
    most_latent = MANY_CROSSED if n_items else MOST_CROSSED
    for groups, most in (((LATENT, FILLED), MANY_CROSSED), ((LATENT,), most_latent)):
        sides = [
            tuple(name for name in groups if name in side.columns)
            or tuple(name for name in (FILLED,) if name in side.columns)
            for side in (arm, context)
        ]
        n_products = len(column_indices(arm.columns, sides[0])) * len(
            column_indices(context.columns, sides[1])
        )
        if 0 < n_products <= most:
            return sides[0], sides[1]
    return (), ()


def _by_item(context: RowFeatures, n_items: int) -> list[str]:
    """Return the groups whose coefficients differ by item: all, no masks, or latent coordinates."""
    most = min(MOST_BY_ITEM, max(_ALWAYS_BY_ITEM, _MOST_ITEM_COEFFICIENTS // n_items))
    for groups in (ROW_GROUPS, (LATENT, FILLED), (LATENT,)):
        found = [group for group in groups if group in context.columns]
        if sum(size(context.columns[group]) for group in found) <= most:
            return [BY_ITEM[group] for group in found]
    return []


def side_by_side(sizes: Mapping[str, int], first: int) -> dict[str, slice]:
    """Return the columns of groups that stand side by side."""
    columns = {}
    for group, n_columns in sizes.items():
        columns[group] = slice(first, first + n_columns)
        first += n_columns
    return columns


def size(columns: slice) -> int:
    """Return the number of columns of a group."""
    return int(columns.stop - columns.start)


def column_indices(columns: Mapping[str, slice], groups: Iterable[str]) -> NDArray[np.int64]:
    """Return the indices of the columns of some groups; those without columns are ignored."""
    indices = [np.arange(each.start, each.stop) for each in map(columns.get, groups) if each]
    return np.concatenate([np.empty(0, dtype=np.int64), *indices])


def _matching(
    ours: Mapping[str, slice], theirs: Mapping[str, slice], shape: tuple[int, int]
) -> FloatArray:
    matrix = np.zeros(shape)
    for group, columns in ours.items():
        old = theirs.get(group, slice(0, 0))
        if size(columns) == size(old) or group not in _UNNAMED:
            matrix[old, columns] = np.eye(size(old), size(columns))
    return matrix
