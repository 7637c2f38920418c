"""Compiled inner loops: one call per round instead of one per arm.

Half-seen arms travel as one table with NaN where hidden; every loop here looks before it reads.
Nothing validates or raises: callers hand over C-contiguous arrays of the right shape, and get back
a number that says what happened. Signatures are explicit, so that everything compiles once, at
import, and is cached; inputs are typed read-only, which accepts writeable arrays too.

A ridge regression is carried as the upper triangular `factor` R with R'R = V and the whitened
response `white` w = R'⁻¹Σzr. With u = R'⁻¹z, the estimate of a point is u·w and its squared width
‖u‖², so that one forward substitution gives both.
"""

import numpy as np
from numba import njit
from numba.types import Array, UniTuple, boolean, float64, int64, void

_in_1 = Array(float64, 1, "C", readonly=True)
_in_2 = Array(float64, 2, "C", readonly=True)
_any_2 = Array(float64, 2, "A", readonly=True)
_out_1 = float64[::1]
_out_2 = float64[:, ::1]
_flags_1 = boolean[::1]

# Without a ridge, a pivot this small against the largest diagonal entry is rounding: the arm is not
# identified.
_PIVOT_TOLERANCE = 1e-12
# Adding eight rows at a time is faster at rank 20 and slower at 8 and 10 (measured).
_WIDE_RANK = 16


@njit(boolean(_any_2, _out_2, float64), cache=True)
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


@njit(void(_in_2, _in_1, int64[::1], _out_2, _out_1), cache=True)
def _add_rows(basis, arm, seen, gram, latent):
    """Add u u' and u x of all seen rows, eight at a time: the gram is read and written less."""
    rank = basis.shape[1]
    rows = np.zeros((8, rank))
    x = np.zeros(8)
    for first in range(0, len(seen), 8):
        for i in range(8):
            inside = first + i < len(seen)
            j = seen[first + i] if inside else 0
            x[i] = arm[j] if inside else 0.0
            for a in range(rank):
                rows[i, a] = basis[j, a] if inside else 0.0
        for a in range(rank):
            u0, u1, u2, u3 = rows[0, a], rows[1, a], rows[2, a], rows[3, a]
            u4, u5, u6, u7 = rows[4, a], rows[5, a], rows[6, a], rows[7, a]
            latent[a] += u0 * x[0] + u1 * x[1] + u2 * x[2] + u3 * x[3]
            latent[a] += u4 * x[4] + u5 * x[5] + u6 * x[6] + u7 * x[7]
            for b in range(rank):
                gram[a, b] += (
                    u0 * rows[0, b] + u1 * rows[1, b] + u2 * rows[2, b] + u3 * rows[3, b]
                    + u4 * rows[4, b] + u5 * rows[5, b] + u6 * rows[6, b] + u7 * rows[7, b]
                )  # fmt: skip


@njit(boolean(_in_2, _in_1, float64, _in_1, _out_2, int64[::1], _out_1), cache=True)
def _solve_arm(basis, arm, ridge, scales, gram, seen, latent):
    """Solve (W_Ω'W_Ω + ρI) a = W_Ω'x_Ω and write scales·a; False if not identified.

    `gram` (rank, rank), which ends as the Cholesky factor, and `seen` (dim,) are scratch.
    """
    dim, rank = basis.shape
    # Indices of seen entries without a branch, which would be mispredicted for every third entry.
    n_seen = 0
    for j in range(dim):
        seen[n_seen] = j
        n_seen += arm[j] == arm[j]
    for a in range(rank):
        latent[a] = 0.0
        for b in range(rank):
            gram[a, b] = 0.0
    if rank >= _WIDE_RANK:
        _add_rows(basis, arm, seen[:n_seen], gram, latent)
    else:
        for n in range(n_seen):
            j = seen[n]
            for a in range(rank):
                u = basis[j, a]
                latent[a] += u * arm[j]
                for b in range(rank):
                    gram[a, b] += u * basis[j, b]
    # Cholesky R'R in the upper triangle, row by row (rows are contiguous), with reciprocal pivots
    # on the diagonal; forward substitution goes along, back substitution follows.
    largest = 0.0
    for a in range(rank):
        gram[a, a] += ridge
        largest = max(largest, gram[a, a])
    for a in range(rank):
        pivot = max(gram[a, a], ridge)  # with a ridge that is a bound, which rounding may miss
        if ridge == 0.0 and pivot <= _PIVOT_TOLERANCE * largest:
            return False
        reciprocal = 1.0 / np.sqrt(pivot)
        gram[a, a] = reciprocal
        latent[a] *= reciprocal
        for b in range(a + 1, rank):
            gram[a, b] *= reciprocal
        for b in range(a + 1, rank):
            entry = gram[a, b]
            latent[b] -= entry * latent[a]
            for c in range(b, rank):
                gram[b, c] -= entry * gram[a, c]
    for a in range(rank - 1, -1, -1):
        rest = latent[a]
        for b in range(a + 1, rank):
            rest -= gram[a, b] * latent[b]
        latent[a] = rest * gram[a, a]
    for a in range(rank):
        latent[a] *= scales[a]
    return True


