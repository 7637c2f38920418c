"""Final regret as a table of methods and points."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import pandas as pd

from halfseen.reports.data import Point, points_of
from halfseen.simulation.tables import Mean
from halfseen.studies.spec import Study

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
        oracles = frozenset(filter(_is_oracle(study), methods))
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


def _is_oracle(study: Study) -> Callable[[str], bool]:
    """Return whether a method of a study sees all entries, or knows the truth."""
    found = {
        key
        for setting in study.settings.values()
        for key, method in setting.methods.items()
        if method.view == "full" or method.policy in _KNOWING_POLICIES
    }
    return found.__contains__


def _number(value: Any) -> float | None:
    return None if value is None or value == "" or pd.isna(value) else float(value)
