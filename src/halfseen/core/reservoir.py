"""A uniform sample of bounded size from rows that keep coming."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen import archive, checks
from halfseen.seeding import stream
from halfseen.values import FloatArray


class Reservoir:
    """At most `max_rows` of all rows so far, each subset of that size equally likely.

    The n-th row replaces a kept one with probability max_rows / n. Random numbers depend on the
    seed and the number of rows before, so that nothing moves until `add`.

    Parameters
    ----------
    dim, max_rows : int
    seed : int

    Examples
    --------
    >>> reservoir = Reservoir(1, max_rows=3)
    >>> for n in range(10):
    ...     reservoir.add(np.full((2, 1), n))
    >>> reservoir.n_seen, reservoir.rows.shape
    (20, (3, 1))
    """

    __slots__ = ("_kept", "dim", "max_rows", "n_seen", "seed")

    def __init__(self, dim: int, *, max_rows: int, seed: int = 0) -> None:
        self.dim = checks.integer("dim", dim, 1)
        self.max_rows = checks.integer("max_rows", max_rows, 1)
        self.seed = checks.integer("seed", seed, 0)
        self.n_seen = 0
        self._kept = np.empty((self.max_rows, self.dim))

    @property
    def rows(self) -> FloatArray:
        """A copy of the kept rows, shape (n, dim)."""
        return self._kept[: self.n_seen].copy()

    def draw(self, n_rows: int) -> NDArray[np.int64]:
        """Return where the next rows would go, shape (n_rows,); from `max_rows` on: nowhere."""
        order = np.arange(self.n_seen, self.n_seen + n_rows)
        if self.n_seen + n_rows <= self.max_rows:
            return order
        random = stream(self.seed, "reservoir", str(self.n_seen))
        return np.where(order < self.max_rows, order, random.integers(0, order + 1))

    def add(self, rows: FloatArray, places: NDArray[np.int64] | None = None) -> None:
        """Offer rows, shape (n, dim), in their order; `places` are what `draw` returned."""
        places = self.draw(len(rows)) if places is None else places
        for row in np.flatnonzero(places < self.max_rows):
            self._kept[places[row]] = rows[row]
        self.n_seen += len(rows)

    def state(self) -> dict[str, Any]:
        """Return everything that tells this reservoir from a fresh one."""
        return {"n_seen": self.n_seen, "rows": self.rows}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from what `state` returned."""
        n_seen = checks.integer("n_seen", state["n_seen"], 0)
        n_rows = min(n_seen, self.max_rows)
        self._kept[:n_rows] = archive.array(state, "rows", (n_rows, self.dim))
        self.n_seen = n_seen
