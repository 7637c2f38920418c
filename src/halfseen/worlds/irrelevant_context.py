"""The paper's synthetic world with a context that does not matter."""

from collections.abc import Iterator

from halfseen import checks, params, seeding
from halfseen.values import Slate
from halfseen.worlds.base import Facts, Round, World, register_world
from halfseen.worlds.low_rank_rows import LowRankRows, half_seen
from halfseen.worlds.lowrank import LowRankWorld


@register_world("irrelevant-context")
class IrrelevantContextWorld(World):
    """The rounds of a `LowRankWorld`, each with a half-seen context on which nothing depends.

    Parameters
    ----------
    dim, rank, n_arms, horizon : int
    observe_prob : float
        Probability that an entry of an arm or of a context is seen.
    noise_scale : float
    context_dim, context_rank : int

    Examples
    --------
    >>> round = next(IrrelevantContextWorld(horizon=2).realize(seed=0).rounds())
    >>> round.slate.values.shape, round.slate.context.shape
    ((8, 30), (10,))
    """

    dim: int = params.size(default=30)
    rank: int = params.integer(default=3, low=1)
    n_arms: int = params.size(default=8)
    horizon: int = params.horizon(default=400)
    observe_prob: float = params.probability(default=0.3)
    noise_scale: float = params.real(default=0.05, low=0.0)
    context_dim: int = params.size(default=10)
    context_rank: int = params.integer(default=2, low=1)

    def validate(self) -> None:
        """Raise InvalidSettingError if a rank does not fit."""
        self.without_context()  # checks the rank of the arms
        checks.integer("context_rank", self.context_rank, 1, self.context_dim)

    def without_context(self) -> LowRankWorld:
        """Return the world whose rounds these are."""
        return LowRankWorld(
            dim=self.dim,
            rank=self.rank,
            n_arms=self.n_arms,
            horizon=self.horizon,
            observe_prob=self.observe_prob,
            noise_scale=self.noise_scale,
        )

    def realize(self, seed: int) -> "IrrelevantContextRealization":
        """Return the realization of a seed."""
        return IrrelevantContextRealization(self, seed)


class IrrelevantContextRealization:
    """All rounds of an `IrrelevantContextWorld`.

    Attributes
    ----------
    arms : LowRankRealization
        The same rounds without contexts.
    contexts : LowRankRows
    """

    def __init__(self, world: IrrelevantContextWorld, seed: int) -> None:
        self.world, self.arms = world, world.without_context().realize(seed)
        random = seeding.stream(seed, "world", "context parameters")
        self.contexts = LowRankRows.drawn(random, dim=world.context_dim, rank=world.context_rank)

    @property
    def facts(self) -> Facts:
        """Facts about this realization."""
        return self.arms.facts

    def rounds(self) -> Iterator[Round]:
        """Yield all rounds."""
        random = seeding.stream(self.arms.seed, "world", "contexts")
        for slate, means, noise, arms in self.arms.rounds():
            rows = self.contexts.of(self.contexts.latents(random, 1))
            (context,) = half_seen(random, rows, self.world.observe_prob)
            yield Round(Slate.of(slate, context=context), means, noise, arms)
