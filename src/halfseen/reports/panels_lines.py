"""Panels of curves: over rounds, over the share of entries seen, over horizons, over settings."""

import csv
import json
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from halfseen.reports.data import Point, rows
from halfseen.reports.growth import Growth, Quantity, growth_of, growth_points
from halfseen.reports.look import DASHED, DOTTED, MIXED, SOLID, look_of
from halfseen.reports.panels import (
    FINAL_REGRET,
    TRUTH,
    Curve,
    Scene,
    draw_bands,
    draw_points,
    label_decades,
    label_numbers,
    label_plainly,
    set_probability_axis,
    set_regret_axis,
)
from halfseen.reports.truth import expected_discovery, facts_at, lower_bounds, true_rank
from halfseen.reports.words import words_for
from halfseen.simulation.tables import mean_of
from halfseen.studies.claims import BOUNDS
from halfseen.studies.figures import RoundsPanel, SweepPanel

_HORIZON_SLOPES = (1 / 2, 2 / 3)  # of the theorem, and of a single estimate
_BOUND_DASHES = dict(zip(BOUNDS, (SOLID, DASHED, DOTTED, MIXED), strict=True))
_FIRST_SHARE = 0.01  # of the horizon, where logarithmic axes begin
_SMALLEST_SHOWN = 1e-5  # of the largest regret, beside lower bounds
_BOUND_NAMES = {"hidden": "lower bound, explicit, due to masks"}


# Over rounds


def regret_curves(scene: Scene, panel: RoundsPanel) -> list[Curve]:
    """Return cumulative regret over rounds, one curve per method that was run."""
    return [curve for _, curve in _over_rounds(scene, panel, "regret")]


def _over_rounds(scene: Scene, panel: RoundsPanel, what: str) -> Iterator[tuple[str, Curve]]:
    """Yield methods with their curves of "regret" or "rank" over rounds."""
    point = scene.point(panel)
    for method in panel.methods or ():
        found = rows(scene.results.trajectories, point, method).sort_values("round")
        found = found[found[f"mean_{what}"].notna()]
        if not found.empty:
            columns = (found["round"], found[f"mean_{what}"], found[f"se_{what}"].fillna(0.0))
            yield method, Curve(look_of(method), *(c.to_numpy(dtype=float) for c in columns))


def draw_regret(axes: Axes, scene: Scene, panel: RoundsPanel, curves: list[Curve]) -> None:
    """Draw regret over rounds with bands of one standard error.

    Logarithmic axes begin at a hundredth of the horizon: decades of few rounds show nothing.
    """
    if panel.log:
        curves = [curve.part(curve.x >= _FIRST_SHARE * curve.x[-1]) for curve in curves]
    draw_bands(axes, curves)
    title = panel.title or str(scene.point(panel))
    axes.set(xlabel="round", ylabel="cumulative regret", title=title)
    set_regret_axis(axes, panel.log)
    axes.margins(x=0.01)
    if panel.log:
        axes.set_xscale("log")
        label_decades(axes.xaxis)
    else:
        axes.locator_params(axis="x", nbins=5)
        label_plainly(axes.xaxis)


def rank_curves(scene: Scene, panel: RoundsPanel) -> list[Curve]:
    """Return the mean rank over rounds, without the rounds in which the burn-in policy plays."""
    point, curves = scene.point(panel), []
    for method, curve in _over_rounds(scene, panel, "rank"):
        chosen = curve.x >= _first_choice(scene, point, method, curve)
        if chosen.any():
            curves.append(curve.part(chosen))
    return curves


def _first_choice(scene: Scene, point: Point, method: str, curve: Curve) -> float:
    """Return the first round with a chosen rank: as the policy reports it, or below dim."""
    starts = scene.results.diagnostic(point, method, "epoch_starts")
    if 0 in starts:
        return float(starts[0].max())
    facts = facts_at(scene.study, point)
    if facts is None:
        return float(curve.x[0])
    lower = curve.x[curve.mean < facts.dim]
    return float(lower[0]) if len(lower) else float(curve.x[-1]) + 1


