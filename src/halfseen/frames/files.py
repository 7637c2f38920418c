"""Tables in any form, also in files, as columns by name."""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from halfseen.errors import InvalidTableError
from halfseen.frames.encoder import is_numeral
from halfseen.frames.reading import Category, frame_of, named_columns, nw, read_cells
from halfseen.lazy import from_extra
from halfseen.values import BoolArray, FloatArray

_BLOCK = 10_000  # rows of nested cells that are read at once


def columns_of(table: Any, *, progress: bool = False) -> dict[str, Any]:
    """Return the columns of a table by name, as `cells_of` takes them.

    With `progress`, a bar shows how much of a CSV file is read.

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
        table = _read_file(Path(table), progress)
    if isinstance(table, np.ndarray) and table.ndim == 2:
        table = {str(at): column for at, column in enumerate(table.T)}
    if isinstance(table, list | tuple) and all(isinstance(row, Mapping) for row in table):
        table = {name: [row.get(name) for row in table] for name in dict.fromkeys(chain(*table))}
    if isinstance(table, Mapping):
        return named_columns(table.items())
    frame = frame_of(table)
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
        return Category(column.cast(nw.String).to_list())
    cells = column.to_numpy() if column.dtype.is_numeric() else column.to_list()
    return cells if isinstance(cells, list) or cells.dtype.kind in "fiu" else cells.tolist()


def numbers_of(
    name: str, column: Any, want: str, fits: Callable[[FloatArray], BoolArray], first: int = 0
) -> FloatArray:
    """Return a column of numbers, NaN where a cell is empty, after checking each.

    `first` is the number of the first row, for messages.
    """
    cells: Any = read_cells(name, cells_of(column))
    is_list = isinstance(cells, list)
    good = [each is None or is_numeral(each) for each in cells] if is_list else fits(cells)
    if not np.all(good):
        row = int(np.argmin(good))
        raise InvalidTableError(
            f"column {name!r} must be {want}, got {cells[row]} in row {first + row}: correct it, "
            "or leave out the column or the row"
        )
    return np.asarray(cells, dtype=np.float64)


def _blocks(series: Any) -> Iterator[Any]:
    """Yield lists or dicts, of which a whole column takes much more memory than in a frame."""
    for first in range(0, len(series), _BLOCK):
        yield from series[first : first + _BLOCK].to_list()


def _read_file(path: Path, progress: bool) -> Any:
    """Return a frame from Parquet, or from a CSV file whose first line shows what separates cells.

    The first bytes of a file say which of them it is.
    """
    with path.open("rb") as file:
        first = file.readline()
    if first.startswith(b"PAR1"):
        with from_extra("parquet"):
            from pyarrow.parquet import read_table
        try:
            return read_table(path)
        except ValueError as error:  # of pyarrow
            raise InvalidTableError(f"{path} cannot be read as Parquet: {error}") from None
    if first.lstrip().startswith((b"{", b"[")):
        raise InvalidTableError(
            f"{path} looks like JSON: read it with pandas.read_json(path, lines=True), or save it "
            "as CSV or Parquet"
        )
    with from_extra("paper"):
        import pandas as pd
        from rich.progress import open as opened
    try:
        how: Any = {
            "sep": max(",;\t|", key=first.decode("utf-8-sig").count),
            "skipinitialspace": True,
        }
        names = pd.read_csv(path, header=None, nrows=1, dtype=str, **how).iloc[0].fillna("")
        with (
            opened(path, "rb", description="reading", transient=True, disable=not progress) as file,
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("error", pd.errors.ParserWarning)  # of more cells than names
            frame = pd.read_csv(file, index_col=False, low_memory=False, **how)
    except (ValueError, pd.errors.ParserWarning) as error:  # pandas' own errors are ValueErrors
        raise InvalidTableError(f"{path} cannot be read as CSV: {error}") from None
    return frame.set_axis(names, axis=1)  # pandas calls the second "a" of two "a.1"
