"""One epoch of `LatentUcb`: frozen latent models and the reward model in their features."""

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen import checks
from halfseen.core.context_features import AnyFeatures, JointFeatures, chosen_sides, joint
from halfseen.core.factors import Factors
from halfseen.core.features import Features
from halfseen.core.group_scales import ITEM
from halfseen.core.offers import Layout
from halfseen.core.plays import Plays
from halfseen.core.reward_model import RewardModel, is_too_large
from halfseen.core.summary import joined
from halfseen.errors import ArchiveError
from halfseen.policies.latent_params import CONTEXT, LatentParams
from halfseen.policies.latent_side import Offered, Side, restored_groups


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
    context_rank : int or None
        Those of contexts; None if there are none.
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
    context_rank: int | None
    noise_scale: float | None
    scales: dict[str, float]
    frequency: float
    carry_error: float


class Before(NamedTuple):
    """What was offered before an epoch.

    Attributes
    ----------
    arms : Offered
    contexts : Offered or None
        None if there are no contexts.
    """

    arms: Offered
    contexts: Offered | None


class LatentEpoch(NamedTuple):
    """What `LatentUcb` knows during an epoch.

    Attributes
    ----------
    record : LatentRecord
    arms : Side
    context : Side or None
        None if there are no contexts.
    features : Features or JointFeatures
        All that may enter the reward model, without scales.
    rewards : RewardModel or None
        None while the rewards tell nothing about arms.
    """

    record: LatentRecord
    arms: Side
    context: Side | None
    features: AnyFeatures
    rewards: RewardModel | None

    @property
    def latent(self) -> Factors:
        """The latent model of arms."""
        return self.arms.latent

    @classmethod
    def open(
        cls,
        policy: LatentParams,
        before: Before,
        plays: Plays,
        round: int,
        last: "LatentEpoch | None",
    ) -> tuple["LatentEpoch", Plays]:
        """Fit the latent models to what was offered, then the reward model to all rewards.

        Also returns the plays, compacted, with summaries in the features of this epoch.
        """
        known = None if last is None else last.arms
        arms, context = Side.fitted(policy, before.arms, round, known, policy.rank), None
        if before.contexts is not None:
            known = None if last is None else last.context
            context = Side.fitted(policy, before.contexts, round, known)
        features = _features(policy, arms, context)
        error = 0.0
        if last is not None:
            plays, error = policy.compacted(plays, last.features).carried(last.features, features)
        rewards = _rewards(policy, features, plays, round, arms.frequency > 0.0, last)
        record = LatentRecord(
            epoch=0 if last is None else last.record.epoch + 1,
            round=round,
            n_arms=arms.n_arms,
            n_ranked=arms.n_ranked,
            ranked_round=arms.ranked_round,
            rank=arms.latent.rank,
            context_rank=None if context is None else context.latent.rank,
            noise_scale=None if rewards is None else rewards.scales.noise,
            scales={}
            if rewards is None
            else {group: rewards.scales.of(group) for group in rewards.scales.logs},
            frequency=arms.frequency,
            carry_error=error,
        )
        return cls(record, arms, context, features, rewards), plays

    def widened(
        self,
        policy: LatentParams,
        layout: Layout,
        old: NDArray[np.uint64],
        new: NDArray[np.uint64],
    ) -> "LatentEpoch":
        """Return the epoch with the features of another layout.

        `old` and `new` are the keys of the played arms without and with these features. If the
        reward model would become much larger than one that is fitted anew, it is given up.
        """
        arms = self.arms.widened(layout.dim, policy.levels)
        own = arms.features(policy, policy.levels, self._groups[0])
        features: AnyFeatures = own
        context = self.context
        if layout.context_dim:
            context = Side.unknown(0) if context is None else context
            context = context.widened(layout.context_dim, policy.context_levels)
            other = context.features(policy, policy.context_levels, self._groups[1])
            if isinstance(self.features, JointFeatures):
                features = joint(own, other, self.features.sides)
            else:
                features = _joined(policy, own, other, arms)
        rewards = self.rewards
        if rewards is not None and is_too_large(features, rewards.items):
            rewards = None  # another epoch opens at once
        if rewards is not None:
            rewards = rewards.widened(features, old, new)
        return LatentEpoch(self.record, arms, context, features, rewards)

    @property
    def _groups(self) -> tuple[list[str], list[str]]:
        """The groups of features of arms, and of contexts."""
        features = self.features
        if isinstance(features, JointFeatures):
            return list(features.option.columns), list(features.context.columns)
        return list(features.columns), []

    def state(self) -> dict[str, Any]:
        """Return latent models, record and reward model."""
        return {
            "record": asdict(self.record),
            "arms": self.arms.state(),
            "context": None if self.context is None else self.context.state(),
            "groups": list(self._groups),
            "sides": self.features.sides if isinstance(self.features, JointFeatures) else None,
            "rewards": None if self.rewards is None else self.rewards.state(),
        }

    @classmethod
    def restored(cls, policy: LatentParams, state: dict[str, Any]) -> "LatentEpoch":
        """Return the epoch that `state` described."""
        arms, context = Side.restored(state["arms"], policy.n_features), None
        groups, context_groups = (restored_groups(each) for each in state["groups"])
        own = arms.features(policy, policy.levels, groups)
        features: AnyFeatures = own
        if state["context"] is not None:
            context = Side.restored(state["context"], policy.context_dim)
            other = context.features(policy, policy.context_levels, context_groups)
            sides = tuple(tuple(restored_groups(each)) for each in state["sides"])
            features = joint(own, other, (sides[0], sides[1]))
        rewards = state["rewards"]
        if rewards is not None:
            rewards = RewardModel.restored(rewards, features)
        record = record_from(state["record"])
        if record.rank != arms.latent.rank:
            raise ArchiveError(
                f"a latent model must have rank {record.rank}, got {arms.latent.rank}"
            )
        return cls(record, arms, context, features, rewards)