def draw_ranks(axes: Axes, scene: Scene, panel: RoundsPanel, curves: list[Curve]) -> None:
    """Draw the mean rank over rounds with bands of one standard error, and the true one."""
    draw_bands(axes, curves)
    point = scene.point(panel)
    rank = true_rank(scene.study, point)
    if rank is not None:
        axes.axhline(rank, label="true rank", **TRUTH)
    axes.set(xlabel="round", ylabel="selected rank", title=panel.title or str(point))
    axes.set_xlim(left=0)
    axes.locator_params(axis="x", nbins=5)
    label_plainly(axes.xaxis)
    highest = [float((curve.mean + curve.error).max()) for curve in curves]
    axes.set_ylim(0, 1.08 * max([rank or 1, *highest]))
    axes.yaxis.get_major_locator().set_params(integer=True)


# Against the share of entries seen


def sweep_curves(scene: Scene, panel: SweepPanel) -> list[Curve]:
    """Return final regret against the observation probability, one curve per method."""
    name = panel.setting or ""
    setting = scene.study.settings.get(name)
    probs = [] if setting is None else sorted(p for p in setting.worlds() if p is not None)
    curves = []
    for method in panel.methods or ():
        means = {p: scene.results.mean(Point(name, p), method) for p in probs}
        known = {p: mean for p, mean in means.items() if mean.mean is not None}
        if known:
            curves.append(Curve.of(look_of(method), known, known.values()))
    return curves


def draw_sweep(axes: Axes, scene: Scene, panel: SweepPanel, curves: list[Curve]) -> None:
    """Draw final regret against p, from much seen on the left to little on the right.

    With the lower bounds that apply the axis of regret is logarithmic.
    """
    for curve in curves:
        draw_points(axes, curve)
    several = panel.bounds or (len(scene.study.settings) > 1 and panel.setting != "default")
    axes.set(ylabel=FINAL_REGRET, title=panel.title or (panel.setting if several else ""))
    set_probability_axis(axes, scene, curves)
    if panel.bounds:
        _draw_bounds(axes, scene, panel.setting or "", curves)
    else:
        set_regret_axis(axes, panel.log)


def _draw_bounds(axes: Axes, scene: Scene, setting: str, curves: list[Curve]) -> None:
    bounds: dict[str, list[tuple[float, float]]] = {}
    for p in sorted({float(x) for curve in curves for x in curve.x}):
        for form, value in lower_bounds(scene.study, Point(setting, p)).items():
            bounds.setdefault(form, []).append((p, value))
    for form, pairs in bounds.items():
        x, y = np.array(pairs).T
        label = _BOUND_NAMES.get(form, f"lower bound, {form}")
        marker = {"optimized": "o", "context-limited": "s"}.get(form, "")
        style = {"linestyle": _BOUND_DASHES[form], "marker": marker, "markersize": 3.5}
        axes.plot(x, y, color="#000000", label=label, **style)
    outside = [pair for pair in bounds.get("explicit", ()) if pair[0] not in _inside(bounds)]
    if outside:
        x, y = np.array(outside).T
        label = "Kp² + (S B/R)² above 1/2: no optimized bound"
        axes.plot(x, y, "o", color="#000000", markerfacecolor="white", label=label)
    axes.set_yscale("log", nonpositive="mask")  # a mean regret may be 0
    bottom, top = axes.get_ylim()
    axes.set_ylim(bottom=max(bottom, _SMALLEST_SHOWN * top))
    label_decades(axes.yaxis)


def _inside(bounds: dict[str, list[tuple[float, float]]]) -> set[float]:
    """Return the probabilities at which the premise of the optimized bound holds."""
    return {p for p, _ in bounds.get("optimized", ())}


# Against the horizon, or another number of the world


class Grown(NamedTuple):
    """The growth of a method."""

    method: str
    growth: Growth


def growths_of(scene: Scene, panel: SweepPanel) -> list[Grown]:
    """Return the growth of all methods that were run at two numbers or more."""
    found = []
    keys, others = panel.methods or (), panel.minus or (None,)
    for key, other in zip(keys, others if len(others) > 1 else others * len(keys), strict=True):
        quantity = Quantity(key, other, panel.value)
        where = panel.over, panel.p, _settings_of(panel)
        growth = growth_of(scene.study, scene.results, quantity, *where)
        found += [] if growth is None else [Grown(key, growth)]
    return found


def _settings_of(panel: SweepPanel) -> tuple[str, ...] | None:
    return (panel.setting or "",) if panel.over == "p" else panel.settings


