"""Compiled loops over half-seen arms: residuals, features of the reward model."""

import numpy as np
from numba.types import Array, boolean, float64, int64, void

from halfseen.kernels.compiling import compiled, in_1, in_2, out_1, out_2

_in_3 = Array(float64, 3, "C", readonly=True)
# Entries are clipped at this many deviations: what is farther away comes from another world, and
# squares of larger numbers lose the others to rounding.
_FARTHEST = 1e3


@compiled(void(in_2, in_2, out_2))
def hide_outside(table, limits, shown):
    """Write x, or NaN where it is below the first or above the second limit of its column."""
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            x = table[i, j]
            shown[i, j] = x if limits[0, j] <= x <= limits[1, j] else np.nan


@compiled(void(in_2, in_1, in_1, in_1, out_2))
def standardise(table, location, scale, unit, residuals):
    """Write (x − location)/scale, clipped, over `unit`; NaN where hidden or the scale is 0."""
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            if scale[j] > 0.0:
                value = (table[i, j] - location[j]) / scale[j]
                if value == value:
                    value = min(max(value, -_FARTHEST), _FARTHEST)
                residuals[i, j] = value / unit[j]
            else:
                residuals[i, j] = np.nan


@compiled(void(in_2, in_1, boolean, float64, out_1, out_1, out_2, out_2))
def standardise_rows(table, weights, has_mean, least, centre, scale, zero_filled, seen):
    """Write weighted means and deviations of columns, and the rows in these units, zero-filled.

    A deviation below `least`, as a share of the column's largest entry, counts as 0. `seen` gets 1
    or 0, the latter also where the scale is 0. Without a mean the centre is 0.
    """
    n, dim = table.shape
    unit, total, squares = np.zeros(dim), np.zeros(dim), np.zeros(dim)
    centre[:] = 0.0
    for i in range(n):  # no branches from here on: the loops over j are vectorized
        for j in range(dim):
            x = table[i, j]
            seen[i, j] = 1.0 if x == x else 0.0
            zero_filled[i, j] = x if x == x else 0.0
            unit[j] = max(unit[j], abs(zero_filled[i, j]))
    for j in range(dim):  # in this unit, squares neither overflow nor vanish
        unit[j] = unit[j] if unit[j] > 0.0 else 1.0
    for i in range(n):
        for j in range(dim):
            total[j] += weights[i] * seen[i, j]
            centre[j] += weights[i] * (zero_filled[i, j] / unit[j])
    for j in range(dim):
        total[j] = total[j] if total[j] > 0.0 else 1.0
        centre[j] = centre[j] / total[j] if has_mean else 0.0
    for i in range(n):
        for j in range(dim):
            rest = seen[i, j] * (zero_filled[i, j] / unit[j] - centre[j])
            squares[j] += weights[i] * (rest * rest)
    for j in range(dim):
        deviation = np.sqrt(squares[j] / total[j])
        scale[j] = unit[j] * deviation if deviation > least else 0.0
        centre[j] *= unit[j]
    for i in range(n):
        for j in range(dim):
            seen[i, j] = seen[i, j] if scale[j] > 0.0 else 0.0
            value = (zero_filled[i, j] - centre[j]) / (scale[j] if scale[j] > 0.0 else 1.0)
            zero_filled[i, j] = seen[i, j] * min(max(value, -_FARTHEST), _FARTHEST)


@compiled(void(in_2, in_2, in_1, in_2, float64, int64, out_2))
def write_filled(residuals, latent, roots, loadings, scale, first, phi):
    """Write the filled arms, times a scale, into `phi` from a column on.

    A seen entry is its residual times `roots`, a hidden one the sum of the latent coordinates
    (n, rank) times the loadings (rank, dim).
    """
    for i in range(residuals.shape[0]):
        for j in range(residuals.shape[1]):
            value = residuals[i, j] * roots[j]
            if value != value:
                value = 0.0
                for a in range(latent.shape[1]):
                    value += latent[i, a] * loadings[a, j]
            phi[i, first + j] = scale * value


@compiled(void(in_2, in_1, int64[::1], float64, int64, out_2))
def write_mask(table, shares, holes, scale, first, phi):
    """Write 1 or 0 for a seen or hidden entry, minus its share, times a scale, into `phi`.

    `holes` are the features whose entries are looked at. One whose share is 0 was never seen: no
    reward says what seeing it means.
    """
    for i in range(table.shape[0]):
        for k in range(len(holes)):
            j = holes[k]
            seen = 1.0 if table[i, j] == table[i, j] else 0.0
            phi[i, first + k] = scale * (seen - shares[j]) if shares[j] > 0.0 else 0.0


@compiled(void(_in_3, _in_3, int64[::1], in_2, out_2, out_1, out_1))
def condition(covariances, sums, places, c, phi, means, variances):
    """Take what items paid into account: φ − Σφc'A⁻¹c, c'A⁻¹Σcr and c'A⁻¹c of each arm.

    `covariances` (n_items, n_columns, n_columns) are A⁻¹, `sums` (n_items, n_columns,
    n_features + 1) are Σc(φ, r)'. `places` are those of the arms' items; the first is the prior.
    """
    n_columns, n_features = c.shape[1], phi.shape[1]
    for i in range(c.shape[0]):
        place = places[i]
        variance = 0.0
        for a in range(n_columns):
            gain = c[i, a]
            if place > 0:
                gain = 0.0
                for b in range(n_columns):
                    gain += covariances[place, a, b] * c[i, b]
                for j in range(n_features):
                    phi[i, j] -= gain * sums[place, a, j]
                means[i] += gain * sums[place, a, n_features]
            variance += gain * c[i, a]
        variances[i] = max(0.0, variance)
