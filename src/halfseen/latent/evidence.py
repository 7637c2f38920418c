"""Prior scales of blocks of columns, chosen by the evidence.

A reward is r = φ'θ + c'δ_i + noise, with θ_g ~ N(0, σ²τ_g²) for each block g of φ, and the same for
the blocks of c. The intercept is the first entry of θ; its τ is 1000. With all coefficients
integrated out, the rewards have the covariance σ²K (`regression`), and the log-evidence of the
scales, with σ at its best, is

    −½((n − 1 + n₀) log σ² + log det K),   (n − 1 + n₀)σ² = r'K⁻¹r + .05 n₀s²,

where s² is the mean square of the rewards, and n₀ = 2 + n/50 pseudo-rewards keep σ from 0; without
an intercept n takes the place of n − 1 (with a flat prior of the intercept, whose width
does not depend on σ, one reward less tells about σ). Each log τ_g has a prior N(centre, 1): while
rewards carry no evidence about a scale, its prior keeps it large enough to explore. The centre for
item effects is relative to the deviation between items' means: an item that is played again and
again shows how small the noise is, but nothing about other items.

With â_g = E[θ_g]/τ_g, and C the posterior covariance of all coefficients in units of their prior
covariance, the gradient of the log-evidence is

    ∂/∂ log τ_g = ‖â_g‖²/σ² − tr(I − C_gg),

and the average information 2 â_g'(I − C)_gl â_l/σ² (Gilmour, Thompson and Cullis, Average
information REML, 1995) takes the place of the negative Hessian. `derivatives` adds the curvature of
the prior, subtracts what the best σ takes, and adds more on the diagonal where a scale is far too
large: a few steps move all scales at once.

For everything that differs by item, τ² is its posterior mean: while few items were played its
posterior is wide, and the mode understates how different the others may be.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.latent.groups import CENTRES, ITEM, group_of
from halfseen.latent.regression import Posterior
from halfseen.latent.statistics import Statistics
from halfseen.values import FloatArray

Blocks = Mapping[str, NDArray[np.int64]]
"""For each block the indices of its columns, which share a prior scale."""

INTERCEPT = 1000.0
"""τ of the intercept: its prior is practically flat, as rewards are centred."""

LOWEST, HIGHEST = -6.0, 8.0
"""Of log τ."""

# The search ends when a step is expected to gain less than this, or after so many.
_LEAST_GAIN = 0.01
_MOST_STEPS = 12
# No scale moves farther than this in one step; a step that loses is shortened down to this.
_LONGEST_STEP, _SHORTEST_STEP = 2.0, 0.05
# Least information about the log scale of items: rounding can make it negative.
_LEAST_INFORMATION = 0.25
# The noise estimate includes pseudo-rewards whose squared residual is this share of the rewards'
# variance. There are so many, as a few rewards do not prove that there is no noise, and so many per
# reward, as no number of labels that are predicted without error proves that the model is exact: σ²
# is at least about a thousandth of the variance.
_PRIOR_REWARDS, _PRIOR_RATE = 2.0, 0.02
_PRIOR_SHARE = 0.05
# Smallest variance between items' means, in units of the mean square: without an intercept all
# rewards may be equal.
_LEAST_ITEM_VARIANCE = 1e-6
# The density of the scale of item effects is integrated for at most so many items, by a sum over
# these moves of log τ.
_FEW_ITEMS = 100
_MOVES = np.linspace(-6.0, 6.0, 121)
# Posterior variances below this share of the prior's are rounding.
_ROUNDING = 1e-12


class Scales(NamedTuple):
    """Scales of a reward regression.

    Attributes
    ----------
    logs : dict
        log τ of each block.
    noise_scale : float
        σ > 0, in the unit of the rewards.
    n_effective : float
        Effective number of coefficients, tr(I − C): the mean squared error of estimates is about
        σ² times this over the number of rewards.
    """

    logs: dict[str, float]
    noise_scale: float
    n_effective: float = 0.0

    def taus(self, blocks: Blocks, n_columns: int) -> FloatArray:
        """Return τ of each column, shape (n_columns,); of one that is in no block `INTERCEPT`."""
        taus = np.full(n_columns, INTERCEPT)
        for block, columns in blocks.items():
            taus[columns] = math.exp(self.logs[block])
        return taus


class Density(NamedTuple):
    """The density of some scales, and what it is made of.

    Attributes
    ----------
    log : float
        Log-evidence plus log-prior, up to a constant.
    noise_variance : float
        σ².
    offsets : ndarray, shape (n_blocks,)
        log τ minus its prior centre; for item effects log στ minus its own.
    posterior : Posterior
    """

    log: float
    noise_variance: float
    offsets: FloatArray
    posterior: Posterior


class Evidence:
    """Log posterior density of the scales, up to a constant.

    `at` is the density of given scales, `derivatives` are its slope and curvature, and `maximise`
    climbs by Newton-type steps.

    Parameters
    ----------
    statistics : Statistics
        Of rewards, not all 0, that are centred if there is an intercept.
    blocks, item_blocks : mapping
        Of columns of norm about 1: of φ, and of c.

    Attributes
    ----------
    blocks : list of str
        In the order of log τ.
    """

    def __init__(self, statistics: Statistics, blocks: Blocks, item_blocks: Blocks) -> None:
        self._statistics, self._mean_square = statistics, statistics.mean_square
        self.blocks = [*blocks, *item_blocks]
        self._centres = np.array([CENTRES[group_of(block)] for block in self.blocks])
        self._n_pseudo = _PRIOR_REWARDS + _PRIOR_RATE * statistics.n_rewards
        has_intercept = bool(statistics.products[0, 0] > 0.0)
        self._n = statistics.n_rewards - has_intercept + self._n_pseudo
        n_shared = len(blocks)
        self._members = np.zeros((statistics.n_features, len(self.blocks)))
        self._item_members = np.zeros((statistics.n_item_columns, len(self.blocks)))
        for place, members in enumerate(blocks.values()):
            self._members[members, place] = 1.0
        for place, members in enumerate(item_blocks.values(), n_shared):
            self._item_members[members, place] = 1.0
        self._is_by_item = np.arange(len(self.blocks)) >= n_shared
        self._is_effect = np.array([float(block == ITEM) for block in self.blocks])
        self._log_item_deviation = self._between_items()

    def _between_items(self) -> float:
        """Return the log deviation between the items' means, at least that which noise causes.

        In units of the rewards' root mean square. A single item says nothing about it: then 0.
        """
        sums, n = self._statistics.item_products, self._statistics.n_rewards
        if len(sums) < 2:
            return 0.0
        counts, totals = sums[:, 0, 0], sums[:, 0, -1]
        means = totals / counts
        explained, variance = (
            each / self._mean_square for each in (float(totals @ means), float(means.var()))
        )
        by_chance = max(0.0, n - explained) * len(means) / n**2
        return 0.5 * math.log(max(variance, by_chance, _LEAST_ITEM_VARIANCE))

    def maximise(self, start: Mapping[str, float]) -> Scales:
        """Return the most likely scales, found from others; by item the mean of τ² given these."""
        pairs = zip(self.blocks, self._centres.tolist(), strict=True)
        logs = np.array([start.get(block, centre) for block, centre in pairs])
        best = self.at(logs)
        gradient, information = self.derivatives(best)
        for _ in range(_MOST_STEPS):
            step = _newton_step(logs, gradient, information)
            if 0.5 * float(gradient @ step) < _LEAST_GAIN:
                break
            moved = np.clip(logs + step, LOWEST, HIGHEST)
            tried = self.at(moved)
            while tried.log < best.log and np.abs(step).max() > _SHORTEST_STEP:
                step = 0.25 * step
                moved = np.clip(logs + step, LOWEST, HIGHEST)
                tried = self.at(moved)
            if tried.log <= best.log:
                break
            logs, best = moved, tried
            gradient, information = self.derivatives(best)
        if self._is_by_item.any():
            logs = self._with_mean_squares(logs, best, information.diagonal())
            best = self.at(logs)
        found = dict(zip(self.blocks, logs.tolist(), strict=True))
        n_effective = float(self._n_effective(best.posterior).sum())
        return Scales(found, math.sqrt(best.noise_variance), n_effective)

    def at(self, logs: FloatArray) -> Density:
        """Return the density at some log τ."""
        by_block = np.exp(logs)
        taus, item_taus = self._members @ by_block, self._item_members @ by_block
        taus[0] = INTERCEPT
        posterior = Posterior(self._statistics, taus, item_taus)
        noise_variance = float(self._noise_variance(posterior.residual))
        offsets = logs - self._centres
        log_noise = 0.5 * math.log(noise_variance / self._mean_square)
        offsets += self._is_effect * (log_noise - self._log_item_deviation)
        log = self._log_density(noise_variance, posterior.log_det, float(offsets @ offsets))
        return Density(float(log), noise_variance, offsets, posterior)

    def _noise_variance(self, residual: Any) -> Any:
        """Return σ² at its best, given r'K⁻¹r."""
        return (residual + self._n_pseudo * _PRIOR_SHARE * self._mean_square) / self._n

    def _log_density(self, noise_variance: Any, log_det: Any, offset_squares: Any) -> Any:
        """Return the log-evidence plus log-prior, given σ², log det K and Σ offset²."""
        log_noise = np.log(noise_variance / self._mean_square)
        return -0.5 * (self._n * log_noise + log_det + offset_squares)

    def _with_mean_squares(
        self, modes: FloatArray, density: Density, information: FloatArray
    ) -> FloatArray:
        """Return ½ log E[τ²] in place of the mode of each block by item, the others given.

        With log τ ~ N(mode, v), it is mode + v. The density of the effects of few items is skewed:
        `_log_mean_square` integrates it.
        """
        above = self._is_by_item / np.maximum(information, _LEAST_INFORMATION)
        if self._is_effect.any() and len(density.posterior.item_means) <= _FEW_ITEMS:
            above[self._is_effect > 0.0] = self._log_mean_square(density)
        return np.clip(modes + above, LOWEST, HIGHEST)

    def _log_mean_square(self, density: Density) -> float:
        """Return ½ log E[τ²] minus log τ of item effects, the first column of c.

        Effects e in units of τ have the prior N(0, σ²I) and some posterior N(m, σ²C). So their
        likelihood has the precision H = C⁻¹ − I and the response h = C⁻¹m. If τ is multiplied by
        f, log det K changes as log det(I + f²H), and r'K⁻¹r as −h'(H + I/f²)⁻¹h.
        """
        posterior, n = density.posterior, len(density.posterior.item_means)
        effects = np.zeros((n, self._statistics.n_item_columns, n))
        effects[np.arange(n), 0, np.arange(n)] = 1.0
        covariance = posterior.covariance_of(np.zeros((self._statistics.n_features, n)), effects)
        values, vectors = np.linalg.eigh(covariance)
        values = np.clip(values, _ROUNDING, 1.0)
        precisions, responses = 1.0 / values - 1.0, posterior.item_means[:, 0] @ vectors / values
        factors = np.exp(2.0 * _MOVES)[:, None]
        grown = 1.0 + factors * precisions
        explained = (responses**2 * (factors / grown - values)).sum(axis=1)
        noise_variance = self._noise_variance(posterior.residual - explained)
        log_det = posterior.log_det + np.log(grown * values).sum(axis=1)
        offsets = self._is_effect @ density.offsets + _MOVES
        offsets += 0.5 * np.log(noise_variance / density.noise_variance)
        log_densities = self._log_density(noise_variance, log_det, offsets**2)
        weights = np.exp(log_densities - log_densities.max())
        return 0.5 * math.log(float(weights @ factors[:, 0] / weights.sum()))

    def derivatives(self, density: Density) -> tuple[FloatArray, FloatArray]:
        """Return the gradient of the log density by log τ, and the average information."""
        found = density.posterior
        a = found.mean[:, None] * self._members  # a column for each block
        d = found.item_means[:, :, None] * self._item_members
        norms = self._by_block(found.mean**2, (found.item_means**2).sum(axis=0))
        overlaps = (np.diag(norms) - found.covariance_of(a, d)) / density.noise_variance
        squares = norms / density.noise_variance
        n_effective = self._n_effective(found)
        # σ follows the scales: d log σ²/d log τ_l = −2 ‖â_l‖²/(nσ²), n with the pseudo-rewards.
        information = 2.0 * overlaps - 2.0 / self._n * squares[:, None] * squares
        # Where a scale is far too large for its coefficients, this understates the curvature.
        information += np.diag(2.0 * np.maximum(n_effective - squares, 0.0))
        # Of the prior: d offset_g/d log τ_l, where that of item effects contains ½ log σ².
        slopes = np.eye(len(squares)) - self._is_effect[:, None] * (squares / self._n)
        information += slopes.T @ slopes
        return squares - n_effective - density.offsets @ slopes, information

    def _n_effective(self, posterior: Posterior) -> FloatArray:
        """Return tr(I − C_gg) of each block."""
        variances, item_variances = posterior.variances()
        return self._by_block(1.0 - variances, len(posterior.item_means) - item_variances)

    def _by_block(self, features: FloatArray, item_columns: FloatArray) -> FloatArray:
        """Return the sums of values of the columns of φ, and of c, over each block."""
        return np.asarray(features @ self._members + item_columns @ self._item_members)


