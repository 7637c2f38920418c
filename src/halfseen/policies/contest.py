"""Whether low rank helps to predict rewards, or zero-filling does better."""

import math
from typing import Any, NamedTuple

import numpy as np

from halfseen import checks
from halfseen.core.scales import Evidence
from halfseen.values import FloatArray

# Older epochs count less, so that a change of the world shows.
_MEMORY = 0.8
# By how many standard errors zero-filling must predict better before it plays.
_MARGIN = 1.0


class Contest(NamedTuple):
    """Squared errors of predicted rewards, low rank less zero-filled, over all epochs so far.

    Each epoch's rewards are predicted from those before it, by either regression.

    Attributes
    ----------
    excess, squares : float
        Sum of the differences and of their squares.
    """

    excess: float = 0.0
    squares: float = 0.0

    @property
    def zero_filled_wins(self) -> bool:
        """Whether zero-filling predicts clearly better."""
        return self.excess > _MARGIN * math.sqrt(self.squares)

    def after(
        self, latent: FloatArray, filled: FloatArray, rewards: FloatArray, n_before: int
    ) -> "Contest":
        """Return the contest after an epoch.

        Parameters
        ----------
        latent : ndarray, shape (n, rank)
            Coordinates of all played arms.
        filled : ndarray, shape (n, dim)
            The same arms, zero where hidden.
        rewards : ndarray, shape (n,)
        n_before : int
            How many of them were there before the epoch.
        """
        if n_before == 0 or n_before == len(rewards):
            return self
        # Relative to the rewards' size: nothing here depends on units, and squares stay finite.
        size = float(np.abs(rewards).max()) or 1.0
        rewards = rewards / size
        errors = [_prediction_errors(points, rewards, n_before) for points in (latent, filled)]
        difference = errors[0] - errors[1]
        scale = float((rewards @ rewards) / len(rewards)) or 1.0
        difference /= scale
        return Contest(
            _MEMORY * self.excess + float(difference.sum()),
            _MEMORY * self.squares + float(difference @ difference),
        )

    @classmethod
    def restored(cls, state: Any) -> "Contest":
        """Return the contest that was saved as a list."""
        excess, squares = state
        return cls(checks.real("excess", excess), checks.real("squares", squares, 0.0))


def _prediction_errors(points: FloatArray, rewards: FloatArray, n_before: int) -> FloatArray:
    """Return squared errors of the later rewards, predicted from the earlier ones."""
    evidence = Evidence(points[:n_before], rewards[:n_before])
    theta = evidence.estimate(evidence.best_ridge()[0])
    missed: FloatArray = rewards[n_before:] - points[n_before:] @ theta
    return missed**2
