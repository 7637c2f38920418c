"""The latent model of one side of a round in `LatentUcb`: of arms, or of contexts."""

import math
from typing import Any, NamedTuple

import numpy as np

from halfseen import archive, checks
from halfseen.core.factor_rank import FEW_ARMS, Search
from halfseen.core.factors import Arms, Factors, fit_factors, row_keys
from halfseen.core.features import FILLED, GROUPS, LATENT, MASK, Features
from halfseen.core.offers import Layout
from halfseen.linear.covariance import LARGEST_DENSE_DIM
from halfseen.linear.history import Reservoir
from halfseen.policies.latent_params import LatentParams
from halfseen.values import FloatArray

MOST_AMBIENT_FEATURES = 300
"""With more features, filled rows and masks are left out of the reward model: its time per round
grows with the square of their number. Without a latent dimension filled rows stay."""

# Rows come back if fewer than this share of the offered ones are different.
_DIFFERENT = 0.9
# Rows on which to check whether the last model still explains everything.
_LOOK = 256
# The rank is chosen on this many rows, evenly spaced in time, and then fitted to all of them.
_SEARCH_ROWS = 2000
# The rank is chosen again when the number of these rows has grown by this factor, and after a pause
# of this many times the rounds so far.
_RANK_GROWTH = 2.0
_RANK_PAUSE = 3.0


class Offered(NamedTuple):
    """Arms, or contexts, offered before an epoch.

    Attributes
    ----------
    layout : Layout
        Of the rows: an arm may have the number of its item before it.
    rows : ndarray, shape (n, width)
        A sample of them, NaN where hidden.
    ages : ndarray, shape (n,)
        In rounds, as if rows had come, or been absorbed, at a constant rate.
    per_round : float
        Mean number of rows in a round.
    """

    layout: Layout
    rows: FloatArray
    ages: FloatArray
    per_round: float

    @classmethod
    def of(
        cls, layout: Layout, sample: Reservoir, n_rounds: int, per_round: float, *, copied: bool
    ) -> "Offered":
        """Return the rows of a sample after some rounds, in an array of their own if `copied`."""
        later = np.asarray(sample.n_arms - 1 - sample.numbers, dtype=np.float64)
        ages = later * (n_rounds / max(1, sample.n_arms))
        return cls(layout, sample.rows.copy() if copied else sample.rows, ages, per_round)


class Side(NamedTuple):
    """What is frozen of arms, or of contexts, during an epoch.

    Attributes
    ----------
    latent : Factors
    shares : ndarray, shape (dim,)
        Share of the offered rows that show each feature.
    n_arms : int
        Different rows to which the latent model was fitted.
    n_ranked, ranked_round : int
        The same, and the round, when its rank was last chosen.
    frequency : float
        If items come back, the share of all items that one round offers; otherwise 0.
    """

    latent: Factors
    shares: FloatArray
    n_arms: int
    n_ranked: int
    ranked_round: int
    frequency: float

    @classmethod
    def fitted(
        cls,
        policy: LatentParams,
        offered: Offered,
        round: int,
        last: "Side | None",
        rank: int | None = None,
    ) -> "Side":
        """Fit the latent model to offered rows; the evidence chooses a rank that is not given."""
        sample = _Sample.of(policy, offered)
        latent, is_ranked = _latent(policy, sample, round, last, rank)
        total = max(1e-300, sample.weights.sum())
        shares = sample.weights @ (sample.table == sample.table) / total
        n_arms = len(sample.table)
        ranked = (
            (n_arms, round) if is_ranked or last is None else (last.n_ranked, last.ranked_round)
        )
        return cls(latent, shares, n_arms, *ranked, sample.frequency)

    @classmethod
    def unknown(cls, dim: int) -> "Side":
        """Return what is known of rows that have never been offered."""
        latent = Arms(np.full((1, dim), np.nan)).empty_model()
        return cls(latent, np.zeros(dim), 0, 0, 0, 0.0)

    def widened(self, dim: int, levels: dict[int, int]) -> "Side":
        """Return the side with more features; new levels are seen where the first one is."""
        known = len(self.shares)
        shares = np.pad(self.shares, (0, dim - known))
        for level, first in levels.items():
            if level >= known:
                shares[level] = shares[first]
        return self._replace(latent=self.latent.widened(dim), shares=shares)

    def features(
        self, policy: LatentParams, levels: dict[int, int], groups: list[str] | None = None
    ) -> Features:
        """Return the features of the reward model, without scales; by default all groups."""
        latent, shares = self.latent, self.shares
        if groups is None:
            groups = [group for group in policy.groups if _has(group, latent, shares)]
        holes = np.setdiff1d(np.arange(latent.dim), list(levels))
        return Features(latent, shares, groups, holes=holes, intercept=not policy.through_origin)

    def state(self) -> dict[str, Any]:
        """Return everything as numbers and arrays."""
        return self._asdict() | {"latent": self.latent.state()}

    @classmethod
    def restored(cls, state: dict[str, Any], dim: int) -> "Side":
        """Return the side that `state` described."""
        most = checks.LARGEST_HORIZON
        return cls(
            Factors.restored(state["latent"], dim),
            archive.array(state, "shares", (dim,), low=0.0, high=1.0 + 1e-9),
            checks.integer("n_arms", state["n_arms"], 0, most),
            checks.integer("n_ranked", state["n_ranked"], 0, most),
            checks.integer("ranked_round", state["ranked_round"], 0, most),
            checks.real("frequency", state["frequency"], 0.0, 1.0),
        )


