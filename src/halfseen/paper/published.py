"""Published regrets, per seed or as means over seeds, and how ours compare with them."""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import NamedTuple

from halfseen.simulation.cells import CellKey
from halfseen.simulation.results import Mean, Point, Results, mean_of

TOLERANCE = 1e-6
"""Largest deviation of a regret in which nothing is random but the instance."""

STANDARD_ERRORS = 3.0
"""Largest mean difference, in standard errors of the paired difference, where policies draw."""

FEWEST_SEEDS = 10
"""With fewer seeds, such a mean is shown but not judged."""


def shipped_rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a published table; none where there is no such table."""
    resource = files("halfseen.paper") / "data" / "published" / f"{name}.csv"
    if not resource.is_file():
        return []
    return list(csv.DictReader(io.StringIO(resource.read_text(encoding="utf-8"))))


# Regrets per seed


class PublishedCell(NamedTuple):
    """What was published for a cell; `exact` if nothing in the policy is random."""

    final_regret: float
    exact: bool


Place = tuple[str, float | None, str, bool]
"""Setting, observation probability, method, and whether nothing in it is random."""


class Group(NamedTuple):
    """Published results of a method and ours, over the seeds that both have.

    `deviation` is the largest difference of a seed where `exact`, else the mean difference in
    standard errors of the paired difference (NaN where it has none).
    """

    setting: str
    p: float | None
    method: str
    exact: bool
    n: int
    published: Mean
    ours: Mean
    deviation: float

    @classmethod
    def of(cls, place: Place, pairs: Sequence[tuple[float, float]]) -> "Group":
        """Return the group of some pairs of ours and theirs."""
        differences = [ours - theirs for ours, theirs in pairs]
        mean, error = mean_of(differences)
        # Written so that NaN is the largest.
        deviation = max((abs(each) for each in differences), key=lambda each: (each != each, each))
        if not place[3]:
            deviation = 0.0 if not mean else mean / error if error else math.nan
        ours, theirs = (mean_of(each) for each in zip(*pairs, strict=True))
        return cls(*place, len(pairs), theirs, ours, deviation)

    @property
    def telling(self) -> bool:
        """Whether there are enough seeds for a standard error to mean something."""
        return self.exact or self.n >= FEWEST_SEEDS

    @property
    def agrees(self) -> bool:
        """Whether the difference is within the tolerance, or nothing can be said."""
        limit = TOLERANCE if self.exact else STANDARD_ERRORS
        return not self.telling or abs(self.deviation) <= limit  # NaN does not agree


class SeedComparison(NamedTuple):
    """The outcome; `missing` are published cells that were to be run and have no regret of ours."""

    groups: list[Group]
    missing: list[CellKey]

    @property
    def agrees(self) -> bool:
        """Whether something was compared and everything agrees."""
        compared = any(group.telling for group in self.groups)
        return compared and all(group.agrees for group in self.groups) and not self.missing


def published(study: str) -> dict[CellKey, PublishedCell]:
    """Return all published cells of a study; empty where nothing is published per seed.

    >>> len(published("synthetic")), len(published("masks"))
    (700, 0)
    """
    return {
        CellKey(
            study, row["setting"], float(row["p"]), row["method"], int(row["seed"])
        ): PublishedCell(float(row["final_regret"]), row["kind"] == "exact")
        for row in shipped_rows(study)
    }


def compare_seeds(
    results: Results, cells: Mapping[CellKey, PublishedCell] | None = None
) -> SeedComparison:
    """Compare a run of a study with what is published for its cells."""
    ours = {tuple(row[name] for name in CellKey._fields): row for row in results.per_seed}
    pairs: dict[Place, list[tuple[float, float]]] = {}
    missing = []
    for key, (theirs, exact) in (published(results.name) if cells is None else cells).items():
        if key in ours and ours[key]["status"] == "ok":
            found = pairs.setdefault((*key[1:4], exact), [])
            found.append((ours[key]["final_regret"], theirs))
        elif key in ours:
            missing.append(key)
    return SeedComparison([Group.of(place, found) for place, found in pairs.items()], missing)


# Means over seeds

LEAST_ERROR = 1.0
"""A standard error counts as at least one wrong label, also where two methods play alike."""

LEVEL_TOLERANCE = 0.05
"""Mean regrets may differ by at most this share, however large their standard error: classifiers
and their errors are the published ones, up to rounding."""

RANK_TOLERANCE = 0.5
"""Means of ranks that are so near to each other agree, whatever their standard error."""

# Those that choose a rank while they play; other ranks are given or tuned.
_ADAPTIVE = ("ra-tofu-fh", "zf-pslb-adaptive")

PUBLISHED_FORM = "-published"
"""Suffix of the key of a method with the published threshold in place of a tuned one."""


class Summary(NamedTuple):
    """What was published for a method over seeds 0 to n − 1.

    `irreducible` is the regret of the classifiers themselves: their mean error on all held-out
    items, times the number of rounds.
    """

    p: float
    method: str
    n: int
    mean_regret: float
    mean_rank: float | None
    irreducible: float
    se_regret: float = math.nan


class Level(NamedTuple):
    """Our mean and the published one; `tolerance` is how far apart the two may be."""

    p: float
    method: str
    published: float
    ours: float
    standard_error: float  # of ours, over its seeds
    tolerance: float

    @property
    def agrees(self) -> bool:
        """Whether the two are near enough; NaN is not."""
        return abs(self.ours - self.published) <= self.tolerance


class SummaryComparison(NamedTuple):
    """The outcome; `missing` are published means for which we lack a seed."""

    excesses: list[Level]
    ranks: list[Level]
    missing: list[Summary]

    @property
    def agrees(self) -> bool:
        """Whether something was compared and everything agrees."""
        all_agree = all(each.agrees for each in (*self.excesses, *self.ranks))
        return bool(self.excesses) and all_agree and not self.missing


def published_summary(study: str) -> list[Summary]:
    """Return the published means of a study; empty where there are none.

    >>> [row.mean_rank for row in published_summary("newsgroups") if row.method == "ra-tofu-fh"]
    [8.2, 7.4, 5.6]
    """
    return [
        Summary(
            p=float(row["p"]),
            method=row["method"],
            n=int(row["n"]),
            mean_regret=float(row["mean_regret"]),
            se_regret=float(row["se_regret"]),
            mean_rank=float(row["mean_rank"]) if row["mean_rank"] else None,
            irreducible=float(row["irreducible"]),
        )
        for row in shipped_rows(f"{study}-summary")
    ]


def compare_means(results: Results) -> SummaryComparison:
    """Compare a run of a study with published means over their seeds.

    Published results per seed are not known, so differences between theirs and ours cannot be
    paired: a difference of two means is taken to have √2 times the standard error of ours.

    Where a method also ran with its published threshold, ranks are compared there: two thresholds
    that are equally good on the validation seeds may choose quite different ranks.
    """
    asked = {(row["p"], row["method"]) for row in results.per_seed}
    found = SummaryComparison([], [], [])
    for figure in published_summary(results.name):
        if (figure.p, figure.method) not in asked:
            continue
        point, seeds = Point("default", figure.p), range(figure.n)
        ours, irreducible = results.regrets(point, figure.method), results.irreducible(point)
        if not all(seed in ours and seed in irreducible for seed in seeds):
            found.missing.append(figure)
            continue
        excesses = [ours[seed] - irreducible[seed] for seed in seeds]
        found.excesses.append(_excess(figure, excesses))
        if figure.method in _ADAPTIVE:
            form = f"{figure.method}{PUBLISHED_FORM}"
            key = form if set(results.regrets(point, form)) >= {*seeds} else figure.method
            chosen = results.final_ranks(point, key)
            ranks = [chosen[seed] for seed in seeds if seed in chosen]
            found.ranks.append(_rank(figure._replace(method=key), ranks))
    return found


def _excess(figure: Summary, excesses: list[float]) -> Level:
    mean, error = _mean_or_nan(excesses)
    by_chance = STANDARD_ERRORS * math.sqrt(2.0) * max(error, LEAST_ERROR)
    tolerance = min(by_chance, LEVEL_TOLERANCE * figure.mean_regret)
    published = figure.mean_regret - figure.irreducible
    return Level(figure.p, figure.method, published, mean, error, tolerance)


def _rank(figure: Summary, ranks: list[float]) -> Level:
    mean, error = _mean_or_nan(ranks)
    tolerance = max(RANK_TOLERANCE, STANDARD_ERRORS * math.sqrt(2.0) * error)
    published = math.nan if figure.mean_rank is None else figure.mean_rank
    return Level(figure.p, figure.method, published, mean, error, tolerance)


def _mean_or_nan(values: list[float]) -> tuple[float, float]:
    """Return mean and standard error, NaN where there is none, so that nothing agrees with it."""
    mean, error = mean_of(values)
    return math.nan if mean is None else mean, math.nan if error is None else error
