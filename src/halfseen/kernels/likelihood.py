"""Compiled loops of expectation maximisation: all arms at once, matrix products by BLAS.

Every arm (and every feature) has its own small symmetric matrix. These are stored entry by entry:
row a(a+1)/2 + b of a packed array holds entry (a, b), a ≥ b, of all matrices. So the innermost loop
runs over arms, in vector registers, for every rank.
"""

import numpy as np
from numba.types import Array, Tuple, boolean, float64, int64, uint64, void

from halfseen.kernels.compiling import compiled
from halfseen.kernels.types import in_1, in_2, out_1, out_2

# Arms per matrix product: enough for BLAS, while the packed matrices stay in the cache.
_BLOCK = 256
# Rounding level at which a feature's normal equations count as singular.
_PIVOT_SHARE = 1e-13
# The same for the covariance of the latents: far below rounding, only to avoid division by zero.
_SPREAD_SHARE = 1e-26
# Largest error of a held-out entry, in units of the arms, so that its fourth power is finite.
_LARGEST_ERROR = 1e50
# The logarithm of a product of pivots is taken before the product can overflow.
_LARGE_PRODUCT = 1e100

_numbers = Array(int64, 1, "C", readonly=True)


@compiled(float64(in_2))
def root_mean_square(table):
    """Return the root of the mean square of seen entries; −1 if there are none."""
    # Feature by feature and without branches, so that the loop is vectorized.
    n, dim = table.shape
    largest = np.zeros(dim)
    counts = np.zeros(dim)
    for i in range(n):
        for j in range(dim):
            x = table[i, j]
            counts[j] += 1.0 if x == x else 0.0
            largest[j] = max(largest[j], abs(x) if x == x else 0.0)
    n_entries = 0.0
    unit = 0.0
    for j in range(dim):
        n_entries += counts[j]
        unit = max(unit, largest[j])
    if n_entries == 0.0:
        return -1.0
    if unit == 0.0:
        return 0.0
    totals = np.zeros(dim)
    for i in range(n):
        for j in range(dim):
            x = table[i, j]
            share = x / unit if x == x else 0.0
            totals[j] += share * share
    total = 0.0
    for j in range(dim):
        total += totals[j]
    return unit * np.sqrt(total / n_entries)


@compiled(int64(in_2, float64, out_2, out_2, out_1, out_1, out_1))
def take_in(table, unit, filled, seen, squares, counts, feature_squares):
    """Write the arms with a seen entry, in a unit, as `climb` needs them; return their number."""
    n = 0
    feature_squares[:] = 0.0
    for i in range(table.shape[0]):
        square = 0.0
        count = 0
        for j in range(table.shape[1]):
            x = table[i, j]
            shown = x == x
            value = x / unit if shown else 0.0
            filled[n, j] = value
            seen[n, j] = 1.0 if shown else 0.0
            feature_squares[j] += value * value
            square += value * value
            count += shown
        squares[n] = square
        counts[n] = count
        n += count > 0
    return n


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


@compiled(void(in_2, int64, float64, out_1, int64))
def _log_pivots(packed, rank, noise, logs, n):
    """Write log(det(LL') / noise^rank) of n packed factors."""
    product = np.ones(n)
    for i in range(n):
        logs[i] = 0.0
    for a in range(rank):
        row = a * (a + 1) // 2 + a
        largest = 0.0
        for i in range(n):
            product[i] *= packed[row, i] * packed[row, i] / noise
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


@compiled(void(in_2, in_2, out_2, float64, out_1, out_2, int64))
def _posterior(inverse, targets, means, noise, explained, second, n):
    """Write posterior means M⁻¹b, b'M⁻¹b, and second moments σ²M⁻¹ + mean·mean' (packed)."""
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
                second[entry, i] = noise * second[entry, i] + means[a, i] * means[b, i]


@compiled(void(in_2, out_2))
def _outer_products(loadings, products):
    """Write the packed outer products of every feature's loadings, shape (rank·…, dim)."""
    entry = 0
    for a in range(loadings.shape[0]):
        for b in range(a + 1):
            for j in range(loadings.shape[1]):
                products[entry, j] = loadings[a, j] * loadings[b, j]
            entry += 1