def record_from(plain: dict[str, Any]) -> LatentRecord:
    """Return the record that was saved as plain values."""
    record = LatentRecord(**plain)
    for name in ("epoch", "round", "n_arms", "n_ranked", "ranked_round", "rank"):
        checks.integer(name, getattr(record, name), 0, checks.LARGEST_HORIZON)
    if record.context_rank is not None:
        checks.integer("context_rank", record.context_rank, 0, checks.LARGEST_SIZE)
    if record.noise_scale is not None:
        checks.real("noise_scale", record.noise_scale, 0.0)
    for scale in record.scales.values():
        checks.real("scales", scale, 0.0)
    checks.real("frequency", record.frequency, 0.0, 1.0)
    checks.real("carry_error", record.carry_error, 0.0)
    return record


def _features(policy: LatentParams, arms: Side, context: Side | None) -> AnyFeatures:
    """Return all features that may enter the reward model."""
    own = arms.features(policy, policy.levels)
    if context is None:
        return own
    groups: list[str] | None = None if CONTEXT in policy.groups else []
    return _joined(policy, own, context.features(policy, policy.context_levels, groups), arms)


def _joined(policy: LatentParams, own: Features, other: Features, arms: Side) -> JointFeatures:
    """Return the features of arms and contexts, with some of their products."""
    by_item = arms.frequency > 0.0 and ITEM in policy.groups
    return joint(own, other, chosen_sides(own, other, by_item=by_item))


def _rewards(
    policy: LatentParams,
    features: AnyFeatures,
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
    rows, _, samples = plays.merged(weights)
    if plays.summaries:
        faded = [
            each.faded(float(policy.faded(round - 1 - each.round))) for each in plays.summaries
        ]
        samples = samples._replace(others=joined(faded))
    return RewardModel.fitted(
        features,
        plays.offers(rows),
        samples,
        item_effects=comes_back and ITEM in policy.groups,
        last=None if last is None or last.rewards is None else last.rewards.scales.logs,
    )
