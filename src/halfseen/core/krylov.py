"""Top eigenpairs of a symmetric operator that is given by its products with columns."""

from collections.abc import Callable

import numpy as np
from scipy.linalg import qr

from halfseen.values import FloatArray

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
