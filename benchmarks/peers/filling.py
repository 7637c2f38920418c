"""How holes are filled in for peers: by two imputers with LinUCB, or by means of columns."""

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


def filled_by_means(slates: np.ndarray) -> np.ndarray:
    """Return slates (n_rounds, n_arms, dim) with column means instead of NaN.

    A mean is over all entries seen up to and including the slate's own round; it is zero where
    there are none.
    """
    seen = ~np.isnan(slates)
    sums = np.nan_to_num(slates).sum(axis=1).cumsum(axis=0)
    counts = seen.sum(axis=1).cumsum(axis=0)
    means = sums / np.maximum(counts, 1)
    return np.where(seen, slates, means[:, None])
