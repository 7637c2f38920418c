"""Compiled latent coordinates for small ranks: arms side by side in the lanes of vector registers.

`linear.lift.Lift` makes a `plan` of the map from seen entries to coordinates: groups of nine rows,
six of which are products of two columns of the basis, in the order of the upper triangle, and three
are columns, or zero if there are no more. The last row contains ρ and the scales.
"""

import numpy as np
from numba.types import float64, int64, void

from halfseen.kernels.compiling import compiled
from halfseen.kernels.types import flags_1, in_1, in_2, out_1, out_2

# Arms that are solved side by side: loops over these lanes are vectorized, including square roots
# and quotients. The result in one lane does not depend on the others.
_LANES = 256
# Coordinates are clipped here, so that their squares are finite: equal to `values.LARGEST`.
_LARGEST = 1e100
# The compiler may reorder long sums, but must not assume that nothing is NaN.
_REORDERED = {"fastmath": {"reassoc", "contract", "nsz"}}
# A product and the sum it enters may be rounded once instead of twice. A quotient by zero is
# infinite: checking for it would prevent vectorization.
_FUSED = {"fastmath": {"contract"}, "error_model": "numpy"}


@compiled(void(in_2, int64, int64, in_2, int64, int64, out_2), **_REORDERED)
def _nine_sums(table, first, n_lanes, plan, group, n_products, sums):
    """Write one group's sums for some arms: six of products over seen entries, three of targets."""
    at = 9 * group
    u0, u1, u2 = plan[at], plan[at + 1], plan[at + 2]
    u3, u4, u5 = plan[at + 3], plan[at + 4], plan[at + 5]
    v0, v1, v2 = plan[at + 6], plan[at + 7], plan[at + 8]
    six, three = 6 * group, n_products + 3 * group
    for lane in range(n_lanes):
        arm = table[first + lane]
        s0 = s1 = s2 = s3 = s4 = s5 = t0 = t1 = t2 = 0.0
        for j in range(arm.shape[0]):
            x = arm[j]
            seen = 1.0 if x == x else 0.0
            x = x if x == x else 0.0
            s0 += seen * u0[j]
            s1 += seen * u1[j]
            s2 += seen * u2[j]
            s3 += seen * u3[j]
            s4 += seen * u4[j]
            s5 += seen * u5[j]
            t0 += x * v0[j]
            t1 += x * v1[j]
            t2 += x * v2[j]
        sums[six, lane], sums[six + 1, lane], sums[six + 2, lane] = s0, s1, s2
        sums[six + 3, lane], sums[six + 4, lane], sums[six + 5, lane] = s3, s4, s5
        sums[three, lane], sums[three + 1, lane], sums[three + 2, lane] = t0, t1, t2


@compiled(void(in_1, in_1, out_1, int64), **_FUSED)
def _subtract_products(left, right, target, n_lanes):
    for lane in range(n_lanes):
        target[lane] -= left[lane] * right[lane]


@compiled(void(in_2, int64, int64, out_1))
def _largest_pivots(sums, rank, n_lanes, largest):
    for lane in range(n_lanes):
        largest[lane] = 0.0
        at = 0
        for a in range(rank):
            largest[lane] = max(largest[lane], sums[at, lane])
            at += rank - a


@compiled(void(out_2, int64, int64, int64, float64, float64, flags_1), **_FUSED)
def _solve_lanes(sums, rank, n_products, n_lanes, ridge, tolerance, identified):
    """Solve one system per lane by Cholesky.

    The first rows of `sums` are the upper triangle, row by row; from `n_products` on they are the
    right-hand sides, which are replaced by the solutions. Without a ridge, an arm with a pivot
    below `tolerance` times its largest diagonal entry is not identified.
    """
    largest = np.empty(n_lanes if ridge == 0.0 else 0)
    if ridge == 0.0:
        _largest_pivots(sums, rank, n_lanes, largest)
    at = 0
    for a in range(rank):
        pivots, solution = sums[at], sums[n_products + a]
        if ridge == 0.0:
            for lane in range(n_lanes):
                if pivots[lane] <= tolerance * largest[lane]:
                    identified[lane] = False
                    pivots[lane] = 1.0
        for lane in range(n_lanes):
            # Values below zero are rounding.
            pivot = pivots[lane] if pivots[lane] > 0.0 else 0.0
            pivots[lane] = 1.0 / np.sqrt(pivot + ridge)
            solution[lane] *= pivots[lane]
        width = rank - a
        for b in range(1, width):
            row = sums[at + b]
            for lane in range(n_lanes):
                row[lane] *= pivots[lane]
            _subtract_products(row, solution, sums[n_products + a + b], n_lanes)
        target = at + width
        for b in range(1, width):
            for c in range(b, width):
                _subtract_products(sums[at + b], sums[at + c], sums[target], n_lanes)
                target += 1
        at += width
    for a in range(rank - 1, -1, -1):
        at -= rank - a
        pivots, solution = sums[at], sums[n_products + a]
        for b in range(1, rank - a):
            _subtract_products(sums[at + b], sums[n_products + a + b], solution, n_lanes)
        for lane in range(n_lanes):
            solution[lane] *= pivots[lane]


@compiled(int64(in_1))
def _count_seen(arm):
    n_seen = 0
    for j in range(arm.shape[0]):
        n_seen += arm[j] == arm[j]
    return n_seen


@compiled(void(in_2, in_2, float64, out_2))
def lift(table, plan, tolerance, points):
    """Write the coordinates of all arms, shape (n_arms, rank); NaN where one is not identified.

    These are scales·a with (W_Ω'W_Ω + ρI) a = W_Ω'x_Ω.
    """
    n_arms, rank, n_groups = table.shape[0], points.shape[1], plan.shape[0] // 9
    n_products, settings = 6 * n_groups, plan[9 * n_groups]
    work = np.empty((9 * n_groups, min(_LANES, n_arms)))
    identified = np.empty(min(_LANES, n_arms), np.bool_)
    for first in range(0, n_arms, _LANES):
        n_lanes = min(_LANES, n_arms - first)
        for lane in range(n_lanes):
            # Without a ridge, rounding may leave a pivot above the tolerance.
            identified[lane] = settings[0] > 0.0 or _count_seen(table[first + lane]) >= rank
        for group in range(n_groups):
            _nine_sums(table, first, n_lanes, plan, group, n_products, work)
        _solve_lanes(work, rank, n_products, n_lanes, settings[0], tolerance, identified)
        for lane in range(n_lanes):
            for a in range(rank):
                coordinate = settings[1 + a] * work[n_products + a, lane]
                coordinate = min(max(coordinate, -_LARGEST), _LARGEST)
                points[first + lane, a] = coordinate if identified[lane] else np.nan
