"""What a policy keeps of the past: played arms with their rewards, a bounded sample of rows."""

import math
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen import checks
from halfseen.errors import ArchiveError
from halfseen.linear.versions import Growing, Version
from halfseen.seeding import stream
from halfseen.state import ARMS, Array, Maybe, Value, Whole
from halfseen.values import LARGEST, FloatArray

LARGEST_GROWTH = 1e6


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

    __slots__ = ("_rows", "dim")

    def __init__(self, dim: int) -> None:
        self.dim = dim
        nothing = np.zeros((0, dim)), np.zeros(0), np.zeros(0, dtype=np.int64)
        self._rows = Growing(nothing)

    def __len__(self) -> int:
        return len(self._rows)

    def fork(self) -> "Played":
        """Return an independent copy."""
        fork = object.__new__(Played)
        fork.dim, fork._rows = self.dim, self._rows
        return fork

    def append(self, round: int, arm: FloatArray, reward: float) -> None:
        """Keep one played arm, NaN where hidden, shape (dim,)."""
        self._rows = self._rows.plus((arm, reward, round))

    @property
    def columns(self) -> Columns:
        """What is kept, in the order in which rewards came."""
        return Columns(*self._rows.columns)

    @columns.setter
    def columns(self, columns: Columns) -> None:
        self._rows = Growing(columns)

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
        "_draws", "_kept", "_latest", "_next",
        "dim", "max_rows", "n_arms", "recent", "seed",
    )  # fmt: skip

    def __init__(self, dim: int, *, max_rows: int, seed: int = 0, recent: bool = False) -> None:
        self.dim = checks.integer("dim", dim, 1)
        self.max_rows = checks.integer("max_rows", max_rows, 1)
        self.seed = checks.integer("seed", seed, 0)
        self.recent = recent
        self.n_arms = 0
        # The kept rows; from the first that is replaced on also their numbers, counted from 0. The
        # system allocates this memory only when it is written to.
        self._kept = Version(np.empty((self.max_rows, self.dim)))
        # No row from the latest ones up to this number replaces a kept one.
        self._next = self.max_rows
        # The latest rows and the number of the first. They wait until the next call, which shows
        # that this fork goes on.
        self._latest: tuple[int, FloatArray] | None = None
        self._draws: _Draws | None = None

    def fork(self) -> "Reservoir":
        """Return an independent copy."""
        fork = object.__new__(Reservoir)
        fork.dim, fork.max_rows, fork.seed = self.dim, self.max_rows, self.seed
        fork.recent, fork.n_arms, fork._latest = self.recent, self.n_arms, self._latest
        fork._kept, fork._next, fork._draws = self._kept, self._next, self._draws
        return fork

    @property
    def rows(self) -> FloatArray:
        """The kept rows, shape (n, dim), in an array that changes with the next `add`."""
        self._place_latest()
        return self._kept.columns[0][: self.n_arms]

    @rows.setter
    def rows(self, rows: FloatArray) -> None:
        if len(rows) != min(self.n_arms, self.max_rows):
            raise ArchiveError(f"{self.n_arms} arms cannot leave a sample of {len(rows)}")
        self._kept = self._kept.written(slice(len(rows)), (rows,), is_new=True)

    def add(self, rows: FloatArray) -> None:
        """Add rows, shape (n, dim), in order; the array must not be changed afterwards."""
        self._place_latest()
        end = self.n_arms + len(rows)
        if end <= self.max_rows or end > self._next:
            self._latest = self.n_arms, rows
        self.n_arms = end

    def _place_latest(self) -> None:
        """Keep the latest rows, which may replace others; harmless if repeated."""
        if self._latest is None:
            return
        first, rows = cause = self._latest
        end = first + len(rows)
        if end <= self.max_rows:
            new = slice(first, end)
            self._kept = self._kept.written(new, (rows,), cause=cause, is_new=True)
            self._latest = None
            return
        if len(self._kept.columns) == 1:
            self._number(np.arange(self.max_rows))
        for block in range(first // _DRAWS, end // _DRAWS + 1):
            _, kept, places = self._drawn(block)
            start, stop = kept.searchsorted([first, end])
            numbers = kept[start:stop]  # for equal places the last row wins
            values = rows[numbers - end], numbers
            self._kept = self._kept.written(places[start:stop], values, cause=cause)
        self._next = int(kept[stop]) if stop < len(kept) else (block + 1) * _DRAWS
        self._latest = None

    def _drawn(self, block: int) -> _Draws:
        """Return the draws of a block, which many slates share."""
        if self._draws is None or self._draws.block != block:
            self._draws = _Draws.of(self.seed, block, self.max_rows, self.recent)
        return self._draws

    @property
    def numbers(self) -> NDArray[np.int64]:
        """Positions of the kept rows among all rows, counted from 0, shape (n,)."""
        self._place_latest()
        numbers = self._kept.columns[1:]
        return numbers[0] if numbers else np.arange(len(self.rows))

    def _number(self, numbers: NDArray[np.int64]) -> None:
        """Continue with the numbers of the kept rows, in memory of its own."""
        self._kept = Version(self._kept.columns[0].copy(), numbers)

    @property
    def _numbers(self) -> NDArray[np.int64] | None:
        """For files: None while all rows are kept."""
        return self._kept.columns[1] if len(self._kept.columns) > 1 else None

    @_numbers.setter
    def _numbers(self, numbers: NDArray[np.int64] | None) -> None:
        if numbers is not None:
            if self.n_arms <= self.max_rows:
                raise ArchiveError("numbers must be None while all rows are kept")
            self._number(numbers)

    def widened(self, rows: FloatArray, max_rows: int) -> "Reservoir":
        """Return the reservoir with more features: its rows (n, new dim), at most `max_rows`."""
        wider = Reservoir(rows.shape[1], max_rows=max_rows, seed=self.seed, recent=self.recent)
        numbers = self.numbers
        if len(rows) > max_rows:
            random = stream(self.seed, "reservoir", "smaller", str(self.n_arms))
            kept = np.sort(random.choice(len(rows), max_rows, replace=False))
            rows, numbers = rows[kept], numbers[kept]
        wider._kept = wider._kept.written(slice(len(rows)), (rows,), is_new=True)
        if self.n_arms > max_rows:
            wider._number(numbers.copy())
        wider.n_arms = self.n_arms
        return wider

    def after_loading(self) -> None:
        """Raise ArchiveError unless saved numbers can be those of the kept rows."""
        if self.n_arms and self.numbers.max() >= self.n_arms:
            raise ArchiveError("numbers must be those of kept rows")
