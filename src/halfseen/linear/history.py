"""What a policy keeps of the past: played arms with their rewards, a bounded sample of rows."""

import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen import checks
from halfseen.errors import ArchiveError
from halfseen.seeding import stream
from halfseen.state import ARMS, Array, Maybe, Value, Whole
from halfseen.values import LARGEST, FloatArray

LARGEST_GROWTH = 1e6

_FIRST_ROOM = 64


def next_start(start: int, growth: float) -> int:
    """Return the round in which to fit again, after a fit in round `start`: ⌈g·start⌉, but later.

    >>> [next_start(start, 2.0) for start in (1, 31)], next_start(3, 1.25)
    ([2, 62], 4)
    """
    return max(start + 1, math.ceil(growth * start))


class Columns(NamedTuple):
    """Played arms with their rewards.

    Attributes
    ----------
    arms : ndarray, shape (n, dim)
        NaN where hidden.
    rewards : ndarray, shape (n,)
    rounds : ndarray of int, shape (n,)
    """

    arms: FloatArray
    rewards: FloatArray
    rounds: NDArray[np.int64]


class Played:
    """Played arms with their rewards, which may come late."""

    STATE: ClassVar = {
        "columns": Value(
            Columns,
            arms=ARMS,
            rewards=Array(("n",), low=-LARGEST, high=LARGEST),
            rounds=Array(("n",), np.int64, low=1),
        )
    }

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
    def columns(self) -> Columns:
        """What is kept, in the order in which rewards came."""
        n = self._n_played
        return Columns(self._arms[:n], self._rewards[:n], self._rounds[:n])

    @columns.setter
    def columns(self, columns: Columns) -> None:
        self._arms, self._rewards, self._rounds = columns
        self._n_played = len(columns.rounds)
        self._grow(max(_FIRST_ROOM, self._n_played))

    def samples(self) -> Columns:
        """Return `columns`, sorted by round."""
        arms, rewards, rounds = self.columns
        if (rounds[1:] > rounds[:-1]).all():
            return self.columns
        order = np.argsort(rounds, kind="stable")
        return Columns(arms[order], rewards[order], rounds[order])

    def kept(self, is_kept: Callable[[int, FloatArray], bool]) -> "Played":
        """Return the played arms for which a function of round and arm says so."""
        arms, rewards, rounds = self.columns
        each = zip(rounds.tolist(), arms, strict=True)
        chosen = np.fromiter((is_kept(*pair) for pair in each), bool, count=len(rounds))
        kept = Played(self.dim)
        kept.columns = Columns(arms[chosen], rewards[chosen], rounds[chosen])
        return kept

    def _grow(self, room: int) -> None:
        self._rounds, self._arms, self._rewards = [
            _grown(column, self._n_played, room)
            for column in (self._rounds, self._arms, self._rewards)
        ]


def _grown(column: NDArray[Any], n_kept: int, room: int) -> NDArray[Any]:
    grown = np.zeros((room, *column.shape[1:]), dtype=column.dtype)
    grown[:n_kept] = column[:n_kept]
    return grown


# Rows whose places are drawn at once: a generator per slate would be slower than the slate.
_DRAWS = 4096


class _Draws(NamedTuple):
    """The numbers of the rows of a block that are kept, ascending, and their places."""

    block: int
    kept: NDArray[np.int64]
    places: NDArray[np.int64]

    @classmethod
    def of(cls, seed: int, block: int, max_rows: int, recent: bool) -> "_Draws":
        order = np.arange(block * _DRAWS, (block + 1) * _DRAWS)
        random = stream(seed, "reservoir", str(block))
        places = np.full(len(order), max_rows) if recent else order + 1
        places = np.where(order < max_rows, order, random.integers(0, places))
        kept = places < max_rows
        return cls(block, order[kept], places[kept])