@compiled(float64(in_2, in_2, in_1, in_1, in_2, float64, out_2, out_2, out_1))
def _expect(filled, seen, squares, counts, loadings, noise, moments, cross, spread):
    """Take the expectation step over all arms and return their log-likelihood.

    For each feature, `moments` gets the packed sum of E[zz'] over the arms that show it, and
    `cross`, shape (rank, dim), the sum of x·E[z]. `spread` gets the packed sum of E[zz'] over all
    arms.
    """
    n, dim = filled.shape
    rank = loadings.shape[0]
    packed_rows = rank * (rank + 1) // 2
    products = np.empty((packed_rows, dim))
    _outer_products(loadings, products)
    moments[:] = 0.0
    cross[:] = 0.0
    spread[:] = 0.0
    explained = np.empty(_BLOCK)
    logs = np.empty(_BLOCK)
    floor = np.empty(_BLOCK)
    for i in range(_BLOCK):
        floor[i] = noise
    constant = np.log(2.0 * np.pi * noise)
    likelihood = 0.0
    for first in range(0, n, _BLOCK):
        size = min(_BLOCK, n - first)
        x = filled[first : first + size]
        shown = seen[first : first + size]
        second = np.empty((packed_rows, size))
        means = np.empty((rank, size))
        grams = np.dot(products, shown.T)
        targets = np.dot(loadings, x.T)
        for a in range(rank):
            row = a * (a + 1) // 2 + a
            for i in range(size):
                grams[row, i] += noise
        _factor(grams, floor, size)
        _log_pivots(grams, rank, noise, logs, size)
        _invert(grams, size)
        _posterior(grams, targets, means, noise, explained, second, size)
        for i in range(size):
            rest = max(0.0, squares[first + i] - explained[i]) / noise
            likelihood -= 0.5 * (counts[first + i] * constant + logs[i] + rest)
        for entry in range(packed_rows):
            for i in range(size):
                spread[entry] += second[entry, i]
        moments += np.dot(second, shown)
        cross += np.dot(means, x)
    return likelihood


@compiled(float64(out_2, in_2, in_1, out_2))
def _maximise(moments, cross, squares, loadings):
    """Write each feature's new loadings and return the sum of squared residuals.

    `moments` (overwritten) and `cross` come from `_expect`; `squares` (dim,) is each feature's sum
    of squares. A feature that was never seen gets zeros.
    """
    rank, dim = cross.shape
    floor = np.zeros(dim)
    for a in range(rank):
        row = a * (a + 1) // 2 + a
        for j in range(dim):
            floor[j] += _PIVOT_SHARE * moments[row, j]
    for j in range(dim):
        if floor[j] == 0.0:
            floor[j] = 1.0
    _factor(moments, floor, dim)
    loadings[:] = cross
    for a in range(rank):
        row = a * (a + 1) // 2
        for b in range(a):
            for j in range(dim):
                loadings[a, j] -= moments[row + b, j] * loadings[b, j]
        for j in range(dim):
            loadings[a, j] /= moments[row + a, j]
    for a in range(rank - 1, -1, -1):
        for b in range(a + 1, rank):
            entry = b * (b + 1) // 2 + a
            for j in range(dim):
                loadings[a, j] -= moments[entry, j] * loadings[b, j]
        row = a * (a + 1) // 2 + a
        for j in range(dim):
            loadings[a, j] /= moments[row, j]
    rest = 0.0
    for j in range(dim):
        left = squares[j]
        for a in range(rank):
            left -= loadings[a, j] * cross[a, j]
        rest += max(0.0, left)
    return rest


