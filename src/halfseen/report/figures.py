"""Figures: panels side by side with one legend, written as PNG and SVG.

A function such as `regret_over_p` collects what was run and returns a panel, or None where nothing
was. matplotlib is imported when the first panel is drawn.
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from halfseen.errors import InvalidInputError
from halfseen.lazy import from_extra
from halfseen.report.look import DASHED, DOTTED, MIXED, SOLID, Look, house_style, label_of, look_of
from halfseen.report.numbers import (
    Comparison,
    Growth,
    Pair,
    growth_of,
    growth_points,
    number,
    words_for,
)
from halfseen.simulation.results import Mean, Point, Results, mean_of
from halfseen.values import FloatArray
from halfseen.worlds.recorded import TableWorld

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure as Canvas
    from matplotlib.lines import Line2D

FINAL_REGRET = "final regret"
_TRUTH = {"color": "#000000", "linewidth": 1.0, "linestyle": (0, (4.0, 2.0))}
_N_MARKERS = 8  # along a curve of many points
_FIRST_SHARE = 0.01  # of the horizon, where logarithmic axes begin


Keys = str | Sequence[str]
"""Methods: a list of keys, or a string of them with spaces between."""


def keys_of(methods: Keys) -> list[str]:
    """Return the keys of methods.

    >>> keys_of("tofu zf-oful")
    ['tofu', 'zf-oful']
    """
    return methods.split() if isinstance(methods, str) else list(methods)


class Panel(NamedTuple):
    """How to draw a panel, and whose curves come first in the legend.

    A `wide` panel takes the whole width of a page; `height` is in units of the usual height.
    """

    draw: "Callable[[Axes], None]"
    methods: Sequence[str] = ()
    wide: bool = False
    height: float = 1.0


class Figure(NamedTuple):
    """Panels side by side, in `columns`. The label is that of the paper if it has this figure.

    A panel for which nothing was run is None.
    """

    label: str
    caption: str
    panels: Sequence[Panel | None]
    columns: int | None = None

    @property
    def name(self) -> str:
        """The name of its files, without suffix."""
        return self.label.removeprefix("fig:")


class Curve(NamedTuple):
    """Means and standard errors (0 for a single seed) along an axis, and how they look."""

    look: Look
    x: FloatArray
    mean: FloatArray
    error: FloatArray

    @classmethod
    def of(cls, look: Look, x: Iterable[float], means: Iterable[Mean]) -> "Curve":
        """Return the curve of means along an axis."""
        pairs = [(mean.mean, mean.standard_error or 0.0) for mean in means]
        mean, error = np.array(pairs, dtype=float).reshape(-1, 2).T
        return cls(look, np.array(list(x), dtype=float), mean, error)

    def part(self, kept: Any) -> "Curve":
        """Return the curve at some of its points."""
        return self._replace(x=self.x[kept], mean=self.mean[kept], error=self.error[kept])


# Over rounds


def regret_over_rounds(
    results: Results,
    methods: Keys,
    *,
    setting: str | None = None,
    p: float | None = None,
    log: bool = False,
    title: str = "",
) -> Panel | None:
    """Show cumulative regret over rounds with bands of one standard error.

    Logarithmic axes begin at a hundredth of the horizon: decades of few rounds show nothing.
    """
    keys = keys_of(methods)
    point = results.first_point(setting, p)
    curves = list(_over_rounds(results, point, keys, "regret").values())
    if log:
        curves = [curve.part(curve.x >= _FIRST_SHARE * curve.x[-1]) for curve in curves]

    def draw(axes: "Axes") -> None:
        draw_bands(axes, curves)
        axes.set(xlabel="round", ylabel="cumulative regret", title=title or str(point))
        _set_regret_axis(axes, log)
        axes.margins(x=0.01)
        if log:
            axes.set_xscale("log")
            _label_decades(axes.xaxis)
        else:
            axes.locator_params(axis="x", nbins=5)
            _label_plainly(axes.xaxis)

    return Panel(draw, keys) if curves else None


def rank_over_rounds(
    results: Results,
    methods: Keys,
    *,
    setting: str | None = None,
    p: float | None = None,
) -> Panel | None:
    """Show the mean rank over rounds, without those in which the burn-in policy plays."""
    keys = keys_of(methods)
    point, curves = results.first_point(setting, p), []
    for method, curve in _over_rounds(results, point, keys, "rank").items():
        chosen = curve.x >= _first_choice(results, point, method, curve)
        if chosen.any():
            curves.append(curve.part(chosen))
    rank = true_rank(results, point)

    def draw(axes: "Axes") -> None:
        draw_bands(axes, curves)
        if rank is not None:
            axes.axhline(rank, label="true rank", **_TRUTH)
        axes.set(xlabel="round", ylabel="selected rank", title=str(point))
        axes.set_xlim(left=0)
        axes.locator_params(axis="x", nbins=5)
        _label_plainly(axes.xaxis)
        highest = [float((curve.mean + curve.error).max()) for curve in curves]
        axes.set_ylim(0, 1.08 * max([rank or 1, *highest]))
        axes.yaxis.get_major_locator().set_params(integer=True)

    return Panel(draw, keys) if curves else None


def _over_rounds(
    results: Results, point: Point, methods: Sequence[str], what: str
) -> dict[str, Curve]:
    """Return the curves of "regret" or "rank" over rounds by method."""
    curves = {}
    for method in methods:
        rows = [r for r in results.over_time(point, method) if r[f"mean_{what}"] is not None]
        if rows:
            means = [Mean(row[f"mean_{what}"], row[f"se_{what}"]) for row in rows]
            curves[method] = Curve.of(look_of(method), (row["round"] for row in rows), means)
    return curves


def _first_choice(results: Results, point: Point, method: str, curve: Curve) -> float:
    """Return the first round with a chosen rank: as the policy reports it, or below dim."""
    starts = results.diagnostic(point, method, "epoch_starts").values()
    first = [each[0] for each in starts if 0 in each]
    if first:
        return max(first)
    facts = results.facts(point)
    if facts is None:
        return float(curve.x[0])
    lower = curve.x[curve.mean < facts.dim]
    return float(lower[0]) if len(lower) else float(curve.x[-1]) + 1


def true_rank(results: Results, point: Point) -> int | None:
    """Return the dimension of the subspace in which arms lie, where the world knows it."""
    facts = results.facts(point)
    return None if facts is None else facts.rank


# Against the share of entries seen


def regret_over_p(
    results: Results,
    methods: Keys,
    *,
    setting: str | None = None,
    log: bool = False,
    title: str | None = None,
    after: "Callable[[Axes, set[float]], None] | None" = None,
) -> Panel | None:
    """Show final regret against p, from much seen on the left to little on the right.

    `after` may draw more, given the probabilities that are shown; it then sets the axis of regret.
    """
    keys = keys_of(methods)
    name = results.first_point(setting).setting
    probs = sorted(point.p for point in results.points([name]) if point.p is not None)
    curves = []
    for method in keys:
        means = {p: results.mean(Point(name, p), method) for p in probs}
        known = {p: mean for p, mean in means.items() if mean.mean is not None}
        if known:
            curves.append(Curve.of(look_of(method), known, known.values()))
    if title is None:
        several = after is not None or (len(results.settings) > 1 and name != "default")
        title = name if several else ""

    def draw(axes: "Axes") -> None:
        for curve in curves:
            draw_points(axes, curve)
        axes.set(ylabel=FINAL_REGRET, title=title)
        _set_probability_axis(axes, curves, f"{share_label(results)}, p")
        if after is None:
            _set_regret_axis(axes, log)
        else:
            after(axes, {float(x) for curve in curves for x in curve.x})

    return Panel(draw, keys) if curves else None


def share_label(results: Results) -> str:
    """Return what `p` is the share of; a recorded table has holes of its own."""
    worlds = (world for each in results.settings.values() for world in each.worlds.values())
    recorded = any(isinstance(world, TableWorld) for world in worlds)
    return "share of recorded entries seen" if recorded else "share of entries seen"


# Against the horizon, or another number of the world


def growth(
    results: Results,
    methods: Keys,
    over: str = "horizon",
    *,
    minus: Keys = (),
    value: str | None = None,
    settings: Sequence[str] | None = None,
    p: float | None = None,
    slopes: Sequence[float] = (),
    ylabel: str = FINAL_REGRET,
    title: str = "",
    expected: Callable[[Point], float | None] | None = None,
) -> Panel | None:
    """Show final regret against a number, with exponents and slopes to compare with.

    The parameters are those of `growth_of`; `minus` is one method for all, or one for each.
    `expected` is what theory implies at a point.
    """
    keys = keys_of(methods)
    others: Sequence[str | None] = keys_of(minus) or [None]
    others = others if len(others) > 1 else list(others) * len(keys)
    grown: dict[str, Growth] = {}
    for key, other in zip(keys, others, strict=True):
        found = growth_of(results, key, over, minus=other, value=value, settings=settings, p=p)
        if found is not None:
            grown[key] = found

    def draw(axes: "Axes") -> None:
        letter, label = words_for(over)
        curves = [Curve.of(look_of(key), each.numbers, each.means) for key, each in grown.items()]
        handles = [draw_points(axes, curve) for curve in curves]
        if expected is not None:
            points = growth_points(results, over, settings, p)
            implied = {x: expected(point) for x, point in points.items()}
            known = sorted((x, y) for x, y in implied.items() if y is not None)
            if known:
                x, y = np.array(known).T
                axes.plot(x, y, color="#000000", linestyle=DASHED, label=EXPECTED)
        axes.set(xscale="log", yscale="log", xlabel=label, ylabel=ylabel, title=title)
        if slopes:
            _draw_slopes(axes, curves, slopes, letter)
        _label_numbers(axes.xaxis, {float(x) for curve in curves for x in curve.x})
        _label_decades(axes.yaxis)
        _list_exponents(axes, handles, [str(each) for each in grown.values()])

    return Panel(draw, keys) if grown else None


EXPECTED = "implied by the construction"


def _list_exponents(axes: "Axes", handles: "list[Line2D]", exponents: list[str]) -> None:
    """List exponents above the curves; the figure's legend names these."""
    bottom, top = axes.get_ylim()
    n_columns = 1 if len(exponents) <= 3 else 2
    room = 0.13 + 0.075 * math.ceil(len(exponents) / n_columns)  # of the axis
    axes.set_ylim(bottom, bottom * (top / bottom) ** (1 / (1 - min(room, 0.6))))
    axes.legend(
        handles,
        exponents,
        loc="upper left",
        title="exponent [95 % interval]",
        title_fontsize=8.5,
        alignment="left",
        fontsize=8,
        ncols=n_columns,
        handlelength=1.9,
        handletextpad=0.4,
        columnspacing=0.8,
        labelspacing=0.25,
        borderaxespad=0.2,
    )


