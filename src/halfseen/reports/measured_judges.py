"""How claims about diagnostics and exponents are checked, seed by seed or from means."""

import math
from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from halfseen.reports.data import Point
from halfseen.reports.growth import Growth, Quantity, growth_of
from halfseen.reports.judges import Case, NotRunError
from halfseen.reports.verdicts import FAILS, HOLDS, NOT_RUN, UNDECIDED, Finding, format_mean
from halfseen.reports.words import number, words_for
from halfseen.simulation.tables import mean_of
from halfseen.studies.claims import ExponentClaim, MeasuredClaim

_ROUNDING = 1e-9
"""A measured number is beyond zero or a bound only if it is so by more than this."""

_RELATIONS: Mapping[str, Callable[[pd.DataFrame, pd.DataFrame, pd.DataFrame], pd.DataFrame]] = {
    "at most": lambda value, other, rounding: value <= other + rounding,
    "at least": lambda value, other, rounding: value >= other - rounding,
    "equal to": lambda value, other, rounding: (value - other).abs() <= rounding,
    "below": lambda value, other, rounding: value < other - rounding,
    "above": lambda value, other, rounding: value > other,
}


def measured(case: Case, claim: MeasuredClaim) -> list[Finding]:
    """Compare a diagnostic with another one, or with 0, in every seed.

    Points at which one of them was not measured are not run.
    """

    def check(point: Point) -> tuple[str, str, None]:
        names = [claim.value] if claim.to is None else [claim.value, claim.to]
        value, *others = _measured(case, point, claim.method, names)
        bound = others[0] if others else pd.DataFrame(0.0, value.index, value.columns)
        if claim.at_end:
            value, bound = value.iloc[:, -1:], bound.iloc[:, -1:]
        holds = _RELATIONS[claim.relation](value, bound, _ROUNDING * (1 + bound.abs()))
        outcome = HOLDS if (holds.mean(axis=1) >= claim.share).all() else FAILS
        if claim.at_end:
            numbers = _at_end(value, bound, holds, claim.relation)
        else:
            other = "0" if claim.to is None else words_for(claim.to).label
            words = f"{claim.relation} {other} {_how_often(holds)}"
            numbers = f"{words}, {_room(value, bound, claim.to)}"
        return outcome, numbers.replace("-", "−"), None

    return case.at_every_point(check, claim.method)


def _at_end(value: pd.DataFrame, bound: pd.DataFrame, holds: pd.DataFrame, relation: str) -> str:
    """Return both means at the last position, and in how many seeds the relation holds."""
    ends = [mean_of(frame.iloc[:, 0].tolist()) for frame in (value, bound)]
    means = " against ".join(format_mean(mean) for mean in ends)
    return (
        f"{means} at the end, {relation} it in {int(holds.to_numpy().sum())} of {len(holds)} seeds"
    )


def _how_often(holds: pd.DataFrame) -> str:
    """Return at how many positions something holds, and in how many seeds at all of them."""
    n_holds, n_seeds = int(holds.to_numpy().sum()), int(holds.all(axis=1).sum())
    if n_holds == holds.size:
        return f"at all {holds.size} positions"
    return f"at {n_holds} of {holds.size} positions, throughout in {n_seeds} of {len(holds)} seeds"


def _room(value: pd.DataFrame, bound: pd.DataFrame, name: str | None) -> str:
    """Return how far a value is from what it is compared with, as text."""
    if name is None:
        numbers = value.to_numpy(dtype=float)
        low, high, mean = (number(each) for each in (numbers.min(), numbers.max(), numbers.mean()))
        return f"from {low} to {high}, {mean} on average"
    ratios = (bound / value.where(value > 0)).to_numpy(dtype=float)
    if np.isnan(ratios).all():
        return "the value is never above 0"
    last = ratios[:, -1]
    at_last = "" if np.isnan(last).all() else f", {number(np.nanmean(last))} times at the end"
    low, high = number(np.nanmin(ratios)), number(np.nanmax(ratios))
    return f"which is {low} to {high} times the value{at_last}"


