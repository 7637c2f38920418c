"""Compiled inner loops: one call per round instead of one per arm.

Half-seen arms travel as one table with NaN where hidden; every loop here looks before it reads.
Nothing validates or raises: callers hand over C-contiguous arrays of the right shape, and get back
a number that says what happened. Signatures are explicit, so that everything compiles once, at
import, and is cached; inputs are typed read-only, which accepts writeable arrays too.

A ridge regression is carried as its `root`: the upper triangular R with R'R = V and the whitened
response w = R'⁻¹Σzr, row after row of [R | w] with nothing for what is below the diagonal, so that
a pass over all of it is one stream. With u = R'⁻¹z, the estimate of a point is u·w and its squared
width ‖u‖²: one forward substitution gives both.

How seen entries become latent coordinates is carried as a `plan`, which `Lift` makes: groups of
nine rows, six products of two columns of the basis, row by row of the upper triangle, and three
columns, zero where there are no more; in the last row ρ and scales. That is for ranks up to
`NARROW_RANK`; `_wide_kernels` is for others.
"""

import numpy as np
from numba import njit
from numba.types import Array, UniTuple, boolean, float64, int64, void

_in_1 = Array(float64, 1, "C", readonly=True)
_in_2 = Array(float64, 2, "C", readonly=True)
_any_1 = Array(float64, 1, "A", readonly=True)
_any_2 = Array(float64, 2, "A", readonly=True)
_out_1 = float64[::1]
_out_2 = float64[:, ::1]
_flags_1 = boolean[::1]

NARROW_RANK = 9
"""Up to this rank, sums over all entries in which hidden ones weigh nothing are faster than
gathering the seen ones first (measured for 30 to 100 features)."""
PIVOT_TOLERANCE = 1e-12
"""Without a ridge, a pivot this small against the largest diagonal entry is rounding: the arm is
not identified."""
# Arms that are solved side by side: loops over these lanes are vectorized, also their roots and
# quotients. What happens in one lane does not depend on the others.
_LANES = 256

# The compiler may reorder long sums, but not assume that nothing is NaN.
REORDERED = {"fastmath": {"reassoc", "contract", "nsz"}, "cache": True}
# A product and the sum it enters may be rounded once instead of twice, everywhere alike, so that a
# point has the same bits wherever it is scored. A quotient by zero is infinite: looking for it
# would keep a loop from being vectorized.
_FUSED = {"fastmath": {"contract"}, "error_model": "numpy", "cache": True}


@njit(boolean(_in_2, _out_2, float64), cache=True)
def copy_seen(table, copy, largest):
    """Copy a table with NaN for hidden; False if a seen entry is too large."""
    n_wild = 0
    for arm in range(table.shape[0]):
        for feature in range(table.shape[1]):
            x = table[arm, feature]
            copy[arm, feature] = x
            n_wild += abs(x) > largest  # False for NaN
    return n_wild == 0


@njit(void(_in_2, _out_2, int64, float64), cache=True)
def fill_in(table, block, start, hidden):
    """Copy a table into a block from row `start` on, with `hidden` (0 or NaN) where hidden."""
    for arm in range(table.shape[0]):
        for feature in range(table.shape[1]):
            x = table[arm, feature]
            block[start + arm, feature] = x if x == x else hidden


@njit(void(_any_2, _out_2), cache=True)
def orient(ascending, descending):
    """Reverse the columns and give each the sign that makes its largest entry positive."""
    dim, count = ascending.shape
    for c in range(count):
        largest = 0.0
        for j in range(dim):
            x = ascending[j, count - 1 - c]
            if abs(x) > abs(largest):
                largest = x
        sign = -1.0 if largest < 0.0 else 1.0
        for j in range(dim):
            descending[j, c] = sign * ascending[j, count - 1 - c]


@njit(boolean(_in_2, int64, int64, float64, _in_2, int64, int64, _out_2), **REORDERED)
def _nine_sums(table, first, n_lanes, largest, plan, group, n_products, sums):
    """Write one group's sums of some arms: six over seen entries, three of columns times entries.

    Returns whether an entry is too large.
    """
    at = 9 * group
    u0, u1, u2 = plan[at], plan[at + 1], plan[at + 2]
    u3, u4, u5 = plan[at + 3], plan[at + 4], plan[at + 5]
    v0, v1, v2 = plan[at + 6], plan[at + 7], plan[at + 8]
    six, three = 6 * group, n_products + 3 * group
    n_wild = 0.0
    for lane in range(n_lanes):
        arm = table[first + lane]
        s0 = s1 = s2 = s3 = s4 = s5 = t0 = t1 = t2 = 0.0
        for j in range(arm.shape[0]):
            x = arm[j]
            seen = 1.0 if x == x else 0.0
            x = x if x == x else 0.0
            n_wild += 1.0 if abs(x) > largest else 0.0
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
    return n_wild > 0.0


