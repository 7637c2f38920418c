"""What the two imputers share: fill in, then choose as LinUCB does."""

import numpy as np

from benchmarks.yardstick import PlainOful

FIRST_FIT = 30


class FillingPlayer:
    """Fits an imputer at rounds 30, 60, 120, … on all slates so far, and plays what it fills in.

    Until the first fit zeros are filled in. Subclasses have `fit(rows)` and `fill(rows)`.
    """

    def __init__(self, n_arms: int, dim: int) -> None:
        self.policy = PlainOful(dim, 1.0, 0.05, 1.0, 0.05)
        self.slates: list[np.ndarray] = []
        self.next_fit = FIRST_FIT
        self.fitted = False

    def choose(self, options) -> int:
        if len(self.slates) == self.next_fit:
            self.fit(np.vstack(self.slates))
            self.fitted = True
            self.next_fit *= 2
        self.slates.append(options)
        self.filled = self.fill(options) if self.fitted else np.nan_to_num(options)
        return self.policy.choose(self.filled)

    def learn(self, options, arm: int, reward: float) -> None:
        self.policy.learn(self.filled[arm], reward)
