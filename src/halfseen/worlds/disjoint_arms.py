"""Items without features, each with its own parameter for a half-seen context."""

from collections.abc import Iterator

import numpy as np

from halfseen import checks, params, seeding
from halfseen.values import Slate
from halfseen.worlds.base import Facts, Round, World, register_world
from halfseen.worlds.low_rank_rows import LowRankRows, half_seen


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

    def validate(self) -> None:
        """Raise InvalidSettingError if the rank does not fit the dimension."""
        checks.integer("context_rank", self.context_rank, 1, self.context_dim)

    def realize(self, seed: int) -> "DisjointArmsRealization":
        """Return the realization of a seed."""
        return DisjointArmsRealization(self, checks.integer("seed", seed, 0))


class DisjointArmsRealization:
    """All rounds of a `DisjointArmsWorld` with the parameters of a seed.

    Attributes
    ----------
    contexts : LowRankRows
    intercepts : ndarray, shape (n_arms,)
    thetas : ndarray, shape (n_arms, context_rank)
        For the latents of a context.
    """

    def __init__(self, world: DisjointArmsWorld, seed: int) -> None:
        self.world, self.seed = world, seed
        rank, random = world.context_rank, seeding.stream(seed, "world", "parameters")
        self.contexts = LowRankRows.drawn(random, dim=world.context_dim, rank=rank)
        self.intercepts = world.main_effect * random.standard_normal(world.n_arms)
        self.thetas = random.standard_normal((world.n_arms, rank)) / np.sqrt(rank)

    @property
    def facts(self) -> Facts:
        """Facts about this realization; arms have no features, so nothing is known of these."""
        world = self.world
        return Facts(
            seed=self.seed,
            dim=1,
            n_arms=world.n_arms,
            horizon=world.horizon,
            noise_scale=world.noise_scale,
        )

    def rounds(self) -> Iterator[Round]:
        """Yield all rounds."""
        world = self.world
        draws, masks, noises = (
            seeding.stream(self.seed, "world", name) for name in ("rows", "masks", "noise")
        )
        items = np.arange(world.n_arms)
        for _ in range(world.horizon):
            latents = self.contexts.latents(draws, 1)
            context = half_seen(masks, self.contexts.of(latents), world.observe_prob)[0]
            arms = np.full((world.n_arms, 1), np.nan)
            means = self.intercepts + self.thetas @ latents[0]
            noise = world.noise_scale * float(noises.standard_normal())
            yield Round(Slate(arms, context=context, items=items), means, noise, arms)