@njit(void(_in_1, _in_1, _out_1, int64), **_FUSED)
def _subtract_products(left, right, target, n_lanes):
    for lane in range(n_lanes):
        target[lane] -= left[lane] * right[lane]


@njit(void(_in_2, int64, int64, _out_1), cache=True)
def _largest_pivots(sums, rank, n_lanes, largest):
    for lane in range(n_lanes):
        largest[lane] = 0.0
        at = 0
        for a in range(rank):
            largest[lane] = max(largest[lane], sums[at, lane])
            at += rank - a


@njit(void(_out_2, int64, int64, int64, float64, _flags_1), **_FUSED)
def _solve_lanes(sums, rank, n_products, n_lanes, ridge, identified):
    """Solve one system per lane by Cholesky.

    The first rows of `sums` are the upper triangle row by row; from `n_products` on there are the
    right sides, which end as the solutions.
    """
    largest = np.empty(n_lanes if ridge == 0.0 else 0)
    if ridge == 0.0:
        _largest_pivots(sums, rank, n_lanes, largest)
    at = 0
    for a in range(rank):
        pivots, solution = sums[at], sums[n_products + a]
        if ridge == 0.0:
            for lane in range(n_lanes):
                if pivots[lane] <= PIVOT_TOLERANCE * largest[lane]:
                    identified[lane] = False
                    pivots[lane] = 1.0
        for lane in range(n_lanes):
            # What is below zero is rounding.
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


@njit(void(_out_2, int64, float64), **_FUSED)
def _solve_three(sums, n_lanes, ridge):
    """Do what `_solve_lanes` does, in one loop, for rank 3, which is common, and a ridge."""
    for lane in range(n_lanes):
        pivot = sums[0, lane]
        r0 = 1.0 / np.sqrt((pivot if pivot > 0.0 else 0.0) + ridge)
        a, b = sums[1, lane] * r0, sums[2, lane] * r0
        pivot = sums[3, lane] - a * a
        r1 = 1.0 / np.sqrt((pivot if pivot > 0.0 else 0.0) + ridge)
        c = (sums[4, lane] - a * b) * r1
        pivot = (sums[5, lane] - b * b) - c * c
        r2 = 1.0 / np.sqrt((pivot if pivot > 0.0 else 0.0) + ridge)
        y0 = sums[6, lane] * r0
        y1 = (sums[7, lane] - a * y0) * r1
        z2 = ((sums[8, lane] - b * y0) - c * y1) * r2 * r2
        z1 = (y1 - c * z2) * r1
        sums[6, lane], sums[7, lane], sums[8, lane] = ((y0 - a * z1) - b * z2) * r0, z1, z2


@njit(int64(_in_2, int64, int64, float64, _in_2, int64, _out_2, _flags_1), cache=True)
def lift(table, first, n_lanes, largest, plan, rank, work, identified):
    """Find the coordinates of some arms, and which are identified; return how many are not.

    They are scales·a with (W_Ω'W_Ω + ρI) a = W_Ω'x_Ω; 0 for an arm that is not identified. `work`
    has nine rows per group of the plan; the coordinates stand in those that follow six per group.
    If an entry is too large, returns −1.
    """
    n_groups = plan.shape[0] // 9
    n_products = 6 * n_groups
    settings = plan[9 * n_groups]
    for group in range(n_groups):
        if _nine_sums(table, first, n_lanes, largest, plan, group, n_products, work):
            return -1
    for lane in range(n_lanes):
        identified[lane] = True
    if rank == 3 and settings[0] > 0.0:
        _solve_three(work, n_lanes, settings[0])
    else:
        _solve_lanes(work, rank, n_products, n_lanes, settings[0], identified)
    missed = 0
    for lane in range(n_lanes):
        missed += not identified[lane]
    for a in range(rank):
        row, scale = work[n_products + a], settings[1 + a]
        for lane in range(n_lanes):
            row[lane] = scale * row[lane] if identified[lane] else 0.0
    return missed


@njit(void(_in_1, int64, _out_2, int64, int64, _out_1, _out_1), **_FUSED)
def _whiten_lanes(root, rank, work, n_products, n_lanes, estimates, squares):
    """Write estimates and squared widths of what `lift` found."""
    for i in range(rank):
        for lane in range(n_lanes):
            work[i, lane] = work[n_products + i, lane]
    for lane in range(n_lanes):
        estimates[lane] = 0.0
        squares[lane] = 0.0
    at = 0
    for i in range(rank):
        pivot, response = root[at], root[at + rank - i]
        u = work[i]
        for lane in range(n_lanes):
            u[lane] /= pivot
            estimates[lane] += u[lane] * response
            squares[lane] += u[lane] * u[lane]
        for k in range(1, rank - i):
            entry, rest = root[at + k], work[i + k]
            for lane in range(n_lanes):
                rest[lane] -= u[lane] * entry
        at += rank - i + 1


