"""Rewards and shares of seen entries, lately and before."""

from typing import Any, NamedTuple

import numpy as np

from halfseen import archive, checks
from halfseen.values import FloatArray

BLOCK = 500
"""`lately` covers the latest one to two blocks of this many events."""


class Window(NamedTuple):
    """Sums of a vector: of all events before the last full block, of that block, and since.

    Attributes
    ----------
    sums : ndarray, shape (3, width)
    counts : ndarray, shape (3,)
        What the sums are divided by for a mean.
    n_events : int
        Events since the last full block.

    Examples
    --------
    >>> window = Window.empty().added([1.0], 1).added([0.0, 1.0], 1)
    >>> window.means(lately=True).tolist()
    [0.5, 0.5]
    """

    sums: FloatArray
    counts: FloatArray
    n_events: int

    @classmethod
    def empty(cls) -> "Window":
        """Return a window without events."""
        return cls(np.zeros((3, 0)), np.zeros(3), 0)

    def added(self, vector: Any, count: float) -> "Window":
        """Return the window with one more event."""
        vector = np.asarray(vector, dtype=np.float64)
        sums, counts = self.sums.copy(), self.counts.copy()
        if sums.shape[1] < len(vector):
            sums = np.pad(sums, ((0, 0), (0, len(vector) - sums.shape[1])))
        sums[2, : len(vector)] += vector
        counts[2] += count
        if self.n_events + 1 < BLOCK:
            return Window(sums, counts, self.n_events + 1)
        for each in (sums, counts):
            each[0] += each[1]
            each[1], each[2] = each[2].copy(), 0.0
        return Window(sums, counts, 0)

    def total(self, *, lately: bool) -> float:
        """Return the number lately, or before."""
        return float(self.counts[1:].sum() if lately else self.counts[0])

    def means(self, *, lately: bool) -> FloatArray:
        """Return the means lately, or before; NaN if there was nothing."""
        sums = self.sums[1:].sum(axis=0) if lately else self.sums[0]
        count = self.total(lately=lately)
        means: FloatArray = sums / count if count else np.full(len(sums), np.nan)
        return means

    def state(self) -> dict[str, Any]:
        """Return the window as plain values and arrays."""
        return {"sums": self.sums, "counts": self.counts, "n_events": self.n_events}

    @classmethod
    def restored(cls, state: dict[str, Any]) -> "Window":
        """Return the window that `state` described."""
        n_events = checks.integer("n_events", state["n_events"], 0, BLOCK - 1)
        sums, counts = archive.array(state, "sums", (3, None)), archive.array(state, "counts", (3,))
        return cls(sums, counts, n_events)
