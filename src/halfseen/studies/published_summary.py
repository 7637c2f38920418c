"""Published means over seeds, and whether ours agree with them in the statistical sense."""

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

from halfseen.simulation.tables import Row, mean_of
from halfseen.studies.published import STANDARD_ERRORS, shipped_rows

ORDER_ERRORS = 2.0
"""A published gap tells an order if it is larger than so many standard errors of ours."""

LEAST_ERROR = 1.0
"""A standard error counts as at least one wrong label, also where two methods play alike."""

LEVEL_TOLERANCE = 0.05
"""Mean regrets may differ by at most this share, however large their standard error: classifiers
and their errors are the published ones, up to rounding."""

RANK_TOLERANCE = 0.5
"""Means of ranks that are so near to each other agree, whatever their standard error."""

_SETTING = "default"
# Those that choose a rank while they play; other ranks are given or tuned.
_ADAPTIVE = ("ra-tofu-fh", "zf-pslb-adaptive-sampled")

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
    se_regret: float
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


class Order(NamedTuple):
    """Which of two methods has less regret; `lower` and `higher` as published."""

    p: float
    lower: str
    higher: str
    published: float  # mean regret of `higher` less that of `lower`
    ours: float
    standard_error: float  # of our difference, paired seed by seed

    @property
    def telling(self) -> bool:
        """Whether the published gap is large enough to tell an order."""
        return self.published > ORDER_ERRORS * max(self.standard_error, LEAST_ERROR)

    @property
    def agrees(self) -> bool:
        """Whether the order is the published one, or nothing can be said."""
        return not self.telling or self.ours > 0


class SummaryComparison(NamedTuple):
    """The outcome.

    `orders` are those of all pairs of methods at the same probability; `missing` are published
    means for which we lack a seed.
    """

    orders: list[Order]
    excesses: list[Level]
    ranks: list[Level]
    missing: list[Summary]

    @property
    def decided_orders(self) -> list[Order]:
        """Orders that the published gap is large enough to tell."""
        return [order for order in self.orders if order.telling]

    @property
    def differing(self) -> list[Order | Level]:
        """All comparisons that do not agree."""
        compared: list[Order | Level] = [*self.orders, *self.excesses, *self.ranks]
        return [each for each in compared if not each.agrees]

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
            se_regret=float(row["se_regret"]),
            mean_rank=float(row["mean_rank"]) if row["mean_rank"] else None,
            irreducible=float(row["irreducible"]),
        )
        for row in shipped_rows(f"{study}-summary")
    ]


class _Ours(NamedTuple):
    """Our results for a published mean, one per seed."""

    regrets: list[float]
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
        regrets = [results[key]["final_regret"] for key in keys]
        excesses = [results[key]["final_regret"] - irreducible[key] for key in keys]
        ranks = [rank for key in keys if _is_number(rank := results[key]["final_rank"])]
        return _Ours(regrets, excesses, ranks)

    every = {figure: results_of(figure, figure.method) for figure in figures}
    found = {figure: ours for figure, ours in every.items() if ours is not None}
    ranks = []
    for figure in found:
        if figure.method in _ADAPTIVE:
            form = figure._replace(method=f"{figure.method}{PUBLISHED_FORM}")
            published = results_of(form, form.method)
            ranks.append(_rank(form, published) if published else _rank(figure, found[figure]))
    pairs = [pair for pair in combinations(found, 2) if pair[0].p == pair[1].p]
    return SummaryComparison(
        orders=[_order(one, other, found[one], found[other]) for one, other in pairs],
        excesses=[_excess(figure, ours) for figure, ours in found.items()],
        ranks=ranks,
        missing=[figure for figure in figures if figure not in found],
    )


def _order(one: Summary, other: Summary, first: _Ours, second: _Ours) -> Order:
    if one.mean_regret > other.mean_regret:
        one, other, first, second = other, one, second, first
    pairs = zip(second.regrets, first.regrets, strict=True)
    gap, error = _mean([more - less for more, less in pairs])
    return Order(one.p, one.method, other.method, other.mean_regret - one.mean_regret, gap, error)


def _excess(figure: Summary, ours: _Ours) -> Level:
    mean, error = _mean(ours.excesses)
    by_chance = STANDARD_ERRORS * math.sqrt(2.0) * max(error, LEAST_ERROR)
    tolerance = min(by_chance, LEVEL_TOLERANCE * figure.mean_regret)
    return Level(figure.p, figure.method, figure.excess, mean, error, tolerance)


def _rank(figure: Summary, ours: _Ours) -> Level:
    mean, error = _mean(ours.ranks)
    tolerance = max(RANK_TOLERANCE, STANDARD_ERRORS * math.sqrt(2.0) * error)
    theirs = math.nan if figure.mean_rank is None else figure.mean_rank
    return Level(figure.p, figure.method, theirs, mean, error, tolerance)


def _mean(values: list[float]) -> tuple[float, float]:
    """Return mean and standard error, NaN where there is none, so that nothing agrees with it."""
    mean, error = mean_of(values)
    return math.nan if mean is None else mean, math.nan if error is None else error


def _is_number(value: float | None) -> bool:
    return value is not None and not math.isnan(value)
