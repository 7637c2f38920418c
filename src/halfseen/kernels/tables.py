"""Compiled copies of tables with NaN where hidden."""

from numba import njit
from numba.types import boolean, float64, int64, void

from halfseen.kernels.types import in_2, out_2


@njit(boolean(in_2, out_2, float64), cache=True)
def copy_checked(table, copy, largest):
    """Copy a table; return whether no seen entry is larger than `largest`."""
    n_too_large = 0
    for arm in range(table.shape[0]):
        for feature in range(table.shape[1]):
            x = table[arm, feature]
            copy[arm, feature] = x
            n_too_large += abs(x) > largest  # False for NaN
    return n_too_large == 0


@njit(void(in_2, out_2, int64, float64), cache=True)
def copy_filled(table, block, start, hidden):
    """Copy a table into a block from row `start` on, with `hidden` where an entry is hidden."""
    for arm in range(table.shape[0]):
        for feature in range(table.shape[1]):
            x = table[arm, feature]
            block[start + arm, feature] = x if x == x else hidden
