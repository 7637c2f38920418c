"""A level of rewards that moves, shared by all arms.

The level of rewards is a random walk, measured by the residuals y of the reward model. The means of
consecutive blocks of n residuals at times t in [0, 1] have the covariance

    σ²(v² min(t, t') + 1/n on the diagonal).

With a constant and σ eliminated, the evidence chooses v, how far the level moves during all rounds
in units of the noise. σ is at least the deviation inside of blocks, and more if it must be: rewards
of one visitor may have residuals that are alike.
Unless the evidence clearly prefers a moving level, nothing changes. Otherwise
the smoothed level is subtracted from rewards, and the level goes on with each reward while no other
is pending, by the gain of a steady Kalman filter:  level + gain·residual,
gain = (√(q² + 4q) − q)/2,  q = v²/n_rewards.  With items, residuals are divided by their deviation.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.state import Real, Value
from halfseen.values import LARGEST, FloatArray

# Blocks whose means show a drifting level; blocks with fewer residuals show nothing.
_BLOCKS, _SHORTEST, _FEWEST_BLOCKS = 32, 4, 8
# How far the level may move, in deviations of the noise; 0 if it is fixed.
_MOVES = np.append(0.0, 2.0 ** np.arange(-2, 7))
# By how much the evidence for a moving level must exceed that for a fixed one.
_LEAST_EVIDENCE = 5.0


class Drift(NamedTuple):
    """The level of rewards now, above that of the rewards as they are kept.

    Attributes
    ----------
    level : float
    gain : float
        Share of a residual by which the level moves; 0 if it is fixed.
    """

    level: float = 0.0
    gain: float = 0.0

    def updated(self, residual: float) -> "Drift":
        """Return the drift after one more reward."""
        return self._replace(level=self.level + self.gain * residual) if self.gain else self


FIXED = Drift()
DRIFT = Value(Drift, level=Real(-LARGEST, LARGEST), gain=Real(0.0, 1.0))


class Path(NamedTuple):
    """The level over time: at some rounds, linear between these; and v, how far it moves in all."""

    rounds: FloatArray
    levels: FloatArray
    speed: float

    def at(self, rounds: NDArray[np.int64]) -> FloatArray:
        """Return the level in some rounds."""
        return np.interp(rounds, self.rounds, self.levels)

    def drift(self, n_rewards: int) -> Drift:
        """Return the drift from the end of the path on, if so many rewards came along it."""
        q = self.speed**2 / n_rewards
        return Drift(float(self.levels[-1]), 0.5 * (math.sqrt(q * q + 4.0 * q) - q))


def moving_level(rounds: NDArray[np.int64], residuals: FloatArray) -> Path | None:
    """Return the path of the level that residuals show; None without enough evidence for one."""
    order = np.argsort(rounds, kind="stable")
    n_blocks = min(_BLOCKS, len(order) // _SHORTEST)
    if n_blocks < _FEWEST_BLOCKS:
        return None
    blocks = np.array_split(order, n_blocks)
    sizes = np.array([len(block) for block in blocks])
    means = np.array([residuals[block].mean() for block in blocks])
    middles = np.array([rounds[block].mean() for block in blocks])
    inside = sum(float(((residuals[b] - m) ** 2).sum()) for b, m in zip(blocks, means, strict=True))
    unit = math.sqrt(inside / (len(order) - n_blocks))
    if middles[-1] == middles[0] or not unit > 0.0:
        return None
    times = (middles - middles[0]) / (middles[-1] - middles[0])
    # With rows and columns times √n, the covariance is I + v²·walk, and walk = UΛU'.
    roots = np.sqrt(sizes)
    values, vectors = np.linalg.eigh(np.minimum(times[:, None], times) * roots[:, None] * roots)
    y, ones = (roots * means / unit) @ vectors, roots @ vectors
    moved = np.multiply.outer(_MOVES**2, np.maximum(values, 0.0))
    variances = 1.0 + moved
    constant = (ones * y / variances).sum(axis=1) / (ones**2 / variances).sum(axis=1)
    rest = y - constant[:, None] * ones
    square, n = (rest**2 / variances).sum(axis=1), n_blocks - 1
    sigma2 = np.maximum(1.0, square / n)
    log_det = np.log(variances).sum(axis=1) + np.log((ones**2 / variances).sum(axis=1))
    evidence = -0.5 * (log_det + n * np.log(sigma2) + square / sigma2)
    best = int(evidence.argmax())
    if evidence[best] < evidence[0] + _LEAST_EVIDENCE:
        return None
    smoothed = constant[best] + vectors @ (moved * rest / variances)[best] / roots
    return Path(middles, unit * smoothed, float(_MOVES[best]))
