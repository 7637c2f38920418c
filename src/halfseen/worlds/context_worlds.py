"""Worlds whose rounds have a half-seen context that matters."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from halfseen import checks, params, seeding
from halfseen.errors import InvalidSettingError
from halfseen.values import FloatArray, Slate
from halfseen.worlds.base import Facts, Round, World, register_world, streams
from halfseen.worlds.lowrank import drawn_loadings, half_seen


@register_world("bilinear")
class BilinearWorld(World):
    """An option with latents z in a context with latents w pays z'Mw + a'z + b'w and noise.

    Latents are standard normal, ‖M‖ = 1 (Frobenius), ‖a‖ = ‖b‖ = `main_effect`.

    Parameters
    ----------
    dim, rank : int
        Of options.
    context_dim, context_rank : int
    n_arms, horizon : int
    n_items : int, optional
        Size of a catalogue: each round offers `n_arms` of these items, whose features and masks
        stay the same. By default every round draws new options.
    observe_prob : float
        Probability that an entry of an option or of a context is seen.
    main_effect, noise_scale : float

    Examples
    --------
    >>> round = next(BilinearWorld(horizon=2).realize(seed=0).rounds())
    >>> round.slate.values.shape, round.slate.context.shape
    ((8, 15), (10,))
    """

    dim: int = params.size(default=15)
    rank: int = params.integer(default=2, low=1)
    context_dim: int = params.size(default=10)
    context_rank: int = params.integer(default=2, low=1)
    n_arms: int = params.size(default=8)
    n_items: int | None = params.size(default=None)
    horizon: int = params.horizon(default=1000)
    observe_prob: float = params.probability(default=0.5)
    main_effect: float = params.real(default=0.5, low=0.0)
    noise_scale: float = params.real(default=0.3, low=0.0)

    def setup(self) -> None:
        """Raise InvalidSettingError if a rank or the catalogue does not fit."""
        checks.integer("rank", self.rank, 1, self.dim)
        checks.integer("context_rank", self.context_rank, 1, self.context_dim)
        if self.n_items is not None and self.n_items < self.n_arms:
            raise InvalidSettingError(
                f"must be at least {self.n_arms}, the number of arms, got {self.n_items}",
                name="n_items",
            )

    def realize(self, seed: int) -> "BilinearRealization":
        """Return the realization of a seed."""
        return BilinearRealization(self, checks.integer("seed", seed, 0))


class BilinearRealization:
    """All rounds of a `BilinearWorld` with the parameters of a seed.

    Attributes
    ----------
    options, contexts : ndarray, shape (dim, rank) and (context_dim, context_rank)
        Loadings.
    interaction : ndarray, shape (rank, context_rank)
        M.
    option_effect, context_effect : ndarray
        a and b.
    """

    def __init__(self, world: BilinearWorld, seed: int) -> None:
        self.world, self.seed = world, seed
        random = seeding.stream(seed, "world", "parameters")
        self.options = drawn_loadings(random, world.dim, world.rank)
        self.contexts = drawn_loadings(random, world.context_dim, world.context_rank)
        self.interaction: FloatArray = _unit(
            random.standard_normal((world.rank, world.context_rank))
        )
        self.option_effect = world.main_effect * _unit(random.standard_normal(world.rank))
        self.context_effect = world.main_effect * _unit(random.standard_normal(world.context_rank))

    @property
    def facts(self) -> Facts:
        """Facts about this realization."""
        return self.world.facts(self.seed)

    def rounds(self) -> Iterator[Round]:
        """Yield all rounds."""
        world = self.world
        draws, masks, noises = streams(self.seed)
        items: NDArray[np.int64] | None = None
        if world.n_items is not None:
            catalogue = draws.standard_normal((world.n_items, world.rank))
            table = half_seen(masks, catalogue @ self.options.T, world.observe_prob)
        for _ in range(world.horizon):
            if world.n_items is None:
                latents = draws.standard_normal((world.n_arms, world.rank))
                arms = latents @ self.options.T
                shown = half_seen(masks, arms, world.observe_prob)
            else:
                items = draws.choice(world.n_items, world.n_arms, replace=False)
                latents, shown = catalogue[items], table[items]
                arms = latents @ self.options.T
                arms = np.where(np.isnan(shown), arms, shown)  # products of parts round otherwise
            visitor = draws.standard_normal((1, world.context_rank))
            context = half_seen(masks, visitor @ self.contexts.T, world.observe_prob)[0]
            means = latents @ (self.interaction @ visitor[0] + self.option_effect)
            means += float(visitor[0] @ self.context_effect)
            noise = world.noise_scale * float(noises.standard_normal())
            yield Round(Slate(shown, context=context, items=items), means, noise, arms)


def _unit(array: FloatArray) -> FloatArray:
    return np.asarray(array / np.linalg.norm(array))


@register_world("disjoint-arms")
class DisjointArmsWorld(World):
    """Item i pays b_i + θ_i'w and noise in a context of low rank with latents w ~ N(0, I).

    All items are offered in every round, by number and without features. θ_i has independent
    normal entries with E‖θ_i‖² = 1, and b_i has the deviation `main_effect`.

    Parameters
    ----------
    context_dim, context_rank : int
    n_arms, horizon : int
    observe_prob : float
        Probability that an entry of a context is seen.
    main_effect, noise_scale : float

    Examples
    --------
    >>> round = next(DisjointArmsWorld(n_arms=3, horizon=2).realize(seed=0).rounds())
    >>> round.slate.items.tolist(), round.slate.context.shape
    ([0, 1, 2], (15,))
    """

    context_dim: int = params.size(default=15)
    context_rank: int = params.integer(default=3, low=1)
    n_arms: int = params.size(default=5)
    horizon: int = params.horizon(default=1000)
    observe_prob: float = params.probability(default=0.5)
    main_effect: float = params.real(default=0.5, low=0.0)
    noise_scale: float = params.real(default=0.3, low=0.0)

    def setup(self) -> None:
        """Raise InvalidSettingError if the rank does not fit the dimension."""
        checks.integer("context_rank", self.context_rank, 1, self.context_dim)

    def realize(self, seed: int) -> "DisjointArmsRealization":
        """Return the realization of a seed."""
        return DisjointArmsRealization(self, checks.integer("seed", seed, 0))


class DisjointArmsRealization:
    """All rounds of a `DisjointArmsWorld` with the parameters of a seed.

    Attributes
    ----------
    contexts : ndarray, shape (context_dim, context_rank)
        Loadings.
    intercepts : ndarray, shape (n_arms,)
    thetas : ndarray, shape (n_arms, context_rank)
        For the latents of a context.
    """

    def __init__(self, world: DisjointArmsWorld, seed: int) -> None:
        self.world, self.seed = world, seed
        rank, random = world.context_rank, seeding.stream(seed, "world", "parameters")
        self.contexts = drawn_loadings(random, world.context_dim, rank)
        self.intercepts = world.main_effect * random.standard_normal(world.n_arms)
        self.thetas = random.standard_normal((world.n_arms, rank)) / np.sqrt(rank)

    @property
    def facts(self) -> Facts:
        """Facts about this realization; arms have no features, so nothing is known of these."""
        return self.world.facts(self.seed, dim=1, observe_prob=None)

    def rounds(self) -> Iterator[Round]:
        """Yield all rounds."""
        world = self.world
        draws, masks, noises = streams(self.seed)
        items = np.arange(world.n_arms)
        for _ in range(world.horizon):
            latents = draws.standard_normal((1, world.context_rank))
            context = half_seen(masks, latents @ self.contexts.T, world.observe_prob)[0]
            arms = np.full((world.n_arms, 1), np.nan)
            means = self.intercepts + self.thetas @ latents[0]
            noise = world.noise_scale * float(noises.standard_normal())
            yield Round(Slate(arms, context=context, items=items), means, noise, arms)
