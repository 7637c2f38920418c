"""Arms whose latents are photographs of digits: real covariates in a random subspace."""

from collections.abc import Iterator
from functools import cache

import numpy as np

from halfseen import checks, params
from halfseen.lazy import from_extra
from halfseen.linear.eigen import top_eigenpairs
from halfseen.values import FloatArray, Slate
from halfseen.worlds.base import Facts, Round, World, register_world
from halfseen.worlds.lowrank import half_seen

MAX_RANK = 61
"""Number of the 64 pixels that are not the same in all images."""

_LOADINGS = (1.25, 0.75)
_CONSTANT = 1e-12  # a column with a smaller deviation is constant up to rounding
_ROUNDS_AT_ONCE = 512


@register_world("digits")
class DigitsWorld(World):
    """Optical digits as latents of low-rank arms; defaults are the published study's.

    Every arm is a random one of scikit-learn's 1797 images of 8 × 8 pixels: its first principal
    coordinates, standardised, scaled to one length, and multiplied by loadings from 1.25 to 0.75.
    Arms are UΛz with a random subspace U, all divided by the length of the longest one. Random
    numbers are drawn in the published order, so that the realization of a seed is the published
    instance.

    Parameters
    ----------
    dim, rank, n_arms, horizon : int
        The rank is at most 61.
    observe_prob : float
        Probability that an entry is seen.
    noise_scale : float
        Standard deviation of the Gaussian reward noise.

    Examples
    --------
    >>> realization = DigitsWorld(horizon=2).realize(seed=0)
    >>> [(round.slate.n_arms, round.slate.dim) for round in realization.rounds()]
    [(8, 80), (8, 80)]
    """

    dim: int = params.size(default=80)
    rank: int = params.integer(default=3, low=1)
    n_arms: int = params.size(default=8)
    horizon: int = params.horizon(default=600)
    observe_prob: float = params.probability(default=0.3)
    noise_scale: float = params.real(default=0.05, low=0.0)

    def setup(self) -> None:
        """Raise InvalidSettingError if the rank does not fit."""
        checks.integer("rank", self.rank, 1, min(self.dim, MAX_RANK))

    def realize(self, seed: int) -> "DigitsRealization":
        """Return the realization of a seed."""
        return DigitsRealization(self, checks.integer("seed", seed, 0))


class DigitsRealization:
    """One subspace, one parameter and all rounds of a `DigitsWorld`.

    No policy sees `basis`, U of shape (dim, rank), `latents`, the coordinates of every image in U
    (the longest among the offered ones has length 1), `theta`, of norm 1 and in the span of U, and
    `offered`, how often each image is an arm.
    """

    def __init__(self, world: DigitsWorld, seed: int) -> None:
        self.world, self.seed = world, seed
        latents = latent_pool(world.rank) * np.linspace(*_LOADINGS, world.rank)
        random = np.random.default_rng(seed)
        # Draw order of the published instances: images of all rounds, basis, parameter, masks.
        self.offered = self._count(random, len(latents))
        self.basis: FloatArray = np.linalg.qr(random.standard_normal((world.dim, world.rank)))[0]
        direction = random.standard_normal(world.rank)
        self.theta: FloatArray = self.basis @ (direction / np.linalg.norm(direction))
        self._after_setup = random.bit_generator.state
        longest = np.linalg.norm(latents[self.offered > 0], axis=1).max()
        self.latents: FloatArray = latents / longest

    def _count(self, random: np.random.Generator, n_images: int) -> FloatArray:
        """Draw the images of all rounds, a part at a time, and count them."""
        world, offered = self.world, np.zeros(n_images)
        for start in range(0, world.horizon, _ROUNDS_AT_ONCE):
            n_rounds = min(_ROUNDS_AT_ONCE, world.horizon - start)
            drawn = random.integers(n_images, size=n_rounds * world.n_arms)
            offered += np.bincount(drawn, minlength=n_images)
        return offered

    @property
    def facts(self) -> Facts:
        """Facts about this realization; variances are those of the offered arms."""
        world = self.world
        return world.facts(
            self.seed,
            basis=self.basis,
            # About zero: what is low-rank is the second moment.
            latent_variances=self.offered @ self.latents**2 / (world.horizon * world.n_arms),
        )

    def rounds(self) -> Iterator[Round]:
        """Yield all rounds; images are drawn again, the same ones as before."""
        world, masks = self.world, np.random.default_rng()
        masks.bit_generator.state = self._after_setup
        # The published instances draw noise from the same integer, so from the same bits.
        images, noises = np.random.default_rng(self.seed), np.random.default_rng(self.seed)
        for _ in range(world.horizon):
            drawn = images.integers(len(self.latents), size=world.n_arms)
            arms = self.latents[drawn] @ self.basis.T
            slate = Slate(half_seen(masks, arms, world.observe_prob))
            noise = world.noise_scale * noises.standard_normal()
            yield Round(slate, arms @ self.theta, float(noise), arms)


@cache
def latent_pool(rank: int) -> FloatArray:
    """Return the latents of all images, shape (1797, rank), read-only.

    Pixels are standardised and images scaled to length 1; then their principal coordinates are
    standardised and scaled to length 1/√rank.
    """
    with from_extra("paper"):
        from sklearn.datasets import load_digits

    images = _standardized(np.asarray(load_digits().data, dtype=np.float64))
    images /= np.linalg.norm(images, axis=1, keepdims=True)
    # Signs of directions are fixed, because instances depend on them; those of the first five are
    # the published ones.
    _, directions = top_eigenpairs(images.T @ images, rank)
    pool = _standardized(images @ directions)
    pool /= np.linalg.norm(pool, axis=1, keepdims=True) * np.sqrt(rank)
    pool.setflags(write=False)
    return pool


def _standardized(table: FloatArray) -> FloatArray:
    """Return columns with mean 0 and deviation 1; constant ones become 0."""
    deviations = table.std(axis=0)
    scaled: FloatArray = (table - table.mean(axis=0)) / np.where(
        deviations < _CONSTANT, 1.0, deviations
    )
    return scaled
