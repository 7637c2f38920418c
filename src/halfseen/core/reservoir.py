"""A uniform sample of bounded size from rows that keep coming."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen import archive, checks
from halfseen.seeding import stream
from halfseen.values import LARGEST, FloatArray

# Rows whose places are drawn at once: a generator per slate would cost more than the slate.
_DRAWS = 4096


class Reservoir:
    """At most `max_rows` of all rows so far, each subset of that size equally likely.

    The n-th row replaces a kept one with probability max_rows / n. Where it goes is a function of
    the seed and of n, so that nothing moves until `add`. While all fit, all are kept, in order.

    Parameters
    ----------
    dim, max_rows : int
    seed : int

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

    __slots__ = ("_block", "_draws", "_numbers", "dim", "max_rows", "n_arms", "seed")

    def __init__(self, dim: int, *, max_rows: int, seed: int = 0) -> None:
        self.dim = checks.integer("dim", dim, 1)
        self.max_rows = checks.integer("max_rows", max_rows, 1)
        self.seed = checks.integer("seed", seed, 0)
        self.n_arms = 0
        # Memory that nothing was written to is not taken yet.
        self._block = np.empty((self.max_rows, self.dim))
        # Which row, counted from 0, each kept one is; None while they are all.
        self._numbers: NDArray[np.int64] | None = None
        self._draws: tuple[int, NDArray[np.int64]] | None = None

    @property
    def rows(self) -> FloatArray:
        """The kept rows, shape (n, dim), in an array that changes with the next `add`."""
        return self._block[: self.n_arms]

    def reserve(self, rows: FloatArray) -> NDArray[np.int64]:
        """Return where the next rows (n, dim) go, shape (n,); from `max_rows` on: nowhere.

        Nothing changes before `add`.
        """
        first, stop, parts = self.n_arms, self.n_arms + len(rows), []
        if stop <= self.max_rows:
            return np.arange(first, stop)
        while first < stop:
            number, offset = divmod(first, _DRAWS)
            if self._draws is None or self._draws[0] != number:
                self._draws = number, self._drawn(number)
            parts.append(self._draws[1][offset : offset + stop - first])
            first += len(parts[-1])
        return np.concatenate(parts)

    def _drawn(self, number: int) -> NDArray[np.int64]:
        order = np.arange(number * _DRAWS, (number + 1) * _DRAWS)
        random = stream(self.seed, "reservoir", str(number))
        return np.where(order < self.max_rows, order, random.integers(0, order + 1))

    def add(self, rows: FloatArray, reserved: NDArray[np.int64] | None = None) -> None:
        """Offer rows, shape (n, dim), in their order; `reserve` has said where they go."""
        places = self.reserve(rows) if reserved is None else reserved
        end = self.n_arms + len(rows)
        if end <= self.max_rows:
            self._block[self.n_arms : end] = rows
        else:
            kept = np.flatnonzero(places < self.max_rows)
            if len(kept):
                self._block[places[kept]] = rows[kept]  # of equal places the last row stays
                if self._numbers is None:
                    self._numbers = np.arange(self.max_rows)
                self._numbers[places[kept]] = self.n_arms + kept
        self.n_arms = end

    @property
    def numbers(self) -> NDArray[np.int64]:
        """Which of all rows, counted from 0, the kept ones are, shape (n,)."""
        return np.arange(len(self.rows)) if self._numbers is None else self._numbers

    def sample(self, max_rows: int) -> FloatArray:
        """Return at most so many of the kept rows, a uniform sample that depends on `n_arms`."""
        return self.rows[self._sampled(max_rows)]

    def numbered_sample(self, max_rows: int) -> tuple[FloatArray, NDArray[np.int64]]:
        """Return what `sample` does, and which of all rows these are."""
        sampled = self._sampled(max_rows)
        return self.rows[sampled], self.numbers[sampled]

    def _sampled(self, max_rows: int) -> slice | NDArray[np.int64]:
        n_kept = len(self.rows)
        if n_kept <= max_rows:
            return slice(None)
        random = stream(self.seed, "reservoir", "sample", str(self.n_arms))
        return np.sort(random.choice(n_kept, max_rows, replace=False))

    def state(self) -> dict[str, Any]:
        """Return the whole state of this reservoir."""
        return {"n_arms": self.n_arms, "rows": self.rows, "numbers": self._numbers}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from what `state` returned."""
        n_arms = checks.integer("n_arms", state["n_arms"], 0, checks.LARGEST_HORIZON)
        n_rows = min(n_arms, self.max_rows)
        self._block[:n_rows] = archive.array(
            state, "rows", (n_rows, self.dim), low=-LARGEST, high=LARGEST, hidden=True
        )
        if state["numbers"] is not None:
            self._numbers = archive.array(
                state, "numbers", (n_rows,), np.int64, low=0, high=n_arms - 1
            )
        self.n_arms = n_arms