class Reservoir:
    """At most `max_rows` of all rows so far; each subset of that size is equally likely.

    The n-th row replaces a kept one with probability max_rows / n. Its place depends only on the
    seed and on n. As long as all rows fit, all are kept, in order. With `recent`, each new row
    replaces a kept one, so that old rows disappear with time.

    Parameters
    ----------
    dim, max_rows : int
    seed : int
    recent : bool

    Attributes
    ----------
    n_arms : int
        Rows so far, kept or not.

    Examples
    --------
    >>> reservoir = Reservoir(1, max_rows=3)
    >>> for n in range(10):
    ...     reservoir.add(np.full((2, 1), n))
    >>> reservoir.n_arms, reservoir.rows.shape
    (20, (3, 1))
    """

    STATE: ClassVar = {
        "n_arms": Whole(),
        "rows": ARMS,
        "_numbers": Maybe(Array(("n",), np.int64, low=0)),
    }

    __slots__ = (
        "_block", "_draws", "_latest", "_next", "_numbers",
        "dim", "max_rows", "n_arms", "recent", "seed",
    )  # fmt: skip

    def __init__(self, dim: int, *, max_rows: int, seed: int = 0, recent: bool = False) -> None:
        self.dim = checks.integer("dim", dim, 1)
        self.max_rows = checks.integer("max_rows", max_rows, 1)
        self.seed = checks.integer("seed", seed, 0)
        self.recent = recent
        self.n_arms = 0
        # The system allocates this memory only when it is written to.
        self._block = np.empty((self.max_rows, self.dim))
        # The numbers of the kept rows, counted from 0; None while all rows are kept.
        self._numbers: NDArray[np.int64] | None = None
        # No row from the latest ones up to this number replaces a kept one.
        self._next = self.max_rows
        # The latest rows, which may replace kept ones, and the number of the first. Forks share the
        # block, so these wait until the fork is known to be the one that continues.
        self._latest: tuple[int, FloatArray] | None = None
        self._draws: _Draws | None = None

    def fork(self) -> "Reservoir":
        """Return a copy that continues in place of this one, which must not be changed any more."""
        fork = object.__new__(Reservoir)
        fork.dim, fork.max_rows, fork.seed = self.dim, self.max_rows, self.seed
        fork.recent, fork.n_arms, fork._latest = self.recent, self.n_arms, self._latest
        fork._block, fork._numbers, fork._next = self._block, self._numbers, self._next
        fork._draws = self._draws
        return fork

    @property
    def rows(self) -> FloatArray:
        """The kept rows, shape (n, dim), in an array that changes with the next `add`."""
        self._place_latest()
        return self._block[: self.n_arms]

    @rows.setter
    def rows(self, rows: FloatArray) -> None:
        if len(rows) != min(self.n_arms, self.max_rows):
            raise ArchiveError(f"{self.n_arms} arms cannot leave a sample of {len(rows)}")
        self._block[: len(rows)] = rows

    def add(self, rows: FloatArray) -> None:
        """Add rows, shape (n, dim), in order; the array must not be changed afterwards."""
        self._place_latest()
        end = self.n_arms + len(rows)
        if end <= self.max_rows:
            self._block[self.n_arms : end] = rows
        elif end > self._next:
            self._latest = self.n_arms, rows
        self.n_arms = end

    def _place_latest(self) -> None:
        """Let the latest rows replace kept ones; harmless if repeated."""
        if self._latest is None:
            return
        first, rows = self._latest
        numbers = np.arange(self.max_rows) if self._numbers is None else self._numbers
        end = first + len(rows)
        for block in range(first // _DRAWS, end // _DRAWS + 1):
            _, kept, places = self._drawn(block)
            start, stop = kept.searchsorted([first, end])
            # For equal places the last row wins.
            self._block[places[start:stop]] = rows[kept[start:stop] - end]
            numbers[places[start:stop]] = kept[start:stop]
        self._next = int(kept[stop]) if stop < len(kept) else (block + 1) * _DRAWS
        self._numbers, self._latest = numbers, None

    def _drawn(self, block: int) -> _Draws:
        """Return the draws of a block, which many slates share."""
        if self._draws is None or self._draws.block != block:
            self._draws = _Draws.of(self.seed, block, self.max_rows, self.recent)
        return self._draws

    @property
    def numbers(self) -> NDArray[np.int64]:
        """Positions of the kept rows among all rows, counted from 0, shape (n,)."""
        self._place_latest()
        return np.arange(len(self.rows)) if self._numbers is None else self._numbers

    def widened(self, rows: FloatArray, max_rows: int) -> "Reservoir":
        """Return the reservoir with more features: its rows (n, new dim), at most `max_rows`."""
        wider = Reservoir(rows.shape[1], max_rows=max_rows, seed=self.seed, recent=self.recent)
        numbers = self.numbers
        if len(rows) > max_rows:
            random = stream(self.seed, "reservoir", "smaller", str(self.n_arms))
            kept = np.sort(random.choice(len(rows), max_rows, replace=False))
            rows, numbers = rows[kept], numbers[kept]
        wider._block[: len(rows)] = rows
        if self.n_arms > max_rows:
            wider._numbers = numbers.copy()
        wider.n_arms = self.n_arms
        return wider

    def after_loading(self) -> None:
        """Raise ArchiveError unless saved numbers can be those of the kept rows."""
        numbers = self._numbers
        if numbers is not None and (self.n_arms <= self.max_rows or numbers.max() >= self.n_arms):
            raise ArchiveError("numbers must be those of kept rows, and None while all are kept")
