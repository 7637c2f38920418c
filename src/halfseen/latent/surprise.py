"""Whether rewards are still what the model expects: squared residuals lately and usually."""

import math
from typing import NamedTuple

from halfseen import checks
from halfseen.state import Real, Value, Whole

# Rewards that count in `lately`, and at most in what was usual before.
_LATELY, _USUALLY = 200, 2000
# Squared residuals are surprising beyond this share of the usual ones and so many errors.
_LARGER, _ERRORS = 1.25, 5.0
_FEWEST = 400


class Surprise(NamedTuple):
    """Squared residuals of rewards when they came, lately and usually.

    By the normal law these are, up to constants, the predictive log-likelihood of the latest
    rewards and what the model expects of it.

    Attributes
    ----------
    n : int
        Rewards so far.
    lately, usual, fourth : float
        Means of squares, lately and usually, and of their squares; in units of the predictive
        variance.
    """

    n: int = 0
    lately: float = 1.0
    usual: float = 1.0
    fourth: float = 3.0

    def updated(self, square: float) -> "Surprise":
        """Return what is known after one more squared residual."""
        square, n = min(square, 100.0), self.n + 1
        now, usually = 1.0 / min(n, _LATELY), 1.0 / min(n, _USUALLY)
        return Surprise(
            n,
            self.lately + now * (square - self.lately),
            self.usual + usually * (square - self.usual),
            self.fourth + usually * (square * square - self.fourth),
        )

    @property
    def ratio(self) -> float:
        """How much larger squared residuals are lately than usually."""
        return self.lately / max(self.usual, 1e-300)

    @property
    def is_large(self) -> bool:
        """Whether the model no longer expects what it gets."""
        spread = math.sqrt(max(0.0, self.fourth - self.usual**2) / (2 * _LATELY - 1))
        excess = self.lately - self.usual
        return self.n >= _FEWEST and self.ratio > _LARGER and excess > _ERRORS * spread


SURPRISE = Value(
    Surprise,
    n=Whole(high=checks.LARGEST_HORIZON),
    lately=Real(0.0, 1e4),
    usual=Real(0.0, 1e4),
    fourth=Real(0.0, 1e8),
)