def _draw_slopes(
    axes: "Axes", curves: Sequence[Curve], slopes: Sequence[float], letter: str
) -> None:
    """Draw slopes from one point so low that they stay below all curves."""
    shown = [curve.part(curve.mean > 0) for curve in curves]
    x, mean = (np.concatenate([curve[at] for curve in shown]) for at in (1, 2))
    first, last = x.min(), x.max()
    steepest = max(slopes)
    start = 0.6 * (mean / (x / first) ** steepest).min()
    for slope in slopes:
        end = start * (last / first) ** slope
        simple = Fraction(slope).limit_denominator(6)
        name = str(simple) if abs(simple - slope) < 0.005 else f"{slope:.2f}"
        style = {"color": "#777777", "linewidth": 1.0, "linestyle": (0, (1.5, 1.5))}
        axes.plot([first, last], [start, end], **style)
        axes.annotate(
            f"${letter}^{{{name}}}$",
            (last, end),
            xytext=(4, 0),
            textcoords="offset points",
            va="bottom" if slope == steepest else "top",
            fontsize=9,
            color="#555555",
            annotation_clip=False,
        )


def regret_of_candidates(
    results: Results,
    methods: Keys,
    over: str,
    *,
    setting: str | None = None,
    p: float | None = None,
    title: str = "",
) -> Panel | None:
    """Show final regret on the validation seeds against a setting that was tuned."""
    keys = keys_of(methods)
    point, curves = results.first_point(setting, p), []
    for method in keys:
        found: dict[float, list[float]] = {}
        for candidate, regret in results.candidates(point, method):
            if isinstance(candidate.get(over), int | float):
                found.setdefault(float(candidate[over]), []).append(regret)
        if found:
            x = sorted(found)
            curves.append(Curve.of(look_of(method), x, [mean_of(found[value]) for value in x]))

    def draw(axes: "Axes") -> None:
        for curve in curves:
            draw_points(axes, curve)
        axes.set_xscale("log", base=2)
        _label_numbers(axes.xaxis, sorted({float(x) for curve in curves for x in curve.x}))
        label = words_for(over)[1]
        axes.set(xlabel=label, ylabel="final regret, validation seeds", title=title)
        _set_regret_axis(axes, log=False)

    return Panel(draw, keys) if curves else None


