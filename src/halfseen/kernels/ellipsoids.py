"""Compiled loops over two confidence sets at once, for PSLB.

A module of their own, loaded at first use: they take a third of all compilation time.
"""

import numpy as np
from numba.types import UniTuple, float64, void

from halfseen.kernels.compiling import compiled, in_1, in_2, out_1, out_2

# Two ellipsoids at once. In coordinates v that diagonalise both, the first is the unit ball and the
# second Σ w(v − b)² ≤ 1. Mixed with shares 1 − s and s they give an ellipsoid with axes
# m = 1 − s + sw that contains the intersection, so its support is a bound for every s, and the
# smallest bound is exact. Searches run over log(s / (1 − s)), which resolves both ends.

# A quotient by zero is infinite: a result that is not finite counts as no intersection.
_NUMPY = {"error_model": "numpy"}
# Width at which a search ends: bounds are smooth in the logarithm, or have a kink if sets touch.
_SHARE_TOLERANCE = 1e-12


@compiled(void(in_2, in_1, out_2, out_1), **_NUMPY)
def triangularize(rows, targets, factor, white):
    """Write triangular R with R'R = rows'rows and w with R'w = rows'targets, by rotations."""
    n_rows, rank = rows.shape
    rest = np.empty(rank)
    factor[:] = 0.0
    white[:] = 0.0
    for n in range(n_rows):
        for a in range(rank):
            rest[a] = rows[n, a]
        target = targets[n]
        for a in range(rank):
            if rest[a] != 0.0:
                norm = np.hypot(factor[a, a], rest[a])
                cosine = factor[a, a] / norm
                sine = rest[a] / norm
                factor[a, a] = norm
                for b in range(a + 1, rank):
                    old = factor[a, b]
                    factor[a, b] = cosine * old + sine * rest[b]
                    rest[b] = cosine * rest[b] - sine * old
                old = white[a]
                white[a] = cosine * old + sine * target
                target = cosine * target - sine * old


@compiled(void(out_2, in_2), **_NUMPY)
def turn(shadow, turns):
    """Update the shadow for one more sample, by the rotations that updated R."""
    dim, rank = shadow.shape
    below = np.zeros(rank)
    for i in range(dim):
        c, s = turns[i, 0], turns[i, 1]
        for a in range(rank):
            old = shadow[i, a]
            shadow[i, a] = c * old + s * below[a]
            below[a] = c * below[a] - s * old


@compiled(void(in_2, in_2, out_2), **_NUMPY)
def project(table, basis, points):
    """Write U'x of every arm of a table; NaN counts as zero, and equal arms give equal bits."""
    n_arms, dim = table.shape
    rank = basis.shape[1]
    points[:] = 0.0
    for arm in range(n_arms):
        for j in range(dim):
            x = table[arm, j]
            if x == x and x != 0.0:
                for a in range(rank):
                    points[arm, a] += x * basis[j, a]


@compiled(UniTuple(float64, 2)(float64), **_NUMPY)
def _shares(logit):
    """Return 1 − s and s, each exact near zero."""
    return 1.0 / (1.0 + np.exp(logit)), 1.0 / (1.0 + np.exp(-logit))


@compiled(float64(in_1, in_1, float64, out_1), **_NUMPY)
def deepest(offset, weights, reach, point):
    """Write the point that minimises the larger of |v|² and Σ w(v − b)²; return the minimum.

    It equals the maximum over s of the mixed quadratic at its own centre. Above 1 the two
    ellipsoids do not intersect.
    """
    rank = offset.shape[0]
    low, high = -reach, reach
    while high - low > _SHARE_TOLERANCE:
        logit = 0.5 * (low + high)
        first, second = _shares(logit)
        slope = 0.0
        for a in range(rank):
            scaled = offset[a] / (first + second * weights[a])
            slope += weights[a] * scaled * scaled * (first * first - second * second * weights[a])
        if slope > 0.0:
            low = logit
        else:
            high = logit
    first, second = _shares(0.5 * (low + high))
    depth = 0.0
    for a in range(rank):
        pull = second * weights[a] * offset[a] / (first + second * weights[a])
        point[a] = pull
        depth += first * offset[a] * pull
    return depth


@compiled(float64(in_1, in_1, in_1, float64), **_NUMPY)
def _support(slope, offset, weights, reach):
    """Return the largest slope · v inside both ellipsoids, which must intersect."""
    rank = offset.shape[0]
    own = 0.0
    other = 0.0
    shift = 0.0
    for a in range(rank):
        own += slope[a] * slope[a]
        other += slope[a] * slope[a] / weights[a]
        shift += slope[a] * offset[a]
    own, other = np.sqrt(own), np.sqrt(other)
    # If the maximiser of one ellipsoid lies in the other, it is the answer.
    excess_of_own = -1.0
    excess_of_other = -1.0
    for a in range(rank):
        excess_of_own += weights[a] * (slope[a] / own - offset[a]) ** 2
        excess_of_other += (offset[a] + slope[a] / (weights[a] * other)) ** 2
    if excess_of_own <= 0.0:
        return own
    if excess_of_other <= 0.0:
        return shift + other
    best = min(own, shift + other)
    low, high = -reach, reach
    while high - low > _SHARE_TOLERANCE:
        logit = 0.5 * (low + high)
        first, second = _shares(logit)
        square = 0.0
        shift = 0.0
        slack = 1.0
        for a in range(rank):
            axis = first + second * weights[a]
            pull = second * weights[a] * offset[a] / axis
            square += slope[a] * slope[a] / axis
            shift += slope[a] * pull
            slack -= first * offset[a] * pull
        slack, square = np.sqrt(max(0.0, slack)), np.sqrt(square)
        best = min(best, shift + slack * square)
        # The bound grows with s if its maximiser is farther outside the first than the second.
        excess = 0.0
        for a in range(rank):
            axis = first + second * weights[a]
            step = slack / square * slope[a]
            excess += ((step + second * weights[a] * offset[a]) / axis) ** 2
            excess -= weights[a] * ((step - first * offset[a]) / axis) ** 2
        if excess > 0.0:
            high = logit
        else:
            low = logit
    return best


@compiled(void(in_2, in_1, in_2, in_1, in_1, float64, in_1, out_2), **_NUMPY)
def support_parts(points, centre, turn, offset, weights, reach, deep, parts):
    """Write score, estimate and width of every point over two ellipsoids that intersect.

    The estimate is the value at `centre`, which is `deep` in diagonal coordinates; `turn` maps a
    point to its slope in these coordinates.
    """
    n_points, rank = points.shape
    slope = np.empty(rank)
    for n in range(n_points):
        estimate = 0.0
        size = 0.0
        inside = 0.0
        for a in range(rank):
            estimate += points[n, a] * centre[a]
            slope[a] = 0.0
            for b in range(rank):
                slope[a] += turn[a, b] * points[n, b]
            size = max(size, abs(slope[a]))
            inside += slope[a] * deep[a]
        width = 0.0
        if size > 0.0:
            for a in range(rank):
                slope[a] /= size
            width = max(0.0, size * _support(slope, offset, weights, reach) - inside)
        parts[0, n] = estimate + width
        parts[1, n] = estimate
        parts[2, n] = width
