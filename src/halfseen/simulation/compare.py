"""Several policies on the same realizations of one world."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from halfseen.policies.base import Policy
from halfseen.simulation.runner import play
from halfseen.worlds.base import World


class Summary(NamedTuple):
    """Final regrets of a method over seeds.

    Attributes
    ----------
    mean : float
    standard_error : float
        Sample standard deviation over the square root of the number of seeds; NaN for one seed.
    final_regrets : tuple of float
        One per seed.
    """

    mean: float
    standard_error: float
    final_regrets: tuple[float, ...]


def summarize(final_regrets: Iterable[float]) -> Summary:
    """Return mean and standard error.

    >>> summarize([1.0, 3.0])
    Summary(mean=2.0, standard_error=1.0, final_regrets=(1.0, 3.0))
    """
    values = tuple(final_regrets)
    n = len(values)
    mean = math.fsum(values) / n
    if n == 1:
        return Summary(mean, math.nan, values)
    variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    return Summary(mean, math.sqrt(variance / n), values)


def compare(
    world: World,
    methods: Mapping[str, Callable[[], Policy]],
    seeds: Iterable[int],
    on_run: Callable[[], None] = lambda: None,
) -> dict[str, Summary]:
    """Let every method play every seed's realization and return their final regrets.

    Parameters
    ----------
    world : World
    methods : mapping from a name to a function that returns a fresh policy
    seeds : iterable of int
    on_run : callable
        Called after each run, for a progress bar.
    """
    finals: dict[str, list[float]] = {name: [] for name in methods}
    for seed in seeds:
        realization = world.realize(seed)
        for name, fresh in methods.items():
            finals[name].append(play(fresh(), realization).final_regret)
            on_run()
    return {name: summarize(values) for name, values in finals.items()}
