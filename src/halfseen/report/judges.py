"""How claims are checked: a few judges, each of which looks at every point of a claim."""

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pandas as pd

from halfseen.report.data import Point, Results, points_of, rows
from halfseen.report.growth import growth_of
from halfseen.report.look import label_of
from halfseen.report.truth import lower_bounds, true_rank
from halfseen.report.verdicts import (
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
from halfseen.simulation.tables import mean_of
from halfseen.studies.spec import Study

_MOST_FAILURES_SHOWN = 5


class Case(NamedTuple):
    """A claim before its judge.

    Attributes
    ----------
    study : Study
        What was run; it may be a part of the study that makes the claim.
    results : Results
    settings : mapping
        All keys of the claim but text and kind.
    """

    study: Study
    results: Results
    settings: Mapping[str, Any]

    def listed_points(self, *methods: str) -> list[Point]:
        """Return the points of which the claim speaks, whether the study has them or not.

        Where it lists no probabilities or no settings, these are all in which its methods play.
        """
        names = self.settings.get("setting") or tuple(
            name
            for name, setting in self.study.settings.items()
            if all(method in setting.methods for method in methods)
        )
        probs = self.settings.get("p")
        if probs is None:
            return points_of(self.study, names)
        return [Point(name, p) for name in names for p in probs]

    def points(self, *methods: str) -> list[Point]:
        """Return those of them that the study has."""
        known = points_of(self.study)
        return [point for point in self.listed_points(*methods) if point in known]

    def points_left_out(self) -> list[Point]:
        """Return those that it does not have."""
        known = points_of(self.study)
        return [point for point in self.listed_points() if point not in known]

    def regrets(self, point: Point, *keys: str) -> "list[pd.Series[float]]":
        """Return the regrets of the methods that some keys name, on the seeds that all have."""
        found = [self.results.regrets(point, self.settings[key]) for key in keys]
        both = found[0].index
        for regrets in found[1:]:
            both = both.intersection(regrets.index)
        return [regrets[both] for regrets in found]


Judge = Callable[[Case], list[Finding]]
Check = Callable[[Case, Point], tuple[str, str, int | None]]
"""Looks at one point: returns outcome, numbers, and the number of seeds where it judges means."""

LOWER: Mapping[int | None, str] = {-1: HOLDS, 1: FAILS}
NO_HIGHER: Mapping[int | None, str] = {-1: HOLDS, 0: HOLDS, 1: FAILS}
RISES: Mapping[int | None, str] = {-1: FAILS, 1: HOLDS}
"""What each side of zero means for a difference, as `side_of` returns it; else it is undecided."""


class NotRunError(Exception):
    """What a check needs was not run; the message says what."""


def at_every_point(check: Check, *keys: str) -> Judge:
    """Return the judge that looks at every point at which the methods play that some keys name."""

    def judge(case: Case) -> list[Finding]:
        methods = [case.settings[key] for key in keys]
        return [_finding(check, case, point) for point in case.points(*methods)]

    return judge


def _finding(check: Check, case: Case, point: Point) -> Finding:
    try:
        outcome, numbers, n_seeds = check(case, point)
    except NotRunError as why:
        return Finding(NOT_RUN, str(point), str(why))
    return Finding(outcome, str(point), numbers, n_seeds)


def compared(outcomes: Mapping[int | None, str]) -> Judge:
    """Compare two methods seed by seed; `outcomes` says what each side of zero means."""

    def check(case: Case, point: Point) -> tuple[str, str, int]:
        ours, theirs = case.regrets(point, "method", "than")
        difference, n = paired_difference(ours, theirs)
        if n == 0:
            raise NotRunError("no common seeds")
        means = f"{ours.mean():.3g} against {theirs.mean():.3g}"
        numbers = f"{means}, difference {format_mean(difference)} over {n} seeds"
        return outcomes.get(side_of(difference), UNDECIDED), numbers, n

    return at_every_point(check, "method", "than")


def ratio(other: str) -> Judge:
    """Check that the ratio of two mean regrets is 1 to a tolerance, or at most a factor."""

    def check(case: Case, point: Point) -> tuple[str, str, int | None]:
        pair = case.regrets(point, "method", other)
        if pair[0].empty:
            raise NotRunError("no common seeds")
        ours, theirs = (float(regrets.mean()) for regrets in pair)
        if theirs == 0:
            return UNDECIDED, "the other regret is 0", None
        if "factor" in case.settings:
            low, high = 0.0, case.settings["factor"]
            claimed = f"at most {high:g}"
        else:
            tolerance = case.settings["tolerance"]
            low, high, claimed = 1 - tolerance, 1 + tolerance, f"1 ± {tolerance:g}"
        found = ours / theirs
        numbers = f"{ours:.4g} / {theirs:.4g} = {found:.3f} ({claimed} claimed)"
        return HOLDS if low <= found <= high else FAILS, numbers, len(pair[0])

    return at_every_point(check, "method", other)


def at_most(case: Case) -> list[Finding]:
    """Check that mean final regret is at most a level: one for all points, or one for each."""
    method, values = case.settings["method"], case.settings["values"]
    points = case.listed_points(method)
    if len(values) == 1:
        values = values * len(points)
    if len(values) != len(points):
        return [Finding(NOT_RUN, "", f"{len(values)} levels for {len(points)} points")]
    levels = dict(zip(points, values, strict=True))

    def check(case: Case, point: Point) -> tuple[str, str, int]:
        (regrets,) = case.regrets(point, "method")
        if regrets.empty:
            raise NotRunError("no regret")
        numbers = f"{format_mean(mean_of(regrets.tolist()))}, at most {levels[point]:g} claimed"
        return HOLDS if regrets.mean() <= levels[point] else FAILS, numbers, len(regrets)

    return at_every_point(check, "method")(case)


def rises(case: Case) -> list[Finding]:
    """Check that regret rises with every step from much seen to less."""
    method, findings = case.settings["method"], []
    settings = list(case.study.settings)
    falling = sorted(
        case.points(method), key=lambda point: (settings.index(point.setting), -(point.p or 0.0))
    )
    for before, after in itertools.pairwise(falling):
        if before.setting != after.setting or after.p is None:
            continue
        regrets = [case.results.regrets(point, method) for point in (after, before)]
        difference, n = paired_difference(*regrets)
        where = f"{after} after {before.p:g}"
        if n == 0:
            findings.append(Finding(NOT_RUN, where, "no common seeds"))
            continue
        outcome = RISES.get(side_of(difference), UNDECIDED)
        sign = "+" if difference.mean is not None and difference.mean > 0 else ""
        findings.append(Finding(outcome, where, f"{sign}{format_mean(difference)}", n))
    return findings


def rank(case: Case, point: Point) -> tuple[str, str, int | None]:
    """Check that the mean final rank is within a tolerance of the true one."""
    found = rows(case.results.per_seed, point, case.settings["method"])
    ranks = found["final_rank"].dropna().tolist()
    final, true = mean_of(ranks), true_rank(case.study, point)
    if final.mean is None:
        raise NotRunError("no final rank")
    if true is None:
        return UNDECIDED, "the world does not know its rank", None
    outcome = HOLDS if abs(final.mean - true) <= case.settings["tolerance"] else FAILS
    return outcome, f"mean rank {format_mean(final)}, true rank {true}", len(ranks)


def eigengap(case: Case, point: Point) -> tuple[str, str, int | None]:
    """Check that the largest gap of the mean spectrum is the one after the true rank."""
    spectra = case.results.diagnostic(point, case.settings["method"], "eigenvalues")
    means, true = spectra.mean().tolist(), true_rank(case.study, point)
    if not means:
        raise NotRunError("no spectrum")
    if true is None or len(means) <= true:
        return UNDECIDED, f"rank {true}, but {len(means)} eigenvalues are known", None
    gaps = [high - low for high, low in itertools.pairwise(means)]
    others = [gap for index, gap in enumerate(gaps, start=1) if index != true]
    numbers = f"gap {gaps[true - 1]:.3g} after position {true}"
    if others:
        numbers += f", the largest other one is {max(others):.3g}"
    return HOLDS if gaps.index(max(gaps)) + 1 == true else FAILS, numbers, len(spectra)


def exponent(case: Case) -> list[Finding]:
    """Check the 95 % interval of the growth exponent.

    With a tolerance it must meet value ± tolerance, without one it must end at or below the value.
    """
    method, value = case.settings["method"], case.settings["value"]
    growth = growth_of(case.study, case.results, method)
    if growth is None:
        return [Finding(NOT_RUN, "", "fewer than two horizons")]
    tolerance = case.settings.get("tolerance")
    if math.isnan(growth.low):
        outcome = UNDECIDED
    elif tolerance is not None:
        meets = growth.low <= value + tolerance and growth.high >= value - tolerance
        outcome = HOLDS if meets else FAILS
    elif growth.high <= value:
        outcome = HOLDS
    else:
        outcome = FAILS if growth.low > value else UNDECIDED
    numbers = f"exponent {growth} over T from {growth.horizons[0]} to {growth.horizons[-1]}"
    findings = [Finding(outcome, "", numbers, growth.n_seeds)]
    n_settings = sum(method in setting.methods for setting in case.study.settings.values())
    if n_settings > len(growth.horizons):
        missing = f"{n_settings - len(growth.horizons)} more horizons"
        findings.append(Finding(NOT_RUN, "", missing))
    return findings


def above_bound(case: Case) -> list[Finding]:
    """Check that mean regret plus two standard errors reaches the lower bound everywhere.

    The findings are the failures, and otherwise the place that comes closest to the bound.
    """
    found, missing = [], 0
    for point in case.points():
        bound = lower_bounds(case.study, point).get(case.settings["bound"])
        if bound is None:
            continue
        for method in case.study.settings[point.setting].methods:
            regrets = case.results.regrets(point, method).tolist()
            regret = mean_of(regrets)
            if regret.mean is None:
                missing += 1
                continue
            reach = regret.mean + STANDARD_ERRORS * (regret.standard_error or 0.0)
            numbers = f"{format_mean(regret)} against {bound:.3g}"
            where, outcome = f"{label_of(method)}, {point}", HOLDS if reach >= bound else FAILS
            finding = Finding(outcome, where, numbers, len(regrets)).judged()
            found.append((regret.mean / bound, finding))
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
