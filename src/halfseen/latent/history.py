"""Played arms with their rewards, in bounded memory.

As many rewards as fit are kept one by one, as columns; the others are summed up in what suffices
for the regression (`Statistics`):

    Σ(φ, r)(φ, r)'   and, for each item,   Σc(c, φ, r)'.

When a new epoch has other features, these are projected (`projection`).
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.latent.drift import Path
from halfseen.latent.features import Features
from halfseen.latent.projection import projected
from halfseen.latent.settings import Settings
from halfseen.latent.statistics import Statistics, sums_by_item
from halfseen.linear.versions import Growing
from halfseen.values import FloatArray
from halfseen.values.rows import Keys, item_keys, row_keys, widened_rows

DEFAULT_MEMORY = 128_000_000
"""Bytes for offered and played arms."""

MOST_ARMS = 5000
"""Largest number of offered arms, and of played arms with their contexts, that are kept one by one:
more add little and cost time."""

_FEWEST_ARMS = 16
# Arms on which the projection onto the features of a new model is fitted.
_PROJECTED_ARMS = 2000


def arms_kept(dim: int, memory_bytes: int) -> int:
    """Return how many offered arms, and how many played ones, are kept in some memory.

    A third of it is for offered arms, a third for played ones, and a third for those that were
    played since the others were summed up.
    """
    return min(MOST_ARMS, max(_FEWEST_ARMS, memory_bytes // (3 * 8 * dim)))


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
    squares : ndarray, shape (n,)
        Sum of squared differences between several rewards and their mean.
    levels : ndarray, shape (n,)
        What was subtracted from the reward: the level of all rewards, if it moves.
    """

    rounds: NDArray[np.int64]
    arms: FloatArray
    contexts: FloatArray
    items: NDArray[np.int64]
    rewards: FloatArray
    counts: FloatArray
    squares: FloatArray
    levels: FloatArray

    def select(self, indices: Any) -> "Observations":
        """Return some of the rows; a slice gives views."""
        columns: Any = (np.ascontiguousarray(column[indices]) for column in self)
        return Observations(*columns)

    @property
    def keys(self) -> Keys:
        """Which item each arm is, shape (n,)."""
        return item_keys(self.arms, self.items)

    def statistics(self, phi: FloatArray, c: FloatArray, *, shift: float) -> Statistics:
        """Return the statistics of the rewards, given φ and c of the rows."""
        rows = np.column_stack([phi, self.rewards - shift])
        root = np.sqrt(self.counts)[:, None] * rows
        keys, sums = np.empty(0, dtype=np.uint64), np.empty((0, 0, rows.shape[1]))
        if c.shape[1]:
            weighted = self.counts[:, None] * c
            keys, sums = sums_by_item(self.keys, weighted, np.column_stack([c, rows]))
        products = root.T @ root
        products[-1, -1] += self.squares.sum()
        found = Statistics(products, keys, sums, shift, float(self.counts.sum()))
        return found.with_most_played()

    def merged(self, first_pending: float = math.inf) -> "Observations":
        """Return one row for equal arms with equal contexts.

        Rows of rounds from `first_pending` on stay single. Rows are in the order of rounds: that of
        keys depends on the arms' units, and sums in another order are rounded differently.
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
        usual = rows.rewards[first[order]]  # so that the mean of equal rewards is exact
        means = usual + np.bincount(indices, rows.counts * (rows.rewards - usual[indices])) / counts
        around_mean = rows.squares + rows.counts * (rows.rewards - means[indices]) ** 2
        squares = np.bincount(indices, around_mean).astype(np.float64)
        return rows.select(first[order])._replace(rewards=means, counts=counts, squares=squares)


class History:
    """Played arms with their rewards: as many as fit, and a summary of the others.

    Rewards of equal arms are merged into their number, mean and sum of squares around it, without
    their rounds. If there are still too many arms, those played least, and of these the oldest,
    enter the summary.

    Attributes
    ----------
    rows : Observations
        Views that must not be changed.
    summary : Statistics or None
        Of the other rewards, in the features of the present epoch.
    """

    __slots__ = ("_rows", "summary")

    def __init__(self, rows: Observations, summary: Statistics | None = None) -> None:
        self._rows, self.summary = Growing(rows), summary

    @classmethod
    def empty(cls, dim: int, context_dim: int) -> "History":
        """Return a history without rewards."""
        whole, real = np.zeros(0, dtype=np.int64), np.zeros(0)
        arms, contexts = np.zeros((0, dim)), np.zeros((0, context_dim))
        return cls(Observations(whole, arms, contexts, whole, real, real, real, real))

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def rows(self) -> Observations:
        """The rows that are kept: arms that were merged, and later rewards."""
        return Observations(*self._rows.columns)

    def plus(
        self,
        round: int,
        arm: FloatArray,
        context: FloatArray,
        item: int,
        reward: float,
        level: float = 0.0,
    ) -> "History":
        """Return the history with one more reward, from which the level is subtracted."""
        more = object.__new__(History)
        row = (round, arm, context, item, reward - level, 1.0, 0.0, level)
        more._rows, more.summary = self._rows.plus(row), self.summary
        return more

    @property
    def last_level(self) -> float:
        """The level that was subtracted from the last row."""
        return float(self.rows.levels[-1]) if len(self) else 0.0

    def without_drift(self, path: Path, single: NDArray[np.int64]) -> "History":
        """Return the history with the level of a path subtracted from single rewards."""
        rows = self.rows
        rewards, levels = rows.rewards.copy(), rows.levels.copy()
        levels[single] = path.at(rows.rounds[single])
        rewards[single] += rows.levels[single] - levels[single]
        return History(rows._replace(rewards=rewards, levels=levels), self.summary)

    def since(self, round: float) -> "History":
        """Return the rewards from a round on."""
        rows = self.rows
        late = rows.rounds >= round
        return self if late.all() else History(rows.select(late), self.summary)

    def bounded(
        self, features: Features, settings: Settings, first_pending: float = math.inf
    ) -> "History":
        """Return a history of at most `settings.n_kept` rows, given the features of the summary.

        Rewards from the first pending round on are not merged: merged ones have no round, and what
        is left would not show how the level moves. With a half-life, for which the round of every
        reward matters, the history has the latest rows.
        """
        most = settings.n_kept
        if settings.half_life is not None:
            return History(self.rows.select(slice(-most, None)))
        rows = self.rows.merged(first_pending)
        n_extra = len(rows.rounds) - most
        if n_extra <= 0:
            return History(rows, self.summary)
        order = np.lexsort((rows.rounds, rows.counts))
        extra, kept = rows.select(order[:n_extra]), np.sort(order[n_extra:])
        mean = float(extra.counts @ extra.rewards / extra.counts.sum())
        phi, c = features.design(extra.arms, extra.contexts)
        summary = extra.statistics(phi, c, shift=mean if features.intercept else 0.0)
        if self.summary is not None:
            summary = self.summary.plus(summary)
        return History(rows.select(kept), summary)

    def in_new_features(self, old: Features, new: Features) -> "History":
        """Return the history with its summary in the features of a new epoch."""
        if self.summary is None or new is old:
            return self
        some = self.rows.select(slice(-_PROJECTED_ARMS, None))
        return History(self.rows, projected(self.summary, old, new, some.arms, some.contexts))

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
        return History(rows._replace(arms=arms, contexts=contexts), self.summary)
