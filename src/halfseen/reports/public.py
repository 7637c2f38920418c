"""The report, for those who simulate in Python; the commands write the same one."""

from pathlib import Path

from halfseen.errors import InvalidInputError
from halfseen.lazy import from_extra
from halfseen.simulation.tables import Tables


def report(results: Tables | str | Path) -> Path:
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
    MissingExtraError
        The extra `paper` is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from halfseen import LowRankWorld, simulate
    >>> world = LowRankWorld(dim=6, rank=2, horizon=20)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tables = simulate(["uniform"], world, range(2), out=folder, jobs=1)
    ...     report(tables).name
    'report.md'
    """
    folder = results.folder if isinstance(results, Tables) else Path(results)
    if folder is None:
        raise InvalidInputError(
            "a report needs a folder with results: simulate(..., out=folder) writes one"
        )
    with from_extra("paper"):
        from halfseen.reports.data import Results
        from halfseen.reports.index import study_of
        from halfseen.reports.page import write_report
    return write_report(study_of(Results.load(folder)), folder)
