"""Items: arms that come back with equal values and equal holes, and their mean rewards."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen import archive
from halfseen.checks import LARGEST_HORIZON
from halfseen.core.item_coefficients import Adjusted
from halfseen.core.item_sums import MOST_ITEMS, restored_keys
from halfseen.errors import ArchiveError
from halfseen.values import LARGEST_POINT, FloatArray


class Items(NamedTuple):
    """How often each known item was played, and what it paid on average.

    With θ known, the effect u of an item that was played n times has the posterior mean
    s·(mean reward − φ'θ) with s = τ²n/(1 + τ²n), and variance σ²τ²(1 − s). Rewards are in units of
    σ.

    Attributes
    ----------
    keys : ndarray of uint64, shape (n_items,)
        Ascending.
    counts, means : ndarray, shape (n_items,)
    scale : float
        τ; with 0, items have no effects.
    """

    keys: NDArray[np.uint64]
    counts: FloatArray
    means: FloatArray
    scale: float

    @classmethod
    def of(
        cls, keys: NDArray[np.uint64], counts: FloatArray, means: FloatArray, scale: float
    ) -> "Items":
        """Return different items in the order of their first plays.

        If there are too many, the least played ones, and of these the latest, are left out.
        """
        kept = np.argsort(-counts, kind="stable")[:MOST_ITEMS]
        kept = kept[np.argsort(keys[kept])]
        return cls(keys[kept], counts[kept], means[kept], scale)

    def adjusted(self, keys: NDArray[np.uint64], parts: FloatArray, points: FloatArray) -> Adjusted:
        """Return arms with keys and features, given what their items paid."""
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        counts = np.where(self.keys[places] == keys, self.counts[places], 0.0)
        variance = self.scale**2
        rests = 1.0 / (1.0 + variance * counts)
        offsets = variance * counts * rests * self.means[places]
        return Adjusted(rests[:, None] * points, offsets, variance * rests)

    def after(
        self, key: int, part: FloatArray, point: FloatArray, target: float
    ) -> tuple["Items", FloatArray, float]:
        """Return the items after a reward, and the sample that it adds to the regression.

        Another reward of an item makes its mean more precise. With w = n/(1 + τ²n) before and w'
        after it, the sample that adds the difference has the weight w' − w and the target
        (w'·mean' − w·mean)/(w' − w), which are computed without cancellation.
        """
        place = int(np.searchsorted(self.keys, np.uint64(key)))
        is_new = place == len(self.keys) or self.keys[place] != key
        count, mean = (0.0, 0.0) if is_new else (self.counts[place], self.means[place])
        variance = self.scale**2
        weight = 1.0 / ((1.0 + variance * count) * (1.0 + variance * (count + 1.0)))
        root = math.sqrt(weight)
        sample, rest = root * point, root * float(target + variance * count * (target - mean))
        if is_new and len(self.keys) >= MOST_ITEMS:
            return self, sample, rest
        keys, counts, means = self.keys, self.counts, self.means
        if is_new:
            keys = np.insert(keys, place, np.uint64(key))
            counts, means = (np.insert(each, place, 0.0) for each in (counts, means))
        else:
            counts, means = counts.copy(), means.copy()
        counts[place] = count + 1.0
        means[place] = mean + (target - mean) / (count + 1.0)
        return Items(keys, counts, means, self.scale), sample, rest

    def left(self, keys: NDArray[np.uint64], parts: FloatArray) -> FloatArray:
        """Return which share of a feature of arms counts beside their items' rewards, (n,)."""
        ones = np.ones((len(keys), 1))
        return self.adjusted(keys, ones, ones).points[:, 0]

    def information(self) -> float:
        """Return the sum of log(1 + τ²n) over all items."""
        return float(np.log1p(self.scale**2 * self.counts).sum())

    def renamed(self, old: NDArray[np.uint64], new: NDArray[np.uint64]) -> "Items":
        """Return the items with other keys; those without a new one are left out."""
        found = {key: place for place, key in enumerate(self.keys.tolist())}
        pairs = dict(zip(old.tolist(), new.tolist(), strict=True))
        kept = sorted((pairs[key], place) for key, place in found.items() if key in pairs)
        places = [place for _, place in kept]
        keys = np.array([key for key, _ in kept], dtype=np.uint64)
        return Items(keys, self.counts[places], self.means[places], self.scale)

    def state(self) -> dict[str, Any]:
        """Return keys, counts and means."""
        return {"keys": self.keys, "counts": self.counts, "means": self.means}

    @classmethod
    def restored(cls, state: dict[str, Any], scale: float) -> "Items":
        """Return the items that `state` described."""
        keys = restored_keys(state)
        if len(keys) == 0:
            raise ArchiveError("there must be at least one item")
        counts = archive.array(state, "counts", (len(keys),), low=0.0, high=LARGEST_HORIZON)
        means = archive.array(state, "means", (len(keys),), low=-LARGEST_POINT, high=LARGEST_POINT)
        return cls(keys, counts, means, scale)
