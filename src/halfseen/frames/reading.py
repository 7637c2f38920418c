"""Reads frames, dictionaries and arrays into rows: one item per row, columns by name."""

import datetime
import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from numbers import Real
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from halfseen.errors import HalfseenError, InvalidTableError
from halfseen.lazy import LazyModule
from halfseen.values import FloatArray, Item, Slate
from halfseen.values.slate import as_table

nw = LazyModule("narwhals")  # which most requests do not need

Labels = list[str | None]
"""A column of categories; None where hidden."""


class Rows(NamedTuple):
    """The rows of a table.

    Attributes
    ----------
    items : list
        The id of each row.
    names : tuple of str
        The columns, in the order of the table.
    columns : ndarray, shape (n_rows, n_columns), or list of columns
        One array if all columns are numbers. Otherwise one entry per column: numbers with NaN where
        hidden, shape (n_rows,), or labels.
    """

    items: list[Item]
    names: tuple[str, ...]
    columns: FloatArray | list[FloatArray | Labels]

    @property
    def is_block(self) -> bool:
        """Whether all columns are numbers in one array."""
        return isinstance(self.columns, np.ndarray)

    def values(self) -> list[FloatArray | Labels]:
        """Return one entry per column."""
        return list(self.columns.T) if isinstance(self.columns, np.ndarray) else self.columns

    @property
    def is_named(self) -> bool:
        """Whether ids say who an option is: texts do, whole numbers may count rows."""
        return all(isinstance(item, str) for item in self.items)

    def numbers(self) -> list[int]:
        """Return a number for each id, the same in every process."""
        return [_number(item) for item in self.items]

    def part(self, start: int, stop: int) -> "Rows":
        """Return some of the rows."""
        if isinstance(self.columns, np.ndarray):
            return Rows(self.items[start:stop], self.names, self.columns[start:stop])
        return Rows(self.items[start:stop], self.names, [part[start:stop] for part in self.columns])

    def to_dict(self) -> dict[str, Any]:
        """Return the rows as plain JSON types; hidden values are None."""
        columns = [
            [None if value != value else value for value in column.tolist()]
            if isinstance(column, np.ndarray)
            else column
            for column in self.values()
        ]
        return {"items": self.items, "names": list(self.names), "columns": columns}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "Rows":
        """Return the rows that `to_dict` made plain."""
        columns: list[FloatArray | Labels] = [
            values
            if any(isinstance(value, str) for value in values)
            else np.array(values, dtype=np.float64)
            for values in plain["columns"]
        ]
        return cls(plain["items"], tuple(plain["names"]), columns)


@lru_cache(maxsize=65536, typed=True)
def _number(item: Item) -> int:
    """Return a whole number below 2⁵³ that stands for an id; 3 and "3" have different ones."""
    text = f"{type(item).__name__} {item}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") >> 11


def checked_items(values: Any, source: str, *, unique: bool = True) -> list[Item]:
    """Return ids after checking that each is a text or a whole number, and maybe unique.

    >>> checked_items([1, 2.0, "a"], "the index")
    [1, 2, 'a']
    """
    items = [_item(value, row, source) for row, value in enumerate(values)]
    if unique and len(set(items)) < len(items):
        first: dict[Item, int] = {}
        again = next(row for row, item in enumerate(items) if first.setdefault(item, row) != row)
        raise InvalidTableError(
            f"{source} has {items[again]!r} twice, in rows {first[items[again]]} and {again}: an "
            "id must name one option, so make ids unique, or number the options "
            "(reset_index(drop=True) in pandas)"
        )
    return items


def _item(value: Any, row: int, source: str) -> Item:
    if type(value) is int or type(value) is str:
        return value
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str | int) and not isinstance(value, bool):
        return str(value) if isinstance(value, str) else int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise InvalidTableError(
        f"{source} must hold texts or whole numbers as ids, got {value!r} in row {row}: convert "
        "it, or name another column with id=…"
    )


