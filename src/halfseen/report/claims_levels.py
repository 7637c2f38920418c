"""Checks of claims about levels: a mean regret is at most a number, or a multiple of another's."""

from collections.abc import Mapping
from typing import Any

from halfseen.report.claims_theory import claimed_points
from halfseen.report.data import Results
from halfseen.report.verdicts import FAILS, HOLDS, NOT_RUN, Finding, said
from halfseen.studies.spec import Study

Settings = Mapping[str, Any]


def at_most(study: Study, results: Results, settings: Settings) -> list[Finding]:
    """Check that mean final regret is at most a level: one for all points, or one for each."""
    method, levels = settings["method"], settings["values"]
    points = claimed_points(study, settings, method)
    if len(levels) == 1:
        levels = levels * len(points)
    if len(levels) != len(points):
        told = f"{len(levels)} levels for {len(points)} points"
        return [Finding(NOT_RUN, "", told)]
    findings = []
    for point, level in zip(points, levels, strict=True):
        regret = results.mean(point, method)
        if regret.mean is None:
            findings.append(Finding(NOT_RUN, str(point), "no regret"))
            continue
        outcome = HOLDS if regret.mean <= level else FAILS
        findings.append(Finding(outcome, str(point), f"{said(regret)}, at most {level:g} claimed"))
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
        findings.append(Finding(outcome, str(point), numbers))
    return findings
