"""Checks of claims about levels: a mean regret is at most a number, or a multiple of another's."""

from collections.abc import Mapping
from typing import Any

from halfseen.report.claims_theory import claimed_points, listed_points
from halfseen.report.data import Results
from halfseen.report.verdicts import FAILS, HOLDS, NOT_RUN, Finding, format_mean
from halfseen.simulation.tables import mean_of
from halfseen.studies.spec import Study

Settings = Mapping[str, Any]


def at_most(study: Study, results: Results, settings: Settings) -> list[Finding]:
    """Check that mean final regret is at most a level: one for all points, or one for each."""
    method, levels = settings["method"], settings["values"]
    points = listed_points(study, settings, method)
    if len(levels) == 1:
        levels = levels * len(points)
    if len(levels) != len(points):
        told = f"{len(levels)} levels for {len(points)} points"
        return [Finding(NOT_RUN, "", told)]
    findings, run = [], claimed_points(study, settings, method)
    for point, level in zip(points, levels, strict=True):
        if point not in run:
            continue
        regrets = results.regrets(point, method)
        if regrets.empty:
            findings.append(Finding(NOT_RUN, str(point), "no regret"))
            continue
        outcome = HOLDS if regrets.mean() <= level else FAILS
        numbers = f"{format_mean(mean_of(regrets.tolist()))}, at most {level:g} claimed"
        findings.append(Finding(outcome, str(point), numbers, len(regrets)))
    return findings


def at_most_times(study: Study, results: Results, settings: Settings) -> list[Finding]:
    """Check that mean final regret is at most so many times that of another method."""
    method, than, factor = settings["method"], settings["than"], settings["factor"]
    findings = []
    for point in claimed_points(study, settings, method, than):
        ours, theirs = results.regrets(point, method), results.regrets(point, than)
        both = ours.index.intersection(theirs.index)
        if both.empty:
            findings.append(Finding(NOT_RUN, str(point), "no common seeds"))
            continue
        mean, other = ours[both].mean(), theirs[both].mean()
        ratio = f" = {mean / other:.3f}" if other else ""
        numbers = f"{mean:.4g} / {other:.4g}{ratio} (at most {factor:g} claimed)"
        outcome = HOLDS if mean <= factor * other else FAILS
        findings.append(Finding(outcome, str(point), numbers, len(both)))
    return findings