# Tables

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
        if type(options) is np.ndarray and options.ndim == 2:
            return self._of_array(options)
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
        return read_frame(options, self)

    def _of_array(self, options: Any) -> Rows:
        # A copy in any case: the encoder checks the values.
        is_plain = type(options) is np.ndarray
        table = as_table(options).copy() if is_plain else Slate.of(options)._table
        names = _positions(table.shape[1])
        if self.id is not None or self.ignore or self.categorical:
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


@lru_cache
def _positions(n: int) -> tuple[str, ...]:
    return tuple(map(str, range(n)))


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


# Data frames of any library that narwhals knows, column by column


def read_frame(native: Any, reader: Reader) -> Rows:
    """Return the rows of a data frame."""
    frame = _frame(native)
    kinds = {name: kind for name, kind in frame.schema.items() if reader.reads(str(name))}
    # All columns of floats at once, which saves most of the time.
    floats = [
        name
        for name, kind in kinds.items()
        if kind.is_float() and str(name) not in reader.categorical
    ]
    read: dict[str, FloatArray | Labels] = {str(name): [] for name in kinds}
    if floats:
        block = np.asarray(frame.select(*floats).to_numpy(), dtype=np.float64)
        read.update(zip(map(str, floats), block.T, strict=True))
    for name in kinds.keys() - set(floats):
        column, categorical = frame.get_column(name), str(name) in reader.categorical
        read[str(name)] = _values(str(name), column, kinds[name], categorical)
    return Rows(_items(frame, reader), tuple(read), list(read.values()))


def _frame(native: Any) -> Any:
    if hasattr(native, "set_axis") and hasattr(native, "columns"):  # pandas, with any names
        native = native.set_axis([str(name) for name in native.columns], axis=1)
    try:
        frame = nw.from_native(native, pass_through=True, allow_series=True)
    except Exception as error:  # the object's own code runs here; or two columns have one name
        _check_names(getattr(native, "column_names", getattr(native, "columns", ())))
        raise InvalidTableError(f"the table cannot be read: {error}") from None
    if isinstance(frame, nw.DataFrame):
        _check_names(frame.columns)
        return frame
    if isinstance(frame, nw.LazyFrame):
        raise InvalidTableError("the table is lazy: call .collect() on it first")
    if isinstance(frame, nw.Series):
        raise InvalidTableError(
            "one column is no table: options must be "
            f"{FORMS}; one row of a pandas frame is frame.loc[[label]]"
        )
    raise InvalidTableError(f"options must be {FORMS}, got {type(native).__name__}")


def _check_names(names: Iterable[Any]) -> None:
    texts = [str(name) for name in names]
    if len(set(texts)) < len(texts):
        raise twice(next(text for text in texts if texts.count(text) > 1))


def _items(frame: Any, reader: Reader) -> list[Item]:
    if reader.id is not None:
        found = {name: None for name in frame.columns if name != reader.id}
        if len(found) < len(frame.columns):
            found[reader.id] = frame.get_column(reader.id).to_list()
        return reader.ids_in(found, len(frame))
    index = nw.maybe_get_index(frame)
    if index is None:
        return list(range(len(frame)))
    return reader.items(index.tolist(), "the index")


def _values(name: str, column: Any, kind: Any, categorical: bool) -> FloatArray | Labels:
    if kind.is_temporal():
        raise date_refusal(name, f"got {kind}")
    if kind.is_nested():
        raise nested_refusal(name, f"got {kind}")
    if kind in (nw.Categorical, nw.Enum):
        return read_cells(name, column.to_list(), categorical=True)
    if not categorical and (kind.is_numeric() or kind == nw.Boolean):
        numbers = column.to_numpy()
        if numbers.dtype.kind in "fiub":  # not so for decimals, or booleans with holes
            return np.asarray(numbers, dtype=np.float64)
    return read_cells(name, column.to_list(), categorical=categorical)


# Single cells: missing, a number, a label, or refused with a remedy

_MISSING_TYPES = ("NAType", "NaTType")  # of pandas, which need not be installed
PLAIN = frozenset((float, int, bool, type(None)))
_DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
_NESTED = (list, dict, tuple, set, frozenset, np.ndarray)

IGNORE = "or list the column in ignore=[…]"


