"""Top eigenpairs of symmetric matrices and operators; distance, alignment, incoherence of bases."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg.blas import dsymv
from scipy.linalg.lapack import dsyevr
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from halfseen import checks
from halfseen.errors import InvalidSettingError
from halfseen.linear.covariance import CovarianceOperator
from halfseen.values import FloatArray
from halfseen.values.slate import read_only

# Measured on one core: for ten eigenpairs Lanczos overtakes LAPACK between dim 100 and 150, and is
# three times as fast at 250. Below that LAPACK takes at most 3 ms and always converges.
_LANCZOS_DIM = 250
# Lanczos pays off for few eigenpairs only: at this share of 250 both take the same time.
_LANCZOS_SHARE = 0.1
_LANCZOS_TOLERANCE = 1e-12
_FIRST_GUESS = 8
_ORTHONORMAL_TOLERANCE = 1e-8


@dataclass(frozen=True, slots=True)
class Directions:
    """Orthonormal directions of a covariance, with or without the variances along them.

    It stands for the matrix where there are too many features for one, or where only a subspace is
    estimated. `len` and `shape` are those of the matrix, and numpy builds it on demand, with
    variances of 1 if they are not known.

    Attributes
    ----------
    basis : ndarray, shape (dim, count)
    eigenvalues : ndarray, shape (count,), or None
        Variances along the columns, descending; None if they are not known.

    Examples
    --------
    >>> directions = Directions(np.array([[0.6], [0.8]]), np.array([2.0]))
    >>> np.asarray(directions).round(2).tolist()
    [[0.72, 0.96], [0.96, 1.28]]
    """

    basis: FloatArray
    eigenvalues: FloatArray | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the covariance, (dim, dim)."""
        return len(self.basis), len(self.basis)

    def __len__(self) -> int:
        return len(self.basis)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        scaled = self.basis if self.eigenvalues is None else self.basis * self.eigenvalues
        return np.asarray(scaled @ self.basis.T, dtype)


def top_eigenpairs(
    matrix: FloatArray | CovarianceOperator | Directions,
    count: int,
    *,
    tolerance: float = _LANCZOS_TOLERANCE,
) -> tuple[FloatArray, FloatArray]:
    """Return the algebraically largest eigenvalues, descending, and their eigenvectors.

    The corrected covariance may be indefinite, so the sign counts. The sign of each eigenvector is
    fixed: its entry of largest magnitude is positive.

    Parameters
    ----------
    matrix : ndarray of shape (dim, dim), CovarianceOperator or Directions
        Symmetric. Of `Directions`, at most those that there are, and no eigenvalues if they are not
        known.
    count : int
        How many, from 0 to dim.
    tolerance : float
        Of the eigenvalues of an operator, relative to each; the error of the subspace is then about
        the same.

    Returns
    -------
    eigenvalues : ndarray, shape (count,)
    eigenvectors : ndarray, shape (dim, count)

    Examples
    --------
    >>> values, vectors = top_eigenpairs(np.diag([1.0, -5.0, 3.0]), 2)
    >>> values.tolist(), vectors.T.tolist()
    ([3.0, 1.0], [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    """
    dim = matrix.shape[0]
    count = checks.integer("count", count, 0, dim)
    if count == 0:
        return np.empty(0), np.empty((dim, 0))
    if isinstance(matrix, Directions):
        known = np.empty(0) if matrix.eigenvalues is None else matrix.eigenvalues[:count]
        return known, matrix.basis[:, :count]
    if isinstance(matrix, CovarianceOperator):
        values, vectors = _of_operator(matrix, count, tolerance)
    elif dim >= _LANCZOS_DIM and count <= _LANCZOS_SHARE * dim:
        # The symmetric product reads half of the matrix; transposed, because BLAS wants columns.
        try:
            values, vectors = _lanczos(lambda vector: dsymv(1.0, matrix.T, vector), dim, count)
        except ArpackError:  # no convergence, or a start orthogonal to everything
            values, vectors = _lapack(matrix, count)
    else:
        values, vectors = _lapack(matrix, count)
    descending = vectors[:, ::-1]
    largest = descending[np.abs(descending).argmax(axis=0), np.arange(count)]
    signs = np.where(largest < 0.0, -1.0, 1.0)
    return values[::-1].copy(), np.ascontiguousarray(descending * signs)


def _of_operator(
    matrix: CovarianceOperator, count: int, tolerance: float
) -> tuple[FloatArray, FloatArray]:
    dim = matrix.shape[0]
    if matrix.is_zero:
        return np.zeros(count), np.eye(dim, count)
    if dim < _LANCZOS_DIM:
        return _lapack(matrix.product(np.eye(dim)), count)
    return _lanczos(
        lambda vector: matrix.product(vector.reshape(dim, 1))[:, 0], dim, count, tolerance
    )


