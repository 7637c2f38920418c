"""Items: arms that return, each with coefficients δ̄_i ~ N(0, I) that are integrated out.

A reward of item i is r = φ'θ̄ + c'δ̄_i + noise, in units of the noise; φ and c come times their
scales. The first entry of c is constant: the item's effect. With A_i = I + Σcc', B_i = Σcφ' and
s_i = Σcr over its rewards (`regression`), δ̄_i given θ̄ has the mean A_i⁻¹(s_i − B_iθ̄) and the
covariance A_i⁻¹. So the reward of an arm of item i is

    φ̃'θ̄ + c'A_i⁻¹s_i + a rest of variance c'A_i⁻¹c,   φ̃ = φ − B_i'A_i⁻¹c,

and a further reward adds the sample (φ̃, r − c'A_i⁻¹s_i)/√(1 + c'A_i⁻¹c) to the regression of θ̄.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from halfseen.factors.rows import Keys
from halfseen.lazy import LazyModule
from halfseen.values import FloatArray

_kernels = LazyModule("halfseen.kernels.arm_features")

MOST_ITEMS = 10_000
"""Rewards are kept by item for this many items, those played most. Others have no coefficients: a
refit takes their δ_i to be 0, and a reward between refits counts as that of a new item."""

MOST_SUMS = 2_000_000
"""Largest number of entries in the sums of all items: with long contexts fewer items fit."""

_FIRST_SIZE = 16


def items_kept(n_columns: int, n_features: int) -> int:
    """Return for how many items sums are kept."""
    return max(1, min(MOST_ITEMS, MOST_SUMS // (max(1, n_columns) * (n_columns + n_features + 1))))


class ItemPosterior(NamedTuple):
    """What is known of the coefficients δ̄ of one item, given θ̄.

    Attributes
    ----------
    covariance : ndarray, shape (n_columns, n_columns)
        A⁻¹.
    sums : ndarray, shape (n_columns, n_features + 1)
        The columns of B, then s: Σc(φ, r)'.
    """

    covariance: FloatArray
    sums: FloatArray

    def updated(self, c: FloatArray, phi: FloatArray, target: float) -> "ItemPosterior":
        """Return the posterior after one more reward, by the Sherman–Morrison formula."""
        gain = self.covariance @ c
        grown = 1.0 + max(0.0, float(c @ gain))
        covariance = self.covariance - gain[:, None] * (gain / grown)
        sums = self.sums.copy()
        sums[:, :-1] += c[:, None] * phi
        sums[:, -1] += target * c
        return ItemPosterior(covariance, sums)


class Items:
    """What is known of the coefficients of each item.

    Without columns of c nothing is kept. Forks share the memory, and only one of them may write to
    it: the latest reward waits in `_waiting` until a later call shows which fork continues.

    Parameters
    ----------
    n_columns, n_features : int
    """

    __slots__ = ("_indices", "_posteriors", "_waiting", "n_columns", "n_features")

    def __init__(self, n_columns: int, n_features: int) -> None:
        self.n_columns, self.n_features = n_columns, n_features
        self._indices: dict[int, int] = {}
        self._posteriors = _allocated(0, n_columns, n_features)
        self._waiting: tuple[int, ItemPosterior] | None = None

    @classmethod
    def of(cls, keys: Keys, stacked: ItemPosterior) -> "Items":
        """Return items with stacked posteriors."""
        items = cls(stacked.sums.shape[1], stacked.sums.shape[2] - 1)
        items._indices = {key: index for index, key in enumerate(keys.tolist())}
        items._posteriors = ItemPosterior(*(np.ascontiguousarray(each) for each in stacked))
        return items

    def __len__(self) -> int:
        self._settle()
        return len(self._indices)

    def fork(self) -> "Items":
        """Return a copy that continues in place of this one, which must not be changed any more."""
        fork = object.__new__(Items)
        fork.n_columns, fork.n_features = self.n_columns, self.n_features
        fork._indices, fork._posteriors = self._indices, self._posteriors
        fork._waiting = self._waiting
        return fork

    def copied(self) -> "Items":
        """Return an independent copy."""
        self._settle()
        copy = self.fork()
        copy._indices = dict(self._indices)
        copy._posteriors = ItemPosterior(*(each.copy() for each in self._posteriors))
        return copy

    def conditioned(
        self, keys: Keys, c: FloatArray, phi: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return φ̃, means c'A⁻¹s and variances c'A⁻¹c of arms, given what their items paid.

        φ̃ overwrites φ in `phi`.
        """
        self._settle()
        means, variances = np.zeros(len(phi)), np.empty(len(phi))
        get, (covariances, sums) = self._indices.get, self._posteriors
        places = np.array([get(key, -1) for key in keys.tolist()], dtype=np.int64)
        _kernels.condition(covariances, sums, places, c, phi, means, variances)
        return phi, means, variances

    def coefficients(self, keys: Keys, theta: FloatArray) -> FloatArray:
        """Return the posterior mean of each item's δ̄, shape (n, n_columns)."""
        covariances, sums = self.of_each(keys)
        residuals = sums[:, :, -1] - sums[:, :, :-1] @ theta
        return np.asarray((covariances @ residuals[:, :, None])[:, :, 0])

    def update(
        self, key: int, c: FloatArray, phi: FloatArray, target: float
    ) -> tuple[FloatArray, float]:
        """Learn a reward; return the sample that it adds to the regression of θ̄."""
        self._settle()
        posterior = self._one(key)
        gain = posterior.covariance @ c
        known = gain @ posterior.sums
        root = math.sqrt(1.0 + max(0.0, float(gain @ c)))
        if key in self._indices or len(self._indices) < items_kept(self.n_columns, self.n_features):
            self._waiting = key, posterior.updated(c, phi, target)
        return (phi - known[:-1]) / root, float(target - known[-1]) / root

    def sorted(self) -> tuple[Keys, ItemPosterior]:
        """Return the keys of all items, ascending, and their posteriors."""
        self._settle()
        keys = np.array(sorted(self._indices), dtype=np.uint64)
        indices = [self._indices[key] for key in keys.tolist()]
        return keys, ItemPosterior(*(each[indices] for each in self._posteriors))

    def _settle(self) -> None:
        """Write the waiting posterior; harmless if repeated."""
        if self._waiting is None:
            return
        key, posterior = self._waiting
        index = self._indices.setdefault(key, len(self._indices))
        if index == len(self._posteriors.sums):
            wider = _allocated(2 * index, self.n_columns, self.n_features)
            for new, old in zip(wider, self._posteriors, strict=True):
                new[:index] = old
            self._posteriors = wider
        for column, value in zip(self._posteriors, posterior, strict=True):
            column[index] = value
        self._waiting = None

    def _one(self, key: int) -> ItemPosterior:
        if key not in self._indices:
            k = self.n_columns
            return ItemPosterior(np.eye(k), np.zeros((k, self.n_features + 1)))
        return ItemPosterior(*(each[self._indices[key]] for each in self._posteriors))

    def of_each(self, keys: Keys) -> ItemPosterior:
        """Return the posteriors of arms, stacked; the prior for an item that is not known."""
        self._settle()
        return ItemPosterior(
            *(np.stack(each) for each in zip(*map(self._one, keys.tolist()), strict=True))
        )


def _allocated(n: int, n_columns: int, n_features: int) -> Any:
    n = max(_FIRST_SIZE, n)
    return ItemPosterior(
        np.zeros((n, n_columns, n_columns)), np.zeros((n, n_columns, n_features + 1))
    )
