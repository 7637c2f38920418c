"""When epochs start, and how the failure probability is shared among them."""

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass

from halfseen import checks
from halfseen.core.theory import n_epochs_bound

LARGEST_GROWTH = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochSchedule:
    """Rounds 1 … burn_in, then epochs that start at τ₀ = burn_in + 1 and grow by a factor.

    τ_{e+1} = max(τ_e + 1, ⌈g·τ_e⌉); g = 2 in the paper. The schedule depends on the round alone.

    Parameters
    ----------
    burn_in : int
        At least 1.
    growth : float
        g > 1, at most a million.

    Examples
    --------
    >>> schedule = EpochSchedule(burn_in=30)
    >>> schedule.starts(400)
    [31, 62, 124, 248]
    >>> [schedule.epoch_at(round) for round in (30, 31, 61, 62)]
    [-1, 0, 0, 1]

    Notes
    -----
    Paper: alg:bandits
    """

    burn_in: int
    growth: float = 2.0

    def __post_init__(self) -> None:
        # Stored as plain numbers, so that settings can be written as JSON.
        object.__setattr__(self, "burn_in", checks.integer("burn_in", self.burn_in, 1))
        growth = checks.real("growth", self.growth, 1.0, LARGEST_GROWTH, low_open=True)
        object.__setattr__(self, "growth", growth)

    def next_start(self, start: int) -> int:
        """Return the start of the epoch after the one that starts at `start`."""
        return max(start + 1, math.ceil(self.growth * start))

    def starts(self, horizon: int) -> list[int]:
        """Return the starts of all epochs up to and including round `horizon`."""
        return [start for start, _ in self._until(horizon)]

    def epoch_at(self, round: int) -> int:
        """Return the index of the epoch that contains `round`, −1 during burn-in."""
        return len(self.starts(round)) - 1

    def rounds(self, epoch: int, horizon: int) -> range:
        """Return the rounds of an epoch up to the horizon, empty if it starts later."""
        for index, (start, stop) in enumerate(self._until(horizon)):
            if index == epoch:
                return range(start, min(stop, horizon + 1))
        return range(0)

    def failure_prob(self, total: float, epoch: int, horizon: int | None) -> float:
        """Return δ_e, an epoch's share of the failure probability.

        With a horizon δ_e = δ / (2·number of epochs). For g = 2 that number is the paper's bound
        ⌈log₂ T⌉ + 2, as in the published runs. Without a horizon δ_e = δ / (2(e + 1)(e + 2)), which
        sums to at most δ/2.

        Examples
        --------
        >>> schedule = EpochSchedule(burn_in=30)
        >>> schedule.failure_prob(0.05, 0, 400) == 0.05 / 22
        True
        """
        if horizon is None:
            return total / (2.0 * (epoch + 1) * (epoch + 2))
        return total / (2.0 * _n_epochs(self, checks.integer("horizon", horizon, 1)))

    def _until(self, horizon: int) -> Iterator[tuple[int, int]]:
        start = self.burn_in + 1
        while start <= horizon:
            stop = self.next_start(start)
            yield start, stop
            start = stop


@functools.lru_cache(maxsize=64)  # a growth close to 1 has many epochs, and each one calls this
def _n_epochs(schedule: EpochSchedule, horizon: int) -> int:
    if schedule.growth == 2.0:
        return n_epochs_bound(horizon)
    return max(1, len(schedule.starts(horizon)))
