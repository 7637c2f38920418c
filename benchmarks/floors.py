"""Floors: the work that nobody can avoid, as fast as we can make this machine do it.

No validation, no bookkeeping, nothing kept: only the K small systems (U_Ω'U_Ω + ρI) a = U_Ω'x_Ω
of a slate, solved in one compiled call, and the update of a full matrix. Sums are reordered and
multiplications fused wherever that is faster. Nothing here is shared with the package, whose loops
look alike: a floor that called them would sink with them unseen.
"""

import numpy as np
from numba import njit
from numba.types import Array, float64, int64, void

_in_1 = Array(float64, 1, "C", readonly=True)
_in_2 = Array(float64, 2, "C", readonly=True)
_in_3 = Array(float64, 3, "C", readonly=True)
_out_1 = float64[::1]
_out_2 = float64[:, ::1]

# Not "nnan": hidden entries are NaN.
_REORDERED = {
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
    "error_model": "numpy",
    "cache": True,
}
IMPUTE_RIDGE = 1e-5


@njit(void(_in_2, _in_2, float64, _out_2, _out_2), **_REORDERED)
def solve_rank_3(table, pairs, ridge, sums, latent):
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
        r0 = 1.0 / np.sqrt(sums[0, arm] + ridge)
        a = sums[1, arm] * r0
        b = sums[2, arm] * r0
        r1 = 1.0 / np.sqrt(sums[3, arm] + ridge - a * a)
        c = (sums[4, arm] - a * b) * r1
        r2 = 1.0 / np.sqrt(sums[5, arm] + ridge - b * b - c * c)
        y0 = sums[6, arm] * r0
        y1 = (sums[7, arm] - a * y0) * r1
        z2 = (sums[8, arm] - b * y0 - c * y1) * r2 * r2
        z1 = (y1 - c * z2) * r1
        latent[2, arm] = z2
        latent[1, arm] = z1
        latent[0, arm] = (y0 - a * z1 - b * z2) * r0


@njit(void(_in_1, _in_1, _in_1, _in_1, _in_1, _in_1, _out_2, int64, int64), **_REORDERED)
def _tile(x0, x1, x2, y0, y1, y2, gram, a, b):
    """Write the nine inner products of three columns with three columns."""
    s00 = s01 = s02 = s10 = s11 = s12 = s20 = s21 = s22 = 0.0
    for i in range(len(x0)):
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


@njit(void(_out_2, _out_1, float64), **_REORDERED)
def _solve(gram, latent, ridge):
    """Solve with the upper triangle of `gram` by Cholesky, in place."""
    rank = latent.shape[0]
    for a in range(rank):
        reciprocal = 1.0 / np.sqrt(gram[a, a] + ridge)
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


@njit(void(_in_2, _in_2, float64, _out_2, _out_2), **_REORDERED)
def solve_wide(table, rows, ridge, columns, latent):
    """Solve all arms at any rank; `rows` (rank, dim) is the basis transposed.

    Seen entries are gathered column by column, then come inner products, nine at a time in
    registers. `columns` (a multiple of 3 above the rank, dim + 4) is scratch, `latent` is (rank,
    n_arms).
    """
    rank, dim = rows.shape
    wide = columns.shape[0]
    gram = np.empty((wide, wide))
    solution = np.empty(rank)
    seen = np.empty(dim + 1, np.int64)
    for arm in range(table.shape[0]):
        n_seen = 0
        for j in range(dim):
            seen[n_seen] = j
            n_seen += table[arm, j] == table[arm, j]
        padded = (n_seen + 3) // 4 * 4
        for a in range(rank + 1):
            source = rows[a] if a < rank else table[arm]
            column = columns[a]
            for i in range(n_seen):
                column[i] = source[seen[i]]
            for i in range(n_seen, padded):
                column[i] = 0.0
        for a in range(0, wide, 3):
            x0, x1, x2 = columns[a, :padded], columns[a + 1, :padded], columns[a + 2, :padded]
            for b in range(a, wide, 3):
                y0, y1, y2 = columns[b, :padded], columns[b + 1, :padded], columns[b + 2, :padded]
                _tile(x0, x1, x2, y0, y1, y2, gram, a, b)
        for a in range(rank):
            solution[a] = gram[a, rank]
        _solve(gram, solution, ridge)
        for a in range(rank):
            latent[a, arm] = solution[a]


@njit(void(_in_3, _in_2, float64, _out_2, _out_2), cache=True)
def all_rank_3(tables, pairs, ridge, sums, latent):
    for n in range(tables.shape[0]):
        solve_rank_3(tables[n], pairs, ridge, sums, latent)


@njit(void(_in_3, _in_2, float64, _out_2, _out_2), cache=True)
def all_wide(tables, rows, ridge, columns, latent):
    for n in range(tables.shape[0]):
        solve_wide(tables[n], rows, ridge, columns, latent)


@njit(void(_out_2, _in_1, float64), **_REORDERED)
def add_outer(matrix, point, scale):
    """Add scale · xx' to a full matrix in one pass."""
    dim = point.shape[0]
    for i in range(dim):
        factor = scale * point[i]
        row = matrix[i]
        for k in range(dim):
            row[k] += factor * point[k]


@njit(void(_in_2, _in_2, _out_2, int64), cache=True)
def repeat_product(left, right, product, times):
    """Do the same BLAS product many times."""
    for _ in range(times):
        np.dot(left, right, product)
