"""Results as tables: per seed, summaries, regret over time, and diagnostics.

The same cells give the same bytes on any machine and in any order; only `seconds` differ, and may
be left out.
"""

import csv
import gzip
import io
import json
import math
import platform
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import halfseen
from halfseen import checks
from halfseen.errors import InvalidInputError
from halfseen.lazy import from_extra
from halfseen.simulation.cells import Cell, CellKey, Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

_CELL = CellKey._fields
_METHOD = _CELL[:-1]  # over all seeds
_REGRET = ("n", "mean_regret", "se_regret", "mean_rank")

PER_SEED = (*_CELL, "final_regret", "final_rank", "status", "seconds")
SUMMARY = (*_METHOD, *_REGRET)
TRAJECTORIES = (*_METHOD, "round", *_REGRET, "se_rank")
SKIPPED = (*_CELL, "note")
DIAGNOSTICS = (*_CELL, "name", "position", "value")
TEXTS = ("study", "setting", "method", "status", "name", "note")
INTEGERS = ("seed", "n", "round", "position")
"""Columns of texts and of whole numbers in any table; the others are numbers or empty."""

_COLUMNS = {
    "per_seed": PER_SEED,
    "summary": SUMMARY,
    "trajectories": TRAJECTORIES,
    "diagnostics": DIAGNOSTICS,
    "skipped": SKIPPED,
}

Row = dict[str, Any]


class Mean(NamedTuple):
    """A mean and its standard error, which is None for one value."""

    mean: float | None
    standard_error: float | None


def mean_of(values: Sequence[float]) -> Mean:
    """Return mean and standard error (sample deviation over the root of the number of values).

    >>> mean_of([1.0, 3.0])
    Mean(mean=2.0, standard_error=1.0)
    """
    n = len(values)
    if n == 0:
        return Mean(None, None)
    mean = math.fsum(values) / n
    if n == 1:
        return Mean(mean, None)
    variance = math.fsum([(value - mean) ** 2 for value in values]) / (n - 1)
    return Mean(mean, math.sqrt(variance / n))


