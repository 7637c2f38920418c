"""Items: arms that return, each with coefficients d_i ~ N(0, σ²I) that are integrated out.

A reward of item i is r = φ'a + c'd_i + noise of variance σ²; φ and c come times their scales. The
first entry of c is constant: the item's effect. With A_i = I + Σcc', B_i = Σcφ' and s_i = Σcr over
its rewards (`regression`), d_i given a has the mean A_i⁻¹(s_i − B_i a) and the covariance σ²A_i⁻¹.
So the reward of an arm of item i is

    φ̃'a + c'A_i⁻¹s_i + a rest of variance σ²c'A_i⁻¹c,   φ̃ = φ − B_i'A_i⁻¹c,

and a further reward adds the sample (φ̃, r − c'A_i⁻¹s_i)/√(1 + c'A_i⁻¹c) to the regression of a.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.lazy import LazyModule
from halfseen.linear.versions import Entries, Version
from halfseen.values import FloatArray
from halfseen.values.rows import Keys

_arm_features = LazyModule("halfseen.kernels.arm_features")

MOST_ITEMS = 10_000
"""Rewards are kept by item for this many items, those played most. Others have no coefficients: a
refit takes their δ_i to be 0, and a reward between refits counts as that of a new item."""

MOST_SUMS = 2_000_000
"""Largest number of entries in the sums of all items: with long contexts fewer items fit."""


def items_kept(n_columns: int, n_features: int) -> int:
    """Return for how many items sums are kept."""
    return max(1, min(MOST_ITEMS, MOST_SUMS // (max(1, n_columns) * (n_columns + n_features + 1))))


class ItemPosterior(NamedTuple):
    """What is known of the coefficients d of an item, given a; or of several items, stacked.

    Attributes
    ----------
    covariance : ndarray, shape (n_columns, n_columns)
        A⁻¹.
    sums : ndarray, shape (n_columns, n_features + 1)
        The columns of B, then s: Σc(φ, r)'.
    """

    covariance: FloatArray
    sums: FloatArray


class Items:
    """What is known of the coefficients of each item.

    An item without rewards has the first place of the memory, that of the prior.

    Parameters
    ----------
    keys : ndarray of uint64, shape (n_items,)
    posteriors : ItemPosterior
        Stacked, in the order of keys.
    """

    __slots__ = ("_places", "_posteriors")

    def __init__(self, keys: Keys, posteriors: ItemPosterior) -> None:
        self._places = Entries({key: place for place, key in enumerate(keys.tolist(), 1)})
        n_columns, n_sums = posteriors.sums.shape[1:]
        prior = ItemPosterior(np.eye(n_columns), np.zeros((n_columns, n_sums)))
        self._posteriors = Version(
            *(
                np.ascontiguousarray(np.concatenate([first[None], each]))
                for first, each in zip(prior, posteriors, strict=True)
            )
        )

    @classmethod
    def unknown(cls, n_columns: int, n_features: int) -> "Items":
        """Return items without rewards."""
        nothing = np.zeros((0, n_columns, n_columns)), np.zeros((0, n_columns, n_features + 1))
        return cls(np.empty(0, dtype=np.uint64), ItemPosterior(*nothing))

    def __len__(self) -> int:
        return len(self._places.now)

    def fork(self) -> "Items":
        """Return an independent copy."""
        fork = object.__new__(Items)
        fork._places, fork._posteriors = self._places, self._posteriors
        return fork

    def sorted(self) -> tuple[Keys, ItemPosterior]:
        """Return the keys of all items, ascending, and their posteriors."""
        keys = np.array(sorted(self._places.now), dtype=np.uint64)
        return keys, self.of_each(keys)

    def of_each(self, keys: Keys) -> ItemPosterior:
        """Return the posteriors of arms, stacked."""
        places = self._places_of(keys)
        return ItemPosterior(*(each[places] for each in self._posteriors.columns))

    def conditioned(
        self, keys: Keys, c: FloatArray, phi: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return φ̃, means c'A⁻¹s and variances c'A⁻¹c of arms, given what their items paid.

        φ̃ overwrites φ in `phi`.
        """
        places, means, variances = self._places_of(keys), np.zeros(len(phi)), np.empty(len(phi))
        _arm_features.condition(*self._posteriors.columns, places, c, phi, means, variances)
        return phi, means, variances

    def coefficients(self, keys: Keys, a: FloatArray) -> FloatArray:
        """Return the posterior mean of each item's d given a, shape (n, n_columns)."""
        covariances, sums = self.of_each(keys)
        residuals = sums[:, :, -1] - sums[:, :, :-1] @ a
        return np.asarray((covariances @ residuals[:, :, None])[:, :, 0])

    def update(
        self, key: int, c: FloatArray, phi: FloatArray, target: float
    ) -> tuple[FloatArray, float]:
        """Learn a reward; return the sample that it adds to the regression of a."""
        known, (covariances, all_sums) = self._places.now, self._posteriors.columns
        place, row = known.get(key, 0), np.append(phi, target)
        covariance, sums = covariances[place], all_sums[place]
        gain = covariance @ c
        grown = 1.0 + max(0.0, float(gain @ c))
        sample = (row - gain @ sums) / math.sqrt(grown)
        if place or len(known) < items_kept(len(c), len(phi)):
            covariance = covariance - gain[:, None] * (gain / grown)  # Sherman–Morrison
            self._keep(key, place, ItemPosterior(covariance, sums + c[:, None] * row))
        return sample[:-1], float(sample[-1])

    def _keep(self, key: int, place: int, posterior: ItemPosterior) -> None:
        """Write the posterior of an item; the place is 0 if it is new."""
        is_new, posteriors = place == 0, self._posteriors
        if is_new:
            place = len(self) + 1
            self._places = self._places.plus(key, place)
        if place == len(posteriors.columns[1]):
            posteriors = Version(
                *(np.concatenate([each, np.zeros_like(each)]) for each in posteriors.columns)
            )
        self._posteriors = posteriors.written(place, posterior, is_new=is_new)

    def _places_of(self, keys: Keys) -> NDArray[np.int64]:
        get = self._places.now.get
        return np.array([get(key, 0) for key in keys.tolist()], dtype=np.int64)