# Diagnostics

ROLE_LOOKS: Mapping[str, Look] = {
    "measured": Look("", "#0072B2", SOLID, "o"),
    "second": Look("", "#009E73", SOLID, "D"),
    "third": Look("", "#E69F00", SOLID, "s"),
    "fourth": Look("", "#CC79A7", SOLID, "^"),
    "bound": Look("", "#000000", DASHED, ""),
    "other-bound": Look("", "#D55E00", MIXED, ""),
    "reference": Look("", "#7F7F7F", DOTTED, ""),
}
"""How each role of a measured line is drawn; bounds have no markers."""


class Line(NamedTuple):
    """A diagnostic over another one; what is None is that of the panel."""

    value: str
    label: str
    role: str = "measured"
    setting: str | None = None
    p: float | None = None
    x: str | None = None


def diagnostics(
    results: Results,
    method: str,
    x: str,
    lines: Sequence[Line],
    *,
    xlabel: str,
    ylabel: str,
    title: str,
    setting: str | None = None,
    p: float | None = None,
    xscale: str = "log",
    yscale: str = "log",
) -> Panel | None:
    """Show diagnostics over another one, with bands of one standard error."""
    found = [_measured_curve(results, method, x, line, setting, p) for line in lines]
    curves = [curve for curve in found if curve is not None]

    def draw(axes: "Axes") -> None:
        draw_bands(axes, curves)
        axes.set(xscale=xscale, yscale=yscale, xlabel=xlabel, ylabel=ylabel, title=title)
        axes.margins(x=0.02)
        for axis, scale in ((axes.xaxis, xscale), (axes.yaxis, yscale)):
            if scale == "linear":
                _label_plainly(axis)

    return Panel(draw) if curves else None


