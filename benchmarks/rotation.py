"""Half-seen slates, so many that they do not fit into a cache, read in rotation."""

from itertools import cycle
from typing import NamedTuple

import numpy as np

OBSERVE_PROB = 0.3
NOISE = 0.05
# Twice the last cache of the machines we know.
BEYOND_CACHE = 64e6


class Size(NamedTuple):
    dim: int
    rank: int
    n_arms: int

    def __str__(self) -> str:
        return f"({self.dim}, {self.rank}, {self.n_arms})"


class Rotation(NamedTuple):
    size: Size
    basis: np.ndarray  # (dim, rank)
    tables: np.ndarray  # (n, n_arms, dim), NaN where hidden
    rewards: list[list[float]]

    def endless(self):
        """Yield table and rewards, again from the first after the last."""
        return cycle(zip(self.tables, self.rewards, strict=True))


def rotation_of(size: Size, n_bytes: float = BEYOND_CACHE, seed: int = 0) -> Rotation:
    random = np.random.default_rng(seed)
    n_tables = max(2, int(n_bytes / (8 * size.n_arms * size.dim)))
    basis = np.linalg.qr(random.standard_normal((size.dim, size.rank)))[0]
    latent = random.standard_normal((n_tables, size.n_arms, size.rank))
    tables = latent @ basis.T
    tables[random.random(tables.shape) >= OBSERVE_PROB] = np.nan
    taste = random.standard_normal(size.rank)
    taste /= np.linalg.norm(taste)
    rewards = latent @ taste + NOISE * random.standard_normal(latent.shape[:2])
    return Rotation(size, basis, tables, rewards.tolist())
