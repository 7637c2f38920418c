"""The report of a study: figures, tables, claims with verdicts, and one page about it."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from halfseen.reports.claims import as_frame
from halfseen.reports.comparisons import frame_of
from halfseen.reports.context import Report
from halfseen.reports.data import Results
from halfseen.reports.figures import write_figures
from halfseen.reports.render import LATEX, MARKDOWN, render
from halfseen.studies.published import Figure, Key
from halfseen.studies.spec import Study


def write_report(
    study: Study, folder: str | Path, published: Mapping[Key, Figure] | None = None
) -> Path:
    """Draw the figures of a run, check its claims, and write one page about it.

    Parameters
    ----------
    study : Study
        What was run, or a part of it.
    folder : path
        With the tables of the run. Figures, `table.tex`, `claims.csv`, `report.md`, perhaps
        `excess.csv` and a file per comparison are added.
    published : mapping, optional
        Published regrets. By default those that ship with the package.

    Raises
    ------
    StoreError
        A table is missing or damaged.
    """
    results = Results.load(folder)
    figures = write_figures(study, results)
    report = Report(study, results, published=published, figures=figures)
    _write(report.folder / "claims.csv", as_frame(report.verdicts))
    _write(report.folder / "excess.csv", None if report.excess.empty else report.excess)
    compared = {spec.name: frame_of(pairs) for spec, pairs in report.comparisons}
    for spec in study.comparisons:
        _write(report.folder / f"{spec.name}.csv", compared.get(spec.name))
    (report.folder / "table.tex").write_text(render(LATEX, report=report), encoding="utf-8")
    page = report.folder / "report.md"
    page.write_text(render(MARKDOWN, report=report), encoding="utf-8")
    return page


def _write(path: Path, table: pd.DataFrame | None) -> None:
    """Write a table; without one, remove the file of an earlier run."""
    if table is None:
        path.unlink(missing_ok=True)
    else:
        table.to_csv(path, index=False, lineterminator="\n")
