"""Tables in any form, also in files, as columns by name."""

import csv
import os
import random
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from halfseen.errors import InvalidTableError
from halfseen.frames.reading import Declared, Labels, frame_of, named_columns, nw
from halfseen.lazy import from_extra
from halfseen.values import FloatArray

FORMS = (
    "a data frame (pandas, polars, pyarrow), a list of dicts, a dict of columns, an array (n_rows, "
    "n_columns), or a path"
)

_BLOCK = 10_000  # rows of nested cells that are read at once
_MOST_DIGITS = 15  # of a whole number that is surely exact as a double
_MISSING = frozenset(("", "na", "nan", "null", "none", "n/a"))


def columns_of(table: Any) -> dict[str, Any]:
    """Return the columns of a table by name, as `cells_of` takes them.

    Raises
    ------
    InvalidTableError
        Names the form or the column got, and the remedy.

    Examples
    --------
    >>> columns_of([{"price": 3.0}, {"colour": "red"}])
    {'price': [3.0, None], 'colour': [None, 'red']}
    """
    if isinstance(table, str | os.PathLike):
        path = Path(table)
        table = _read_parquet(path) if is_parquet(path) else read_csv(path)[0]
    if isinstance(table, np.ndarray) and table.ndim == 2:
        table = {f"column {at}": column for at, column in enumerate(table.T)}
    if isinstance(table, list | tuple) and all(isinstance(row, Mapping) for row in table):
        table = {name: [row.get(name) for row in table] for name in dict.fromkeys(chain(*table))}
    if isinstance(table, Mapping):
        return named_columns(table.items())
    frame = frame_of(table, FORMS)
    return named_columns((name, frame.get_column(name)) for name in frame.columns)


def cells_of(column: Any, rows: Any = None) -> Any:
    """Return a column as an array of numbers or a list; nested cells one after the other."""
    column = nw.from_native(column, series_only=True, pass_through=True)
    if rows is not None:
        is_array = isinstance(column, np.ndarray | nw.Series)
        column = column[rows] if is_array else [column[row] for row in rows.tolist()]
    if not isinstance(column, nw.Series):
        return column
    if column.dtype.is_nested():
        return _blocks(column)
    if isinstance(column.dtype, nw.Categorical | nw.Enum):
        return Declared(column.cast(nw.String).to_list())
    cells = column.to_numpy() if column.dtype.is_numeric() else column.to_list()
    return cells if isinstance(cells, list) or cells.dtype.kind in "fiu" else cells.tolist()


def _blocks(series: Any) -> Iterator[Any]:
    """Yield lists or dicts, of which a whole column takes much more memory than in a frame."""
    for first in range(0, len(series), _BLOCK):
        yield from series[first : first + _BLOCK].to_list()


def is_parquet(path: Path) -> bool:
    """Return whether a file is Parquet, by its first bytes."""
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def _read_parquet(path: Path) -> Any:
    with from_extra("parquet"):
        from pyarrow.parquet import read_table
    try:
        return read_table(path)
    except ValueError as error:  # of pyarrow
        raise InvalidTableError(f"{path} cannot be read as Parquet: {error}") from None


def read_csv(
    path: Path, most: int | None = None, *, progress: bool = False
) -> tuple[dict[str, FloatArray | Labels], int]:
    """Return the columns of a CSV file, and its number of rows.

    Of more than `most` rows a uniform sample is kept, so that memory does not grow with the file.
    The first line says whether commas, semicolons, tabs or bars separate the cells.
    """
    opened: Any = open
    if progress:
        with from_extra("paper"):
            from rich.progress import open as opened
    how = {"description": "reading", "transient": True} if progress else {}
    try:
        with opened(path, encoding="utf-8-sig", newline="", **how) as lines:
            return _sampled(lines, most)
    except (ValueError, csv.Error) as error:
        raise InvalidTableError(f"{path} cannot be read as CSV: {error}") from None


def _sampled(lines: Iterator[str], most: int | None) -> tuple[dict[str, FloatArray | Labels], int]:
    head = next(lines, "")
    delimiter = max(",;\t|", key=head.count)
    names = next(csv.reader([head], delimiter=delimiter), [])
    draw, n = random.Random(0), 0  # noqa: S311 (a sample, no secret)
    kept: list[list[str]] = []
    for cells in csv.reader(lines, delimiter=delimiter):
        if not cells:
            continue
        if len(cells) != len(names):
            raise ValueError(
                f"row {n} has {len(cells)} cells, and the first line {len(names)} names"
            )
        n += 1
        if most is None or n <= most:
            kept.append(cells)
        elif (place := draw.randrange(n)) < most:
            kept[place] = cells
    columns = zip(*kept, strict=True) if kept else [()] * len(names)
    return named_columns(zip(names, map(parsed, columns), strict=True)), n


def parsed(cells: Iterable[str | None]) -> FloatArray | Labels:
    """Return numbers if all seen cells are, else strings.

    Names such as "1_2", and whole numbers too long for a double, remain strings.

    >>> parsed(["1.5", "", "NA"]), parsed(["red", " "]), parsed(["1_2"])
    (array([1.5, nan, nan]), ['red', None], ['1_2'])
    """
    words = [(cell or "").strip() for cell in cells]
    seen = [None if word.lower() in _MISSING else word for word in words]
    if any("_" in word or (len(word) > _MOST_DIGITS and word.isdigit()) for word in words):
        return seen
    try:
        return np.array([np.nan if cell is None else float(cell) for cell in seen])
    except ValueError:
        return seen
