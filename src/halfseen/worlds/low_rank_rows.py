"""Half-seen rows of low rank, such as the contexts of a world."""

from typing import NamedTuple

import numpy as np

from halfseen.values import FloatArray


class LowRankRows(NamedTuple):
    """Rows x = Lz with z ~ N(0, I): entries have a variance of about 1.

    Attributes
    ----------
    loadings : ndarray, shape (dim, rank)
        L.

    Examples
    --------
    >>> rows = LowRankRows.drawn(np.random.default_rng(0), dim=5, rank=2)
    >>> rows.of(np.ones((3, 2))).shape
    (3, 5)
    """

    loadings: FloatArray

    @classmethod
    def drawn(cls, random: np.random.Generator, *, dim: int, rank: int) -> "LowRankRows":
        """Draw the loadings."""
        return cls(random.standard_normal((dim, rank)) / np.sqrt(rank))

    def latents(self, random: np.random.Generator, n: int) -> FloatArray:
        """Draw the latents of some rows, shape (n, rank)."""
        return random.standard_normal((n, self.loadings.shape[1]))

    def of(self, latents: FloatArray) -> FloatArray:
        """Return the rows (n, dim) of latents (n, rank)."""
        rows: FloatArray = latents @ self.loadings.T
        return rows


def half_seen(random: np.random.Generator, rows: FloatArray, observe_prob: float) -> FloatArray:
    """Return rows in which each entry is hidden, NaN, unless it is seen by chance."""
    return np.where(random.random(rows.shape) < observe_prob, rows, np.nan)
