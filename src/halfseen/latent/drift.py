"""A level of rewards that moves, shared by all arms.

The level l of rewards is a random walk: in consecutive blocks of rewards at times t in [0, 1] it
has the covariance σ²v² min(t, t'). With Z the indicators of blocks, rewards are y ~ N(Zl, σ²K), K
that of the reward model with all coefficients integrated out: rewards may be larger than before
because the level has risen, or because of the arms played since. So

    Z'K⁻¹y ~ N(Z'K⁻¹Zl, σ²Z'K⁻¹Z),   and K⁻¹y is y minus the estimates of the reward model.

With σ eliminated, the evidence chooses v, how far the level moves during all rounds in units of the
noise. σ is at least the deviation inside of blocks, and more if it must be: rewards of one visitor
may have residuals that are alike. Unless the evidence clearly prefers a moving level, nothing
changes. Otherwise the smoothed level is subtracted from rewards, and the level goes on with each
reward while no other is pending, by the gain of a steady Kalman filter:  level + gain·residual,
gain = (√(q² + 4q) − q)/2,  q = v²/n_rewards.  With items, residuals are divided by their deviation.
"""

import math
from collections.abc import Callable
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
# A direction of the level with less information than this, per reward, is left out: that in which
# all levels are equal is the intercept's.
_LEAST_INFORMATION = 1e-6


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


def moving_level(
    rounds: NDArray[np.int64],
    residuals: FloatArray,
    levels: FloatArray,
    weights: FloatArray,
    information: Callable[[FloatArray], FloatArray],
) -> Path | None:
    """Return the path of the level that rewards show; None without enough evidence for one.

    Parameters
    ----------
    rounds, residuals, levels, weights : ndarray, shape (n,)
        Of each reward the round, its difference from its estimate, the level that had been
        subtracted from it before, and how much it counts.
    information : callable
        Takes columns Z (n, k) for Z'K⁻¹Z.
    """
    order = np.argsort(rounds, kind="stable")
    n_blocks = min(_BLOCKS, len(order) // _SHORTEST)
    if n_blocks < _FEWEST_BLOCKS:
        return None
    blocks = np.array_split(order, n_blocks)
    middles = np.array([rounds[block].mean() for block in blocks])
    rests = [residuals[block] + levels[block] for block in blocks]
    inside = sum(float(((rest - rest.mean()) ** 2).sum()) for rest in rests)
    unit = math.sqrt(inside / (len(order) - n_blocks))
    if middles[-1] == middles[0] or not unit > 0.0:
        return None
    columns = np.zeros((len(order), n_blocks + 1))
    for number, block in enumerate(blocks):
        columns[block, number] = 1.0
    columns[:, -1] = levels / unit  # was subtracted from y
    products = information(columns)
    seen = columns[:, :-1].T @ (weights * residuals / unit) + products[:-1, -1]
    times = (middles - middles[0]) / (middles[-1] - middles[0])
    found = _walk(times, products[:-1, :-1], seen, _LEAST_INFORMATION * len(order))
    return None if found is None else Path(middles, unit * found[0], found[1])


def _walk(
    times: FloatArray, known: FloatArray, seen: FloatArray, least: float
) -> tuple[FloatArray, float] | None:
    """Return smoothed levels l and v, in units of the noise, given Z'K⁻¹Z and Z'K⁻¹y.

    With Z'K⁻¹Z = EDE', D^−½E'Z'K⁻¹y ~ N(Bl, I), B = D^½E'. Entries of D below `least` are left out.
    """
    known, directions = np.linalg.eigh(known)
    known, directions = known[known > least], directions[:, known > least]
    if not len(known):
        return None
    to_seen = (directions * np.sqrt(known)).T
    covariance = np.minimum(times[:, None], times)
    values, vectors = np.linalg.eigh(to_seen @ covariance @ to_seen.T)
    y = vectors.T @ (seen @ directions / np.sqrt(known))
    variances = 1.0 + np.multiply.outer(_MOVES**2, np.maximum(values, 0.0))
    square = (y**2 / variances).sum(axis=1)
    sigma2 = np.maximum(1.0, square / len(y))
    evidence = -0.5 * (np.log(variances).sum(axis=1) + len(y) * np.log(sigma2) + square / sigma2)
    best = int(evidence.argmax())
    if evidence[best] < evidence[0] + _LEAST_EVIDENCE:
        return None
    smoothed = covariance @ to_seen.T @ vectors @ (y / variances[best])
    return _MOVES[best] ** 2 * smoothed, float(_MOVES[best])
