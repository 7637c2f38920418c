"""Rows of a public table as arms, with their target as reward."""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from halfseen import checks, params, seeding
from halfseen.errors import InvalidSettingError
from halfseen.values import BoolArray, FloatArray, Slate
from halfseen.worlds.base import Facts, Round, World, register_world
from halfseen.worlds.table_sources import read_table, table_names


@register_world("real-table")
class RealTableWorld(World):
    """Each round offers rows of a public table; the reward is the target of the chosen row.

    Features are in the units of the table. A text column is one feature of 0 and 1 per value. The
    holes of the table stay, and more entries can be hidden: a column is hidden with all of its
    features. A target with classes pays 1 for the rarest class and 0 otherwise; a numeric target is
    standardised.

    Parameters
    ----------
    table : str
        A name of `halfseen.worlds.table_sources`, such as "hepatitis".
    n_arms, horizon : int
    observe_prob : float
        Probability that a recorded entry is shown, independently of all others; 1 shows all.
    catalogue : bool
        The same rows with the same holes are offered in every round. Otherwise every round draws
        rows and holes anew, rows with replacement.
    noise_scale : float
        Standard deviation of Gaussian noise that is added to rewards. A catalogue needs noise, or
        clicks: otherwise one play reveals everything about a row.
    click_rate : float, optional
        Rewards are clicks, 1 or 0, instead of targets. The log-odds of a click rise by 1 with each
        standard deviation of the target, and a random row is clicked with this probability.

    Examples
    --------
    >>> realization = RealTableWorld(table="hepatitis", horizon=2).realize(seed=0)
    >>> [(round.slate.n_arms, round.slate.dim) for round in realization.rounds()]
    [(10, 19), (10, 19)]
    """

    table: str = params.choice(words=table_names())
    n_arms: int = params.size(default=10)
    horizon: int = params.horizon(default=2000)
    observe_prob: float = params.probability(default=1.0)
    catalogue: bool = params.flag(default=False)
    noise_scale: float = params.real(default=0.0, low=0.0)
    click_rate: float | None = params.real(
        default=None, low=0.0, high=1.0, low_open=True, high_open=True
    )

    def validate(self) -> None:
        """Raise InvalidSettingError if there are clicks with noise."""
        if self.click_rate is not None and self.noise_scale:
            raise InvalidSettingError(
                f"must be 0 if rewards are clicks, got {self.noise_scale}", name="noise_scale"
            )

    def realize(self, seed: int) -> "RealTableRealization":
        """Return the realization of a seed."""
        return RealTableRealization(self, checks.integer("seed", seed, 0))


class RealTableRealization:
    """All rounds of a `RealTableWorld` with the rows, holes and noise of a seed.

    Attributes
    ----------
    table : SourceTable
    means : ndarray, shape (n_rows,)
        Expected reward of each row.
    """

    def __init__(self, world: RealTableWorld, seed: int) -> None:
        self.world, self.seed, self.table = world, seed, read_table(world.table)
        self.means = self.table.target
        if world.click_rate is not None:
            self.means = click_rates(self.table.target, world.click_rate)
        if world.catalogue and world.n_arms > len(self.means):
            raise InvalidSettingError(
                f"must be in [1, {len(self.means)}], as many rows as {world.table} has, for a "
                f"catalogue, got {world.n_arms}",
                name="n_arms",
            )

    @property
    def facts(self) -> Facts:
        """Facts about this realization; what a target leaves unexplained is not known."""
        world, table = self.world, self.table
        shares = 1.0 - np.isnan(table.values).mean(axis=0)
        whole = shares.min() == 1.0
        return Facts(
            seed=self.seed,
            dim=len(table.names),
            n_arms=world.n_arms,
            horizon=world.horizon,
            observe_prob=world.observe_prob if whole else shares * world.observe_prob,
            noise_scale=world.noise_scale or None,
        )

    def rounds(self) -> Iterator[Round]:
        """Yield all rounds; the full view of arms has the holes of the table."""
        world = self.world
        draws, masks, noises = (
            seeding.stream(self.seed, "world", name) for name in ("rows", "masks", "noise")
        )
        if world.catalogue:
            rows = draws.choice(len(self.means), world.n_arms, replace=False)
            seen = self._seen(masks)
        for _ in range(world.horizon):
            if not world.catalogue:
                rows = draws.integers(len(self.means), size=world.n_arms)
                seen = self._seen(masks)
            arms, means = self.table.values[rows], self.means[rows]
            yield Round(
                Slate(np.where(seen, arms, np.nan)), means, self._noise(noises, means), arms
            )

    def _seen(self, masks: np.random.Generator) -> BoolArray:
        """Draw which columns of each row are shown, shape (n_arms, dim)."""
        origins: NDArray[np.int64] = self.table.origins
        uniforms = masks.random((self.world.n_arms, int(origins[-1]) + 1))
        return np.asarray(uniforms[:, origins] < self.world.observe_prob)

    def _noise(self, noises: np.random.Generator, means: FloatArray) -> float | FloatArray:
        if self.world.click_rate is None:
            return float(self.world.noise_scale * noises.standard_normal())
        return (noises.random(len(means)) < means) - means


def click_rates(target: FloatArray, rate: float) -> FloatArray:
    """Return probabilities, shape (n_rows,), whose log-odds rise with the standardised target.

    >>> click_rates(np.array([0.0, 1.0]), 0.05).round(3), click_rates(np.zeros(3), 0.05).round(3)
    (array([0.013, 0.087]), array([0.05, 0.05, 0.05]))
    """
    from scipy.optimize import brentq  # loads slowly
    from scipy.special import expit

    spread = float(target.std())
    steps = (target - target.mean()) / (spread if spread > 0 else 1.0)
    reach = abs(math.log(rate / (1 - rate))) + float(np.abs(steps).max())
    level = brentq(lambda level: expit(level + steps).mean() - rate, -reach - 1, reach + 1)
    return np.asarray(expit(level + steps))
