"""What all panels share: their input, curves and axes.

A kind of panel has two halves: one collects what was run, the other draws it. A panel for which
nothing was run is left out before anything is drawn.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from halfseen.reports.data import Point, Results
from halfseen.reports.look import SOLID, Look
from halfseen.reports.truth import share_label
from halfseen.reports.words import number
from halfseen.simulation.tables import Mean
from halfseen.studies.spec import Study
from halfseen.values import FloatArray

FINAL_REGRET = "final regret"
TRUTH = {"color": "#000000", "linewidth": 1.0, "linestyle": (0, (4.0, 2.0))}
_N_MARKERS = 8  # along a curve of many points
_WIDER = 4.2  # of a line under another one, in points
_BELOW = 1.9  # lines are at 2
_NEAR = 0.01  # of the height of the axes: lines that are nearer to each other than this coincide


class Placed(Protocol):
    """What may name a setting and a probability."""

    @property
    def setting(self) -> str | None:
        """The name of a setting of the study."""

    @property
    def p(self) -> float | None:
        """The observation probability."""


class Scene(NamedTuple):
    """What a panel draws from."""

    study: Study
    results: Results

    def point(self, place: Placed) -> Point:
        """Return the point of a panel or line, at the first probability unless it says which."""
        setting, p = place.setting or "", place.p
        if p is None and setting in self.study.settings:
            p = next(iter(self.study.settings[setting].worlds()))
        return Point(setting, p)


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


class PanelKind(NamedTuple):
    """A kind of panel.

    `collect` returns what there is to draw, nothing where nothing was run; `draw` draws it, and all
    its labels go into the legend of the figure. A `wide` panel takes the whole width of a page;
    `height` is in units of the usual height.
    """

    collect: Callable[[Scene, Any], Sequence[Any]]
    draw: Callable[[Axes, Scene, Any, Any], None]
    wide: bool = False
    height: Callable[[Any], float] = lambda data: 1.0


def draw_bands(axes: Axes, curves: Sequence[Curve]) -> None:
    """Draw curves of many points with bands of one standard error."""
    for index, curve in enumerate(curves):
        every = max(1, len(curve.x) // _N_MARKERS)
        # Markers of curves that lie on each other are drawn next to each other.
        first = int((index + 0.5) / len(curves) * every)
        axes.plot(curve.x, curve.mean, markevery=(first, every), **_style(curve.look))
        if curve.error.any():
            low, high = curve.mean - curve.error, curve.mean + curve.error
            axes.fill_between(curve.x, low, high, color=curve.look.color, alpha=0.16, linewidth=0)


def tell_apart(axes: Axes) -> None:
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
            line.set(linewidth=_WIDER, zorder=_BELOW)


def _coincide(one: FloatArray, other: FloatArray) -> bool:
    """Tell whether lines, as shares of the axes, are nearly the same along most of the way."""
    if one.shape != other.shape or not np.allclose(one[:, 0], other[:, 0], atol=1e-6):
        return False
    return bool(np.mean(np.abs(one[:, 1] - other[:, 1]) < _NEAR) > 0.6)


def draw_points(axes: Axes, curve: Curve, **changes: Any) -> Line2D:
    """Draw a curve of few points with error bars of one standard error, and return the curve."""
    style = {**_style(curve.look), "elinewidth": 1.0, **changes}
    drawn = axes.errorbar(curve.x, curve.mean, yerr=curve.error, **style)
    return drawn[0]


def _style(look: Look) -> dict[str, Any]:
    return {
        "color": look.color,
        "linestyle": "-" if look.dashes == SOLID else look.dashes,  # a line knows if it is solid
        "marker": look.marker,
        "label": look.label,
    }


def set_probability_axis(axes: Axes, scene: Scene, curves: Sequence[Curve]) -> None:
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
    axes.set_xlabel(f"{share_label(scene.study)}, p")


def set_regret_axis(axes: Axes, log: bool) -> None:
    """Let regret begin at 0, or make its axis logarithmic with plain numbers."""
    if not log:
        axes.set_ylim(bottom=0)
        label_plainly(axes.yaxis)
        return
    axes.set_yscale("log")
    label_decades(axes.yaxis)


def label_plainly(axis: Axis) -> None:
    """Label a linear axis with numbers as people write them."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))


def label_decades(axis: Axis) -> None:
    """Label the powers of 10 of a logarithmic axis, with 2 and 5 between them if it has few."""
    low, high = sorted(axis.get_view_interval())
    n_decades = math.floor(math.log10(high)) - math.ceil(math.log10(low)) + 1
    axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    between = FuncFormatter(lambda value, _: number(value)) if n_decades < 2 else NullFormatter()
    if n_decades < 2:
        axis.set_minor_locator(LogLocator(subs=(2.0, 5.0)))
    axis.set_minor_formatter(between)


def label_numbers(axis: Axis, values: Iterable[float]) -> None:
    """Label a logarithmic axis at the values that were run, as far as there is room for them."""
    shown: list[float] = []
    spread = sorted(values)
    for value in spread:
        if not shown or value / shown[-1] > (spread[-1] / spread[0]) ** 0.12:
            shown.append(value)
    axis.set_ticks(shown, [number(value) for value in shown])
    axis.set_ticks([], minor=True)
