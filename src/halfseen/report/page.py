"""The page over all studies: `index.html` in the folder that holds theirs, with all it needs."""

import base64
import io
import math
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from halfseen.errors import HalfseenError, StoreError
from halfseen.report.figures import share_label
from halfseen.report.look import Look, look_of, shade
from halfseen.report.render import HTML, render
from halfseen.report.report import Report, count_outcomes
from halfseen.simulation.results import Row
from halfseen.values import FloatArray

PAGE = "index.html"
PLOTLY_VERSION = "4.1.1"
"""Of the charting library inside the page."""


def write_page(
    home: str | Path, report_on: Callable[[Path], Report], first: Sequence[str] = ()
) -> Path:
    """Write one page over all studies whose folders lie directly in a results folder.

    A folder belongs to a study if it has `manifest.json` and `summary.csv`. Those named in `first`
    come first. One that cannot be read is named on the page, with the reason. The same results
    give the same bytes.

    Raises
    ------
    StoreError
        There is no study in the folder.
    """
    home = Path(home)
    folders = study_folders(home, first)
    if not folders:
        raise StoreError(
            f"there are no results in {home}: run `halfseen reproduce synthetic` first"
        )
    reports: list[Report] = []
    unread: list[tuple[str, str]] = []
    for folder in folders:
        try:
            reports.append(report_on(folder))
        except (HalfseenError, OSError) as error:
            unread.append((folder.name, str(error)))
    page = home / PAGE
    page.write_text(_page(reports, unread), encoding="utf-8")
    return page


def study_folders(home: Path, first: Sequence[str] = ()) -> list[Path]:
    """Return the folders of studies in a results folder, in the order of the page."""
    found = sorted(file.parent for file in home.glob("*/manifest.json"))
    found = [folder for folder in found if (folder / "summary.csv").exists()]
    known = [home / name for name in first if home / name in found]
    return known + [folder for folder in found if folder not in known]


def asset(name: str) -> str:
    """Return the text of a file that becomes part of the page."""
    return (Path(str(files("halfseen.report"))) / name).read_text(encoding="utf-8")


def _page(reports: list[Report], unread: list[tuple[str, str]]) -> str:
    versions: dict[str, Any] = {}
    for report in reports:
        versions |= report.results.manifest.get("versions") or {}
    return render(
        HTML,
        reports=reports,
        unread=unread,
        versions=versions,
        counts=count_outcomes(verdict for report in reports for verdict in report.verdicts),
        chart_data=chart_data,
        steps=half_seen_steps(),
        data_uri=data_uri,
        style=Markup(asset("assets/style.css")),
        plotly_version=PLOTLY_VERSION,
        plotly=_script("vendor/plotly-basic.min.js"),
        app=_script("assets/app.js"),
    )


def _script(name: str) -> Markup:
    """Return a script that cannot end its element before its end."""
    text = asset(name).replace("</script", "<\\/script").replace("<!--", "<\\!--")
    return Markup(text)


# The numbers of the charts: means in four significant digits, standard errors in three

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


def chart_data(report: Report) -> dict[str, Any] | None:
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
    results, table = report.results, report.table
    if not table.cells:
        return None
    points = table.points
    settings = list(dict.fromkeys(point.setting for point in points))
    rounds: list[list[int]] = []
    shown = shown_first(report)
    finals, lines = [], []
    for point in points:
        for at, key in enumerate(table.methods):
            place = [settings.index(point.setting), point.p, at]
            mean, n = table.cells.get((point, key)), len(results.regrets(point, key))
            if mean is not None:
                finals.append([*place, n, *_rounded(*mean)])
            over_time = [row for row in results.over_time(point, key) if row["n"]]
            if over_time:
                lines.append([*place, *_line(over_time, rounds)])
    return {
        "share": share_label(results).replace(" of entries", ""),
        "methods": [_method(key) | {"on": key in shown} for key in table.methods],
        "settings": [
            {"name": name, "probs": [p.p for p in points if p.setting == name]} for name in settings
        ],
        "finals": finals,
        "lines": lines,
        "rounds": rounds,
    }


def shown_first(report: Report) -> set[str]:
    """Return the methods whose curves are on at first: those of the paper's figures, if it has any.

    Otherwise it is all but uniform play, which would squeeze the other curves.
    """
    methods = report.table.methods
    panels = (p for spec in report.specs if spec.label.startswith("fig:") for p in spec.panels)
    shown = {method for panel in panels if panel is not None for method in panel.methods}
    others = {method for method in methods if method != "uniform"}
    return shown & set(methods) or others or set(methods)


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


def _rounded(mean: float | None, error: float | None) -> list[float | int | None]:
    return [rounded(mean, _MEAN_DIGITS), rounded(error, _ERROR_DIGITS)]