def _lapack(matrix: FloatArray, count: int) -> tuple[FloatArray, FloatArray]:
    dim = matrix.shape[0]
    # LAPACK directly, not scipy's eigh: the same routine in half the time at dim 30.
    values, vectors, found, _, info = dsyevr(matrix, range="I", il=dim - count + 1, iu=dim)
    vectors = vectors[:, :count]
    # Bisection failed, or entries differ by hundreds of magnitudes: compute all by another method.
    if info != 0 or found != count or not np.isfinite(vectors).all():
        values, vectors = np.linalg.eigh(matrix)
        return values[-count:], vectors[:, -count:]
    return values[:count], vectors


def _lanczos(
    product: Callable[[FloatArray], FloatArray],
    dim: int,
    count: int,
    tolerance: float = _LANCZOS_TOLERANCE,
) -> tuple[FloatArray, FloatArray]:
    random = np.random.default_rng(0)  # the same in every call
    values, vectors = eigsh(
        LinearOperator((dim, dim), matvec=product, dtype=np.float64),
        k=count,
        which="LA",
        v0=random.standard_normal(dim),
        tol=tolerance,
        rng=random,
    )
    order = np.argsort(values)
    return values[order], vectors[:, order]


def eigenpairs_above(
    matrix: FloatArray | Directions, threshold: float, *, floor: int = 0, cap: int | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the top eigenpairs that reach a threshold, computing few others.

    Parameters
    ----------
    matrix : ndarray of shape (dim, dim), or Directions with eigenvalues
    threshold : float
    floor, cap : int
        The number is at least `floor` and at most `cap` (default dim).

    Returns
    -------
    eigenvalues : ndarray, shape (n_computed,)
        Descending, at least `count`; if possible one more, so that the gap is visible.
    eigenvectors : ndarray, shape (dim, count)
    """
    dim = matrix.shape[0]
    most = dim if cap is None else min(cap, dim)
    limit = min(most + 1, dim)
    guess = min(max(_FIRST_GUESS, floor + 1), limit)
    while True:
        values, vectors = top_eigenpairs(matrix, guess)
        if values[-1] < threshold or guess == limit:
            break
        guess = min(2 * guess, limit)
    count = int(np.count_nonzero(values >= threshold))
    count = max(min(count, most), min(floor, most))
    return values, np.ascontiguousarray(vectors[:, :count])


def checked_basis(name: str, value: Any) -> FloatArray:
    """Return a read-only copy of orthonormal columns, shape (dim, rank)."""
    try:
        basis = np.array(value, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        basis = np.empty(0)
    if basis.ndim != 2 or 0 in basis.shape:
        raise InvalidSettingError(
            f"{name} must be a table of numbers with shape (dim, rank), got {value!r}"
        )
    with np.errstate(all="ignore"):
        error = float(np.abs(basis.T @ basis - np.eye(basis.shape[1])).max())
    if not error <= _ORTHONORMAL_TOLERANCE:
        raise InvalidSettingError(
            f"{name} must have orthonormal columns, got an error of {error:g}: use Q of its QR "
            "factorisation"
        )
    return read_only(basis)


def distance(basis: FloatArray, other: FloatArray) -> float:
    """Return ‖P̂ − P‖₂ between the spans of two orthonormal bases; 1 if their ranks differ.

    Examples
    --------
    >>> tilted = np.array([[0.8], [0.6]])
    >>> round(distance(tilted, np.array([[1.0], [0.0]])), 12)
    0.6
    """
    if basis.shape[1] != other.shape[1]:
        return 1.0
    if basis.shape[1] == 0:
        return 0.0
    return min(1.0, float(np.linalg.norm(other - basis @ (basis.T @ other), 2)))


def align(basis: FloatArray, target: FloatArray) -> FloatArray:
    """Return the orthogonal O that brings ÛO closest to U (orthogonal Procrustes).

    With the SVD Û'U = A cos(Θ) B', O = AB', and ‖ÛO − U‖₂ ≤ √2 ‖P̂ − P‖₂.

    Notes
    -----
    Paper: lemma:basis_alignment
    """
    left, _, right = np.linalg.svd(basis.T @ target)
    rotation: FloatArray = left @ right
    return rotation


def incoherence(basis: FloatArray) -> float:
    """Return μ = sqrt(dim/rank) · largest row norm: 1 if spread evenly, at most sqrt(dim/rank).

    Examples
    --------
    >>> incoherence(np.full((4, 1), 0.5))
    1.0

    Notes
    -----
    Paper: def:incoherence
    """
    dim, rank = basis.shape
    checks.integer("rank", rank, 1, dim)
    return float(np.sqrt(dim / rank) * np.linalg.norm(basis, axis=1).max())
