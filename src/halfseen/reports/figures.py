"""Figures: panels side by side with one legend, written as PNG and SVG."""

import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

from halfseen.errors import InvalidInputError
from halfseen.reports import panels_bars as bars
from halfseen.reports import panels_lines as lines
from halfseen.reports import panels_measured as measured
from halfseen.reports import panels_split as split
from halfseen.reports.data import Point, Results, points_of
from halfseen.reports.look import house_style, label_of, look_of
from halfseen.reports.panels import (
    Curve,
    PanelKind,
    Scene,
    draw_bands,
    set_regret_axis,
    tell_apart,
)
from halfseen.reports.truth import share_label
from halfseen.reports.words import number
from halfseen.simulation.tables import Row, Tables
from halfseen.studies.figures import (
    AnyPanel,
    DifferencesPanel,
    MeasuredPanel,
    RoundsPanel,
    SweepPanel,
)
from halfseen.studies.figures import Figure as FigureTable
from halfseen.studies.spec import Study

_RANKS = PanelKind(lines.rank_curves, lines.draw_ranks)
_GROWTH = PanelKind(lines.growths_of, lines.draw_growth)
_VALIDATION = PanelKind(lines.validation_curves, lines.draw_validation)
PANELS: Mapping[str, PanelKind] = {
    "rounds": PanelKind(lines.regret_curves, lines.draw_regret),
    "sweep": PanelKind(lines.sweep_curves, lines.draw_sweep),
    "spectrum": PanelKind(measured.spectra_of, measured.draw_spectrum),
    "measured": PanelKind(measured.measured_curves, measured.draw_measured),
    "bars": PanelKind(bars.bars_of, bars.draw_bars, wide=True),
    "split": PanelKind(split.splits_of, split.draw_split),
    "differences": PanelKind(
        bars.differences_of, bars.draw_differences, wide=True, height=bars.differences_height
    ),
}
"""How each kind of panel is made, if it does not ask for something else than regret over p."""


def _kind_of(panel: AnyPanel, study: Study) -> PanelKind:
    if isinstance(panel, RoundsPanel) and panel.value == "rank":
        return _RANKS
    if isinstance(panel, SweepPanel) and (panel.over != "p" or panel.powers):
        return _VALIDATION if _is_tuned(study, panel.over) else _GROWTH
    return PANELS[panel.kind]


def _is_tuned(study: Study, name: str) -> bool:
    """Tell whether values of a setting are tried for some method."""
    tunings = [study.tuning, *(setting.tuning for setting in study.settings.values())]
    searches = [search for tuning in tunings if tuning for search in tuning.searches.values()]
    return any(name in search.grid for search in searches)


_MOST_DEFAULT_PANELS = 4
_PANEL_WIDTH, _PANEL_HEIGHT = 3.5, 2.9  # inches
_WIDE, _NARROWEST = 8.6, 5.0
_LEGEND_ROW = 0.2
_SAME_SCALE = 1.3  # axes whose lengths differ by less are read as one scale


def figures_of(study: Study) -> tuple[FigureTable, ...]:
    """Return the figures of a study, or some that suit it where it names none.

    Panels have the methods of their figure, or all of the study, and the first setting.
    """
    figures = study.figures or _default_figures(study)
    return tuple(
        figure.model_copy(
            update={"panels": tuple(_filled(panel, figure, study) for panel in figure.panels)}
        )
        for figure in figures
    )


def _filled(panel: AnyPanel, figure: FigureTable, study: Study) -> AnyPanel:
    update: dict[str, Any] = {"methods": panel.methods or figure.methods or study.methods}
    first = next(iter(study.settings), "")
    if getattr(panel, "setting", "") is None and not isinstance(panel, DifferencesPanel):
        update["setting"] = first
    if isinstance(panel, MeasuredPanel):
        update["lines"] = panel.model_copy(update=update).filled_lines()
    return panel.model_copy(update=update)


