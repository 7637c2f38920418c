"""A policy that always plays the same arm."""

from collections.abc import Mapping

import numpy as np

from halfseen.policies.base import Policy
from halfseen.policies.registry import register_policy
from halfseen.values import Choice, Note, Slate


@register_policy
class SameArm(Policy):
    """Plays the first arm of every slate and learns nothing: in a catalogue always one item.

    Examples
    --------
    >>> SameArm(dim=2).choose([[1.0, 0.0], [0.0, float("nan")]]).arm
    0
    """

    def setup(self) -> None:
        """There is nothing to set up."""

    def decide(self, slate: Slate) -> Choice:
        """Choose the first arm."""
        return Choice(0, np.zeros((3, slate.n_arms)))

    def exploit(self, slate: Slate) -> Choice:
        """Choose the first arm."""
        return self.decide(slate)

    def grow(self, dim: int, levels: Mapping[int, int]) -> None:
        """Nothing depends on the number of features."""

    def update(self, note: Note, reward: float) -> None:
        """Learn nothing."""
