"""What a world is: a distribution, and realizations of it that all policies walk alike."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from halfseen.core.theory import Problem
from halfseen.values import FloatArray, Slate


class Round(NamedTuple):
    """One round of a realization.

    Attributes
    ----------
    slate : Slate
        What a policy sees.
    means : ndarray, shape (n_arms,)
        Expected reward of each arm. Only the runner looks at it.
    noise : float
        Added to the mean of whatever arm is chosen.
    """

    slate: Slate
    means: FloatArray
    noise: float


class Realization(Protocol):
    """One draw from a world: the same rounds every time one walks it."""

    @property
    def horizon(self) -> int:
        """Number of rounds."""

    def rounds(self) -> Iterator[Round]:
        """Yield all rounds in order."""

    def problem(self) -> Problem:
        """Return the constants that the theory's bounds depend on."""


class World(Protocol):
    """A distribution over realizations."""

    def realize(self, seed: int) -> Realization:
        """Return the realization of a seed."""
