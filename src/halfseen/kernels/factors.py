"""Compiled EM for the factor model of half-seen rows: x = μ + Wz + ε, ε_j ~ N(0, ψ_j).

The mean is one more factor that is always 1. So `coefficients`, shape (n_factors, dim), has the
rows W' and, if there is a mean, μ as its last row: n_factors is rank + 1 then, otherwise rank. With
f these factors and Ω the seen entries of a row, a step of EM is

    `_expect`           M = I + W_Ω'Ψ_Ω⁻¹W_Ω,  E[z] = M⁻¹W_Ω'Ψ_Ω⁻¹(x_Ω − μ_Ω),  Cov[z] = M⁻¹
    `_maximise`         (w_j, μ_j) = (Σ E[ff'])⁻¹ Σ x_j E[f],  q_j = Σ x_j² − (w_j, μ_j)'Σ x_j E[f]
    `_set_noise`        ψ_j = (q_j + 4ψ̄)/(n_j + 4),  ψ̄ = Σ q_j / Σ n_j
    `_absorb_moments`   E[z] = 0 and Cov[z] = I over all rows, by a change of μ and W

and `_log_occam_factor` is what the evidence adds to the log-likelihood.

Every row and every feature has its own small symmetric matrix. These are stored entry by entry: row
a(a+1)/2 + b of a packed array holds entry (a, b), a ≥ b, of all matrices. So the innermost loop
runs over matrices, in vector registers, for every rank.
"""

import numpy as np
from numba.types import Tuple, float64, int64, void

from halfseen.kernels.compiling import compiled, in_1, in_2, out_1, out_2

# Rows per matrix product: enough for BLAS, while the packed matrices stay in the cache.
_BLOCK = 256
# Rounding level at which a feature's normal equations count as singular.
_PIVOT_SHARE = 1e-13
# The same for the covariance of the latents: far below rounding, only to avoid division by zero.
_MOMENT_SHARE = 1e-26
# The logarithm of a product of pivots is taken before the product can overflow.
_LARGE_PRODUCT = 1e100


@compiled(void(out_2, in_1, int64))
def _factor(packed, floor, n):
    """Replace n packed matrices by their Cholesky factors; pivots are at least `floor`."""
    rank = 0
    while rank * (rank + 1) // 2 < packed.shape[0]:
        rank += 1
    for a in range(rank):
        row = a * (a + 1) // 2
        for b in range(a):
            other = b * (b + 1) // 2
            for q in range(b):
                for i in range(n):
                    packed[row + b, i] -= packed[row + q, i] * packed[other + q, i]
            for i in range(n):
                packed[row + b, i] /= packed[other + b, i]
        for q in range(a):
            for i in range(n):
                packed[row + a, i] -= packed[row + q, i] * packed[row + q, i]
        for i in range(n):
            packed[row + a, i] = np.sqrt(max(packed[row + a, i], floor[i]))


@compiled(void(in_2, int64, out_1, int64))
def _log_pivots(packed, rank, logs, n):
    """Write log(det(LL')) of n packed factors."""
    product = np.ones(n)
    for i in range(n):
        logs[i] = 0.0
    for a in range(rank):
        row = a * (a + 1) // 2 + a
        largest = 0.0
        for i in range(n):
            product[i] *= packed[row, i] * packed[row, i]
            largest = max(largest, product[i])
        if largest > _LARGE_PRODUCT or a == rank - 1:
            for i in range(n):
                logs[i] += np.log(product[i])
                product[i] = 1.0


@compiled(void(out_2, int64))
def _invert(packed, n):
    """Replace n packed lower triangular factors by their inverses."""
    rank = 0
    while rank * (rank + 1) // 2 < packed.shape[0]:
        rank += 1
    rest = np.empty(n)
    for a in range(rank):
        row = a * (a + 1) // 2
        for i in range(n):
            packed[row + a, i] = 1.0 / packed[row + a, i]
        for b in range(a):
            # Entries b … a − 1 of this row still belong to the factor.
            for i in range(n):
                rest[i] = 0.0
            for q in range(b, a):
                inner = q * (q + 1) // 2 + b
                for i in range(n):
                    rest[i] -= packed[row + q, i] * packed[inner, i]
            for i in range(n):
                packed[row + b, i] = rest[i] * packed[row + a, i]


@compiled(void(in_2, in_2, out_2, out_1, int64))
def _solve(inverse, targets, solutions, explained, n):
    """Write M⁻¹b and b'M⁻¹b of n systems, from the packed inverses of their Cholesky factors."""
    rank = targets.shape[0]
    whitened = np.empty(n)
    for i in range(n):
        explained[i] = 0.0
    solutions[:] = 0.0
    for a in range(rank):
        row = a * (a + 1) // 2
        for i in range(n):
            whitened[i] = 0.0
        for b in range(a + 1):
            for i in range(n):
                whitened[i] += inverse[row + b, i] * targets[b, i]
        for i in range(n):
            explained[i] += whitened[i] * whitened[i]
        for b in range(a + 1):
            for i in range(n):
                solutions[b, i] += inverse[row + b, i] * whitened[i]