@njit(int64(_out_2, int64, int64, float64, int64), cache=True)
def _best(parts, first, stop, radius, best):
    """Turn squared widths of some arms into widths and scores.

    Returns the best of them, or `best` if an earlier one is at least as good; −1 is none.
    """
    for arm in range(first, stop):
        parts[2, arm] = radius * np.sqrt(parts[2, arm])
        parts[0, arm] = parts[1, arm] + parts[2, arm]
    for arm in range(first, stop):
        if best < 0 or parts[0, arm] > parts[0, best]:
            best = arm
    return best


@njit(
    int64(
        _in_2, float64, _in_2, _in_1, float64, _out_2, _out_1, _out_1, _out_2, int64, float64,
    ),
    cache=True,
)  # fmt: skip
def play_table(table, largest, plan, root, radius, parts, chosen, point, block, start, hidden):
    """Check a table, score its arms, copy the chosen one, and fill the table into a block.

    A whole round in one call; `point` gets the coordinates of the chosen arm. If an arm is not
    identified, returns −1 − arm; if an entry is too large, or the table does not fit into the
    block, −1 − n_arms. Then nothing but `parts` and `point` has changed.
    """
    n_arms, dim = table.shape
    if dim != block.shape[1] or start + n_arms > block.shape[0]:
        return -1 - n_arms
    rank, n_groups = point.shape[0], plan.shape[0] // 9
    n_products = 6 * n_groups
    work = np.empty((9 * n_groups, min(_LANES, n_arms)))
    identified = np.empty(min(_LANES, n_arms), np.bool_)
    best = -1
    for first in range(0, n_arms, _LANES):
        stop = min(first + _LANES, n_arms)
        missed = lift(table, first, stop - first, largest, plan, rank, work, identified)
        if missed < 0:
            return -1 - n_arms
        if missed > 0:
            lane = 0
            while identified[lane]:
                lane += 1
            return -1 - first - lane
        estimates, squares = parts[1, first:stop], parts[2, first:stop]
        _whiten_lanes(root, rank, work, n_products, stop - first, estimates, squares)
        best = _best(parts, first, stop, radius, best)
        if best >= first:
            for a in range(rank):
                point[a] = work[n_products + a, best - first]
    for j in range(dim):
        chosen[j] = table[best, j]
    fill_in(table, block, start, hidden)
    return best


@njit(void(_in_1, _out_2, _out_1), cache=True)
def unpack(root, factor, white):
    """Write R, of which nothing below the diagonal is written, and w."""
    dim = white.shape[0]
    at = 0
    for i in range(dim):
        for k in range(i, dim):
            factor[i, k] = root[at]
            at += 1
        white[i] = root[at]
        at += 1


@njit(void(_any_2, _any_1, _out_1), cache=True)
def pack(factor, white, root):
    """Write the root of R and w."""
    dim = white.shape[0]
    at = 0
    for i in range(dim):
        for k in range(i, dim):
            root[at] = factor[i, k]
            at += 1
        root[at] = white[i]
        at += 1


@njit(UniTuple(float64, 3)(float64, float64), **_FUSED)
def _angle(diagonal, z):
    """Return norm, cosine and sine of the rotation that turns (diagonal, z) to (norm, 0)."""
    if z == 0.0:
        return diagonal, 1.0, 0.0
    norm = np.sqrt(diagonal * diagonal + z * z)
    reciprocal = 1.0 / norm
    return norm, diagonal * reciprocal, z * reciprocal


@njit(void(_out_1, _out_1, _out_1, float64, float64, float64, float64), **_FUSED)
def _turn_both(row, next_row, rest, c, s, next_c, next_s):
    for k in range(rest.shape[0]):
        x, y, z = row[k], next_row[k], rest[k]
        row[k] = c * x + s * z
        z = c * z - s * x
        next_row[k] = next_c * y + next_s * z
        rest[k] = next_c * z - next_s * y


@njit(float64(_out_1, int64, _out_1, int64, _out_1), **_FUSED)
def _turn_rows(root, at, rest, i, turns):
    """Rotate row i of the root, which begins `at`, and the next one against the rest of a sample.

    Two rows in one go, so that the rest is read and written less. Cosines and sines are written to
    `turns`, if there is room. Returns by which factor the product of the diagonal has grown.
    """
    dim = rest.shape[0] - 1
    norm, c, s = _angle(root[at], rest[i])
    growth = norm / root[at]
    root[at] = norm
    x, z = root[at + 1], rest[i + 1]
    root[at + 1] = c * x + s * z
    rest[i + 1] = c * z - s * x
    if turns.shape[0] > 0:
        turns[2 * i], turns[2 * i + 1] = c, s
    if i + 1 < dim:
        following = at + dim - i + 1
        norm, next_c, next_s = _angle(root[following], rest[i + 1])
        growth *= norm / root[following]
        root[following] = norm
        if s != 0.0 or next_s != 0.0:
            row, next_row = root[at + 2 : following], root[following + 1 : following + dim - i]
            _turn_both(row, next_row, rest[i + 2 :], c, s, next_c, next_s)
        if turns.shape[0] > 0:
            turns[2 * i + 2], turns[2 * i + 3] = next_c, next_s
    return growth


