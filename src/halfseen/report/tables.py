"""Final regret as a table of methods and points, also in a terminal."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from halfseen.report.look import label_of
from halfseen.simulation.results import Mean, Point, Results

if TYPE_CHECKING:
    from rich.table import Table

_KNOWING_POLICIES = ("Oracle", "SignSeeker")


class Group(NamedTuple):
    """Points side by side: a caption, which may be empty, and a column head for each."""

    caption: str
    points: list[Point]
    heads: list[str]

    @property
    def setting(self) -> str | None:
        """The setting of all points; empty if the table has no other one, None if they differ."""
        settings = {point.setting for point in self.points}
        return None if len(settings) > 1 else self.caption


class FinalTable(NamedTuple):
    """Mean final regret of every method at every point, where it was run.

    `oracles` are the methods that see or know what no player does; they come last.
    """

    points: list[Point]
    methods: list[str]
    cells: dict[tuple[Point, str], Mean]
    oracles: frozenset[str]

    @classmethod
    def of(
        cls, results: Results, means: dict[tuple[Point, str], Mean] | None = None
    ) -> "FinalTable":
        """Return mean final regrets, or other means, in the order of the study."""
        places = [(point, method) for point in results.points() for method in results.methods]
        if means is None:
            means = {place: results.mean(*place) for place in places}
        cells = {place: mean for place, mean in means.items() if mean.mean is not None}
        oracles = frozenset(
            key
            for setting in results.settings.values()
            for key, method in setting.methods.items()
            if method.view == "full" or method.policy in _KNOWING_POLICIES
        )
        points = [point for point in results.points() if any(at == point for at, _ in cells)]
        methods = [key for key in results.methods if any(each == key for _, each in cells)]
        methods.sort(key=lambda method: method in oracles)
        return cls(points, methods, cells, oracles)

    def is_best(self, point: Point, method: str) -> bool:
        """Tell whether a method has the lowest mean, as printed, of all that can be played."""
        cell = self.cells.get((point, method))
        if cell is None or cell.mean is None or method in self.oracles:
            return False
        found = (
            mean.mean
            for (at, key), mean in self.cells.items()
            if at == point and key not in self.oracles
        )
        lowest = min(mean for mean in found if mean is not None)
        return round(cell.mean, self.digits) == round(lowest, self.digits)

    def rows(self, group: Group) -> list[str]:
        """Return the methods that were run at one of the points, oracles last."""
        return [method for method in self.methods if self.has(group, method)]

    def begins_oracles(self, group: Group, method: str) -> bool:
        """Tell whether a line goes above a method: the first oracle, if others are above it."""
        known = self.rows(group)
        first = next((each for each in known if each in self.oracles), None)
        return method == first and method != known[0]

    def text(self, point: Point, method: str) -> str:
        """Return a cell as people read it, empty where nothing was run."""
        cell = self.cells.get((point, method))
        if cell is None or cell.mean is None:
            return ""
        digits = self.digits
        mean, error = f"{cell.mean:,.{digits}f}", cell.standard_error
        return mean if error is None else f"{mean} ± {error:,.{digits}f}"

    def has(self, group: Group, method: str) -> bool:
        """Tell whether a method was run at one of the points."""
        return any((point, method) in self.cells for point in group.points)

    @property
    def digits(self) -> int:
        """Digits after the decimal point, the same in the whole table."""
        sizes = [abs(mean.mean) for mean in self.cells.values() if mean.mean]
        return min(4, max(1, math.ceil(-math.log10(min(sizes))) + 1)) if sizes else 1

    @property
    def heads(self) -> list[str]:
        """The names of the columns that tell points apart."""
        several = len({point.setting for point in self.points}) > 1
        probs = any(point.p is not None for point in self.points)
        return ["setting"] * several + ["p"] * probs

    def head(self, point: Point) -> list[str]:
        """Return a point's values in those columns."""
        texts = {"setting": point.setting, "p": "" if point.p is None else f"{point.p:g}"}
        return [texts[name] for name in self.heads]

    def point_groups(self) -> list[Group]:
        """Return the points of each setting; those of settings that have only one together."""
        by_setting: dict[str, list[Point]] = {}
        for point in self.points:
            by_setting.setdefault(point.setting, []).append(point)
        alone = [points[0] for points in by_setting.values() if len(points) == 1]
        merges, groups = len(alone) > 1 or len(by_setting) == 1, []
        if alone and merges:
            groups.append(Group("", alone, [str(point) or "final regret" for point in alone]))
        for name, points in by_setting.items():
            if len(points) > 1 or not merges:
                heads = ["" if point.p is None else f"p = {point.p:g}" for point in points]
                groups.append(Group(name if len(by_setting) > 1 else "", points, heads))
        return groups


# In a terminal

_FRAME = 3  # characters that a column takes beside its text
_NARROWEST = 18  # into which labels are broken at words


def terminal_tables(results: Results, width: int = 80) -> "list[Table]":
    """Return tables for the terminal: methods below each other, points side by side.

    There is one table per setting with several points, and one for all others; more where the
    points do not fit into the width, and none where nothing was played.
    """
    table = FinalTable.of(results)
    return [
        _terminal_table(table, points, group.setting, width)
        for group in table.point_groups()
        for points in _that_fit(table, group.points, width)
    ]


def _terminal_table(
    table: FinalTable, points: Sequence[Point], setting: str | None, width: int
) -> "Table":
    """Return a table over points of one setting, or (None) over settings."""
    from rich.markup import escape
    from rich.table import Table

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
