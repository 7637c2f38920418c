"""Final regret as a table: for the terminal, for a page, for a paper."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
from rich.markup import escape
from rich.table import Table

from halfseen.report.data import Point, Results, points_of
from halfseen.report.look import label_of
from halfseen.simulation.tables import Mean
from halfseen.studies.spec import Study

WIDTH = 80
"""Columns of a terminal into which a table must fit."""

_FRAME = 3  # characters that a column of a terminal's table takes beside its text
_NARROWEST = 18  # into which labels are broken at words
_MOST_METHODS = 7  # side by side on a page

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "−": "$-$",
}


class FinalTable(NamedTuple):
    """Mean final regret of every method at every point.

    Attributes
    ----------
    points : list of Point
        The rows.
    methods : list of str
        The columns, only those that were run.
    cells : dict
        By point and method, only what was run.
    """

    points: list[Point]
    methods: list[str]
    cells: dict[tuple[Point, str], Mean]

    @classmethod
    def of(cls, summary: pd.DataFrame | Iterable[Mapping[str, Any]], study: Study) -> "FinalTable":
        """Make the table from a summary, as a frame or as rows, in the order of the study."""
        rows = summary.to_dict("records") if isinstance(summary, pd.DataFrame) else summary
        cells: dict[tuple[Point, str], Mean] = {}
        for row in rows:
            mean, error = _number(row["mean_regret"]), _number(row["se_regret"])
            if mean is not None:
                point = Point(row["setting"], _number(row["p"]))
                cells[point, row["method"]] = Mean(mean, error)
        points = [p for p in points_of(study) if any(key[0] == p for key in cells)]
        methods = [m for m in study.methods if any(key[1] == m for key in cells)]
        return cls(points, methods, cells)

    def best(self, point: Point) -> float:
        """Return the lowest mean of a row."""
        found = (mean.mean for (at, _), mean in self.cells.items() if at == point)
        return min(mean for mean in found if mean is not None)

    def text(self, point: Point, method: str) -> str:
        """Return a cell as people read it, empty where nothing was run."""
        cell = self.cells.get((point, method))
        if cell is None or cell.mean is None:
            return ""
        digits = self.digits
        mean = f"{cell.mean:.{digits}f}"
        return mean if cell.standard_error is None else f"{mean} ± {cell.standard_error:.{digits}f}"

    @property
    def digits(self) -> int:
        """Digits after the point, the same in the whole table."""
        sizes = [abs(mean.mean) for mean in self.cells.values() if mean.mean]
        return min(4, max(1, math.ceil(-math.log10(min(sizes))) + 1)) if sizes else 1

    def heads(self) -> list[str]:
        """Return the names of the columns that tell rows apart."""
        several = len({point.setting for point in self.points}) > 1
        probs = any(point.p is not None for point in self.points)
        return ["setting"] * several + ["p"] * probs

    def head(self, point: Point) -> list[str]:
        """Return what stands in those columns."""
        told = {"setting": point.setting, "p": "" if point.p is None else f"{point.p:g}"}
        return [told[name] for name in self.heads()]


def final_table(study: Study, results: Results) -> FinalTable:
    """Return the table of a run."""
    return FinalTable.of(results.summary, study)


def terminal_tables(
    summary: pd.DataFrame | Iterable[Mapping[str, Any]], study: Study, width: int = WIDTH
) -> list[Table]:
    """Return tables for the terminal: methods below each other, points side by side.

    There is one table per setting where settings have several points, else one for all; more where
    the points do not fit into the width, and none where nothing was played.
    """
    table = FinalTable.of(summary, study)
    settings = list(dict.fromkeys(point.setting for point in table.points))
    if len(table.points) == len(settings) > 1:
        groups = _that_fit(table, table.points, width)
        return [_terminal_table(table, group, None, width) for group in groups]
    return [
        _terminal_table(table, group, setting if len(settings) > 1 else "", width)
        for setting in settings
        for group in _that_fit(table, [p for p in table.points if p.setting == setting], width)
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
    for method, label in zip(table.methods, labels, strict=True):
        cells = [_short(table, point, method) for point in points]
        if any(cells):
            told = [
                f"[bold]{text}[/]" if _is_best(table, point, method) else text
                for point, text in zip(points, cells, strict=True)
            ]
            shown.add_row(escape(label), *told)
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


def _is_best(table: FinalTable, point: Point, method: str) -> bool:
    cell = table.cells.get((point, method))
    return cell is not None and cell.mean == table.best(point)


def markdown_table(table: FinalTable) -> str:
    """Return the table as Markdown, the best mean of a row in bold; many methods in several."""
    parts = []
    for methods in _in_groups(table.methods):
        heads = [*table.heads(), *(label_of(method) for method in methods)]
        lines = [_row(heads), _row(["---"] * len(table.heads()) + ["---:"] * len(methods))]
        for point in table.points:
            texts = [
                f"**{table.text(point, method)}**"
                if _is_best(table, point, method)
                else table.text(point, method)
                for method in methods
            ]
            lines.append(_row([*table.head(point), *texts]))
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def markdown_cell(text: str) -> str:
    r"""Return a text that stays inside its cell of a Markdown table.

    >>> print(markdown_cell("a|b"))
    a\|b
    """
    return " ".join(text.replace("|", "\\|").split())


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(markdown_cell(cell) for cell in cells) + " |"


def latex_table(table: FinalTable) -> str:
    r"""Return the table as LaTeX (needs booktabs), the best mean of a row in bold.

    Many methods stand in several tabulars below each other.
    """
    parts = []
    for methods in _in_groups(table.methods):
        columns = "l" * len(table.heads()) + "r" * len(methods)
        names = [latex_text(name) for name in table.heads()]
        names += [_stacked(label_of(method)) for method in methods]
        lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", _latex_row(names), r"\midrule"]
        for point in table.points:
            cells = [latex_text(name) for name in table.head(point)]
            for method in methods:
                text = latex_text(table.text(point, method))
                cells.append(rf"\textbf{{{text}}}" if _is_best(table, point, method) else text)
            lines.append(_latex_row(cells))
        parts.append("\n".join([*lines, r"\bottomrule", r"\end{tabular}"]))
    head = "% Final regret, mean and standard error over seeds. Needs \\usepackage{booktabs}."
    return "\n".join([head, "\n\n\\medskip\n\n".join(parts), ""])


def latex_text(text: str) -> str:
    r"""Return a text that LaTeX prints as it is.

    >>> print(latex_text("d12_p & 20 %"))
    d12\_p \& 20 \%
    """
    return "".join(_LATEX.get(character, character) for character in text)


def _stacked(label: str) -> str:
    """Return a label over several lines, so that columns stay narrow."""
    lines: list[str] = []
    for word in label.split():
        if lines and len(lines[-1]) + 1 + len(word) <= 12:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    stacked = r"\\".join(latex_text(line) for line in lines)
    return rf"\shortstack[r]{{{stacked}}}"


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _in_groups(methods: Sequence[str], size: int = _MOST_METHODS) -> list[Sequence[str]]:
    """Split methods into groups of at most a size, all of about one length."""
    n_groups = math.ceil(len(methods) / size)
    each = math.ceil(len(methods) / n_groups) if n_groups else 1
    return [methods[at : at + each] for at in range(0, len(methods), each)]


def _number(value: Any) -> float | None:
    return None if value is None or value == "" or pd.isna(value) else float(value)
