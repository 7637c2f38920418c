"""Figures: panels side by side with one legend, written as PNG and SVG."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from halfseen.report.data import Results
from halfseen.report.look import house_style
from halfseen.report.panels import (
    PanelKind,
    Scene,
    bars_of,
    draw_bars,
    draw_sweep,
    draw_trajectories,
    sweep_curves,
    trajectory_curves,
)
from halfseen.report.panels_rank import draw_ranks, draw_spectrum, rank_curves, spectra_of
from halfseen.report.panels_theory import bounded_of, draw_bound, draw_growth, growths_of
from halfseen.report.specs import FigureSpec, figure_specs
from halfseen.studies.spec import Study

PANELS: Mapping[str, PanelKind] = {
    "trajectories": PanelKind(trajectory_curves, draw_trajectories),
    "sweep": PanelKind(sweep_curves, draw_sweep),
    "bars": PanelKind(bars_of, draw_bars, wide=True),
    "ranks": PanelKind(rank_curves, draw_ranks),
    "spectrum": PanelKind(spectra_of, draw_spectrum),
    "growth": PanelKind(growths_of, draw_growth),
    "bound": PanelKind(bounded_of, draw_bound),
}
"""How each kind of panel is made."""

_PANEL_SIZE = (3.5, 2.8)  # inches
_WIDE_SIZE = (8.6, 3.1)
_LEGEND_ROW = 0.21


class Drawn(NamedTuple):
    """A figure of a study, or why there is none.

    Attributes
    ----------
    spec : FigureSpec
    png : Path or None
        The SVG stands beside it.
    note : str
        What was left out.
    """

    spec: FigureSpec
    png: Path | None
    note: str = ""


def write_figures(study: Study, results: Results, folder: Path | None = None) -> list[Drawn]:
    """Draw all figures of a study into a folder, by default that of the results.

    A panel for which nothing was run is left out, and so is a figure without panels; files of it
    from an earlier run are removed.

    Raises
    ------
    StudyError
        What the study says about its figures is wrong; the message names the key.
    """
    folder = results.folder if folder is None else folder
    scene = Scene(study, results)
    return [_write(scene, spec, folder) for spec in figure_specs(study)]


def _write(scene: Scene, spec: FigureSpec, folder: Path) -> Drawn:
    figure, note = figure_of(scene, spec)
    if figure is None:
        for ending in ("png", "svg"):
            (folder / f"{spec.name}.{ending}").unlink(missing_ok=True)
        return Drawn(spec, None, note)
    return Drawn(spec, save_figure(figure, folder, spec.name), note)


def figure_of(scene: Scene, spec: FigureSpec) -> tuple[Figure | None, str]:
    """Return a figure with all panels for which something was run, and a note on the others."""
    found = [(panel, PANELS[panel.kind].collect(scene, panel)) for panel in spec.panels]
    there = [(panel, data) for panel, data in found if len(data)]
    missing = len(found) - len(there)
    if not there:
        return None, "nothing of it was run"
    with house_style():
        wide = any(PANELS[panel.kind].wide for panel, _ in there)
        n_rows, n_columns = (len(there), 1) if wide else grid_of(len(there))
        width, height = _WIDE_SIZE if wide else _PANEL_SIZE
        size = (max(n_columns * width, 5.0), n_rows * height)
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
        for at, (panel, data) in zip(axes, there, strict=False):
            PANELS[panel.kind].draw(at, scene, panel, data)
        for at in axes[len(there) :]:
            at.set_axis_off()
        share_legend(figure)
    return figure, f"{missing} of {len(found)} panels were not run" if missing else ""


def grid_of(n_panels: int) -> tuple[int, int]:
    """Return rows and columns for a number of panels.

    >>> [grid_of(n) for n in (1, 2, 3, 4, 6)]
    [(1, 1), (1, 2), (1, 3), (2, 2), (2, 3)]
    """
    n_columns = {1: 1, 2: 2, 4: 2}.get(n_panels, 3)
    return math.ceil(n_panels / n_columns), n_columns


def share_legend(figure: Figure) -> None:
    """Put one legend under all panels, with each label once, and make room for it."""
    entries: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    if not entries:
        return
    width, height = figure.get_size_inches()
    n_columns = _columns_that_fit(list(entries), float(width))
    n_rows = math.ceil(len(entries) / n_columns)
    figure.set_size_inches(width, height + _LEGEND_ROW * n_rows)
    figure.legend(
        list(entries.values()), list(entries), loc="outside lower center", ncols=n_columns
    )


def _columns_that_fit(labels: Sequence[str], width: float) -> int:
    """Return how many columns of a legend fit; a character of it is about .07 inches wide."""
    column = 0.55 + 0.072 * max(len(label) for label in labels)
    most = max(1, min(len(labels), int(width / column)))
    return math.ceil(len(labels) / math.ceil(len(labels) / most))  # rows of about one length


def save_figure(figure: Figure, folder: Path, name: str) -> Path:
    """Write a figure as PNG and as SVG, the same bytes every time, and return the PNG's path."""
    folder.mkdir(parents=True, exist_ok=True)
    png, svg = folder / f"{name}.png", folder / f"{name}.svg"
    with house_style():
        figure.savefig(png, metadata={"Software": None})
        figure.savefig(svg, metadata={"Date": None, "Creator": None})
    return png
