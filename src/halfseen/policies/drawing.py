"""Policies with a random stream that goes on from round to round."""

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import numpy as np

from halfseen.params import integer
from halfseen.policies.base import Policy
from halfseen.seeding import stream
from halfseen.state import Maybe, RandomState

T = TypeVar("T")


class Drawing(Policy):
    """Draws from one stream, whose state is saved; a failed choice draws nothing."""

    STATE: ClassVar = {"_random_state": Maybe(RandomState())}

    seed: int = integer(default=0, low=0, doc="Names the stream of random numbers.")

    _random: np.random.Generator | None = None
    _random_state: dict[str, Any] | None = None  # before the first draw

    def _drawn(self, name: str, draw: Callable[[np.random.Generator], T]) -> T:
        """Return what a function draws from the stream of a name."""
        if self._key:
            return draw(self._stream(name))
        if self._random is None:
            self._random = stream(self.seed, name)
        bits = self._random.bit_generator
        if self._random_state is not None:
            bits.state = self._random_state  # an earlier draw may have been undone
        drawn = draw(self._random)
        self._random_state = dict(bits.state)
        return drawn
