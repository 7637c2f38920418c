"""The numbers of a study for the charts of the page: few, plain and rounded.

Means keep four significant digits and standard errors three, and always all digits before the
decimal point.
"""

import math
from typing import Any

import pandas as pd

from halfseen.reports.data import Point, Results, points_of
from halfseen.reports.look import Look, look_of, shade
from halfseen.reports.table import FinalTable
from halfseen.reports.truth import share_label
from halfseen.studies.spec import Study

MOST_POINTS = 60
"""Of a line over time."""

_MEAN_DIGITS, _ERROR_DIGITS = 4, 3
_LINE_WIDTH = 2  # pixels; matplotlib gives dashes in widths of the line
_SYMBOLS = {
    "o": "circle",
    "s": "square",
    "D": "diamond",
    "d": "diamond-tall",
    "*": "star",
    "P": "cross",
    "X": "x",
    "x": "x-thin-open",
    "1": "y-down-open",
    "^": "triangle-up",
    "v": "triangle-down",
    "<": "triangle-left",
    ">": "triangle-right",
    "p": "pentagon",
    "h": "hexagon",
    "H": "hexagon2",
    "8": "octagon",
    ".": "circle-open",
}
"""Markers of matplotlib as plotly calls them."""

_DARK_PAGE = "#14181d"
_LEAST_CONTRAST = 4.0


def chart_data(study: Study, results: Results) -> dict[str, Any] | None:
    """Return what the charts of a study draw, as plain JSON types; None where nothing was played.

    Returns
    -------
    data : dict
        `share`, what p is the share of; `methods` with their looks and whether they are on at
        first; `settings` with their names and observation probabilities;
        `finals`, one list [setting, p, method, n, mean, error] per line of the summary; `rounds`,
        lists of rounds; `lines`, one list [setting, p, method, n, rounds, means, errors] per
        method at a point. Settings, methods and lists of rounds are given by their positions.
    """
    table = FinalTable.of(results.summary, study)
    if not table.cells:
        return None
    points = [point for point in points_of(study) if point in table.points]
    settings = list(dict.fromkeys(point.setting for point in points))
    finals, lines = _by_place(results.summary), _by_place(results.trajectories)
    rounds: list[list[int]] = []
    shown = shown_first(study, table.methods)
    return {
        "share": share_label(study).replace(" of entries", ""),
        "methods": [_method(key) | {"on": key in shown} for key in table.methods],
        "settings": [
            {"name": name, "probs": [p.p for p in points if p.setting == name]} for name in settings
        ],
        "finals": [
            [settings.index(point.setting), point.p, table.methods.index(key), *final]
            for point in points
            for key in table.methods
            if (final := _final(finals.get((point, key)))) is not None
        ],
        "lines": [
            [settings.index(point.setting), point.p, table.methods.index(key), *line]
            for point in points
            for key in table.methods
            if (line := _line(lines.get((point, key)), rounds)) is not None
        ],
        "rounds": rounds,
    }


def shown_first(study: Study, methods: list[str]) -> set[str]:
    """Return the methods whose curves are on at first: those of the paper's figures, if it has any.

    Otherwise it is all but uniform play, which would squeeze the other curves.
    """
    figures = [figure for figure in study.figures if figure.label.startswith("fig:")]
    drawn = {
        method
        for figure in figures
        for panel in figure.panels
        for method in panel.methods or figure.methods or ()
    }
    others = {method for method in methods if method != "uniform"}
    return drawn & set(methods) or others or set(methods)


def rounded(value: float | None, digits: int) -> float | int | None:
    """Return a number in some significant digits, or all before the decimal point if they are more.

    >>> rounded(18.27562, 4), rounded(123456.7, 4), rounded(3.0, 4), rounded(float("nan"), 4)
    (18.28, 123457, 3, None)
    """
    if value is None or not math.isfinite(value):
        return None
    if abs(value) >= 10**digits:
        return round(value)
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() else short


def color_in_the_dark(color: str) -> str:
    """Return a colour that is readable on a dark page: greys inverted, others lightened.

    >>> color_in_the_dark("#000000"), color_in_the_dark("#56B4E9")
    ('#ffffff', '#56B4E9')
    """
    parts = [int(color[at : at + 2], 16) for at in (1, 3, 5)]
    if max(parts) - min(parts) < 8:
        return "#" + "".join(f"{255 - part:02x}" for part in parts)
    by = 0.0
    while _contrast(lighter := shade(color, by) if by else color) < _LEAST_CONTRAST:
        by += 0.05
    return lighter


def _contrast(color: str) -> float:
    return (_luminance(color) + 0.05) / (_luminance(_DARK_PAGE) + 0.05)


def _luminance(color: str) -> float:
    """Return the relative luminance of a colour, as WCAG defines it."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _method(key: str) -> dict[str, str]:
    look = look_of(key)
    return {
        "key": key,
        "label": look.label,
        "color": look.color,
        "dark": color_in_the_dark(look.color),
        "dash": _dash(look),
        "symbol": _SYMBOLS.get(look.marker, "circle"),
        "pattern": look.hatch[:1],
    }


def _dash(look: Look) -> str:
    return ",".join(f"{_LINE_WIDTH * length:g}px" for length in look.dashes[1]) or "solid"


def _by_place(frame: pd.DataFrame) -> dict[tuple[Point, str], pd.DataFrame]:
    """Return the rows of every method at every point that have a regret."""
    frame = frame.dropna(subset="mean_regret")
    return {
        (Point(setting, None if pd.isna(p) else p), method): group
        for (setting, p, method), group in frame.groupby(
            ["setting", "p", "method"], sort=False, dropna=False
        )
    }


def _final(found: pd.DataFrame | None) -> list[Any] | None:
    if found is None:
        return None
    row = found.iloc[0]
    return [
        int(row["n"]),
        rounded(row["mean_regret"], _MEAN_DIGITS),
        rounded(row["se_regret"], _ERROR_DIGITS),
    ]


def _line(found: pd.DataFrame | None, rounds: list[list[int]]) -> list[Any] | None:
    """Return a line over time; its rounds are added to `rounds` unless they are there."""
    if found is None:
        return None
    last, n_kept = len(found) - 1, min(len(found), MOST_POINTS)
    kept = found.iloc[[round(last * at / max(n_kept - 1, 1)) for at in range(n_kept)]]
    at = kept["round"].tolist()
    if at not in rounds:
        rounds.append(at)
    return [
        int(kept["n"].iloc[-1]),
        rounds.index(at),
        [rounded(value, _MEAN_DIGITS) for value in kept["mean_regret"]],
        [rounded(value, _ERROR_DIGITS) for value in kept["se_regret"]],
    ]
