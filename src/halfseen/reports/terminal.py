"""Final regret in a terminal: tables that fit its width."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
from rich.markup import escape
from rich.table import Table

from halfseen.reports.data import Point
from halfseen.reports.look import label_of
from halfseen.reports.table import FinalTable
from halfseen.studies.spec import Study

WIDTH = 80
"""Columns of a terminal into which a table must fit."""

_FRAME = 3  # characters that a column takes beside its text
_NARROWEST = 18  # into which labels are broken at words


def terminal_tables(
    summary: pd.DataFrame | Iterable[Mapping[str, Any]], study: Study, width: int = WIDTH
) -> list[Table]:
    """Return tables for the terminal: methods below each other, points side by side.

    There is one table per setting with several points, and one for all others; more where the
    points do not fit into the width, and none where nothing was played.
    """
    table = FinalTable.of(summary, study)
    return [
        _terminal_table(table, points, group.setting, width)
        for group in table.point_groups()
        for points in _that_fit(table, group.points, width)
    ]


def _terminal_table(
    table: FinalTable, points: Sequence[Point], setting: str | None, width: int
) -> Table:
    """Return a table over points of one setting, or (None) over settings."""
    title = "Final regret, mean ± standard error" + (f": {setting}" if setting else "")
    shown = Table(title=escape(title), title_justify="left", min_width=len(title))
    labels = [label_of(method) for method in table.methods]
    room = width - 1 - _FRAME - sum(_column(table, point) for point in points)
    names = min(max(len(label) for label in labels), max(room, _NARROWEST))
    swept = setting is not None and points[0].p is not None
    alone = setting == "" and not swept
    shown.add_column("share seen" if swept else "method" if alone else "setting", width=names)
    for point in points:
        head = f"{point.p:g}" if swept else "regret" if alone else point.setting
        shown.add_column(escape(head), justify="right", no_wrap=True)
    first_oracle = next((method for method in table.methods if method in table.oracles), None)
    for method, label in zip(table.methods, labels, strict=True):
        cells = [_short(table, point, method) for point in points]
        if any(cells):
            if method == first_oracle and shown.rows:
                shown.add_section()
            shown_cells = [
                f"[bold]{text}[/]" if table.is_best(point, method) else text
                for point, text in zip(points, cells, strict=True)
            ]
            shown.add_row(escape(label), *shown_cells)
    return shown


def _short(table: FinalTable, point: Point, method: str) -> str:
    """Return a cell in few characters: three digits are enough in a terminal."""
    cell = table.cells.get((point, method))
    if cell is not None and cell.mean is not None and abs(cell.mean) >= 100:
        error = "" if cell.standard_error is None else f"±{cell.standard_error:.0f}"
        return f"{cell.mean:.0f}{error}"
    return table.text(point, method).replace(" ", "")


def _column(table: FinalTable, point: Point) -> int:
    """Return the width of a point's column with its frame."""
    texts = [_short(table, point, method) for method in table.methods]
    return _FRAME + max(len(point.setting), *(len(text) for text in texts))


def _that_fit(table: FinalTable, points: Sequence[Point], width: int) -> list[Sequence[Point]]:
    """Split points into as few groups as fit side by side, of about one size."""
    sizes = [_column(table, point) for point in points]
    room = width - 1 - _FRAME - _NARROWEST
    for n_groups in range(1, len(points)):
        each = math.ceil(len(points) / n_groups)
        starts = range(0, len(points), each)
        if all(sum(sizes[at : at + each]) <= room for at in starts):
            return [points[at : at + each] for at in starts]
    return [[point] for point in points]
