"""Arms with what else is known of them: the context of their round, and who they are."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.core.factors import row_keys
from halfseen.values import FloatArray, Slate

_ITEM_SALT = np.uint64(0x5A17ED1D5)


class Offer(NamedTuple):
    """Arms of a slate, or of a log.

    Attributes
    ----------
    table : ndarray, shape (n, dim)
        NaN where hidden.
    contexts : ndarray, shape (n, context_dim) or (1, context_dim), or None
        The context of each arm, or of all of them; None if there are no contexts.
    items : ndarray, shape (n,), or None
        The number of each arm's item, NaN where it has none; None if no item has a number.

    Examples
    --------
    >>> offer = Offer(np.zeros((3, 1)), items=np.array([7.0, np.nan, 7.0]))
    >>> keys = offer.keys
    >>> bool(keys[0] == keys[2]), bool(keys[0] == keys[1])
    (True, False)
    """

    table: FloatArray
    contexts: FloatArray | None = None
    items: FloatArray | None = None

    @property
    def keys(self) -> NDArray[np.uint64]:
        """A number for each arm that is the same for the same item, shape (n,).

        Without a number of its own, an item is known by its values and holes.
        """
        if self.items is None:
            return row_keys(self.table)
        told = self.items == self.items
        keys = row_keys(self.items[:, None]) ^ _ITEM_SALT  # an arm may have the same value
        return keys if told.all() else np.where(told, keys, row_keys(self.table))

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return len(self.table)

    def best(self, scores: FloatArray) -> int:
        """Return the arm with the largest score; of equal ones that with the smallest number.

        Items of which nothing is known have equal scores, wherever they stand.
        """
        if self.items is None:
            return int(scores.argmax())
        return int(np.lexsort((self.items, -scores))[0])

    def one(self, arm: int) -> "Offer":
        """Return one of the arms."""
        some = slice(arm, arm + 1)
        contexts = self.contexts
        if contexts is not None and len(contexts) > 1:
            contexts = contexts[some]
        return Offer(self.table[some], contexts, None if self.items is None else self.items[some])


class Layout(NamedTuple):
    """How arms are kept as rows: the item's number, if there are any, the arm, the context.

    Attributes
    ----------
    dim, context_dim : int
    has_items : bool
        Whether rows begin with the number of an item.

    Examples
    --------
    >>> layout = Layout(2, 1, True)
    >>> rows = layout.packed(Offer(np.ones((2, 2)), np.array([[5.0]]), np.array([3.0, 4.0])))
    >>> rows.tolist()
    [[3.0, 1.0, 1.0, 5.0], [4.0, 1.0, 1.0, 5.0]]
    >>> layout.unpacked(rows).contexts.tolist()
    [[5.0], [5.0]]
    """

    dim: int
    context_dim: int = 0
    has_items: bool = False

    @property
    def width(self) -> int:
        """Length of a row."""
        return self.has_items + self.dim + self.context_dim

    def offer(self, slate: Slate) -> Offer:
        """Return the arms of a slate; a context that is not given is hidden."""
        if self.width == self.dim:
            return Offer(slate._table)
        contexts, items = None, None
        if self.context_dim:
            given = slate._context
            contexts = np.full((1, self.context_dim), np.nan) if given is None else given[None]
        if self.has_items:
            numbers = slate._items
            items = np.full(slate.n_arms, np.nan) if numbers is None else numbers.astype(np.float64)
        return Offer(slate._table, contexts, items)

    def packed(self, offer: Offer) -> FloatArray:
        """Return arms as rows, shape (n, width)."""
        if self.width == self.dim:
            return offer.table
        rows = np.full((offer.n_arms, self.width), np.nan)
        if offer.items is not None:
            rows[:, 0] = offer.items
        rows[:, self.has_items : self.has_items + self.dim] = offer.table
        if self.context_dim and offer.contexts is not None:
            rows[:, self.has_items + self.dim :] = offer.contexts
        return rows

    def unpacked(self, rows: FloatArray) -> Offer:
        """Return what rows (n, width) hold."""
        if self.width == self.dim:
            return Offer(rows)
        end = self.has_items + self.dim
        return Offer(
            np.ascontiguousarray(rows[:, self.has_items : end]),
            np.ascontiguousarray(rows[:, end:]) if self.context_dim else None,
            rows[:, 0].copy() if self.has_items else None,
        )

    def without_context(self) -> "Layout":
        """Return the layout of rows that have no context."""
        return self._replace(context_dim=0)


def widened_rows(table: FloatArray, dim: int, levels: Mapping[int, int]) -> FloatArray:
    """Return rows with `dim` features: new ones are hidden, or 0 for a level of a category.

    `levels` has the first feature of the category for each further level. Where that is seen, a
    level that is hidden was not known yet.

    >>> widened_rows(np.array([[1.0], [np.nan]]), 3, {2: 0}).tolist()
    [[1.0, nan, 0.0], [nan, nan, nan]]
    """
    n, old = table.shape
    if old == dim and not levels:
        return table
    wider = np.full((n, dim), np.nan)
    wider[:, :old] = table
    if levels:
        further, firsts = np.fromiter(levels, np.int64), np.fromiter(levels.values(), np.int64)
        entered = np.isnan(wider[:, further]) & ~np.isnan(wider[:, firsts])
        wider[:, further] = np.where(entered, 0.0, wider[:, further])
    return wider
