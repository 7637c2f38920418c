"""Figures and reports for those who simulate in Python; the commands do the same.

They stand here and not on `Tables`, because an import may only point downwards. What they need
comes with the extra `paper` and is imported when they are called.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from halfseen.errors import InvalidInputError
from halfseen.lazy import from_extra
from halfseen.simulation.tables import Tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot(tables: Tables) -> "Figure":
    """Return a figure of regret over rounds, with bands of one standard error.

    Parameters
    ----------
    tables : Tables
        As `simulate` returns them.

    Returns
    -------
    figure : matplotlib Figure
        A panel per setting and observation probability, in the look of the reports.

    Raises
    ------
    InvalidInputError
        No cell has a regret.

    Examples
    --------
    >>> from halfseen import LowRankWorld, simulate
    >>> world = LowRankWorld(dim=6, rank=1, horizon=20)
    >>> figure = plot(simulate(["zf-oful", "uniform"], world, range(2), jobs=1))
    >>> len(figure.axes)
    1
    """
    with from_extra("paper"):
        from halfseen.report.curves import regret_figure
    return regret_figure(tables)


def write_report(results: Tables | str | Path) -> Path:
    """Write figures, tables and a page about results, and return the path of the page.

    Parameters
    ----------
    results : Tables or path
        A folder that `simulate(..., out=folder)` or a command has written, or the tables that
        `simulate` returned then.

    Raises
    ------
    InvalidInputError
        The tables were not written into a folder.
    StoreError
        The folder lacks a table, or one is damaged.
    """
    folder = results.folder if isinstance(results, Tables) else Path(results)
    if folder is None:
        raise InvalidInputError(
            "a report needs a folder with results: simulate(..., out=folder) writes one"
        )
    with from_extra("paper"):
        from halfseen.report import page
        from halfseen.report.data import Results
        from halfseen.report.index import study_of
    return page.write_report(study_of(Results.load(folder)), folder)