def _measured_curve(
    results: Results, method: str, x: str, line: Line, setting: str | None, p: float | None
) -> Curve | None:
    """Return one line, or None where it was not measured.

    A position is the same place in all seeds of a world, so x is averaged with the values.
    """
    point = results.first_point(line.setting or setting, line.p or p)
    values = _by_position(results.diagnostic(point, method, line.value))
    places = _by_position(results.diagnostic(point, method, line.x or x))
    shared = sorted(position for position in values if position in places)
    if not shared:
        return None
    look = ROLE_LOOKS[line.role]._replace(label=line.label)
    at = [float(np.mean(places[position])) for position in shared]
    return Curve.of(look, at, [mean_of(values[position]) for position in shared])


def _by_position(found: Mapping[int, Mapping[int, float]]) -> dict[int, list[float]]:
    values: dict[int, list[float]] = {}
    for positions in found.values():
        for position, value in positions.items():
            values.setdefault(position, []).append(value)
    return values


def spectrum(
    results: Results, method: str, *, setting: str | None = None, p: float | None = None
) -> Panel | None:
    """Show mean eigenvalues of the last epoch, the threshold, and the gap after the true rank."""
    point = results.first_point(setting, p)
    found = _by_position(results.diagnostic(point, method, "eigenvalues"))
    positions = sorted(found)
    thresholds = [each[0] for each in results.diagnostic(point, method, "threshold").values()]
    look, rank = look_of(method), true_rank(results, point)

    def draw(axes: "Axes") -> None:
        means = [mean_of(found[position]) for position in positions]
        curve = Curve.of(look, [position + 1 for position in positions], means)
        draw_points(axes, curve, linestyle="none", elinewidth=None)
        if thresholds:
            style = {"color": look.color, "linestyle": look.dashes, "linewidth": 1.1}
            axes.axhline(float(np.mean(thresholds)), label="threshold", **style)
        if rank is not None and len(positions) > rank:
            _mark_gap(axes, curve, rank)
        axes.axhline(0.0, color="#999999", linewidth=0.6)
        axes.set(xlabel="position", ylabel="eigenvalue", title=str(point))
        axes.xaxis.get_major_locator().set_params(integer=True)

    return Panel(draw, [method]) if found else None


