"""Panels of diagnostics: spectra, and whatever else policies and measures report."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes

from halfseen.reports.look import DASHED, DOTTED, MIXED, SOLID, Look, look_of
from halfseen.reports.panels import TRUTH, Curve, Scene, draw_bands, draw_points, label_plainly
from halfseen.reports.truth import true_rank
from halfseen.simulation.tables import mean_of
from halfseen.studies.figures import Line, MeasuredPanel, SpectrumPanel

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


# Spectra


class Spectrum(NamedTuple):
    """Mean eigenvalues of the last epoch by position, and the mean threshold where there is one."""

    curve: Curve
    threshold: float | None


def spectra_of(scene: Scene, panel: SpectrumPanel) -> list[Spectrum]:
    """Return the spectra of all methods that report theirs."""
    point, spectra = scene.point(panel), []
    for method in panel.methods or ():
        found = scene.results.diagnostic(point, method, "eigenvalues")
        if found.empty:
            continue
        means = [mean_of(found[position].dropna().tolist()) for position in found]
        curve = Curve.of(look_of(method), [position + 1 for position in found], means)
        thresholds = scene.results.diagnostic(point, method, "threshold")
        threshold = None if thresholds.empty else float(thresholds[0].mean())
        spectra.append(Spectrum(curve, threshold))
    return spectra


def draw_spectrum(axes: Axes, scene: Scene, panel: SpectrumPanel, spectra: list[Spectrum]) -> None:
    """Draw mean eigenvalues with standard errors, thresholds, and the gap after the true rank."""
    point = scene.point(panel)
    rank = true_rank(scene.study, point)
    for curve, threshold in spectra:
        draw_points(axes, curve, linestyle="none", elinewidth=None)
        if threshold is not None:
            style = {"color": curve.look.color, "linestyle": curve.look.dashes, "linewidth": 1.1}
            axes.axhline(threshold, label="threshold", **style)
    if rank is not None and len(spectra[0].curve.x) > rank:
        _mark_gap(axes, spectra[0].curve, rank)
    axes.axhline(0.0, color="#999999", linewidth=0.6)
    axes.set(xlabel="position", ylabel="eigenvalue", title=panel.title or str(point))
    axes.xaxis.get_major_locator().set_params(integer=True)


def _mark_gap(axes: Axes, curve: Curve, rank: int) -> None:
    high, low = float(curve.mean[rank - 1]), float(curve.mean[rank])
    at = rank + 0.5
    axes.axvline(at, label="true rank", **TRUTH)
    axes.annotate("", (at, high), (at, low), arrowprops={"arrowstyle": "<->", "linewidth": 1.1})
    axes.annotate(
        f"gap {high - low:.2f}",
        (at, (high + low) / 2),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        fontsize=8.5,
    )


# Any diagnostics


def measured_curves(scene: Scene, panel: MeasuredPanel) -> list[Curve]:
    """Return all lines of a panel for which something was measured."""
    found = (measured_curve(scene, line) for line in panel.lines)
    return [curve for curve in found if curve is not None]


def measured_curve(scene: Scene, line: Line) -> Curve | None:
    """Return one line, or None where it was not measured.

    A position is the same place in all seeds of a world, so x is averaged with the values.
    """
    point, method = scene.point(line), line.method or ""
    values = scene.results.diagnostic(point, method, line.value)
    places = scene.results.diagnostic(point, method, line.x or "")
    shared = [position for position in values if position in places]
    if not shared:
        return None
    means = [mean_of(values[position].dropna().tolist()) for position in shared]
    look = replace(ROLE_LOOKS[line.role], label=line.label or line.value.replace("_", " "))
    return Curve.of(look, places[shared].mean(), means)


def draw_measured(axes: Axes, scene: Scene, panel: MeasuredPanel, curves: list[Curve]) -> None:
    """Draw measured lines with bands of one standard error, and bounds as plain lines."""
    draw_bands(axes, curves)
    axes.set_xscale(panel.xscale)
    if panel.yscale == "symlog":
        axes.set_yscale("symlog", linthresh=_smallest_size(curves))
    else:
        axes.set_yscale(panel.yscale)
    title = panel.title or str(scene.point(panel))
    axes.set(xlabel=panel.xlabel, ylabel=panel.ylabel, title=title)
    axes.margins(x=0.02)
    for axis, scale in ((axes.xaxis, panel.xscale), (axes.yaxis, panel.yscale)):
        if scale == "linear":
            label_plainly(axis)


def _smallest_size(curves: list[Curve]) -> float:
    """Return the size below which a symmetric logarithmic axis is linear."""
    sizes = np.abs(np.concatenate([curve.mean for curve in curves]))
    sizes = sizes[sizes > 1e-9]
    return float(np.quantile(sizes, 0.02)) if len(sizes) else 1.0
