"""Published regrets, per seed or as means over seeds, and how ours compare with them."""

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import NamedTuple

from halfseen.simulation.results import Mean, Results, Row, mean_of

TOLERANCE = 1e-6
"""Largest deviation of a regret in which nothing is random but the instance."""

STANDARD_ERRORS = 3.0
"""Largest mean difference, in standard errors of the paired difference, where policies draw."""

FEWEST_SEEDS = 10
"""With fewer seeds, such a mean is shown but not judged."""


class Key(NamedTuple):
    """A published cell."""

    setting: str
    p: float
    method: str
    seed: int


class PublishedCell(NamedTuple):
    """What was published for a cell; `exact` if nothing in the policy is random."""

    final_regret: float
    exact: bool


class Group(NamedTuple):
    """Published results of a method and ours, over the seeds that both have.

    `deviation` is the largest difference of a seed where `exact`, else the mean difference in
    standard errors of the paired difference (NaN where it has none).
    """

    setting: str
    p: float
    method: str
    exact: bool
    n: int
    published: Mean
    ours: Mean
    deviation: float

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
    """The outcome.

    `deviations` are |ours − published| of every exact cell; `missing` are the published cells for
    which there is no result of ours.
    """

    deviations: dict[Key, float]
    groups: list[Group]
    missing: list[Key]

    @property
    def differing(self) -> list[Key]:
        """Exact cells that deviate by more than the tolerance."""
        # Written so that NaN counts as differing.
        return [key for key, size in self.deviations.items() if not size <= TOLERANCE]

    @property
    def agrees(self) -> bool:
        """Whether something was compared and everything agrees."""
        compared = any(group.telling for group in self.groups)
        within = all(group.agrees for group in self.groups) and not self.differing
        return compared and within and not self.missing


def published(study: str) -> dict[Key, PublishedCell]:
    """Return all published cells of a study; empty where nothing is published per seed.

    >>> len(published("synthetic")), len(published("masks"))
    (700, 0)
    """
    return {
        Key(row["setting"], float(row["p"]), row["method"], int(row["seed"])): PublishedCell(
            float(row["final_regret"]), row["kind"] == "exact"
        )
        for row in shipped_rows(study)
    }


