"""The studies of the package, one module each: data first, then what is drawn and claimed."""

from functools import cache
from importlib import import_module
from pathlib import Path

from halfseen import checks
from halfseen.errors import StudyError
from halfseen.paper.study import Study
from halfseen.report.report import Report
from halfseen.simulation.results import Results

ORDER = (
    "synthetic",
    "synthetic-fh",
    "rank-selection",
    "warm-start",
    "two-phase",
    "dimension",
    "scaling",
    "theory",
    "hard-instance",
    "masks",
    "digits",
    "mnist",
    "newsgroups",
    "tables",
    "contexts",
    "beyond",
)
"""Names in the order in which `halfseen studies` lists them and `reproduce all` runs them."""


@cache
def study_named(name: str, scale: str = "paper") -> Study:
    """Return a study of the package by name.

    >>> study_named("synthetic").seeds
    range(0, 20)
    """
    if name not in ORDER:
        near = checks.did_you_mean(name, ORDER)
        raise StudyError(f"there is no study {name!r}{near or f', there are {list(ORDER)}'}")
    module = import_module(f"halfseen.paper.studies.{name.replace('-', '_')}")
    return Study.of(name, module).at(scale)


def report_on(folder: Path) -> Report:
    """Return the report on a results folder, of a study of the package or of another one.

    Raises
    ------
    StoreError
        A file is missing or damaged.
    """
    results = Results.load(folder)
    if results.name in ORDER and "scale" in results.manifest:
        return study_named(results.name).report(results)
    return Report.of(results)
