"""The paper's synthetic world with a context that does not matter."""

from collections.abc import Iterator
from dataclasses import dataclass

from halfseen import checks, seeding
from halfseen.values import Slate
from halfseen.worlds.base import Facts, Round
from halfseen.worlds.low_rank_rows import LowRankRows, half_seen
from halfseen.worlds.lowrank import LowRankWorld
from halfseen.worlds.registry import register_world


@register_world("irrelevant-context")
@dataclass(frozen=True, slots=True, kw_only=True)
class IrrelevantContextWorld:
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

    dim: int = 30
    rank: int = 3
    n_arms: int = 8
    horizon: int = 400
    observe_prob: float = 0.3
    noise_scale: float = 0.05
    context_dim: int = 10
    context_rank: int = 2

    def __post_init__(self) -> None:
        self.without_context()  # checks the settings that both have
        context_dim = checks.size("context_dim", self.context_dim)
        checks.integer("context_rank", self.context_rank, 1, context_dim)

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
