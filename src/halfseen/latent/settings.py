"""What the models of an epoch need to know of a policy; how old rows and rewards count."""

import math
from typing import Any, NamedTuple

import numpy as np

from halfseen.values import FloatArray

# Arms and rewards that count less than this are left out.
_NEGLIGIBLE_WEIGHT = 1e-3
# With a half-life, an epoch lasts at most this share of it.
_EPOCH_SHARE = 0.25


class Settings(NamedTuple):
    """What the models need to know of a policy.

    Attributes
    ----------
    groups : tuple of str
        Among `ALL_GROUPS`.
    rank : int or None
        Of arms; None if the evidence chooses.
    through_origin : bool
    half_life : float or None
    n_kept : int
        Number of played arms that are kept.
    first_levels, context_first_levels : dict
        Further levels of categories, each with the first one: all are hidden together.
    """

    groups: tuple[str, ...]
    rank: int | None
    through_origin: bool
    half_life: float | None
    n_kept: int
    first_levels: dict[int, int]
    context_first_levels: dict[int, int]

    @property
    def oldest_age(self) -> float:
        """Age in rounds from which on arms and rewards no longer count; infinite by default."""
        if self.half_life is None:
            return math.inf
        return self.half_life * math.sqrt(-math.log2(_NEGLIGIBLE_WEIGHT))

    @property
    def longest_epoch(self) -> float:
        """Most rounds of an epoch; infinite without a half-life."""
        return math.inf if self.half_life is None else _EPOCH_SHARE * self.half_life

    def decay(self, ages: Any) -> FloatArray:
        """Return how much arms or rewards of some ages, in rounds, count."""
        ages = np.asarray(ages, dtype=np.float64)
        if self.half_life is None:
            return np.ones(ages.shape)
        # A soft window: half after one half-life, a sixteenth after two. Halving at every half-life
        # would leave an eighth of what was before a change after three of them.
        weights: FloatArray = 0.5 ** (ages / self.half_life) ** 2
        return weights
