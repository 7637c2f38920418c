"""Which played arms enter the regression of a new epoch, and where they are kept."""

from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen import archive
from halfseen.values import LARGEST, FloatArray

_FIRST_ROOM = 64
_LARGEST_MEAN = LARGEST * (1.0 + 1e-9)  # a mean may exceed its rewards by rounding


class Replay(StrEnum):
    """Which earlier rewards enter the regression of a new epoch, in the new basis.

    A burn-in reward is one that the burn-in policy earned, during burn-in or in an epoch of rank 0.

    Examples
    --------
    >>> Replay("full") is Replay.FULL
    True
    >>> [each.value for each in Replay]
    ['none', 'burn-in-once', 'burn-in', 'full']
    """

    NONE = "none"
    """None: Algorithm 1 literally."""
    BURN_IN_ONCE = "burn-in-once"
    """Burn-in rewards, in the first epoch that has a rank above 0."""
    BURN_IN = "burn-in"
    """Burn-in rewards, in every epoch."""
    FULL = "full"
    """All rewards so far, in every epoch."""


class Played:
    """Played arms with their rewards, sorted by round, even if rewards came late.

    Memory grows only with the number of played arms that replay needs.
    """

    __slots__ = ("_arms", "_n_played", "_rewards", "_rounds", "dim")

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self._n_played = 0
        self._rounds: NDArray[np.int64] = np.zeros(_FIRST_ROOM, dtype=np.int64)
        self._arms: FloatArray = np.zeros((_FIRST_ROOM, dim))
        self._rewards: FloatArray = np.zeros(_FIRST_ROOM)

    def __len__(self) -> int:
        return self._n_played

    def fork(self) -> "Played":
        """Return a copy that continues in place of this one, which must not be changed any more."""
        fork = object.__new__(Played)
        fork.dim, fork._n_played = self.dim, self._n_played
        fork._rounds, fork._arms, fork._rewards = self._rounds, self._arms, self._rewards
        return fork

    def append(self, round: int, arm: FloatArray, reward: float) -> None:
        """Keep one played arm, NaN where hidden, shape (dim,)."""
        n = self._n_played
        if n == len(self._arms):
            self._grow(2 * n)
        self._rounds[n], self._arms[n], self._rewards[n] = round, arm, reward
        self._n_played = n + 1

    @property
    def last_reward(self) -> float | None:
        """The reward that came last; None if there is none."""
        return float(self._rewards[self._n_played - 1]) if self._n_played else None

    @classmethod
    def of(cls, arms: FloatArray, rewards: FloatArray, rounds: NDArray[np.int64]) -> "Played":
        """Return played arms (n, dim) with their rewards and rounds."""
        played = cls(arms.shape[1])
        played._rounds, played._arms, played._rewards = rounds, arms, rewards
        played._n_played = len(rounds)
        played._grow(max(_FIRST_ROOM, len(rounds)))
        return played

    def columns(self) -> tuple[FloatArray, FloatArray, NDArray[np.int64]]:
        """Return arms, NaN where hidden, shape (n_played, dim), rewards and rounds."""
        n = self._n_played
        return self._arms[:n], self._rewards[:n], self._rounds[:n]

    def samples(self) -> tuple[FloatArray, FloatArray, NDArray[np.int64]]:
        """Return `columns`, sorted by round."""
        arms, rewards, rounds = self.columns()
        if (rounds[1:] > rounds[:-1]).all():
            return arms, rewards, rounds
        order = np.argsort(rounds, kind="stable")
        return arms[order], rewards[order], rounds[order]

    def state(self) -> dict[str, Any]:
        """Return the kept arms as arrays."""
        n = self._n_played
        return {"rounds": self._rounds[:n], "arms": self._arms[:n], "rewards": self._rewards[:n]}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from what `state` returned."""
        rounds = archive.array(state, "rounds", (None,), np.int64, low=1)
        n = len(rounds)
        arms = archive.array(state, "arms", (n, self.dim), low=-LARGEST, high=LARGEST, hidden=True)
        rewards = archive.array(state, "rewards", (n,), low=-_LARGEST_MEAN, high=_LARGEST_MEAN)
        self._rounds, self._arms, self._rewards, self._n_played = rounds, arms, rewards, n
        self._grow(max(_FIRST_ROOM, n))

    def _grow(self, room: int) -> None:
        self._rounds, self._arms, self._rewards = [
            _grown(column, self._n_played, room)
            for column in (self._rounds, self._arms, self._rewards)
        ]


def _grown(column: NDArray[Any], n_kept: int, room: int) -> NDArray[Any]:
    grown = np.zeros((room, *column.shape[1:]), dtype=column.dtype)
    grown[:n_kept] = column[:n_kept]
    return grown