def _default_figures(study: Study) -> tuple[FigureTable, ...]:
    figures = []
    swept = [name for name, setting in study.settings.items() if len(setting.worlds()) > 1]
    if swept:
        sweeps = [SweepPanel(kind="sweep", setting=name) for name in swept[:_MOST_DEFAULT_PANELS]]
        caption = f"Final regret against the {share_label(study)}"
        figures.append(FigureTable(label="final_regret", caption=caption, panels=tuple(sweeps)))
    over_time = tuple(
        RoundsPanel(kind="rounds", setting=point.setting, p=point.p)
        for point in points_of(study)[:_MOST_DEFAULT_PANELS]
    )
    return (
        *figures,
        FigureTable(label="regret_over_time", caption="Regret over time", panels=over_time),
    )


class Drawn(NamedTuple):
    """A figure of a study, or why there is none."""

    spec: FigureTable
    png: Path | None  # the SVG is beside it
    note: str = ""  # what was left out


def write_figures(study: Study, results: Results, folder: Path | None = None) -> list[Drawn]:
    """Draw all figures of a study into a folder, by default that of the results.

    A panel for which nothing was run is left out, and so is a figure without panels; its files from
    an earlier run are removed.
    """
    folder = results.folder if folder is None else folder
    scene = Scene(study, results)
    return [_write(scene, spec, folder) for spec in figures_of(study)]


def drawn_before(study: Study, folder: Path) -> list[Drawn]:
    """Return the figures of a study with the files that lie in a folder."""
    pngs = [(spec, folder / f"{spec.name}.png") for spec in figures_of(study)]
    return [Drawn(spec, png if png.exists() else None) for spec, png in pngs]


def _write(scene: Scene, spec: FigureTable, folder: Path) -> Drawn:
    figure, note = figure_of(scene, spec)
    if figure is None:
        for ending in ("png", "svg"):
            (folder / f"{spec.name}.{ending}").unlink(missing_ok=True)
        return Drawn(spec, None, note)
    return Drawn(spec, save_figure(figure, folder, spec.name), note)


def figure_of(scene: Scene, spec: FigureTable) -> tuple[Figure | None, str]:
    """Return a figure with all panels for which something was run, and a note on the others."""
    found = [(panel, _kind_of(panel, scene.study).collect(scene, panel)) for panel in spec.panels]
    there = [(panel, data) for panel, data in found if len(data)]
    missing = len(found) - len(there)
    if not there:
        return None, "nothing of it was run"
    with house_style():
        figure = Figure(layout="constrained")
        figure.get_layout_engine().set(w_pad=0.06, h_pad=0.06, wspace=0.03, hspace=0.02)
        kinds = [_kind_of(panel, scene.study) for panel, _ in there]
        heights = [kind.height(data) for kind, (_, data) in zip(kinds, there, strict=True)]
        places = _axes(figure, kinds, heights, spec.columns)
        for axes, kind, (panel, data) in zip(places, kinds, there, strict=True):
            kind.draw(axes, scene, panel, data)
            tell_apart(axes)
        _name_scales(places)
        methods = (method for panel, _ in there for method in panel.methods or ())
        share_legend(figure, [label_of(method) for method in dict.fromkeys(methods)])
        _take_texts_literally(figure)
    return figure, f"{missing} of {len(found)} panels were not run" if missing else ""


def _name_scales(panels: Sequence[Axes]) -> None:
    """Say in titles how much longer axes are than the first linear one of the same name."""
    first: dict[str, float] = {}
    for axes in panels:
        top = axes.get_ylim()[1]
        name = axes.get_ylabel()
        if not name or axes.get_yscale() != "linear" or top <= 0:
            continue
        ratio = top / first.setdefault(name, top)
        if max(ratio, 1 / ratio) > _SAME_SCALE:
            axes.set_title(f"{axes.get_title()} (axis × {number(ratio, 2)})".lstrip())


def _take_texts_literally(figure: Figure) -> None:
    """Make a dollar in a name a dollar, not the start of a formula."""
    texts = [text for legend in figure.legends for text in legend.get_texts()]
    for axes in figure.axes:
        texts += [axes.title, axes.xaxis.label, axes.yaxis.label]
    for text in texts:
        text.set_parse_math(False)


