"""Items: arms that come back with equal values and equal holes, and their mean rewards."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen import archive
from halfseen.checks import LARGEST_HORIZON
from halfseen.core.factors import row_keys
from halfseen.errors import ArchiveError
from halfseen.values import LARGEST_POINT, FloatArray

MOST_ITEMS = 10_000
"""Mean rewards are kept of this many items, those played most. Others have no effect of their own:
each of their rewards counts as that of a new item."""


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
    def of(cls, table: FloatArray, counts: FloatArray, means: FloatArray, scale: float) -> "Items":
        """Return the items of different arms (n, dim), in the order of their first plays.

        If there are too many, the least played ones, and of these the latest, are left out.
        """
        keys = row_keys(table)
        kept = np.argsort(-counts, kind="stable")[:MOST_ITEMS]
        kept = kept[np.argsort(keys[kept])]
        return cls(keys[kept], counts[kept], means[kept], scale)

    def places(self, table: FloatArray) -> NDArray[np.int64]:
        """Return the position of each arm (n, dim) among the items; −1 if it is not known."""
        keys = row_keys(table)
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[places] == keys, places, -1)

    def shrunk(self, table: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return s of each arm's item, and s times the item's mean reward; 0 if not known."""
        places = self.places(table)
        counts = np.where(places >= 0, self.counts[places], 0.0)
        shares = self.scale**2 * counts / (1.0 + self.scale**2 * counts)
        return shares, shares * self.means[places]

    def scored(
        self, table: FloatArray, estimates: FloatArray, widths: FloatArray, item_width: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return estimates and widths of arms (n, dim) with the effects of their items.

        The deviation of an effect counts `item_width` times in the width.
        """
        shares, means = self.shrunk(table)
        rest = (1.0 - shares) * widths
        own = item_width * self.scale
        return (1.0 - shares) * estimates + means, np.sqrt(rest * rest + own * own * (1.0 - shares))

    def drawn(
        self,
        table: FloatArray,
        rests: FloatArray,
        random: np.random.Generator,
        item_width: float,
    ) -> FloatArray:
        """Return drawn rewards of arms minus their estimates, with drawn effects of their items."""
        shares = self.shrunk(table)[0]
        items, copies = np.unique(row_keys(table), return_inverse=True)
        effects = random.standard_normal(len(items))[copies]
        return (1.0 - shares) * rests + item_width * self.scale * np.sqrt(1.0 - shares) * effects

    def after(self, arm: FloatArray, reward: float) -> tuple["Items", float, float]:
        """Return the items after a reward, and the weight and target of the regression's sample.

        Another reward of an item makes its mean more precise. With w = n/(1 + τ²n) before and w'
        after it, the sample that adds the difference has the weight w' − w and the target
        (w'·mean' − w·mean)/(w' − w), which are computed without cancellation.
        """
        key = row_keys(arm[None, :])[0]
        place = int(np.searchsorted(self.keys, key))
        is_new = place == len(self.keys) or self.keys[place] != key
        count, mean = (0.0, 0.0) if is_new else (self.counts[place], self.means[place])
        variance = self.scale**2
        weight = 1.0 / ((1.0 + variance * count) * (1.0 + variance * (count + 1.0)))
        target = reward + variance * count * (reward - mean)
        if is_new and len(self.keys) >= MOST_ITEMS:
            return self, weight, target
        keys, counts, means = self.keys, self.counts, self.means
        if is_new:
            keys = np.insert(keys, place, key)
            counts, means = (np.insert(each, place, 0.0) for each in (counts, means))
        else:
            counts, means = counts.copy(), means.copy()
        counts[place] = count + 1.0
        means[place] = mean + (reward - mean) / (count + 1.0)
        return Items(keys, counts, means, self.scale), float(weight), float(target)

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
        keys = archive.array(state, "keys", (None,), np.uint64)
        if len(keys) == 0 or (keys[1:] <= keys[:-1]).any():
            raise ArchiveError("the keys of items must be ascending, at least one")
        counts = archive.array(state, "counts", (len(keys),), low=0.0, high=LARGEST_HORIZON)
        means = archive.array(state, "means", (len(keys),), low=-LARGEST_POINT, high=LARGEST_POINT)
        return cls(keys, counts, means, scale)
