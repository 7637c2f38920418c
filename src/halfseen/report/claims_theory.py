"""Checks of claims about ranks, spectra, exponents and lower bounds."""

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

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
)
from halfseen.simulation.tables import mean_of
from halfseen.studies.spec import Study

Settings = Mapping[str, Any]

_MOST_FAILURES_TOLD = 5


def claimed_points(study: Study, settings: Settings, *methods: str) -> list[Point]:
    """Return the points of a study of which a claim speaks.

    Where it lists no probabilities or no settings, these are all in which its methods take part.
    """
    known = points_of(study)
    return [point for point in listed_points(study, settings, *methods) if point in known]


def points_left_out(study: Study, settings: Settings) -> list[Point]:
    """Return the points that a claim lists and the study, which may be narrowed, does not have."""
    known = points_of(study)
    return [point for point in listed_points(study, settings) if point not in known]


def listed_points(study: Study, settings: Settings, *methods: str) -> list[Point]:
    """Return the points of which a claim speaks, whether the study has them or not."""
    names = settings.get("setting") or tuple(
        name
        for name, setting in study.settings.items()
        if all(method in setting.methods for method in methods)
    )
    probs = settings.get("p")
    if probs is None:
        return points_of(study, names)
    return [Point(name, p) for name in names for p in probs]


def rank_found(study: Study, results: Results, settings: Settings) -> list[Finding]:
    """Check that the mean final rank is within a tolerance of the true one at every point."""
    method, tolerance, findings = settings["method"], settings["tolerance"], []
    for point in claimed_points(study, settings, method):
        ranks = rows(results.per_seed, point, method)["final_rank"].dropna().tolist()
        final = mean_of(ranks)
        rank = true_rank(study, point)
        if final.mean is None:
            findings.append(Finding(NOT_RUN, str(point), "no final rank"))
        elif rank is None:
            findings.append(Finding(UNDECIDED, str(point), "the world does not know its rank"))
        else:
            outcome = HOLDS if abs(final.mean - rank) <= tolerance else FAILS
            numbers = f"mean rank {format_mean(final)}, true rank {rank}"
            findings.append(Finding(outcome, str(point), numbers, len(ranks)))
    return findings


def eigengap(study: Study, results: Results, settings: Settings) -> list[Finding]:
    """Check that the largest gap of the mean spectrum is the one after the true rank."""
    method, findings = settings["method"], []
    for point in claimed_points(study, settings, method):
        spectra = results.diagnostic(point, method, "eigenvalues")
        means = spectra.mean().tolist()
        rank = true_rank(study, point)
        if not means:
            findings.append(Finding(NOT_RUN, str(point), "no spectrum"))
        elif rank is None or len(means) <= rank:
            why = f"rank {rank}, but {len(means)} eigenvalues are known"
            findings.append(Finding(UNDECIDED, str(point), why))
        else:
            gaps = [high - low for high, low in itertools.pairwise(means)]
            largest = max(range(len(gaps)), key=lambda index: gaps[index]) + 1
            others = [gap for index, gap in enumerate(gaps, start=1) if index != rank]
            numbers = f"gap {gaps[rank - 1]:.3g} after position {rank}"
            if others:
                numbers += f", the largest other one is {max(others):.3g}"
            outcome = HOLDS if largest == rank else FAILS
            findings.append(Finding(outcome, str(point), numbers, len(spectra)))
    return findings


def exponent(study: Study, results: Results, settings: Settings) -> list[Finding]:
    """Check that the interval of the growth exponent meets value ± tolerance."""
    value, tolerance = settings["value"], settings["tolerance"]

    def judge(growth: Growth) -> str:
        meets = growth.low <= value + tolerance and growth.high >= value - tolerance
        return HOLDS if meets else FAILS

    return _grown(study, results, settings["method"], judge)


def exponent_at_most(study: Study, results: Results, settings: Settings) -> list[Finding]:
    """Check that the interval of the growth exponent ends at or below a value."""
    value = settings["value"]

    def judge(growth: Growth) -> str:
        if growth.high <= value:
            return HOLDS
        return FAILS if growth.low > value else UNDECIDED

    return _grown(study, results, settings["method"], judge)


def _grown(
    study: Study, results: Results, method: str, judge: Callable[[Growth], str]
) -> list[Finding]:
    growth = growth_of(study, results, method)
    if growth is None:
        return [Finding(NOT_RUN, "", "fewer than two horizons")]
    outcome = UNDECIDED if math.isnan(growth.low) else judge(growth)
    horizons = f"T from {growth.horizons[0]} to {growth.horizons[-1]}"
    finding = Finding(outcome, "", f"exponent {growth} over {horizons}", growth.n_seeds)
    n_settings = sum(method in setting.methods for setting in study.settings.values())
    missing = n_settings - len(growth.horizons)
    return [finding] + ([Finding(NOT_RUN, "", f"{missing} more horizons")] if missing > 0 else [])


def above_bound(study: Study, results: Results, settings: Settings) -> list[Finding]:
    """Check that mean regret plus two standard errors reaches the lower bound everywhere.

    The text tells failures, and otherwise the place that comes closest to the bound.
    """
    found, missing = [], 0
    for point in claimed_points(study, settings):
        bound = lower_bounds(study, point).get(settings["bound"])
        for method in study.settings[point.setting].methods if bound is not None else ():
            regrets = results.regrets(point, method)
            regret = mean_of(regrets.tolist())
            if bound is None or regret.mean is None:
                missing += 1
                continue
            reach = regret.mean + STANDARD_ERRORS * (regret.standard_error or 0.0)
            outcome = HOLDS if reach >= bound else FAILS
            numbers, where = (
                f"{format_mean(regret)} against {bound:.3g}",
                f"{label_of(method)}, {point}",
            )
            finding = Finding(outcome, where, numbers, len(regrets)).judged()
            found.append((regret.mean / bound, finding))
    absent = [Finding(NOT_RUN, "", f"{missing} more")] if missing else []
    if not found:
        return absent or [Finding(UNDECIDED, "", "the bound applies nowhere")]
    found.sort(key=lambda pair: pair[0])
    return _told_in_short([finding for _, finding in found]) + absent


def _told_in_short(findings: list[Finding]) -> list[Finding]:
    """Return what did not hold, or what came closest to it; `findings` come closest first."""
    bad = [finding for finding in findings if finding.outcome != HOLDS]
    if bad:
        shown = bad[:_MOST_FAILURES_TOLD]
        more = f", and {len(bad) - len(shown)} more" if len(bad) > len(shown) else ""
        total = f"{len(bad)} of {len(findings)} do not hold{more}"
        worst = FAILS if any(finding.outcome == FAILS for finding in bad) else bad[0].outcome
        return [*shown, Finding(worst, "", total)]
    closest = findings[0]
    text = f"{closest.where}: {closest.numbers} is the closest of {len(findings)}"
    return [Finding(HOLDS, "", text)]
