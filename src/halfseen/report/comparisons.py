"""Methods compared seed by seed: mean differences with 95 % intervals."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd
from scipy.stats import t as student

from halfseen.report.data import Point, Results, points_of
from halfseen.report.keys import Keys
from halfseen.report.verdicts import paired_difference
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

_KEYS = ("name", "caption", "methods", "against", "setting", "p")


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonSpec:
    """Which methods are compared with which, and where.

    Attributes
    ----------
    name : str
        Of the file, without ending.
    caption : str
    methods : tuple of str
    against : tuple of str
        With the first of these that was run in a setting.
    settings : tuple of str, optional
        All where it does not say.
    probs : tuple of float, optional
        All where it does not say.
    """

    name: str
    caption: str
    methods: tuple[str, ...]
    against: tuple[str, ...]
    settings: tuple[str, ...] | None = None
    probs: tuple[float, ...] | None = None

    def points(self, study: Study) -> list[Point]:
        """Return where it is compared, in the order of the study."""
        found = points_of(study, self.settings)
        return [point for point in found if self.probs is None or point.p in self.probs]


class Compared(NamedTuple):
    """Two methods at a point, over the seeds that both played.

    Attributes
    ----------
    point : Point
    method, against : str
    n : int
    mean, other : float
        Mean final regrets.
    difference : float
        Mean of the first less the second, seed by seed.
    low, high : float
        Student's interval of the difference; NaN for a single seed.
    """

    point: Point
    method: str
    against: str
    n: int
    mean: float
    other: float
    difference: float
    low: float
    high: float

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


def read_comparisons(study: Study) -> tuple[ComparisonSpec, ...]:
    """Return the comparisons of a study, checked.

    Raises
    ------
    StudyError
        The message names the key, such as comparisons[0].against.
    """
    specs: list[ComparisonSpec] = []
    for index, plain in enumerate(study.comparisons):
        keys = Keys(plain, f"comparisons[{index}]", _KEYS)
        name = keys.text("name")
        if not all(c.isalnum() or c in "-_" for c in name) or name in [s.name for s in specs]:
            allowed = "letters, digits, '-' and '_', other than all before: it names a file"
            raise keys.error("name", allowed, name)
        methods, against = keys.texts("methods"), keys.texts("against")
        if methods is None or against is None:
            missing = "methods" if methods is None else "against"
            raise keys.error(missing, "a text or a list of them", None)
        specs.append(
            ComparisonSpec(
                name=name,
                caption=keys.text("caption", name),
                methods=methods,
                against=against,
                settings=keys.texts("setting"),
                probs=keys.probs("p"),
            )
        )
    return tuple(specs)


def compared(study: Study, results: Results, spec: ComparisonSpec) -> list[Compared]:
    """Return every comparison for which both methods were run on common seeds."""
    found = []
    for point in spec.points(study):
        others = [method for method in spec.against if results.has(point, method)]
        for method in spec.methods if others else ():
            pair = compared_pair(results, point, method, others[0])
            if pair is not None:
                found.append(pair)
    return found


def compared_pair(results: Results, point: Point, method: str, other: str) -> Compared | None:
    """Return how two methods compare at a point; None where they share no seed."""
    ours, theirs = results.regrets(point, method), results.regrets(point, other)
    (mean, error), n = paired_difference(ours, theirs)
    if mean is None:
        return None
    both = ours.index.intersection(theirs.index)
    half = math.nan if error is None else float(student.ppf((1 + LEVEL) / 2, n - 1)) * error
    levels = float(ours[both].mean()), float(theirs[both].mean())
    return Compared(point, method, other, n, *levels, mean, mean - half, mean + half)


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
