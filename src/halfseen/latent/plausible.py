"""Implausible values, which count as hidden.

With the quartiles q₁ and q₃ of a feature, values outside of

    [q₁ − 20 (q₃ − q₁), q₃ + 20 (q₃ − q₁)]

count as hidden: codes such as −999, lost decimal points, broken sensors. Quartiles are those of the
offered rows to which the factor model of an epoch is fitted, and are frozen with it. Rows are kept
as they came.

A value that a quarter of the entries share can be a quartile itself and says nothing about the
scale of the others, such as the 0 of amounts that are mostly 0, or a common code: quartiles are
those of the other entries then. What most entries have is plausible in any case. Where quartiles
coincide, the distance of the 5 % and 95 % quantiles takes the place of q₃ − q₁; where that is 0,
nothing is hidden. Quantiles are those of at most 500 rows, and of at least 20 values. They are
values of the feature, the next ones outward, never points between two of them: a scale of .05 would
hide the ones of a column of which 5 % are 1 and the others 0. So a feature with two values is never
implausible, and neither are whole numbers from 0 to 20.

Clipping values that are less absurd would help skewed columns, but rows of low rank with heavy
tails are no longer of low rank then.
"""

import numpy as np
from numpy.typing import NDArray

from halfseen.lazy import LazyModule
from halfseen.values import LARGEST, FloatArray
from halfseen.values.rows import evenly_spaced

_arm_features = LazyModule("halfseen.kernels.arm_features")

FARTHEST = 20.0
"""Scales beyond the quartiles from which on a value is implausible."""

# Quantiles are those of this many rows.
_ROWS = 500
# With fewer values nothing is known about a feature.
_FEWEST = 20


def no_limits(dim: int) -> FloatArray:
    """Return limits that hide nothing."""
    return np.repeat([[-LARGEST], [LARGEST]], dim, axis=1)


def limits_of(table: FloatArray) -> FloatArray:
    """Return the smallest and largest plausible value of each feature of rows, shape (2, dim)."""
    limits = no_limits(table.shape[1])
    rows = table[evenly_spaced(len(table), _ROWS)]
    usable = np.flatnonzero(_n_seen(rows) >= _FEWEST)
    if not len(usable):
        return limits
    rows = np.sort(rows[:, usable], axis=0)  # hidden entries come last
    low, high = _between(rows, 0.25)
    (common, n_common), n_seen = _most_common(rows), _n_seen(rows)
    shared = np.flatnonzero((n_common >= 0.25 * n_seen) & (n_seen - n_common >= _FEWEST))
    others = np.where(rows[:, shared] == common[shared], np.nan, rows[:, shared])
    first, third = _between(np.sort(others, axis=0), 0.25)
    differ = third > first
    low[shared[differ]], high[shared[differ]] = first[differ], third[differ]
    outer_low, outer_high = _between(rows, 0.05)
    scales = np.where(high > low, high - low, outer_high - outer_low)
    usual = np.where(n_common > 0.5 * n_seen, common, low)
    smallest = np.minimum(low - FARTHEST * scales, usual)
    largest = np.maximum(high + FARTHEST * scales, usual)
    varies = scales > 0.0
    found = np.stack([smallest, largest])[:, varies]
    limits[:, usable[varies]] = np.clip(found, -LARGEST, LARGEST)
    return limits


def _n_seen(rows: FloatArray) -> NDArray[np.int64]:
    """Return the number of seen entries of each column."""
    return np.asarray(np.count_nonzero(rows == rows, axis=0))


def _most_common(rows: FloatArray) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return the most common value of each sorted column, and how often it occurs."""
    places = np.arange(len(rows))[:, None]
    starts = np.zeros(rows.shape, dtype=np.int64)
    starts[1:] = np.where(rows[1:] == rows[:-1], 0, places[1:])
    lengths = places + 1 - np.maximum.accumulate(starts, axis=0)
    last, columns = lengths.argmax(axis=0), np.arange(rows.shape[1])
    return rows[last, columns], lengths[last, columns]


def _between(rows: FloatArray, share: float) -> tuple[FloatArray, FloatArray]:
    """Return the quantiles of sorted columns that leave out a share on either side."""
    columns, last = np.arange(rows.shape[1]), np.maximum(_n_seen(rows), 1) - 1
    places = (share * last).astype(np.int64)
    return rows[places, columns], rows[last - places, columns]


def plausible(table: FloatArray, limits: FloatArray) -> FloatArray:
    """Return rows (n, dim) with implausible values hidden."""
    shown = np.empty(table.shape)
    _arm_features.hide_outside(table, limits, shown)
    return shown


def n_implausible(table: FloatArray, limits: FloatArray) -> FloatArray:
    """Return how many values of each feature are implausible, shape (dim,)."""
    counts: FloatArray = ((table < limits[0]) | (table > limits[1])).sum(axis=0)
    return counts
