"""One epoch of `LatentUcb`: a frozen latent model and the reward model in its features."""

import math
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen import archive, checks
from halfseen.core.factor_rank import FEW_ARMS, Search
from halfseen.core.factors import Arms, Factors, fit_factors, row_keys
from halfseen.core.features import FILLED, GROUPS, LATENT, MASK, Features
from halfseen.core.group_scales import ITEM
from halfseen.core.operators import LARGEST_DENSE_DIM
from halfseen.core.plays import Plays
from halfseen.core.reward_model import RewardModel
from halfseen.core.summary import joined
from halfseen.errors import ArchiveError
from halfseen.policies.latent_params import LatentParams
from halfseen.values import FloatArray

MOST_AMBIENT_FEATURES = 300
"""With more features, filled arms and masks are left out of the reward model: its time per round
grows with the square of their number. Without a latent dimension filled arms stay."""

# Arms come back if fewer than this share of the offered ones are different.
_DIFFERENT = 0.9
# Arms on which to check whether the last model still explains everything.
_LOOK = 256
# The rank is chosen on this many arms, evenly spaced in time, and then fitted to all of them.
_SEARCH_ARMS = 2000
# The rank is chosen again when the number of these arms has grown by this factor, and after a pause
# of this many times the rounds so far.
_RANK_GROWTH = 2.0
_RANK_PAUSE = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentRecord:
    """What happened when an epoch opened.

    Attributes
    ----------
    epoch, round : int
        Index of the epoch and its first round.
    n_arms : int
        Different arms to which the latent model was fitted.
    n_ranked, ranked_round : int
        The same, and the round, when its rank was last chosen.
    rank : int
        Latent dimensions.
    noise_scale : float or None
        Estimated deviation of the reward noise; None while all rewards are equal.
    scales : dict
        For each group of features its prior deviation, in units of the noise.
    frequency : float
        If arms come back, the share of all arms that one round offers; otherwise 0.
    carry_error : float
        Share of the features, as a deviation, that was lost when the summary of earlier rewards was
        carried into them; 0 if there is no summary.
    """

    epoch: int
    round: int
    n_arms: int
    n_ranked: int
    ranked_round: int
    rank: int
    noise_scale: float | None
    scales: dict[str, float]
    frequency: float
    carry_error: float


class Offered(NamedTuple):
    """Arms offered before an epoch.

    Attributes
    ----------
    table : ndarray, shape (n, dim)
        A sample of them, NaN where hidden.
    ages : ndarray, shape (n,)
        In rounds, as if arms had come, or been absorbed, at a constant rate.
    per_round : float
        Mean number of arms in a round.
    """

    table: FloatArray
    ages: FloatArray
    per_round: float


