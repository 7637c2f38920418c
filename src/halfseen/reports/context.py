"""What a report says about a run: one object from which every template takes what it shows."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import pandas as pd

from halfseen.reports.charts import chart_data
from halfseen.reports.claims import verdicts_on
from halfseen.reports.comparisons import Compared, compared
from halfseen.reports.data import Point, Results, points_of
from halfseen.reports.figures import Drawn, drawn_before
from halfseen.reports.published import (
    compare_means,
    not_from_paper,
    published_for,
    reproduces_paper,
)
from halfseen.reports.table import FinalTable
from halfseen.reports.truth import features_seen, share_seen
from halfseen.reports.verdicts import Verdict, count_outcomes
from halfseen.simulation.tables import Mean, mean_of
from halfseen.studies.figures import Comparison as ComparisonTable
from halfseen.studies.published import Figure, Group, Key, compare
from halfseen.studies.published_summary import SummaryComparison
from halfseen.studies.spec import Study

FILES = {
    "per_seed.csv": "final regret and rank of every cell",
    "summary.csv": "means and standard errors",
    "trajectories.csv.gz": "regret and rank over rounds",
    "diagnostics.csv": "what policies report about their runs",
    "claims.csv": "the claims with their verdicts",
    "excess.csv": "final regret above the irreducible regret",
    "skipped.csv": "cells that were not run, with the reason",
    "calibration.csv": "the settings that were tried on validation seeds",
    "table.tex": "the table of final regrets for LaTeX",
    "manifest.json": "what was run, with versions",
    "failures.txt": "tracebacks of failed cells",
}
"""Files of a results folder, and what is in them."""

EXCESS = (
    "setting",
    "p",
    "method",
    "n",
    "mean_irreducible",
    "se_irreducible",
    "mean_excess",
    "se_excess",
)
"""Columns of `excess.csv`."""


class Cells(NamedTuple):
    """Cells of a method at a point that have no result."""

    point: Point
    method: str
    seeds: list[int]
    note: str = ""


class Report:
    """Everything that a report on a run can show; each part is computed when it is first needed.

    `published` are regrets per seed, by default those that ship with the package; `figures` are by
    default those in the results folder.
    """

    def __init__(
        self,
        study: Study,
        results: Results,
        *,
        published: Mapping[Key, Figure] | None = None,
        figures: Sequence[Drawn] | None = None,
    ) -> None:
        self.study, self.results, self._published = study, results, published
        self.folder, self.manifest = results.folder, results.manifest
        self.figures = list(drawn_before(study, self.folder) if figures is None else figures)

    @property
    def anchor(self) -> str:
        """The name of the report's section on a page over several studies."""
        return "-".join(self.folder.name.split())

    # What was run

    @cached_property
    def reproduces_paper(self) -> bool:
        """Whether the study is one of the package's; others do not speak of the paper."""
        return reproduces_paper(self.study)

    @cached_property
    def not_from_paper(self) -> list[str]:
        """Labels of policies that are not from the paper."""
        return not_from_paper(self.study)

    @property
    def scale(self) -> str:
        """The scale of the run; empty where readers need not know it."""
        scale = self.manifest.get("scale", "")
        return "" if scale == "paper" and not self.reproduces_paper else str(scale)

    @cached_property
    def share_seen(self) -> str:
        """How much of the arms is seen, as text."""
        return share_seen(self.study)

    @cached_property
    def features_seen(self) -> str:
        """The features of recorded tables, with the share recorded of each, as text."""
        return features_seen(self.study)

    @property
    def worlds(self) -> list[str]:
        """The kinds of worlds."""
        return sorted({str(setting.world.get("kind")) for setting in self.study.settings.values()})

    @property
    def seeds(self) -> list[int]:
        """All seeds that were run."""
        return sorted(self.results.per_seed["seed"].unique().tolist())

    def n_cells(self, status: str | None = None) -> int:
        """Return the number of cells, or of those with a status."""
        found = self.results.per_seed["status"]
        return len(found) if status is None else int((found == status).sum())

    # Claims and numbers

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """A verdict on every claim of the study."""
        return verdicts_on(self.study, self.results)

    @property
    def counts(self) -> dict[str, int]:
        """The number of claims with each outcome."""
        return count_outcomes(self.verdicts)

    @cached_property
    def table(self) -> FinalTable:
        """Final regret of every method at every point."""
        return FinalTable.of(self.results.summary, self.study)

    @cached_property
    def charts(self) -> dict[str, Any] | None:
        """The numbers of the interactive charts; None where nothing was played."""
        return chart_data(self.study, self.results)

    @cached_property
    def comparisons(self) -> list[tuple[ComparisonTable, list[Compared]]]:
        """The comparisons of the study for which something was run."""
        specs = self.study.comparisons
        found = [(spec, compared(self.study, self.results, spec)) for spec in specs]
        return [(spec, pairs) for spec, pairs in found if pairs]

    @cached_property
    def published(self) -> list[Group]:
        """Published means with ours, where results per seed are published."""
        known = published_for(self.study) if self._published is None else self._published
        return compare(self.results.per_seed.to_dict("records"), known).groups

    @cached_property
    def published_by_cell(self) -> dict[tuple[Point, str], Group]:
        """The same by point and method."""
        return {(Point(each.setting, each.p), each.method): each for each in self.published}

    @cached_property
    def published_means(self) -> SummaryComparison | None:
        """Published means with ours, where only means are published."""
        return compare_means(self.study, self.results)

    @cached_property
    def irreducible(self) -> dict[Point, tuple[int, Mean]]:
        """Number of seeds and mean of the irreducible regret, where the world knows it."""
        found = {point: irreducible_at(self.results, point) for point in points_of(self.study)}
        return {
            point: (len(values), mean_of(values.tolist()))
            for point, values in found.items()
            if not values.empty
        }

    @cached_property
    def excess(self) -> pd.DataFrame:
        """Mean regret above the irreducible one, with the columns `EXCESS`; it may be empty."""
        return excess_table(self.study, self.results)

    @property
    def excess_table(self) -> FinalTable:
        """The same as a table of methods and points."""
        names = {"mean_excess": "mean_regret", "se_excess": "se_regret"}
        return FinalTable.of(self.excess.rename(columns=names), self.study)

    # What is missing, and the files

    @cached_property
    def failures(self) -> list[Cells]:
        """Failed cells."""
        failed = self.results.per_seed[self.results.per_seed["status"] == "failed"]
        return [
            Cells(Point(row.setting, None if pd.isna(row.p) else row.p), row.method, [row.seed])
            for row in failed.itertuples(index=False)
        ]

    @cached_property
    def skipped(self) -> list[Cells]:
        """Skipped cells with the reason, by point and method."""
        path = self.folder / "skipped.csv"
        if not path.exists():
            return []
        frame = pd.read_csv(path, dtype=str, keep_default_na=False)
        found = []
        for (setting, p, method), group in frame.groupby(["setting", "p", "method"], sort=False):
            seeds = sorted(int(seed) for seed in group["seed"])
            point = Point(setting, float(p) if p else None)
            found.append(Cells(point, method, seeds, group["note"].iloc[0]))
        return found

    @property
    def files(self) -> dict[str, str]:
        """The files in the results folder, and what is in them."""
        compared = {f"{spec.name}.csv": spec.heading for spec, _ in self.comparisons}
        known = FILES | compared | {"report.md": "this report"}
        return {name: what for name, what in known.items() if (self.folder / name).exists()}


def irreducible_at(results: Results, point: Point) -> "pd.Series[float]":
    """Return the irreducible regret at a point by seed; empty where no world knows it."""
    frame = results.diagnostics
    at = frame["p"].isna() if point.p is None else frame["p"] == point.p
    found = frame[at & (frame["setting"] == point.setting) & (frame["name"] == "irreducible")]
    return found.drop_duplicates("seed").set_index("seed")["value"].sort_index()


def excess_table(study: Study, results: Results) -> pd.DataFrame:
    """Return mean irreducible regret and mean excess of every method, paired seed by seed.

    The columns are `EXCESS`; the table is empty where no world knows what is irreducible.
    """
    rows = []
    for point in points_of(study):
        irreducible = irreducible_at(results, point)
        for method in study.methods:
            excess = (results.regrets(point, method) - irreducible).dropna()
            if not excess.empty:
                means = mean_of(irreducible[excess.index].tolist()), mean_of(excess.tolist())
                rows.append((*point, method, len(excess), *means[0], *means[1]))
    return pd.DataFrame(rows, columns=list(EXCESS))
