"""Slates, rewards and settings that are allowed but awkward, and some that must be refused."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np

from halfseen.values import LARGEST

SIZES = (1e-323, 1e-310, 1e-200, 1e-160, 1e-101, 1e-99, 1e-50, 1e-8, 1.0, 1.0, 1.0, 1e4, 1e8)
LARGE_SIZES = (1e30, 1e60, 1e99, LARGEST)


def size(random):
    """Return a scale, ordinary or not."""
    return float(random.choice(LARGE_SIZES if random.random() < 0.2 else SIZES))


class Slates:
    """Slates of one kind, which changes now and then, with `dim` features."""

    def __init__(self, random, dim):
        self.random, self.dim = random, dim
        self.directions = random.normal(size=(3, dim))
        self.catalogue = self._entries(12)
        self.renew()

    def renew(self):
        random = self.random
        self.kind = str(random.choice(list(KINDS)))
        self.scale = size(random)
        self.column_scales = np.array([size(random) for _ in range(self.dim)])
        self.seen_share = float(random.choice([1.0, 1.0, 0.7, 0.4, 0.1, 0.0]))

    def draw(self):
        random = self.random
        if random.random() < 0.05:
            self.renew()
        n_arms = int(random.choice([1, 2, 3, 5, 8, 13]))
        if random.random() < 0.003:
            n_arms = 1200
        with np.errstate(all="ignore"):
            table = KINDS[self.kind](self, n_arms)
        # Random factors may lead past the limit.
        table = np.clip(np.nan_to_num(table), -LARGEST, LARGEST)
        return np.where(random.random(table.shape) < self.seen_share, table, np.nan)

    def _entries(self, n_arms):
        return self.random.normal(size=(n_arms, self.dim))

    def _low_rank(self, n_arms):
        return self.scale * (self.random.normal(size=(n_arms, 3)) @ self.directions)

    def _collinear(self, n_arms):
        ratios = 1.0 + 0.19 * np.arange(self.dim)
        return self.scale * 10.0 ** self.random.uniform(-8, 0, (n_arms, 1)) * ratios

    def _timestamps(self, n_arms):
        stamp = 1.7e9 + self.random.integers(0, 100_000, (n_arms, 1))
        table = self._entries(n_arms)
        table[:, : 1 + self.dim // 2] = stamp
        return table

    def _heavy_tails(self, n_arms):
        return np.sign(self._entries(n_arms)) * 10.0 ** self.random.uniform(
            -110, 100, (n_arms, self.dim)
        )

    def _repeated(self, n_arms):
        return np.repeat(self.scale * self._entries(1), n_arms, axis=0)

    def _some_zero(self, n_arms):
        return self.scale * self._entries(n_arms) * (self.random.random((n_arms, self.dim)) < 0.2)


KINDS = {
    "normal": lambda s, n: s.scale * s._entries(n),
    "ordinary": lambda s, n: s._entries(n),
    "mixed columns": lambda s, n: s.column_scales * s._entries(n),
    "mixed rows": lambda s, n: 10.0 ** s.random.uniform(-30, 99, (n, 1)) * s._entries(n),
    "mixed entries": Slates._heavy_tails,
    "low rank": Slates._low_rank,
    "collinear": Slates._collinear,
    "timestamps": Slates._timestamps,
    "constant": lambda s, n: np.full((n, s.dim), s.scale),
    "zero": lambda s, n: np.zeros((n, s.dim)),
    "repeated": Slates._repeated,
    "some zero": Slates._some_zero,
    "integers": lambda s, n: s.random.integers(-3, 4, (n, s.dim)).astype(float),
    "catalogue": lambda s, n: s.catalogue[s.random.integers(0, 12, n)],
    "one hot": lambda s, n: s.scale * np.eye(s.dim)[s.random.integers(0, s.dim, n)],
    "largest": lambda s, n: LARGEST * np.sign(s._entries(n)),
}


def in_some_form(random, table):
    """Return a table as callers may hand it in; sometimes as lists or another type."""
    form = int(random.integers(0, 12))
    if form == 0:
        return table.tolist()
    if form == 1:
        return np.asfortranarray(table)
    if form == 2:
        return [[None if math.isnan(entry) else entry for entry in row] for row in table.tolist()]
    if form == 3:
        return np.ma.masked_invalid(table)
    if form == 4 and np.nanmax(np.abs(table), initial=0.0) < 1e38:
        return table.astype(np.float32)
    return table


def reward(random, kind):
    """Return a reward that must be accepted."""
    value = float(random.normal())
    return {
        "normal": lambda: value,
        "bit": lambda: float(value > 0.0),
        "bool": lambda: value > 0.0,
        "numpy bool": lambda: np.bool_(value > 0.0),
        "numpy": lambda: random.choice([np.float32(value), np.int64(3), np.float64(value)]),
        "int": lambda: int(10 * value),
        "fraction": lambda: Fraction(int(10 * value), 7),
        "zero": lambda: 0.0,
        "same": lambda: 2.5,
        "huge": lambda: value * 1e99,
        "largest": lambda: math.copysign(LARGEST, value),
        "tiny": lambda: value * 1e-310,
        "mixed": lambda: value * size(random) / 10.0,
    }[kind]()


REWARDS = (
    "normal", "bit", "bool", "numpy bool", "numpy", "int", "fraction", "zero", "same", "huge",
    "largest", "tiny", "mixed",
)  # fmt: skip

BAD_REWARDS = (
    math.nan, math.inf, -math.inf, 1e101, 10**400, "1", None, 1j, [1.0], np.nan, np.float32("inf"),
    Decimal("NaN"), np.array([1.0, 2.0]), object(),
)  # fmt: skip


class Raises:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("the connection was lost")


def bad_slates(dim):
    """Return what is not a slate with `dim` features."""
    wrong = np.zeros((2, dim))
    wrong[0, 0] = math.inf
    too_large = np.zeros((2, dim))
    too_large[-1, -1] = 2 * LARGEST
    return (
        wrong, too_large, np.zeros((2, dim + 1)), np.zeros(dim), np.zeros((0, dim)),
        np.zeros((2, dim, 1)), [[0.0] * dim, [0.0] * (dim + 1)], "slate", None, 3.0,
        [["a"] * dim], [["1"] * dim], np.full((1, dim), 1j), [[10**400] * dim], Raises(), {},
        {"arm": [1.0] * dim}, [object()], [[object()] * dim], [[b"1"] * dim],
        np.zeros((1, dim), dtype="datetime64[s]"),
    )  # fmt: skip
