"""Panels of paired differences: a dot with its interval per method and place."""

import math
from collections import Counter
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import SymmetricalLogLocator

from halfseen.report.comparisons import Compared, compared, read_comparisons
from halfseen.report.look import label_of
from halfseen.report.panels import Scene
from halfseen.report.specs import PanelSpec

_LOWER, _HIGHER, _OPEN = "#0072B2", "#D55E00", "#6E6E6E"
_ROW, _FRAME = 0.075, 0.3  # in units of a panel's usual height


def differences_of(scene: Scene, panel: PanelSpec) -> list[Compared]:
    """Return the differences of a comparison at the places of a panel."""
    specs = {spec.name: spec for spec in read_comparisons(scene.study)}
    found = compared(scene.study, scene.results, specs[panel.comparison])
    return [
        pair
        for pair in found
        if (not panel.setting or pair.point.setting == panel.setting)
        and (panel.p is None or pair.point.p == panel.p)
    ]


def differences_height(pairs: Sequence[Compared]) -> float:
    """Return the height that so many rows need."""
    return _FRAME + _ROW * len(pairs)


def draw_differences(axes: Axes, scene: Scene, panel: PanelSpec, pairs: list[Compared]) -> None:
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
        + (" (or who is named)" if several else "")
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
    """Return the method with which most are compared."""
    return Counter(pair.against for pair in pairs).most_common(1)[0][0]


def row_label(pair: Compared, pairs: Sequence[Compared]) -> str:
    """Return what tells a row from the others: its place, its method, or both."""
    words = []
    if len({each.point for each in pairs}) > 1:
        words.append(str(pair.point))
    if len({each.method for each in pairs}) > 1 or not words:
        label = label_of(pair.method)
        words.append(label.partition(": ")[2] or label)
    told = ", ".join(words)
    named = pair.against != usual_other(pairs)
    return f"{told} (against {label_of(pair.against)})" if named else told


def _title(panel: PanelSpec, pairs: Sequence[Compared]) -> str:
    points = list(dict.fromkeys(pair.point for pair in pairs))
    return panel.title or (str(points[0]) if len(points) == 1 else "")


def _verdict(pair: Compared) -> tuple[str, str, str]:
    """Return colour, marker and words for what an interval says."""
    if pair.high < 0:
        return _LOWER, "o", "pays less"
    if pair.low > 0:
        return _HIGHER, "s", "pays more"
    return _OPEN, "o", "not decided"