@njit(int64(_in_2, _in_2, float64, _in_1, _out_2, _flags_1), cache=True)
def coordinates(basis, table, ridge, scales, latent, identified):
    """Write the latent coordinates of all arms and which are identified; return how many not."""
    dim, rank = basis.shape
    gram = np.empty((rank, rank))
    seen = np.empty(dim, np.int64)
    missed = 0
    for arm in range(table.shape[0]):
        identified[arm] = _solve_arm(basis, table[arm], ridge, scales, gram, seen, latent[arm])
        if not identified[arm]:
            missed += 1
            for a in range(rank):
                latent[arm, a] = 0.0
    return missed


@njit(UniTuple(float64, 2)(_in_2, _in_1, _out_1), cache=True)
def _whiten(factor, white, point):
    """Return estimate and squared width of `point`, which is overwritten by R'⁻¹ point."""
    dim = point.shape[0]
    estimate = 0.0
    square = 0.0
    for i in range(dim):
        u = point[i] / factor[i, i]
        estimate += u * white[i]
        square += u * u
        for k in range(i + 1, dim):
            point[k] -= u * factor[i, k]
    return estimate, square


@njit(int64(_out_2), cache=True)
def _best(parts):
    """Return the index of the largest score; ties go to the lowest index."""
    best = 0
    for arm in range(1, parts.shape[1]):
        if parts[0, arm] > parts[0, best]:
            best = arm
    return best


@njit(void(_in_2, _in_1, _in_2, int64, _out_2, _out_2), cache=True)
def _whiten_four(factor, white, points, first, rest, parts):
    """Write estimate and squared width of up to four points, from row `first` on.

    Four points stand side by side in `rest`, so that one row of the factor serves them all in the
    lanes of one register; each point's arithmetic is what it would be alone.
    """
    dim = points.shape[1]
    count = min(4, points.shape[0] - first)
    for i in range(dim):
        for a in range(4):
            x = points[first + a, i] if a < count else 0.0
            rest[i, a] = x if x == x else 0.0
    e0 = e1 = e2 = e3 = 0.0
    s0 = s1 = s2 = s3 = 0.0
    for i in range(dim):
        pivot = factor[i, i]
        u0 = rest[i, 0] / pivot
        u1 = rest[i, 1] / pivot
        u2 = rest[i, 2] / pivot
        u3 = rest[i, 3] / pivot
        e0 += u0 * white[i]
        e1 += u1 * white[i]
        e2 += u2 * white[i]
        e3 += u3 * white[i]
        s0 += u0 * u0
        s1 += u1 * u1
        s2 += u2 * u2
        s3 += u3 * u3
        for k in range(i + 1, dim):
            entry = factor[i, k]
            rest[k, 0] -= u0 * entry
            rest[k, 1] -= u1 * entry
            rest[k, 2] -= u2 * entry
            rest[k, 3] -= u3 * entry
    estimates = (e0, e1, e2, e3)
    squares = (s0, s1, s2, s3)
    for a in range(count):
        parts[1, first + a] = estimates[a]
        parts[2, first + a] = squares[a]


@njit(int64(_in_2, _in_1, _in_2, float64, _out_2), cache=True)
def score(factor, white, points, radius, parts):
    """Write score, estimate and width of every point; return the best one."""
    n_points, dim = points.shape
    rest = np.empty((dim, 4))
    for first in range(0, n_points, 4):
        _whiten_four(factor, white, points, first, rest, parts)
    for a in range(n_points):
        parts[2, a] = radius * np.sqrt(parts[2, a])
        parts[0, a] = parts[1, a] + parts[2, a]
    return _best(parts)


