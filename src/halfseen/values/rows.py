"""Half-seen rows: which of them are equal, which item an arm is, and rows with more features."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from halfseen.lazy import LazyModule
from halfseen.values.slate import FloatArray

_tables = LazyModule("halfseen.kernels.tables")

NO_ITEM = -1
"""The item id of an arm that has none."""

Keys = NDArray[np.uint64]
Items = NDArray[np.int64]

_ITEM_SALT = np.uint64(0x5A17ED1D5)


def evenly_spaced(n: int, most: int) -> NDArray[np.int64]:
    """Return the indices of at most so many of n rows.

    >>> evenly_spaced(9, 3).tolist(), evenly_spaced(2, 3).tolist()
    ([0, 4, 8], [0, 1])
    """
    return np.linspace(0, n - 1, min(n, most)).astype(np.int64)


def row_keys(table: FloatArray) -> Keys:
    """Return a number per row, the same for rows with equal values and equal masks.

    Further features that are hidden do not change it.

    >>> keys = row_keys(np.array([[1.0, np.nan], [1.0, 2.0], [1.0, np.nan]]))
    >>> bool(keys[0] == keys[2]), bool(keys[0] == keys[1])
    (True, False)
    """
    table = np.ascontiguousarray(table)
    keys = np.empty(len(table), dtype=np.uint64)
    _tables.row_keys(table, table.view(np.uint64), keys)
    return keys


def item_keys(table: FloatArray, items: Items | None) -> Keys:
    """Return a number for each arm (n, dim) that is the same for the same item.

    An arm without an item id is identified by its values and mask.

    >>> keys = item_keys(np.zeros((3, 1)), np.array([7, NO_ITEM, 7]))
    >>> bool(keys[0] == keys[2]), bool(keys[0] == keys[1])
    (True, False)
    """
    if items is None:
        return row_keys(table)
    keys = row_keys(items.astype(np.float64)[:, None]) ^ _ITEM_SALT  # no key of values
    named = items != NO_ITEM
    return keys if named.all() else np.where(named, keys, row_keys(table))


def widened_rows(table: FloatArray, dim: int, first_levels: Mapping[int, int]) -> FloatArray:
    """Return rows with `dim` features: new ones are hidden, or 0 for a level of a category.

    `first_levels` has the first feature of the category for each further level. Where that is seen,
    a level that is hidden was not known yet.

    >>> widened_rows(np.array([[1.0], [np.nan]]), 3, {2: 0}).tolist()
    [[1.0, nan, 0.0], [nan, nan, nan]]
    """
    n, old = table.shape
    if old == dim and not first_levels:
        return table
    wider = np.full((n, dim), np.nan)
    wider[:, :old] = table
    if first_levels:
        further = np.fromiter(first_levels, np.int64)
        firsts = np.fromiter(first_levels.values(), np.int64)
        entered = np.isnan(wider[:, further]) & ~np.isnan(wider[:, firsts])
        wider[:, further] = np.where(entered, 0.0, wider[:, further])
    return wider
