"""Panels beside theory: growth with the horizon, and final regret above the lower bounds."""

from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes

from halfseen.report.data import Point
from halfseen.report.growth import Growth, growth_of
from halfseen.report.look import DASHED, SOLID
from halfseen.report.panels import (
    FINAL_REGRET,
    Curve,
    Scene,
    draw_with_errors,
    set_probability_axis,
    sweep_curves,
)
from halfseen.report.specs import PanelSpec
from halfseen.report.truth import BOUNDS, lower_bounds, share_label

_REFERENCES = (("1/2", 1 / 2), ("2/3", 2 / 3))
_BOUND_DASHES = dict(zip(BOUNDS, (SOLID, DASHED), strict=True))


class Grown(NamedTuple):
    """The growth of a method."""

    method: str
    growth: Growth


def growths_of(scene: Scene, panel: PanelSpec) -> list[Grown]:
    """Return the growth of all methods that were run at two horizons or more."""
    found = ((key, growth_of(scene.study, scene.results, key, panel.p)) for key in panel.methods)
    return [Grown(method, growth) for method, growth in found if growth is not None]


def draw_growth(axes: Axes, scene: Scene, panel: PanelSpec, grown: list[Grown]) -> None:
    """Draw final regret against the horizon, with the exponents and two slopes to compare with."""
    handles, slopes = [], []
    for method, growth in grown:
        means = np.array([mean.mean for mean in growth.means], dtype=float)
        errors = np.array([mean.standard_error or 0.0 for mean in growth.means])
        curve = Curve(method, np.array(growth.horizons, dtype=float), means, errors)
        handles.append(draw_with_errors(axes, curve))
        slopes.append(str(growth))  # the figure's legend names the curves
    axes.set(xscale="log", yscale="log", xlabel="rounds T", ylabel=FINAL_REGRET, title=panel.title)
    _draw_references(axes, grown)
    bottom, top = axes.get_ylim()
    room = 0.13 + 0.075 * len(slopes)  # of the axis, for the list of slopes above the curves
    axes.set_ylim(bottom, bottom * (top / bottom) ** (1 / (1 - min(room, 0.6))))
    axes.legend(
        handles,
        slopes,
        loc="upper left",
        title="exponent [95 % interval]",
        title_fontsize=8.5,
        alignment="left",
        fontsize=8,
        labelspacing=0.25,
        borderaxespad=0.2,
    )


def _draw_references(axes: Axes, grown: list[Grown]) -> None:
    """Draw two slopes from one point so low that they stay below all curves."""
    means = [(t, mean.mean) for _, growth in grown for t, mean in zip(*growth[:2], strict=True)]
    first, last = min(t for t, _ in means), max(t for t, _ in means)
    steepest = max(slope for _, slope in _REFERENCES)
    start = 0.6 * min(mean / (t / first) ** steepest for t, mean in means if mean is not None)
    for name, slope in _REFERENCES:
        end = start * (last / first) ** slope
        axes.plot(
            [first, last], [start, end], color="#777777", linewidth=1.0, linestyle=(0, (1.5, 1.5))
        )
        axes.annotate(
            f"$T^{{{name}}}$",
            (last, end),
            xytext=(4, 0),
            textcoords="offset points",
            va="bottom" if slope == steepest else "top",
            fontsize=9,
            color="#555555",
            annotation_clip=False,
        )


class Bounded(NamedTuple):
    """Final regrets of a setting, and the lower bounds that apply, by form: pairs (p, bound)."""

    curves: list[Curve]
    bounds: dict[str, list[tuple[float, float]]]


def bounded_of(scene: Scene, panel: PanelSpec) -> list[Bounded]:
    """Return final regrets with their lower bounds; empty where nothing was run."""
    curves = sweep_curves(scene, panel)
    if not curves:
        return []
    bounds: dict[str, list[tuple[float, float]]] = {}
    for p in sorted({float(x) for curve in curves for x in curve.x}):
        for form, value in lower_bounds(scene.study, Point(panel.setting, p)).items():
            bounds.setdefault(form, []).append((p, value))
    return [Bounded(curves, bounds)]


def draw_bound(axes: Axes, scene: Scene, panel: PanelSpec, found: list[Bounded]) -> None:
    """Draw final regret against p above the lower bounds, on a logarithmic axis."""
    ((curves, bounds),) = found
    for curve in curves:
        draw_with_errors(axes, curve)
    for form, pairs in bounds.items():
        x, y = np.array(pairs).T
        axes.plot(
            x, y, color="#000000", linestyle=_BOUND_DASHES[form], label=f"lower bound, {form}"
        )
    axes.set_yscale("log")
    set_probability_axis(axes, curves)
    axes.set(
        xlabel=f"{share_label(scene.study)}, p",
        ylabel=FINAL_REGRET,
        title=panel.title or panel.setting,
    )