@compiled(void(in_2, in_2, int64, out_2, int64))
def _second_moments(inverse, means, rank, second, n):
    """Write M⁻¹ + mean·mean' (packed) of n rows, from the inverses of their Cholesky factors."""
    for a in range(rank):
        for b in range(a + 1):
            entry = a * (a + 1) // 2 + b
            for i in range(n):
                second[entry, i] = means[a, i] * means[b, i]
            for q in range(a, rank):
                row = q * (q + 1) // 2
                for i in range(n):
                    second[entry, i] += inverse[row + a, i] * inverse[row + b, i]


@compiled(float64(in_2, in_2, in_1, in_2, in_1, int64, out_2, out_2, out_1, out_2))
def _expect(
    zero_filled, seen, weights, coefficients, noise, rank, moments, cross, factor_moments, factors
):
    """Take the expectation step over all rows and return their weighted log-likelihood.

    f are the factors z, followed by 1 if there is a mean. For each feature, `moments` gets the
    packed sum of E[ff'] over the rows that show it, and `cross`, shape (n_factors, dim), the sum of
    x·E[f]. `factor_moments` gets the packed sum of E[ff'] over all rows.
    """
    n, dim = zero_filled.shape
    n_factors = coefficients.shape[0]
    n_packed = rank * (rank + 1) // 2
    scaled = np.empty((rank, dim))  # W'Ψ⁻¹
    products = np.empty((n_packed, dim))  # what each seen feature adds to M: w_j w_j'/ψ_j
    for a in range(rank):
        for j in range(dim):
            scaled[a, j] = coefficients[a, j] / noise[j]
        for b in range(a + 1):
            for j in range(dim):
                products[a * (a + 1) // 2 + b, j] = scaled[a, j] * coefficients[b, j]
    logs_noise = np.log(2.0 * np.pi * noise)
    moments[:] = 0.0
    cross[:] = 0.0
    factor_moments[:] = 0.0
    explained = np.empty(_BLOCK)
    logs = np.empty(_BLOCK)
    floor = np.ones(_BLOCK)
    likelihood = 0.0
    for first in range(0, n, _BLOCK):
        size = min(_BLOCK, n - first)
        x = zero_filled[first : first + size]
        shown = seen[first : first + size]
        own = weights[first : first + size]
        rest = np.empty((size, dim))
        weighted_x = np.empty((size, dim))
        weighted = np.empty((size, dim))
        second = np.empty((len(factor_moments), size))
        means = np.ones((n_factors, size))
        for i in range(size):
            weight = own[i]
            square = 0.0
            constant = 0.0
            for j in range(dim):
                left = x[i, j] - (coefficients[rank, j] * shown[i, j] if n_factors > rank else 0.0)
                rest[i, j] = left
                weighted_x[i, j] = weight * x[i, j]
                weighted[i, j] = weight * shown[i, j]
                square += left * left / noise[j]
                constant += shown[i, j] * logs_noise[j]
            likelihood -= 0.5 * weight * (square + constant)
        grams = np.dot(products, shown.T)
        targets = np.dot(scaled, rest.T)
        for a in range(rank):
            row = a * (a + 1) // 2 + a
            for i in range(size):
                grams[row, i] += 1.0
        _factor(grams, floor, size)
        _log_pivots(grams, rank, logs, size)
        _invert(grams, size)
        _solve(grams, targets, means[:rank], explained, size)
        _second_moments(grams, means, rank, second, size)
        if n_factors > rank:  # the mean's factor is 1
            for b in range(rank):
                for i in range(size):
                    second[n_packed + b, i] = means[b, i]
            for i in range(size):
                second[n_packed + rank, i] = 1.0
        for i in range(size):
            likelihood -= 0.5 * own[i] * (logs[i] - explained[i])
        for entry in range(len(factor_moments)):
            for i in range(size):
                factor_moments[entry] += own[i] * second[entry, i]
        factors[:, first : first + size] = means
        moments += np.dot(second, weighted)
        cross += np.dot(means, weighted_x)
    return likelihood


@compiled(void(out_2, in_2, in_1, out_2, out_1))
def _maximise(moments, cross, squares, coefficients, residual_squares):
    """Write each feature's new coefficients and its sum of squared residuals.

    `moments` (overwritten) and `cross` come from `_expect`; `squares` (dim,) is each feature's sum
    of squares. A feature that was never seen gets zeros.
    """
    n_factors, dim = cross.shape
    floor, explained = np.zeros(dim), np.empty(dim)
    for a in range(n_factors):
        row = a * (a + 1) // 2 + a
        for j in range(dim):
            floor[j] += _PIVOT_SHARE * moments[row, j]
    for j in range(dim):
        if floor[j] == 0.0:
            floor[j] = 1.0
    _factor(moments, floor, dim)
    _invert(moments, dim)
    _solve(moments, cross, coefficients, explained, dim)
    for j in range(dim):
        residual_squares[j] = max(0.0, squares[j] - explained[j])


@compiled(void(out_1, int64, out_2))
def _absorb_moments(factor_moments, rank, coefficients):
    """Let the factors be standard again: move their mean into μ and their covariance into W.

    `factor_moments` is the packed mean of E[ff'] over all rows (overwritten).
    """
    n_factors, dim = coefficients.shape
    packed = factor_moments.reshape((-1, 1))
    if n_factors > rank:
        last = rank * (rank + 1) // 2
        for a in range(rank):
            for j in range(dim):
                coefficients[rank, j] += packed[last + a, 0] * coefficients[a, j]
            for b in range(a + 1):
                packed[a * (a + 1) // 2 + b, 0] -= packed[last + a, 0] * packed[last + b, 0]
    floor = np.zeros(1)
    for a in range(rank):
        floor[0] += _MOMENT_SHARE * packed[a * (a + 1) // 2 + a, 0]
    packed = packed[: rank * (rank + 1) // 2]
    _factor(packed, floor, 1)
    for b in range(rank):
        for j in range(dim):
            coefficients[b, j] *= packed[b * (b + 1) // 2 + b, 0]
        for a in range(b + 1, rank):
            entry = packed[a * (a + 1) // 2 + b, 0]
            for j in range(dim):
                coefficients[b, j] += entry * coefficients[a, j]


@compiled(void(in_1, in_1, float64, float64, out_1))
def _set_noise(residual_squares, counts, strength, floor, noise):
    """Write each feature's noise variance, drawn towards that of all features.

    With q_j the sum of squared residuals, n_j the entries and ψ̄ = Σq_j/Σn_j, it is
    (q_j + strength·ψ̄)/(n_j + strength).
    """
    common = residual_squares.sum() / max(1.0, counts.sum())
    for j in range(len(noise)):
        own = (residual_squares[j] + strength * common) / (counts[j] + strength)
        noise[j] = max(floor, own)


@compiled(float64(in_2, out_2, in_1, int64))
def _log_occam_factor(moments, coefficients, noise, rank):
    """Return the logarithm of the prior density of W over its posterior density.

    Of each feature's loadings w_j the prior is standard normal, and the posterior has the precision
    I + E[zz']/ψ_j, summed over the rows that show the feature.
    """
    dim = coefficients.shape[1]
    n_packed = rank * (rank + 1) // 2
    precision = np.empty((n_packed, dim))
    for a in range(rank):
        for b in range(a + 1):
            entry = a * (a + 1) // 2 + b
            for j in range(dim):
                precision[entry, j] = moments[entry, j] / noise[j] + (1.0 if a == b else 0.0)
    logs = np.empty(dim)
    _factor(precision, np.ones(dim), dim)
    _log_pivots(precision, rank, logs, dim)
    total = -0.5 * logs.sum()
    for a in range(rank):
        for j in range(dim):
            total -= 0.5 * coefficients[a, j] * coefficients[a, j]
    return total


@compiled(
    Tuple((float64, float64, int64))(
        in_2, in_2, in_1, out_2, out_1, out_2, int64, float64, float64, int64, float64
    ),
    nogil=True,  # a policy may serve while its next model is fitted
)
def em(
    zero_filled, seen, weights, coefficients, noise, factors, rank,
    strength, floor, max_steps, least_gain,
):  # fmt: skip
    """Improve coefficients and noise (in place) by EM.

    Returns log-likelihood, evidence and the number of steps. Steps are taken until there are
    `max_steps`, or one gains less than `least_gain`. Mean and covariance of the factors are fitted,
    too, and then absorbed (parameter expansion), which saves most of the steps.

    `zero_filled` (n, dim) is zero where hidden, `seen` (n, dim) is 1 or 0, `weights` (n,) are how
    much each row counts. `coefficients` has the rows W' and, below them, μ if rows have a mean.
    `factors` (n_factors, n) gets E[f] of each row.
    """
    n, dim = zero_filled.shape
    n_factors = coefficients.shape[0]
    moments = np.empty((n_factors * (n_factors + 1) // 2, dim))
    cross = np.empty((n_factors, dim))
    factor_moments = np.empty(n_factors * (n_factors + 1) // 2)
    squares = np.zeros(dim)
    counts = np.zeros(dim)
    total = 0.0
    for i in range(n):
        total += weights[i]
        for j in range(dim):
            squares[j] += weights[i] * zero_filled[i, j] * zero_filled[i, j]
            counts[j] += weights[i] * seen[i, j]
    residual_squares = np.empty(dim)
    before = -np.inf
    n_steps = 0
    while True:
        likelihood = _expect(
            zero_filled, seen, weights, coefficients, noise, rank,
            moments, cross, factor_moments, factors,
        )  # fmt: skip
        if n_steps == max_steps or likelihood - before < least_gain:
            occam = _log_occam_factor(moments, coefficients, noise, rank)
            return likelihood, likelihood + occam, n_steps
        before = likelihood
        _maximise(moments, cross, squares, coefficients, residual_squares)
        _set_noise(residual_squares, counts, strength, floor, noise)
        factor_moments /= total
        _absorb_moments(factor_moments, rank, coefficients)
        n_steps += 1
