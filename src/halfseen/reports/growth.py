"""How fast something grows with the horizon, or with another number: a slope and its interval."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from halfseen import seeding
from halfseen.reports.data import Point, Results, points_of
from halfseen.reports.truth import number_at
from halfseen.simulation.tables import Mean, mean_of
from halfseen.studies.spec import Study
from halfseen.values import FloatArray

N_RESAMPLES = 2000
"""Of the seeds, for an interval; the same ones in every run."""

_TAILS = (0.025, 0.975)


class Quantity(NamedTuple):
    """What grows: the final regret of a method, or something else of it.

    Attributes
    ----------
    method : str
    minus : str, optional
        The regret in excess of that of this method.
    value : str, optional
        A diagnostic of the method, at its last position, instead of its regret.
    """

    method: str
    minus: str | None = None
    value: str | None = None

    def by_seed(self, results: Results, point: Point) -> "pd.Series[float]":
        """Return the quantity at a point, by seed."""
        if self.value is not None:
            found = results.diagnostic(point, self.method, self.value)
            return pd.Series(dtype=float) if found.empty else found.iloc[:, -1]
        regrets = results.regrets(point, self.method)
        if self.minus is None:
            return regrets
        return (regrets - results.regrets(point, self.minus)).dropna()


class Growth(NamedTuple):
    """Means at some numbers, and the exponent of their growth."""

    numbers: tuple[float, ...]
    means: tuple[Mean, ...]
    slope: float  # of the log mean against the log number, by least squares
    low: float  # ends of the 95 % interval from resampling seeds; NaN for one seed
    high: float
    n_seeds: int

    def __str__(self) -> str:
        """Return slope and interval as people read them."""
        if np.isnan(self.low):
            return _exponent(self.slope)
        return f"{_exponent(self.slope)} [{_exponent(self.low)}, {_exponent(self.high)}]"


def _exponent(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def growth_of(
    study: Study,
    results: Results,
    quantity: Quantity,
    over: str = "horizon",
    p: float | None = None,
    settings: tuple[str, ...] | None = None,
) -> Growth | None:
    """Return how a quantity grows over settings of a study, by default all; None for one number.

    `over` is "p", "conditioning" (κ) or a setting of the world, such as "horizon" or "n_arms". If
    it is "p", only the probabilities of one setting count, by default the first. Otherwise growth
    is taken at one probability, by default the first of each setting; of several settings with the
    same number the first counts. A seed that failed at one number is left out at all: a slope
    compares the same seeds.
    """
    columns: dict[float, pd.Series[float]] = {}
    for number, point in growth_points(study, over, p, settings).items():
        found = quantity.by_seed(results, point)
        if not found.empty:
            columns[number] = found
    numbers = tuple(sorted(columns))
    if len(numbers) < 2:
        return None
    table = pd.concat([columns[number] for number in numbers], axis=1).dropna()
    by_seed = table.to_numpy(dtype=float)
    if not len(by_seed) or (by_seed.mean(axis=0) <= 0).any():
        return None
    means = tuple(mean_of(column.tolist()) for column in by_seed.T)
    slope = float(_slopes(numbers, by_seed.mean(axis=0)))
    low, high = slope_interval(numbers, by_seed)
    return Growth(numbers, means, slope, low, high, len(by_seed))


def growth_points(
    study: Study, over: str, p: float | None, settings: tuple[str, ...] | None
) -> dict[float, Point]:
    """Return the points over which something grows, by their numbers, as in `growth_of`."""
    found: dict[float, Point] = {}
    for point in _points(study, over, p, settings):
        number = number_at(study, point, over)
        if number is not None:
            found.setdefault(number, point)
    return found


def _points(
    study: Study, over: str, p: float | None, settings: tuple[str, ...] | None
) -> list[Point]:
    names = [name for name in study.settings if settings is None or name in settings]
    if over == "p":
        return points_of(study, tuple(names[:1]))
    first = {name: next(iter(study.settings[name].worlds())) for name in names}
    return [Point(name, first[name] if p is None else p) for name in names]


def slope_interval(numbers: tuple[float, ...], values: FloatArray) -> tuple[float, float]:
    """Return the 95 % interval of the slope, from resampling seeds (percentile bootstrap).

    `values` has shape (n_seeds, n_numbers). All numbers of a seed are resampled together: they
    share its subspace.
    """
    n_seeds = len(values)
    if n_seeds < 2:
        return float("nan"), float("nan")
    random = seeding.stream(0, "report", "bootstrap")
    drawn = random.integers(n_seeds, size=(N_RESAMPLES, n_seeds))
    means = values[drawn].mean(axis=1)
    means = means[(means > 0).all(axis=1)]
    low, high = np.quantile(_slopes(numbers, means), _TAILS)
    return float(low), float(high)


def _slopes(numbers: tuple[float, ...], means: FloatArray) -> FloatArray:
    """Return the least-squares slope of each row of log means, shape (..., n), on log numbers."""
    x = np.log(np.asarray(numbers, dtype=float))
    x -= x.mean()
    slopes: FloatArray = np.log(means) @ x / (x @ x)
    return slopes