def exponent(case: Case, claim: ExponentClaim) -> list[Finding]:
    """Check the exponent of a diagnostic, or that of regret over horizons or other numbers."""
    if claim.value is None or claim.x is None:
        return _growth(case, claim)
    names = [claim.value, claim.x]

    def check(point: Point) -> tuple[str, str, None]:
        value, x = _measured(case, point, claim.method, names)
        slopes = mean_of([_slope(x.loc[seed], value.loc[seed]) for seed in value.index])
        assert slopes.mean is not None
        if claim.at_most is not None:
            holds, claimed = slopes.mean <= claim.at_most, f"at most {claim.at_most:g}"
        elif claim.at_least is not None:
            holds, claimed = slopes.mean >= claim.at_least, f"at least {claim.at_least:g}"
        else:
            near, tolerance = claim.near or 0.0, claim.tolerance or 0.0
            holds = abs(slopes.mean - near) <= tolerance
            claimed = f"{near:g} ± {tolerance:g}"
        numbers = f"slope {format_mean(slopes)} ({claimed} claimed)"
        return HOLDS if holds else FAILS, numbers.replace("-", "−"), None

    return case.at_every_point(check, claim.method)


def _growth(case: Case, claim: ExponentClaim) -> list[Finding]:
    """Check the 95 % interval of the exponent with which something grows."""
    quantity = Quantity(claim.method, claim.minus, claim.value)
    p = claim.p[0] if claim.p else None
    growth = growth_of(case.study, case.results, quantity, claim.over, p, claim.setting)
    words = words_for(claim.over)
    if growth is None:
        return [Finding(NOT_RUN, "", f"fewer than two values of {words.letter}")]
    first, last = growth.numbers[0], growth.numbers[-1]
    text = f"exponent {growth} over {words.letter} from {first:g} to {last:g}".replace("-", "−")
    findings = [Finding(_of_interval(growth, claim), "", text, growth.n_seeds)]
    n_settings = sum(claim.method in setting.methods for setting in case.study.settings.values())
    if claim.over == "horizon" and n_settings > len(growth.numbers):
        missing = f"{n_settings - len(growth.numbers)} more horizons"
        findings.append(Finding(NOT_RUN, "", missing))
    return findings


def _of_interval(growth: Growth, claim: ExponentClaim) -> str:
    """Tell whether an interval ends below a limit, or meets a number to its tolerance."""
    if math.isnan(growth.low):
        return UNDECIDED
    if claim.at_most is not None:
        if growth.high <= claim.at_most:
            return HOLDS
        return FAILS if growth.low > claim.at_most else UNDECIDED
    if claim.at_least is not None:
        if growth.low >= claim.at_least:
            return HOLDS
        return FAILS if growth.high < claim.at_least else UNDECIDED
    near, tolerance = claim.near or 0.0, claim.tolerance or 0.0
    meets = growth.low <= near + tolerance and growth.high >= near - tolerance
    return HOLDS if meets else FAILS


def _slope(x: "pd.Series[float]", value: "pd.Series[float]") -> float:
    if (x <= 0).any() or (value <= 0).any():
        return float("nan")
    return float(np.polyfit(np.log(x), np.log(value), 1)[0])


def _measured(case: Case, point: Point, method: str, names: list[str]) -> list[pd.DataFrame]:
    """Return diagnostics at the seeds and positions that all of them have."""
    tables = [case.results.diagnostic(point, method, name) for name in names]
    seeds, positions = tables[0].index, tables[0].columns
    for table in tables[1:]:
        seeds, positions = seeds.intersection(table.index), positions.intersection(table.columns)
    if seeds.empty or positions.empty:
        raise NotRunError("not measured")
    return [table.loc[seeds, positions] for table in tables]
