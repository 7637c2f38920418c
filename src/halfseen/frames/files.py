"""Tables in any form, also in files, as columns by name."""

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from halfseen.errors import InvalidTableError
from halfseen.frames.cells import Category, is_numeral, read_cells
from halfseen.lazy import LazyModule, from_extra
from halfseen.values import BoolArray, FloatArray

nw = LazyModule("narwhals")  # which most requests do not need

FORMS = (
    "a data frame (pandas, polars, pyarrow), a list of dicts, a dict of columns, or an array "
    "(n_rows, n_columns)"
)

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
    return columns_in(table)


def columns_in(table: Any) -> dict[str, Any]:
    """Return the columns of a table in memory, as `columns_of` does."""
    if isinstance(table, np.ndarray) and table.ndim == 2:
        table = {str(at): column for at, column in enumerate(table.T)}
    if isinstance(table, list | tuple) and table and isinstance(table[0], Mapping):
        for at, row in enumerate(table):
            if not isinstance(row, Mapping):
                raise InvalidTableError(
                    f"every row must be a dict if the first one is, got {type(row).__name__} in "
                    f"row {at}"
                )
        names = dict.fromkeys(chain.from_iterable(table))
        table = {name: [row.get(name) for row in table] for name in names}
    if isinstance(table, Mapping):
        return _named(table.items())
    frame = _frame_of(table)
    return {str(name): column for name, column in frame.to_dict().items()}


def cells_of(column: Any, rows: Any = None) -> Any:
    """Return a column as an array of numbers or a list; nested cells one after the other."""
    if isinstance(column, list):
        return column if rows is None else [column[row] for row in rows.tolist()]
    if isinstance(column, np.ndarray):
        return column if rows is None else column[rows]
    if not isinstance(column, nw.Series):
        column = nw.from_native(column, series_only=True, pass_through=True)
    if not isinstance(column, nw.Series):  # a tuple, or a sequence of the user's own
        return column if rows is None else [column[row] for row in rows.tolist()]
    column = column if rows is None else column[rows]
    kind = column.dtype
    if kind.is_nested():
        return _blocks(column)
    if isinstance(kind, nw.Categorical | nw.Enum):
        return Category(column.to_list())
    cells = column.to_numpy() if kind.is_numeric() else column.to_list()
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


def distinct(columns: Iterable[Any]) -> list[str]:
    """Return names of columns as strings after checking that they differ."""
    names = list(map(str, columns))
    if len(set(names)) < len(names):
        raise twice(next(name for name in names if names.count(name) > 1))
    return names


def twice(name: str) -> InvalidTableError:
    """Return the error for two columns with one name."""
    return InvalidTableError(
        f"column {name!r} appears twice: names decide what a column is, so rename or remove one"
    )


def _frame_of(native: Any) -> Any:
    """Return a data frame of narwhals.

    Raises
    ------
    InvalidTableError
        Says that a table must have one of the forms.
    """
    if not hasattr(native, "collect"):  # lazy
        names = "column_names" if hasattr(native, "column_names") else "columns"
        distinct(getattr(native, names, ()))
    frame = nw.from_native(native, pass_through=True, allow_series=True)
    if isinstance(frame, nw.DataFrame):
        return frame
    if isinstance(frame, nw.LazyFrame):
        raise InvalidTableError("the table is lazy: call .collect() on it first")
    if isinstance(frame, nw.Series):
        raise InvalidTableError(
            f"one column is not a table, which must be {FORMS}; one row of a pandas frame is "
            "frame.loc[[label]]"
        )
    raise InvalidTableError(f"a table must be {FORMS}, got {type(native).__name__}")


def _named(columns: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    """Return columns by name after checking that names differ and lengths do not."""
    read: dict[str, Any] = {}
    n_rows = None
    for name, cells in columns:
        cells = _as_column(name, cells)
        n_rows = len(cells) if n_rows is None else n_rows
        if len(cells) != n_rows:
            raise InvalidTableError(
                f"columns must have equal lengths, got {len(cells)} cells in {str(name)!r} and "
                f"{n_rows} in {next(iter(read))!r}"
            )
        if str(name) in read:
            raise twice(str(name))
        read[str(name)] = cells
    return read


def _as_column(name: Any, cells: Any) -> Any:
    """Return the cells of a column of a dict after checking its form; masked ones are None."""
    n_axes = getattr(cells, "ndim", 1)
    if not is_column(cells) or n_axes != 1:
        got = f"an array of {n_axes} dimensions" if n_axes != 1 else type(cells).__name__
        raise InvalidTableError(
            f"column {str(name)!r} of a dict must be a list or an array of one dimension, got "
            f"{got}: a table is columns {{'price': [3, 4]}}, or a list of dicts [{{'price': 3}}, "
            "{'price': 4}], also if it has only one row"
        )
    return cells.tolist() if isinstance(cells, np.ma.MaskedArray) else cells


def is_column(value: Any) -> bool:
    """Return whether something has the cells of a column."""
    return hasattr(value, "__len__") and not isinstance(value, str | bytes | Mapping)


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
