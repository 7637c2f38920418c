"""Compiled EM for a factor model with hidden entries: x = μ + Wz + ε, ε_j ~ N(0, ψ_j).

Every arm and every feature has its own small symmetric matrix. These are stored entry by entry:
row a(a+1)/2 + b of a packed array holds entry (a, b), a ≥ b, of all matrices. So the innermost loop
runs over arms, in vector registers, for every rank.

The mean is one more factor that is always 1. So `coefficients`, shape (n_factors, dim), has the
rows W' and, if there is a mean, μ as its last row: n_factors is rank + 1 then, otherwise rank.
"""

import numpy as np
from numba.types import Tuple, boolean, float64, int64, void

from halfseen.kernels.compiling import compiled, in_1, in_2, out_1, out_2

# Arms per matrix product: enough for BLAS, while the packed matrices stay in the cache.
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


@compiled(void(in_2, in_2, out_2, out_1, out_2, int64))
def _posterior(inverse, targets, means, explained, second, n):
    """Write posterior means M⁻¹b, b'M⁻¹b, and second moments M⁻¹ + mean·mean' (packed)."""
    rank = targets.shape[0]
    whitened = np.empty(n)
    for i in range(n):
        explained[i] = 0.0
    means[:] = 0.0
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
                means[b, i] += inverse[row + b, i] * whitened[i]
    for a in range(rank):
        for b in range(a + 1):
            entry = a * (a + 1) // 2 + b
            for i in range(n):
                second[entry, i] = 0.0
            for q in range(a, rank):
                row = q * (q + 1) // 2
                for i in range(n):
                    second[entry, i] += inverse[row + a, i] * inverse[row + b, i]
            for i in range(n):
                second[entry, i] += means[a, i] * means[b, i]


@compiled(void(in_2, in_1, int64, out_2, out_2))
def _information(coefficients, noise, rank, scaled, products):
    """Write W'Ψ⁻¹ (rank, dim), and what each seen feature adds to M, packed: w_j w_j'/ψ_j."""
    entry = 0
    for a in range(rank):
        for j in range(len(noise)):
            scaled[a, j] = coefficients[a, j] / noise[j]
        for b in range(a + 1):
            for j in range(len(noise)):
                products[entry, j] = scaled[a, j] * coefficients[b, j]
            entry += 1


@compiled(float64(in_2, in_2, in_1, in_2, in_1, int64, out_2, out_2, out_1))
def _expect(zero_filled, seen, weights, coefficients, noise, rank, moments, cross, factor_moments):
    """Take the expectation step over all arms and return their weighted log-likelihood.

    f are the factors z, followed by 1 if there is a mean. For each feature, `moments` gets the
    packed sum of E[ff'] over the arms that show it, and `cross`, shape (n_factors, dim), the sum of
    x·E[f]. `factor_moments` gets the packed sum of E[ff'] over all arms.
    """
    n, dim = zero_filled.shape
    n_factors = coefficients.shape[0]
    n_packed = rank * (rank + 1) // 2
    scaled = np.empty((rank, dim))
    products = np.empty((n_packed, dim))
    _information(coefficients, noise, rank, scaled, products)
    logs_noise = np.empty(dim)
    for j in range(dim):
        logs_noise[j] = np.log(2.0 * np.pi * noise[j])
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
        _posterior(grams, targets, means[:rank], explained, second[:n_packed], size)
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
    floor = np.zeros(dim)
    for a in range(n_factors):
        row = a * (a + 1) // 2 + a
        for j in range(dim):
            floor[j] += _PIVOT_SHARE * moments[row, j]
    for j in range(dim):
        if floor[j] == 0.0:
            floor[j] = 1.0
    _factor(moments, floor, dim)
    for a in range(n_factors):
        row = a * (a + 1) // 2
        for j in range(dim):  # `coefficients[:] = cross` takes 2 seconds longer to compile
            coefficients[a, j] = cross[a, j]
        for b in range(a):
            for j in range(dim):
                coefficients[a, j] -= moments[row + b, j] * coefficients[b, j]
        for j in range(dim):
            coefficients[a, j] /= moments[row + a, j]
    for a in range(n_factors - 1, -1, -1):
        for b in range(a + 1, n_factors):
            entry = b * (b + 1) // 2 + a
            for j in range(dim):
                coefficients[a, j] -= moments[entry, j] * coefficients[b, j]
        row = a * (a + 1) // 2 + a
        for j in range(dim):
            coefficients[a, j] /= moments[row, j]
    for j in range(dim):
        left = squares[j]
        for a in range(n_factors):
            left -= coefficients[a, j] * cross[a, j]
        residual_squares[j] = max(0.0, left)