def _mark_gap(axes: "Axes", curve: Curve, rank: int) -> None:
    high, low = float(curve.mean[rank - 1]), float(curve.mean[rank])
    at = rank + 0.5
    axes.axvline(at, label="true rank", **_TRUTH)
    axes.annotate("", (at, high), (at, low), arrowprops={"arrowstyle": "<->", "linewidth": 1.1})
    axes.annotate(
        f"gap {high - low:.2f}",
        (at, (high + low) / 2),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        fontsize=8.5,
    )


# Bars and dots


def bars(
    results: Results,
    methods: Keys,
    *,
    p: float | None = None,
    ranks: Keys = (),
) -> Panel | None:
    """Show final regrets in groups, one per point; bars of `ranks` have the mean final rank."""
    keys = keys_of(methods)
    points = [point for point in results.points() if p is None or point.p == p]
    means = {(at, key): results.mean(at, key) for at in points for key in keys}
    known = {place: mean for place, mean in means.items() if mean.mean is not None}
    points = [point for point in points if any(at == point for at, _ in known)]
    shown = [method for method in keys if any(key == method for _, key in known)]

    def draw(axes: "Axes") -> None:
        width = 0.84 / len(shown)
        for index, method in enumerate(shown):
            own = {at: known[at, method] for at in points if (at, method) in known}
            offset = (index - (len(shown) - 1) / 2) * width
            x = [points.index(at) + offset for at in own]
            tops = [(mean.mean or 0.0, mean.standard_error or 0.0) for mean in own.values()]
            look = look_of(method)
            axes.bar(
                x,
                [top for top, _ in tops],
                width=0.92 * width,
                yerr=[error for _, error in tops],
                error_kw={"elinewidth": 0.9, "ecolor": "#333333"},
                color=look.color,
                hatch=look.hatch,
                edgecolor="white",
                linewidth=0.4,
                label=look.label,
            )
            for place, at, top in zip(x, own, tops, strict=True):
                final = results.final_ranks(at, method) if method in keys_of(ranks) else {}
                if final:
                    _write_rank(axes, place, sum(top), float(np.mean(list(final.values()))))
        names = [point.setting if p is not None else str(point) for point in points]
        axes.set_xticks(range(len(points)), names, parse_math=False)
        axes.grid(visible=False, axis="x")
        axes.set(ylabel=FINAL_REGRET, title=f"p = {p:g}" if p is not None else "")

    return Panel(draw, keys, wide=True) if known else None


def _write_rank(axes: "Axes", x: float, y: float, rank: float) -> None:
    style = {"textcoords": "offset points", "ha": "center", "fontsize": 8}
    axes.annotate(f"rank\n{rank:.1f}", (x, y), xytext=(0, 3), **style)


def differences(
    comparison: Comparison,
    *,
    p: float | None = None,
    log: bool = False,
    relative: bool = False,
    title: str = "",
) -> Panel | None:
    """Show one row per paired difference, coloured by what its interval says about its sign.

    With `relative` they are in percent of the other method's regret.
    """
    pairs = [pair for pair in comparison.pairs if p is None or pair.point.p == p]

    def draw(axes: "Axes") -> None:
        for row, pair in enumerate(pairs):
            unit = abs(pair.other) / 100 if relative else 1.0
            color, marker, label = _sign(pair)
            axes.errorbar(
                pair.difference / unit,
                row,
                xerr=0.0 if math.isnan(pair.low) else (pair.high - pair.low) / 2 / unit,
                fmt=marker,
                color=color,
                markerfacecolor=color if pair.decided else "white",
                markersize=5,
                elinewidth=1.4,
                label=label,
            )
        axes.axvline(0.0, color="#000000", linewidth=0.8)
        usual = Counter(pair.against for pair in pairs).most_common(1)[0][0]
        names = [row_label(pair, pairs, usual) for pair in pairs]
        axes.set_yticks(range(len(pairs)), names, parse_math=False)
        axes.set_ylim(len(pairs) - 0.4, -0.6)
        several = "\n(or of the one named)" if len({pair.against for pair in pairs}) > 1 else ""
        xlabel = f"final regret less that of {label_of(usual)}{several}"
        axes.set(xlabel=xlabel + (", in % of it" if relative else ""), title=title)
        if log:
            _set_signed_log_axis(axes)

    return Panel(draw, wide=True, height=0.3 + 0.075 * len(pairs)) if pairs else None


