"""Items: arms that come back, each with coefficients δ_i ~ N(0, I) of its own, integrated out.

A reward of item i is r = φ'θ + c'δ_i + noise, in units of the noise; c comes times its scales, and
its first entry is constant: the item's effect. Of each item these sums suffice:

    A_i = I + Σcc',   Σcφ',   Σcr.

With θ known, δ_i has mean A_i⁻¹(Σcr − Σcφ'θ) and covariance A_i⁻¹. So the reward of an arm of item
i is (φ − Σφc'A_i⁻¹c)'θ + c'A_i⁻¹Σcr plus a rest of variance c'A_i⁻¹c: a sample for θ of the same
form as a reward without items.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from halfseen.errors import ArchiveError
from halfseen.factors.rows import Keys
from halfseen.lazy import LazyModule
from halfseen.state import Array, Real, Sizes, Value
from halfseen.values import LARGEST, LARGEST_POINT, FloatArray

_kernels = LazyModule("halfseen.kernels.arm_features")

MOST_ITEMS = 10_000
"""Rewards are kept by item for this many items, those played most. Others have no coefficients:
each of their rewards counts as that of a new item."""

MOST_SUMS = 2_000_000
"""Largest number of entries in the sums of all items: with long contexts fewer items fit."""

_FIRST_ROOM = 16
_ROUNDING = 1e-6


def items_kept(n_parts: int, n_features: int) -> int:
    """Return for how many items sums are kept."""
    return max(1, min(MOST_ITEMS, MOST_SUMS // (max(1, n_parts) * (n_parts + n_features + 1))))


class ItemSums(NamedTuple):
    """For each item i the sums Σ c(c, φ, r − shift)' over its rewards, without scales.

    Attributes
    ----------
    keys : ndarray of uint64, shape (n_items,)
        Ascending.
    sums : ndarray, shape (n_items, n_parts, n_parts + n_features + 1)
        With 0 parts there are no items.
    shift : float
    """

    keys: Keys
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
        keys: Keys,
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
        k, n_columns = parts.shape[1], parts.shape[1] + points.shape[1] + 1
        if k == 0:
            return cls(np.empty(0, dtype=np.uint64), np.empty((0, 0, n_columns)), shift)
        order = np.argsort(keys, kind="stable")
        different, starts = np.unique(keys[order], return_index=True)
        rows = np.column_stack([parts, points, means - shift])[order]
        weighted = (counts[:, None] * parts)[order]
        ends = [*starts[1:].tolist(), len(keys)]
        sums = np.empty((len(different), k, n_columns))
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
        if self.n_parts:
            sums[:, :, -1] += (self.shift - shift) * sums[:, :, 0]
        return ItemSums(self.keys, sums, shift)

    def plus(self, other: "ItemSums") -> "ItemSums":
        """Return the sums over the rewards of both; those with other parts are given up."""
        if other.n_parts != self.n_parts or not len(other.keys):
            return self
        keys, places = np.unique(np.append(self.keys, other.keys), return_inverse=True)
        sums = np.zeros((len(keys), *self.sums.shape[1:]))
        n = len(self.keys)
        sums[places[:n]] += self.sums
        sums[places[n:]] += other.shifted(self.shift).sums
        return ItemSums(keys, sums, self.shift).bounded()

    def decayed(self, weight: float) -> "ItemSums":
        """Return the sums with every reward counting less."""
        return self._replace(sums=weight * self.sums)

    def projected(self, parts: FloatArray, features: FloatArray) -> "ItemSums":
        """Return the sums for other parts and features, which are linear in these.

        `parts` has shape (n_parts, new n_parts), `features` (n_features, new n_features).
        """
        k, sums = self.n_parts, self.sums
        columns = [sums[:, :, :k] @ parts, sums[:, :, k:-1] @ features, sums[:, :, -1:]]
        projected = parts.T @ np.concatenate(columns, axis=2)
        if k == 0 or projected.shape[1] == 0:
            shape = (0, *projected.shape[1:])
            return ItemSums(np.empty(0, dtype=np.uint64), np.empty(shape), self.shift)
        return self._replace(sums=projected).bounded()

    def renamed(self, old: Keys, new: Keys) -> "ItemSums":
        """Return the sums with other keys where there is a new one for an old one."""
        keys = renamed_keys(self.keys, old, new)
        order = np.argsort(keys)
        return ItemSums(keys[order], self.sums[order], self.shift)


def renamed_keys(keys: Keys, old: Keys, new: Keys) -> Keys:
    """Return keys with the new one in place of each old one; others stay."""
    pairs = dict(zip(old.tolist(), new.tolist(), strict=True))
    return np.array([pairs.get(key, key) for key in keys.tolist()], dtype=np.uint64)


class _AscendingKeys:
    """The field of the keys of items."""

    def dump(self, value: Keys) -> Keys:
        """Return a copy."""
        return np.array(value)

    def load(self, name: str, plain: Any, sizes: Sizes) -> Keys:
        """Return a copy after checking that keys ascend."""
        keys: Keys = Array((None,), np.uint64).load(name, plain, sizes)
        if (keys[1:] <= keys[:-1]).any():
            raise ArchiveError("the keys of items must be ascending")
        return keys


ITEM_SUMS = Value(
    ItemSums,
    keys=_AscendingKeys(),
    sums=Array((None, None, None), low=-(LARGEST_POINT**2), high=LARGEST_POINT**2),
    shift=Real(-LARGEST, LARGEST),
)
"""The field of sums."""


class Block(NamedTuple):
    """What is known of one item.

    Attributes
    ----------
    covariance : ndarray, shape (n_parts, n_parts)
        A⁻¹.
    sums : ndarray, shape (n_parts, n_features + 1)
        Σc(φ, r)'.
    log_det : float, or ndarray if blocks are stacked
        log det A.
    """

    covariance: FloatArray
    sums: FloatArray
    log_det: Any

    def after(self, part: FloatArray, point: FloatArray, target: float) -> "Block":
        """Return the block after one more reward, by the Sherman–Morrison formula."""
        moved = self.covariance @ part
        grown = 1.0 + max(0.0, float(part @ moved))
        covariance = self.covariance - moved[:, None] * (moved / grown)
        sums = self.sums.copy()
        sums[:, :-1] += part[:, None] * point
        sums[:, -1] += target * part
        return Block(covariance, sums, self.log_det + math.log(grown))


class Items:
    """What is known of the coefficients of each item.

    Without parts, items have no coefficients and nothing is kept. The latest reward waits until the
    next call: forks share the memory, and this one is then known to be the one that continues.

    Parameters
    ----------
    n_parts, n_features : int
    """

    __slots__ = ("_blocks", "_places", "_waiting", "n_features", "n_parts")

    def __init__(self, n_parts: int, n_features: int) -> None:
        self.n_parts, self.n_features = n_parts, n_features
        self._places: dict[int, int] = {}
        self._blocks = _room(0, n_parts, n_features)
        self._waiting: tuple[int, Block] | None = None

    @classmethod
    def of(cls, keys: Keys, blocks: Block) -> "Items":
        """Return items with stacked blocks."""
        items = cls(blocks.sums.shape[1], blocks.sums.shape[2] - 1)
        items._places = {key: place for place, key in enumerate(keys.tolist())}
        items._blocks = Block(*(np.ascontiguousarray(each) for each in blocks))
        return items

    def __len__(self) -> int:
        self._settle()
        return len(self._places)

    def fork(self) -> "Items":
        """Return a copy that continues in place of this one, which must not be changed any more."""
        fork = object.__new__(Items)
        fork.n_parts, fork.n_features = self.n_parts, self.n_features
        fork._places, fork._blocks, fork._waiting = self._places, self._blocks, self._waiting
        return fork

    def copied(self) -> "Items":
        """Return an independent copy."""
        self._settle()
        copy = self.fork()
        copy._places, copy._blocks = dict(self._places), Block(*(e.copy() for e in self._blocks))
        return copy

    def condition(
        self, keys: Keys, parts: FloatArray, points: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return offsets and variances of arms with keys and parts, given what their items paid.

        Features φ in `points` are changed to φ − Σφc'A⁻¹c.
        """
        self._settle()
        offsets, variances = np.zeros(len(points)), np.empty(len(points))
        covariances, sums, _ = self._blocks
        given = covariances, sums, self._found(keys), parts
        _kernels.condition(*given, points, offsets, variances)
        return offsets, variances

    def unexplained_share(self, keys: Keys, parts: FloatArray) -> FloatArray:
        """Return the fraction of a feature's effect that item rewards have not absorbed, (n,).

        For a feature that never changes this is 1 − c'A⁻¹Σc, which is (A⁻¹c)₁/c₁ as c₁ is constant.
        """
        if not self.n_parts:
            return np.ones(len(keys))
        covariances = self._of(keys).covariance
        moved = (covariances[:, 0] * parts).sum(axis=1)
        return np.asarray(np.clip(moved / parts[:, 0], 0.0, 1.0))

    def coefficients(self, keys: Keys, theta: FloatArray) -> FloatArray:
        """Return the posterior mean of each item's δ, shape (n, n_parts)."""
        covariances, sums, _ = self._of(keys)
        rests = sums[:, :, -1] - sums[:, :, :-1] @ theta
        return np.asarray((covariances @ rests[:, :, None])[:, :, 0])

    def update(
        self, key: int, part: FloatArray, point: FloatArray, target: float
    ) -> tuple[FloatArray, float]:
        """Learn a reward; return the sample that it adds to the regression of θ."""
        if not self.n_parts:
            return point, target
        self._settle()
        block = self._one(key)
        moved = block.covariance @ part
        known = moved @ block.sums
        root = math.sqrt(1.0 + max(0.0, float(moved @ part)))
        if key in self._places or len(self._places) < items_kept(self.n_parts, self.n_features):
            self._waiting = key, block.after(part, point, target)
        return (point - known[:-1]) / root, float(target - known[-1]) / root

    def information(self) -> float:
        """Return log det of all A, whatever their order."""
        self._settle()
        return math.fsum(self._blocks.log_det[: len(self._places)].tolist())

    def widened(self, parts: FloatArray, features: FloatArray, old: Keys, new: Keys) -> "Items":
        """Return the items with more parts and features, which no reward has used.

        `parts`, shape (n_parts, new n_parts), and `features` have a 1 where a present one is among
        the new ones; `old` and `new` are keys of items without and with these features.
        """
        places, blocks = self.stacked()
        outer = np.pad(features, ((0, 1), (0, 1)))
        outer[-1, -1] = 1.0
        covariances = (
            np.eye(parts.shape[1]) + parts.T @ (blocks.covariance - np.eye(self.n_parts)) @ parts
        )
        wider = Block(covariances, parts.T @ blocks.sums @ outer, blocks.log_det)
        return Items.of(renamed_keys(places, old, new), wider)

    def stacked(self) -> tuple[Keys, Block]:
        """Return the keys of all items, ascending, and their blocks."""
        self._settle()
        keys = np.array(sorted(self._places), dtype=np.uint64)
        places = [self._places[key] for key in keys.tolist()]
        return keys, Block(*(each[places] for each in self._blocks))

    def _settle(self) -> None:
        """Write the waiting block; harmless if repeated."""
        if self._waiting is None:
            return
        key, block = self._waiting
        place = self._places.setdefault(key, len(self._places))
        if place == len(self._blocks.log_det):
            wider = _room(2 * place, self.n_parts, self.n_features)
            for new, old in zip(wider, self._blocks, strict=True):
                new[:place] = old
            self._blocks = wider
        for column, value in zip(self._blocks, block, strict=True):
            column[place] = value
        self._waiting = None

    def _found(self, keys: Keys) -> Any:
        """Return the places of items, −1 for one that is not known."""
        get = self._places.get
        return np.array([get(key, -1) for key in keys.tolist()], dtype=np.int64)

    def _one(self, key: int) -> Block:
        if key not in self._places:
            k = self.n_parts
            return Block(np.eye(k), np.zeros((k, self.n_features + 1)), 0.0)
        return Block(*(each[self._places[key]] for each in self._blocks))

    def _of(self, keys: Keys) -> Block:
        self._settle()
        return Block(*(np.stack(each) for each in zip(*map(self._one, keys.tolist()), strict=True)))


