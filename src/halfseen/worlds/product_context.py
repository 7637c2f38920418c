"""Classification as a bandit: every class is an arm, and the true class of an item pays."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from halfseen import checks, params, seeding
from halfseen.values import Slate
from halfseen.worlds.base import Facts, Round, World, register_world
from halfseen.worlds.frozen import SOURCES, load_frozen, shipped_archive
from halfseen.worlds.masking import MaskLaw, mask_param
from halfseen.worlds.product_scene import draw_scene


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
    path : str, optional
        An archive that `halfseen build-data` made, for other seeds than those that ship.
    dim, horizon : int, optional
        By default the paper's: 100 and 5000 for images, 1000 and 8000 for documents.
    observe_prob : float
    noise_scale : float
        A fact for policies only (a reward in [0, 1] has R = 0.5): rewards have no noise.
    tail : float, optional
        Strength of a nuisance outside of the lift's span, Gaussian and fresh for every round and
        arm: its largest variance in any direction as a share of the signal's smallest (both
        empirical and centred). By default the paper's: 0 for images, 0.25 for documents.
    masks : MaskLaw, str or mapping
        Which entries are seen.

    Examples
    --------
    >>> world = ProductContextWorld(source="newsgroups", dim=50, horizon=3)
    >>> [round.means.sum() for round in world.realize(seed=0).rounds()]
    [np.float64(1.0), np.float64(1.0), np.float64(1.0)]
    """

    source: str = params.choice(words=SOURCES)
    path: str | None = params.custom(default=None, check=checks.text, kind="str")
    dim: int | None = params.size(default=None)
    horizon: int | None = params.horizon(default=None)
    observe_prob: float = params.probability(default=0.3)
    noise_scale: float = params.real(default=0.5, low=0.0)
    tail: float | None = params.real(default=None, low=0.0)
    masks: MaskLaw = mask_param()

    def validate(self) -> None:
        """Fill in the paper's settings; raise InvalidSettingError if masks do not fit."""
        for name in ("dim", "horizon", "tail"):
            if getattr(self, name) is None:
                self.__dict__[name] = getattr(_USUAL[self.source], name)
        self.masks.stated_prob(self.observe_prob, _settled(self)[0])

    def data_paths(self) -> dict[str, Path]:
        """Return the archive with the frozen features."""
        return {"path": shipped_archive(self.source) if self.path is None else Path(self.path)}

    def realize(self, seed: int) -> "ProductContextRealization":
        """Return the realization of a seed, which must be one with frozen features."""
        return ProductContextRealization(self, checks.integer("seed", seed, 0))


class ProductContextRealization:
    """One classifier, one lift, and all rounds of a `ProductContextWorld`.

    Attributes
    ----------
    frozen : Frozen
        Features of the items, class weights, labels.
    items : ndarray of int, shape (horizon,)
        The item of each round.
    basis : ndarray, shape (dim, rank)
        The principal axes of the signal, which no policy sees; largest first.
    latent_variances : ndarray, shape (rank,)
        The signal's second moment along each of them.
    """

    def __init__(self, world: ProductContextWorld, seed: int) -> None:
        self.world, self.seed = world, seed
        self.frozen = load_frozen(world.source, seed, world.path)
        self._dim, self._horizon, tail = _settled(world)
        rank = self.frozen.features.shape[1]
        checks.integer("dim", self._dim, rank + 1 if tail else rank)
        usual, n_items = _USUAL[world.source], len(self.frozen.labels)
        if not usual.repeats:
            checks.integer("horizon", self._horizon, 1, n_items)
        self._scene = draw_scene(self.frozen, seed, self._dim, self._horizon, tail, usual.repeats)
        self.items = self._scene.items
        self.basis, self.latent_variances = self._scene.basis, self._scene.variances

    @property
    def facts(self) -> Facts:
        """Facts about this realization."""
        world = self.world
        return Facts(
            seed=self.seed,
            dim=self._dim,
            n_arms=len(self.frozen.weights),
            horizon=self._horizon,
            observe_prob=world.masks.stated_prob(world.observe_prob, self._dim),
            noise_scale=world.noise_scale,
            rank=self.basis.shape[1],
            basis=self.basis,
            latent_variances=self.latent_variances,
        )

    def irreducible_regret(self) -> float:
        """Return the regret of the classifier itself with nothing hidden, in the same rounds."""
        return float(self.frozen.wrong()[self.items].sum())

    def rounds(self) -> Iterator[Round]:
        """Yield all rounds; arms are made in chunks of about 2 MB."""
        world, labels = self.world, self.frozen.labels
        masks = self._mask_stream()
        classes = np.arange(len(self.frozen.weights))
        for items, chunk in self._scene.chunks():
            truth = (labels[items][:, None] == classes).astype(np.float64)
            for arms, means in zip(chunk, truth, strict=True):
                mask = world.masks.mask(masks, arms, world.observe_prob)
                yield Round(Slate(np.where(mask, arms, np.nan)), means, 0.0, arms)

    def _mask_stream(self) -> np.random.Generator:
        offset = _USUAL[self.world.source].mask_seed
        if offset is None:
            return seeding.stream(self.seed, "world", "masks")
        return np.random.default_rng(self.seed + offset + round(10_000 * self.world.observe_prob))


def _settled(world: ProductContextWorld) -> tuple[int, int, float]:
    assert world.dim is not None
    assert world.horizon is not None
    assert world.tail is not None
    return world.dim, world.horizon, world.tail