def read_cells(name: str, cells: Iterable[Any], *, categorical: bool) -> FloatArray | Labels:
    """Return cells of one column as numbers or labels.

    >>> read_cells("colour", ["red", None, float("nan")], categorical=False)
    ['red', None, None]
    >>> read_cells("size", [1, True, None], categorical=False)
    array([ 1.,  1., nan])
    """
    if isinstance(cells, np.ndarray):
        if cells.dtype.kind in "fiub" and not categorical:
            return np.asarray(cells, dtype=np.float64)
        cells = cells.tolist()
    cells = list(cells)
    if not categorical and PLAIN.issuperset(map(type, cells)):
        return _as_numbers(cells)
    cells = [None if is_missing(cell) else cell for cell in cells]
    seen = [cell for cell in cells if cell is not None]
    if categorical:
        return [None if cell is None else label_of(name, cell) for cell in cells]
    if all(isinstance(cell, str) for cell in seen):
        return [None if cell is None else str(cell) for cell in cells]
    for row, cell in enumerate(cells):
        if cell is not None and not is_number(cell):
            raise refusal(name, cell, row)
    return _as_numbers(cells)


def _as_numbers(cells: list[Any]) -> FloatArray:
    try:
        return np.array(cells, dtype=np.float64)
    except OverflowError:  # a whole number too large for a float is refused later, as infinite
        return np.array([_as_float(cell) for cell in cells])


def _as_float(cell: Any) -> float:
    try:
        return math.nan if cell is None else float(cell)
    except OverflowError:
        return math.inf


def is_missing(cell: Any) -> bool:
    """Return whether a cell is hidden: None, NaN, NA or NaT."""
    if cell is None or type(cell).__name__ in _MISSING_TYPES:
        return True
    if isinstance(cell, Decimal):
        return cell.is_nan()
    if isinstance(cell, float | np.floating):
        return bool(cell != cell)
    return isinstance(cell, np.datetime64 | np.timedelta64) and bool(np.isnat(cell))


def is_number(cell: Any) -> bool:
    """Return whether a cell is a real number or a boolean."""
    return isinstance(cell, Real | Decimal | np.bool_) and not isinstance(cell, np.timedelta64)


def label_of(name: str, cell: Any) -> str:
    """Return the level of a cell in a category: 3, 3.0 and "3" are the same.

    >>> label_of("size", 3.0), label_of("size", True), label_of("size", 2.5)
    ('3', 'True', '2.5')
    """
    if isinstance(cell, np.generic):
        cell = cell.item()
    if isinstance(cell, str | int):  # or a boolean
        return str(cell)
    if not is_number(cell):
        raise refusal(name, cell, None)
    return str(int(cell)) if math.isfinite(cell) and cell == int(cell) else str(float(cell))


def refusal(name: str, cell: Any, row: int | None) -> InvalidTableError:
    """Return the error for a cell that is neither number nor label."""
    where = "" if row is None else f" in row {row}"
    got = f"got {type(cell).__name__} {_short(cell)}{where}"
    if isinstance(cell, str):
        return InvalidTableError(
            f"column {name!r} must be numbers or texts, not both, got the text {_short(cell)}"
            f"{where}: correct it, leave it empty, or list the column in categorical=[…]"
        )
    if isinstance(cell, _DATES):
        return date_refusal(name, got)
    if isinstance(cell, _NESTED):
        return nested_refusal(name, got)
    return InvalidTableError(
        f"column {name!r} must be numbers, booleans or texts, {got}: convert it, {IGNORE}"
    )


def date_refusal(name: str, got: str) -> InvalidTableError:
    """Return the error for dates and times."""
    return InvalidTableError(
        f"column {name!r} must not be dates or times, {got}: turn it into numbers, such as an age "
        f"in days or the hour of the day, {IGNORE}"
    )


def nested_refusal(name: str, got: str) -> InvalidTableError:
    """Return the error for lists, structures and arrays."""
    return InvalidTableError(
        f"column {name!r} must not be nested, {got}: give each part a column of its own, {IGNORE}"
    )


def _short(cell: Any) -> str:
    text = repr(cell)
    return text if len(text) <= 40 else f"{text[:37]}…"
