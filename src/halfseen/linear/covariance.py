"""The covariance of half-seen arms, corrected for hidden entries.

The corrected covariance needs only the running sum of masked outer products, the number of arms
and, if the observation probability is unknown, how often two features were seen together. So memory
is O(dim²) for any number of arms. Slates wait in a list and enter the sum in blocks, by one matrix
product each.
"""

from typing import ClassVar, NamedTuple

import numpy as np

from halfseen import checks
from halfseen.errors import ArchiveError, InvalidSettingError
from halfseen.state import ARMS, Array, Maybe, Whole
from halfseen.values import LARGEST, FloatArray, Slate

LARGEST_DENSE_DIM = 8192
"""Largest dim for which a dim × dim matrix (512 MB) is built."""


def check_dense(dim: int) -> None:
    """Raise InvalidSettingError if a dim × dim matrix would be too large.

    >>> check_dense(50_000)
    Traceback (most recent call last):
    halfseen.errors.InvalidSettingError: dim must be in [1, 8192] for what works in all features, \
got 50000: use LatentUcb, or TofuPov(subspace=Grouse(), burn_in_policy='uniform'), which work in \
the few dimensions of a subspace
    """
    if dim > LARGEST_DENSE_DIM:
        raise InvalidSettingError(
            f"dim must be in [1, {LARGEST_DENSE_DIM}] for what works in all features, got {dim}: "
            "use LatentUcb, or TofuPov(subspace=Grouse(), burn_in_policy='uniform'), which work in "
            "the few dimensions of a subspace"
        )


ObserveProb = float | FloatArray | None


def corrected_covariance(
    second_moment: FloatArray, n_arms: int, observe_prob: float | FloatArray
) -> FloatArray:
    """Return the unbiased estimate of Σ = E[xx'] from masked arms.

    Entry (j, k) of the mean of ẋẋ' is divided by the probability of seeing both features: p_j p_k
    off the diagonal and p_j on it.

    Parameters
    ----------
    second_moment : ndarray, shape (dim, dim)
        Sum of ẋẋ' over the arms, zero where hidden.
    n_arms : int
        Number of arms in the sum.
    observe_prob : float or ndarray of shape (dim,)
        Probability that an entry is seen, one number for all features or one per feature.

    Examples
    --------
    >>> corrected_covariance(np.array([[4.0, 1.0], [1.0, 2.0]]), 2, 0.5).tolist()
    [[4.0, 2.0], [2.0, 2.0]]

    Notes
    -----
    Paper: eq:unbiased_est_cov
    Paper: lemma:unbiased_covariance_missing
    """
    dim = second_moment.shape[0]
    if n_arms == 0:
        return np.zeros((dim, dim))
    both = np.multiply.outer(observe_prob, observe_prob)
    covariance: FloatArray = np.ascontiguousarray(second_moment / (n_arms * both))
    covariance.ravel()[:: dim + 1] *= observe_prob
    return covariance


# Arms per matrix product: enough to be efficient, few enough to need little memory.
_BLOCK = 1024
_LARGEST_SUM = checks.LARGEST_HORIZON * LARGEST * LARGEST


class Sums(NamedTuple):
    """Sums over masked arms.

    Attributes
    ----------
    products : ndarray, shape (dim, dim)
        Sum of ẋẋ', zero where hidden.
    pairs : ndarray, shape (dim, dim), or None
        How many arms showed both features of each pair, if that was counted.
    n_arms : int

    Examples
    --------
    >>> moments = Moments(2, count_pairs=True)
    >>> moments.absorb(Slate([[1.0, float("nan")], [2.0, 3.0]]))
    >>> sums = moments.sums()
    >>> sums.shares().tolist(), sums.smallest_prob(None)
    ([1.0, 0.5], 0.5)
    """

    products: FloatArray
    pairs: FloatArray | None
    n_arms: int

    def pair_counts(self) -> FloatArray:
        """Return `pairs`; raise InvalidSettingError if they were not counted."""
        if self.pairs is None:
            raise InvalidSettingError("pairs are not counted: use Moments(count_pairs=True)")
        return self.pairs

    def shares(self) -> FloatArray:
        """Return the share of arms that showed each feature, counting at least one."""
        return np.maximum(self.pair_counts().diagonal(), 1.0) / max(1, self.n_arms)

    def covariance(self, observe_prob: ObserveProb) -> FloatArray:
        """Return the corrected covariance, shape (dim, dim), for known or unknown p.

        If p is unknown, each entry is the mean over the arms that showed both features, and 0 if no
        arm did. The result is symmetric, perhaps indefinite.
        """
        products = self.products
        if observe_prob is not None:
            return corrected_covariance(products, self.n_arms, observe_prob)
        pairs = self.pair_counts()
        return np.divide(products, pairs, out=np.zeros_like(products), where=pairs > 0)

    def smallest_prob(self, observe_prob: ObserveProb) -> float:
        """Return the p for formulas with a single p: the smallest over all features.

        If p is unknown, it is the smallest share of arms that showed a feature, without features
        that were never seen; 1 before anything was seen. Formulas that use p² for a pair are then
        right for features that are hidden independently, and too optimistic for features hidden in
        blocks.
        """
        if observe_prob is not None:
            return float(np.min(observe_prob))
        counts = self.pair_counts().diagonal()
        shown = counts[counts > 0]
        return float(shown.min()) / self.n_arms if len(shown) else 1.0