class LatentEpoch(NamedTuple):
    """What `LatentUcb` knows during an epoch.

    Attributes
    ----------
    record : LatentRecord
    latent : Factors
    shares : ndarray, shape (dim,)
        Share of the offered arms that show each feature.
    features : Features
        All that may enter the reward model, without scales.
    rewards : RewardModel or None
        None while the rewards tell nothing about arms.
    """

    record: LatentRecord
    latent: Factors
    shares: FloatArray
    features: Features
    rewards: RewardModel | None

    @classmethod
    def open(
        cls,
        policy: LatentParams,
        offered: Offered,
        plays: Plays,
        round: int,
        last: "LatentEpoch | None",
    ) -> tuple["LatentEpoch", Plays]:
        """Fit the latent model to the offered arms, then the reward model to all rewards.

        Also returns the plays, compacted, with summaries in the features of this epoch.
        """
        sample = _Sample.of(policy, offered)
        latent, is_ranked = _latent(policy, sample, round, last)
        shares = sample.weights @ (sample.table == sample.table) / max(1e-300, sample.weights.sum())
        features = _features(policy, latent, shares)
        error = 0.0
        if last is not None:
            plays, error = policy.compacted(plays, last.features).carried(last.features, features)
        rewards = _rewards(policy, features, plays, round, sample.frequency > 0.0, last)
        record = LatentRecord(
            epoch=0 if last is None else last.record.epoch + 1,
            round=round,
            n_arms=len(sample.table),
            n_ranked=len(sample.table) if is_ranked or last is None else last.record.n_ranked,
            ranked_round=round if is_ranked or last is None else last.record.ranked_round,
            rank=latent.rank,
            noise_scale=None if rewards is None else rewards.scales.noise,
            scales={}
            if rewards is None
            else {group: rewards.scales.of(group) for group in rewards.scales.logs},
            frequency=sample.frequency,
            carry_error=error,
        )
        return cls(record, latent, shares, features, rewards), plays

    def widened(
        self,
        policy: LatentParams,
        shares: FloatArray,
        old: NDArray[np.uint64],
        new: NDArray[np.uint64],
    ) -> "LatentEpoch":
        """Return the epoch with more features.

        `shares`, shape (new dim,), are those of the offered arms that show each of them; `old` and
        `new` are the keys of the played arms without and with these features.
        """
        latent = self.latent.widened(len(shares))
        features = _features(policy, latent, shares, list(self.features.columns))
        rewards = None if self.rewards is None else self.rewards.widened(features, old, new)
        return LatentEpoch(self.record, latent, shares, features, rewards)

    def state(self) -> dict[str, Any]:
        """Return latent model, record and reward model."""
        return {
            "record": asdict(self.record),
            "latent": self.latent.state(),
            "shares": self.shares,
            "groups": list(self.features.columns),
            "rewards": None if self.rewards is None else self.rewards.state(),
        }

    @classmethod
    def restored(cls, policy: LatentParams, state: dict[str, Any]) -> "LatentEpoch":
        """Return the epoch that `state` described."""
        dim = policy.n_features
        latent = Factors.restored(state["latent"], dim)
        shares = archive.array(state, "shares", (dim,), low=0.0, high=1.0 + 1e-9)
        groups = [checks.one_of("groups", group, GROUPS) for group in state["groups"]]
        features, rewards = _features(policy, latent, shares, groups), state["rewards"]
        if rewards is not None:
            rewards = RewardModel.restored(rewards, features)
        record = record_from(state["record"])
        if record.rank != latent.rank:
            raise ArchiveError(f"a latent model must have rank {record.rank}, got {latent.rank}")
        return cls(record, latent, shares, features, rewards)


def record_from(plain: dict[str, Any]) -> LatentRecord:
    """Return the record that was saved as plain values."""
    record = LatentRecord(**plain)
    for name in ("epoch", "round", "n_arms", "n_ranked", "ranked_round", "rank"):
        checks.integer(name, getattr(record, name), 0, checks.LARGEST_HORIZON)
    if record.noise_scale is not None:
        checks.real("noise_scale", record.noise_scale, 0.0)
    for scale in record.scales.values():
        checks.real("scales", scale, 0.0)
    checks.real("frequency", record.frequency, 0.0, 1.0)
    checks.real("carry_error", record.carry_error, 0.0)
    return record


class _Sample(NamedTuple):
    """Different arms among those offered so far.

    Attributes
    ----------
    table : ndarray, shape (n, dim)
    weights : ndarray, shape (n,)
        How much each arm counts.
    frequency : float
        As in `LatentRecord`.
    """

    table: FloatArray
    weights: FloatArray
    frequency: float

    @classmethod
    def of(cls, policy: LatentParams, offered: Offered) -> "_Sample":
        """Return the arms that still count; those that come back count once."""
        recent = offered.ages <= policy.memory
        table, weights = offered.table[recent], policy.faded(offered.ages[recent])
        _, first, copies = np.unique(row_keys(table), return_index=True, return_inverse=True)
        latest = np.zeros(len(first))
        np.maximum.at(latest, copies, weights)
        order = np.argsort(first)
        comes_back = len(first) < _DIFFERENT * len(table)
        frequency = min(1.0, offered.per_round / len(first)) if comes_back else 0.0
        return cls(np.ascontiguousarray(table[first[order]]), latest[order], frequency)

    def arms(self, policy: LatentParams, some: Any = ...) -> Arms:
        """Return the arms, or some of them, for a fit."""
        through_origin = policy.through_origin
        return Arms(self.table[some], self.weights[some], through_origin=through_origin)


