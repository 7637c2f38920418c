"""Rewards for a regression, summed up by item."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.core.summary import Summary
from halfseen.values import FloatArray


class Samples(NamedTuple):
    """Rewards, summed up by item: arms with equal values and equal holes.

    Attributes
    ----------
    counts : ndarray, shape (n_items,)
        How often each item was played, or the sum of its plays' weights.
    means : ndarray, shape (n_items,)
        Mean reward of each item.
    within : float
        Root of the sum of squared differences between rewards and the mean of their item.
    others : Summary or None
        Rewards of more items, of which each was played about equally often.
    """

    counts: FloatArray
    means: FloatArray
    within: float
    others: Summary | None = None

    @classmethod
    def of(
        cls, items: NDArray[np.int64], rewards: FloatArray, weights: FloatArray | None = None
    ) -> "Samples":
        """Sum up rewards (n,) by the numbers of their items (n,), counted from 0."""
        if weights is None:
            weights = np.ones(len(rewards))
        counts: FloatArray = np.bincount(items, weights).astype(np.float64)
        means = np.bincount(items, weights * rewards) / counts
        rests = np.sqrt(weights) * (rewards - means[items])
        size = float(np.abs(rests).max(initial=0.0)) or 1.0  # tiny squares would underflow
        return cls(counts, means, size * float(np.linalg.norm(rests / size)))

    @property
    def n_rewards(self) -> float:
        """Number of all rewards, or the sum of their weights."""
        return float(self.counts.sum()) + (0.0 if self.others is None else self.others.n_rewards)

    def mean(self) -> float:
        """Return the mean of all rewards."""
        own = float(self.counts @ self.means / self.counts.sum())
        if self.others is None:
            return own
        return own + float(self.others.ones @ self.others.targets(own)) / self.n_rewards

    def targets(self, shift: float) -> FloatArray:
        """Return the items' means, then the targets of the others' rows, measured from a shift."""
        own: FloatArray = self.means - shift
        return own if self.others is None else np.append(own, self.others.targets(shift))

    def stacked(self, points: FloatArray) -> FloatArray:
        """Return features (n_items, n_features), the first one 1, and below them the others'."""
        return points if self.others is None else np.vstack([points, self.others.rows[:, :-1]])

    def weights(self, item_scale: float) -> FloatArray:
        """Return the precision of each target around its regression, in units of 1/σ²."""
        own: FloatArray = sample_weights(self.counts, item_scale)
        others = self.others
        if others is None:
            return own
        plays = others.n_rewards / others.n_arms
        return np.append(own, np.full(len(others.rows), 1.0 / (1.0 + item_scale**2 * plays)))

    def log_det(self, item_scale: float) -> float:
        """Return the log-determinant of all items' variances, without effects of items 0."""
        own, others = float(np.log1p(item_scale**2 * self.counts).sum()), self.others
        if others is None:
            return own
        plays = others.n_rewards / others.n_arms
        return own + others.n_arms * math.log1p(item_scale**2 * plays)


def sample_weights(counts: Any, item_scale: float) -> Any:
    """Return the precision of each item's mean reward around its regression, in units of 1/σ².

    The mean of n rewards varies by σ²/n due to noise and by σ²τ² due to the item's effect.
    """
    return counts / (1.0 + item_scale**2 * counts)