class Moments:
    """Running sums over masked arms.

    Parameters
    ----------
    dim : int
        Number of features.
    count_pairs : bool
        Also count how often each pair of features was seen together, which is needed if the
        observation probability is unknown.

    Attributes
    ----------
    n_arms : int
        Arms absorbed so far; tK in the paper, in which every slate has K arms.

    Examples
    --------
    >>> moments = Moments(2)
    >>> moments.absorb(Slate([[1.0, 2.0], [3.0, float("nan")]]))
    >>> moments.sums().products.tolist()
    [[10.0, 2.0], [2.0, 4.0]]
    """

    STATE: ClassVar = {
        "n_arms": Whole(),
        "_products": Array(("dim", "dim"), low=-_LARGEST_SUM, high=_LARGEST_SUM),
        "_pairs": Maybe(Array(("dim", "dim"), low=0.0)),
        "waiting": ARMS,
    }

    __slots__ = ("_n_waiting", "_pairs", "_products", "_waiting", "count_pairs", "dim", "n_arms")

    def __init__(self, dim: int, *, count_pairs: bool = False) -> None:
        self.dim = checks.integer("dim", dim, 1)
        check_dense(self.dim)
        self.n_arms, self.count_pairs = 0, count_pairs
        self._products = np.zeros((dim, dim))
        self._pairs = np.zeros((dim, dim)) if count_pairs else None
        # Tables of arms that are not in the sums yet, NaN where hidden.
        self._waiting: list[FloatArray] = []
        self._n_waiting = 0

    def absorb(self, slate: Slate) -> None:
        """Add all arms of a slate."""
        self.add(Slate.of(slate, self.dim).table)

    def fork(self) -> "Moments":
        """Return an independent copy."""
        fork = object.__new__(Moments)
        fork.dim, fork.n_arms, fork.count_pairs = self.dim, self.n_arms, self.count_pairs
        fork._products, fork._pairs = self._products, self._pairs  # replaced, never changed
        fork._waiting, fork._n_waiting = self._waiting.copy(), self._n_waiting
        return fork

    def add(self, table: FloatArray) -> None:
        """Add arms, NaN where hidden, shape (n, dim).

        The table is kept until it enters the sums, and must not be changed.
        """
        if self._n_waiting + len(table) > _BLOCK:
            self._products, self._pairs, _ = self.sums()
            self._waiting, self._n_waiting = [], 0
        self._waiting.append(table)
        self._n_waiting += len(table)
        self.n_arms += len(table)

    def covariance(self, observe_prob: ObserveProb) -> FloatArray:
        """Return the corrected covariance of all arms (`Sums.covariance`)."""
        return self.sums().covariance(observe_prob)

    def after_loading(self) -> None:
        """Raise ArchiveError unless saved sums can be those of some arms."""
        is_possible = (
            (self._pairs is not None) == self.count_pairs
            and (self._pairs is None or self._pairs.max() <= self.n_arms)
            and self._n_waiting <= self.n_arms
            and self._products.diagonal().min() >= 0.0
        )
        if not is_possible:
            raise ArchiveError("moments must be those of some arms")

    def sums(self) -> Sums:
        """Return the sums over all arms, in new arrays."""
        table, pairs = self.waiting, self._pairs
        filled = np.where(table == table, table, 0.0)
        if pairs is not None:
            seen = (table == table).astype(np.float64)
            pairs = pairs + seen.T @ seen
        return Sums(self._products + filled.T @ filled, pairs, self.n_arms)

    @property
    def waiting(self) -> FloatArray:
        """Arms that are not in the sums yet, NaN where hidden, shape (n, dim)."""
        if len(self._waiting) == 1:  # a large slate need not be copied
            return self._waiting[0]
        return np.concatenate([np.empty((0, self.dim)), *self._waiting])

    @waiting.setter
    def waiting(self, table: FloatArray) -> None:
        self._waiting, self._n_waiting = [table], len(table)


class CovarianceOperator:
    """The corrected covariance of few rows with many features, by its products with vectors.

    With X the zero-filled rows, s the sums of squares per feature and D = diag(p), it is
    D⁻¹X'XD⁻¹/n + diag(s/n · (1/p − 1/p²)). With 20 rows of 8,000 features, four eigenpairs take
    4 ms, and 3.6 s and 2 GB by the matrix.

    Parameters
    ----------
    filled : ndarray, shape (n, dim)
        Zero where hidden.
    observe_prob : ndarray of shape (dim,)

    Examples
    --------
    >>> operator = CovarianceOperator(np.array([[1.0, 0.0], [1.0, 2.0]]), np.full(2, 0.5))
    >>> operator.product(np.eye(2)).tolist()
    [[2.0, 4.0], [4.0, 4.0]]
    """

    def __init__(self, filled: FloatArray, observe_prob: FloatArray) -> None:
        self.shape = filled.shape[1], filled.shape[1]
        self.is_zero = not filled.any()
        self._filled, self._weights = filled, 1.0 / observe_prob
        means = np.einsum("ij,ij->j", filled, filled) / max(1, len(filled))
        self._diagonal = means * (self._weights - self._weights**2)

    def product(self, columns: FloatArray) -> FloatArray:
        """Return the covariance times columns, shape (dim, count)."""
        result = self._filled.T @ (self._filled @ (self._weights[:, None] * columns))
        result *= self._weights[:, None] / max(1, len(self._filled))
        result += self._diagonal[:, None] * columns
        return result
