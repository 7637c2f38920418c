"""How claims about measured numbers are checked: values with bounds, position by position."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from halfseen.report.data import Point
from halfseen.report.judges import Case, Judge, NotRunError, at_every_point
from halfseen.report.verdicts import FAILS, HOLDS, format_mean
from halfseen.simulation.tables import mean_of

_ROUNDING = 1e-9
"""A measured number is beyond zero or a bound only if it is so by more than this."""

Relation = Callable[[pd.DataFrame, pd.DataFrame, pd.DataFrame], pd.DataFrame]

RELATIONS: dict[str, Relation] = {
    "at most": lambda value, other, rounding: value <= other + rounding,
    "at least": lambda value, other, rounding: value >= other - rounding,
    "equal to": lambda value, other, rounding: (value - other).abs() <= rounding,
    "below": lambda value, other, rounding: value < other - rounding,
    "above": lambda value, other, rounding: value > other,
}
"""What a value may be to another one."""


def measured(relation: str, other: str | None, *, at_end: bool = False) -> Judge:
    """Compare a value with another one in all seeds and positions.

    Parameters
    ----------
    relation : str
        One of `RELATIONS`.
    other : str, optional
        The key of the claim that names the other value; None for zero.
    at_end : bool
        Compare only at the last position.

    Notes
    -----
    A claim with a `share` holds if that share of the positions does, in every seed. Points at
    which one of the values was not measured are not run.
    """

    def check(case: Case, point: Point) -> tuple[str, str, None]:
        value, *others = _measured(case, point, "value", *([other] if other else []))
        bound = others[0] if others else pd.DataFrame(0.0, value.index, value.columns)
        if at_end:
            value, bound = value.iloc[:, -1:], bound.iloc[:, -1:]
        holds = RELATIONS[relation](value, bound, _ROUNDING * (1 + bound.abs()))
        outcome = HOLDS if (holds.mean(axis=1) >= case.settings.get("share", 1.0)).all() else FAILS
        if at_end:
            numbers = _at_end(value, bound, holds, relation)
        else:
            words = f"{relation} {_NAMES[other]} {_how_often(holds)}"
            numbers = f"{words}, {_room(value, bound, other)}"
        return outcome, numbers.replace("-", "−"), None

    return at_every_point(check, "method")


_NAMES = {None: "0", "bound": "its bound", "floor": "its floor"}


def _at_end(value: pd.DataFrame, bound: pd.DataFrame, holds: pd.DataFrame, relation: str) -> str:
    """Return both means at the last position, and in how many seeds the relation holds."""
    ends = [mean_of(frame.iloc[:, 0].tolist()) for frame in (value, bound)]
    means = " against ".join(format_mean(mean) for mean in ends)
    return (
        f"{means} at the end, {relation} it in {int(holds.to_numpy().sum())} of {len(holds)} seeds"
    )


def _how_often(holds: pd.DataFrame) -> str:
    """Return at how many positions, and in how many seeds throughout, something holds."""
    n_holds, n_seeds = int(holds.to_numpy().sum()), int(holds.all(axis=1).sum())
    if n_holds == holds.size:
        return f"at all {holds.size} positions"
    return f"at {n_holds} of {holds.size} positions, throughout in {n_seeds} of {len(holds)} seeds"


def _room(value: pd.DataFrame, bound: pd.DataFrame, name: str | None) -> str:
    """Return how far a value is from its bound, as text."""
    if name is None:
        numbers = value.to_numpy(dtype=float)
        return f"from {numbers.min():.3g} to {numbers.max():.3g}, {numbers.mean():.3g} on average"
    ratios = (bound / value.where(value > 0)).to_numpy(dtype=float)
    if np.isnan(ratios).all():
        return "the value is never above 0"
    last = ratios[:, -1]
    at_last = "" if np.isnan(last).all() else f", {np.nanmean(last):.3g} times at the end"
    return (
        f"the {name} is {np.nanmin(ratios):.3g} to {np.nanmax(ratios):.3g} times the value{at_last}"
    )


def falls_like(case: Case, point: Point) -> tuple[str, str, None]:
    """Check that the mean slope of log value on log x is −power, to a tolerance."""
    power, tolerance = case.settings["power"], case.settings["tolerance"]
    value, x = _measured(case, point, "value", "x")
    slopes = mean_of([_slope(x.loc[seed], value.loc[seed]) for seed in value.index])
    assert slopes.mean is not None
    numbers = f"slope {format_mean(slopes)} ({-power:g} ± {tolerance:g} claimed)"
    outcome = HOLDS if abs(slopes.mean + power) <= tolerance else FAILS
    return outcome, numbers.replace("-", "−"), None


def _slope(x: "pd.Series[float]", value: "pd.Series[float]") -> float:
    if (x <= 0).any() or (value <= 0).any():
        return float("nan")
    return float(np.polyfit(np.log(x), np.log(value), 1)[0])


def _measured(case: Case, point: Point, *keys: str) -> list[pd.DataFrame]:
    """Return the values that some keys name, at the seeds and positions that all have."""
    method = case.settings["method"]
    tables = [case.results.diagnostic(point, method, case.settings[key]) for key in keys]
    seeds, positions = tables[0].index, tables[0].columns
    for table in tables[1:]:
        seeds, positions = seeds.intersection(table.index), positions.intersection(table.columns)
    if seeds.empty or positions.empty:
        raise NotRunError("not measured")
    return [table.loc[seeds, positions] for table in tables]
