"""Floors: the work that nobody can avoid, as fast as we can make this machine do it.

No validation, no bookkeeping, nothing kept: only the K small systems (U_Ω'U_Ω + ρI) a = U_Ω'x_Ω
of a slate, solved in one compiled call, and the update of a full matrix. Sums are reordered and
multiplications fused wherever that is faster. Nothing is shared with the package, whose loops
look alike: a floor that called them would sink with them unseen.
"""

import numpy as np
from numba import njit
from numba.types import Array, float64, void

_in_1 = Array(float64, 1, "C", readonly=True)
_in_2 = Array(float64, 2, "C", readonly=True)
_out_2 = float64[:, ::1]

# Not "nnan": hidden entries are NaN.
_REORDERED = {
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
    "error_model": "numpy",
    "cache": True,
}
IMPUTE_RIDGE = 1e-5


@njit(void(_in_2, _in_2, _out_2, _out_2), **_REORDERED)
def solve_rank_3(table, pairs, sums, latent):
    """Solve all arms at rank 3; `pairs` (9, dim) holds the six products of columns and the columns.

    One branch-free pass over each arm makes its nine sums in registers; the solves then run over
    arms in the lanes of a register. `sums` is (9, n_arms), `latent` (3, n_arms).
    """
    n_arms, dim = table.shape
    for arm in range(n_arms):
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = s8 = 0.0
        for j in range(dim):
            x = table[arm, j]
            seen = 1.0 if x == x else 0.0
            x = x if x == x else 0.0
            s0 += seen * pairs[0, j]
            s1 += seen * pairs[1, j]
            s2 += seen * pairs[2, j]
            s3 += seen * pairs[3, j]
            s4 += seen * pairs[4, j]
            s5 += seen * pairs[5, j]
            s6 += x * pairs[6, j]
            s7 += x * pairs[7, j]
            s8 += x * pairs[8, j]
        sums[0, arm], sums[1, arm], sums[2, arm] = s0, s1, s2
        sums[3, arm], sums[4, arm], sums[5, arm] = s3, s4, s5
        sums[6, arm], sums[7, arm], sums[8, arm] = s6, s7, s8
    for arm in range(n_arms):
        r0 = 1.0 / np.sqrt(sums[0, arm] + IMPUTE_RIDGE)
        a = sums[1, arm] * r0
        b = sums[2, arm] * r0
        r1 = 1.0 / np.sqrt(sums[3, arm] + IMPUTE_RIDGE - a * a)
        c = (sums[4, arm] - a * b) * r1
        r2 = 1.0 / np.sqrt(sums[5, arm] + IMPUTE_RIDGE - b * b - c * c)
        y0 = sums[6, arm] * r0
        y1 = (sums[7, arm] - a * y0) * r1
        z2 = (sums[8, arm] - b * y0 - c * y1) * r2 * r2
        z1 = (y1 - c * z2) * r1
        latent[2, arm] = z2
        latent[1, arm] = z1
        latent[0, arm] = (y0 - a * z1 - b * z2) * r0


@njit(void(_in_2, _in_2, _out_2), **_REORDERED)
def solve_wide(table, basis, latent):
    """Solve all arms at any rank: gather the seen rows of `basis`, then BLAS and LAPACK."""
    rank = basis.shape[1]
    for arm in range(table.shape[0]):
        seen = np.nonzero(table[arm] == table[arm])[0]
        rows = basis[seen]
        gram = rows.T @ rows
        for a in range(rank):
            gram[a, a] += IMPUTE_RIDGE
        latent[:, arm] = np.linalg.solve(gram, rows.T @ table[arm][seen])


@njit(void(_out_2, _in_1, float64), **_REORDERED)
def add_outer(matrix, point, scale):
    """Add scale · xx' to a full matrix in one pass."""
    dim = point.shape[0]
    for i in range(dim):
        factor = scale * point[i]
        row = matrix[i]
        for k in range(dim):
            row[k] += factor * point[k]
