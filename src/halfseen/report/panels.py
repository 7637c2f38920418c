"""Panels of regret: over time, against the share of entries seen, as bars.

A kind of panel has two halves: one collects what was run, the other draws it. A panel for which
nothing was run is left out before anything is drawn.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator

from halfseen.report.data import Point, Results, rows
from halfseen.report.look import look_of
from halfseen.report.specs import PanelSpec
from halfseen.report.truth import share_label
from halfseen.studies.spec import Study
from halfseen.values import FloatArray

REGRET_OVER_TIME, FINAL_REGRET = "cumulative regret", "final regret"
_N_MARKERS = 8  # along a curve of many points


class Scene(NamedTuple):
    """What a panel draws from."""

    study: Study
    results: Results

    def point(self, panel: PanelSpec) -> Point:
        """Return the point of a panel, at the first probability where it does not say which."""
        if panel.p is not None or panel.setting not in self.study.settings:
            return Point(panel.setting, panel.p)
        return Point(panel.setting, next(iter(self.study.settings[panel.setting].worlds())))


class Curve(NamedTuple):
    """A method's means and standard errors (0 for a single seed) along an axis."""

    method: str
    x: FloatArray
    mean: FloatArray
    error: FloatArray


class PanelKind(NamedTuple):
    """A kind of panel.

    Attributes
    ----------
    collect : (Scene, PanelSpec) -> sequence
        What there is to draw; empty where nothing was run.
    draw : (Axes, Scene, PanelSpec, what was collected) -> None
        Every artist with a label goes into the legend of the figure.
    wide : bool
        Whether it wants the whole width of a page.
    height : what was collected -> float
        How many times the usual height it wants.
    """

    collect: Callable[[Scene, PanelSpec], Sequence[Any]]
    draw: Callable[[Axes, Scene, PanelSpec, Any], None]
    wide: bool = False
    height: Callable[[Any], float] = lambda data: 1.0


def trajectory_curves(scene: Scene, panel: PanelSpec) -> list[Curve]:
    """Return cumulative regret over rounds, one curve per method that was run."""
    return over_rounds(scene, panel, "regret")


def over_rounds(scene: Scene, panel: PanelSpec, what: str) -> list[Curve]:
    """Return curves of "regret" or "rank" over rounds."""
    curves, point = [], scene.point(panel)
    for method in panel.methods:
        found = rows(scene.results.trajectories, point, method).sort_values("round")
        found = found[found[f"mean_{what}"].notna()]
        if not found.empty:
            curves.append(
                Curve(
                    method,
                    found["round"].to_numpy(dtype=float),
                    found[f"mean_{what}"].to_numpy(dtype=float),
                    found[f"se_{what}"].fillna(0.0).to_numpy(dtype=float),
                )
            )
    return curves


def draw_trajectories(axes: Axes, scene: Scene, panel: PanelSpec, curves: list[Curve]) -> None:
    """Draw regret over rounds with bands of one standard error."""
    draw_bands(axes, curves)
    axes.set(xlabel="round", ylabel=REGRET_OVER_TIME, title=panel.title or str(scene.point(panel)))
    _set_regret_axis(axes, panel.log)
    axes.margins(x=0.01)
    axes.locator_params(axis="x", nbins=5)


def draw_bands(axes: Axes, curves: Sequence[Curve]) -> None:
    """Draw curves of many points with bands of one standard error."""
    for index, curve in enumerate(curves):
        # Markers of curves that lie on each other stand beside each other.
        _draw_band(axes, curve, shift=(index + 0.5) / len(curves))


def _draw_band(axes: Axes, curve: Curve, shift: float) -> None:
    look = look_of(curve.method)
    every = max(1, len(curve.x) // _N_MARKERS)
    axes.plot(
        curve.x,
        curve.mean,
        color=look.color,
        linestyle=look.dashes,
        marker=look.marker,
        markevery=(int(shift * every), every),
        label=look.label,
    )
    low, high = curve.mean - curve.error, curve.mean + curve.error
    axes.fill_between(curve.x, low, high, color=look.color, alpha=0.16, linewidth=0)


def sweep_curves(scene: Scene, panel: PanelSpec) -> list[Curve]:
    """Return final regret against the observation probability, one curve per method."""
    setting = scene.study.settings.get(panel.setting)
    probs = [] if setting is None else [p for p in setting.worlds() if p is not None]
    curves = []
    for method in panel.methods:
        found = {p: scene.results.mean(Point(panel.setting, p), method) for p in probs}
        known = [
            (p, m.mean, m.standard_error or 0.0) for p, m in found.items() if m.mean is not None
        ]
        if known:
            x, mean, error = np.array(sorted(known)).T
            curves.append(Curve(method, x, mean, error))
    return curves


def draw_sweep(axes: Axes, scene: Scene, panel: PanelSpec, curves: list[Curve]) -> None:
    """Draw final regret against p, from much seen on the left to little on the right."""
    for curve in curves:
        draw_with_errors(axes, curve)
    several = len(scene.study.settings) > 1 and panel.setting != "default"
    axes.set(
        xlabel=f"{share_label(scene.study)}, p",
        ylabel=FINAL_REGRET,
        title=panel.title or (panel.setting if several else ""),
    )
    set_probability_axis(axes, curves)
    _set_regret_axis(axes, panel.log)


def draw_with_errors(axes: Axes, curve: Curve) -> Line2D:
    """Draw a curve of few points with error bars of one standard error, and return the curve."""
    look = look_of(curve.method)
    drawn = axes.errorbar(
        curve.x,
        curve.mean,
        yerr=curve.error,
        color=look.color,
        linestyle=look.dashes,
        marker=look.marker,
        elinewidth=1.0,
        label=look.label,
    )
    return drawn[0]


def set_probability_axis(axes: Axes, curves: Sequence[Curve]) -> None:
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


def _set_regret_axis(axes: Axes, log: bool) -> None:
    if not log:
        axes.set_ylim(bottom=0)
        return
    axes.set_yscale("log")
    # Plain numbers at 1, 2, 5, 10, …: regrets rarely span many powers of ten.
    axes.yaxis.set_minor_locator(LogLocator(subs=(2.0, 5.0)))
    for set_formatter in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
        set_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


class Bar(NamedTuple):
    """One bar: a method at a point, and the mean final rank if it is to be written on it."""

    point: Point
    method: str
    mean: float
    error: float
    rank: float | None


def bars_of(scene: Scene, panel: PanelSpec) -> list[Bar]:
    """Return the bars of all settings at the probability of the panel, or at all."""
    bars = []
    for name, setting in scene.study.settings.items():
        for p in setting.worlds():
            if panel.p is not None and p != panel.p:
                continue
            bars += _group(scene.results, panel, Point(name, p))
    return bars


def _group(results: Results, panel: PanelSpec, point: Point) -> list[Bar]:
    group = []
    for method in panel.methods:
        regret = results.mean(point, method)
        if regret.mean is not None:
            rank = None
            if method in panel.ranks:
                rank = float(rows(results.per_seed, point, method)["final_rank"].mean())
            group.append(Bar(point, method, regret.mean, regret.standard_error or 0.0, rank))
    return group


def draw_bars(axes: Axes, scene: Scene, panel: PanelSpec, bars: list[Bar]) -> None:
    """Draw groups of bars, one per setting, one bar per method, with error bars."""
    points = list(dict.fromkeys(bar.point for bar in bars))
    methods = [method for method in panel.methods if any(bar.method == method for bar in bars)]
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