class Tables(NamedTuple):
    """All results of a run, as rows in the order of its cells.

    Attributes
    ----------
    per_seed, summary, trajectories, diagnostics : list of dict
    failures : list of (Cell, str)
        Cells that failed, with their tracebacks.
    skipped : list of dict
        Cells that were not run, with the reason.
    folder : Path or None
        Where the tables were written, if they were.
    cells : tuple of Cell
        What was run.
    manifest : mapping
        What was run in words, with versions and duration.
    """

    per_seed: list[Row]
    summary: list[Row]
    trajectories: list[Row]
    diagnostics: list[Row]
    failures: list[tuple[Cell, str]]
    skipped: list[Row]
    folder: Path | None = None
    cells: tuple[Cell, ...] = ()
    manifest: Mapping[str, Any] = MappingProxyType({})

    @classmethod
    def of(cls, finished: Iterable[tuple[Cell, Result]], *, timing: bool = True) -> "Tables":
        """Return the tables of finished cells; without `timing` their seconds are empty."""
        per_seed: list[Row] = []
        diagnostics: list[Row] = []
        failures: list[tuple[Cell, str]] = []
        skipped: list[Row] = []
        groups: dict[tuple[Any, ...], list[Result]] = {}
        cells = []
        for cell, result in finished:
            cells.append(cell)
            ran = result.status != "skipped"
            per_seed.append(
                cell.key._asdict()
                | {
                    "final_regret": result.final_regret,
                    "final_rank": result.final_rank,
                    "status": result.status,
                    "seconds": round(result.seconds, 4) if timing and ran else None,
                }
            )
            diagnostics += _diagnostics(cell, result)
            group = groups.setdefault(cell.key[:-1], [])
            if result.status == "ok":
                group.append(result)
            elif not ran:
                skipped.append(cell.key._asdict() | {"note": result.note})
            else:
                failures.append((cell, result.error))
        summary = [_summary(key, results) for key, results in groups.items()]
        over_time = [row for key, results in groups.items() for row in _over_time(key, results)]
        return cls(per_seed, summary, over_time, diagnostics, failures, skipped, cells=tuple(cells))

    @overload
    def to_pandas(self, name: str) -> "DataFrame": ...
    @overload
    def to_pandas(self) -> "dict[str, DataFrame]": ...
    def to_pandas(self, name: str | None = None) -> "DataFrame | dict[str, DataFrame]":
        """Return one table as a data frame, or without a name all of them by name.

        Parameters
        ----------
        name : "per_seed", "summary", "trajectories", "diagnostics" or "skipped"

        Examples
        --------
        >>> from halfseen import LowRankWorld, simulate
        >>> world = LowRankWorld(dim=6, rank=1, horizon=20)
        >>> tables = simulate(["uniform"], world, range(2), jobs=1)
        >>> tables.to_pandas("per_seed")[["method", "seed", "status"]]
            method  seed status
        0  uniform     0     ok
        1  uniform     1     ok
        """
        with from_extra("paper"):
            import pandas as pd
        if name is None:
            return {each: self.to_pandas(each) for each in _COLUMNS}
        columns = _COLUMNS[checks.one_of("name", name, tuple(_COLUMNS))]
        kinds = {each: "int64" for each in columns if each in INTEGERS}
        kinds |= {each: "float64" for each in columns if each not in (*INTEGERS, *TEXTS)}
        return pd.DataFrame(getattr(self, name), columns=columns).astype(kinds)

    def plot(self) -> "Figure":
        """Return a figure of regret over rounds, with bands of one standard error.

        It has a panel for each setting and observation probability.

        Raises
        ------
        InvalidInputError
            No cell has a regret.
        MissingExtraError
            The extra `paper` is not installed.

        Examples
        --------
        >>> from halfseen import LowRankWorld, simulate
        >>> world = LowRankWorld(dim=6, rank=1, horizon=20)
        >>> figure = simulate(["zf-oful", "uniform"], world, range(2), jobs=1).plot()
        >>> figure.savefig("regret.png")  # doctest: +SKIP
        """
        with from_extra("paper"):
            # Imports of this module that point upwards: see decision record 15.
            from halfseen.report.figures import regret_figure
            from halfseen.report.results import Results
        return regret_figure(Results.of(self))

    def table(self) -> "DataFrame":
        """Return mean final regret with its standard error, the lowest first, as a data frame.

        Examples
        --------
        >>> from halfseen import LowRankWorld, simulate
        >>> world = LowRankWorld(dim=6, rank=1, horizon=50)
        >>> simulate(["uniform", "zf-oful"], world, range(3), jobs=1).table().index[0]
        'zf-oful'
        """
        frame = self.to_pandas("summary").sort_values("mean_regret", kind="stable")
        return frame.set_index("method")[["p", "n", "mean_regret", "se_regret", "mean_rank"]]

    def report(self, folder: str | Path | None = None) -> Path:
        """Write tables, figures and a page about them into a folder; return the page's path.

        Parameters
        ----------
        folder : path, optional
            By default the folder that the tables were written to.

        Raises
        ------
        InvalidInputError
            There is no folder.
        MissingExtraError
            The extra `paper` is not installed.

        Examples
        --------
        >>> import tempfile
        >>> from halfseen import LowRankWorld, simulate
        >>> world = LowRankWorld(dim=6, rank=1, horizon=20)
        >>> results = simulate(["uniform"], world, range(2), jobs=1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     results.report(folder).name
        'report.md'
        """
        with from_extra("paper"):
            from halfseen.report.report import Report
            from halfseen.report.results import Results
        home = self.folder if folder is None else Path(folder)
        if home is None:
            raise InvalidInputError("a report needs a folder: results.report('folder')")
        if home != self.folder:
            self.write(home, self.manifest)
        return Report.of(Results.of(self._replace(folder=home))).write()

    def write(self, folder: Path, manifest: Mapping[str, Any]) -> None:
        """Write all tables and the manifest into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        trajectories = csv_bytes(TRAJECTORIES, self.trajectories)
        failures = [f"{tuple(cell.key)}\n{error}" for cell, error in self.failures]
        contents = {
            "per_seed.csv": csv_bytes(PER_SEED, self.per_seed),
            "summary.csv": csv_bytes(SUMMARY, self.summary),
            "diagnostics.csv": csv_bytes(DIAGNOSTICS, self.diagnostics),
            "trajectories.csv.gz": gzip.compress(trajectories, mtime=0),  # no time in the bytes
            "skipped.csv": csv_bytes(SKIPPED, self.skipped) if self.skipped else b"",
            "failures.txt": "\n".join(failures).encode(),
            "manifest.json": json.dumps(manifest, indent=1, allow_nan=False).encode() + b"\n",
        }
        for name, content in contents.items():
            if content:
                (folder / name).write_bytes(content)
            else:  # of an earlier run
                (folder / name).unlink(missing_ok=True)


def versions() -> dict[str, str]:
    """Return the versions of everything that may change the numbers."""
    found = {"halfseen": halfseen.__version__, "python": platform.python_version()}
    for name in ("numpy", "scipy", "numba", "scikit-learn", "joblib"):
        with suppress(metadata.PackageNotFoundError):  # the last two come with an extra
            found[name] = metadata.version(name)
    return found


def _summary(key: tuple[Any, ...], results: list[Result]) -> Row:
    regret = mean_of([result.final_regret for result in results if result.final_regret is not None])
    ranks = [result.final_rank for result in results if result.final_rank is not None]
    return _named(key) | {
        "n": len(results),
        "mean_regret": regret.mean,
        "se_regret": regret.standard_error,
        "mean_rank": mean_of(ranks).mean,
    }


def _over_time(key: tuple[Any, ...], results: list[Result]) -> Iterable[Row]:
    rounds = results[0].rounds if results else ()
    alike = [result for result in results if result.rounds == rounds]
    for index, round in enumerate(rounds):
        regret = mean_of([result.regret[index] for result in alike])
        rank = mean_of([r for result in alike if (r := result.ranks[index]) is not None])
        yield _named(key) | {
            "round": round,
            "n": len(alike),
            "mean_regret": regret.mean,
            "se_regret": regret.standard_error,
            "mean_rank": rank.mean,
            "se_rank": rank.standard_error,
        }


def _diagnostics(cell: Cell, result: Result) -> Iterable[Row]:
    for name, found in (result.diagnostics or {}).items():
        values = found if isinstance(found, list) else [found]
        for position, value in enumerate(values):
            if isinstance(value, int | float):
                yield cell.key._asdict() | {"name": name, "position": position, "value": value}


def _named(key: tuple[Any, ...]) -> Row:
    return dict(zip(_METHOD, key, strict=True))


def csv_bytes(columns: tuple[str, ...], rows: Iterable[Row]) -> bytes:
    """Return a table as the bytes of a file, the same for the same rows."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)  # floats in full, None as nothing
    return buffer.getvalue().encode()
