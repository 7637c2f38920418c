"""Masked second moments of all offered arms, and the covariance corrected for what was hidden.

The corrected covariance needs only the running sum of masked outer products, the number of arms
and, where the observation probability is unknown, how often two features were seen together. So
memory is O(dim²) whatever the number of arms: slates wait in a small buffer and enter the sum a
block at a time, by one matrix product.
"""

from typing import Any

import numpy as np

from halfseen import _kernels, archive, checks
from halfseen.core.operators import check_dense
from halfseen.errors import ArchiveError, InvalidSettingError
from halfseen.values import BoolArray, FloatArray, Slate

ObserveProb = float | FloatArray | None
Sums = tuple[FloatArray, FloatArray | None]
# Sums to continue from, and whether the prepared slate is in them.
Prepared = tuple[Sums, bool]

# Arms that wait for one matrix product: enough for an efficient one, little memory.
_BLOCK = 1024


class Moments:
    """Running sums over masked arms.

    Parameters
    ----------
    dim : int
        Number of features.
    count_pairs : bool
        Also count how often each two features were seen together (needed where the observation
        probability is unknown).

    Attributes
    ----------
    n_arms : int
        Arms absorbed so far: tK in the paper, where every slate has K arms.

    Examples
    --------
    >>> moments = Moments(2)
    >>> moments.absorb(Slate([[1.0, 2.0], [3.0, float("nan")]]))
    >>> moments.second_moment().tolist()
    [[10.0, 2.0], [2.0, 4.0]]
    """

    hidden = 0.0
    """What stands for a hidden entry in the block."""

    __slots__ = ("_block_mask", "_pairs", "_products", "block", "dim", "n_arms", "n_waiting")

    def __init__(self, dim: int, *, count_pairs: bool = False) -> None:
        self.dim = checks.integer("dim", dim, 1)
        check_dense(self.dim)
        self.n_arms = 0
        self._products = np.zeros((dim, dim))
        self._pairs = np.zeros((dim, dim)) if count_pairs else None
        # Arms wait in the first rows of a block. What stands in later rows means nothing, so that
        # a compiled loop may write there before anything is decided.
        self.block = np.zeros((_BLOCK, dim))
        self._block_mask = np.zeros((_BLOCK, dim), dtype=np.bool_) if count_pairs else None
        self.n_waiting = 0

    @property
    def count_pairs(self) -> bool:
        """Whether pairs of features seen together are counted."""
        return self._pairs is not None

    def absorb(self, slate: Slate) -> None:
        """Add all arms of a slate."""
        slate = Slate.of(slate, self.dim)
        self.commit(slate, self.prepare(slate))

    def prepare(self, slate: Slate, sums: Sums | None = None) -> Prepared | None:
        """Return the sums to continue from, or None if the block simply has room for this slate.

        Nothing changes before `commit`, which cannot fail: together they let a policy do all that
        may go wrong before it changes anything. `sums` are those of now, where the caller has them.
        """
        n_arms = slate.n_arms
        if sums is None and self.has_room(n_arms):
            if self.has_room(2 * n_arms):
                return None
            self._write(slate._table, self.n_waiting)
            return self._with_block(self.n_waiting + n_arms), True
        products, pairs = self.sums() if sums is None else sums
        if 2 * n_arms <= _BLOCK:
            return (products, pairs), False
        values = slate.values
        pairs = None if pairs is None else pairs + _pair_counts(slate.mask)
        return (products + values.T @ values, pairs), True

    def commit(self, slate: Slate, prepared: Prepared | None) -> None:
        """Add a slate, given what `prepare` returned for it."""
        is_summed = False
        if prepared is not None:
            (self._products, self._pairs), is_summed = prepared
            self.n_waiting = 0
        self.n_arms += slate.n_arms
        if not is_summed:
            self._write(slate._table, self.n_waiting)
            self.n_waiting += slate.n_arms

    def _write(self, table: FloatArray, start: int) -> None:
        """Copy a table into the block from row `start` on."""
        _kernels.fill_in(table, self.block, start, self.hidden)
        if self._block_mask is not None:
            np.equal(table, table, out=self._block_mask[start : start + len(table)])

    def has_room(self, n_arms: int) -> bool:
        """Return whether that many arms fit into the block's later rows."""
        return self.n_waiting + n_arms <= _BLOCK

    def room_for(self, n_arms: int) -> int:
        """Return how many slates of that size can be claimed before one has to be summed up."""
        return max(0, (_BLOCK - self.n_waiting) // n_arms - 1)

    def claim(self, table: FloatArray) -> None:
        """Add the arms of a table that was zero-filled into the block's next rows.

        A failure changes nothing.
        """
        n_arms = len(table)
        end = self.n_waiting + n_arms
        if self._block_mask is not None:
            np.equal(table, table, out=self._block_mask[self.n_waiting : end])
        if end + n_arms > _BLOCK:
            # There is no room for another one like this, which is in the cache just now.
            self._products, self._pairs = self._with_block(end)
            end = 0
        self.n_arms += n_arms
        self.n_waiting = end

    def claim_all(self, tables: FloatArray) -> None:
        """Add slates of equal size, at most `room_for` that size, shape (n_slates, n_arms, dim)."""
        arms = tables.reshape(-1, self.dim)
        end = self.n_waiting + len(arms)
        if self._block_mask is not None:
            np.equal(arms, arms, out=self._block_mask[self.n_waiting : end])
        self.n_arms += len(arms)
        self.n_waiting = end

    def merge(self, other: "Moments") -> "Moments":
        """Return the moments of the arms of both."""
        if other.dim != self.dim or other.count_pairs != self.count_pairs:
            raise InvalidSettingError(
                f"moments must agree to be merged, got dim {self.dim} and {other.dim}, "
                f"count_pairs {self.count_pairs} and {other.count_pairs}"
            )
        merged = Moments(self.dim, count_pairs=self.count_pairs)
        (ours, our_pairs), (theirs, their_pairs) = self.sums(), other.sums()
        merged._products = ours + theirs
        if our_pairs is not None and their_pairs is not None:
            merged._pairs = our_pairs + their_pairs
        merged.n_arms = self.n_arms + other.n_arms
        return merged

    def second_moment(self) -> FloatArray:
        """Return the sum of ẋẋ' over all arms, zero where hidden, shape (dim, dim)."""
        return self.sums()[0]

    def pair_counts(self) -> FloatArray:
        """Return how many arms showed both features, shape (dim, dim)."""
        pairs = self.sums()[1]
        if pairs is None:
            raise InvalidSettingError("pairs are not counted: create Moments(count_pairs=True)")
        return pairs

    def covariance(self, observe_prob: ObserveProb) -> FloatArray:
        """Return the corrected covariance, shape (dim, dim); symmetric, not always positive."""
        return covariance_of(self.sums(), self.n_arms, observe_prob)[0]

    def state(self) -> dict[str, Any]:
        """Return everything that tells these moments from fresh ones, as arrays and numbers."""
        return {
            "n_arms": self.n_arms,
            "products": self._products,
            "pairs": self._pairs,
            "waiting": self.block[: self.n_waiting],
            "waiting_mask": None
            if self._block_mask is None
            else self._block_mask[: self.n_waiting],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from what `state` returned."""
        square = (self.dim, self.dim)
        waiting = archive.array(state, "waiting", (None, self.dim))
        if len(waiting) > _BLOCK:
            raise ArchiveError(f"at most {_BLOCK} arms can wait, got {len(waiting)}")
        self.n_arms = checks.integer("n_arms", state["n_arms"], 0)
        self._products = archive.array(state, "products", square)
        self.n_waiting = len(waiting)
        self.block[: self.n_waiting] = waiting
        if self._block_mask is not None:
            self._pairs = archive.array(state, "pairs", square)
            self._block_mask[: self.n_waiting] = archive.array(
                state, "waiting_mask", waiting.shape, np.bool_
            )

    def sums(self) -> Sums:
        """Return the sum of ẋẋ' and, where counted, of pairs seen together, in new arrays."""
        return self._with_block(self.n_waiting)

    def _with_block(self, n_rows: int) -> Sums:
        """Return the sums with the first rows of the block added, in new arrays."""
        waiting = self.block[:n_rows]
        products = waiting.T @ waiting
        products += self._products
        if self._pairs is None or self._block_mask is None:
            return products, None
        return products, self._pairs + _pair_counts(self._block_mask[:n_rows])


def _pair_counts(mask: BoolArray) -> FloatArray:
    seen = mask.astype(np.float64)
    counts: FloatArray = seen.T @ seen
    return counts


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
        Probability that an entry is seen, one for all features or one for each.

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
    if isinstance(observe_prob, float):
        both: float | FloatArray = observe_prob * observe_prob
    else:
        both = np.multiply.outer(observe_prob, observe_prob)
    covariance: FloatArray = np.ascontiguousarray(second_moment / (n_arms * both))
    covariance.ravel()[:: dim + 1] *= observe_prob
    return covariance


def pairwise_covariance(
    second_moment: FloatArray, pair_counts: FloatArray
) -> tuple[FloatArray, int]:
    """Return the covariance over the arms that showed both features, where p is unknown.

    Each entry of the summed second moment is divided by how many arms showed both features.

    Returns
    -------
    covariance : ndarray, shape (dim, dim)
        Zero where two features were never seen together.
    n_never : int
        Number of entries (j ≤ k) that were never seen together.

    Examples
    --------
    >>> covariance, n_never = pairwise_covariance(
    ...     np.array([[4.0, 0.0], [0.0, 3.0]]), np.array([[2.0, 0.0], [0.0, 1.0]])
    ... )
    >>> covariance.tolist(), n_never
    ([[2.0, 0.0], [0.0, 3.0]], 1)
    """
    seen = pair_counts > 0
    covariance = np.divide(second_moment, pair_counts, out=np.zeros_like(second_moment), where=seen)
    return covariance, int(np.count_nonzero(np.triu(~seen)))


def sums_of(table: FloatArray) -> Sums:
    """Return the sums over the arms of a table, shape (n, dim) with NaN where hidden."""
    mask = table == table
    filled = np.where(mask, table, 0.0)
    return filled.T @ filled, _pair_counts(mask)


def shares_of(sums: Sums, n_arms: int) -> FloatArray:
    """Return the share of arms that showed each feature, at least one arm, shape (dim,).

    Examples
    --------
    >>> shares_of(sums_of(np.array([[1.0, np.nan], [2.0, 3.0]])), 2).tolist()
    [1.0, 0.5]
    """
    pairs = sums[1]
    if pairs is None:
        raise InvalidSettingError("shares need Moments(count_pairs=True)")
    return np.maximum(pairs.diagonal(), 1.0) / max(1, n_arms)


def covariance_of(sums: Sums, n_arms: int, observe_prob: ObserveProb) -> tuple[FloatArray, int]:
    """Return the corrected covariance of the sums of some arms, whatever is known of p.

    The second value counts the entries (j ≤ k) that are 0 because they were never seen together,
    where p is unknown.
    """
    products, pairs = sums
    if observe_prob is not None:
        return corrected_covariance(products, n_arms, observe_prob), 0
    if pairs is None:
        raise InvalidSettingError("observe_prob=None needs Moments(count_pairs=True)")
    return pairwise_covariance(products, pairs)


def smallest_prob(sums: Sums, n_arms: int, observe_prob: ObserveProb) -> float:
    """Return the one p of a formula that knows only one: the smallest of all features.

    Where it is unknown, it is the smallest share of arms that showed a feature, features never
    seen aside; 1 before anything was seen. Formulas that go on to p² for a pair are then right for
    features that are hidden independently, and too optimistic where they are hidden in blocks.
    """
    if isinstance(observe_prob, float):
        return observe_prob
    if observe_prob is not None:
        return float(np.min(observe_prob))
    counts = np.zeros(0) if sums[1] is None else sums[1].diagonal()
    shown = counts[counts > 0]
    return float(shown.min()) / n_arms if len(shown) else 1.0
