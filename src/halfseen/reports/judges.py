"""How claims are checked: a few judges, each of which looks at every point of a claim."""

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import pandas as pd

from halfseen.reports.data import Point, Results, points_of, rows
from halfseen.reports.growth import Quantity
from halfseen.reports.look import label_of
from halfseen.reports.truth import lower_bounds, true_rank
from halfseen.reports.verdicts import (
    FAILS,
    HOLDS,
    NOT_RUN,
    STANDARD_ERRORS,
    UNDECIDED,
    Finding,
    format_mean,
    paired_difference,
    side_of,
)
from halfseen.reports.words import number
from halfseen.simulation.tables import Mean, mean_of
from halfseen.studies.claims import (
    AboveBoundClaim,
    AnyClaim,
    LowerClaim,
    RankClaim,
    RegretClaim,
    RisesClaim,
)
from halfseen.studies.spec import Study

_MOST_FAILURES_SHOWN = 5


class Case(NamedTuple):
    """A claim before its judge; the study may be a part of the one that makes the claim."""

    study: Study
    results: Results
    claim: AnyClaim

    def listed_points(self, *methods: str) -> list[Point]:
        """Return all points of the claim, whether the study has them or not.

        Where it lists no probabilities or no settings, these are all in which its methods play.
        """
        names = self.claim.setting or tuple(
            name
            for name, setting in self.study.settings.items()
            if all(method in setting.methods for method in methods)
        )
        if self.claim.p is None:
            return points_of(self.study, names)
        return [Point(name, p) for name in names for p in self.claim.p]

    def points(self, *methods: str) -> list[Point]:
        """Return the points of the claim that the study has."""
        known = points_of(self.study)
        return [point for point in self.listed_points(*methods) if point in known]

    def points_left_out(self) -> list[Point]:
        """Return the points of the claim that the study does not have."""
        known, method = points_of(self.study), getattr(self.claim, "method", None)
        listed = self.listed_points() if method is None else self.listed_points(method)
        return [point for point in listed if point not in known]

    def regrets(self, point: Point, *methods: str) -> "list[pd.Series[float]]":
        """Return the regrets of methods on the seeds that all of them have."""
        found = [self.results.regrets(point, method) for method in methods]
        both = found[0].index
        for regrets in found[1:]:
            both = both.intersection(regrets.index)
        if both.empty:
            raise NotRunError("no common seeds" if len(methods) > 1 else "no regret")
        return [regrets[both] for regrets in found]

    def at_every_point(self, check: "Check", *methods: str) -> list[Finding]:
        """Return what a check finds at every point at which some methods play."""
        return [_finding(check, point) for point in self.points(*methods)]


Judge = Callable[[Case, Any], list[Finding]]
"""Looks at a claim of its kind."""
Check = Callable[[Point], tuple[str, str, int | None]]
"""Looks at one point: returns outcome, numbers, and the number of seeds where it judges means."""


class NotRunError(Exception):
    """What a check needs was not run; the message says what."""


def _finding(check: Check, point: Point) -> Finding:
    try:
        outcome, numbers, n_seeds = check(point)
    except NotRunError as why:
        return Finding(NOT_RUN, str(point), str(why))
    return Finding(outcome, str(point), numbers, n_seeds)


def lower(case: Case, claim: LowerClaim) -> list[Finding]:
    """Compare two methods seed by seed; a tie decides only where the regrets may be equal."""
    outcomes = {-1: HOLDS, 0: HOLDS if claim.or_equal else UNDECIDED, 1: FAILS}

    def check(point: Point) -> tuple[str, str, int]:
        ours, theirs = case.regrets(point, claim.method, claim.than)
        difference, n = paired_difference(ours, theirs)
        means = f"{number(ours.mean())} against {number(theirs.mean())}"
        numbers = f"{means}, difference {format_mean(difference)} over {n} seeds"
        side = side_of(difference)
        return UNDECIDED if side is None else outcomes[side], numbers, n

    return case.at_every_point(check, claim.method, claim.than)


def regret(case: Case, claim: RegretClaim) -> list[Finding]:
    """Check that mean regret, or its ratio to another one, lies within limits at every point."""
    other = claim.relative_to
    methods = (claim.method,) if other is None else (claim.method, other)
    points = case.listed_points(*methods)
    limits = [_per_point(points, given) for given in (claim.at_least, claim.at_most)]
    if None in limits:
        n_limits = max(len(given or ()) for given in (claim.at_least, claim.at_most))
        return [Finding(NOT_RUN, "", f"{n_limits} limits for {len(points)} points")]
    lows, highs = (each or {} for each in limits)

    def check(point: Point) -> tuple[str, str, int | None]:
        found = case.regrets(point, *methods)
        low, high = lows.get(point), highs.get(point)
        means = [float(regrets.mean()) for regrets in found]
        if len(means) > 1 and means[1] == 0:
            return UNDECIDED, "the other regret is 0", None
        value = means[0] if len(means) == 1 else means[0] / means[1]
        text = format_mean(mean_of(found[0].tolist()))
        if len(means) > 1:
            text = f"{number(means[0], 4)} / {number(means[1], 4)} = {value:.3f}"
        inside = (low is None or low <= value) and (high is None or value <= high)
        numbers = f"{text} ({_interval(low, high)} claimed)"
        return HOLDS if inside else FAILS, numbers, len(found[0])

    return case.at_every_point(check, *methods)


def _per_point(points: list[Point], limits: tuple[float, ...] | None) -> dict[Point, float] | None:
    """Return limits by point, also from one for all; None where there are not as many."""
    if limits is None:
        return {}
    if len(limits) not in (1, len(points)):
        return None
    return dict(zip(points, limits * (len(points) if len(limits) == 1 else 1), strict=True))


