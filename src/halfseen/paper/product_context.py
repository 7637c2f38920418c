"""Classification as a bandit, with representations of real data that are frozen per seed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen import checks, params, seeding
from halfseen.errors import InvalidSettingError
from halfseen.values import FloatArray, Slate
from halfseen.worlds.base import Facts, Round, World, register_world
from halfseen.worlds.lowrank import half_seen

SOURCES = ("mnist", "newsgroups")
KINDS = {
    "features": np.float32,
    "weights": np.float32,
    "labels": np.uint8,
    "train_accuracy": np.float64,
    "heldout_accuracy": np.float64,
}


@dataclass(frozen=True, slots=True, eq=False)  # compared by identity, because arrays have no hash
class Frozen:
    """Held-out items as a classifier that was trained for one seed represents them.

    `features` are h(x) of each item, (n_items, rank), perhaps those of a sample; `weights` w_k,
    (n_classes, rank): the classifier predicts argmax_k w_k'h(x). `labels` are the true classes;
    accuracies are those on all items of each side of the split. `lift`, (dim, rank), is the
    orthonormal basis that lifts arms in the published instance of this seed: drawing it again needs
    the raw data, because it comes from the generator that made the split.
    """

    features: FloatArray
    weights: FloatArray
    labels: NDArray[np.int64]
    train_accuracy: float
    heldout_accuracy: float
    lift: FloatArray | None = None

    def wrong(self) -> NDArray[np.bool_]:
        """Return for each item whether the classifier errs on it, shape (n_items,)."""
        guesses = np.argmax(self.features @ self.weights.T, axis=1)
        return np.asarray(guesses != self.labels)


def load_frozen(source: str, seed: int) -> Frozen:
    """Return the representation of a seed.

    Raises
    ------
    InvalidSettingError
        The package does not have this seed.

    Examples
    --------
    >>> load_frozen("newsgroups", seed=0).features.shape
    (749, 20)
    """
    representations = read_archive(shipped_archive(source))
    if seed not in representations:
        raise InvalidSettingError(
            f"must be one with frozen features of {source}, {list(representations)}, got {seed}: "
            f"tools/build_data.py makes more",
            name="seed",
        )
    return representations[seed]


def shipped_archive(source: str) -> Path:
    """Return the archive of a source that ships with the package."""
    return Path(str(files("halfseen"))) / "paper" / "data" / f"{source}.npz"


@lru_cache(maxsize=4)  # many realizations share one
def read_archive(path: Path) -> Mapping[int, Frozen]:
    """Return all representations of an archive by seed."""
    with np.load(path, allow_pickle=False) as archive:
        seeds = archive["seeds"].tolist()
        features, weights, labels, train, heldout = (archive[name] for name in KINDS)
        lifts = archive["lift"] if "lift" in archive.files else [None] * len(seeds)
    return {
        seed: Frozen(
            features[index].astype(np.float64),
            weights[index].astype(np.float64),
            labels[index].astype(np.int64),
            float(train[index]),
            float(heldout[index]),
            lifts[index],
        )
        for index, seed in enumerate(seeds)
    }


_CHUNK = 2**18  # features of arms that are held at once: 2 MB


@dataclass(frozen=True, slots=True, eq=False)
class ProductScene:
    """Everything that a seed decides except for the masks: the same for all probabilities.

    `items` has the item of each round, `lift` is U, (dim, rank), with orthonormal columns. All arms
    are multiplied by `scale`, so that the largest has norm 1; `tail_scale` is the standard
    deviation of the nuisance in each of its dimensions. `basis` is the lift turned to the principal
    axes of the signal, and `variances` its second moment along these.
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
) -> ProductScene:
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
    return ProductScene(frozen, seed, items, lift, scale, tail_scale * scale, basis, variances)


def _contexts(frozen: Frozen, items: NDArray[np.int64]) -> FloatArray:
    """Return h(x) ⊙ w_k of some items, shape (n_items, n_arms, rank)."""
    return frozen.features[items][:, None, :] * frozen.weights


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


class _Usual(NamedTuple):
    """What the paper's study of a source sets."""

    dim: int
    horizon: int
    tail: float
    repeats: bool  # whether an item may come more than once
    mask_seed: int | None  # of the published masks: plus the seed, plus 10,000 p


_USUAL = {
    "mnist": _Usual(dim=100, horizon=5000, tail=0.0, repeats=False, mask_seed=50_000),
    "newsgroups": _Usual(dim=1000, horizon=8000, tail=0.25, repeats=True, mask_seed=None),
}