@compiled(void(out_1, int64, out_2))
def _absorb_moments(factor_moments, rank, coefficients):
    """Let the factors be standard again: move their mean into μ and their covariance into W.

    `factor_moments` is the packed mean of E[ff'] over all arms (overwritten).
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


@compiled(float64(out_1, float64, float64))
def _log_prior(noise, prior_noise, strength):
    """Return the logarithm of the noise's prior density, up to a constant.

    It is inverse gamma, as of `strength` pseudo-entries of variance `prior_noise` for each feature.
    """
    total = 0.0
    for j in range(len(noise)):
        ratio = prior_noise / noise[j]
        total += 0.5 * strength * (np.log(ratio) - ratio)
    return total


@compiled(float64(in_1, in_1, float64, float64, float64, boolean, out_1))
def _set_noise(residual_squares, counts, prior_noise, strength, floor, common, noise):
    """Write each feature's noise variance; return the logarithm of its prior, up to a constant.

    With `common` noise there is one variance for all features, and no prior.
    """
    dim = len(noise)
    if common:
        pooled = max(floor, residual_squares.sum() / max(1.0, counts.sum()))
        for j in range(dim):
            noise[j] = pooled
        return 0.0
    for j in range(dim):
        noise[j] = max(
            floor, (strength * prior_noise + residual_squares[j]) / (strength + counts[j])
        )
    return _log_prior(noise, prior_noise, strength)


@compiled(float64(in_2, out_2, in_1, int64))
def _log_occam_factor(moments, coefficients, noise, rank):
    """Return the logarithm of the prior density of W over its posterior density.

    Of each feature's loadings w_j the prior is standard normal, and the posterior has the precision
    I + E[zz']/ψ_j, summed over the arms that show the feature.
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
    Tuple((float64, float64, float64, int64))(
        in_2, in_2, in_1, out_2, out_1, int64, float64, float64, float64, boolean, int64, float64
    ),
    nogil=True,  # a policy may serve while its next model is fitted
)
def em(
    zero_filled, seen, weights, coefficients, noise, rank,
    prior_noise, strength, floor, common, max_steps, least_gain,
):  # fmt: skip
    """Improve coefficients and noise (in place) by EM.

    Returns log-likelihood, objective, evidence and the number of steps.

    `zero_filled` (n, dim) is zero where hidden, `seen` (n, dim) is 1 or 0, `weights` (n,) are how
    much each arm counts. `coefficients` has the rows W' and, below them, μ if arms have a mean. The
    objective is the log-likelihood plus that of the prior of the noise, the evidence is Laplace's
    approximation of the likelihood averaged over all W. Steps are taken until there are none
    left or one gains less than `least_gain`.

    Mean and covariance of the factors are fitted, too, and then absorbed (parameter expansion).
    This keeps the objective monotone and saves most of the steps.
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
    penalty = 0.0 if common else _log_prior(noise, prior_noise, strength)
    before = -np.inf
    n_steps = 0
    while True:
        likelihood = _expect(
            zero_filled, seen, weights, coefficients, noise, rank, moments, cross, factor_moments
        )
        objective = likelihood + penalty
        if n_steps == max_steps or objective - before < least_gain:
            occam = _log_occam_factor(moments, coefficients, noise, rank)
            return likelihood, objective, likelihood + occam, n_steps
        before = objective
        _maximise(moments, cross, squares, coefficients, residual_squares)
        penalty = _set_noise(residual_squares, counts, prior_noise, strength, floor, common, noise)
        factor_moments /= total
        _absorb_moments(factor_moments, rank, coefficients)
        n_steps += 1
