"""Panels of regret in parts: stacked bars, one for each observation probability."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from halfseen.reports.data import Point, Results
from halfseen.reports.look import label_of
from halfseen.reports.panels import FINAL_REGRET, Scene
from halfseen.reports.truth import share_label
from halfseen.simulation.tables import Mean, mean_of
from halfseen.studies.figures import Part, SplitPanel

_PART_COLORS = ("#56B4E9", "#E69F00", "#B9A3D3", "#009E73", "#D55E00")
_PART_HATCHES = ("", "//", "..", "\\\\", "xx")
_PART_WIDTH = 0.62
_NUMBER = {
    "ha": "center",
    "va": "center",
    "bbox": {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1.0},
}
_SMALLEST_LABELLED = 0.06  # of the tallest bar: below, a number does not fit into its piece


class Split(NamedTuple):
    """The parts of a regret at a point, in the order of the study, and the whole."""

    p: float
    parts: list[Mean]
    total: Mean


def splits_of(scene: Scene, panel: SplitPanel) -> list[Split]:
    """Return the split at every probability at which all of its methods were run."""
    name, splits = panel.setting or "", []
    setting = scene.study.settings.get(name)
    if setting is None:
        return []
    for p in setting.worlds():
        point = Point(name, p)
        parts = [mean_of(_values(scene.results, point, part).tolist()) for part in panel.parts]
        total = scene.results.mean(point, panel.total)
        if p is not None and all(part.mean is not None for part in (*parts, total)):
            splits.append(Split(p, parts, total))
    return splits


def _values(results: Results, point: Point, part: Part) -> "pd.Series[float]":
    """Return a part by seed, for the seeds that all its methods have."""
    signed = [results.regrets(point, method) for method in part.plus]
    signed += [-results.regrets(point, method) for method in part.minus]
    return pd.concat(signed, axis=1).dropna().sum(axis=1) if signed else pd.Series(dtype=float)


def draw_split(axes: Axes, scene: Scene, panel: SplitPanel, splits: list[Split]) -> None:
    """Draw a bar per probability: positive parts upwards, negative ones downwards, and the whole.

    Error bars are one standard error of each part, at the end of its piece, and of the whole.
    """
    x = np.arange(len(splits), dtype=float)
    _draw_parts(axes, x, panel.parts, splits)
    _draw_total(axes, x, splits)
    axes.axhline(0.0, color="#000000", linewidth=0.8)
    axes.set_xticks(x, [f"{split.p:g}" for split in splits])
    axes.grid(visible=False, axis="x")
    axes.set_xlim(-0.5, len(splits) - 0.35)
    axes.set(
        xlabel=f"{share_label(scene.study)}, p",
        ylabel=FINAL_REGRET,
        title=panel.title or label_of(panel.total),
    )


def _draw_parts(axes: Axes, x: np.ndarray, parts: Sequence[Part], splits: Sequence[Split]) -> None:
    up, down = np.zeros(len(splits)), np.zeros(len(splits))
    tallest = max(sum(max(part.mean or 0.0, 0.0) for part in split.parts) for split in splits)
    for at, part in enumerate(parts):
        found = [split.parts[at] for split in splits]
        means = np.array([mean.mean for mean in found], dtype=float)
        bottoms = np.where(means >= 0, up, down)
        axes.bar(
            x,
            means,
            bottom=bottoms,
            width=_PART_WIDTH,
            color=_PART_COLORS[at % len(_PART_COLORS)],
            hatch=_PART_HATCHES[at % len(_PART_HATCHES)],
            edgecolor="white",
            linewidth=0.6,
            label=part.label,
        )
        # Side by side, because the pieces' ends may be close to each other.
        shift = (at - (len(parts) - 1) / 2) * 0.14
        errors = [mean.standard_error or 0.0 for mean in found]
        ends = bottoms + means
        axes.errorbar(x + shift, ends, yerr=errors, fmt="none", ecolor="#444444", elinewidth=0.9)
        _label_pieces(axes, x, bottoms, means, _SMALLEST_LABELLED * tallest)
        up, down = np.where(means >= 0, ends, up), np.where(means >= 0, down, ends)


def _label_pieces(
    axes: Axes, x: np.ndarray, bottoms: np.ndarray, means: np.ndarray, least: float
) -> None:
    """Write the size of each piece into it, where it fits."""
    for place, bottom, mean in zip(x, bottoms, means, strict=True):
        if abs(mean) >= least:
            text = f"{mean:.1f}".replace("-", "−")
            axes.text(place, bottom + mean / 2, text, fontsize=8, **_NUMBER)


def _draw_total(axes: Axes, x: np.ndarray, splits: list[Split]) -> None:
    axes.errorbar(
        x + 0.4,
        [split.total.mean for split in splits],
        yerr=[split.total.standard_error or 0.0 for split in splits],
        fmt="D",
        markersize=4,
        color="#000000",
        elinewidth=1.0,
        label="together",
    )
