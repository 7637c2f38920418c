"""Compiled loops for the two confidence sets of PSLB."""

import numpy as np
from numba.types import void

from halfseen.kernels.compiling import compiled, in_2, out_2


@compiled(void(out_2, in_2))
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


@compiled(void(in_2, in_2, out_2))
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
