"""Sums over the rewards of each item: what a regression needs whose coefficients differ by item."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen import archive, checks
from halfseen.errors import ArchiveError
from halfseen.values import LARGEST, LARGEST_POINT, FloatArray

MOST_ITEMS = 10_000
"""Rewards are kept by item for this many items, those played most. Others have no effect of their
own: each of their rewards counts as that of a new item."""

MOST_SUMS = 2_000_000
"""Largest number of entries in the sums of all items: with long contexts fewer items fit."""


def items_kept(n_parts: int, n_features: int) -> int:
    """Return for how many items sums are kept."""
    return max(1, min(MOST_ITEMS, MOST_SUMS // (n_parts * (n_parts + n_features + 1))))


class ItemSums(NamedTuple):
    """For each item i the sums Σ c(c, φ, r − shift)' over its rewards.

    A reward is r = φ'θ + c'δ_i + noise: the features φ have the same coefficients for all items,
    the parts c, of which the first one is 1, have others for each item.

    Attributes
    ----------
    keys : ndarray of uint64, shape (n_items,)
        Ascending.
    sums : ndarray, shape (n_items, n_parts, n_parts + n_features + 1)
    shift : float
    """

    keys: NDArray[np.uint64]
    sums: FloatArray
    shift: float

    @property
    def n_parts(self) -> int:
        """Number of coefficients that each item has."""
        return int(self.sums.shape[1])

    @property
    def counts(self) -> FloatArray:
        """Number of each item's rewards."""
        return self.sums[:, 0, 0]

    @classmethod
    def of(
        cls,
        keys: NDArray[np.uint64],
        parts: FloatArray,
        points: FloatArray,
        counts: FloatArray,
        means: FloatArray,
        shift: float,
    ) -> "ItemSums":
        """Sum up rows with an item, parts (n, n_parts), features, a number and a mean of rewards.

        >>> ones = np.ones((3, 1))
        >>> keys, means = np.array([5, 5, 2], dtype=np.uint64), np.array([1.0, 3.0, 7.0])
        >>> ItemSums.of(keys, ones, ones, np.ones(3), means, 0.0).sums[:, 0].tolist()
        [[1.0, 1.0, 7.0], [2.0, 2.0, 4.0]]
        """
        order = np.argsort(keys, kind="stable")
        different, starts = np.unique(keys[order], return_index=True)
        rows = np.column_stack([parts, points, means - shift])[order]
        weighted = (counts[:, None] * parts)[order]
        ends = [*starts[1:].tolist(), len(keys)]
        sums = np.empty((len(different), parts.shape[1], rows.shape[1]))
        for item, (start, end) in enumerate(zip(starts.tolist(), ends, strict=True)):
            sums[item] = weighted[start:end].T @ rows[start:end]
        return cls(different, sums, shift).bounded()

    def bounded(self) -> "ItemSums":
        """Return the sums of as many items as are kept, those played most."""
        n_parts = self.n_parts
        most = items_kept(n_parts, self.sums.shape[2] - n_parts - 1)
        if len(self.keys) <= most:
            return self
        kept = np.sort(np.argsort(-self.counts, kind="stable")[:most])
        return ItemSums(self.keys[kept], self.sums[kept], self.shift)

    def shifted(self, shift: float) -> "ItemSums":
        """Return the sums with rewards measured from another shift."""
        sums = self.sums.copy()
        sums[:, :, -1] += (self.shift - shift) * sums[:, :, 0]
        return ItemSums(self.keys, sums, shift)

    def plus(self, other: "ItemSums") -> "ItemSums":
        """Return the sums over the rewards of both."""
        keys, places = np.unique(np.append(self.keys, other.keys), return_inverse=True)
        sums = np.zeros((len(keys), *self.sums.shape[1:]))
        n = len(self.keys)
        sums[places[:n]] += self.sums
        sums[places[n:]] += other.shifted(self.shift).sums
        return ItemSums(keys, sums, self.shift).bounded()

    def faded(self, weight: float) -> "ItemSums":
        """Return the sums with every reward counting less."""
        return self._replace(sums=weight * self.sums)

    def carried(self, parts: FloatArray, features: FloatArray) -> "ItemSums":
        """Return the sums for other parts and features, which are linear in these.

        `parts` has shape (n_parts, new n_parts), `features` (n_features, new n_features).
        """
        k = self.n_parts
        sums = self.sums
        columns = [sums[:, :, :k] @ parts, sums[:, :, k:-1] @ features, sums[:, :, -1:]]
        return self._replace(sums=parts.T @ np.concatenate(columns, axis=2)).bounded()

    def renamed(self, old: NDArray[np.uint64], new: NDArray[np.uint64]) -> "ItemSums":
        """Return the sums with other keys where there is a new one for an old one."""
        keys = renamed_keys(self.keys, old, new)
        order = np.argsort(keys)
        return ItemSums(keys[order], self.sums[order], self.shift)

    def taken_away(self, scales: FloatArray) -> tuple[FloatArray, float]:
        """Return what items with unknown coefficients take away from Σ(φ, r)(φ, r)', and a log det.

        The coefficients δ of an item are normal with deviations (n_parts,) in units of the noise.
        With A = I + DΣcc'D and B = DΣc(φ, r)', integrating δ out leaves Σ(φ, r)(φ, r)' − B'A⁻¹B,
        and the rewards of the item have a covariance of determinant det A.
        """
        outer = scales[:, None] * self.sums[:, :, self.n_parts :]
        covariances, log_dets = self.covariances(scales)
        taken = np.tensordot(outer, covariances @ outer, axes=((0, 1), (0, 1)))
        return taken, float(log_dets.sum())

    def covariances(self, scales: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return A⁻¹, shape (n_items, n_parts, n_parts), and log det A (n_items,) of each item."""
        k = self.n_parts
        inner = scales[:, None] * self.sums[:, :, :k] * scales
        inner[:, np.arange(k), np.arange(k)] += 1.0
        try:
            factors = np.linalg.cholesky(inner)
            log_dets = 2.0 * np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
            return np.asarray(np.linalg.inv(inner)), log_dets
        except np.linalg.LinAlgError:  # carried sums may be off by rounding: clip eigenvalues at 1
            values, vectors = np.linalg.eigh(0.5 * (inner + inner.transpose(0, 2, 1)))
            values = np.maximum(values, 1.0)
            inverses = (vectors / values[:, None, :]) @ vectors.transpose(0, 2, 1)
            return inverses, np.log(values).sum(axis=1)

    def state(self) -> dict[str, Any]:
        """Return everything as numbers and arrays."""
        return dict(self._asdict())

    @classmethod
    def restored(cls, state: dict[str, Any], n_parts: int, n_features: int) -> "ItemSums":
        """Return the sums that `state` described."""
        keys = restored_keys(state)
        shape = (len(keys), n_parts, n_parts + n_features + 1)
        sums = archive.array(state, "sums", shape, low=-(LARGEST_POINT**2), high=LARGEST_POINT**2)
        return cls(keys, sums, checks.real("shift", state["shift"], -LARGEST, LARGEST))


def renamed_keys(
    keys: NDArray[np.uint64], old: NDArray[np.uint64], new: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    """Return keys with the new one in place of each old one; others stay."""
    pairs = dict(zip(old.tolist(), new.tolist(), strict=True))
    return np.array([pairs.get(key, key) for key in keys.tolist()], dtype=np.uint64)


def restored_keys(state: dict[str, Any]) -> NDArray[np.uint64]:
    """Return the keys of saved items after checking that they ascend."""
    keys = archive.array(state, "keys", (None,), np.uint64)
    if (keys[1:] <= keys[:-1]).any():
        raise ArchiveError("the keys of items must be ascending")
    return keys


def rooted(gram: FloatArray, share: float) -> tuple[FloatArray, FloatArray, float]:
    """Return rows and targets whose products are a Gram matrix, and the squares they lack.

    The last row and column of the matrix belong to the targets. With the rest VΛV', the rows are
    Λ^½V' and the targets Λ^-½V'g. Eigenvalues below a share of the largest are rounding.
    """
    values, vectors = np.linalg.eigh(gram[:-1, :-1])
    real = values > share * values.max(initial=0.0)
    roots, vectors = np.sqrt(values[real]), vectors[:, real]
    short = (vectors.T @ gram[:-1, -1]) / roots
    rest = max(0.0, float(gram[-1, -1]) - float(short @ short))
    return roots[:, None] * vectors.T, short, rest if math.isfinite(rest) else 0.0
