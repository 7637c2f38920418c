"""Policies that learn nothing."""

from collections.abc import Mapping

import numpy as np

from halfseen.policies.abilities import Draws, Exploits, Grows
from halfseen.policies.base import Policy
from halfseen.policies.registry import register_policy
from halfseen.values import Choice, Note, Slate


class _LearnsNothing(Grows, Policy):
    def setup(self) -> None:
        """There is nothing to set up."""

    def grow(self, dim: int, levels: Mapping[int, int]) -> None:
        """Nothing depends on the number of features."""

    def update(self, note: Note, reward: float) -> None:
        """Learn nothing."""


@register_policy
class Uniform(Draws, _LearnsNothing):
    """Chooses every arm with the same probability and learns nothing.

    Examples
    --------
    >>> policy = Uniform(dim=2, seed=1)
    >>> policy.choose([[1.0, 2.0], [3.0, 4.0]]).probabilities.tolist()
    [0.5, 0.5]
    """

    needs = ("dim", "seed")

    def decide(self, slate: Slate) -> Choice:
        """Choose an arm uniformly at random."""
        n = slate.n_arms
        arm = int(self.stream(slate, "uniform").integers(n))
        return Choice(arm, np.zeros((3, n)), probabilities=np.full(n, 1.0 / n))


@register_policy
class SameArm(Exploits, _LearnsNothing):
    """Plays the first arm of every slate and learns nothing: in a catalogue always one item.

    Examples
    --------
    >>> SameArm(dim=2).choose([[1.0, 0.0], [0.0, float("nan")]]).arm
    0
    """

    def decide(self, slate: Slate) -> Choice:
        """Choose the first arm."""
        return Choice(0, np.zeros((3, slate.n_arms)))

    def exploit(self, slate: Slate) -> Choice:
        """Choose the first arm."""
        return self.decide(slate)
