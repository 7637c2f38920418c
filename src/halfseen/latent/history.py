"""Offered rows and rewards in bounded memory.

Of all offered rows a uniform sample is kept. Of rewards as many as fit are kept one by one, as
columns; the others are summed up in what suffices for the regression (`Statistics`):

    Σ(φ, r)(φ, r)'   and, for each item,   Σc(c, φ, r)'.

When a new epoch has other features, these are projected (`projection`).
"""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.factors.rows import NO_ITEM, Keys, item_keys, row_keys, widened_rows
from halfseen.latent.drift import Path
from halfseen.latent.features import Features
from halfseen.latent.projection import in_new_features
from halfseen.latent.regression import Statistics, sums_by_item
from halfseen.linear.history import Reservoir
from halfseen.state import Part
from halfseen.values import FloatArray

DEFAULT_MEMORY = 128_000_000
"""Bytes for offered and played arms."""

MOST_ARMS = 5000
"""Largest number of offered arms, and of played arms with their contexts, that are kept one by one:
more add little and cost time."""

_FEWEST_ARMS = 16
_FIRST_SIZE = 64
# Arms on which the projection onto the features of a new model is fitted.
_PROJECTED_ARMS = 2000


def arms_kept(dim: int, memory_bytes: int) -> int:
    """Return how many offered arms, and how many played ones, are kept in some memory.

    A third of it is for offered arms, a third for played ones, and a third for those that were
    played since the others were summed up.
    """
    return min(MOST_ARMS, max(_FEWEST_ARMS, memory_bytes // (3 * 8 * dim)))


class Sample:
    """A uniform sample of offered rows with their item ids.

    Parameters
    ----------
    dim, max_rows, seed : int
    recent : bool
        Whether old rows disappear with time.
    """

    STATE: ClassVar = {"_rows": Part()}

    __slots__ = ("_rows",)

    def __init__(self, dim: int, *, max_rows: int, seed: int, recent: bool) -> None:
        # The first column has the item ids.
        self._rows = Reservoir(1 + dim, max_rows=max_rows, seed=seed, recent=recent)

    def plus(self, table: FloatArray, items: NDArray[np.int64] | None) -> "Sample":
        """Return the sample with more rows (n, dim); this one must not be changed any more."""
        rows = np.empty((len(table), self._rows.dim))
        rows[:, 0] = NO_ITEM if items is None else items
        rows[:, 1:] = table
        more = object.__new__(Sample)
        more._rows = self._rows.fork()
        more._rows.add(rows)
        return more

    @property
    def max_rows(self) -> int:
        """Most rows that are kept."""
        return self._rows.max_rows

    @property
    def n_offered(self) -> int:
        """Rows so far, kept or not."""
        return self._rows.n_arms

    @property
    def table(self) -> FloatArray:
        """The kept rows, shape (n, dim), as a new array."""
        return np.array(self._rows.rows[:, 1:], order="C")

    @property
    def items(self) -> NDArray[np.int64]:
        """The item ids of the kept rows, shape (n,)."""
        return self._rows.rows[:, 0].astype(np.int64)

    def ages(self, n_rounds: int) -> FloatArray:
        """Return the ages of the kept rows in rounds, as if rows had come at a constant rate."""
        n_offered = self._rows.n_arms
        later = n_offered - 1 - self._rows.numbers.astype(np.float64)
        return later * (n_rounds / max(1, n_offered))

    def widened(self, dim: int, first_levels: Mapping[int, int], max_rows: int) -> "Sample":
        """Return the sample with more features, and at most `max_rows` rows."""
        wider = object.__new__(Sample)
        known = widened_rows(self.table, dim, first_levels)
        wider._rows = self._rows.widened(np.column_stack([self.items, known]), max_rows)
        return wider


class Observations(NamedTuple):
    """Played arms and their rewards, as columns.

    Attributes
    ----------
    rounds : ndarray of int, shape (n,)
    arms : ndarray, shape (n, dim)
        NaN where hidden.
    contexts : ndarray, shape (n, context_dim)
        NaN where hidden.
    items : ndarray of int, shape (n,)
        `NO_ITEM` where there is none.
    rewards : ndarray, shape (n,)
        The reward, or the mean of several.
    counts : ndarray, shape (n,)
        How many, or the sum of their weights.
    levels : ndarray, shape (n,)
        What was subtracted from the reward: the level of all rewards, if it moves.
    """

    rounds: NDArray[np.int64]
    arms: FloatArray
    contexts: FloatArray
    items: NDArray[np.int64]
    rewards: FloatArray
    counts: FloatArray
    levels: FloatArray

    def select(self, indices: Any) -> "Observations":
        """Return some of the rows; the first ones as views."""
        columns: Any = (np.ascontiguousarray(column[indices]) for column in self)
        return Observations(*columns)

    @property
    def keys(self) -> Keys:
        """Which item each arm is, shape (n,)."""
        return item_keys(self.arms, self.items)

    def statistics(
        self, phi: FloatArray, c: FloatArray, *, shift: float, pure_error: float = 0.0
    ) -> Statistics:
        """Return the statistics of the rewards, given φ and c of the rows."""
        rows = np.column_stack([phi, self.rewards - shift])
        root = np.sqrt(self.counts)[:, None] * rows
        keys, sums = np.empty(0, dtype=np.uint64), np.empty((0, 0, rows.shape[1]))
        if c.shape[1]:
            weighted = self.counts[:, None] * c
            keys, sums = sums_by_item(self.keys, weighted, np.column_stack([c, rows]))
        n_rewards = float(self.counts.sum())
        found = Statistics(root.T @ root, keys, sums, shift, n_rewards, pure_error**2)
        return found.with_most_played()

    def merged(self, first_pending: float = math.inf) -> tuple["Observations", float]:
        """Return one row for equal arms, and the root of the sum of squares around their means.

        Rows of rounds from `first_pending` on stay single.
        In the order of rounds: that of keys depends on the arms' units, and sums in another order
        are rounded differently.
        """
        rows = self
        if (self.rounds[1:] < self.rounds[:-1]).any():  # rewards came late
            rows = self.select(np.argsort(self.rounds, kind="stable"))
        single = np.where(rows.rounds < first_pending, 0, rows.rounds)
        keys = row_keys(np.column_stack([single, rows.items, rows.arms, rows.contexts]))
        _, first, numbers = np.unique(keys, return_index=True, return_inverse=True)
        order = np.argsort(first)
        indices = np.argsort(order)[numbers]
        counts = np.bincount(indices, rows.counts).astype(np.float64)
        means = np.bincount(indices, rows.counts * rows.rewards) / counts
        residuals = np.sqrt(rows.counts) * (rows.rewards - means[indices])
        size = float(np.abs(residuals).max(initial=0.0)) or 1.0  # tiny squares would underflow
        pure_error = size * float(np.linalg.norm(residuals / size))
        different = rows.select(first[order])
        return different._replace(rewards=means, counts=counts), pure_error


class History:
    """Played arms with their rewards: as many as fit, and a summary of the others.

    Rewards of equal arms are merged into their number and mean, without their rounds. If there are
    still too many arms, those played least, and of these the oldest, enter the summary.

    Attributes
    ----------
    rows : Observations
        Views that must not be changed.
    pure_error : float
        Root of the sum of squared differences between merged rewards and their means.
    summary : Statistics or None
        Of the other rewards, in the features of the present epoch.
    """

    __slots__ = ("_memory", "_n", "pure_error", "summary")

    def __init__(
        self, rows: Observations, pure_error: float = 0.0, summary: Statistics | None = None
    ) -> None:
        self._memory, self._n = rows, len(rows.rounds)
        self.pure_error, self.summary = pure_error, summary

    @classmethod
    def empty(cls, dim: int, context_dim: int) -> "History":
        """Return a history without rewards."""
        return cls(_allocated(0, dim, context_dim))

    def __len__(self) -> int:
        return self._n

    @property
    def rows(self) -> Observations:
        """The rows that are kept: arms that were merged, and later rewards."""
        return self._memory.select(slice(self._n))

    def _with(self, **changes: Any) -> "History":
        kept: dict[str, Any] = {
            "rows": self.rows,
            "pure_error": self.pure_error,
            "summary": self.summary,
        }
        return History(**(kept | changes))

    def plus(
        self,
        round: int,
        arm: FloatArray,
        context: FloatArray,
        item: int,
        reward: float,
        level: float = 0.0,
    ) -> "History":
        """Return the history with one more reward; this one must not be changed any more.

        The level is subtracted from the reward.
        """
        n, memory = self._n, self._memory
        if n == len(memory.rounds):
            memory = _allocated(
                max(_FIRST_SIZE, 2 * n), memory.arms.shape[1], memory.contexts.shape[1]
            )
            for new, old in zip(memory, self._memory, strict=True):
                new[:n] = old
        values: tuple[Any, ...] = (round, arm, context, item, reward - level, 1.0, level)
        for column, value in zip(memory, values, strict=True):
            column[n] = value
        more = History(memory, self.pure_error, self.summary)
        more._n = n + 1
        return more

    @property
    def last_reward(self) -> float | None:
        """The reward that came last, with its level; None if there is none."""
        rows, last = self._memory, self._n - 1
        return float(rows.rewards[last] + rows.levels[last]) if self._n else None

    @property
    def last_level(self) -> float:
        """The level that was subtracted from the reward that came last."""
        return float(self._memory.levels[self._n - 1]) if self._n else 0.0

    def without_drift(self, path: Path, single: NDArray[np.int64]) -> "History":
        """Return the history with the level of a path subtracted from single rewards."""
        rows = self.rows
        rewards, levels = rows.rewards.copy(), rows.levels.copy()
        levels[single] = path.at(rows.rounds[single])
        rewards[single] += rows.levels[single] - levels[single]
        return self._with(rows=rows._replace(rewards=rewards, levels=levels))

    def since(self, round: float) -> "History":
        """Return the rewards from a round on."""
        rows = self.rows
        late = rows.rounds >= round
        return self if late.all() else self._with(rows=rows.select(late))

    def latest(self, most: int) -> "History":
        """Return the latest rewards."""
        return self if len(self) <= most else self._with(rows=self.rows.select(slice(-most, None)))

    def compacted(
        self, features: Features, most: int, first_pending: float = math.inf
    ) -> "History":
        """Return the same rewards with at most `most` rows, given the features of the summary.

        Rewards from the first pending round on are not merged: merged ones have no round, and what
        is left would not show how the level moves.
        """
        rows, pure_error = self.rows.merged(first_pending)
        history = self._with(rows=rows, pure_error=math.hypot(pure_error, self.pure_error))
        n_extra = len(history) - most
        if n_extra <= 0:
            return history
        order = np.lexsort((rows.rounds, rows.counts))
        extra, kept = rows.select(order[:n_extra]), np.sort(order[n_extra:])
        mean = float(extra.counts @ extra.rewards / extra.counts.sum())
        phi, c = features.design(extra.arms, extra.contexts)
        summary = extra.statistics(phi, c, shift=mean if features.intercept else 0.0)
        if history.summary is not None:
            summary = history.summary.plus(summary)
        return history._with(rows=rows.select(kept), summary=summary)

    def in_new_features(self, old: Features, new: Features) -> "History":
        """Return the history with its summary in the features of a new epoch."""
        if self.summary is None:
            return self
        rows = self.rows.select(slice(-_PROJECTED_ARMS, None))
        summary = in_new_features(self.summary, old, new, rows.arms, rows.contexts)
        # Without a summary, nobody knows which part of the pure error belongs to the rows.
        pure_error = 0.0 if summary is None else self.pure_error
        return self._with(summary=summary, pure_error=pure_error)

    def widened(
        self,
        dim: int,
        context_dim: int,
        first_levels: Mapping[int, int],
        context_first_levels: Mapping[int, int],
    ) -> "History":
        """Return the history with more features of arms and contexts."""
        rows = self.rows
        arms = widened_rows(rows.arms, dim, first_levels)
        contexts = widened_rows(rows.contexts, context_dim, context_first_levels)
        return self._with(rows=rows._replace(arms=arms, contexts=contexts))


def _allocated(n: int, dim: int, context_dim: int) -> Observations:
    return Observations(
        np.zeros(n, dtype=np.int64),
        np.zeros((n, dim)),
        np.zeros((n, context_dim)),
        np.zeros(n, dtype=np.int64),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
    )