def _line(found: list[Row], rounds: list[list[int]]) -> list[Any]:
    """Return a line over time; its rounds are added to `rounds` unless they are there."""
    last, n_kept = len(found) - 1, min(len(found), MOST_POINTS)
    kept = [found[round(last * at / max(n_kept - 1, 1))] for at in range(n_kept)]
    at = [row["round"] for row in kept]
    if at not in rounds:
        rounds.append(at)
    pairs = [_rounded(row["mean_regret"], row["se_regret"]) for row in kept]
    means, errors = (list(each) for each in zip(*pairs, strict=True))
    return [kept[-1]["n"], rounds.index(at), means, errors]


# Pictures: small versions of figures, and what "half seen" means

WIDEST = 1120
"""Pixels: wider figures are made smaller."""

_COLORS = 64  # enough for lines and their smoothed edges
_DIM, _CELL, _GAP = 10, 20, 2
_MIX = np.array([[1.0, 0.2], [-0.5, 0.9], [0.3, -1.0], [-0.9, -0.5], [0.7, 0.8], [0.1, 0.9]])
_SEEN = ("x..x.xx..x", ".x.xx...x.", "xx...x..xx", "..xx.x.x..", "x.x...xx.x", ".xx..x..x.")
_POSITIVE, _NEGATIVE = (0, 114, 178), (213, 94, 0)


class Cell(NamedTuple):
    """A square of a picture; its kind is "seen", "hidden" or "guess"."""

    x: int
    y: int
    color: str
    kind: str


class Step(NamedTuple):
    """One of the pictures: arms as rows of cells."""

    title: str
    words: str
    n_rows: int
    n_columns: int
    size: int  # of a cell
    width: int
    height: int
    cells: list[Cell]


def data_uri(png: Path) -> str:
    """Return a picture as a data URI, with few colours so that it stays small."""
    from PIL import Image

    with Image.open(png) as opened:
        picture = Image.new("RGB", opened.size, "white")
        rgba = opened.convert("RGBA")
        picture.paste(rgba, mask=rgba.getchannel("A"))
    if picture.width > WIDEST:
        height = round(picture.height * WIDEST / picture.width)
        picture = picture.resize((WIDEST, height), Image.Resampling.LANCZOS)
    few = picture.quantize(_COLORS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    buffer = io.BytesIO()
    few.save(buffer, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def half_seen_steps() -> list[Step]:
    """Return four small pictures of how hidden features are found, on a few made-up arms.

    Arms are rows of cells, of which most are hidden; the patterns that all arms mix are known; the
    hidden cells are then really found from the seen ones, by least squares.
    """
    patterns = _patterns()
    arms = _MIX @ patterns
    seen = np.array([[mark == "x" for mark in row] for row in _SEEN])
    filled = np.array([_filled(arm, mask, patterns) for arm, mask in zip(arms, seen, strict=True)])
    largest = float(np.abs(arms).max())

    def step(title: str, words: str, values: FloatArray, hidden: str = "") -> Step:
        mask = seen if hidden else np.ones(values.shape, dtype=bool)
        return _step(title, words, values / largest, mask, hidden)

    return [
        step("What the options are", "Each row is an option, each cell a feature.", arms),
        step("What you see", "Most cells are hidden, different ones in every row.", arms, "hidden"),
        step("What they share", "All rows mix a few patterns; many rows show which.", patterns),
        step("What you can fill in", "Patterns and seen cells give the rest.", filled, "guess"),
    ]


def _step(title: str, words: str, values: FloatArray, seen: NDArray[np.bool_], other: str) -> Step:
    """Return a picture of values in [−1, 1]; `other` is the kind of cells that are not seen."""
    n_rows, n_columns = values.shape
    pitch = _CELL + _GAP
    cells = [
        Cell(
            column * pitch + 1,
            row * pitch + 1,
            _color(float(values[row, column])),
            "seen" if seen[row, column] else other,
        )
        for row, column in np.ndindex(values.shape)
    ]
    return Step(title, words, n_rows, n_columns, _CELL, n_columns * pitch, n_rows * pitch, cells)


def _patterns() -> FloatArray:
    """Return two patterns over the features; shape (2, dim)."""
    at = np.arange(_DIM)
    return np.array([np.cos(1.1 * at), np.sin(0.6 * at + 0.5)])


def _filled(arm: FloatArray, mask: NDArray[np.bool_], patterns: FloatArray) -> FloatArray:
    """Return an arm (dim,) whose hidden entries come from the seen ones and the patterns."""
    mix = np.linalg.lstsq(patterns[:, mask].T, arm[mask], rcond=None)[0]
    return np.where(mask, arm, mix @ patterns)


def _color(size: float) -> str:
    """Return blue for positive, orange for negative, paler towards zero."""
    end = _POSITIVE if size >= 0 else _NEGATIVE
    share = 0.12 + 0.88 * math.sqrt(min(abs(size), 1.0))
    return "#" + "".join(f"{round(255 + (part - 255) * share):02x}" for part in end)
