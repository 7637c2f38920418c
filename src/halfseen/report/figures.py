"""Figures: panels side by side with one legend, written as PNG and SVG.

A function such as `regret_over_p` collects what was run and returns a panel, or None where nothing
was. matplotlib is imported when the first panel is drawn. Figures have the width at which they are
printed, so that their letters have the size that `look` says.
"""

import math
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from halfseen.errors import InvalidInputError
from halfseen.lazy import from_extra
from halfseen.report.look import DASHED, DOTTED, MIXED, SOLID, Look, house_style, label_of, look_of
from halfseen.report.numbers import (
    Comparison,
    Pair,
    difference,
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

FINAL_REGRET = "final regret"
EXPECTED = "implied by the construction"
_BLACK = {"color": "#000000", "linewidth": 0.9, "linestyle": DASHED}
_N_MARKERS = 8  # along a curve of many points
_WIDE = 10.0  # probabilities whose ratio is larger are on a logarithmic axis
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
    """Panels side by side. The label is that of the paper if it has this figure.

    A panel for which nothing was run is None.
    """

    label: str
    caption: str
    panels: Sequence[Panel | None]

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
    def of(cls, look: Look, means: Mapping[float, Mean]) -> "Curve":
        """Return the curve of means by their places, in their order."""
        pairs = [(mean.mean, mean.standard_error or 0.0) for mean in means.values()]
        mean, error = np.array(pairs, dtype=float).reshape(-1, 2).T
        return cls(look, np.array(list(means), dtype=float), mean, error)

    def part(self, kept: Any) -> "Curve":
        """Return the curve at some of its points."""
        return self._replace(x=self.x[kept], mean=self.mean[kept], error=self.error[kept])


def _known(means: Mapping[Any, Mean]) -> dict[Any, Mean]:
    return {at: mean for at, mean in means.items() if mean.mean is not None}


def _curves(keys: Sequence[str], means: Callable[[str], Mapping[Any, Mean]]) -> dict[str, Curve]:
    """Return the curves of those keys for which there are means."""
    known = {key: _known(means(key)) for key in keys}
    return {key: Curve.of(look_of(key), each) for key, each in known.items() if each}


def _panel(
    curves: Sequence[Curve],
    keys: Sequence[str],
    labels: Mapping[str, str],
    *,
    bands: bool = False,
    log: str = "",
    ticks: bool = False,
    bottom: bool = False,
    more: "Callable[[Axes], object] | None" = None,
) -> Panel | None:
    """Return a panel of curves with labels and title, or None where there are no curves.

    `log` has the letters of logarithmic axes; `ticks` are at the values of x; with `bottom` the
    y-axis begins at 0; `more` draws what else the panel shows.
    """

    def draw(axes: "Axes") -> None:
        (draw_bands if bands else draw_points)(axes, curves)
        axes.set(**labels)
        if "x" in log:
            axes.set_xscale("log")
        if more is not None:
            more(axes)
        shown = {float(x) for curve in curves for x in curve.x} if ticks else ()
        _set_axis(axes.xaxis, log="x" in log, ticks=shown)
        _set_axis(axes.yaxis, log="y" in log)
        if bottom:
            axes.set_ylim(bottom=0)

    return Panel(draw, keys) if curves else None


# Over rounds


def regret_over_rounds(
    results: Results,
    methods: Keys,
    *,
    setting: str | None = None,
    p: float | None = None,
    log: bool = False,
    minus: str | None = None,
) -> Panel | None:
    """Show cumulative regret over rounds with bands of one standard error.

    Logarithmic axes begin at a hundredth of the horizon: decades of few rounds show nothing. With
    `minus`, the mean regret of this method is subtracted, which tells curves apart that grow alike;
    they have no bands, because those of a difference are not known.
    """
    keys, point = keys_of(methods), results.first_point(setting, p)
    found = _over_rounds(results, point, keys, "regret")
    if log:
        found = {key: each.part(each.x >= _FIRST_SHARE * each.x[-1]) for key, each in found.items()}
    if minus in found:
        base = found[minus].mean
        found = {
            key: each._replace(mean=each.mean - base, error=0.0 * each.error)
            for key, each in found.items()
        }
    less = f" minus that of {label_of(minus)}" if minus else ""
    labels = {"xlabel": "round", "ylabel": f"cumulative regret{less}", "title": str(point)}
    scale: Any = {"log": "xy" if log else "", "bottom": not log and not minus}
    margins = methodcaller("margins", x=0.01)
    return _panel(list(found.values()), keys, labels, bands=True, more=margins, **scale)


def rank_over_rounds(
    results: Results, methods: Keys, *, setting: str | None = None, p: float | None = None
) -> Panel | None:
    """Show the mean rank over rounds, without those in which the burn-in policy plays."""
    keys, point = keys_of(methods), results.first_point(setting, p)
    rank = results.fact(point, "rank")
    dim = results.fact(point, "dim") or math.inf  # the burn-in policy plays in all of them
    found = _over_rounds(results, point, keys, "rank").values()
    curves = [curve.part(curve.mean < dim) for curve in found if curve.mean.min() < dim]

    def draw(axes: "Axes") -> None:
        draw_bands(axes, curves, steps=True)
        if rank is not None:
            axes.axhline(rank, label="true rank", **_BLACK)
        axes.set(xlabel="round", ylabel="selected rank", title=str(point))
        _set_axis(axes.xaxis)
        highest = [float((curve.mean + curve.error).max()) for curve in curves]
        axes.set_xlim(left=0)
        axes.set_ylim(0, 1.08 * max([rank or 1, *highest]))
        axes.yaxis.get_major_locator().set_params(integer=True)

    return Panel(draw, keys) if curves else None


def _over_rounds(
    results: Results, point: Point, methods: Sequence[str], what: str
) -> dict[str, Curve]:
    """Return the curves of "regret" or "rank" over rounds by method."""

    def means(method: str) -> dict[int, Mean]:
        rows = results.over_time(point, method)
        return {row["round"]: Mean(row[f"mean_{what}"], row[f"se_{what}"]) for row in rows}

    return _curves(methods, means)


# Against the share of entries seen


def regret_over_p(
    results: Results,
    methods: Keys,
    *,
    setting: str | None = None,
    log: bool = False,
    after: "Callable[[Axes, set[float]], None] | None" = None,
) -> Panel | None:
    """Show final regret against p, from much seen on the left to little on the right.

    `after` may draw more, given the probabilities that are shown.
    """
    keys, name = keys_of(methods), results.first_point(setting).setting
    probs = sorted(point.p for point in results.points([name]) if point.p is not None)
    found = _curves(keys, lambda key: {p: results.mean(Point(name, p), key) for p in probs})
    curves = list(found.values())
    shown = {float(x) for curve in curves for x in curve.x}
    title = name if len(results.settings) > 1 and name != "default" else ""
    labels = {"xlabel": f"{share_label(results)}, p", "ylabel": FINAL_REGRET, "title": title}
    is_wide = bool(shown) and max(shown) >= _WIDE * min(shown)

    def more(axes: "Axes") -> None:
        axes.invert_xaxis()
        if after is not None:
            after(axes, shown)
        # Regrets that differ by little are told apart only where the axis does not begin at 0.
        if not log and min(float(curve.mean.min()) for curve in curves) < axes.get_ylim()[1] / 2:
            axes.set_ylim(bottom=0)

    return _panel(curves, keys, labels, log="x" * is_wide + "y" * log, ticks=True, more=more)


def share_label(results: Results) -> str:
    """Return what `p` is the share of; a recorded table has its own missing values."""
    worlds = (world for each in results.settings.values() for world in each.worlds.values())
    recorded = any(isinstance(world, TableWorld) for world in worlds)
    return "share of recorded entries seen" if recorded else "share of entries seen"


# Against the horizon, or another number of the world


def growth(
    results: Results,
    methods: Keys,
    over: str = "horizon",
    *,
    slopes: Sequence[float] = (),
    ylabel: str = FINAL_REGRET,
    title: str = "",
    expected: Callable[[Point], float | None] | None = None,
    **where: Any,
) -> Panel | None:
    """Show final regret against a number, with exponents and slopes to compare with.

    `where` are the other parameters of `growth_of`; `expected` is what theory implies at a point.
    Means that are not positive are left out.
    """
    keys = keys_of(methods)
    found = {key: growth_of(results, key, over, **where) for key in keys}
    grown = {key: each for key, each in found.items() if each is not None}

    def draw(axes: "Axes") -> None:
        letter, label = words_for(over)
        curves = []
        for key, each in grown.items():
            curve = Curve.of(look_of(key), dict(zip(each.numbers, each.means, strict=True)))
            curves.append(curve.part(curve.mean > 0))
        handles = draw_points(axes, curves)
        if expected is not None:
            where.pop("value", None)
            points = sorted(growth_points(results, over, **where).items())
            implied = {x: y for x, at in points if (y := expected(at)) is not None}
            axes.plot(list(implied), list(implied.values()), label=EXPECTED, **_BLACK)
        axes.set(xscale="log", yscale="log", xlabel=label, ylabel=ylabel, title=title)
        if slopes:
            _draw_slopes(axes, curves, slopes, letter)
        _set_axis(axes.xaxis, log=True, ticks={float(x) for curve in curves for x in curve.x})
        bottom, top = axes.get_ylim()
        n_columns = 1 if len(grown) <= 3 else 2
        # Of the axis, above the curves, for the exponents.
        room = 0.14 + 0.1 * math.ceil(len(grown) / n_columns)
        axes.set_ylim(bottom, bottom * (top / bottom) ** (1 / (1 - min(room, 0.6))))
        _set_axis(axes.yaxis, log=True)
        style: dict[str, Any] = {"handlelength": 1.9, "labelspacing": 0.2, "borderaxespad": 0.2}
        style |= {"ncols": n_columns, "columnspacing": 0.8, "handletextpad": 0.4}
        exponents = [each.exponent.fixed(2) for each in grown.values()]
        heading = "exponent [95 % interval]"
        axes.legend(handles, exponents, loc="upper left", title=heading, alignment="left", **style)

    return Panel(draw, keys) if grown else None


def _draw_slopes(
    axes: "Axes", curves: Sequence[Curve], slopes: Sequence[float], letter: str
) -> None:
    """Draw slopes from one point so low that they stay below all curves."""
    x, mean = (np.concatenate([curve[at] for curve in curves]) for at in (1, 2))
    first, last = x.min(), x.max()
    start = 0.6 * (mean / (x / first) ** max(slopes)).min()
    for slope in slopes:
        end = start * (last / first) ** slope
        axes.plot([first, last], [start, end], color="#777777", linestyle=DOTTED, linewidth=1.0)
        axes.annotate(
            f"${letter}^{{{Fraction(slope).limit_denominator(6)}}}$",
            (last, end),
            xytext=(3, 0),
            textcoords="offset points",
            va="bottom" if slope == max(slopes) else "top",
            annotation_clip=False,
            color="#555555",
            parse_math=True,
        )


def excess(
    results: Results,
    methods: Mapping[str, str],
    over: str,
    *,
    cost: Callable[[Point], float],
    label: str,
) -> Panel | None:
    """Show the final regret in excess of another method, by key, against a number.

    The axis is linear, because an excess may be below 0. The dotted line, with its label, is a
    theoretical cost at each point times the constant that fits the first method.
    """
    points = dict(sorted(growth_points(results, over).items()))

    def means(key: str) -> dict[float, Mean]:
        pairs = {
            at: difference(results.regrets(point, key), results.regrets(point, methods[key]))
            for at, point in points.items()
        }
        return {at: mean_of(list(each.values())) for at, each in pairs.items()}

    curves = list(_curves(list(methods), means).values())

    def more(axes: "Axes") -> None:
        first = curves[0]
        line = np.array([cost(points[at]) for at in first.x])
        fitted = first.mean.sum() / line.sum() * line
        axes.plot(first.x, fitted, label=label, color=first.look.color, linestyle=DOTTED)
        axes.axhline(0.0, color="#999999", linewidth=0.6)

    labels = {"xlabel": words_for(over)[1], "ylabel": "excess regret"}
    return _panel(curves, list(methods), labels, log="x", ticks=True, more=more)


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
    keys, point = keys_of(methods), results.first_point(setting, p)

    def means(key: str) -> dict[float, Mean]:
        found: dict[float, list[float]] = {}
        for candidate, regret in results.candidates(point, key):
            if isinstance(candidate.get(over), int | float):
                found.setdefault(float(candidate[over]), []).append(regret)
        return {value: mean_of(found[value]) for value in sorted(found)}

    curves = list(_curves(keys, means).values())
    ylabel = "final regret, validation seeds"
    labels = {"xlabel": words_for(over)[1], "ylabel": ylabel, "title": title}
    base = methodcaller("set_xscale", "log", base=2)
    return _panel(curves, keys, labels, log="x", ticks=True, bottom=True, more=base)


# Diagnostics

ROLE_LOOKS: Mapping[str, Look] = {
    "measured": Look("", "#0072B2", SOLID, "o"),
    "second": Look("", "#009E73", SOLID, "D"),
    "third": Look("", "#E69F00", SOLID, "s"),
    "bound": Look("", "#000000", DASHED, ""),
    "other-bound": Look("", "#D55E00", MIXED, ""),
    "reference": Look("", "#7F7F7F", DOTTED, ""),
}
"""How each role of a measured line is drawn; bounds have no markers."""


class Line(NamedTuple):
    """A diagnostic over another one, by default at the first probability."""

    value: str
    label: str
    role: str = "measured"
    p: float | None = None


def diagnostics(
    results: Results,
    method: str,
    x: str,
    lines: Sequence[Line],
    *,
    setting: str | None = None,
    **labels: str,
) -> Panel | None:
    """Show diagnostics over another one on logarithmic axes, with bands of one standard error."""
    curves = []
    for line in lines:
        point = results.first_point(setting, line.p)
        values = _by_position(results.diagnostic(point, method, line.value))
        # A position is the same place in all seeds of a world, so x is averaged with the values.
        places = _by_position(results.diagnostic(point, method, x))
        shared = sorted(position for position in values if position in places)
        means = {float(np.mean(places[at])): mean_of(values[at]) for at in shared}
        look = ROLE_LOOKS[line.role]._replace(label=line.label)
        curves += [Curve.of(look, means)] if means else []
    margins = methodcaller("margins", x=0.02)
    return _panel(curves, (), labels, bands=True, log="xy", more=margins)


def _by_position(found: Mapping[int, Mapping[int, float]]) -> dict[int, list[float]]:
    values: dict[int, list[float]] = {}
    for positions in found.values():
        for position, value in positions.items():
            values.setdefault(position, []).append(value)
    return values


# By setting, and differences


def by_setting(
    results: Results, methods: Keys, *, p: float | None = None, ranks: Keys = (), log: bool = False
) -> Panel | None:
    """Show final regrets in groups, one per point; those of `ranks` have the mean final rank."""
    keys = keys_of(methods)
    points = [point for point in results.points() if p is None or point.p == p]
    known = _known({(at, key): results.mean(at, key) for at in points for key in keys})
    points = [point for point in points if any(at == point for at, _ in known)]
    shown = [method for method in keys if any(key == method for _, key in known)]

    def draw(axes: "Axes") -> None:
        for index, method in enumerate(shown):
            offset = 0.84 * ((index + 0.5) / len(shown) - 0.5)
            own = {points.index(at) + offset: at for at in points if (at, method) in known}
            curve = Curve.of(look_of(method), {x: known[at, method] for x, at in own.items()})
            draw_points(axes, [curve], linestyle="none")
            if method not in keys_of(ranks):
                continue
            for x, top in zip(own, curve.mean + curve.error, strict=True):
                ranks_found = list(results.final_ranks(own[x], method).values())
                if ranks_found:
                    text = f"rank\n{float(np.mean(ranks_found)):.1f}"
                    style = {"textcoords": "offset points", "ha": "center"}
                    axes.annotate(text, (x, top), xytext=(0, 3), **style)
        names = [point.setting if p is not None else str(point) for point in points]
        letters = int(_INSIDE * _WIDTH / len(points) / _LETTER)
        axes.set_xticks(range(len(points)), [textwrap.fill(name, letters) for name in names])
        axes.grid(visible=False, axis="x")
        for boundary in range(1, len(points)):
            axes.axvline(boundary - 0.5, color="#e3e3e3", linewidth=0.6)
        axes.set(ylabel=FINAL_REGRET, title=f"p = {p:g}" if p is not None else "")
        _set_axis(axes.yaxis, log=log)
        if not log:
            axes.set_ylim(bottom=0)

    return Panel(draw, keys, wide=True) if known else None


def differences(comparison: Comparison, *, p: float | None = None, title: str = "") -> Panel | None:
    """Show one row per paired difference, in percent of the other method's regret if it has any.

    Colours say what its interval says about its sign.
    """
    pairs = [pair for pair in comparison.pairs if pair.other and (p is None or pair.point.p == p)]

    def draw(axes: "Axes") -> None:
        for row, pair in enumerate(pairs):
            mean, low, high, n = pair.difference
            unit = abs(pair.other) / 100
            color, marker, label = _sign(pair)
            axes.errorbar(
                mean / unit,
                row,
                xerr=(high - low) / 2 / unit if n > 1 else 0.0,
                fmt=marker,
                color=color,
                markerfacecolor=color if pair.decided else "white",
                elinewidth=1.2,
                label=label,
            )
        axes.axvline(0.0, color="#000000", linewidth=0.8)
        usual = Counter(pair.against for pair in pairs).most_common(1)[0][0]
        axes.set_yticks(range(len(pairs)), [row_label(pair, pairs, usual) for pair in pairs])
        axes.set_ylim(len(pairs) - 0.4, -0.6)
        several = "\n(or of the one named)" if len({pair.against for pair in pairs}) > 1 else ""
        text = f"final regret minus that of {label_of(usual)}{several}, in % of it"
        axes.set_xlabel(text, loc="right")  # it may be longer than the axis
        axes.set_title(title)

    return Panel(draw, wide=True, height=0.3 + 0.1 * len(pairs)) if pairs else None


def _sign(pair: Pair) -> tuple[str, str, str]:
    """Return colour, marker and words for what an interval says."""
    if pair.difference.high < 0:
        return "#0072B2", "o", "lower regret"
    if pair.difference.low > 0:
        return "#D55E00", "s", "higher regret"
    return "#6E6E6E", "o", "undecided"


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


def draw_bands(axes: "Axes", curves: Iterable[Curve], *, steps: bool = False) -> None:
    """Draw curves of many points with bands of one standard error, perhaps as steps."""
    listed, post = list(curves), "post" if steps else None
    for index, curve in enumerate(listed):
        every = max(1, len(curve.x) // _N_MARKERS)
        # Markers of curves that lie on each other are drawn next to each other.
        first = int((index + 0.5) / len(listed) * every)
        style = curve.look._asdict() | {"drawstyle": "steps-post" if steps else "default"}
        axes.plot(curve.x, curve.mean, markevery=(first, every), **style)
        if curve.error.any():
            low, high = curve.mean - curve.error, curve.mean + curve.error
            band = {"color": curve.look.color, "alpha": 0.16, "linewidth": 0, "step": post}
            axes.fill_between(curve.x, low, high, **band)


def draw_points(axes: "Axes", curves: Iterable[Curve], **changes: Any) -> list[Any]:
    """Draw curves of few points with error bars of one standard error, and return the curves."""
    drawn = []
    for curve in curves:
        style = curve.look._asdict() | {"elinewidth": 0.9} | changes
        drawn.append(axes.errorbar(curve.x, curve.mean, yerr=curve.error, **style)[0])
    return drawn


def _set_axis(axis: "Axis", *, log: bool = False, ticks: Iterable[float] = ()) -> None:
    """Label an axis with numbers as people write them, at the values that were run if given.

    Crowded ticks are left out. A logarithmic axis has its powers of 10, with 2 and 5 between them
    if they are few.
    """
    from matplotlib.ticker import LogLocator, NullFormatter

    name = axis.axis_name
    spread = sorted(ticks)
    if log and axis.get_scale() != "log":
        axis.axes.set(**{f"{name}scale": "log"})
    if spread:
        at = np.log(spread) if log else np.array(spread)
        shown: list[int] = []
        for index in reversed(range(len(spread))):
            room = 0.05 + 0.035 * len(number(spread[index]))  # of the axis
            if not shown or at[shown[-1]] - at[index] > room * np.ptp(at):
                shown.append(index)
        axis.set_ticks([spread[index] for index in shown])
        axis.set_ticks([], minor=True)
    axis.set_major_formatter(lambda value, _: number(value))
    if not log and not spread:
        axis.axes.locator_params(axis=name, nbins=5)
    if log and not spread:
        low, high = sorted(axis.get_view_interval())
        few = math.floor(math.log10(high)) - math.ceil(math.log10(low)) < 1
        if few:
            axis.set_minor_locator(LogLocator(subs=(2.0, 5.0)))
        axis.set_minor_formatter((lambda value, _: number(value)) if few else NullFormatter())


# Whole figures

_MOST_DEFAULT_PANELS = 4
_WIDTH = 6.75  # inches: the text of a page
_PANEL_HEIGHT = 2.0
_INSIDE = 0.75  # of a panel are its axes
_LEGEND_ROW = 0.17
_LETTER, _HANDLE = 0.062, 0.63  # inches, about
_SHARED = 3.0  # axes of one name share their range unless they differ by a larger factor


def default_figures(results: Results) -> list[Figure]:
    """Return figures that suit any run: regret over the share of entries seen, and over time."""
    methods, figures = results.methods, []
    swept = [name for name, setting in results.settings.items() if len(setting.worlds) > 1]
    if swept:
        panels = [regret_over_p(results, methods, setting=each) for each in swept]
        caption = f"Final regret against the {share_label(results)}{_shown(panels, 'settings')}"
        figures.append(Figure("final_regret", caption, panels[:_MOST_DEFAULT_PANELS]))
    points = results.points()
    over_time = _regret_over_time(results, points[:_MOST_DEFAULT_PANELS], _shown(points, "worlds"))
    return [*figures, over_time]


def _shown(every: Sequence[object], what: str) -> str:
    """Return words about panels that are left out."""
    if len(every) <= _MOST_DEFAULT_PANELS:
        return ""
    return f": the first {_MOST_DEFAULT_PANELS} of {len(every)} {what}; `results.plot()` has all"


def _regret_over_time(results: Results, points: Iterable[Point], shown: str = "") -> Figure:
    panels = [
        regret_over_rounds(results, results.methods, setting=at.setting, p=at.p) for at in points
    ]
    return Figure("regret_over_time", f"Regret over time{shown}", panels)


def regret_figure(results: Results) -> "Canvas":
    """Return regret over rounds, with a panel per setting and observation probability."""
    canvas = drawn(_regret_over_time(results, results.points()))
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
        rows = _rows(there)
        heights = [max(panel.height for panel in row) for row in rows]
        width = _WIDTH if len(there) > 1 or there[0].wide else 2 / 3 * _WIDTH
        canvas = Canvas((width, sum(heights) * _PANEL_HEIGHT), layout="constrained")
        canvas.get_layout_engine().set(w_pad=0.04, h_pad=0.04, wspace=0.02, hspace=0.02)
        # Each row has its own grid: labels would not fit into the columns of a common one.
        outer = canvas.add_gridspec(len(rows), 1, height_ratios=heights)
        for at, row in enumerate(rows):
            inner = outer[at].subgridspec(1, len(row))
            for place, panel in enumerate(row):
                axes = canvas.add_subplot(inner[place])
                panel.draw(axes)
                _break_lines(axes, width / len(row), _PANEL_HEIGHT * heights[at])
        _share_ranges(canvas.axes)
        methods = dict.fromkeys(method for panel in there for method in panel.methods)
        _share_legend(canvas, [label_of(method) for method in methods])
    return canvas


def _break_lines(axes: "Axes", width: float, height: float) -> None:
    """Break title and label of a panel of this size, in inches, so that they fit its axes."""
    broken = {"title": (axes.get_title(), width), "ylabel": (axes.get_ylabel(), height)}
    axes.set(
        **{
            name: textwrap.fill(text.replace(" = ", "\xa0=\xa0"), int(_INSIDE * size / _LETTER))
            for name, (text, size) in broken.items()
        }
    )


def _rows(panels: Sequence[Panel]) -> list[list[Panel]]:
    """Return panels in rows that fill the width: wide ones alone, the others two or three each."""
    narrow = sum(not panel.wide for panel in panels)
    most = {1: 1, 2: 2, 4: 2}.get(narrow, 3)
    rows: list[list[Panel]] = []
    for panel in panels:
        if panel.wide or not rows or rows[-1][0].wide or len(rows[-1]) == most:
            rows.append([])
        rows[-1].append(panel)
    return rows


def _share_ranges(panels: "Sequence[Axes]") -> None:
    """Give linear axes of the same name one range, or write the range above each of them."""
    alike: dict[str, list[Axes]] = {}
    for axes in panels:
        if axes.get_ylabel() and axes.get_yscale() == "linear" and axes.get_ylim()[0] == 0:
            alike.setdefault(axes.get_ylabel(), []).append(axes)
    for group in alike.values():
        tops = [axes.get_ylim()[1] for axes in group]
        for axes, top in zip(group, tops, strict=True):
            if max(tops) < _SHARED * min(tops):
                axes.set_ylim(top=max(tops))
            elif axes.get_title():
                axes.set_title(f"{axes.get_title()} (axis 0–{number(top, 2)})")


def _share_legend(canvas: "Canvas", first: Sequence[str]) -> None:
    """Put one legend under all panels, with each label once, and make room for it.

    Labels in `first` come before all others, in this order.
    """
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
    for n_rows in range(1, len(labels) + 1):  # the fewest that fit
        columns = [labels[at : at + n_rows] for at in range(0, len(labels), n_rows)]
        if sum(_HANDLE + _LETTER * max(map(len, column)) for column in columns) < width:
            break
    canvas.set_size_inches(width, height + _LEGEND_ROW * n_rows)
    canvas.legend(
        [entries[label] for label in labels],
        labels,
        loc="outside lower center",
        ncols=len(columns),
        borderaxespad=0.1,
    )


def save_figure(canvas: "Canvas", folder: Path, name: str) -> Path:
    """Write a figure as PNG, SVG and PDF, the same bytes every time; return the PNG's path."""
    folder.mkdir(parents=True, exist_ok=True)
    png, svg, pdf = (folder / f"{name}.{ending}" for ending in ("png", "svg", "pdf"))
    with house_style():
        canvas.savefig(png, metadata={"Software": None})
        canvas.set_layout_engine("none")  # stays as it is; finding it again takes a second
        canvas.savefig(svg, metadata={"Date": None, "Creator": None})
        canvas.savefig(pdf, metadata={"CreationDate": None, "Creator": None, "Producer": None})
    return png
