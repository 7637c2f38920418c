"""How claims are checked: a few judges, each of which looks at every point of a claim."""

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pandas as pd

from halfseen.report.data import Point, Results, points_of, rows
from halfseen.report.growth import Growth, growth_of
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
        What the claim says beside text and kind.
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

    def pair(self, point: Point) -> "tuple[pd.Series[float], pd.Series[float]]":
        """Return the regrets of the claim's two methods on the seeds that both have."""
        other = self.settings["than"] if "than" in self.settings else self.settings["to"]
        ours = self.results.regrets(point, self.settings["method"])
        theirs = self.results.regrets(point, other)
        both = ours.index.intersection(theirs.index)
        return ours[both], theirs[both]

    def pairs(self) -> "list[tuple[Point, pd.Series[float], pd.Series[float]]]":
        """Return these at every point."""
        other = self.settings["than"] if "than" in self.settings else self.settings["to"]
        return [(at, *self.pair(at)) for at in self.points(self.settings["method"], other)]


Judge = Callable[[Case], list[Finding]]

LOWER: Mapping[int | None, str] = {-1: HOLDS, 1: FAILS}
NO_HIGHER: Mapping[int | None, str] = {-1: HOLDS, 0: HOLDS, 1: FAILS}
RISES: Mapping[int | None, str] = {-1: FAILS, 1: HOLDS}
"""What each side of zero means for a difference, as `side_of` returns it; else it is undecided."""


def paired(outcomes: Mapping[int | None, str]) -> Judge:
    """Compare two methods seed by seed; `outcomes` says what each side of zero means."""

    def judge(case: Case) -> list[Finding]:
        findings = []
        for point, ours, theirs in case.pairs():
            if ours.empty:
                findings.append(Finding(NOT_RUN, str(point), "no common seeds"))
                continue
            difference, n = paired_difference(ours, theirs)
            means = f"{ours.mean():.3g} against {theirs.mean():.3g}"
            numbers = f"{means}, difference {format_mean(difference)} over {n} seeds"
            outcome = outcomes.get(side_of(difference), UNDECIDED)
            findings.append(Finding(outcome, str(point), numbers, n))
        return findings

    return judge


def close(case: Case) -> list[Finding]:
    """Check that the ratio of two mean regrets is 1, to a tolerance."""
    tolerance = case.settings["tolerance"]
    return _ratios(case, 1 - tolerance, 1 + tolerance, f"1 ± {tolerance:g}")


def at_most_times(case: Case) -> list[Finding]:
    """Check that a mean regret is at most so many times that of another method."""
    factor = case.settings["factor"]
    return _ratios(case, 0.0, factor, f"at most {factor:g}")


def _ratios(case: Case, low: float, high: float, claimed: str) -> list[Finding]:
    findings = []
    for point, ours, theirs in case.pairs():
        if ours.empty or theirs.mean() == 0:
            why = "no common seeds" if ours.empty else "the other regret is 0"
            outcome = NOT_RUN if ours.empty else UNDECIDED
            findings.append(Finding(outcome, str(point), why))
            continue
        ratio = ours.mean() / theirs.mean()
        numbers = f"{ours.mean():.4g} / {theirs.mean():.4g} = {ratio:.3f} ({claimed} claimed)"
        outcome = HOLDS if low <= ratio <= high else FAILS
        findings.append(Finding(outcome, str(point), numbers, len(ours)))
    return findings


def at_most(case: Case) -> list[Finding]:
    """Check that mean final regret is at most a level: one for all points, or one for each."""
    method, levels = case.settings["method"], case.settings["values"]
    points, run = case.listed_points(method), case.points(method)
    if len(levels) == 1:
        levels = levels * len(points)
    if len(levels) != len(points):
        return [Finding(NOT_RUN, "", f"{len(levels)} levels for {len(points)} points")]
    findings = []
    for point, level in zip(points, levels, strict=True):
        if point not in run:
            continue
        regrets = case.results.regrets(point, method)
        if regrets.empty:
            findings.append(Finding(NOT_RUN, str(point), "no regret"))
            continue
        outcome = HOLDS if regrets.mean() <= level else FAILS
        numbers = f"{format_mean(mean_of(regrets.tolist()))}, at most {level:g} claimed"
        findings.append(Finding(outcome, str(point), numbers, len(regrets)))
    return findings


