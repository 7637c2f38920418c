"""Which played arms re-enter the regression when an epoch opens, and where they are kept."""

from enum import StrEnum
from typing import Any

import numpy as np

from halfseen.values import BoolArray, Decision, FloatArray


class Replay(StrEnum):
    """Which rewards an epoch starts from, re-expressed in its basis.

    A burn-in reward is one that the burn-in policy earned: in the burn-in rounds, or in an epoch
    of rank 0.
    """

    NONE = "none"
    """None: Algorithm 1 literally."""
    BURN_IN_ONCE = "burn-in-once"
    """Burn-in rewards, in the first epoch that has a rank above 0."""
    BURN_IN = "burn-in"
    """Burn-in rewards, in every epoch."""
    FULL = "full"
    """All rewards so far, in every epoch."""

    def keeps(self, from_burn_in: bool) -> bool:
        """Return whether a sample is kept for later epochs."""
        return self is Replay.FULL or (from_burn_in and self is not Replay.NONE)


class Played:
    """Played arms with their rewards, in the order of their rounds however late they came.

    Memory grows with the number of played arms that replay needs, and with nothing else.
    """

    __slots__ = ("_masks", "_rewards", "_rounds", "_values", "n_played")

    def __init__(self, dim: int) -> None:
        self.n_played = 0
        self._rounds = np.zeros(0, dtype=np.int64)
        self._values = np.zeros((0, dim))
        self._masks = np.zeros((0, dim), dtype=np.bool_)
        self._rewards = np.zeros(0)

    def make_room(self) -> None:
        """Make sure that one more fits, so that `append` cannot fail."""
        if self.n_played == len(self._rounds):
            self._grow(max(16, 2 * self.n_played))

    def append(self, decision: Decision, reward: float) -> None:
        """Keep one played arm."""
        self.make_room()
        n = self.n_played
        self._rounds[n] = decision.round
        self._values[n] = decision.values
        self._masks[n] = decision.mask
        self._rewards[n] = reward
        self.n_played = n + 1

    def samples(self) -> tuple[FloatArray, BoolArray, FloatArray]:
        """Return values and masks, shape (n_played, dim), and rewards, in order of rounds."""
        n = self.n_played
        rounds = self._rounds[:n]
        if (rounds[1:] > rounds[:-1]).all():
            return self._values[:n], self._masks[:n], self._rewards[:n]
        order = np.argsort(rounds, kind="stable")
        return self._values[order], self._masks[order], self._rewards[order]

    def clear(self) -> None:
        """Forget all, also the memory."""
        self.__init__(self._values.shape[1])  # type: ignore[misc]

    def state(self) -> dict[str, Any]:
        """Return the kept arms as arrays."""
        n = self.n_played
        return {
            "rounds": self._rounds[:n],
            "values": self._values[:n],
            "masks": self._masks[:n],
            "rewards": self._rewards[:n],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from what `state` returned."""
        self._rounds, self._values = np.array(state["rounds"]), np.array(state["values"])
        self._masks, self._rewards = np.array(state["masks"]), np.array(state["rewards"])
        self.n_played = len(self._rounds)

    def _grow(self, capacity: int) -> None:
        for name in ("_rounds", "_values", "_masks", "_rewards"):
            old = getattr(self, name)
            new = np.zeros((capacity, *old.shape[1:]), dtype=old.dtype)
            new[: self.n_played] = old[: self.n_played]
            setattr(self, name, new)
