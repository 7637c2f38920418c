"""Panels of bars and dots: final regrets in groups, and paired differences."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import SymmetricalLogLocator

from halfseen.reports.comparisons import Compared, compared
from halfseen.reports.data import Point, Results, rows
from halfseen.reports.look import label_of, look_of
from halfseen.reports.panels import FINAL_REGRET, Scene
from halfseen.studies.figures import BarsPanel, DifferencesPanel

_LOWER, _HIGHER, _OPEN = "#0072B2", "#D55E00", "#6E6E6E"
_ROW, _FRAME = 0.075, 0.3  # of a list of differences, in units of a panel's usual height
# Final regrets in groups


class Bar(NamedTuple):
    """One bar: a method at a point, and the mean final rank if it is to be written on it."""

    point: Point
    method: str
    mean: float
    error: float
    rank: float | None


def bars_of(scene: Scene, panel: BarsPanel) -> list[Bar]:
    """Return the bars of all settings at the probability of the panel, or at all."""
    bars = []
    for name, setting in scene.study.settings.items():
        for p in setting.worlds():
            if panel.p is not None and p != panel.p:
                continue
            bars += _group(scene.results, panel, Point(name, p))
    return bars


def _group(results: Results, panel: BarsPanel, point: Point) -> list[Bar]:
    group = []
    for method in panel.methods or ():
        regret = results.mean(point, method)
        if regret.mean is not None:
            rank = None
            if method in panel.ranks:
                rank = float(rows(results.per_seed, point, method)["final_rank"].mean())
            group.append(Bar(point, method, regret.mean, regret.standard_error or 0.0, rank))
    return group


def draw_bars(axes: Axes, scene: Scene, panel: BarsPanel, bars: list[Bar]) -> None:
    """Draw groups of bars, one per setting, one bar per method, with error bars."""
    points = list(dict.fromkeys(bar.point for bar in bars))
    methods = [
        method for method in panel.methods or () if any(bar.method == method for bar in bars)
    ]
    width = 0.84 / len(methods)
    for method in methods:
        own = [bar for bar in bars if bar.method == method]
        offset = (methods.index(method) - (len(methods) - 1) / 2) * width
        x = [points.index(bar.point) + offset for bar in own]
        look = look_of(method)
        axes.bar(
            x,
            [bar.mean for bar in own],
            width=0.92 * width,
            yerr=[bar.error for bar in own],
            error_kw={"elinewidth": 0.9, "ecolor": "#333333"},
            color=look.color,
            hatch=look.hatch,
            edgecolor="white",
            linewidth=0.4,
            label=look.label,
        )
        for at, bar in zip(x, own, strict=True):
            _write_rank(axes, at, bar)
    names = [point.setting if panel.p is not None else str(point) for point in points]
    axes.set_xticks(range(len(points)), names, parse_math=False)
    axes.grid(visible=False, axis="x")
    title = f"p = {panel.p:g}" if panel.p is not None else ""
    axes.set(ylabel=FINAL_REGRET, title=panel.title or title)
    if panel.log:
        axes.set_yscale("log")


def _write_rank(axes: Axes, at: float, bar: Bar) -> None:
    if bar.rank is not None and np.isfinite(bar.rank):
        axes.annotate(
            f"rank\n{bar.rank:.1f}",
            (at, bar.mean + bar.error),
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
            fontsize=8,
        )


# Paired differences


def differences_of(scene: Scene, panel: DifferencesPanel) -> list[Compared]:
    """Return the differences of a comparison at the places of a panel."""
    specs = {spec.name: spec for spec in scene.study.comparisons}
    found = compared(scene.study, scene.results, specs[panel.comparison])
    return [
        pair
        for pair in found
        if (not panel.setting or pair.point.setting == panel.setting)
        and (panel.p is None or pair.point.p == panel.p)
    ]


def differences_height(pairs: Sequence[Compared]) -> float:
    """Return the height that the rows need."""
    return _FRAME + _ROW * len(pairs)


def draw_differences(
    axes: Axes, scene: Scene, panel: DifferencesPanel, pairs: list[Compared]
) -> None:
    """Draw one row per difference, coloured by what its interval says about its sign."""
    units = [abs(pair.other) / 100 if panel.relative else 1.0 for pair in pairs]
    for row, (pair, unit) in enumerate(zip(pairs, units, strict=True)):
        color, marker, label = _verdict(pair)
        half = 0.0 if math.isnan(pair.low) else (pair.high - pair.low) / 2 / unit
        axes.errorbar(
            pair.difference / unit,
            row,
            xerr=half,
            fmt=marker,
            color=color,
            markerfacecolor="white" if color == _OPEN else color,
            markersize=5,
            elinewidth=1.4,
            label=label,
        )
    axes.axvline(0.0, color="#000000", linewidth=0.8)
    names = [row_label(pair, pairs) for pair in pairs]
    axes.set_yticks(range(len(pairs)), names, parse_math=False)
    axes.set_ylim(len(pairs) - 0.4, -0.6)
    several = len({pair.against for pair in pairs}) > 1
    axes.set(
        xlabel=f"final regret less that of {label_of(usual_other(pairs))}"
        + ("\n(or of the one named)" if several else "")
        + (", in % of it" if panel.relative else ""),
        title=_title(panel, pairs),
    )
    if panel.log:
        _set_log_axis(axes)


def _set_log_axis(axes: Axes) -> None:
    """Make the axis logarithmic on both sides of ±1, with plain numbers."""
    axes.set_xscale("symlog", linthresh=1.0)
    axes.margins(x=0.06)
    axes.set_xlabel(f"{axes.get_xlabel()}, logarithmic beyond ±1")
    axes.xaxis.set_major_locator(SymmetricalLogLocator(base=10.0, linthresh=1.0, subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}".replace("-", "−"))


def usual_other(pairs: Sequence[Compared]) -> str:
    """Return the method against which most pairs are compared."""
    return Counter(pair.against for pair in pairs).most_common(1)[0][0]


def row_label(pair: Compared, pairs: Sequence[Compared]) -> str:
    """Return what distinguishes a row from the others: its place, its method, or both."""
    words = []
    if len({each.point for each in pairs}) > 1:
        words.append(str(pair.point))
    if len({each.method for each in pairs}) > 1 or not words:
        label = label_of(pair.method)
        words.append(label.partition(": ")[2] or label)
    text = ", ".join(words)
    named = pair.against != usual_other(pairs)
    return f"{text} (against {label_of(pair.against)})" if named else text


def _title(panel: DifferencesPanel, pairs: Sequence[Compared]) -> str:
    points = list(dict.fromkeys(pair.point for pair in pairs))
    return panel.title or (str(points[0]) if len(points) == 1 else "")


def _verdict(pair: Compared) -> tuple[str, str, str]:
    """Return colour, marker and words for what an interval says."""
    if pair.high < 0:
        return _LOWER, "o", "pays less"
    if pair.low > 0:
        return _HIGHER, "s", "pays more"
    return _OPEN, "o", "not decided"
