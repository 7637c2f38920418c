"""Panels of what measures told: numbers along an axis with their bounds."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes

from halfseen.report.data import Point, Results
from halfseen.report.look import DASHED, DOTTED, MIXED, SOLID, Look
from halfseen.report.measured_specs import LineSpec
from halfseen.report.panels import Scene
from halfseen.report.specs import PanelSpec
from halfseen.simulation.tables import mean_of
from halfseen.studies.spec import Study
from halfseen.values import FloatArray

ROLE_LOOKS: Mapping[str, Look] = {
    "measured": Look("", "#0072B2", SOLID, "o"),
    "second": Look("", "#009E73", SOLID, "D"),
    "third": Look("", "#E69F00", SOLID, "s"),
    "fourth": Look("", "#CC79A7", SOLID, "^"),
    "bound": Look("", "#000000", DASHED, ""),
    "other-bound": Look("", "#D55E00", MIXED, ""),
    "reference": Look("", "#7F7F7F", DOTTED, ""),
}
"""How each role of a line is drawn; bounds have no markers."""

_N_MARKERS = 8


class Measured(NamedTuple):
    """A line: means and standard errors (0 for a single seed) along an axis."""

    line: LineSpec
    x: FloatArray
    mean: FloatArray
    error: FloatArray


def measured_of(scene: Scene, panel: PanelSpec) -> list[Measured]:
    """Return all lines of a panel for which something was measured."""
    lines = () if panel.measured is None else panel.measured.lines
    found = (measured_line(scene.study, scene.results, line) for line in lines)
    return [line for line in found if line is not None]


def point_of(study: Study, setting: str, p: float | None) -> Point:
    """Return a point, at the first probability of its setting where p is not given."""
    if p is None and setting in study.settings:
        p = next(iter(study.settings[setting].worlds()))
    return Point(setting, p)


def measured_line(study: Study, results: Results, line: LineSpec) -> Measured | None:
    """Return one line, or None where it was not measured.

    A position is the same place in all seeds of a world, so x is averaged with the values.
    """
    point = point_of(study, line.setting, line.p)
    values = results.diagnostic(point, line.method, line.value)
    places = results.diagnostic(point, line.method, line.x)
    shared = [position for position in values if position in places]
    if not shared:
        return None
    means = [mean_of(values[position].dropna().tolist()) for position in shared]
    return Measured(
        line,
        places[shared].mean().to_numpy(dtype=float),
        np.array([mean.mean for mean in means], dtype=float),
        np.array([mean.standard_error or 0.0 for mean in means], dtype=float),
    )


def draw_measured(axes: Axes, scene: Scene, panel: PanelSpec, lines: list[Measured]) -> None:
    """Draw measured lines with bands of one standard error, and bounds as plain lines."""
    spec = panel.measured
    assert spec is not None
    for line in lines:
        _draw(axes, line)
    axes.set_xscale(spec.xscale)
    if spec.yscale == "symlog":
        axes.set_yscale("symlog", linthresh=_smallest_size(lines))
    else:
        axes.set_yscale(spec.yscale)
    title = panel.title or str(point_of(scene.study, panel.setting, panel.p))
    axes.set(xlabel=spec.xlabel, ylabel=spec.ylabel, title=title)
    axes.margins(x=0.02)


def _draw(axes: Axes, measured: Measured) -> None:
    look = ROLE_LOOKS[measured.line.role]
    every = max(1, len(measured.x) // _N_MARKERS)
    axes.plot(
        measured.x,
        measured.mean,
        color=look.color,
        linestyle=look.dashes,
        marker=look.marker,
        markevery=(every // 2, every),
        label=measured.line.label,
    )
    low, high = measured.mean - measured.error, measured.mean + measured.error
    if measured.error.any():
        axes.fill_between(measured.x, low, high, color=look.color, alpha=0.16, linewidth=0)


def _smallest_size(lines: list[Measured]) -> float:
    """Return below which size a symmetric logarithmic axis becomes linear."""
    sizes = np.abs(np.concatenate([line.mean for line in lines]))
    sizes = sizes[sizes > 1e-9]
    return float(np.quantile(sizes, 0.02)) if len(sizes) else 1.0