@register_world("product-context")
class ProductContextWorld(World):
    """Arms h(x) ⊙ w_k of an item x and all classes k, lifted to many dimensions and masked.

    A classifier that was trained per seed and then frozen gives features h(x) and class weights
    w_k, so that the sum of the entries of h(x) ⊙ w_k is its score of class k. The lift is a random
    orthonormal basis; all arms are divided by the largest norm. The arm of the true class pays 1,
    the others 0, without noise: regret is the number of wrong labels. Most of it is irreducible:
    the classifier errs even with nothing hidden (`irreducible_regret`).

    With images, at the paper's dim, a seed is the published instance up to the rounding of the
    network's training: same images, lift and masks. With documents, everything except for the split
    is drawn from named streams: the published nuisance needs a basis of 980 dimensions per seed.

    Parameters
    ----------
    source : "mnist" or "newsgroups"
        Images, 10 classes, rank 4, every image at most once; or documents, 4 classes, rank 20,
        drawn with replacement.
    dim, horizon : int, optional
        By default the paper's: 100 and 5000 for images, 1000 and 8000 for documents.
    observe_prob : float
    noise_scale : float
        A fact for policies only (a reward in [0, 1] has R = 0.5): rewards have no noise.
    tail : float, optional
        Strength of a nuisance outside of the lift's span, Gaussian and fresh for every round and
        arm: its largest variance in any direction as a share of the signal's smallest (both
        empirical and centred). By default the paper's: 0 for images, 0.25 for documents.

    Examples
    --------
    >>> world = ProductContextWorld(source="newsgroups", dim=50, horizon=3)
    >>> [round.means.sum() for round in world.realize(seed=0).rounds()]
    [np.float64(1.0), np.float64(1.0), np.float64(1.0)]
    """

    source: str = params.choice(words=SOURCES)
    dim: Any = params.size(default=None)
    horizon: Any = params.horizon(default=None)
    observe_prob: float = params.probability(default=0.3)
    noise_scale: float = params.real(default=0.5, low=0.0)
    tail: Any = params.real(default=None, low=0.0)

    def setup(self) -> None:
        """Fill in the paper's settings."""
        for name in ("dim", "horizon", "tail"):
            if getattr(self, name) is None:
                self.__dict__[name] = getattr(_USUAL[self.source], name)

    def data_paths(self) -> dict[str, Path]:
        """Return the archive with the frozen features."""
        return {"path": shipped_archive(self.source)}

    def realize(self, seed: int) -> "ProductContextRealization":
        """Return the realization of a seed, which must be one with frozen features."""
        return ProductContextRealization(self, checks.integer("seed", seed, 0))


class ProductContextRealization:
    """One classifier, one lift, and all rounds of a `ProductContextWorld`.

    `frozen` are features, class weights and labels, `items` the item of each round. No policy sees
    `basis`, (dim, rank), the principal axes of the signal, largest first, and `latent_variances`,
    its second moment along each of them.
    """

    def __init__(self, world: ProductContextWorld, seed: int) -> None:
        self.world, self.seed = world, seed
        self.frozen = load_frozen(world.source, seed)
        rank = self.frozen.features.shape[1]
        checks.integer("dim", world.dim, rank + 1 if world.tail else rank)
        usual, n_items = _USUAL[world.source], len(self.frozen.labels)
        if not usual.repeats:
            checks.integer("horizon", world.horizon, 1, n_items)
        self._scene = draw_scene(
            self.frozen, seed, world.dim, world.horizon, world.tail, usual.repeats
        )
        self.items = self._scene.items
        self.basis, self.latent_variances = self._scene.basis, self._scene.variances

    @property
    def facts(self) -> Facts:
        """Facts about this realization."""
        return self.world.facts(
            self.seed,
            n_arms=len(self.frozen.weights),
            rank=self.basis.shape[1],
            basis=self.basis,
            latent_variances=self.latent_variances,
        )

    def irreducible_regret(self) -> float:
        """Return the regret of the classifier itself with nothing hidden, in the same rounds."""
        return float(self.frozen.wrong()[self.items].sum())

    def rounds(self) -> Iterator[Round]:
        """Yield all rounds; arms are made in chunks of about 2 MB."""
        world, labels, masks = self.world, self.frozen.labels, self._mask_stream()
        classes = np.arange(len(self.frozen.weights))
        for items, chunk in self._scene.chunks():
            truth = (labels[items][:, None] == classes).astype(np.float64)
            for arms, means in zip(chunk, truth, strict=True):
                yield Round(Slate(half_seen(masks, arms, world.observe_prob)), means, 0.0, arms)

    def _mask_stream(self) -> np.random.Generator:
        offset = _USUAL[self.world.source].mask_seed
        if offset is None:
            return seeding.stream(self.seed, "world", "masks")
        return np.random.default_rng(self.seed + offset + round(10_000 * self.world.observe_prob))
