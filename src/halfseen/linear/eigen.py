"""Top eigenpairs of symmetric matrices and operators; distance, alignment, incoherence of bases."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import qr
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
# Relative to the eigenvalue; the error of the subspace is then about the same.
_LANCZOS_TOLERANCE = 1e-12
_FIRST_GUESS = 8
# Operators with a larger trace, or one below the inverse, are divided by a unit first.
_ORDINARY = 1e100
_ORTHONORMAL_TOLERANCE = 1e-8


def top_eigenpairs(
    matrix: FloatArray | CovarianceOperator, count: int
) -> tuple[FloatArray, FloatArray]:
    """Return the algebraically largest eigenvalues, descending, and their eigenvectors.

    The corrected covariance may be indefinite, so the sign counts. The sign of each eigenvector is
    fixed: its entry of largest magnitude is positive.

    Parameters
    ----------
    matrix : ndarray of shape (dim, dim), or CovarianceOperator
        Symmetric.
    count : int
        How many, from 0 to dim.

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
    if isinstance(matrix, CovarianceOperator):
        values, vectors = _krylov(matrix, count)
    elif dim >= _LANCZOS_DIM and count <= _LANCZOS_SHARE * dim:
        values, vectors = _lanczos(matrix, count)
    else:
        values, vectors = _lapack(matrix, count)
    descending = vectors[:, ::-1]
    largest = descending[np.abs(descending).argmax(axis=0), np.arange(count)]
    signs = np.where(largest < 0.0, -1.0, 1.0)
    return values[::-1].copy(), np.ascontiguousarray(descending * signs)


def _krylov(matrix: CovarianceOperator, count: int) -> tuple[FloatArray, FloatArray]:
    # In a unit in which squares of products are finite; a power of two, so that nothing is rounded.
    trace, unit = matrix.trace(), 1.0
    if trace > _ORDINARY or 0.0 < trace < 1.0 / _ORDINARY:
        unit = math.ldexp(1.0, math.frexp(trace)[1])
    values, vectors = block_krylov(
        lambda columns: matrix.product(columns) / unit, matrix.shape[0], count
    )
    return unit * values, vectors


def _lapack(matrix: FloatArray, count: int) -> tuple[FloatArray, FloatArray]:
    dim = matrix.shape[0]
    # LAPACK directly, not scipy's eigh: the same routine in half the time at dim 30.
    values, vectors, found, _, info = dsyevr(matrix, range="I", il=dim - count + 1, iu=dim)
    if info != 0 or found != count:  # bisection failed: compute all by another method
        values, vectors = np.linalg.eigh(matrix)
        return values[-count:], vectors[:, -count:]
    return values[:count], vectors[:, :count]


def _lanczos(matrix: FloatArray, count: int) -> tuple[FloatArray, FloatArray]:
    random = np.random.default_rng(0)  # the same in every call
    start = random.standard_normal(matrix.shape[0])
    # The symmetric product reads half of the matrix; transposed, because BLAS wants columns.
    product = LinearOperator(
        matrix.shape, matvec=lambda vector: dsymv(1.0, matrix.T, vector), dtype=np.float64
    )
    try:
        values, vectors = eigsh(
            product, k=count, which="LA", v0=start, tol=_LANCZOS_TOLERANCE, rng=random
        )
    except ArpackError:  # no convergence, or a start orthogonal to everything
        return _lapack(matrix, count)
    order = np.argsort(values)
    return values[order], vectors[:, order]


