"""What is known of offered arms, or of contexts: their factor model, masks, limits and items.

The factor model is x = μ + Wz + ε (`halfseen.factors.model`), fitted to the different rows offered
so far. With few rows it is fitted anew in every epoch, later when the rounds have grown by half.
"""

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.factors.model import (
    FEW_ROWS,
    SEARCH_ROWS,
    Factors,
    HalfSeenRows,
    choose_rank,
    fit_rank,
)
from halfseen.factors.rows import NO_ITEM, evenly_spaced, item_keys, row_keys, widened_rows
from halfseen.latent.groups import FILLED, LATENT, MASK, ROW_GROUPS
from halfseen.latent.plausible import limits_of, no_limits, plausible
from halfseen.latent.settings import Settings
from halfseen.linear.covariance import LARGEST_DENSE_DIM
from halfseen.linear.history import Reservoir
from halfseen.state import Part
from halfseen.values import FloatArray

MOST_AMBIENT_FEATURES = 600
"""With more features, filled rows and masks are left out of the reward model: its time per round
grows with the square of their number. Without a latent dimension filled rows stay."""

# Items come back if more than this share of the offered ones had been offered before.
_LEAST_RECURRENCE = 0.1
# From `FEW_ROWS` on, factors are fitted again after this share of the rounds at the last fit.
_REFIT_SHARE = 0.5
# Work of a search for the rank: about 40 milliseconds on one core.
_SEARCH_WORK = 4e8


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


class RowModel(NamedTuple):
    """What is frozen of arms, or of contexts, during an epoch.

    Attributes
    ----------
    factors : Factors
    shares : ndarray, shape (dim,)
        Share of the different rows that show each feature.
    n_rows, fitted_round : int
        Different rows, and the round, when the factor model was fitted.
    n_items : int
        Number of different items; 0 if they do not come back.
    recurrence : float
        Share of the offered rows whose item had been offered before.
    limits : ndarray, shape (2, dim)
        The smallest and largest plausible value of each feature.
    """

    factors: Factors
    shares: FloatArray
    n_rows: int
    fitted_round: int
    n_items: int
    recurrence: float
    limits: FloatArray

    @classmethod
    def unknown(cls, dim: int) -> "RowModel":
        """Return the model of rows that have never been offered: every feature is ignored."""
        return cls(Factors.unknown(dim), np.zeros(dim), 0, 0, 0, 1.0, no_limits(dim))

    @classmethod
    def fitted(
        cls,
        settings: Settings,
        offered: OfferedRows,
        round: int,
        last: "RowModel",
    ) -> "RowModel":
        """Return the model of offered rows; the last one, if it is not due to be fitted again."""
        if not offered.table.size or not last._is_due(settings, offered, round):
            return last
        n_items = _n_items(offered)
        recurrence = 1.0 - n_items / max(1.0, offered.n_offered)
        returning = int(n_items + 0.5) if recurrence > _LEAST_RECURRENCE else 0
        table, weights = _distinct_rows(settings, offered)
        limits = limits_of(table)
        table = plausible(table, limits)
        factors = _fitted_factors(settings, table, weights, last)
        # Without weights, the share of a feature that is never hidden is exactly 1.
        shares = (table == table).sum(axis=0) / max(1, len(table))
        return cls(factors, shares, len(table), round, returning, recurrence, limits)

    def _is_due(self, settings: Settings, offered: OfferedRows, round: int) -> bool:
        """Return whether to fit again: in every epoch at first, with many rows less often."""
        if self.n_rows < FEW_ROWS or self.factors.dim != offered.table.shape[1]:
            return True
        pause = min(_REFIT_SHARE * self.fitted_round, settings.longest_epoch)
        return round >= self.fitted_round + pause

    def informative_groups(self, allowed: tuple[str, ...]) -> list[str]:
        """Return the allowed groups of columns that are not redundant."""
        factors, shares = self.factors, self.shares
        n_varying = int(np.count_nonzero(factors.scale))
        few = n_varying <= MOST_AMBIENT_FEATURES
        # A model that explains all makes filled rows a function of the latent group.
        filled = few and not factors.explains_all
        if factors.rank == 0:
            filled = n_varying > 0 and factors.dim <= LARGEST_DENSE_DIM
        mask = few and bool(((shares > 0.0) & (shares < 1.0)).any())
        found = {LATENT: factors.rank > 0, FILLED: filled, MASK: mask}
        return [group for group in ROW_GROUPS if group in allowed and found[group]]


def _distinct_rows(settings: Settings, offered: OfferedRows) -> tuple[FloatArray, FloatArray]:
    """Return the different rows, the latest of equal ones, and how much each counts."""
    table, ages = offered.table, offered.ages
    latest = np.argsort(ages, kind="stable")
    _, first = np.unique(row_keys(table)[latest], return_index=True)
    kept = np.sort(latest[first])
    return np.ascontiguousarray(table[kept]), settings.decay(ages[kept])


def _n_items(offered: OfferedRows) -> float:
    """Return the number of different items among all offered rows, of which some are in a sample.

    The sample has d items, f₁ of them once and f₂ twice. If it is a share q of what was offered,
    there are about d + (1 − q)·f₁(f₁ − 1)/(2(f₂ + 1)) (Chao, Nonparametric estimation of the number
    of classes in a population, 1984).

    >>> items = np.array([7, 8, 9, 9])
    >>> _n_items(OfferedRows(np.zeros((4, 1)), items, np.zeros(4), n_offered=4.0))
    3.0
    >>> _n_items(OfferedRows(np.zeros((4, 1)), items, np.zeros(4), n_offered=8.0))
    3.25
    """
    n_offered = offered.n_offered
    _, counts = np.unique(item_keys(offered.table, offered.items), return_counts=True)
    unseen = 1.0 - counts.sum() / max(1.0, n_offered)
    once, twice = np.count_nonzero(counts == 1), np.count_nonzero(counts == 2)
    return float(min(n_offered, len(counts) + unseen * once * (once - 1) / (2 * (twice + 1))))


def _fitted_factors(
    settings: Settings, table: FloatArray, weights: FloatArray, last: RowModel
) -> Factors:
    """Return the factor model of different rows; the evidence chooses a rank that is not given."""
    some = evenly_spaced(len(table), SEARCH_ROWS)
    rows = HalfSeenRows(table[some], weights[some], through_origin=settings.through_origin)
    if rows.n_entries == 0:
        return rows.empty_model()
    known = last.factors.widened(table.shape[1])
    if settings.rank is not None:
        return fit_rank(rows, settings.rank, known).model
    return choose_rank(rows, known, most_work=_SEARCH_WORK).model
