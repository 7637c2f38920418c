"""What is known of offered arms, or of contexts: their factor model, masks, limits and items.

The factor model is x = μ + Wz + ε (`halfseen.factors.model`), fitted to the different rows offered
so far. With few rows it is fitted anew in every epoch, later when the rounds have grown by half.
"""

from typing import NamedTuple

import numpy as np

from halfseen.factors.model import (
    FEW_ROWS,
    SEARCH_ROWS,
    Factors,
    HalfSeenRows,
    choose_rank,
    fit_rank,
)
from halfseen.latent.groups import FILLED, LATENT, MASK, ROW_GROUPS
from halfseen.latent.offered import OfferedRows
from halfseen.latent.plausible import limits_of, no_limits, plausible
from halfseen.latent.settings import Settings
from halfseen.linear.covariance import LARGEST_DENSE_DIM
from halfseen.values import FloatArray
from halfseen.values.rows import evenly_spaced, row_keys

MOST_AMBIENT_FEATURES = 600
"""With more features, filled rows and masks are left out of the reward model: its time per round
grows with the square of their number. Without a latent dimension filled rows stay."""

# Items come back if more than this share of the offered ones had been offered before.
_LEAST_RECURRENCE = 0.1
# From `FEW_ROWS` on, factors are fitted again after this share of the rounds at the last fit.
_REFIT_SHARE = 0.5
# Work of a search for the rank: about 40 milliseconds on one core.
_SEARCH_WORK = 4e8


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
        n_items = offered.n_items()
        recurrence = 1.0 - n_items / max(1.0, offered.n_offered)
        returning = int(n_items + 0.5) if recurrence > _LEAST_RECURRENCE else 0
        table, weights = _distinct_rows(settings, offered)
        limits = limits_of(table)
        table = plausible(table, limits)
        factors = _factors(settings, table, weights, last)
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


def _factors(settings: Settings, table: FloatArray, weights: FloatArray, last: RowModel) -> Factors:
    """Return the factor model of different rows; the evidence chooses a rank that is not given."""
    some = evenly_spaced(len(table), SEARCH_ROWS)
    rows = HalfSeenRows(table[some], weights[some], through_origin=settings.through_origin)
    if rows.n_entries == 0:
        return rows.empty_model()
    known = last.factors.widened(table.shape[1])
    if settings.rank is not None:
        return fit_rank(rows, settings.rank, known).model
    return choose_rank(rows, known, most_work=_SEARCH_WORK).model
