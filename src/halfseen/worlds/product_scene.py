"""The arms of a product-context world, in chunks: items, lift and nuisance."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from halfseen import seeding
from halfseen.values import FloatArray
from halfseen.worlds.frozen import Frozen

_CHUNK = 2**18  # features of arms that are held at once: 2 MB


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """Everything that a seed decides except for the masks: the same for all probabilities.

    Attributes
    ----------
    frozen : Frozen
    seed : int
    items : ndarray of int, shape (horizon,)
        The item of each round.
    lift : ndarray, shape (dim, rank)
        U, with orthonormal columns.
    scale : float
        By which all arms are multiplied, so that the largest has norm 1.
    tail_scale : float
        Standard deviation of the nuisance in each of its dimensions.
    basis, variances : ndarray, shapes (dim, rank) and (rank,)
        The lift turned to the principal axes of the signal, and its second moment along these.
    """

    frozen: Frozen
    seed: int
    items: NDArray[np.int64]
    lift: FloatArray
    scale: float
    tail_scale: float
    basis: FloatArray
    variances: FloatArray

    def chunks(self) -> Iterator[tuple[NDArray[np.int64], FloatArray]]:
        """Yield items (n,) and arms (n, n_arms, dim) of some rounds at a time, in order."""
        (dim, rank), n_arms = self.lift.shape, len(self.frozen.weights)
        random = seeding.stream(self.seed, "world", "nuisance")
        for start, stop in _spans(len(self.items), n_arms * dim):
            items = self.items[start:stop]
            signal = _contexts(self.frozen, items).reshape(-1, rank) * self.scale
            if self.tail_scale:
                # s(g − UU'g) + Uc with one product less. A standard normal g minus its part in the
                # span of U is standard normal in the orthogonal complement, so no basis of that
                # (980 vectors for the documents) is needed.
                arms = np.multiply(_normals(random, len(signal), dim), self.tail_scale, dtype=float)
                arms += (signal - arms @ self.lift) @ self.lift.T
            else:
                arms = signal @ self.lift.T
            yield items, arms.reshape(len(items), n_arms, dim)


@lru_cache(maxsize=4)  # the methods and probabilities of a seed often come one after another
def draw_scene(
    frozen: Frozen, seed: int, dim: int, horizon: int, tail: float, repeats: bool
) -> Scene:
    """Return the scene of a seed; a nuisance is drawn once to find its extent.

    `tail` is the largest eigenvalue of the nuisance's covariance as a share of the signal's
    smallest. With `repeats` items are drawn with replacement; otherwise they come in order.
    """
    n_items, rank = frozen.features.shape
    lift = frozen.lift
    if lift is None or len(lift) != dim:
        normals = seeding.stream(seed, "world", "lift").standard_normal((dim, rank))
        lift = np.linalg.qr(normals)[0]
    items: NDArray[np.int64] = np.arange(horizon)
    if repeats:
        items = seeding.stream(seed, "world", "items").integers(n_items, size=horizon)
    contexts = _contexts(frozen, np.arange(n_items))
    moment, mean = _moments(contexts, np.bincount(items, minlength=n_items))
    squares: FloatArray = np.einsum("nkr,nkr->nk", contexts, contexts)[items].ravel()
    tail_scale = 0.0
    if tail:
        top, lengths = _nuisance_extent(seed, horizon, len(frozen.weights), lift)
        last = max(0.0, float(np.linalg.eigvalsh(moment - np.outer(mean, mean))[0]))
        tail_scale = float(np.sqrt(tail * last / top))
        squares += tail_scale**2 * lengths
    scale = 1.0 / float(np.sqrt(squares.max()))
    variances, axes = np.linalg.eigh(moment * scale**2)
    basis, variances = lift @ axes[:, ::-1], variances[::-1].copy()
    for array in (items, basis, variances):
        array.setflags(write=False)  # many realizations share them
    return Scene(frozen, seed, items, lift, scale, tail_scale * scale, basis, variances)


def _contexts(frozen: Frozen, items: NDArray[np.int64]) -> FloatArray:
    """Return h(x) ⊙ w_k of some items, shape (n_items, n_arms, rank)."""
    contexts: FloatArray = frozen.features[items][:, None, :] * frozen.weights
    return contexts


def _moments(contexts: FloatArray, counts: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
    """Return second moment and mean of contexts (n_items, n_arms, rank) with these counts."""
    n_rows = counts.sum() * contexts.shape[1]
    weighted = contexts * counts[:, None, None]
    moment: FloatArray = np.tensordot(weighted, contexts, axes=((0, 1), (0, 1))) / n_rows
    mean: FloatArray = weighted.sum(axis=(0, 1)) / n_rows
    return moment, mean


def _nuisance_extent(
    seed: int, horizon: int, n_arms: int, lift: FloatArray
) -> tuple[float, FloatArray]:
    """Return the top eigenvalue and each arm's squared norm of the unscaled nuisance.

    The eigenvalue is that of the empirical centred covariance PCP, with P = I − UU' and C the
    covariance of the normals before projection, so that only the norms need a projection. The
    product that gives C is nearly all of the cost (32,000 × 1000² for the documents): it is done
    in single precision and summed in double, which gives the eigenvalue to about 1e-6.
    """
    from scipy.linalg import eigh

    dim = len(lift)
    random = seeding.stream(seed, "world", "nuisance")
    gram, total, n_rows = np.zeros((dim, dim)), np.zeros(dim), horizon * n_arms
    lengths = np.empty(n_rows)
    for start, stop in _spans(horizon, n_arms * dim):
        rows = slice(start * n_arms, stop * n_arms)
        single = _normals(random, rows.stop - rows.start, dim)
        gram += single.T @ single
        double = single.astype(np.float64)
        total += double.sum(axis=0)
        inside = double @ lift
        lengths[rows] = np.einsum("nd,nd->n", double, double)
        lengths[rows] -= np.einsum("nr,nr->n", inside, inside)
    mean = total / n_rows
    covariance = gram / n_rows - np.outer(mean, mean)
    covariance -= lift @ (lift.T @ covariance)
    covariance -= (covariance @ lift) @ lift.T
    (top,) = eigh(covariance, eigvals_only=True, subset_by_index=(dim - 1, dim - 1))
    return float(top), lengths


def _normals(random: np.random.Generator, n_rows: int, dim: int) -> NDArray[np.float32]:
    return random.standard_normal((n_rows, dim), dtype=np.float32)


def _spans(horizon: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield where chunks of rounds begin and end; `size` is the number of features of a round."""
    step = max(1, _CHUNK // size)
    for start in range(0, horizon, step):
        yield start, min(start + step, horizon)
