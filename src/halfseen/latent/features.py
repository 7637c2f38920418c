"""Features of the reward model: φ = (1, φ_1, φ_2, …) and c = (1, c_1, …), group after group.

A row x of arms, with the factor model x = μ + Wz + ε, gives the groups

    latent: E[z | x_Ω],   filled: (E[x | x_Ω] − location)/scale, seen entries clipped at ±1000,
    mask: 1[j ∈ Ω] − share of rows that show j,

divided by √rank, √(number of features that vary), and √Σ share(1 − share), so that a group has
about the norm 1. A row of contexts gives the same groups. φ has the columns of the arm, those of
the context, and the products of some columns of both sides. c has columns of the context whose
coefficients differ by item. Without a context its side has no columns.

Columns that share a prior scale τ are a block: a group, or the levels of one category among filled
columns. The reward model multiplies every column by its τ.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

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
from halfseen.latent.plausible import plausible
from halfseen.latent.row_model import RowModel
from halfseen.lazy import LazyModule
from halfseen.values import FloatArray

_arm_features = LazyModule("halfseen.kernels.arm_features")

MOST_CROSSED = 1000
"""Largest number of products."""

MANY_CROSSED = 300
"""Beyond this, latent coordinates are enough on a side that has some. Where items come back, it is
the limit: what a context means for an item is learned by item, and the time and memory of that
grow with the number of products."""

MOST_BY_ITEM = 600
"""Largest number of the context's columns whose coefficients differ by item: the time of a round
grows with the square of their number, that of an opening with its cube times that of items."""

# With n items it is at most 1200/n, or 200 if that is more.
_MOST_ITEM_COEFFICIENTS, _ALWAYS_BY_ITEM = 1200, 200


class RowFeatures:
    """Maps half-seen rows, of arms or of contexts, to groups of columns of norm about 1.

    Parameters
    ----------
    rows : RowModel
    groups : sequence of str
        Among `ROW_GROUPS`.
    first_levels : mapping
        Further levels of categories, each with the first one: all are hidden together, so that the
        mask of the first is enough. Levels that came after the model are left out.

    Attributes
    ----------
    model : Factors
    shares : ndarray, shape (dim,)
        Share of the rows that show each feature.
    columns : dict
        For each group the slice of its columns.
    n_columns : int
    norms : dict
        What the columns of each group are divided by.
    masked : ndarray of int
        The features that have a mask column.
    blocks_of_filled : dict
        Features whose filled columns share a prior scale: for each category, known by its first
        level, its levels, and for None all others.
    """

    def __init__(
        self,
        rows: RowModel,
        groups: Sequence[str],
        first_levels: Mapping[int, int],
    ) -> None:
        model, shares = rows.factors, rows.shares
        self.model, self.shares, self._limits = model, shares, rows.limits
        first = np.arange(model.dim)
        for level, own in first_levels.items():
            if level < model.dim:
                first[level] = own
        self.masked = np.flatnonzero(first == np.arange(model.dim))
        categories = np.unique(np.delete(first, self.masked)).tolist()
        self.blocks_of_filled: dict[int | None, NDArray[np.int64]] = {
            None: np.flatnonzero(~np.isin(first, categories))
        }
        self.blocks_of_filled |= {each: np.flatnonzero(first == each) for each in categories}
        self._noise_deviations = np.sqrt(model.noise)
        variance = float((shares * (1.0 - shares))[self.masked].sum())
        self.norms = {
            LATENT: math.sqrt(max(1, model.rank)),
            FILLED: math.sqrt(max(1, int(np.count_nonzero(model.scale)))),
            MASK: math.sqrt(variance) if variance > 0.0 else 1.0,
        }
        sizes = {LATENT: model.rank, FILLED: model.dim, MASK: len(self.masked)}
        self.columns = side_by_side({group: sizes[group] for group in groups}, 0)
        self.n_columns = sum(sizes[group] for group in groups)
        self._lift = model.lift() if model.rank else None

    def shown(self, table: FloatArray) -> FloatArray:
        """Return rows with implausible values hidden, and without features that came later."""
        return plausible(np.ascontiguousarray(table[:, : self.model.dim]), self._limits)

    def design(self, table: FloatArray) -> FloatArray:
        """Return the columns of rows (n, dim or more), NaN where hidden, shape (n, n_columns)."""
        model, table = self.model, self.shown(table)
        phi, residuals = np.empty((len(table), self.n_columns)), model.residuals(table)
        latent = np.empty((len(table), 0))
        if self._lift is not None:
            latent = self._lift.coordinates(residuals)
        for group, columns in self.columns.items():
            first, unit = columns.start, 1.0 / self.norms[group]
            if group == LATENT:
                phi[:, columns] = unit * latent
            elif group == FILLED:
                _arm_features.write_filled(
                    residuals, latent, self._noise_deviations, model.loadings, unit, first, phi
                )
            else:
                _arm_features.write_mask(table, self.shares, self.masked, unit, first, phi)
        return phi


class Features:
    """Maps half-seen arms with a half-seen context to φ and c.

    φ is 1, all columns of the arm, all of the context, and products; c is 1 and columns of the
    context.

    Parameters
    ----------
    arm, context : RowFeatures
        Of arms, and of contexts.
    n_items : int
        Number of different items; 0 if they do not come back, and c has no columns.
    intercept : bool
        Without one, the first feature is 0.

    Attributes
    ----------
    columns, item_columns : dict
        For each group the slice of its columns: of φ, and of c.
    blocks, item_blocks : dict
        For each block the indices of its columns: of φ, and of c.
    n_features, n_item_columns : int
    left, right : ndarray of int
        Columns of the arm, and of the context, that are multiplied.
    crossed_norm : float
        What products are divided by.
    by_item : ndarray of int
        Columns of the context that are in c.
    """

    def __init__(
        self, arm: RowFeatures, context: RowFeatures, *, n_items: int, intercept: bool = True
    ) -> None:
        self.arm, self.context, self.n_items, self.intercept = arm, context, n_items, intercept
        arm_groups, context_groups = _multiplied(arm, context, n_items)
        self.left = column_indices(arm.columns, arm_groups)
        self.right = column_indices(context.columns, context_groups)
        # About the norm of the products: each group of a side has norm 1.
        self.crossed_norm = math.sqrt(max(1, len(arm_groups) * len(context_groups)))
        by_item = _by_item(context, n_items) if n_items else []
        self.by_item = column_indices(context.columns, by_item)
        sizes = {group: size(columns) for group, columns in arm.columns.items()}
        sizes |= {CONTEXT_GROUPS[group]: size(own) for group, own in context.columns.items()}
        if n_products := len(self.left) * len(self.right):
            sizes[CROSSED] = n_products
        own = {ITEM: 1} if n_items else {}
        own |= {BY_ITEM[group]: size(context.columns[group]) for group in by_item}
        self.columns, self.item_columns = side_by_side(sizes, 1), side_by_side(own, 0)
        self.n_features, self.n_item_columns = 1 + sum(sizes.values()), sum(own.values())
        self.blocks = self._blocks(self.columns)
        self.item_blocks = self._blocks(self.item_columns)

    def _blocks(self, columns: Mapping[str, slice]) -> dict[str, NDArray[np.int64]]:
        """Return the indices of the columns of each block."""
        found: dict[str, NDArray[np.int64]] = {}
        for group, each in columns.items():
            if group in (FILLED, CONTEXT_GROUPS[FILLED], BY_ITEM[FILLED]):
                row = self.arm if group == FILLED else self.context
                for first_level, members in row.blocks_of_filled.items():
                    if len(members):
                        name = group if first_level is None else f"{group} {first_level}"
                        found[name] = each.start + members
            else:
                found[group] = np.arange(each.start, each.stop)
        return found

    def design(self, table: FloatArray, contexts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return φ and c of arms, shapes (n, n_features) and (n, n_item_columns).

        `contexts` has shape (n, context_dim), or (1, context_dim) if all arms share it.
        """
        phi, c = (np.empty((len(table), n)) for n in (self.n_features, self.n_item_columns))
        phi[:, 0], c[:, :1] = self.intercept, 1.0
        first = 1 + self.arm.n_columns
        phi[:, 1:first] = self.arm.design(table)
        if self.context.n_columns:
            context = self.context.design(contexts)
            crossed = first + self.context.n_columns
            phi[:, first:crossed] = context
            left, right = phi[:, 1 + self.left], context[:, self.right] / self.crossed_norm
            products = left[:, :, None] * right[:, None, :]
            phi[:, crossed:] = products.reshape(len(phi), -1)
            c[:, 1:] = context[:, self.by_item]
        return phi, c


def _multiplied(
    arm: RowFeatures, context: RowFeatures, n_items: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the groups of both sides to multiply: latent coordinates and filled entries, if few.

    Otherwise latent coordinates, or filled entries on a side without any. Nothing if that is still
    too many, or a side has nothing. Where items return, fewer products are needed: what a context
    means for an item is learned by item.
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
            return found
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