def rises(case: Case) -> list[Finding]:
    """Check that regret rises with every step from much seen to less."""
    method = case.settings["method"]
    probs: dict[str, list[float]] = {}
    for point in case.points(method):
        if point.p is not None:
            probs.setdefault(point.setting, []).append(point.p)
    findings = []
    for name, each in probs.items():
        for more, less in itertools.pairwise(sorted(each, reverse=True)):
            before = case.results.regrets(Point(name, more), method)
            after = case.results.regrets(Point(name, less), method)
            difference, n = paired_difference(after, before)
            where = f"{Point(name, less)} after {more:g}"
            if n == 0:
                findings.append(Finding(NOT_RUN, where, "no common seeds"))
                continue
            outcome = RISES.get(side_of(difference), UNDECIDED)
            sign = "+" if difference.mean is not None and difference.mean > 0 else ""
            findings.append(Finding(outcome, where, f"{sign}{format_mean(difference)}", n))
    return findings


def rank(case: Case) -> list[Finding]:
    """Check that the mean final rank is within a tolerance of the true one at every point."""
    method, tolerance, findings = case.settings["method"], case.settings["tolerance"], []
    for point in case.points(method):
        ranks = rows(case.results.per_seed, point, method)["final_rank"].dropna().tolist()
        final, true = mean_of(ranks), true_rank(case.study, point)
        if final.mean is None:
            findings.append(Finding(NOT_RUN, str(point), "no final rank"))
        elif true is None:
            findings.append(Finding(UNDECIDED, str(point), "the world does not know its rank"))
        else:
            outcome = HOLDS if abs(final.mean - true) <= tolerance else FAILS
            numbers = f"mean rank {format_mean(final)}, true rank {true}"
            findings.append(Finding(outcome, str(point), numbers, len(ranks)))
    return findings


def eigengap(case: Case) -> list[Finding]:
    """Check that the largest gap of the mean spectrum is the one after the true rank."""
    method, findings = case.settings["method"], []
    for point in case.points(method):
        spectra = case.results.diagnostic(point, method, "eigenvalues")
        means, true = spectra.mean().tolist(), true_rank(case.study, point)
        if not means:
            findings.append(Finding(NOT_RUN, str(point), "no spectrum"))
        elif true is None or len(means) <= true:
            why = f"rank {true}, but {len(means)} eigenvalues are known"
            findings.append(Finding(UNDECIDED, str(point), why))
        else:
            gaps = [high - low for high, low in itertools.pairwise(means)]
            others = [gap for index, gap in enumerate(gaps, start=1) if index != true]
            numbers = f"gap {gaps[true - 1]:.3g} after position {true}"
            if others:
                numbers += f", the largest other one is {max(others):.3g}"
            outcome = HOLDS if gaps.index(max(gaps)) + 1 == true else FAILS
            findings.append(Finding(outcome, str(point), numbers, len(spectra)))
    return findings


def exponent(case: Case) -> list[Finding]:
    """Check that the interval of the growth exponent meets value ± tolerance."""
    low = case.settings["value"] - case.settings["tolerance"]
    high = case.settings["value"] + case.settings["tolerance"]

    def outcome(growth: Growth) -> str:
        return HOLDS if growth.low <= high and growth.high >= low else FAILS

    return _growth(case, outcome)


def exponent_at_most(case: Case) -> list[Finding]:
    """Check that the interval of the growth exponent ends at or below a value."""
    value = case.settings["value"]

    def outcome(growth: Growth) -> str:
        if growth.high <= value:
            return HOLDS
        return FAILS if growth.low > value else UNDECIDED

    return _growth(case, outcome)


def _growth(case: Case, outcome: Callable[[Growth], str]) -> list[Finding]:
    method = case.settings["method"]
    growth = growth_of(case.study, case.results, method)
    if growth is None:
        return [Finding(NOT_RUN, "", "fewer than two horizons")]
    found = UNDECIDED if math.isnan(growth.low) else outcome(growth)
    numbers = f"exponent {growth} over T from {growth.horizons[0]} to {growth.horizons[-1]}"
    findings = [Finding(found, "", numbers, growth.n_seeds)]
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
