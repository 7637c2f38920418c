"""Items with coefficients of their own: their effect, and what a context changes for them."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen import archive
from halfseen.core.item_sums import ItemSums, items_kept, renamed_keys, restored_keys
from halfseen.values import LARGEST_POINT, FloatArray

# Items whose blocks are copied at once: with all of a large slate they might not fit in memory.
_AT_ONCE = 256
# Entries of a covariance may exceed 1 by so much.
_ROUNDING = 1e-6


class Adjusted(NamedTuple):
    """Arms whose items are known: reward = points'θ + offset + a rest of the item's own.

    Attributes
    ----------
    points : ndarray, shape (n, n_features)
    offsets, variances : ndarray, shape (n,)
        In units of the noise; the variance is that of the rest, with θ known.
    """

    points: FloatArray
    offsets: FloatArray
    variances: FloatArray


class Block(NamedTuple):
    """What is known of one item.

    Attributes
    ----------
    covariance : ndarray, shape (n_parts, n_parts)
        A⁻¹ with A = I + Σcc', the covariance of δ with θ known.
    sums : ndarray, shape (n_parts, n_features + 1)
        Σc(φ, r)'.
    log_det : float
        log det A.
    """

    covariance: FloatArray
    sums: FloatArray
    log_det: float

    def after(self, part: FloatArray, point: FloatArray, target: float) -> "Block":
        """Return the block after one more reward, by the formula of Sherman and Morrison."""
        moved = self.covariance @ part
        grown = 1.0 + max(0.0, float(part @ moved))
        covariance = self.covariance - np.outer(moved, moved) / grown
        sums = self.sums + np.outer(part, np.append(point, target))
        return Block(covariance, sums, self.log_det + math.log(grown))


class ItemCoefficients:
    """Rewards r = φ'θ + c'δ_i + noise, where each item i has coefficients δ_i of its own.

    δ_i is standard normal, in units of the noise: parts c come times their scales. With θ known,
    δ_i has the posterior mean A⁻¹(Σcr − Σcφ'θ), so an arm's reward is (φ − Σφc'A⁻¹c)'θ + c'A⁻¹Σcr
    plus a rest of variance c'A⁻¹c. A new reward of the item is a sample of the same form for θ,
    with the variance 1 + c'A⁻¹c. All of this is exact.

    Attributes
    ----------
    blocks : dict
        By key; never changed in place.
    scales : ndarray, shape (n_parts,)
        By which parts are multiplied.
    n_features : int
    """

    __slots__ = ("_nothing", "blocks", "n_features", "scales")

    def __init__(self, blocks: dict[int, Block], scales: FloatArray, n_features: int) -> None:
        self.blocks, self.scales, self.n_features = blocks, scales, n_features
        k = len(scales)
        self._nothing = Block(np.eye(k), np.zeros((k, n_features + 1)), 0.0)

    @classmethod
    def of(cls, sums: ItemSums, scales: FloatArray) -> "ItemCoefficients":
        """Return the items of some sums, in units of the noise."""
        k = sums.n_parts
        covariances, log_dets = sums.covariances(scales)
        outer = scales[:, None] * sums.sums[:, :, k:]
        pairs = zip(sums.keys.tolist(), covariances, outer, log_dets.tolist(), strict=True)
        blocks = {key: Block(*block) for key, *block in pairs}
        return cls(blocks, scales, sums.sums.shape[2] - k - 1)

    def _found(self, keys: NDArray[np.uint64]) -> list[Block]:
        return [self.blocks.get(key, self._nothing) for key in keys.tolist()]

    def adjusted(self, keys: NDArray[np.uint64], parts: FloatArray, points: FloatArray) -> Adjusted:
        """Return arms with keys, parts (n, n_parts) and features, given what their items paid."""
        found, scaled = self._found(keys), parts * self.scales
        left, offsets = points.copy(), np.zeros(len(points))
        variances = (scaled * scaled).sum(axis=1)  # of items of which nothing is known
        known = [place for place, block in enumerate(found) if block is not self._nothing]
        for start in range(0, len(known), _AT_ONCE):
            some = known[start : start + _AT_ONCE]
            covariances = np.stack([found[place].covariance for place in some])
            sums = np.stack([found[place].sums for place in some])
            moved = np.matmul(covariances, scaled[some][:, :, None])[:, :, 0]
            expected = np.matmul(moved[:, None, :], sums)[:, 0]
            left[some] -= expected[:, :-1]
            offsets[some] = expected[:, -1]
            variances[some] = np.maximum((moved * scaled[some]).sum(axis=1), 0.0)
        return Adjusted(left, offsets, variances)

    def left(self, keys: NDArray[np.uint64], parts: FloatArray) -> FloatArray:
        """Return which share of a feature of arms counts beside their items' rewards, shape (n,).

        For a feature that never changes this is 1 − c'A⁻¹Σc, which is (A⁻¹c)₁/c₁ as c₁ is constant.
        """
        scaled = parts * self.scales
        pairs = zip(self._found(keys), scaled, strict=True)
        moved = [float(block.covariance[0] @ part) for block, part in pairs]
        return np.clip(np.array(moved) / scaled[:, 0], 0.0, 1.0)

    def coefficients(self, keys: NDArray[np.uint64], theta: FloatArray) -> FloatArray:
        """Return the posterior means of each item's δ, times the scales, shape (n, n_parts)."""
        found = self._found(keys)
        rests = [block.sums[:, -1] - block.sums[:, :-1] @ theta for block in found]
        each = [block.covariance @ rest for block, rest in zip(found, rests, strict=True)]
        return np.array(each) * self.scales

    def after(
        self, key: int, part: FloatArray, point: FloatArray, target: float
    ) -> tuple["ItemCoefficients", FloatArray, float]:
        """Return the items after a reward, and the sample that it adds to the regression of θ."""
        block, scaled = self.blocks.get(key, self._nothing), part * self.scales
        moved = block.covariance @ scaled
        known = moved @ block.sums
        root = math.sqrt(1.0 + max(0.0, float(moved @ scaled)))
        sample, rest = (point - known[:-1]) / root, float(target - known[-1]) / root
        most = items_kept(len(self.scales), self.n_features)
        if key not in self.blocks and len(self.blocks) >= most:
            return self, sample, rest
        blocks = self.blocks | {key: block.after(scaled, point, target)}
        return ItemCoefficients(blocks, self.scales, self.n_features), sample, rest

    def information(self) -> float:
        """Return log det of all A, whatever their order."""
        return math.fsum(each.log_det for each in self.blocks.values())

    def widened(
        self,
        scales: FloatArray,
        parts: NDArray[np.int64],
        places: NDArray[np.int64],
        n_features: int,
        old: NDArray[np.uint64],
        new: NDArray[np.uint64],
    ) -> "ItemCoefficients":
        """Return the items with more parts and features, which no reward has used.

        `parts` and `places` say where the present parts and features are among them; `old` and
        `new` are keys of items without and with these features.
        """
        k, keys = len(scales), renamed_keys(np.array(list(self.blocks), np.uint64), old, new)
        blocks = {}
        for key, block in zip(keys.tolist(), self.blocks.values(), strict=True):
            covariance, sums = np.eye(k), np.zeros((k, n_features + 1))
            covariance[np.ix_(parts, parts)] = block.covariance
            sums[np.ix_(parts, np.append(places, n_features))] = block.sums
            blocks[key] = Block(covariance, sums, block.log_det)
        return ItemCoefficients(blocks, scales, n_features)

    def state(self) -> dict[str, Any]:
        """Return keys, covariances and sums."""
        order = sorted(self.blocks)
        k = len(self.scales)
        return {
            "keys": np.array(order, dtype=np.uint64),
            "covariances": np.array([self.blocks[key].covariance for key in order]).reshape(
                len(order), k, k
            ),
            "sums": np.array([self.blocks[key].sums for key in order]).reshape(
                len(order), k, self.n_features + 1
            ),
            "log_dets": np.array([self.blocks[key].log_det for key in order]),
        }

    @classmethod
    def restored(
        cls, state: dict[str, Any], scales: FloatArray, n_features: int
    ) -> "ItemCoefficients":
        """Return the items that `state` described."""
        keys, k = restored_keys(state), len(scales)
        largest = 1.0 + _ROUNDING
        shape: tuple[int, ...] = (len(keys), k, k)
        covariances = archive.array(state, "covariances", shape, low=-largest, high=largest)
        log_dets = archive.array(state, "log_dets", (len(keys),), low=-_ROUNDING, high=1e9)
        limit = LARGEST_POINT**2
        shape = (len(keys), k, n_features + 1)
        sums = archive.array(state, "sums", shape, low=-limit, high=limit)
        pairs = zip(keys.tolist(), covariances, sums, log_dets.tolist(), strict=True)
        return cls({key: Block(*each) for key, *each in pairs}, scales, n_features)
