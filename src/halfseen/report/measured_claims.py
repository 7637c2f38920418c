"""Checks of claims about measured numbers: within bounds, falling at a rate, of one sign."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from halfseen.report.claims_theory import claimed_points
from halfseen.report.data import Results
from halfseen.report.verdicts import FAILS, HOLDS, NOT_RUN, Finding, format_mean
from halfseen.simulation.tables import mean_of
from halfseen.studies.spec import Study

Settings = Mapping[str, Any]

_ROUNDING = 1e-9
"""A measured number is beyond zero or a bound only if it is so by more than this."""


def within_bound(study: Study, results: Results, settings: Settings) -> list[Finding]:
    """Check that a value is at most its bound in all seeds and positions.

    The text tells how much room is left: where the two come closest, and at the last position.
    """

    def judge(value: pd.DataFrame, bound: pd.DataFrame) -> tuple[bool, str]:
        beyond = value > bound + _ROUNDING * (1 + bound.abs())
        n_beyond = int(beyond.to_numpy().sum())
        if n_beyond:
            n_seeds = int(beyond.any(axis=1).sum())
            told = f"beyond its bound at {n_beyond} of {value.size} positions, in {n_seeds} seeds"
        else:
            told = f"never beyond its bound at {value.size} positions"
        return not n_beyond, f"{told}; {_room(value, bound)}"

    return _judged(study, results, settings, ("value", "bound"), judge)


def _room(value: pd.DataFrame, bound: pd.DataFrame) -> str:
    """Return bound over value, smallest anywhere and on average at the end, as text."""
    ratios = (bound / value.where(value > 0)).to_numpy(dtype=float)
    if np.isnan(ratios).all():
        return "the value is never above 0"
    last = ratios[:, -1]
    at_last = "" if np.isnan(last).all() else f", {np.nanmean(last):.3g} times at the end"
    return f"the bound is at least {np.nanmin(ratios):.3g} times the value{at_last}"


def above_floor(study: Study, results: Results, settings: Settings) -> list[Finding]:
    """Check that a value is at least its floor in all seeds and positions."""

    def judge(value: pd.DataFrame, floor: pd.DataFrame) -> tuple[bool, str]:
        below = value < floor - _ROUNDING * (1 + floor.abs())
        closest = float((value - floor).to_numpy().min())
        n_below = int(below.to_numpy().sum())
        told = f"below its floor at {n_below} of {value.size} positions, value less floor is at "
        return n_below == 0, f"{told}least {closest:.3g}".replace("-", "−")

    return _judged(study, results, settings, ("value", "floor"), judge)


def exceeds(study: Study, results: Results, settings: Settings) -> list[Finding]:
    """Check that a value is above another one at the last position in all seeds."""

    def judge(value: pd.DataFrame, bound: pd.DataFrame) -> tuple[bool, str]:
        ends, others = value.iloc[:, -1], bound.iloc[:, -1]
        n_above = int((ends > others).sum())
        means = (
            f"{format_mean(mean_of(ends.tolist()))} against {format_mean(mean_of(others.tolist()))}"
        )
        return n_above == len(ends), f"{means} at the end, above in {n_above} of {len(ends)} seeds"

    return _judged(study, results, settings, ("value", "bound"), judge)


def falls_like(study: Study, results: Results, settings: Settings) -> list[Finding]:
    """Check that the mean slope of log value on log x is −power, to a tolerance."""
    power, tolerance = settings["power"], settings["tolerance"]

    def judge(value: pd.DataFrame, x: pd.DataFrame) -> tuple[bool, str]:
        slopes = mean_of([_slope(x.loc[seed], value.loc[seed]) for seed in value.index])
        assert slopes.mean is not None
        numbers = f"slope {format_mean(slopes)} ({-power:g} ± {tolerance:g} claimed)"
        return abs(slopes.mean + power) <= tolerance, numbers.replace("-", "−")

    return _judged(study, results, settings, ("value", "x"), judge)


def _slope(x: "pd.Series[float]", value: "pd.Series[float]") -> float:
    if (x <= 0).any() or (value <= 0).any():
        return float("nan")
    return float(np.polyfit(np.log(x), np.log(value), 1)[0])


def negative(study: Study, results: Results, settings: Settings) -> list[Finding]:
    """Check that in every seed at least a share of the positions is below zero."""
    wanted = settings["share"]

    def judge(value: pd.DataFrame) -> tuple[bool, str]:
        shares = (value < -_ROUNDING).mean(axis=1)
        lowest = float(value.to_numpy().min())
        numbers = (
            f"below 0 at {shares.min():.0%} to {shares.max():.0%} of the positions, "
            f"{value.to_numpy().mean():.3g} on average, lowest {lowest:.3g}"
        )
        return bool((shares >= wanted).all()), numbers.replace("-", "−")

    return _judged(study, results, settings, ("value",), judge)


def zero(study: Study, results: Results, settings: Settings) -> list[Finding]:
    """Check that a value is zero everywhere, rounding aside."""

    def judge(value: pd.DataFrame) -> tuple[bool, str]:
        largest = float(value.abs().to_numpy().max())
        told = f"at most {largest:.2g} in size at {value.size} positions".replace("-", "−")
        return largest <= _ROUNDING, told

    return _judged(study, results, settings, ("value",), judge)


def never_negative(study: Study, results: Results, settings: Settings) -> list[Finding]:
    """Check that a value is nowhere below zero, rounding aside."""

    def judge(value: pd.DataFrame) -> tuple[bool, str]:
        lowest = float(value.to_numpy().min())
        told = f"lowest {lowest:.2g} of {value.size} positions".replace("-", "−")
        return lowest >= -_ROUNDING, told

    return _judged(study, results, settings, ("value",), judge)


def _judged(
    study: Study,
    results: Results,
    settings: Settings,
    keys: tuple[str, ...],
    judge: Callable[..., tuple[bool, str]],
) -> list[Finding]:
    """Judge the lists that some keys name, at every point, with the seeds and positions in rows.

    Points at which one of the lists was not measured are not run.
    """
    findings = []
    for point in claimed_points(study, settings, settings["method"]):
        tables = _alike(
            [results.diagnostic(point, settings["method"], settings[key]) for key in keys]
        )
        if tables is None:
            findings.append(Finding(NOT_RUN, str(point), "not measured"))
            continue
        holds, numbers = judge(*tables)
        findings.append(Finding(HOLDS if holds else FAILS, str(point), numbers))
    return findings


def _alike(tables: list[pd.DataFrame]) -> list[pd.DataFrame] | None:
    """Return tables with the seeds and positions that all have; None where there are none."""
    first, *others = tables
    seeds, positions = first.index, first.columns
    for other in others:
        seeds, positions = seeds.intersection(other.index), positions.intersection(other.columns)
    if seeds.empty or positions.empty:
        return None
    return [table.loc[seeds, positions] for table in tables]
