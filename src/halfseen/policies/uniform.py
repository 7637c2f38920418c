"""A policy that looks at nothing."""

from typing import Any

import numpy as np

from halfseen import checks
from halfseen.policies.base import Note, Policy
from halfseen.policies.registry import register
from halfseen.seeding import stream
from halfseen.values import Decision, Slate


@register
class Uniform(Policy):
    """Chooses every arm with the same probability and learns nothing.

    Parameters
    ----------
    dim : int
    seed : int
        Names the stream of random numbers.
    """

    told = ("dim", "seed")

    def __init__(self, *, dim: int, seed: int = 0, max_open: int = 10_000) -> None:
        super().__init__(dim=dim, max_open=max_open)
        self.seed = checks.integer("seed", seed, 0)
        self._random = stream(self.seed, "uniform")

    def settings(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain JSON types."""
        return {"dim": self.dim, "seed": self.seed, "max_open": self.max_open}

    def _choose(self, slate: Slate) -> Decision:
        arm = int(self._random.integers(slate.n_arms))
        return self._answer(slate, arm, np.zeros((3, slate.n_arms)))

    def _learn(self, note: Note, reward: float) -> None:
        pass

    def _state(self) -> dict[str, Any]:
        return {"random": self._random.bit_generator.state}

    def _restore(self, state: dict[str, Any]) -> None:
        self._random.bit_generator.state = state["random"]
