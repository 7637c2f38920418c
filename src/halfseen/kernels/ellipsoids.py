"""Compiled loops for the two confidence sets of PSLB."""

import numpy as np
from numba.types import void

from halfseen.kernels.compiling import compiled, in_1, in_2, out_1, out_2

# A quotient by zero is infinite: a set that is not finite is refused later.
_NUMPY = {"error_model": "numpy"}


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
