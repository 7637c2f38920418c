"""Fields of what a saved `LatentUcb` contains: names, sizes and ranges, checked on loading."""

from typing import Any, NamedTuple

import numpy as np

from halfseen import checks, state
from halfseen.errors import ArchiveError
from halfseen.factors.model import LARGEST_LOADING, NOISE_FLOOR, Factors
from halfseen.latent.drift import DRIFT
from halfseen.latent.epoch import Epoch, LatentRecord, joint_features
from halfseen.latent.evidence import HIGHEST, LOWEST, Scales
from halfseen.latent.features import Features
from halfseen.latent.history import History, Observations
from halfseen.latent.items import ItemPosterior, Items
from halfseen.latent.reward_model import RewardModel
from halfseen.latent.row_model import RowModel
from halfseen.latent.statistics import Statistics
from halfseen.state import Array, Maybe, Plain, Real, Sizes, Value, Whole
from halfseen.values import LARGEST, LARGEST_ITEM, LARGEST_POINT
from halfseen.values.rows import NO_ITEM, Keys

_LARGEST_MEAN = 3.0 * LARGEST  # of rewards without their level, and up to rounding
_LARGEST_PRODUCT = LARGEST_POINT**2
_ROUNDING = 1e-6


class _AscendingKeys(Array):
    """The keys of items."""

    def load(self, name: str, plain: Any, sizes: Sizes) -> Keys:
        """Return a copy after checking that keys ascend."""
        keys: Keys = super().load(name, plain, sizes)
        if (keys[1:] <= keys[:-1]).any():
            raise ArchiveError("the keys of items must be ascending")
        return keys


_KEYS = _AscendingKeys(("n_items",), np.uint64)
_ITEM_POSTERIORS = Value(
    ItemPosterior,
    covariance=Array(("n_items", "n_columns", "n_columns"), low=-1 - _ROUNDING, high=1 + _ROUNDING),
    sums=Array(("n_items", "n_columns", "n_sums"), low=-_LARGEST_PRODUCT, high=_LARGEST_PRODUCT),
)


_ROWS = Value(
    Observations,
    rounds=Array(("n",), np.int64, low=1),
    arms=Array(("n", "dim"), low=-LARGEST, high=LARGEST, hidden=True),
    contexts=Array(("n", "context_dim"), low=-LARGEST, high=LARGEST, hidden=True),
    items=Array(("n",), np.int64, low=NO_ITEM, high=LARGEST_ITEM),
    rewards=Array(("n",), low=-_LARGEST_MEAN, high=_LARGEST_MEAN),
    counts=Array(("n",), low=1.0, high=checks.LARGEST_HORIZON),
    squares=Array(("n",), low=0.0, high=_LARGEST_PRODUCT),
    levels=Array(("n",), low=-_LARGEST_MEAN, high=_LARGEST_MEAN),
)


_SUMMARY = Value(
    Statistics,
    products=Array(("n_columns", "n_columns"), low=-_LARGEST_PRODUCT, high=_LARGEST_PRODUCT),
    keys=_KEYS,
    item_products=Array(("n_items", None, None), low=-_LARGEST_PRODUCT, high=_LARGEST_PRODUCT),
    shift=Real(-_LARGEST_MEAN, _LARGEST_MEAN),
    n_rewards=Real(0.0, checks.LARGEST_HORIZON, low_open=True),
)


HISTORY = Value(History, rows=_ROWS, summary=Maybe(_SUMMARY))
"""The field of a history."""


