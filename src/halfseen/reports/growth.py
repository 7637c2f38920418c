"""How fast regret grows with the horizon: a slope on logarithmic axes and its interval."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from halfseen import seeding
from halfseen.reports.data import Point, Results
from halfseen.simulation.tables import Mean, mean_of
from halfseen.studies.spec import Study
from halfseen.values import FloatArray

N_RESAMPLES = 2000
"""Of the seeds, for an interval; the same ones in every run."""

_TAILS = (0.025, 0.975)


class Growth(NamedTuple):
    """Mean final regret by horizon, and the exponent of its growth."""

    horizons: tuple[int, ...]
    means: tuple[Mean, ...]
    slope: float  # of log mean regret against log horizon, by least squares
    low: float  # ends of the 95 % interval from resampling seeds; NaN for one seed
    high: float
    n_seeds: int

    def __str__(self) -> str:
        """Return slope and interval as people read them."""
        if np.isnan(self.low):
            return f"{self.slope:.2f}"
        return f"{self.slope:.2f} [{self.low:.2f}, {self.high:.2f}]"


def growth_of(study: Study, results: Results, method: str, p: float | None = None) -> Growth | None:
    """Return the growth of a method over the settings of a study; None for fewer than two horizons.

    It is taken at one probability, by default the first of each setting. A seed that failed at one
    horizon is left out at all: a slope compares the same seeds.
    """
    columns: dict[int, pd.Series[float]] = {}
    for name, setting in study.settings.items():
        worlds = setting.worlds()
        point = Point(name, p if p is not None else next(iter(worlds)))
        horizon = results.horizon(point, method)
        regrets = results.regrets(point, method)
        if horizon is not None and horizon not in columns and not regrets.empty:
            columns[horizon] = regrets
    horizons = tuple(sorted(columns))
    if len(horizons) < 2:
        return None
    table = pd.concat([columns[horizon] for horizon in horizons], axis=1).dropna()
    regrets_by_seed = table.to_numpy(dtype=float)
    if not len(regrets_by_seed) or (regrets_by_seed.mean(axis=0) <= 0).any():
        return None
    means = tuple(mean_of(column.tolist()) for column in regrets_by_seed.T)
    slope = float(_slopes(horizons, regrets_by_seed.mean(axis=0)))
    low, high = slope_interval(horizons, regrets_by_seed)
    return Growth(horizons, means, slope, low, high, len(regrets_by_seed))


def slope_interval(horizons: tuple[int, ...], regrets: FloatArray) -> tuple[float, float]:
    """Return the 95 % interval of the slope, from resampling seeds (percentile bootstrap).

    `regrets` has shape (n_seeds, n_horizons). All horizons of a seed are resampled together: they
    share its subspace.
    """
    n_seeds = len(regrets)
    if n_seeds < 2:
        return float("nan"), float("nan")
    random = seeding.stream(0, "report", "bootstrap")
    drawn = random.integers(n_seeds, size=(N_RESAMPLES, n_seeds))
    means = regrets[drawn].mean(axis=1)
    means = means[(means > 0).all(axis=1)]
    low, high = np.quantile(_slopes(horizons, means), _TAILS)
    return float(low), float(high)


def _slopes(horizons: tuple[int, ...], means: FloatArray) -> FloatArray:
    """Return the least-squares slope of each row of log means, shape (..., h), on log horizons."""
    x = np.log(np.asarray(horizons, dtype=float))
    x -= x.mean()
    slopes: FloatArray = np.log(means) @ x / (x @ x)
    return slopes
