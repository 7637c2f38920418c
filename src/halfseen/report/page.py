"""The page over all studies: `index.html` in the folder that holds theirs, with all it needs."""

import base64
import colorsys
import io
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from markupsafe import Markup

from halfseen.errors import HalfseenError, StoreError
from halfseen.report.figures import share_label
from halfseen.report.look import Look, look_of, rgb
from halfseen.report.report import HTML, Report, count_outcomes, render
from halfseen.simulation.results import Row

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
    """Return the content of a file that becomes part of the page."""
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

_GREY = 0.05  # saturation
_LEAST_LIGHTNESS = 0.6


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


def color_in_the_dark(color: str) -> str:
    """Return a colour that is readable on a dark page: greys inverted, others light enough.

    >>> color_in_the_dark("#000000"), color_in_the_dark("#56B4E9"), color_in_the_dark("#5B2A86")
    ('#ffffff', '#56B4E9', '#9c64ce')
    """
    red, green, blue = (int(color[at : at + 2], 16) / 255 for at in (1, 3, 5))
    hue, lightness, saturation = colorsys.rgb_to_hls(red, green, blue)
    if saturation < _GREY:
        return rgb(hue, 1 - lightness, saturation)
    return rgb(hue, _LEAST_LIGHTNESS, saturation) if lightness < _LEAST_LIGHTNESS else color


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


def _rounded(mean: float | None, error: float | None) -> list[float | None]:
    return [
        None if mean is None else float(f"{mean:.4g}"),
        None if error is None else float(f"{error:.3g}"),
    ]


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


# Small versions of figures

WIDEST = 1120
"""Pixels: wider figures are made smaller."""

_COLORS = 64  # enough for lines and their smoothed edges


def data_uri(png: Path) -> str:
    """Return a picture as a data URI, with few colours so that it stays small."""
    from PIL import Image

    with Image.open(png) as opened:
        picture = opened.convert("RGB")
    picture.thumbnail((WIDEST, picture.height), Image.Resampling.LANCZOS)
    few = picture.quantize(_COLORS, dither=Image.Dither.NONE)
    buffer = io.BytesIO()
    few.save(buffer, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