def draw_growth(axes: Axes, scene: Scene, panel: SweepPanel, grown: list[Grown]) -> None:
    """Draw final regret against a number, with the exponents and slopes to compare with."""
    curves = [Curve.of(look_of(key), found.numbers, found.means) for key, found in grown]
    handles = [draw_points(axes, curve) for curve in curves]
    if panel.expected is not None:
        _draw_expected(axes, scene, panel)
    words = words_for(panel.over)
    ylabel = panel.ylabel or FINAL_REGRET
    if panel.minus and not panel.ylabel:
        ylabel = f"{FINAL_REGRET} in excess of: {look_of(panel.minus[0]).label}"
    axes.set(xscale="log", yscale="log", xlabel=words.label, ylabel=ylabel, title=panel.title)
    slopes = panel.slopes or (_HORIZON_SLOPES if panel.over == "horizon" else ())
    if slopes:
        _draw_references(axes, curves, slopes, words.letter)
    label_numbers(axes.xaxis, {float(x) for curve in curves for x in curve.x})
    label_decades(axes.yaxis)
    bottom, top = axes.get_ylim()
    n_columns = 1 if len(grown) <= 3 else 2
    n_rows = math.ceil(len(grown) / n_columns)
    room = 0.13 + 0.075 * n_rows  # of the axis, for the list of slopes above the curves
    axes.set_ylim(bottom, bottom * (top / bottom) ** (1 / (1 - min(room, 0.6))))
    axes.legend(
        handles,
        [str(growth) for _, growth in grown],  # the figure's legend names the curves
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


def _draw_expected(axes: Axes, scene: Scene, panel: SweepPanel) -> None:
    """Draw what the construction of the hard family implies."""
    study, what = scene.study, panel.expected or ""
    points = growth_points(study, panel.over, panel.p, _settings_of(panel))
    found = {x: expected_discovery(study, point, what) for x, point in points.items()}
    known = sorted((x, value) for x, value in found.items() if value is not None)
    if known:
        x, y = np.array(known).T
        axes.plot(x, y, color="#000000", linestyle=DASHED, label="implied by the construction")


def _draw_references(
    axes: Axes, curves: list[Curve], slopes: tuple[float, ...], letter: str
) -> None:
    """Draw slopes from one point so low that they stay below all curves."""
    x, mean = (np.concatenate([curve[at] for curve in curves]) for at in (1, 2))
    first, last = x.min(), x.max()
    steepest = max(slopes)
    start = 0.6 * (mean / (x / first) ** steepest).min()
    for slope in slopes:
        end = start * (last / first) ** slope
        name = str(Fraction(slope).limit_denominator(6))
        axes.plot(
            [first, last], [start, end], color="#777777", linewidth=1.0, linestyle=(0, (1.5, 1.5))
        )
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


# Against a setting that was tried on validation seeds


def validation_curves(scene: Scene, panel: SweepPanel) -> list[Curve]:
    """Return final regret on the validation seeds against a setting, one curve per method."""
    point, curves = scene.point(panel), []
    for method in panel.methods or ():
        found: dict[float, list[float]] = {}
        for row in _candidates(scene, point, method):
            value = json.loads(row["candidate"]).get(panel.over)
            if isinstance(value, int | float) and row["final_regret"]:
                found.setdefault(float(value), []).append(float(row["final_regret"]))
        if found:
            x = sorted(found)
            curves.append(Curve.of(look_of(method), x, [mean_of(found[value]) for value in x]))
    return curves


def _candidates(scene: Scene, point: Point, method: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of `calibration.csv` about a method at a point."""
    path = scene.results.folder / "calibration.csv"
    if not path.exists():
        return
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            p = float(row["p"]) if row["p"] else None
            if (row["setting"], p, row["method"]) == (*point, method):
                yield row


def draw_validation(axes: Axes, scene: Scene, panel: SweepPanel, curves: list[Curve]) -> None:
    """Draw the curves with error bars of one standard error."""
    for curve in curves:
        draw_points(axes, curve)
    values = sorted({float(x) for curve in curves for x in curve.x})
    axes.set_xscale("log", base=2)
    label_numbers(axes.xaxis, values)
    label = words_for(panel.over).label
    axes.set(xlabel=label, ylabel="final regret, validation seeds", title=panel.title)
    set_regret_axis(axes, log=False)