def _latent(
    policy: LatentParams, sample: _Sample, round: int, last: LatentEpoch | None
) -> tuple[Factors, bool]:
    """Return the latent model to freeze, and whether its rank was chosen anew."""
    n_arms = len(sample.table)
    if last is not None and n_arms >= _LOOK and _still_explains_all(policy, sample, last.latent):
        return last.latent, False
    arms = sample.arms(policy)
    if arms.n_entries == 0:
        return arms.empty_model(), True
    known = None if last is None else last.latent
    if policy.rank is not None:
        search = Search(arms, known)
        return search.fit(search.affordable(policy.rank)).model, True
    if last is not None and not _is_rank_due(policy, n_arms, round, last.record):
        return fit_factors(arms, last.latent).model, False
    if n_arms <= _SEARCH_ARMS:
        return Search(arms, known).run().model, True
    some = sample.arms(policy, np.linspace(0, n_arms - 1, _SEARCH_ARMS).astype(np.int64))
    return fit_factors(arms, Search(some, known).run().model).model, True


def _is_rank_due(policy: LatentParams, n_arms: int, round: int, last: LatentRecord) -> bool:
    """Return whether to choose the rank again: there are more arms, or much later."""
    if n_arms <= FEW_ARMS or min(n_arms, _SEARCH_ARMS) >= _RANK_GROWTH * last.n_ranked:
        return True
    # With a half-life, the world may have another rank after some of them.
    pause = _RANK_PAUSE * min(last.ranked_round, policy.half_life or math.inf)
    return round >= last.ranked_round + pause


def _still_explains_all(policy: LatentParams, sample: _Sample, last: Factors) -> bool:
    """Return whether the last model leaves nothing to explain: then nothing is fitted.

    This only happens if the arms are low-rank to rounding error.
    """
    if not last.explains_all:
        return False
    arms = sample.arms(policy, slice(-_LOOK, None))
    return fit_factors(arms, last, max_steps=1).model.explains_all


def _features(
    policy: LatentParams, latent: Factors, shares: FloatArray, groups: list[str] | None = None
) -> Features:
    if groups is None:
        groups = [group for group in policy.groups if _has(group, latent, shares)]
    holes = np.setdiff1d(np.arange(latent.dim), list(policy.levels))
    return Features(latent, shares, groups, holes=holes, intercept=not policy.through_origin)


def _rewards(
    policy: LatentParams,
    features: Features,
    plays: Plays,
    round: int,
    comes_back: bool,
    last: LatentEpoch | None,
) -> RewardModel | None:
    """Return the reward model, if rewards tell something."""
    if plays.n_rows == 0 or not policy.tell(plays):
        return None
    weights = None
    if policy.half_life is not None:
        weights = policy.faded(round - 1 - plays.played.columns()[2])
    table, _, samples = plays.merged(weights)
    if plays.summaries:
        faded = [
            each.faded(float(policy.faded(round - 1 - each.round))) for each in plays.summaries
        ]
        samples = samples._replace(others=joined(faded))
    return RewardModel.fitted(
        features,
        table,
        samples,
        item_effects=comes_back and ITEM in policy.groups,
        last=None if last is None or last.rewards is None else last.rewards.scales.logs,
    )


def _has(group: str, latent: Factors, shares: FloatArray) -> bool:
    """Return whether a group of features says something that the others do not."""
    few = bool(np.count_nonzero(latent.scale) <= MOST_AMBIENT_FEATURES)
    if group == LATENT:
        return latent.rank > 0
    if group == FILLED:  # a model that explains all makes it a function of the latent group
        if latent.rank == 0:
            return latent.dim <= LARGEST_DENSE_DIM
        return few and not latent.explains_all
    return group == MASK and few and bool(((shares > 0.0) & (shares < 1.0)).any())
