"""Reads frames, dictionaries and arrays into rows."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np

from halfseen.errors import HalfseenError, InvalidTableError
from halfseen.frames.cells import PLAIN, read_cells
from halfseen.frames.rows import Item, Labels, Rows, checked_items
from halfseen.values import FloatArray, Slate

FORMS = (
    "a data frame (pandas, polars, pyarrow), a list of dicts, a dict of columns, an array "
    "(n_options, n_columns), or a list of ids"
)

# Up to so many cells the rows of a polars frame are read as tuples: its `to_numpy` wakes a pool of
# threads, which takes longer.
_SMALL = 1000


@dataclass(frozen=True)
class Reader:
    """Reads tables.

    Parameters
    ----------
    id : str, optional
        The column that names the options. By default the index of a frame does, or the position.
    ignore : collection of str
        Columns that are not read.
    categorical : collection of str
        Columns whose numbers are categories.
    unique : bool
        Whether ids must differ, as those of options do, but not those of a log.

    Examples
    --------
    >>> rows = Reader(id="sku").read([{"sku": "a", "price": 3.0}, {"sku": "b", "colour": "red"}])
    >>> rows.items, rows.names, rows.columns
    (['a', 'b'], ('price', 'colour'), [array([ 3., nan]), [None, 'red']])
    """

    id: str | None = None
    ignore: frozenset[str] = frozenset()
    categorical: frozenset[str] = frozenset()
    unique: bool = True

    def read(self, options: Any) -> Rows:
        """Return the rows of a table.

        Raises
        ------
        InvalidTableError
            Names the column or the row, the value got, and the remedy.
        """
        try:
            rows = self._read(options)
        except HalfseenError:
            raise
        except Exception as error:  # the objects' own code runs here, and may raise anything
            raise InvalidTableError(
                f"the table cannot be read: {type(error).__name__}: {error}"
            ) from None
        if not rows.items:
            raise InvalidTableError("there must be at least one row, got a table without any")
        return rows

    def read_row(self, row: Any) -> Rows:
        """Return one row: a dict, a series, an array of one dimension, or a table of one row.

        Raises
        ------
        InvalidTableError
            Also if there is not exactly one row, or its columns have no names.
        """
        if isinstance(row, Mapping) and not any(_is_column(each) for each in row.values()):
            row = [row]
        elif isinstance(row, np.ndarray) and row.ndim == 1:
            row = row[None]
        elif hasattr(row, "to_dict") and hasattr(row, "index") and not hasattr(row, "columns"):
            if not row.index.is_unique:  # a series of pandas
                raise twice(str(row.index[row.index.duplicated()][0]))
            row = [row.to_dict()]
        elif isinstance(row, str | bytes) or not hasattr(row, "__len__"):
            raise InvalidTableError(
                "a context must be a dict, a series, an array of one dimension, or a table of one "
                f"row, got {type(row).__name__} {row!r:.40}"
            )
        rows = self.read_contexts(row)
        if len(rows.items) != 1:
            raise InvalidTableError(
                f"a context must be one row, which all options share, got {len(rows.items)}: what "
                "differs between options belongs to the options"
            )
        return rows

    def read_contexts(self, table: Any) -> Rows:
        """Return the rows of a table without ids, whose columns must have names."""
        if hasattr(table, "reset_index") and hasattr(table, "columns"):
            table = table.reset_index(drop=True)
        first = table[0] if isinstance(table, list | tuple) and table else table
        if isinstance(first, Mapping) or _is_column(first):
            rows = replace(self, id=None, unique=False).read(table)
            if rows.names:
                return rows
        raise InvalidTableError(
            f"a context must have columns with names, got {table!r:.60}: pass a dict such as "
            "{'country': 'DE'}, or a table"
        )

    def _read(self, options: Any) -> Rows:
        if type(options).__module__.partition(".")[0] in ("pandas", "polars", "pyarrow"):
            return self._of_numbers(options) or self._of_frame(options)
        if isinstance(options, Mapping):
            return self._of_columns(options)
        if isinstance(options, np.ndarray) and options.ndim == 1 and options.dtype.kind in "iuUO":
            options = options.tolist()  # ids alone
        if isinstance(options, list | tuple):
            if not options:
                return Rows([], (), [])
            if isinstance(options[0], Mapping):
                return self._of_dicts(options)
            if isinstance(options[0], str | int | np.integer):
                return Rows(self.items(options, "the list of options"), (), [])
        if isinstance(options, np.ndarray | Slate | list | tuple):
            return self._of_array(options)
        return self._of_frame(options)

    def _of_numbers(self, frame: Any) -> Rows | None:
        """Return a frame of numbers alone; None for all others, which take longer."""
        names, values = _numeric_block(frame)
        if values is None or self.id is not None or self._is_special(names):
            return None
        items: list[Item] = list(range(len(values)))
        if (index := getattr(frame, "index", None)) is not None:
            items = self.items(index.tolist(), "the index")
        return Rows(items, names, values)

    def _is_special(self, names: tuple[Any, ...]) -> bool:
        """Return whether some columns are not read, or not as they are."""
        if not {str}.issuperset(map(type, names)):
            return True
        return not (self.ignore.isdisjoint(names) and self.categorical.isdisjoint(names))

    def _of_frame(self, options: Any) -> Rows:
        from halfseen.frames.frames import read_frame  # loads narwhals

        return read_frame(options, self)

    def _of_array(self, options: Any) -> Rows:
        table = Slate.of(options)._table
        names = tuple(map(str, range(table.shape[1])))
        if self._is_special(names) or self.id is not None:
            return self._of_columns(dict(zip(names, table.T, strict=True)))
        return Rows(list(range(len(table))), names, table)

    def _of_dicts(self, rows: Sequence[Any]) -> Rows:
        for index, row in enumerate(rows):
            if not isinstance(row, Mapping):
                raise InvalidTableError(
                    f"every option must be a dict if the first one is, got {type(row).__name__} in "
                    f"row {index}"
                )
        names = tuple(rows[0])
        if any(row.keys() != rows[0].keys() for row in rows):
            names = tuple(dict.fromkeys(name for row in rows for name in row))
        if not self._is_special(names):
            features = tuple(name for name in names if name != self.id)
            cells = _cells(rows, features)
            if PLAIN.issuperset(map(type, cells)) and features:
                ids = {name: [row.get(name) for row in rows] for name in names if name == self.id}
                items = self.ids_in(ids or dict.fromkeys(names), len(rows))
                with suppress(OverflowError):
                    table = np.array(cells, dtype=np.float64)
                    return Rows(items, features, table.reshape(len(rows), -1))
        columns = {name: [row.get(name) for row in rows] for name in names}
        return self._of_columns(columns, len(rows))

    def _of_columns(self, columns: Mapping[Any, Any], n_rows: int | None = None) -> Rows:
        """Return a dictionary of columns of equal lengths."""
        for name, cells in columns.items():
            if not _is_column(cells):
                raise InvalidTableError(
                    f"column {str(name)!r} of a dict must be a list or an array, got "
                    f"{type(cells).__name__}: a table is columns {{'price': [3, 4]}}, or a list "
                    "of dicts [{'price': 3}, {'price': 4}], also if it has only one row"
                )
            n_rows = len(cells) if n_rows is None else n_rows
            if len(cells) != n_rows:
                raise InvalidTableError(
                    f"columns must have equal lengths, got {len(cells)} cells in {str(name)!r} and "
                    f"{n_rows} in {str(next(iter(columns)))!r}"
                )
        items = self.ids_in(columns, n_rows or 0)
        read: dict[str, FloatArray | Labels] = {}
        for name, cells in columns.items():
            text = str(name)
            if text in read:
                raise twice(text)
            if self.reads(text):
                read[text] = read_cells(text, cells, categorical=text in self.categorical)
        return Rows(items, tuple(read), list(read.values()))

    def reads(self, name: str) -> bool:
        """Return whether a column is one of features."""
        return name != self.id and name not in self.ignore

    def ids_in(self, columns: Mapping[Any, Any], n_rows: int) -> list[Item]:
        """Return the ids of rows from their column, or their positions."""
        if self.id is None:
            return list(range(n_rows))
        if self.id not in columns:
            known = ", ".join(repr(str(name)) for name in list(columns)[:10])
            raise InvalidTableError(
                f"the id column {self.id!r} is not in the table, which has {known or 'no columns'}:"
                " add it, or make an agent with another id=…"
            )
        return self.items(columns[self.id], f"column {self.id!r}")

    def items(self, values: Any, source: str) -> list[Item]:
        """Return ids after checking them."""
        return checked_items(values, source, unique=self.unique)


def _is_column(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, str | bytes | Mapping)


def _numeric_block(frame: Any) -> tuple[tuple[str, ...], FloatArray | None]:
    """Return names and values of a frame if its columns are numbers without need of conversion."""
    kind = type(frame)  # pandas looks for attributes that an object lacks among its columns
    is_arrow = hasattr(kind, "column_names")
    if not is_arrow and not (hasattr(kind, "to_numpy") and hasattr(frame, "columns")):
        return (), None
    columns = frame.column_names if is_arrow else frame.columns
    names = tuple(columns.tolist() if hasattr(columns, "tolist") else columns)
    try:
        if is_arrow:
            (batch,) = frame.combine_chunks().to_batches()
            values = batch.to_tensor(null_to_nan=True).to_numpy()
        elif not _all_numbers(frame.dtypes):
            return names, None  # such as dates and categories, which may become numbers silently
        elif hasattr(kind, "rows") and len(frame) * len(names) <= _SMALL:
            values = np.array(frame.rows(), dtype=np.float64)
        else:
            values = frame.to_numpy()
    except (AttributeError, TypeError, ValueError):  # other kinds of columns, or no rows
        return names, None
    if values.dtype.kind not in "fiub" or len(set(names)) < len(names):
        return names, None
    return names, values.astype(np.float64, copy=False)


def _all_numbers(dtypes: Any) -> bool:
    """Return whether all dtypes of a pandas or polars frame are those of numbers."""
    if isinstance(dtypes, list):  # of polars
        kinds: set[Any] = set(map(type, dtypes))
        return all(kind.is_numeric() for kind in kinds)
    return all(kind.kind in "fiub" for kind in set(dtypes.tolist()))


def _cells(rows: Sequence[Any], names: tuple[str, ...]) -> list[Any]:
    """Return the cells of all rows, row by row; None where a key is absent."""
    if len(names) > 1:
        getter, cells = itemgetter(*names), []
        try:
            for row in rows:
                cells.extend(getter(row))
            return cells
        except KeyError:
            pass
    return [row.get(name) for row in rows for name in names]


def twice(name: str) -> InvalidTableError:
    """Return the error for two columns of one name."""
    return InvalidTableError(
        f"column {name!r} is there twice: names decide what a column is, so rename or remove one"
    )