def restored_groups(given: Any) -> list[str]:
    """Return the names of saved groups after checking them."""
    return [checks.one_of("groups", group, GROUPS) for group in given]


class _Sample(NamedTuple):
    """Different rows among those offered so far.

    Attributes
    ----------
    table : ndarray, shape (n, dim)
    weights : ndarray, shape (n,)
        How much each row counts.
    frequency : float
        As in `Side`.
    """

    table: FloatArray
    weights: FloatArray
    frequency: float

    @classmethod
    def of(cls, policy: LatentParams, offered: Offered) -> "_Sample":
        """Return the rows that still count; those that come back count once."""
        recent = offered.ages <= policy.memory
        offer = offered.layout.unpacked(offered.rows[recent])
        table, weights = offer.table, policy.faded(offered.ages[recent])
        _, first, copies = np.unique(row_keys(table), return_index=True, return_inverse=True)
        latest = np.zeros(len(first))
        np.maximum.at(latest, copies, weights)
        order = np.argsort(first)
        n_items = len(first) if offer.items is None else len(np.unique(offer.keys))
        comes_back = n_items < _DIFFERENT * len(table)
        frequency = min(1.0, offered.per_round / n_items) if comes_back else 0.0
        return cls(np.ascontiguousarray(table[first[order]]), latest[order], frequency)

    def arms(self, policy: LatentParams, some: Any = ...) -> Arms:
        """Return the rows, or some of them, for a fit."""
        through_origin = policy.through_origin
        return Arms(self.table[some], self.weights[some], through_origin=through_origin)


def _latent(
    policy: LatentParams, sample: _Sample, round: int, last: Side | None, rank: int | None
) -> tuple[Factors, bool]:
    """Return the latent model to freeze, and whether its rank was chosen anew."""
    n_arms = len(sample.table)
    if last is not None and n_arms >= _LOOK and _still_explains_all(policy, sample, last.latent):
        return last.latent, False
    arms = sample.arms(policy)
    if arms.n_entries == 0:
        return arms.empty_model(), True
    known = None if last is None else last.latent
    if rank is not None:
        search = Search(arms, known)
        return search.fit(search.affordable(rank)).model, True
    if last is not None and not _is_rank_due(policy, n_arms, round, last):
        return fit_factors(arms, last.latent).model, False
    if n_arms <= _SEARCH_ROWS:
        return Search(arms, known).run().model, True
    some = sample.arms(policy, np.linspace(0, n_arms - 1, _SEARCH_ROWS).astype(np.int64))
    return fit_factors(arms, Search(some, known).run().model).model, True


def _is_rank_due(policy: LatentParams, n_arms: int, round: int, last: Side) -> bool:
    """Return whether to choose the rank again: there are more rows, or much later."""
    if n_arms <= FEW_ARMS or min(n_arms, _SEARCH_ROWS) >= _RANK_GROWTH * last.n_ranked:
        return True
    # With a half-life, the world may have another rank after some of them.
    pause = _RANK_PAUSE * min(last.ranked_round, policy.half_life or math.inf)
    return round >= last.ranked_round + pause


def _still_explains_all(policy: LatentParams, sample: _Sample, last: Factors) -> bool:
    """Return whether the last model leaves nothing to explain: then nothing is fitted.

    This only happens if the rows are low-rank to rounding error.
    """
    if not last.explains_all:
        return False
    arms = sample.arms(policy, slice(-_LOOK, None))
    return fit_factors(arms, last, max_steps=1).model.explains_all


def _has(group: str, latent: Factors, shares: FloatArray) -> bool:
    """Return whether a group of features says something that the others do not."""
    n_varying = int(np.count_nonzero(latent.scale))
    few = n_varying <= MOST_AMBIENT_FEATURES
    if group == LATENT:
        return latent.rank > 0
    if group == FILLED:  # a model that explains all makes it a function of the latent group
        if latent.rank == 0:
            return n_varying > 0 and latent.dim <= LARGEST_DENSE_DIM
        return few and not latent.explains_all
    return group == MASK and few and bool(((shares > 0.0) & (shares < 1.0)).any())
