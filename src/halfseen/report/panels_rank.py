"""Panels of ranks: the selected one over time, and the spectrum it was selected from."""

from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes

from halfseen.report.data import Point
from halfseen.report.look import look_of
from halfseen.report.panels import Curve, Scene, draw_bands, over_rounds
from halfseen.report.specs import PanelSpec
from halfseen.report.truth import facts_at, true_rank
from halfseen.simulation.tables import mean_of

_TRUTH = {"color": "#000000", "linewidth": 1.0, "linestyle": (0, (4.0, 2.0))}


def rank_curves(scene: Scene, panel: PanelSpec) -> list[Curve]:
    """Return the mean rank over rounds, without the rounds in which the burn-in policy plays."""
    point, curves = scene.point(panel), []
    for curve in over_rounds(scene, panel, "rank"):
        chosen = curve.x >= _first_choice(scene, point, curve)
        if chosen.any():
            curves.append(
                Curve(curve.method, curve.x[chosen], curve.mean[chosen], curve.error[chosen])
            )
    return curves


def _first_choice(scene: Scene, point: Point, curve: Curve) -> float:
    """Return the first round with a rank of its own: what a policy says, or all but a full one."""
    starts = scene.results.diagnostic(point, curve.method, "epoch_starts")
    if 0 in starts:
        return float(starts[0].max())
    facts = facts_at(scene.study, point)
    if facts is None:
        return float(curve.x[0])
    lower = curve.x[curve.mean < facts.dim]
    return float(lower[0]) if len(lower) else float(curve.x[-1]) + 1


def draw_ranks(axes: Axes, scene: Scene, panel: PanelSpec, curves: list[Curve]) -> None:
    """Draw the mean rank over rounds with bands of one standard error, and the true one."""
    draw_bands(axes, curves)
    point = scene.point(panel)
    rank = true_rank(scene.study, point)
    if rank is not None:
        axes.axhline(rank, label="true rank", **_TRUTH)
    axes.set(xlabel="round", ylabel="selected rank", title=panel.title or str(point))
    axes.set_xlim(left=0)
    axes.set_ylim(0, 1.12 * max([rank or 1, *(float(curve.mean.max()) for curve in curves)]))
    axes.yaxis.get_major_locator().set_params(integer=True)


class Spectrum(NamedTuple):
    """Mean eigenvalues of the last epoch by position, and the mean threshold where there is one."""

    curve: Curve
    threshold: float | None


def spectra_of(scene: Scene, panel: PanelSpec) -> list[Spectrum]:
    """Return the spectra of all methods that tell theirs."""
    point, spectra = scene.point(panel), []
    for method in panel.methods:
        told = scene.results.diagnostic(point, method, "eigenvalues")
        if told.empty:
            continue
        means = [mean_of(told[position].dropna().tolist()) for position in told]
        curve = Curve(
            method,
            np.array([position + 1 for position in told], dtype=float),
            np.array([m.mean for m in means], dtype=float),
            np.array([m.standard_error or 0.0 for m in means], dtype=float),
        )
        thresholds = scene.results.diagnostic(point, method, "threshold")
        threshold = None if thresholds.empty else float(thresholds[0].mean())
        spectra.append(Spectrum(curve, threshold))
    return spectra


def draw_spectrum(axes: Axes, scene: Scene, panel: PanelSpec, spectra: list[Spectrum]) -> None:
    """Draw mean eigenvalues with standard errors, thresholds, and the gap after the true rank."""
    point = scene.point(panel)
    rank = true_rank(scene.study, point)
    for curve, threshold in spectra:
        look = look_of(curve.method)
        axes.errorbar(
            curve.x,
            curve.mean,
            yerr=curve.error,
            color=look.color,
            linestyle="none",
            marker=look.marker,
            label=look.label,
        )
        if threshold is not None:
            axes.axhline(
                threshold, color=look.color, linestyle=look.dashes, linewidth=1.1, label="threshold"
            )
    if rank is not None and len(spectra[0].curve.x) > rank:
        _mark_gap(axes, spectra[0].curve, rank)
    axes.axhline(0.0, color="#999999", linewidth=0.6)
    axes.set(xlabel="position", ylabel="eigenvalue", title=panel.title or str(point))
    axes.xaxis.get_major_locator().set_params(integer=True)


def _mark_gap(axes: Axes, curve: Curve, rank: int) -> None:
    high, low = float(curve.mean[rank - 1]), float(curve.mean[rank])
    axes.axvline(rank + 0.5, label="true rank", **_TRUTH)
    axes.annotate(
        "",
        (rank + 0.5, high),
        (rank + 0.5, low),
        arrowprops={"arrowstyle": "<->", "linewidth": 1.1},
    )
    axes.annotate(
        f"gap {high - low:.2f}",
        (rank + 0.5, (high + low) / 2),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        fontsize=8.5,
    )