class RewardModelField(NamedTuple):
    """The field of a reward model.

    Attributes
    ----------
    features : Features
        All groups that may matter.
    """

    features: Features

    def dump(self, value: RewardModel) -> dict[str, Any]:
        """Return scales, posteriors and the level."""
        keys, posteriors = value.items.sorted()
        return {
            "logs": value.scales.logs,
            "noise": value.scales.noise_scale,
            "n_effective": value.scales.n_effective,
            "centre": value.centre,
            "drift": DRIFT.dump(value.drift),
            "ridge": state.dump(value.ridge),
            "keys": _KEYS.dump(keys),
            "items": _ITEM_POSTERIORS.dump(posteriors),
        }

    def load(self, name: str, plain: Any, sizes: state.Sizes) -> RewardModel:
        """Return the model after checking its parts."""
        blocks = [*self.features.blocks, *self.features.item_blocks]
        if sorted(plain["logs"]) != sorted(blocks):
            raise ArchiveError(f"logs must be those of {blocks}, got {sorted(plain['logs'])}")
        logs = {
            block: checks.real("logs", plain["logs"][block], LOWEST, HIGHEST) for block in blocks
        }
        noise = checks.real("noise", plain["noise"], 0.0, LARGEST, low_open=True)
        scales = Scales(logs, noise, checks.real("n_effective", plain["n_effective"], -_ROUNDING))
        centre = checks.real("centre", plain["centre"], -_LARGEST_MEAN, _LARGEST_MEAN)
        drift = DRIFT.load("drift", plain["drift"], sizes)
        model = RewardModel.prior(self.features, scales, centre, drift)
        state.restore(model.ridge, plain["ridge"])
        sizes = state.Sizes(n_columns=len(model.item_taus), n_sums=len(model.taus) + 1)
        keys = _KEYS.load("keys", plain["keys"], sizes)
        return model._replace(
            items=Items(keys, _ITEM_POSTERIORS.load("items", plain["items"], sizes))
        )


_COUNTS = ("epoch", "round", "n_arms", "rank")
RECORD = Value(
    LatentRecord,
    **{name: Whole() for name in _COUNTS},
    context_rank=Maybe(Whole(high=checks.LARGEST_SIZE)),
    noise_scale=Maybe(Real(0.0)),
    scales=Plain(
        lambda name, value: {
            str(group): checks.real(name, scale, 0.0) for group, scale in value.items()
        }
    ),
    n_items=Whole(),
)
"""The field of a record."""


_ROW_MODEL = Value(
    RowModel,
    factors=Value(
        Factors,
        location=Array(("known",), low=-LARGEST_POINT, high=LARGEST_POINT),
        scale=Array(("known",), low=0.0, high=2.0 * LARGEST),
        loadings=Array((None, "known"), low=-LARGEST_LOADING, high=LARGEST_LOADING),
        noise=Array(("known",), low=NOISE_FLOOR, high=LARGEST_LOADING**2),
    ),
    shares=Array(("known",), low=0.0, high=1.0),
    n_rows=Whole(),
    fitted_round=Whole(),
    n_items=Whole(),
    recurrence=Real(0.0, 1.0),
    limits=Array((2, "known"), low=-LARGEST, high=LARGEST),
)


class EpochField:
    """The field of an epoch; the owner is the policy."""

    def dump(self, value: Epoch) -> dict[str, Any]:
        """Return factor models, record and reward model."""
        features = value.features
        return {
            "record": RECORD.dump(value.record),
            "arms": _ROW_MODEL.dump(value.arms),
            "context": _ROW_MODEL.dump(value.context),
            "reward_model": Maybe(RewardModelField(features)).dump(value.reward_model),
            "width_model": Maybe(RewardModelField(features)).dump(value.width_model),
        }

    def load(self, name: str, plain: Any, sizes: Sizes) -> Epoch:
        """Return the epoch after checking its parts."""
        settings = sizes.owner._settings
        record = RECORD.load("record", plain["record"], sizes)
        arms, context = (
            _ROW_MODEL.load(each, plain[each], Sizes()) for each in ("arms", "context")
        )
        for model, rank, dim in (
            (arms, record.rank, sizes.owner.dim),
            (context, record.context_rank or 0, sizes.owner.context_dim),
        ):
            if model.factors.rank != rank:
                raise ArchiveError(f"factors must have rank {rank}, got {model.factors.rank}")
            if model.factors.dim > dim:
                raise ArchiveError(f"factors have {model.factors.dim} features, rows {dim}")
        features = joint_features(settings, arms, context)
        models = (
            Maybe(RewardModelField(features)).load(each, plain[each], sizes)
            for each in ("reward_model", "width_model")
        )
        return Epoch(record, arms, context, features, *models)
