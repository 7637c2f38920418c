"""Decides whether the subspace or zero-filling predicts rewards better."""

from typing import Any, NamedTuple

import numpy as np

from halfseen import checks
from halfseen.core.scales import Evidence
from halfseen.values import FloatArray

# The contest is first held after this many rewards, then each time they have grown by a factor.
_FIRST = 8
_GROWTH = 1.5
# Older epochs count less, so that a change of the world is noticed.
_MEMORY = 0.8


class Contest(NamedTuple):
    """Squared prediction errors of the low-rank regression minus those of the zero-filled one.

    Both regressions predict new rewards from those before them.

    Attributes
    ----------
    excess : float
        Sum of the differences, in units of the mean squared reward.
    n_judged : int
        Number of rewards when the contest was last held.
    """

    excess: float = 0.0
    n_judged: int = 0

    @property
    def zero_filled_wins(self) -> bool:
        """Whether zero-filling predicts better."""
        return self.excess > 0.0

    def is_due(self, n_rewards: int) -> bool:
        """Return whether there are enough new rewards to hold it again."""
        return n_rewards >= max(_FIRST, _GROWTH * self.n_judged)

    def after(self, latent: FloatArray, filled: FloatArray, rewards: FloatArray) -> "Contest":
        """Return the contest with all new rewards counted.

        Parameters
        ----------
        latent : ndarray, shape (n, rank)
            Coordinates of all played arms.
        filled : ndarray, shape (n, dim)
            The same arms, zero where hidden.
        rewards : ndarray, shape (n,)
        """
        before = self.n_judged or len(rewards) // 2
        # Relative to the largest reward: the result does not depend on units, squares stay finite.
        size = float(np.abs(rewards).max()) or 1.0
        rewards = rewards / size
        difference = _prediction_errors(latent, rewards, before)
        difference -= _prediction_errors(filled, rewards, before)
        difference /= float(rewards @ rewards) / len(rewards) or 1.0
        return Contest(
            _MEMORY * self.excess + float(difference.sum()),
            len(rewards),
        )

    @classmethod
    def restored(cls, state: Any) -> "Contest":
        """Return the contest that was saved as a list."""
        excess, n_judged = state
        return cls(
            checks.real("excess", excess),
            checks.integer("n_judged", n_judged, 0, checks.LARGEST_HORIZON),
        )


def _prediction_errors(points: FloatArray, rewards: FloatArray, n_before: int) -> FloatArray:
    """Return squared errors of the later rewards, predicted from the earlier ones."""
    evidence = Evidence(points[:n_before], rewards[:n_before])
    theta = evidence.estimate(evidence.best_ridge()[0])
    missed: FloatArray = rewards[n_before:] - points[n_before:] @ theta
    return missed**2
