"""Compiled ridge regression.

A regression is stored as its `root`: the upper triangular R with R'R = V and the whitened response
w = R'⁻¹Σzr, as the rows of [R | w] without the entries below the diagonal, so that a pass over it
reads memory in order. The last two entries are the growth of log det V and the number of samples,
so that the root is always consistent. With u = R'⁻¹z, the estimate of a point is u·w and its
squared width is ‖u‖²: one forward substitution gives both.
"""

import numpy as np
from numba.types import UniTuple, float64, int64, void

from halfseen.kernels.compiling import compiled, in_1, in_2, out_1, out_2

# A product and the sum it enters may be rounded once instead of twice, in the same way everywhere,
# so that a point always gets the same bits. A quotient by zero is infinite: checking for it would
# prevent vectorization.
_FUSED = {"fastmath": {"contract"}, "error_model": "numpy"}


@compiled(void(in_1, out_2, out_1))
def unpack(root, factor, white):
    """Write w and R, without touching entries below the diagonal."""
    dim = white.shape[0]
    at = 0
    for i in range(dim):
        for k in range(i, dim):
            factor[i, k] = root[at]
            at += 1
        white[i] = root[at]
        at += 1


@compiled(void(in_2, in_1, out_1))
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


@compiled(UniTuple(float64, 3)(float64, float64), **_FUSED)
def _angle(diagonal, z):
    """Return norm, cosine and sine of the rotation that turns (diagonal, z) to (norm, 0)."""
    if z == 0.0:
        return diagonal, 1.0, 0.0
    norm = np.sqrt(diagonal * diagonal + z * z)
    reciprocal = 1.0 / norm
    return norm, diagonal * reciprocal, z * reciprocal


@compiled(void(out_1, out_1, out_1, float64, float64, float64, float64), **_FUSED)
def _turn_both(row, next_row, rest, c, s, next_c, next_s):
    for k in range(rest.shape[0]):
        x, y, z = row[k], next_row[k], rest[k]
        row[k] = c * x + s * z
        z = c * z - s * x
        next_row[k] = next_c * y + next_s * z
        rest[k] = next_c * z - next_s * y


@compiled(float64(out_1, int64, out_1, int64, out_1), **_FUSED)
def _turn_rows(root, at, rest, i, turns):
    """Rotate row i of the root, which begins `at`, and the next one against the rest of a sample.

    Two rows at once, so that the rest is read and written less often. Cosines and sines are written
    to `turns`, if there is room. Returns the growth factor of the product of the diagonal.
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


@compiled(void(out_1, float64, int64))
def _count(root, growth, n_samples):
    root[-2] += growth
    root[-1] += n_samples


@compiled(float64(out_1, in_1, float64, out_1), **_FUSED)
def _turn(root, point, reward, turns):
    """Turn the rows of the root for one sample; return the growth of log det V.

    One Givens rotation per row: no inverse, no cancellation, and the determinant grows by the
    product of the squared ratios of the diagonal. Cosine and sine of each rotation are written to
    `turns`, if there is room for them.
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


@compiled(void(out_1, in_1, float64, out_1))
def update(root, point, reward, turns):
    """Add one sample in place; `turns` as in `_turn`."""
    _count(root, _turn(root, point, reward, turns), 1)


@compiled(void(out_1, in_2, in_1))
def insert(root, points, rewards):
    """Add many samples in place, in their order."""
    growth = 0.0
    for n in range(points.shape[0]):
        growth += _turn(root, points[n], rewards[n], root[:0])
    _count(root, growth, points.shape[0])


@compiled(void(in_1, in_1, out_2, int64, in_1), **_FUSED)
def _eliminate(row, next_row, rests, first, u):
    """Subtract multiples of two rows from the rests of four points, from feature `first` on.

    Two rows and four points at once keep reads and writes to a minimum.
    """
    a0, a1, a2, a3, b0, b1, b2, b3 = u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7]
    r0, r1, r2, r3 = rests[0, first:], rests[1, first:], rests[2, first:], rests[3, first:]
    for k in range(row.shape[0]):
        x, y = row[k], next_row[k]
        r0[k] = (r0[k] - a0 * x) - b0 * y
        r1[k] = (r1[k] - a1 * x) - b1 * y
        r2[k] = (r2[k] - a2 * x) - b2 * y
        r3[k] = (r3[k] - a3 * x) - b3 * y


@compiled(void(in_1, in_1, float64, out_2, int64), **_FUSED)
def _measure_bounded(root, point, limit, parts, at):
    """Write estimate and squared width of one point, with the entries of u clipped to the limit."""
    dim = point.shape[0]
    rest = np.zeros(dim + 1)
    for i in range(dim):
        rest[i] = point[i] if point[i] == point[i] else 0.0
    square = 0.0
    row = 0
    for i in range(dim):
        u = min(max(rest[i] / root[row], -limit), limit)
        square += u * u
        for k in range(1, dim + 1 - i):
            rest[i + k] -= u * root[row + k]
        row += dim + 1 - i
    parts[1, at] = 0.0 - rest[dim]
    parts[2, at] = square


@compiled(void(in_1, in_2, float64, out_2), **_FUSED)
def measure(root, points, limit, parts):
    """Write estimate and squared width of every point, in one pass over the root for four of them.

    The arithmetic of each point is the same as for a single point. Entries of u are clipped to
    `limit`, which keeps numbers finite if samples of very different size cause large rounding
    errors.
    """
    n_points, dim = points.shape
    rests, squares, u = np.empty((4, dim + 1)), np.empty(4), np.empty(8)
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
            if not squares[a] <= limit * limit:  # also true for NaN
                _measure_bounded(root, points[first + a], limit, parts, first + a)


@compiled(void(in_1, out_2), **_FUSED)
def whiten(root, points):
    """Replace every point z by R'⁻¹z."""
    n_points, dim = points.shape
    for n in range(n_points):
        row = 0
        for i in range(dim):
            u = points[n, i] / root[row]
            points[n, i] = u
            for k in range(1, dim - i):
                points[n, i + k] -= u * root[row + k]
            row += dim + 1 - i


@compiled(int64(out_2, float64))
def best(parts, radius):
    """Turn squared widths into widths and scores; return the best point, the first of ties."""
    found = 0
    for point in range(parts.shape[1]):
        parts[2, point] = radius * np.sqrt(parts[2, point])
        parts[0, point] = parts[1, point] + parts[2, point]
        if parts[0, point] > parts[0, found]:
            found = point
    return found