@njit(
    int64(
        _in_2, float64, _in_2, float64, _in_1, _in_2, _in_1, float64,
        _out_2, _out_1, _out_2, int64, float64,
    ),
    cache=True,
)  # fmt: skip
def play_table(
    table, largest, basis, ridge, scales, factor, white, radius, parts, chosen, block, start, hidden
):
    """Check a table, score its arms, copy the chosen one, and fill the table into a block.

    A whole round in one call. If an arm is not identified, returns −1 − arm; if an entry is too
    large, −1 − n_arms. Then nothing but scratch has changed.
    """
    n_arms, dim = table.shape
    rank = basis.shape[1]
    n_wild = 0
    for arm in range(n_arms):
        for j in range(dim):
            n_wild += abs(table[arm, j]) > largest  # False for NaN
    if n_wild > 0:
        return -1 - n_arms
    gram = np.empty((rank, rank))
    seen = np.empty(dim, np.int64)
    latent = np.empty(rank)
    for arm in range(n_arms):
        if not _solve_arm(basis, table[arm], ridge, scales, gram, seen, latent):
            return -1 - arm
        estimate, square = _whiten(factor, white, latent)
        width = radius * np.sqrt(square)
        parts[0, arm] = estimate + width
        parts[1, arm] = estimate
        parts[2, arm] = width
    best = _best(parts)
    for j in range(dim):
        chosen[j] = table[best, j]
    fill_in(table, block, start, hidden)
    return best


@njit(float64(_out_2, _out_1, _out_2, _out_1, _out_2, _in_1, float64), cache=True)
def update_with_shadow(gram, response, factor, white, shadow, point, reward):
    """Add one sample in place (upper triangle of the gram); return the growth of log det V.

    The factor turns by one Givens rotation per row, which also turns the response: no inverse, no
    cancellation, and the determinant grows by the product of the squared ratios of the diagonal. In
    the same way turns a `shadow` R'⁻¹U of any columns U, of which there may be none.
    """
    dim = point.shape[0]
    n_columns = shadow.shape[1]
    below = np.zeros(n_columns)
    rest = np.empty(dim)
    for i in range(dim):
        rest[i] = point[i] if point[i] == point[i] else 0.0
    for i in range(dim):
        z = rest[i]
        if z != 0.0:
            response[i] += reward * z
            for k in range(i, dim):
                gram[i, k] += z * rest[k]
    growth = 1.0
    for i in range(dim):
        if rest[i] != 0.0:
            diagonal = factor[i, i]
            norm = np.sqrt(diagonal * diagonal + rest[i] * rest[i])
            cosine = diagonal / norm
            sine = rest[i] / norm
            growth *= norm / diagonal
            factor[i, i] = norm
            for k in range(i + 1, dim):
                old = factor[i, k]
                factor[i, k] = cosine * old + sine * rest[k]
                rest[k] = cosine * rest[k] - sine * old
            old = white[i]
            white[i] = cosine * old + sine * reward
            reward = cosine * reward - sine * old
            for a in range(n_columns):
                old = shadow[i, a]
                shadow[i, a] = cosine * old + sine * below[a]
                below[a] = cosine * below[a] - sine * old
    return 2.0 * np.log(growth)


@njit(float64(_out_2, _out_1, _out_2, _out_1, _in_1, float64), cache=True)
def update(gram, response, factor, white, point, reward):
    """Add one sample in place; return the growth of log det V."""
    shadow = np.empty((point.shape[0], 0))
    return update_with_shadow(gram, response, factor, white, shadow, point, reward)


@njit(float64(_out_2, _out_1, _out_2, _out_1, _in_2, _in_1), cache=True)
def insert(gram, response, factor, white, points, rewards):
    """Add many samples in place, in their order; return the growth of log det V."""
    growth = 0.0
    for n in range(points.shape[0]):
        growth += update(gram, response, factor, white, points[n], rewards[n])
    return growth


@njit(float64(_in_2, _in_1, float64, _in_1, _out_2, _out_1, _out_2, _out_1, float64), cache=True)
def learn_arm(basis, arm, ridge, scales, gram, response, factor, white, reward):
    """Latent coordinates of one arm and their update; −1 if the arm is not identified."""
    dim, rank = basis.shape
    scratch = np.empty((rank, rank))
    seen = np.empty(dim, np.int64)
    latent = np.empty(rank)
    if not _solve_arm(basis, arm, ridge, scales, scratch, seen, latent):
        return -1.0
    return update(gram, response, factor, white, latent, reward)