def _interval(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return f"at most {high:g}" if low is None else f"at least {low:g}"
    return f"{low:g} to {high:g}"


def rises(case: Case, claim: RisesClaim) -> list[Finding]:
    """Check that regret, or a gap between two, rises with every step from much seen to less."""
    quantity = Quantity(claim.method, claim.minus)
    settings, findings = list(case.study.settings), []
    falling = sorted(
        case.points(claim.method),
        key=lambda point: (settings.index(point.setting), -(point.p or 0.0)),
    )
    for before, after in itertools.pairwise(falling):
        if before.setting != after.setting or after.p is None:
            continue
        found = [quantity.by_seed(case.results, point) for point in (after, before)]
        difference, n = paired_difference(*found)
        where = f"{after} after {before.p:g}"
        if n == 0:
            findings.append(Finding(NOT_RUN, where, "no common seeds"))
            continue
        outcome = {-1: FAILS, 1: HOLDS}.get(side_of(difference) or 0, UNDECIDED)
        sign = "+" if difference.mean is not None and difference.mean > 0 else ""
        means = " → ".join(number(found[at].mean()) for at in (1, 0))
        findings.append(Finding(outcome, where, f"{means}, {sign}{format_mean(difference)}", n))
    return findings


def rank(case: Case, claim: RankClaim) -> list[Finding]:
    """Check that a rank is near the true one, or below it: the policy's, or the eigengap's."""
    found = {"policy": _final_rank, "eigengap": _gap_rank}[claim.source]

    def check(point: Point) -> tuple[str, str, int | None]:
        true = true_rank(case.study, point)
        value, numbers, n_seeds = found(case, point, claim.method, true)
        if true is None:
            return UNDECIDED, "the world does not know its rank", None
        if value.mean is None:
            return UNDECIDED, numbers, None
        away = value.mean - true
        if claim.relation == "below":
            side = side_of(Mean(away, value.standard_error)) or 0
            return {-1: HOLDS, 1: FAILS}.get(side, UNDECIDED), numbers, n_seeds
        return HOLDS if abs(away) <= claim.tolerance else FAILS, numbers, n_seeds

    return case.at_every_point(check, claim.method)


def _final_rank(case: Case, point: Point, method: str, true: int | None) -> tuple[Mean, str, int]:
    """Return the mean rank with which a method ends."""
    ranks = rows(case.results.per_seed, point, method)["final_rank"].dropna().tolist()
    final = mean_of(ranks)
    if final.mean is None:
        raise NotRunError("no final rank")
    return final, f"mean rank {format_mean(final)}, true rank {true}", len(ranks)


def _gap_rank(case: Case, point: Point, method: str, true: int | None) -> tuple[Mean, str, int]:
    """Return after which position the mean spectrum has its largest gap."""
    spectra = case.results.diagnostic(point, method, "eigenvalues")
    means = spectra.mean().tolist()
    if not means:
        raise NotRunError("no spectrum")
    if true is None or len(means) <= true:
        return Mean(None, None), f"rank {true}, but {len(means)} eigenvalues are known", 0
    gaps = [high - low for high, low in itertools.pairwise(means)]
    others = [gap for index, gap in enumerate(gaps, start=1) if index != true]
    numbers = f"gap {number(gaps[true - 1])} after position {true}"
    if others:
        numbers += f", the largest other one is {number(max(others))}"
    return Mean(gaps.index(max(gaps)) + 1, 0.0), numbers, len(spectra)


def above_bound(case: Case, claim: AboveBoundClaim) -> list[Finding]:
    """Check that mean regret plus two standard errors reaches the lower bound everywhere.

    With `within`, regret less two standard errors must not be above so many times the bound. The
    findings are the failures, and otherwise the place that comes closest to the bound.
    """
    found, missing = [], 0
    for point in case.points():
        bound = lower_bounds(case.study, point).get(claim.bound)
        if bound is None:
            continue
        methods = case.study.settings[point.setting].methods
        for method in methods if claim.methods is None else set(claim.methods) & set(methods):
            regrets = case.results.regrets(point, method).tolist()
            mean = mean_of(regrets)
            if mean.mean is None:
                missing += 1
                continue
            slack = STANDARD_ERRORS * (mean.standard_error or 0.0)
            most = math.inf if claim.within is None else claim.within * bound
            holds = mean.mean + slack >= bound and mean.mean - slack <= most
            factor = f"{number(mean.mean / bound)} times the bound"
            numbers = f"{format_mean(mean)} against {number(bound)}, {factor}"
            where, outcome = f"{label_of(method)}, {point}", HOLDS if holds else FAILS
            finding = Finding(outcome, where, numbers, len(regrets)).judged()
            found.append((mean.mean / bound, finding))
    absent = [Finding(NOT_RUN, "", f"{missing} more")] if missing else []
    if not found:
        return absent or [Finding(UNDECIDED, "", "the bound applies nowhere")]
    found.sort(key=lambda pair: pair[0])
    return _in_short([finding for _, finding in found]) + absent


def _in_short(findings: list[Finding]) -> list[Finding]:
    """Return what did not hold, or what came closest to it; `findings` come closest first."""
    bad = [finding for finding in findings if finding.outcome != HOLDS]
    if not bad:
        closest = findings[0]
        text = f"{closest.where}: {closest.numbers} is the closest of {len(findings)}"
        return [Finding(HOLDS, "", text)]
    shown = bad[:_MOST_FAILURES_SHOWN]
    more = f", and {len(bad) - len(shown)} more" if len(bad) > len(shown) else ""
    total = f"{len(bad)} of {len(findings)} do not hold{more}"
    worst = FAILS if any(finding.outcome == FAILS for finding in bad) else bad[0].outcome
    return [*shown, Finding(worst, "", total)]
