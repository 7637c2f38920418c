"""Which played arms re-enter the regression when an epoch opens, and where they are kept."""

from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen import archive
from halfseen.values import Decision, FloatArray

_COLUMNS = ("rounds", "arms", "rewards")
_FIRST_ROOM = 64


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


class Played:
    """Played arms with their rewards, in the order of their rounds however late they came.

    Memory grows with the number of played arms that replay needs, and with nothing else.
    """

    __slots__ = (
        "_arms",
        "_in_order",
        "_last_round",
        "_rewards",
        "_rounds",
        "dim",
        "n_played",
    )

    n_played: int
    _in_order: bool
    _last_round: int
    _rounds: NDArray[np.int64]
    _arms: FloatArray
    _rewards: FloatArray

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.clear()

    def __len__(self) -> int:
        return self.n_played

    @property
    def is_full(self) -> bool:
        """Whether `append` would have to make room first, which may fail."""
        return self.n_played == len(self._rounds)

    def make_room(self) -> None:
        """Double the room for played arms."""
        self._grow(2 * len(self._rounds))

    def append(self, decision: Decision, reward: float) -> None:
        """Keep one played arm."""
        n = self.n_played
        if n == len(self._rounds):
            self.make_room()
        round = decision._round
        self._in_order &= round > self._last_round
        self._last_round = round
        self._rounds[n] = round
        self._arms[n] = decision._chosen
        self._rewards[n] = reward
        self.n_played = n + 1

    def samples(self) -> tuple[FloatArray, FloatArray]:
        """Return arms, NaN where hidden, shape (n_played, dim), and rewards, by rounds."""
        n = self.n_played
        if self._in_order:
            return self._arms[:n], self._rewards[:n]
        order = np.argsort(self._rounds[:n], kind="stable")
        return self._arms[order], self._rewards[order]

    def clear(self) -> None:
        """Forget all, also the memory."""
        self.n_played = 0
        self._in_order, self._last_round = True, 0
        self._rounds = np.zeros(_FIRST_ROOM, dtype=np.int64)
        self._arms = np.zeros((_FIRST_ROOM, self.dim))
        self._rewards = np.zeros(_FIRST_ROOM)

    def state(self) -> dict[str, Any]:
        """Return the kept arms as arrays."""
        return {name: getattr(self, f"_{name}")[: self.n_played] for name in _COLUMNS}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from what `state` returned."""
        self.clear()
        rounds = archive.array(state, "rounds", (None,), np.int64)
        n = len(rounds)
        arms = archive.array(state, "arms", (n, self.dim))
        rewards = archive.array(state, "rewards", (n,))
        self._grow(max(_FIRST_ROOM, n))
        self._rounds[:n], self._arms[:n], self._rewards[:n] = rounds, arms, rewards
        self._in_order = bool((rounds[1:] > rounds[:-1]).all())
        self._last_round = int(rounds[-1]) if n else 0
        self.n_played = n

    def _grow(self, room: int) -> None:
        grown = {}
        for name in _COLUMNS:
            old = getattr(self, f"_{name}")
            grown[name] = np.zeros((room, *old.shape[1:]), dtype=old.dtype)
            grown[name][: self.n_played] = old[: self.n_played]
        for name in _COLUMNS:
            setattr(self, f"_{name}", grown[name])
