"""Methods compared seed by seed: mean differences with 95 % intervals."""

import math
from typing import NamedTuple

import pandas as pd
from scipy.special import stdtrit  # scipy.stats takes half a second to import

from halfseen.reports.data import Point, Results, points_of
from halfseen.reports.verdicts import paired_difference
from halfseen.studies.figures import Comparison
from halfseen.studies.spec import Study

LEVEL = 0.95
"""Of every interval."""

COMPARED = (
    "setting",
    "p",
    "method",
    "against",
    "n",
    "mean_regret",
    "against_regret",
    "ratio",
    "difference",
    "low",
    "high",
)
"""Columns of a comparison's file: difference is the method's regret less the other's."""


class Compared(NamedTuple):
    """Two methods at a point, over the seeds that both played."""

    point: Point
    method: str
    against: str
    seeds: tuple[int, ...]
    mean: float  # final regret
    other: float  # final regret of the other method
    difference: float  # mean of the first less the second, seed by seed
    error: float  # standard error of the difference; NaN for a single seed
    low: float  # Student's interval of the difference; NaN for a single seed
    high: float

    @property
    def n(self) -> int:
        """Number of seeds."""
        return len(self.seeds)

    @property
    def decided(self) -> bool:
        """Whether zero is outside of the interval."""
        return self.low > 0 or self.high < 0

    @property
    def text(self) -> str:
        """The difference and its interval."""
        text = f"{self.difference:+.3g}"
        if not math.isnan(self.low):
            text += f" [{self.low:+.3g}, {self.high:+.3g}]"
        return text.replace("-", "−")

    @property
    def ratio(self) -> float:
        """Mean regret over the other one's; NaN where that is 0."""
        return self.mean / self.other if self.other else math.nan


def compared(study: Study, results: Results, spec: Comparison) -> list[Compared]:
    """Return every comparison for which both methods were run on common seeds."""
    found = []
    points = points_of(study, spec.setting)
    for point in points if spec.p is None else [each for each in points if each.p in spec.p]:
        others = [method for method in spec.against if results.has(point, method)]
        if others and spec.choose_seeds is not None:
            others = best_of(results, point, others, spec.choose_seeds)
        for method in spec.methods if others else ():
            pair = compared_pair(results, point, method, others[0], spec.choose_seeds or ())
            if pair is not None:
                found.append(pair)
    return found


def best_of(
    results: Results, point: Point, methods: list[str], seeds: tuple[int, ...]
) -> list[str]:
    """Return methods by their mean regret on some seeds, the best first.

    A method counts only if it has a regret on all of these seeds that were run.
    """
    regrets = {method: results.regrets(point, method) for method in methods}
    on_seeds = {method: found[found.index.isin(seeds)] for method, found in regrets.items()}
    n_run = max(len(found) for found in on_seeds.values())
    complete = [method for method, found in on_seeds.items() if len(found) == n_run > 0]
    return sorted(complete, key=lambda method: float(on_seeds[method].mean()))


def compared_pair(
    results: Results, point: Point, method: str, other: str, without: tuple[int, ...] = ()
) -> Compared | None:
    """Return how two methods compare at a point; None where they share no seed.

    Seeds in `without` are left out.
    """
    ours, theirs = results.regrets(point, method), results.regrets(point, other)
    both = ours.index.intersection(theirs.index)
    both = both[~both.isin(without)]
    ours, theirs = ours[both], theirs[both]
    (mean, error), n = paired_difference(ours, theirs)
    if mean is None:
        return None
    error = math.nan if error is None else error
    half = float(stdtrit(n - 1, (1 + LEVEL) / 2)) * error if n > 1 else math.nan
    levels = float(ours.mean()), float(theirs.mean())
    return Compared(
        point, method, other, tuple(both), *levels, mean, error, mean - half, mean + half
    )


def frame_of(found: list[Compared]) -> pd.DataFrame:
    """Return comparisons as a table with the columns `COMPARED`."""
    rows = [
        (
            *pair.point,
            pair.method,
            pair.against,
            pair.n,
            pair.mean,
            pair.other,
            pair.ratio,
            pair.difference,
            pair.low,
            pair.high,
        )
        for pair in found
    ]
    return pd.DataFrame(rows, columns=list(COMPARED))
