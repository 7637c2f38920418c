"""Panels of validation seeds: final regret against a setting that was tried out."""

import csv
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from halfseen.report.data import Point
from halfseen.report.panels import Curve, Scene, draw_with_errors
from halfseen.report.specs import PanelSpec
from halfseen.simulation.tables import mean_of


def validation_curves(scene: Scene, panel: PanelSpec) -> list[Curve]:
    """Return final regret on the validation seeds against a setting, one curve per method."""
    point, curves = scene.point(panel), []
    for method in panel.methods:
        found: dict[float, list[float]] = {}
        for row in _tried(scene, point, method):
            value = json.loads(row["candidate"]).get(panel.over)
            if isinstance(value, int | float) and row["final_regret"]:
                found.setdefault(float(value), []).append(float(row["final_regret"]))
        if found:
            x = np.array(sorted(found))
            means = [mean_of(found[value]) for value in x]
            errors = [mean.standard_error or 0.0 for mean in means]
            regrets = np.array([mean.mean for mean in means], dtype=float)
            curves.append(Curve(method, x, regrets, np.array(errors)))
    return curves


def draw_validation(axes: Axes, scene: Scene, panel: PanelSpec, curves: list[Curve]) -> None:
    """Draw the curves with error bars of one standard error."""
    for curve in curves:
        draw_with_errors(axes, curve)
    values = sorted({float(x) for curve in curves for x in curve.x})
    axes.set_xscale("log", base=2)
    axes.set_xticks(values, [f"{value:g}" for value in values])
    axes.minorticks_off()
    axes.set(xlabel=panel.over, ylabel="final regret, validation seeds", title=panel.title)
    axes.set_ylim(bottom=0)


def _tried(scene: Scene, point: Point, method: str) -> Iterator[dict[str, Any]]:
    path = scene.results.folder / "calibration.csv"
    if not path.exists():
        return
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            p = float(row["p"]) if row["p"] else None
            if (row["setting"], p, row["method"]) == (*point, method):
                yield row
