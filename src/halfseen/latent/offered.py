"""Rows that were offered: a sample in bounded memory, and how many items they are."""

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.linear.history import Reservoir
from halfseen.state import Part
from halfseen.values import FloatArray
from halfseen.values.rows import NO_ITEM, item_keys, widened_rows


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
        """Return the sample with more rows (n, dim)."""
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


class OfferedRows(NamedTuple):
    """Arms, or contexts, offered before an epoch, as far as they still count.

    Attributes
    ----------
    table : ndarray, shape (n, dim)
        A sample of them, NaN where hidden.
    items : ndarray of int, shape (n,)
        Their item ids, `NO_ITEM` where there is none.
    ages : ndarray, shape (n,)
        In rounds.
    n_offered : float
        How many were offered, in the sample or not.
    """

    table: FloatArray
    items: NDArray[np.int64]
    ages: FloatArray
    n_offered: float

    @classmethod
    def of(cls, sample: Sample, n_rounds: int, oldest: float) -> "OfferedRows":
        """Return the rows of a sample after some rounds; those older than `oldest` are left out."""
        ages = sample.ages(n_rounds)
        recent = ages <= oldest
        n_offered = sample.n_offered * min(1.0, oldest / max(1, n_rounds))
        return cls(
            sample.table[recent],
            sample.items[recent],
            ages[recent],
            max(n_offered, float(np.count_nonzero(recent))),
        )

    def n_items(self) -> float:
        """Return the number of different items among all offered rows, of which these are a sample.

        These have d items, f₁ of them once and f₂ twice. If they are a share q of what was offered,
        there are about d + (1 − q)·f₁(f₁ − 1)/(2(f₂ + 1)) (Chao, Nonparametric estimation of the
        number of classes in a population, 1984).

        >>> items = np.array([7, 8, 9, 9])
        >>> OfferedRows(np.zeros((4, 1)), items, np.zeros(4), n_offered=4.0).n_items()
        3.0
        >>> OfferedRows(np.zeros((4, 1)), items, np.zeros(4), n_offered=8.0).n_items()
        3.25
        """
        _, counts = np.unique(item_keys(self.table, self.items), return_counts=True)
        unseen = 1.0 - counts.sum() / max(1.0, self.n_offered)
        once, twice = np.count_nonzero(counts == 1), np.count_nonzero(counts == 2)
        found = len(counts) + unseen * once * (once - 1) / (2 * (twice + 1))
        return float(min(self.n_offered, found))
