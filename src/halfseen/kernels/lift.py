"""Compiled latent coordinates: scales·a with (W_Ω'W_Ω + ρI) a = W_Ω'x_Ω, arm by arm."""

import numpy as np
from numba.types import boolean, float64, int64, void

from halfseen.kernels.compiling import compiled, in_1, in_2, out_1, out_2

# Coordinates are clipped here, so that their squares are finite: equal to `values.LARGEST`.
_LARGEST = 1e100
# The compiler may reorder long sums, but must not assume that nothing is NaN.
_REORDERED = {"fastmath": {"reassoc", "contract", "nsz"}}


@compiled(float64(in_1, in_1, int64), **_REORDERED)
def _dot(left, right, n):
    total = 0.0
    for i in range(n):
        total += left[i] * right[i]
    return total


@compiled(boolean(out_2, out_1, float64, float64))
def _solve(gram, target, ridge, tolerance):
    """Solve by Cholesky in the upper triangle; the solution replaces the target.

    False if the arm is not identified: without a ridge, a pivot is below `tolerance` times the
    largest diagonal entry.
    """
    rank = len(target)
    largest = 0.0
    for a in range(rank):
        largest = max(largest, gram[a, a])
    for a in range(rank):
        pivot = max(gram[a, a], 0.0) + ridge  # values below zero are rounding
        if ridge == 0.0 and pivot <= tolerance * largest:
            return False
        reciprocal = 1.0 / np.sqrt(pivot)
        gram[a, a] = reciprocal
        target[a] *= reciprocal
        for b in range(a + 1, rank):
            gram[a, b] *= reciprocal
        for b in range(a + 1, rank):
            entry = gram[a, b]
            target[b] -= entry * target[a]
            for c in range(b, rank):
                gram[b, c] -= entry * gram[a, c]
    for a in range(rank - 1, -1, -1):
        for b in range(a + 1, rank):
            target[a] -= gram[a, b] * target[b]
        target[a] *= gram[a, a]
    return True


@compiled(void(in_2, in_2, float64, in_1, float64, out_2))
def lift(table, columns, ridge, scales, tolerance, points):
    """Write the coordinates of all arms, shape (n_arms, rank); NaN where one is not identified.

    `columns` are those of W, shape (rank, dim).
    """
    (n_arms, dim), rank = table.shape, len(columns)
    gram, target = np.empty((rank, rank)), np.empty(rank)
    # The seen entries of each column and, in the last row, of the arm.
    seen, places = np.empty((rank + 1, dim)), np.empty(dim + 1, np.int64)
    for arm in range(n_arms):
        n_seen = 0
        for j in range(dim):  # without a branch, which would often be mispredicted
            places[n_seen] = j
            n_seen += table[arm, j] == table[arm, j]
        for a in range(rank + 1):
            source = columns[a] if a < rank else table[arm]
            for i in range(n_seen):
                seen[a, i] = source[places[i]]
        for a in range(rank):
            target[a] = _dot(seen[a], seen[rank], n_seen)
            for b in range(a, rank):
                gram[a, b] = _dot(seen[a], seen[b], n_seen)
        # Without a ridge, rounding may leave a pivot above the tolerance.
        identified = ridge > 0.0 or n_seen >= rank
        identified = identified and _solve(gram, target, ridge, tolerance)
        for a in range(rank):
            coordinate = min(max(scales[a] * target[a], -_LARGEST), _LARGEST)
            points[arm, a] = coordinate if identified else np.nan