def _newton_step(logs: FloatArray, gradient: FloatArray, information: FloatArray) -> FloatArray:
    """Return a Newton-type step; a scale at a bound does not move beyond it."""
    free = ((logs > LOWEST) | (gradient > 0.0)) & ((logs < HIGHEST) | (gradient < 0.0))
    step = np.zeros(len(logs))
    step[free] = np.linalg.solve(information[np.ix_(free, free)], gradient[free])
    longest = float(np.abs(step).max(initial=0.0))
    return step * min(1.0, _LONGEST_STEP / max(longest, 1e-300))


def reduced_design(
    phi: FloatArray, blocks: Blocks
) -> tuple[FloatArray, dict[str, NDArray[np.int64]]]:
    """Return φ with no more columns than rows in each block, and the same products by block.

    The evidence depends on the products ΦgΦg' alone. With fewer rewards than columns,
    Φg' = QR gives the columns R'.
    """
    designs, reduced, first = [phi[:, :1]], {}, 1
    for block, columns in blocks.items():
        design = phi[:, columns]
        if len(design) < design.shape[1]:
            design = np.asarray(np.linalg.qr(design.T, mode="r")).T
        designs.append(design)
        reduced[block] = np.arange(first, first + design.shape[1])
        first += design.shape[1]
    return np.hstack(designs), reduced