@njit(float64(_out_1, _in_1, float64, _out_1), **_FUSED)
def update(root, point, reward, turns):
    """Add one sample in place; return the growth of log det V.

    The root turns by one Givens rotation per row: no inverse, no cancellation, and the determinant
    grows by the product of the squared ratios of the diagonal. Cosine and sine of each row's
    rotation are written to `turns`, if there is room for them.
    """
    dim = point.shape[0]
    rest = np.empty(dim + 1)
    for i in range(dim):
        rest[i] = point[i] if point[i] == point[i] else 0.0
    rest[dim] = reward
    growth = 1.0
    at = 0
    for i in range(0, dim, 2):
        growth *= _turn_rows(root, at, rest, i, turns)
        at += 2 * (dim - i) + 1
    return 2.0 * np.log(growth)


@njit(float64(_out_1, _in_2, _in_1), cache=True)
def insert(root, points, rewards):
    """Add many samples in place, in their order; return the growth of log det V."""
    growth = 0.0
    for n in range(points.shape[0]):
        growth += update(root, points[n], rewards[n], root[:0])
    return growth


@njit(float64(_out_1, _in_1, float64, _in_1, _out_2, int64), cache=True)
def learn_point(root, point, reward, arm, arms, place):
    """Add one sample in place and keep its arm at `place`, if that is not negative."""
    if place >= 0:
        for j in range(arm.shape[0]):
            arms[place, j] = arm[j]
    return update(root, point, reward, root[:0])


@njit(void(_in_1, _in_1, _out_2, int64, _in_1), **_FUSED)
def _eliminate(row, next_row, rests, first, u):
    """Subtract multiples of two rows from the rests of four points, from feature `first` on.

    Two rows and four points together: nothing is read or written more often than it must be.
    """
    a0, a1, a2, a3, b0, b1, b2, b3 = u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7]
    r0, r1, r2, r3 = rests[0, first:], rests[1, first:], rests[2, first:], rests[3, first:]
    for k in range(row.shape[0]):
        x, y = row[k], next_row[k]
        r0[k] = (r0[k] - a0 * x) - b0 * y
        r1[k] = (r1[k] - a1 * x) - b1 * y
        r2[k] = (r2[k] - a2 * x) - b2 * y
        r3[k] = (r3[k] - a3 * x) - b3 * y


@njit(float64(_out_1, _out_1, _in_2, _out_2), **_FUSED)
def measure(root, sample, points, parts):
    """Write estimate and squared width of every point, in one pass over the root for four of them.

    If there is a `sample`, a point without NaN and its reward, which is overwritten, it is added in
    the same pass; returns the growth of log det V. Each point's arithmetic is what it would be
    alone, and after an `update`.
    """
    n_points, dim = points.shape
    rests, squares, u = np.empty((4, dim + 1)), np.empty(4), np.empty(8)
    growth = 1.0
    for first in range(0, n_points, 4):
        count = min(4, n_points - first)
        for a in range(4):
            for i in range(dim):
                x = points[first + a, i] if a < count else 0.0
                rests[a, i] = x if x == x else 0.0
            rests[a, dim] = 0.0  # subtracting multiples of w leaves minus the estimate here
            squares[a] = 0.0
        at = 0
        for i in range(0, dim, 2):
            if first == 0 and sample.shape[0] > 0:
                growth *= _turn_rows(root, at, sample, i, root[:0])
            following = at + dim - i + 1
            end = following + dim - i
            for a in range(4):
                u[a] = rests[a, i] / root[at]
                rests[a, i + 1] -= u[a] * root[at + 1]
                squares[a] += u[a] * u[a]
                if i + 1 < dim:
                    u[4 + a] = rests[a, i + 1] / root[following]
                    squares[a] += u[4 + a] * u[4 + a]
            if i + 1 < dim:
                _eliminate(root[at + 2 : following], root[following + 1 : end], rests, i + 2, u)
            at = end
        for a in range(count):
            parts[1, first + a] = 0.0 - rests[a, dim]
            parts[2, first + a] = squares[a]
    return 2.0 * np.log(growth)


@njit(int64(_out_2, float64), cache=True)
def best(parts, radius):
    """Turn squared widths into widths and scores; return the best point, the first of equals."""
    return _best(parts, 0, parts.shape[1], radius, -1)
