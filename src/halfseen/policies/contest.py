"""Whether low rank helps to predict rewards, or zero-filling does better."""

from typing import Any, NamedTuple

import numpy as np

from halfseen import checks
from halfseen.core.scales import Evidence
from halfseen.values import FloatArray

# The contest is held with this many rewards, and again when they have grown by a factor.
_FIRST = 8
_GROWTH = 1.5
# Older epochs count less, so that a change of the world shows.
_MEMORY = 0.8


class Contest(NamedTuple):
    """Squared errors of predicted rewards, low rank less zero-filled, over all rewards so far.

    New rewards are predicted from those before them, by either regression.

    Attributes
    ----------
    excess : float
        Sum of the differences, in units of the mean squared reward.
    n_judged : int
        Rewards that were there when it was held last.
    """

    excess: float = 0.0
    n_judged: int = 0

    @property
    def zero_filled_wins(self) -> bool:
        """Whether zero-filling predicts better."""
        return self.excess > 0.0

    def is_due(self, n_rewards: int) -> bool:
        """Return whether there are enough new rewards for another round."""
        return n_rewards >= max(_FIRST, _GROWTH * self.n_judged)

    def after(self, latent: FloatArray, filled: FloatArray, rewards: FloatArray) -> "Contest":
        """Return the contest after the rewards that are new in it.

        Parameters
        ----------
        latent : ndarray, shape (n, rank)
            Coordinates of all played arms.
        filled : ndarray, shape (n, dim)
            The same arms, zero where hidden.
        rewards : ndarray, shape (n,)
        """
        before = self.n_judged or len(rewards) // 2
        # Relative to the rewards' size: nothing here depends on units, and squares stay finite.
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