def _room(n: int, n_parts: int, n_features: int) -> Any:
    n = max(_FIRST_ROOM, n)
    return Block(
        np.zeros((n, n_parts, n_parts)), np.zeros((n, n_parts, n_features + 1)), np.zeros(n)
    )


class ItemsField:
    """The field of items in a saved reward model; sizes are those of its features."""

    def dump(self, value: Items) -> dict[str, Any]:
        """Return keys and blocks."""
        keys, blocks = value.stacked()
        return {"keys": keys, **blocks._asdict()}

    def load(self, name: str, plain: Any, sizes: Sizes) -> Items:
        """Return the items after checking them."""
        fields = {
            "covariance": Array(
                (None, "n_parts", "n_parts"), low=-1 - _ROUNDING, high=1 + _ROUNDING
            ),
            "sums": Array(
                (None, "n_parts", "n_sums"), low=-(LARGEST_POINT**2), high=LARGEST_POINT**2
            ),
            "log_det": Array((None,), low=-_ROUNDING, high=1e9),
        }
        keys = _AscendingKeys().load("keys", plain["keys"], sizes)
        blocks = Block(*(field.load(each, plain[each], sizes) for each, field in fields.items()))
        if any(len(each) != len(keys) for each in blocks):
            raise ArchiveError("there must be a block for each item")
        return Items.of(keys, blocks)
