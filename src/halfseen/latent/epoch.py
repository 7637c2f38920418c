"""One epoch: factor models of arms and contexts, frozen, and a reward model in their features.

Opening one takes steps 1 to 4 of docs/latent-ucb.md:

    arms, contexts:  x = μ + Wz + ε, by EM; the evidence chooses the rank
    features:        φ from z, x̂ and masks of both sides and their products; c of the context
    rewards:         r = φ'θ + c'δ_i + noise; the evidence chooses the scales

tests/latent/test_one_opening.py recomputes one opening from these formulas with dense matrices.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from halfseen.latent.drift import FIXED, Drift, moving_level
from halfseen.latent.features import Features, RowFeatures
from halfseen.latent.groups import CONTEXT, ITEM
from halfseen.latent.history import History
from halfseen.latent.offered import OfferedRows
from halfseen.latent.reward_model import RewardModel
from halfseen.latent.row_model import RowModel
from halfseen.latent.settings import Settings
from halfseen.values import SMALLEST

# Rewards that differ by less than this share are equal.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentRecord:
    """What happened when an epoch opened.

    Attributes
    ----------
    epoch, round : int
        Index of the epoch and its first round.
    n_arms : int
        Different arms when the latent model was fitted.
    rank : int
        Latent dimensions.
    context_rank : int or None
        Those of contexts; None if there are none.
    noise_scale : float or None
        Estimated deviation of the reward noise; None while all rewards are equal.
    scales : dict
        For each block of features its prior deviation τ, in units of the noise.
    n_items : int
        Number of different items, if they come back; otherwise 0.
    """

    epoch: int
    round: int
    n_arms: int
    rank: int
    context_rank: int | None
    noise_scale: float | None
    scales: dict[str, float]
    n_items: int

    @classmethod
    def of(
        cls, epoch: int, round: int, arms: RowModel, context: RowModel, model: RewardModel | None
    ) -> "LatentRecord":
        """Return the record of an epoch with some models."""
        logs = {} if model is None else model.scales.logs
        return cls(
            epoch=epoch,
            round=round,
            n_arms=arms.n_rows,
            rank=arms.factors.rank,
            context_rank=context.factors.rank if context.factors.dim else None,
            noise_scale=None if model is None else model.scales.noise_scale,
            scales={block: math.exp(log) for block, log in logs.items()},
            n_items=arms.n_items,
        )


class Epoch(NamedTuple):
    """What `LatentUcb` knows during an epoch; features that came later enter with the next one.

    Attributes
    ----------
    record : LatentRecord
    arms, context : RowModel
        Without a context, of rows with 0 features.
    features : Features
        All groups that may enter the reward model.
    reward_model : RewardModel or None
        None while all rewards are equal.
    width_model : RewardModel or None
        The same with a row for each decision whose reward is pending, for widths alone; None if it
        has yet to be made.
    """

    record: LatentRecord
    arms: RowModel
    context: RowModel
    features: Features
    reward_model: RewardModel | None
    width_model: RewardModel | None = None

    @classmethod
    def open(
        cls,
        settings: Settings,
        arms: OfferedRows,
        contexts: OfferedRows,
        history: History,
        round: int,
        last: "Epoch | None",
        first_pending: float,
    ) -> tuple["Epoch", History]:
        """Fit the factor models to what was offered, then the reward model to all rewards.

        `first_pending` is the first round whose reward is pending; infinite if none is.
        Also returns the history, bounded, with its summary in the features of this epoch.
        """
        last_arms, last_context = (
            RowModel.unknown(each.table.shape[1]) for each in (arms, contexts)
        )
        if last is not None:
            last_arms, last_context = last.arms, last.context
        arm_model = RowModel.fitted(settings, arms, round, last_arms)
        any_rank = settings._replace(rank=None)  # a rank that is given is that of arms
        context_model = RowModel.fitted(any_rank, contexts, round, last_context)
        if last is not None and arm_model is last.arms and context_model is last.context:
            features = last.features
        else:
            features = joint_features(settings, arm_model, context_model)
        drift, logs, number = FIXED, None, 0
        if last is not None:
            number = last.record.epoch + 1
            logs = None if last.reward_model is None else last.reward_model.scales.logs
            history, drift = _without_drift(settings, history, round, last, first_pending)
            # Sums are in the features of the last epoch, until they are mapped to the new ones.
            history = history.bounded(last.features, settings, first_pending)
            history = history.in_new_features(last.features, features)
        model = None
        if is_informative(settings, history):
            rows = history.rows
            rows = rows._replace(counts=rows.counts * settings.decay(round - 1 - rows.rounds))
            model = RewardModel.fitted(features, rows, history.summary, logs, drift)
        record = LatentRecord.of(number, round, arm_model, context_model, model)
        return cls(record, arm_model, context_model, features, model), history


def _without_drift(
    settings: Settings, history: History, round: int, last: Epoch, first_pending: float
) -> tuple[History, Drift]:
    """Subtract a moving level from the rewards, and return its drift.

    Only rewards that have not been merged have a round. Rounds from the first pending one on are
    left out: what has come of them may be the clicks alone.
    """
    model, rows = last.reward_model, history.rows
    if model is None or settings.through_origin:
        return history, Drift(history.last_level)
    single = np.flatnonzero(rows.counts == 1.0)
    usable = single[rows.rounds[single] < first_pending]
    rows, path = rows.select(usable), None
    rows = rows._replace(counts=settings.decay(round - 1 - rows.rounds))
    if len(usable):
        path = moving_level(
            rows.rounds,
            model.residuals(rows),
            rows.levels,
            rows.counts,
            lambda columns: model.information(rows, columns),
        )
    if path is None:
        return history, model.drift._replace(gain=0.0)
    return history.without_drift(path, single), path.drift(n_rewards=len(usable))


def joint_features(settings: Settings, arms: RowModel, context: RowModel) -> Features:
    """Return all features that may enter the reward model."""
    allowed = settings.groups
    groups = context.informative_groups(allowed) if CONTEXT in allowed else []
    return Features(
        RowFeatures(arms, arms.informative_groups(allowed), settings.first_levels),
        RowFeatures(context, groups, settings.context_first_levels),
        n_items=arms.n_items if ITEM in allowed else 0,
        intercept=not settings.through_origin,
    )


def is_informative(settings: Settings, history: History) -> bool:
    """Return whether any reward differs from the first one, by more than rounding.

    Through the origin, whether any differs from 0.
    """
    if not len(history):
        return False
    rows = history.rows
    usual = 0.0 if settings.through_origin else float(rows.rewards[0])
    squares = [float(np.abs(rows.rewards - usual).max()) ** 2, float(rows.squares.max())]
    if history.summary is not None:
        squares.append(history.summary.mean_square_around(usual))
    return math.sqrt(max(squares)) > max(_ROUNDING * abs(usual), SMALLEST)
