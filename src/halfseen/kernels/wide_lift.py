"""Compiled latent coordinates for large ranks: the seen entries of an arm are gathered first.

A `plan` has the columns of the basis as its first rows; the last row contains ρ and the scales.
"""

import numpy as np
from numba.types import boolean, float64, int64, void

from halfseen.kernels.compiling import compiled
from halfseen.kernels.types import in_1, in_2, out_2

# Coordinates are clipped here, so that their squares are finite: equal to `values.LARGEST`.
_LARGEST = 1e100
# The compiler may reorder long sums, but must not assume that nothing is NaN.
_REORDERED = {"fastmath": {"reassoc", "contract", "nsz"}}


@compiled(void(in_1, in_1, in_1, in_1, in_1, in_1, out_2, int64, int64), **_REORDERED)
def _nine_products(x0, x1, x2, y0, y1, y2, gram, a, b):
    """Write the inner products of three columns with three columns."""
    s00 = s01 = s02 = s10 = s11 = s12 = s20 = s21 = s22 = 0.0
    for i in range(x0.shape[0]):
        s00 += x0[i] * y0[i]
        s01 += x0[i] * y1[i]
        s02 += x0[i] * y2[i]
        s10 += x1[i] * y0[i]
        s11 += x1[i] * y1[i]
        s12 += x1[i] * y2[i]
        s20 += x2[i] * y0[i]
        s21 += x2[i] * y1[i]
        s22 += x2[i] * y2[i]
    gram[a, b], gram[a, b + 1], gram[a, b + 2] = s00, s01, s02
    gram[a + 1, b], gram[a + 1, b + 1], gram[a + 1, b + 2] = s10, s11, s12
    gram[a + 2, b], gram[a + 2, b + 1], gram[a + 2, b + 2] = s20, s21, s22


@compiled(int64(in_1, in_2, int64, out_2, int64[::1]))
def _gather(arm, rows, rank, columns, seen):
    """Write the seen entries of all columns and, in the remaining rows, of the arm.

    Returns their number; zeros fill up to a multiple of four.
    """
    # Without a branch, which would be mispredicted for every third entry.
    n_seen = 0
    for j in range(arm.shape[0]):
        seen[n_seen] = j
        n_seen += arm[j] == arm[j]
    length = (n_seen + 3) // 4 * 4
    for a in range(columns.shape[0]):
        source = rows[a] if a < rank else arm
        column = columns[a]
        for i in range(n_seen):
            column[i] = source[seen[i]]
        for i in range(n_seen, length):
            column[i] = 0.0
    return n_seen


@compiled(boolean(out_2, int64, float64, float64))
def _solve_one(gram, rank, ridge, tolerance):
    """Solve by Cholesky in the upper triangle; the solution replaces the right side, column `rank`.

    False if the arm is not identified: without a ridge, a pivot is below `tolerance` times the
    largest diagonal entry.
    """
    largest = 0.0
    for a in range(rank):
        gram[a, a] += ridge
        largest = max(largest, gram[a, a])
    # Row by row, because rows are contiguous, with reciprocal pivots on the diagonal. The right
    # side is one more column.
    for a in range(rank):
        pivot = max(gram[a, a], ridge)
        if ridge == 0.0 and pivot <= tolerance * largest:
            return False
        reciprocal = 1.0 / np.sqrt(pivot)
        gram[a, a] = reciprocal
        for b in range(a + 1, rank + 1):
            gram[a, b] *= reciprocal
        for b in range(a + 1, rank):
            entry = gram[a, b]
            for c in range(b, rank + 1):
                gram[b, c] -= entry * gram[a, c]
    for a in range(rank - 1, -1, -1):
        rest = gram[a, rank]
        for b in range(a + 1, rank):
            rest -= gram[a, b] * gram[b, rank]
        gram[a, rank] = rest * gram[a, a]
    return True


@compiled(boolean(in_2, in_1, int64, float64, float64, out_2, out_2, int64[::1]))
def _solve_gathered(rows, arm, rank, ridge, tolerance, columns, gram, seen):
    """Solve (W_Ω'W_Ω + ρI) a = W_Ω'x_Ω, where the first `rank` rows of `rows` are W's columns.

    `gram` becomes the Cholesky factor with reciprocal pivots, with a in its column `rank`. Its
    numbers of rows and columns are a multiple of three above the rank. `columns` has as many rows,
    and three more columns than there are seen entries; `seen` has one more entry than there are
    features. False if the arm is not identified.
    """
    n_seen = _gather(arm, rows, rank, columns, seen)
    if ridge == 0.0 and n_seen < rank:  # rounding may leave a pivot above the tolerance
        return False
    n, wide = (n_seen + 3) // 4 * 4, gram.shape[0]
    for a in range(0, wide, 3):
        x0, x1, x2 = columns[a, :n], columns[a + 1, :n], columns[a + 2, :n]
        for b in range(a, wide, 3):
            y0, y1, y2 = columns[b, :n], columns[b + 1, :n], columns[b + 2, :n]
            _nine_products(x0, x1, x2, y0, y1, y2, gram, a, b)
    return _solve_one(gram, rank, ridge, tolerance)


@compiled(void(in_2, in_2, float64, out_2))
def lift(table, plan, tolerance, points):
    """Write the coordinates of all arms, shape (n_arms, rank); NaN where one is not identified.

    These are scales·a with the a of `_solve_gathered`.
    """
    n_arms, dim = table.shape
    rank = points.shape[1]
    settings = plan[rank]
    # Room for the seen entries only: large arrays are allocated page by page, which is slow.
    most = 0
    for arm in range(n_arms):
        n_seen = 0
        for j in range(dim):
            n_seen += table[arm, j] == table[arm, j]
        most = max(most, n_seen)
    wide = (rank + 3) // 3 * 3
    columns, gram = np.empty((wide, most + 4)), np.empty((wide, wide))
    seen = np.empty(dim + 1, np.int64)
    for arm in range(n_arms):
        identified = _solve_gathered(
            plan, table[arm], rank, settings[0], tolerance, columns, gram, seen
        )
        for a in range(rank):
            coordinate = min(max(settings[1 + a] * gram[a, rank], -_LARGEST), _LARGEST)
            points[arm, a] = coordinate if identified else np.nan
