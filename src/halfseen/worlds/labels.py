"""Labels of a public table as arms, with its rows as contexts."""

from collections.abc import Iterator

import numpy as np

from halfseen import checks, params, seeding
from halfseen.values import Slate
from halfseen.worlds.base import Facts, Round, World, register_world
from halfseen.worlds.table_sources import read_table, table_names


@register_world("labels")
class LabelsWorld(World):
    """Each round shows a row of a public table as context; the arm that is its label pays 1.

    All labels are offered in every round, as items without features. Rows are drawn with
    replacement, in the units of the table and with its holes; further columns can be hidden.
    A numeric target has three labels: low, middle, high.

    Parameters
    ----------
    table : str
        A name of `halfseen.worlds.table_sources`, such as "hepatitis".
    horizon : int
    observe_prob : float
        Probability that a recorded entry is shown, independently of all others; 1 shows all.
    noise_scale : float
        Standard deviation of Gaussian noise that is added to rewards.

    Examples
    --------
    >>> round = next(LabelsWorld(table="wine", horizon=2).realize(seed=0).rounds())
    >>> round.slate.items.tolist(), round.slate.context.shape, round.means.tolist()
    ([0, 1, 2], (13,), [0.0, 0.0, 1.0])
    """

    table: str = params.choice(words=table_names())
    horizon: int = params.horizon(default=2000)
    observe_prob: float = params.probability(default=1.0)
    noise_scale: float = params.real(default=0.0, low=0.0)

    def realize(self, seed: int) -> "LabelsRealization":
        """Return the realization of a seed."""
        return LabelsRealization(self, checks.integer("seed", seed, 0))


class LabelsRealization:
    """All rounds of a `LabelsWorld` with the rows, holes and noise of a seed.

    Attributes
    ----------
    table : SourceTable
    n_labels : int
    """

    def __init__(self, world: LabelsWorld, seed: int) -> None:
        self.world, self.seed, self.table = world, seed, read_table(world.table)
        self.n_labels = int(self.table.labels.max()) + 1

    @property
    def facts(self) -> Facts:
        """Facts about this realization; arms have no features, so nothing is known of these."""
        return Facts(
            seed=self.seed,
            dim=1,
            n_arms=self.n_labels,
            horizon=self.world.horizon,
            noise_scale=self.world.noise_scale or None,
        )

    def rounds(self) -> Iterator[Round]:
        """Yield all rounds."""
        world, table = self.world, self.table
        draws, masks, noises = (
            seeding.stream(self.seed, "world", name) for name in ("rows", "masks", "noise")
        )
        items, means = np.arange(self.n_labels), np.eye(self.n_labels)
        for _ in range(world.horizon):
            row = int(draws.integers(len(table.values)))
            seen = masks.random(int(table.origins[-1]) + 1) < world.observe_prob
            context = np.where(seen[table.origins], table.values[row], np.nan)
            arms = np.full((self.n_labels, 1), np.nan)
            noise = world.noise_scale * float(noises.standard_normal())
            slate = Slate(arms, context=context, items=items)
            yield Round(slate, means[table.labels[row]].copy(), noise, arms)