def _sign(pair: Pair) -> tuple[str, str, str]:
    """Return colour, marker and words for what an interval says."""
    if pair.high < 0:
        return "#0072B2", "o", "pays less"
    if pair.low > 0:
        return "#D55E00", "s", "pays more"
    return "#6E6E6E", "o", "not decided"


def row_label(pair: Pair, pairs: Sequence[Pair], usual: str) -> str:
    """Return what distinguishes a row from the others: its place, its method, or both."""
    words = []
    if len({each.point for each in pairs}) > 1:
        words.append(str(pair.point))
    if len({each.method for each in pairs}) > 1 or not words:
        label = label_of(pair.method)
        words.append(label.partition(": ")[2] or label)
    text = ", ".join(words)
    return text if pair.against == usual else f"{text} (against {label_of(pair.against)})"


# Curves and axes


def draw_bands(axes: "Axes", curves: Sequence[Curve]) -> None:
    """Draw curves of many points with bands of one standard error."""
    for index, curve in enumerate(curves):
        every = max(1, len(curve.x) // _N_MARKERS)
        # Markers of curves that lie on each other are drawn next to each other.
        first = int((index + 0.5) / len(curves) * every)
        axes.plot(curve.x, curve.mean, markevery=(first, every), **_style(curve.look))
        if curve.error.any():
            low, high = curve.mean - curve.error, curve.mean + curve.error
            axes.fill_between(curve.x, low, high, color=curve.look.color, alpha=0.16, linewidth=0)


def draw_points(axes: "Axes", curve: Curve, **changes: Any) -> "Line2D":
    """Draw a curve of few points with error bars of one standard error, and return the curve."""
    style = {**_style(curve.look), "elinewidth": 1.0, **changes}
    return axes.errorbar(curve.x, curve.mean, yerr=curve.error, **style)[0]


def _style(look: Look) -> dict[str, Any]:
    return {
        "color": look.color,
        "linestyle": "-" if look.dashes == SOLID else look.dashes,  # a line knows if it is solid
        "marker": look.marker,
        "label": look.label,
    }


def _tell_apart(axes: "Axes") -> None:
    """Draw a solid line that another one lies on wider and below it, so that both show.

    Of two solid ones the first is below. The axes must have their scales and limits.
    """
    axes.get_xlim(), axes.get_ylim()  # matplotlib finds limits when they are asked for
    lines = [
        line
        for line in axes.get_lines()
        if len(line.get_xdata()) > 1 and line.get_linestyle() != "None"
    ]
    places = [(axes.transScale + axes.transLimits).transform(line.get_xydata()) for line in lines]
    for at, (line, place) in enumerate(zip(lines, places, strict=True)):
        above = [
            each
            for other, each in enumerate(places)
            if other > at or (other != at and lines[other].is_dashed())
        ]
        if not line.is_dashed() and any(_coincide(place, each) for each in above):
            line.set(linewidth=4.2, zorder=1.9)  # lines are at 2


def _coincide(one: FloatArray, other: FloatArray) -> bool:
    """Tell whether lines, as shares of the axes, are nearly the same along most of the way."""
    if one.shape != other.shape or not np.allclose(one[:, 0], other[:, 0], atol=1e-6):
        return False
    return bool(np.mean(np.abs(one[:, 1] - other[:, 1]) < 0.01) > 0.6)


def _set_probability_axis(axes: "Axes", curves: Sequence[Curve], label: str) -> None:
    """Put the probabilities that were run on a reversed axis; crowded ones share a label."""
    probs = sorted({float(x) for curve in curves for x in curve.x}, reverse=True)
    span = max(probs) - min(probs)
    shown: list[float] = []
    for p in probs:
        if not shown or shown[-1] - p > 0.07 * span:
            shown.append(p)
    axes.set_xticks(shown, [f"{p:g}" for p in shown])
    axes.set_xticks(probs, minor=True)
    axes.invert_xaxis()
    axes.set_xlabel(label)


def _set_regret_axis(axes: "Axes", log: bool) -> None:
    """Let regret begin at 0, or make its axis logarithmic with plain numbers."""
    if log:
        axes.set_yscale("log")
        _label_decades(axes.yaxis)
    else:
        axes.set_ylim(bottom=0)
        _label_plainly(axes.yaxis)


def _set_signed_log_axis(axes: "Axes") -> None:
    """Make the axis logarithmic on both sides of ±1, with plain numbers."""
    from matplotlib.ticker import SymmetricalLogLocator

    axes.set_xscale("symlog", linthresh=1.0)
    axes.margins(x=0.06)
    axes.set_xlabel(f"{axes.get_xlabel()}, logarithmic beyond ±1")
    axes.xaxis.set_major_locator(SymmetricalLogLocator(base=10.0, linthresh=1.0, subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}".replace("-", "−"))


def _label_plainly(axis: "Axis") -> None:
    """Label an axis with numbers as people write them."""
    axis.set_major_formatter(lambda value, _: number(value))


def label_small_decades(axes: "Axes", smallest_share: float) -> None:
    """Make the axis of regret logarithmic, down to a share of its top: a mean regret may be 0."""
    axes.set_yscale("log", nonpositive="mask")
    bottom, top = axes.get_ylim()
    axes.set_ylim(bottom=max(bottom, smallest_share * top))
    _label_decades(axes.yaxis)


def _label_decades(axis: "Axis") -> None:
    """Label the powers of 10 of a logarithmic axis, with 2 and 5 between them if it has few."""
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = sorted(axis.get_view_interval())
    n_decades = math.floor(math.log10(high)) - math.ceil(math.log10(low)) + 1
    _label_plainly(axis)
    if n_decades < 2:
        axis.set_minor_locator(LogLocator(subs=(2.0, 5.0)))
        axis.set_minor_formatter(lambda value, _: number(value))
    else:
        axis.set_minor_formatter(NullFormatter())


def _label_numbers(axis: "Axis", values: Iterable[float]) -> None:
    """Label a logarithmic axis at the values that were run, as far as there is room for them."""
    shown: list[float] = []
    spread = sorted(values)
    for value in spread:
        if not shown or value / shown[-1] > (spread[-1] / spread[0]) ** 0.12:
            shown.append(value)
    axis.set_ticks(shown, [number(value) for value in shown])
    axis.set_ticks([], minor=True)


# Whole figures

_MOST_DEFAULT_PANELS = 4
_PANEL_WIDTH, _PANEL_HEIGHT = 3.5, 2.9  # inches
_WIDE, _NARROWEST = 8.6, 5.0
_LEGEND_ROW = 0.2
_SAME_SCALE = 1.3  # axes whose lengths differ by less are read as one scale


def default_figures(results: Results) -> list[Figure]:
    """Return figures that suit any run: regret over the share of entries seen, and over time."""
    methods, figures = results.methods, []
    swept = [name for name, setting in results.settings.items() if len(setting.worlds) > 1]
    if swept:
        panels = [regret_over_p(results, methods, setting=each) for each in swept]
        caption = f"Final regret against the {share_label(results)}"
        figures.append(Figure("final_regret", caption, panels[:_MOST_DEFAULT_PANELS]))
    points = results.points()[:_MOST_DEFAULT_PANELS]
    panels = [regret_over_rounds(results, methods, setting=at.setting, p=at.p) for at in points]
    return [*figures, Figure("regret_over_time", "Regret over time", panels)]


def regret_figure(results: Results) -> "Canvas":
    """Return regret over rounds, with a panel per setting and observation probability."""
    panels = [
        regret_over_rounds(results, results.methods, setting=point.setting, p=point.p)
        for point in results.points()
    ]
    canvas = drawn(Figure("regret_over_time", "Regret over time", panels))
    if canvas is None:
        raise InvalidInputError("there is nothing to draw: no cell of these tables has a regret")
    return canvas


def drawn(figure: Figure) -> "Canvas | None":
    """Return a figure with all panels for which something was run; None where that is none."""
    there = [panel for panel in figure.panels if panel is not None]
    if not there:
        return None
    with from_extra("paper"):
        from matplotlib.figure import Figure as Canvas

    with house_style():
        canvas = Canvas(layout="constrained")
        canvas.get_layout_engine().set(w_pad=0.06, h_pad=0.06, wspace=0.03, hspace=0.02)
        places = _axes(canvas, there, figure.columns)
        for axes, panel in zip(places, there, strict=True):
            panel.draw(axes)
            _tell_apart(axes)
        _name_scales(places)
        methods = dict.fromkeys(method for panel in there for method in panel.methods)
        _share_legend(canvas, [label_of(method) for method in methods])
        _take_texts_literally(canvas)
    return canvas


def _name_scales(panels: "Sequence[Axes]") -> None:
    """Say in titles how much longer axes are than the first linear one of the same name."""
    first: dict[str, float] = {}
    for axes in panels:
        top = axes.get_ylim()[1]
        name = axes.get_ylabel()
        if not name or axes.get_yscale() != "linear" or top <= 0:
            continue
        ratio = top / first.setdefault(name, top)
        if max(ratio, 1 / ratio) > _SAME_SCALE:
            axes.set_title(f"{axes.get_title()} (axis × {number(ratio, 2)})".lstrip())


def _take_texts_literally(canvas: "Canvas") -> None:
    """Make a dollar in a name a dollar, not the start of a formula."""
    texts = [text for legend in canvas.legends for text in legend.get_texts()]
    for axes in canvas.axes:
        texts += [axes.title, axes.xaxis.label, axes.yaxis.label]
    for text in texts:
        text.set_parse_math(False)


def _n_columns(n_panels: int) -> int:
    return {1: 1, 2: 2, 4: 2}.get(n_panels, 3)


def _axes(canvas: "Canvas", panels: Sequence[Panel], columns: int | None) -> "list[Axes]":
    """Return axes for panels, wide ones in rows of their own, and set the size of the figure.

    With `columns`, a panel that is alone in the last row takes half of the width, in the middle.
    """
    lines: list[list[int]] = []  # how many twelfths of the width each panel of a row takes
    for wide, group in itertools.groupby(panels, key=lambda panel: panel.wide):
        n = len(list(group))
        n_columns = 1 if wide else columns or _n_columns(n)
        spans = [12 // n_columns] * n
        lines += [spans[at : at + n_columns] for at in range(0, n, n_columns)]
    most = 12 // min(span for line in lines for span in line)
    if columns is not None and lines[-1] == [12 // columns]:
        lines[-1] = [6]
    width = max(most * _PANEL_WIDTH, _WIDE if any(each.wide for each in panels) else _NARROWEST)
    heights = iter([panel.height for panel in panels])
    tall = [max(itertools.islice(heights, len(line))) for line in lines]
    canvas.set_size_inches(width, sum(tall) * _PANEL_HEIGHT)
    grid = canvas.add_gridspec(len(lines), 12, height_ratios=tall)
    indents = [0 if columns is None else (12 - sum(line)) // 2 for line in lines]
    return [
        canvas.add_subplot(grid[row, indent + at * span : indent + (at + 1) * span])
        for row, (line, indent) in enumerate(zip(lines, indents, strict=True))
        for at, span in enumerate(line)
    ]


def _share_legend(canvas: "Canvas", first: Sequence[str]) -> None:
    """Put one legend under all panels, with each label once, and make room for it.

    Labels in `first` come before all others, in this order.
    """
    from matplotlib import rcParams
    from matplotlib.container import ErrorbarContainer

    entries: dict[str, Any] = {}
    for axes in canvas.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            # Of a curve with error bars only the curve.
            line = handle[0] if isinstance(handle, ErrorbarContainer) else handle
            entries.setdefault(label, line)
    if not entries:
        return
    labels = [label for label in first if label in entries]
    labels += [label for label in entries if label not in labels]
    width, height = canvas.get_size_inches()
    # A character of a legend is about .07 inches wide.
    fitting = int(float(width) / (0.55 + 0.072 * max(len(label) for label in labels)))
    n_rows = math.ceil(len(labels) / max(1, min(len(labels), fitting)))
    canvas.set_size_inches(width, height + _LEGEND_ROW * n_rows)
    legend = canvas.legend(
        [entries[label] for label in labels],
        labels,
        loc="outside lower center",
        ncols=math.ceil(len(labels) / n_rows),  # rows of about one length
        borderaxespad=0.1,
    )
    for line in legend.get_lines():  # also of a curve that is wider where another one covers it
        line.set_linewidth(min(line.get_linewidth(), rcParams["lines.linewidth"]))


def save_figure(canvas: "Canvas", folder: Path, name: str) -> Path:
    """Write a figure as PNG and as SVG, the same bytes every time, and return the PNG's path."""
    folder.mkdir(parents=True, exist_ok=True)
    png, svg = folder / f"{name}.png", folder / f"{name}.svg"
    with house_style():
        canvas.savefig(png, metadata={"Software": None})
        canvas.set_layout_engine("none")  # stays as it is; finding it again takes a second
        canvas.savefig(svg, metadata={"Date": None, "Creator": None})
    return png