def eigenpairs_above(
    matrix: FloatArray | CovarianceOperator,
    threshold: float,
    *,
    floor: int = 0,
    cap: int | None = None,
) -> tuple[FloatArray, FloatArray, int]:
    """Return the top eigenpairs that reach a threshold, computing few others.

    Parameters
    ----------
    matrix : ndarray, shape (dim, dim)
    threshold : float
    floor, cap : int
        The number is at least `floor` and at most `cap` (default dim).

    Returns
    -------
    eigenvalues : ndarray, shape (n_computed,)
        Descending, at least `count`; if possible one more, so that the gap is visible.
    eigenvectors : ndarray, shape (dim, count)
    count : int
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
    return values, np.ascontiguousarray(vectors[:, :count]), count


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
    return one_sided_distance(basis, other)


def one_sided_distance(estimated: FloatArray, true: FloatArray) -> float:
    """Return ‖(I − P̂)U‖₂: the largest part of a unit vector of span(U) outside span(Û).

    Zero if the estimated subspace contains the true one.
    """
    if true.shape[1] == 0:
        return 0.0
    outside = true - estimated @ (estimated.T @ true)
    return min(1.0, float(np.linalg.norm(outside, 2)))


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


# Extra columns: the block then contains directions whose eigenvalues lie close together.
_EXTRA = 8
# Columns, and at least this many blocks, before the search restarts from its best columns, which
# bounds the memory.
_MAX_COLUMNS = 256
_MIN_BLOCKS = 8
_MAX_RESTARTS = 40
# Largest residual of an eigenpair, relative to the largest eigenvalue.
TOLERANCE = 1e-11
# A new direction this short is rounding.
_NEGLIGIBLE = 1e-13


def block_krylov(
    product: Callable[[FloatArray], FloatArray],
    dim: int,
    count: int,
    *,
    tolerance: float = TOLERANCE,
) -> tuple[FloatArray, FloatArray]:
    """Return the algebraically largest eigenvalues, ascending, and their eigenvectors.

    Subspace iteration that keeps its blocks: it searches the span of AQ, A²Q, …, so a few products
    with many columns replace the hundreds that a power iteration needs.

    Parameters
    ----------
    product : callable
        Maps columns, shape (dim, k), to the operator's products with them.
    dim, count : int
    tolerance : float
        Largest residual of an eigenpair, relative to the largest eigenvalue.

    Examples
    --------
    >>> matrix = np.diag([3.0, -9.0, 1.0, 2.0])
    >>> values, vectors = block_krylov(lambda columns: matrix @ columns, 4, 2)
    >>> values.round(9).tolist(), np.abs(vectors).round(9).T.tolist()
    ([2.0, 3.0], [[0.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0, 0.0]])
    """
    width = min(dim, count + _EXTRA)
    columns = np.random.default_rng(0).standard_normal((dim, width))  # the same in every call
    for _ in range(_MAX_RESTARTS):
        start = _orthonormal(columns)
        values, vectors, residual = _search(product, start, count, tolerance)
        if residual <= tolerance:
            return values[-count:], vectors[:, -count:]
        columns = vectors
    # Return the best so far: the rest of the residual comes from nearly equal eigenvalues.
    return values[-count:], vectors[:, -count:]


def _search(
    product: Callable[[FloatArray], FloatArray], block: FloatArray, count: int, tolerance: float
) -> tuple[FloatArray, FloatArray, float]:
    """Return as many pairs of a Krylov space as columns, and the residual of the top `count`."""
    width = block.shape[1]
    basis, image = block, product(block)
    for _ in range(max(_MIN_BLOCKS, _MAX_COLUMNS // width)):
        values, turn = np.linalg.eigh(_symmetric(basis.T @ image))
        values, turn = values[-width:], turn[:, -width:]
        vectors = basis @ turn
        missed = image @ turn[:, -count:] - vectors[:, -count:] * values[-count:]
        scale = float(np.abs(values).max()) or 1.0
        residual = float(np.linalg.norm(missed, axis=0).max()) / scale
        if residual <= tolerance or basis.shape[1] == len(basis):
            return values, vectors, residual if basis.shape[1] < len(basis) else 0.0
        block = _new_directions(image[:, -block.shape[1] :], basis, scale)
        if block.shape[1] == 0:  # the space is invariant, so the result is exact
            return values, vectors, 0.0
        basis = np.hstack([basis, block])
        image = np.hstack([image, product(block)])
    return values, vectors, residual


def _symmetric(matrix: FloatArray) -> FloatArray:
    return 0.5 * (matrix + matrix.T)


def _orthonormal(columns: FloatArray) -> FloatArray:
    return np.linalg.qr(columns)[0]


def _new_directions(columns: FloatArray, basis: FloatArray, scale: float) -> FloatArray:
    """Return an orthonormal basis of the columns' part outside an orthonormal basis."""
    for _ in range(2):  # once is not enough for orthogonality to rounding
        columns = columns - basis @ (basis.T @ columns)
    new, factor, _ = qr(columns, mode="economic", pivoting=True)
    room = len(basis) - basis.shape[1]
    kept = min(int(np.count_nonzero(np.abs(factor.diagonal()) > _NEGLIGIBLE * scale)), room)
    new = new[:, :kept]
    new = new - basis @ (basis.T @ new)
    return _orthonormal(new)
