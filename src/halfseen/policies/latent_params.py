"""The parameters of `LatentUcb`, and what follows from them."""

import math
from typing import Any, ClassVar

import numpy as np

from halfseen import checks
from halfseen.core.context_features import AnyFeatures
from halfseen.core.features import GROUPS as FEATURE_GROUPS
from halfseen.core.group_scales import ITEM
from halfseen.core.offers import Layout
from halfseen.core.plays import DEFAULT_MEMORY, Plays, arms_kept
from halfseen.errors import InvalidSettingError
from halfseen.linear.history import LARGEST_GROWTH
from halfseen.params import choice, custom, flag, integer, real
from halfseen.policies.ambient import scale_param
from halfseen.policies.base import Policy
from halfseen.policies.explorations import INVERSE_GAP
from halfseen.policies.imputed import EXPLORATIONS
from halfseen.values import SMALLEST, FloatArray

CONTEXT = "context"
GROUPS = (*FEATURE_GROUPS, ITEM, CONTEXT)

WIDTH_SCALE = 2.0
"""Chosen, like `item_share`, by benchmarks/choose_defaults.py, on worlds and seeds that no study
reports."""

# Rewards that differ by less than this share are equal.
_ROUNDING = 1e-12
# Arms and rewards that count less than this are left out.
_NEGLIGIBLE_WEIGHT = 1e-3

# With a half-life, an epoch lasts at most this share of it.
_EPOCH_SHARE = 0.25


class LatentParams(Policy):
    """What is given to `LatentUcb`, and how old arms and rewards count."""

    takes_context = True
    uses_items = True

    item_share: ClassVar[float] = 0.375
    """Share of `width_scale`, times √(2 log t), for effects of items that are always offered."""

    dim: int | None = integer(  # type: ignore[assignment]
        default=None,
        low=1,
        high=checks.LARGEST_SIZE,
        doc="Number of features; by default that of the first slate.",
    )
    context_dim: int = integer(
        default=0,
        low=0,
        high=checks.LARGEST_SIZE,
        doc="Number of features of a context; by default that of the first one.",
    )
    rank: int | None = integer(
        default=None,
        low=0,
        doc="""Number of latent coordinates, at most dim − 1; fewer while there are too few entries.
    By default the evidence chooses.""",
    )
    through_origin: bool = flag(
        default=False,
        doc="""Whether all features and rewards are known to have mean zero, as in the paper: then
    there is no mean and no intercept.""",
    )
    groups: Any = custom(
        default=GROUPS,
        check=lambda name, value: _checked_groups(name, value),
        plain=list,
        kind="sequence of str",
        doc="""Parts of the reward model: "latent", "filled", "mask", "item", "context". Those that
    say nothing in the present world are left out anyway.""",
    )
    exploration: str = choice(
        default="ucb",
        words=(*EXPLORATIONS, INVERSE_GAP),
        doc="""Optimism, parameters drawn from the posterior, no exploration, or arms drawn with
    SquareCB's probabilities: the farther its estimate is below the best, the rarer an arm is.""",
    )
    uniform_share: float = real(
        default=0.0,
        low=0.0,
        high=1.0,
        doc="Share of the rounds in which every arm is chosen with the same probability.",
    )
    width_scale: float = scale_param(
        WIDTH_SCALE, doc="Multiple of the posterior deviation in a score or a draw."
    )
    growth: float = real(
        default=1.25,
        low=1.0,
        high=LARGEST_GROWTH,
        low_open=True,
        doc="Factor between epoch starts.",
    )
    half_life: float | None = real(
        default=None,
        low=1.0,
        high=1e15,
        doc="""Rounds after which arms and rewards count half, for a world that changes; after twice
    as many they count a sixteenth. By default they count forever.""",
    )
    refit: str = choice(
        default="inline",
        words=("inline", "background"),
        doc="""Where the models of the next epoch are fitted: in the round that opens it, which is
    reproducible, or in a thread beside the present epoch, which goes on until they are ready.""",
    )
    memory_bytes: int = integer(
        default=DEFAULT_MEMORY,
        low=1,
        doc="""Memory for offered and played arms. What does not fit is sampled or summed up.""",
    )
    seed: int = integer(
        default=0, low=0, doc="Seed of that sample, of random choices and of draws."
    )

    def setup(self) -> None:
        """Start without categories, and without numbers of items."""
        self._levels: dict[int, int] = {}
        # A context may be known before the first slate, with which everything starts anew.
        self._context_levels: dict[int, int] = self.__dict__.get("_context_levels", {})
        self._has_items = False

    @property
    def levels(self) -> dict[int, int]:
        """Further levels of categories, each with the first one: all are hidden together."""
        return self._levels

    @property
    def context_levels(self) -> dict[int, int]:
        """The same for the context."""
        return self._context_levels

    @property
    def layout(self) -> Layout:
        """How a played arm is kept."""
        return Layout(self.n_features, self.context_dim, self._has_items)

    @property
    def n_features(self) -> int:
        """Number of features, once it is known."""
        assert self.dim is not None
        return self.dim

    @property
    def most_arms(self) -> int:
        """Number of offered arms, and of played arms, that are kept."""
        return arms_kept(self.layout.width, self.memory_bytes)

    def compacted(self, plays: Plays, features: AnyFeatures) -> Plays:
        """Return the plays of an epoch, which has some features, in bounded memory."""
        return plays.compacted(features, self.most_arms, self.longest_epoch)

    @property
    def longest_epoch(self) -> float:
        """Most rounds of an epoch, and of a summary of rewards; infinite without a half-life."""
        return math.inf if self.half_life is None else _EPOCH_SHARE * self.half_life

    def tell(self, plays: Plays) -> bool:
        """Return whether the rewards of plays tell something about arms."""
        rewards = plays.played.columns()[1]
        first = float(rewards[0])
        sums = [np.array([plays.within]), *(each.targets(first) for each in plays.summaries)]
        return self.tells(rewards, first) or any(self.tells(first + each, first) for each in sums)

    def tells(self, rewards: Any, other: float) -> bool:
        """Return whether rewards tell something about arms: not if all equal another one.

        If rewards are known to have mean zero, only zeros tell nothing.
        """
        usual = 0.0 if self.through_origin else other
        rests = np.abs(np.asarray(rewards) - usual)
        return bool(np.any(rests > max(_ROUNDING * abs(usual), SMALLEST)))

    @property
    def memory(self) -> float:
        """Age in rounds from which on arms and rewards no longer count; infinite by default."""
        if self.half_life is None:
            return math.inf
        return self.half_life * math.sqrt(-math.log2(_NEGLIGIBLE_WEIGHT))

    def faded(self, ages: Any) -> FloatArray:
        """Return how much arms or rewards of some ages, in rounds, count."""
        ages = np.asarray(ages, dtype=np.float64)
        if self.half_life is None:
            return np.ones(ages.shape)
        # A soft window: half after one half-life, a sixteenth after two. Halving at every half-life
        # would leave an eighth of what was before a change after three of them.
        weights: FloatArray = 0.5 ** (ages / self.half_life) ** 2
        return weights


def _checked_groups(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, list | tuple) or not value:
        raise InvalidSettingError(f"{name} must be a list of words among {GROUPS}, got {value!r}")
    words = {checks.one_of(name, word, GROUPS) for word in value}
    return tuple(word for word in GROUPS if word in words)
