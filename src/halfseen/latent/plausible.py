"""Values that cannot be meant: an absurd value is a hidden value.

With the quartiles q₁ and q₃ of a feature and its scale s = q₃ − q₁, values outside of

    [q₁ − 20 s, q₃ + 20 s]

count as hidden: codes such as −999, lost decimal points, broken sensors. Quartiles are those of the
offered rows to which the factor model of an epoch is fitted, and are frozen with it. Rows are kept
as they came. Where quartiles coincide, as in counts that are mostly 0, the 5 % and 95 % quantiles
take their place; where these coincide, nothing is hidden.

Clipping values that are less absurd would help skewed columns, but rows of low rank with heavy
tails are no longer of low rank then.
"""

import numpy as np

from halfseen.lazy import LazyModule
from halfseen.state import Array
from halfseen.values import LARGEST, FloatArray

_kernels = LazyModule("halfseen.kernels.arm_features")

FARTHEST = 20.0
"""Scales beyond the quartiles from which on a value is implausible."""

# Quantiles are those of this many rows, evenly spaced in time.
_ROWS = 500
# With fewer values nothing is known about a feature.
_FEWEST = 20


def limits_field(dim: str) -> Array:
    """Return the field of limits."""
    return Array((2, dim), low=-LARGEST, high=LARGEST)


def no_limits(dim: int) -> FloatArray:
    """Return limits that hide nothing."""
    return np.repeat([[-LARGEST], [LARGEST]], dim, axis=1)


def limits_of(table: FloatArray) -> FloatArray:
    """Return the smallest and largest plausible value of each feature of rows, shape (2, dim)."""
    limits = no_limits(table.shape[1])
    rows = table[np.linspace(0, len(table) - 1, min(len(table), _ROWS)).astype(np.int64)]
    known = np.count_nonzero(rows == rows, axis=0)
    usable = np.flatnonzero(known >= _FEWEST)
    if not len(usable):
        return limits
    rows = np.sort(rows[:, usable], axis=0)  # hidden entries come last
    places = np.multiply.outer([0.05, 0.25, 0.75, 0.95], known[usable] - 1.0)
    below, columns = places.astype(np.int64), np.arange(len(usable))
    lower, upper = rows[below, columns], rows[below + (places > below), columns]
    outer_low, low, high, outer_high = lower + (places - below) * (upper - lower)
    scales = np.where(high > low, high - low, outer_high - outer_low)
    found = np.stack([low - FARTHEST * scales, high + FARTHEST * scales])
    varies = scales > 0.0
    limits[:, usable[varies]] = np.clip(found[:, varies], -LARGEST, LARGEST)
    return limits


def plausible(table: FloatArray, limits: FloatArray) -> FloatArray:
    """Return rows (n, dim) with implausible values hidden."""
    shown = np.empty(table.shape)
    _kernels.hide_outside(table, limits, shown)
    return shown


def n_implausible(table: FloatArray, limits: FloatArray) -> FloatArray:
    """Return how many values of each feature are implausible, shape (dim,)."""
    counts: FloatArray = ((table < limits[0]) | (table > limits[1])).sum(axis=0)
    return counts