def regret_figure(tables: Tables) -> Figure:
    """Return regret over rounds, with a panel per setting and observation probability."""
    panels: dict[Point, dict[str, list[Row]]] = {}
    for row in tables.trajectories:
        methods = panels.setdefault(Point(row["setting"], row["p"]), {})
        methods.setdefault(row["method"], []).append(row)
    if not panels:
        raise InvalidInputError("there is nothing to draw: no cell of these tables has a regret")
    n_rows, n_columns = grid_of(len(panels))
    with house_style():
        figure = Figure(
            (max(_PANEL_WIDTH * n_columns, _NARROWEST), _PANEL_HEIGHT * n_rows),
            layout="constrained",
        )
        for at, (point, methods) in enumerate(panels.items(), start=1):
            axes = figure.add_subplot(n_rows, n_columns, at)
            draw_bands(axes, [_curve(method, rows) for method, rows in methods.items()])
            axes.set(xlabel="round", ylabel="cumulative regret", title=str(point))
            set_regret_axis(axes, log=False)
            axes.margins(x=0.01)
            tell_apart(axes)
        share_legend(figure)
        _take_texts_literally(figure)
    return figure


def _curve(method: str, rows: list[Row]) -> Curve:
    found = [(row["round"], row["mean_regret"], row["se_regret"] or 0.0) for row in rows]
    rounds, mean, error = np.array(found, dtype=float).T
    return Curve(look_of(method), rounds, mean, error)


def grid_of(n_panels: int) -> tuple[int, int]:
    """Return rows and columns for a number of panels.

    >>> [grid_of(n) for n in (1, 2, 3, 4, 6)]
    [(1, 1), (1, 2), (1, 3), (2, 2), (2, 3)]
    """
    n_columns = {1: 1, 2: 2, 4: 2}.get(n_panels, 3)
    return math.ceil(n_panels / n_columns), n_columns


def _axes(
    figure: Figure,
    kinds: Sequence[PanelKind],
    heights: Sequence[float],
    columns: int | None = None,
) -> list[Axes]:
    """Return axes for panels, wide ones in rows of their own, and set the size of the figure.

    With `columns`, a panel that is alone in the last row takes half of the width, in the middle.
    """
    lines: list[list[int]] = []  # how many twelfths of the width each panel of a row takes
    for wide, group in itertools.groupby(kinds, key=lambda kind: kind.wide):
        n = len(list(group))
        n_columns = 1 if wide else columns or grid_of(n)[1]
        spans = [12 // n_columns] * n
        lines += [spans[at : at + n_columns] for at in range(0, n, n_columns)]
    most = 12 // min(span for line in lines for span in line)
    if columns is not None and lines[-1] == [12 // columns]:
        lines[-1] = [6]
    width = max(most * _PANEL_WIDTH, _WIDE if any(kind.wide for kind in kinds) else _NARROWEST)
    left = iter(heights)
    tall = [max(itertools.islice(left, len(line))) for line in lines]
    figure.set_size_inches(width, sum(tall) * _PANEL_HEIGHT)
    grid = figure.add_gridspec(len(lines), 12, height_ratios=tall)
    indents = [0 if columns is None else (12 - sum(line)) // 2 for line in lines]
    return [
        figure.add_subplot(grid[row, indent + at * span : indent + (at + 1) * span])
        for row, (line, indent) in enumerate(zip(lines, indents, strict=True))
        for at, span in enumerate(line)
    ]


def share_legend(figure: Figure, first: Sequence[str] = ()) -> None:
    """Put one legend under all panels, with each label once, and make room for it.

    Labels in `first` come before all others, in this order.
    """
    entries: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            # Of a curve with error bars only the curve.
            line = handle[0] if isinstance(handle, ErrorbarContainer) else handle
            entries.setdefault(label, line)
    if not entries:
        return
    labels = [label for label in first if label in entries]
    labels += [label for label in entries if label not in labels]
    width, height = figure.get_size_inches()
    n_columns = _columns_that_fit(labels, float(width))
    n_rows = math.ceil(len(labels) / n_columns)
    figure.set_size_inches(width, height + _LEGEND_ROW * n_rows)
    handles = [entries[label] for label in labels]
    legend = figure.legend(
        handles, labels, loc="outside lower center", ncols=n_columns, borderaxespad=0.1
    )
    for line in legend.get_lines():  # also of a curve that is wider where another one covers it
        line.set_linewidth(min(line.get_linewidth(), rcParams["lines.linewidth"]))


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
        figure.set_layout_engine("none")  # stays as it is; finding it again takes a second
        figure.savefig(svg, metadata={"Date": None, "Creator": None})
    return png
