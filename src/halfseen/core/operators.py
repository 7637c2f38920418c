"""The corrected covariance without its matrix, for arms with very many features.

At 50 000 features a covariance takes 20 GB. Its products with a few vectors need only the arms,
which are read block by block, zero-filled and multiplied. The correction by observation
probabilities needs two diagonals.
"""

from collections.abc import Iterator

import numpy as np

from halfseen.errors import InvalidSettingError
from halfseen.kernels import tables
from halfseen.values import BoolArray, FloatArray

LARGEST_DENSE_DIM = 8192
"""Largest dim for which a dim × dim matrix (512 MB) is built; beyond it arms are kept instead."""


def check_dense(dim: int) -> None:
    """Raise InvalidSettingError if a dim × dim matrix would be too large.

    >>> check_dense(50_000)
    Traceback (most recent call last):
    halfseen.errors.InvalidSettingError: dim must be in [1, 8192] for what works in all features, \
got 50000: use TofuPov or LatentUcb, which work in the few dimensions of a subspace
    """
    if dim > LARGEST_DENSE_DIM:
        raise InvalidSettingError(
            f"dim must be in [1, {LARGEST_DENSE_DIM}] for what works in all features, got {dim}: "
            "use TofuPov or LatentUcb, which work in the few dimensions of a subspace"
        )


# Rows that are zero-filled at a time: enough for BLAS, few enough to need little memory.
_ROWS = 128


class CovarianceOperator:
    """The corrected covariance of half-seen arms as a linear operator.

    With X the zero-filled arms, s the sums of squares per feature and D = diag(p), it is
    D⁻¹X'XD⁻¹/n + diag(s/n · (1/p − 1/p²)).

    Parameters
    ----------
    table : ndarray, shape (n, dim)
        NaN where hidden; every product reads it.
    observe_prob : float or ndarray of shape (dim,), optional
        By default each feature's share of the arms that show it.

    Attributes
    ----------
    shape : tuple of int
    smallest_prob : float
        Smallest observation probability of all features.

    Examples
    --------
    >>> operator = CovarianceOperator(np.array([[1.0, np.nan], [1.0, 2.0]]), 0.5)
    >>> operator.product(np.eye(2)).tolist()
    [[2.0, 4.0], [4.0, 4.0]]
    """

    def __init__(self, table: FloatArray, observe_prob: float | FloatArray | None = None) -> None:
        self._table = np.ascontiguousarray(table, dtype=np.float64)
        n, dim = self._table.shape
        self.shape = dim, dim
        squares, counts = np.zeros(dim), np.zeros(dim)
        for block, mask in self._blocks():
            squares += np.einsum("ij,ij->j", block, block)
            counts += mask.sum(axis=0)
        if observe_prob is None:
            observe_prob = np.maximum(counts, 1.0) / max(1, n)
        prob = np.broadcast_to(np.asarray(observe_prob, dtype=np.float64), dim)
        self._weights = 1.0 / prob
        self.smallest_prob = float(prob.min())
        self._n = max(1, n)
        means = squares / self._n
        self._diagonal = means * (self._weights - self._weights**2)
        self._trace = float((means * self._weights).sum())

    def trace(self) -> float:
        """Return the sum of the diagonal."""
        return self._trace

    def product(self, columns: FloatArray) -> FloatArray:
        """Return the covariance times columns, shape (dim, count)."""
        weighted = self._weights[:, None] * columns
        result = np.zeros_like(weighted)
        for block, _ in self._blocks():
            result += block.T @ (block @ weighted)
        result *= self._weights[:, None] / self._n
        result += self._diagonal[:, None] * columns
        return result

    def _blocks(self) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Yield blocks of zero-filled arms, which share their memory, and their masks."""
        n, dim = self._table.shape
        room = np.empty((min(_ROWS, max(1, n)), dim))
        for first in range(0, n, _ROWS):
            rows = self._table[first : first + _ROWS]
            filled = room[: len(rows)]
            tables.copy_filled(rows, filled)
            yield filled, rows == rows