def shipped_rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a published table; none where there is no such table."""
    resource = files("halfseen.paper") / "data" / "published" / f"{name}.csv"
    if not resource.is_file():
        return []
    return list(csv.DictReader(io.StringIO(resource.read_text(encoding="utf-8"))))


def compare_cells(per_seed: Iterable[Row], cells: Mapping[Key, PublishedCell]) -> SeedComparison:
    """Compare rows of `per_seed.csv` with the published cells of the same cells."""
    ours = {
        Key(row["setting"], row["p"], row["method"], row["seed"]): row["final_regret"]
        for row in per_seed
        if row["status"] == "ok"
    }
    pairs: dict[tuple[str, float, str, bool], list[tuple[float, float]]] = {}
    deviations: dict[Key, float] = {}
    for key, (theirs, exact) in cells.items():
        if key in ours:
            pairs.setdefault((*key[:3], exact), []).append((ours[key], theirs))
            if exact:
                deviations[key] = abs(ours[key] - theirs)
    groups = [_group(key, found) for key, found in pairs.items()]
    return SeedComparison(deviations, groups, [key for key in cells if key not in ours])


def _group(key: tuple[str, float, str, bool], pairs: list[tuple[float, float]]) -> Group:
    differences = [ours - theirs for ours, theirs in pairs]
    mean, error = mean_of(differences)
    deviation = max(abs(each) for each in differences)
    if not key[3]:
        deviation = 0.0 if not mean else mean / error if error else math.nan
    ours, theirs = (mean_of(each) for each in zip(*pairs, strict=True))
    return Group(*key, len(pairs), theirs, ours, deviation)


# Means over seeds

LEAST_ERROR = 1.0
"""A standard error counts as at least one wrong label, also where two methods play alike."""

LEVEL_TOLERANCE = 0.05
"""Mean regrets may differ by at most this share, however large their standard error: classifiers
and their errors are the published ones, up to rounding."""

RANK_TOLERANCE = 0.5
"""Means of ranks that are so near to each other agree, whatever their standard error."""

_SETTING = "default"
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

    @property
    def excess(self) -> float:
        """Mean regret above the irreducible one."""
        return self.mean_regret - self.irreducible


class Level(NamedTuple):
    """Our mean and the published one."""

    p: float
    method: str
    published: float
    ours: float
    standard_error: float  # of ours, over its seeds
    tolerance: float  # how far apart the two may be

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
    def differing(self) -> list[Level]:
        """All comparisons that do not agree."""
        return [each for each in (*self.excesses, *self.ranks) if not each.agrees]

    @property
    def agrees(self) -> bool:
        """Whether something was compared and everything agrees."""
        return bool(self.excesses) and not self.differing and not self.missing


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
            mean_rank=float(row["mean_rank"]) if row["mean_rank"] else None,
            irreducible=float(row["irreducible"]),
        )
        for row in shipped_rows(f"{study}-summary")
    ]


class _Ours(NamedTuple):
    """Our results for a published mean, one per seed."""

    excesses: list[float]
    ranks: list[float]


def compare_summary(
    per_seed: Iterable[Row], diagnostics: Iterable[Row], figures: Sequence[Summary]
) -> SummaryComparison:
    """Compare rows of `per_seed.csv` and `diagnostics.csv` with published means over their seeds.

    Published results per seed are not known, so differences between theirs and ours cannot be
    paired: a difference of two means is taken to have √2 times the standard error of ours.

    Where a method also ran with its published threshold, ranks are compared there: two thresholds
    that are equally good on the validation seeds may choose quite different ranks.
    """
    results = {
        (row["p"], row["method"], row["seed"]): row
        for row in per_seed
        if row["status"] == "ok" and row["setting"] == _SETTING
    }
    irreducible = {
        (row["p"], row["method"], row["seed"]): row["value"]
        for row in diagnostics
        if row["name"] == "irreducible" and row["setting"] == _SETTING
    }

    def results_of(figure: Summary, method: str) -> _Ours | None:
        keys = [(figure.p, method, seed) for seed in range(figure.n)]
        if not all(key in results and key in irreducible for key in keys):
            return None
        excesses = [results[key]["final_regret"] - irreducible[key] for key in keys]
        ranks = [rank for key in keys if _is_number(rank := results[key]["final_rank"])]
        return _Ours(excesses, ranks)

    every = {figure: results_of(figure, figure.method) for figure in figures}
    found = {figure: ours for figure, ours in every.items() if ours is not None}
    ranks = []
    for figure in found:
        if figure.method in _ADAPTIVE:
            form = figure._replace(method=f"{figure.method}{PUBLISHED_FORM}")
            published = results_of(form, form.method)
            ranks.append(_rank(form, published) if published else _rank(figure, found[figure]))
    return SummaryComparison(
        excesses=[_excess(figure, ours) for figure, ours in found.items()],
        ranks=ranks,
        missing=[figure for figure in figures if figure not in found],
    )


def _excess(figure: Summary, ours: _Ours) -> Level:
    mean, error = _mean_or_nan(ours.excesses)
    by_chance = STANDARD_ERRORS * math.sqrt(2.0) * max(error, LEAST_ERROR)
    tolerance = min(by_chance, LEVEL_TOLERANCE * figure.mean_regret)
    return Level(figure.p, figure.method, figure.excess, mean, error, tolerance)


def _rank(figure: Summary, ours: _Ours) -> Level:
    mean, error = _mean_or_nan(ours.ranks)
    tolerance = max(RANK_TOLERANCE, STANDARD_ERRORS * math.sqrt(2.0) * error)
    theirs = math.nan if figure.mean_rank is None else figure.mean_rank
    return Level(figure.p, figure.method, theirs, mean, error, tolerance)


def _mean_or_nan(values: list[float]) -> tuple[float, float]:
    """Return mean and standard error, NaN where there is none, so that nothing agrees with it."""
    mean, error = mean_of(values)
    return math.nan if mean is None else mean, math.nan if error is None else error


def _is_number(value: float | None) -> bool:
    return value is not None and not math.isnan(value)


# Both for a run


def compare_seeds(results: Results) -> SeedComparison:
    """Compare a run of a study with what is published for its cells."""
    asked = {(row["setting"], row["p"], row["method"], row["seed"]) for row in results.per_seed}
    cells = {key: cell for key, cell in published(results.name).items() if tuple(key) in asked}
    return compare_cells(results.per_seed, cells)


def compare_means(results: Results) -> SummaryComparison:
    """Compare a run of a study with what is published as means over seeds."""
    asked = {(row["p"], row["method"]) for row in results.per_seed}
    means = [mean for mean in published_summary(results.name) if (mean.p, mean.method) in asked]
    return compare_summary(results.per_seed, results.diagnostics, means)