@compiled(void(out_1, out_2))
def _absorb_spread(spread, loadings):
    """Multiply the loadings by the root of the latents' packed covariance."""
    rank, dim = loadings.shape
    packed = spread.reshape((-1, 1))
    floor = np.zeros(1)
    for a in range(rank):
        floor[0] += _SPREAD_SHARE * packed[a * (a + 1) // 2 + a, 0]
    _factor(packed, floor, 1)
    for b in range(rank):
        for j in range(dim):
            loadings[b, j] *= packed[b * (b + 1) // 2 + b, 0]
        for a in range(b + 1, rank):
            entry = packed[a * (a + 1) // 2 + b, 0]
            for j in range(dim):
                loadings[b, j] += entry * loadings[a, j]


@compiled(
    Tuple((float64, float64, int64))(
        in_2, in_2, in_1, in_1, in_1, out_2, float64, float64, int64, float64
    ),
)
def climb(
    filled, seen, squares, counts, feature_squares, loadings, noise, floor, max_steps, least_gain
):
    """Improve loadings (in place) and noise by EM; return log-likelihood, noise and steps taken.

    `filled` (n, dim) is zero where hidden, `seen` (n, dim) is 1 or 0. `squares` and `counts` (n,)
    are each arm's sum of squares and number of seen entries, `feature_squares` (dim,) each
    feature's sum of squares. `loadings` (rank, dim) is transposed. Steps are taken until there are
    none left or one gains less than `least_gain`; the likelihood is that of the result.

    The covariance of the latents is fitted, too, and then absorbed into the loadings (parameter
    expansion). This keeps the likelihood monotone and saves most of the steps.
    """
    n, dim = filled.shape
    rank = loadings.shape[0]
    moments = np.empty((rank * (rank + 1) // 2, dim))
    cross = np.empty((rank, dim))
    spread = np.empty(rank * (rank + 1) // 2)
    n_entries = 0.0
    for i in range(n):
        n_entries += counts[i]
    before = -np.inf
    n_steps = 0
    while True:
        likelihood = _expect(filled, seen, squares, counts, loadings, noise, moments, cross, spread)
        if n_steps == max_steps or likelihood - before < least_gain:
            return likelihood, noise, n_steps
        before = likelihood
        rest = _maximise(moments, cross, feature_squares, loadings)
        noise = max(floor, rest / n_entries)
        spread /= n
        _absorb_spread(spread, loadings)
        n_steps += 1


@compiled(uint64(uint64))
def _mixed(word):
    """Return a pseudo-random number that depends on the word alone (SplitMix64)."""
    word = (word ^ (word >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> uint64(27))) * uint64(0x94D049BB133111EB)
    return word ^ (word >> uint64(31))


@compiled(int64(_numbers, in_2, float64, boolean[:, ::1], out_2))
def hold_out(numbers, table, share, held, rest):
    """Mark about a share of the seen entries of every arm, always the same ones for an arm.

    `numbers` (n,) identify the arms; `rest` becomes the table without the marked entries. At least
    one seen entry of every arm stays unmarked. Returns the number of arms with marked entries.
    """
    n, dim = table.shape
    step = uint64(0x9E3779B97F4A7C15)
    n_marked = 0
    for i in range(n):
        state = _mixed(uint64(numbers[i]) * step + uint64(1))
        n_seen = 0
        for j in range(dim):
            n_seen += table[i, j] == table[i, j]
        n_left = n_seen
        for j in range(dim):
            held[i, j] = False
            rest[i, j] = table[i, j]
            if table[i, j] == table[i, j] and n_left > 1:
                word = _mixed(state + step * uint64(j + 1))
                if float64(word >> uint64(11)) * 2.0**-53 < share:
                    held[i, j] = True
                    rest[i, j] = np.nan
                    n_left -= 1
        n_marked += n_left < n_seen
    return n_marked


@compiled(
    void(in_2, Array(boolean, 2, "C", readonly=True), in_2, in_2, float64, out_1),
)
def held_out_errors(table, held, points, loadings, unit, errors):
    """Write the squared error on the marked entries of every arm that has any, in order.

    `points` has shape (n, rank), `loadings` (dim, rank). Errors are in units of `unit` and clipped
    so that their squares do not overflow.
    """
    n, dim = table.shape
    n_marked = 0
    for i in range(n):
        marked = False
        error = 0.0
        for j in range(dim):
            if held[i, j]:
                marked = True
                missed = table[i, j]
                for a in range(points.shape[1]):
                    missed -= loadings[j, a] * points[i, a]
                missed = min(abs(missed / unit), _LARGEST_ERROR)
                error += missed * missed
        if marked:
            errors[n_marked] = error
            n_marked += 1
