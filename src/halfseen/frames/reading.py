"""Reads frames, dictionaries and arrays into rows: one item per row, columns by name."""

import datetime
import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from itertools import chain
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from halfseen import checks
from halfseen.errors import HalfseenError, InvalidTableError
from halfseen.lazy import LazyModule
from halfseen.values import FloatArray, Item, Slate
from halfseen.values.decision import listed
from halfseen.values.slate import as_table

nw = LazyModule("narwhals")  # which most requests do not need

Labels = list[str | None]
"""A column of categories; None where hidden."""


class Category(list[str | None]):
    """Labels of a column that was declared a category: they may well be numbers."""


class Rows(NamedTuple):
    """The rows of a table.

    Attributes
    ----------
    items : list
        The id of each row.
    names : tuple of str
        The columns, in the order of the table.
    columns : list
        Of each column its numbers, NaN where hidden, shape (n_rows,), or its labels.
    """

    items: list[Item]
    names: tuple[str, ...]
    columns: list[FloatArray | Labels]

    @property
    def is_named(self) -> bool:
        """Whether ids say who an option is: all but 0, 1, 2, …, which count rows."""
        return self.items != list(range(len(self.items)))

    def numbers(self) -> list[int]:
        """Return a number for each id, the same in every process."""
        return [_number(item) for item in self.items]

    def to_dict(self) -> dict[str, Any]:
        """Return the rows as plain JSON types; hidden values are None."""
        columns = [
            [None if value != value else value for value in column.tolist()]
            if isinstance(column, np.ndarray)
            else column
            for column in self.columns
        ]
        return {"items": self.items, "names": list(self.names), "columns": columns}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "Rows":
        """Return the rows that `to_dict` made plain, which somebody accepted before."""
        columns: list[FloatArray | Labels] = [
            Category(values)
            if any(isinstance(value, str) for value in values)
            else np.array(values, dtype=np.float64)
            for values in plain["columns"]
        ]
        return cls(plain["items"], tuple(plain["names"]), columns)


@lru_cache(maxsize=65536, typed=True)
def _number(item: Item) -> int:
    """Return a whole number below 2⁵³ that stands for an id; 3 and "3" have different ones."""
    text = f"{type(item).__name__} {item}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") >> 11


# Tables

FORMS = (
    "a data frame (pandas, polars, pyarrow), a list of dicts, a dict of columns, or an array "
    "(n_rows, n_columns)"
)


@dataclass(frozen=True)
class Reader:
    """Reads tables.

    Parameters
    ----------
    id : str, optional
        The column, or index, that names the options. By default any index of a frame does, or the
        position.
    ignore : collection of str
        Columns that are not read.
    categorical : collection of str
        Columns whose numbers are categories.
    numeric : collection of str
        Columns whose strings are numbers; an empty string is missing.
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
    numeric: frozenset[str] = frozenset()
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
        check_strings(rows.names, "the header")
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
                raise _twice(str(row.index[row.index.duplicated()][0]))
            row = [row.to_dict()]
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
                return Rows(self._items(options, "the list of options"), (), [])
        if isinstance(options, np.ndarray | Slate | list | tuple):
            return self._of_array(options)
        return self._of_frame(options)

    def _of_array(self, options: Any) -> Rows:
        # A copy in any case: the encoder checks the values.
        is_plain = type(options) is np.ndarray
        table = as_table(options).copy() if is_plain else Slate.of(options).table
        names = tuple(map(str, range(table.shape[1])))
        if self.id is not None or self.ignore or self.categorical:
            return self._of_columns(dict(zip(names, table.T, strict=True)))
        return Rows(list(range(len(table))), names, list(table.T))

    def _of_dicts(self, rows: Sequence[Any]) -> Rows:
        for index, row in enumerate(rows):
            if not isinstance(row, Mapping):
                raise InvalidTableError(
                    f"every option must be a dict if the first one is, got {type(row).__name__} in "
                    f"row {index}"
                )
        names = dict.fromkeys(chain.from_iterable(rows))
        columns = {name: [row.get(name) for row in rows] for name in names}
        return self._of_columns(columns, len(rows))

    def _of_columns(self, columns: Mapping[Any, Any], n_rows: int | None = None) -> Rows:
        """Return a dictionary of columns of equal lengths."""
        read = named_columns(columns.items())
        n_rows = len(next(iter(read.values()))) if read else n_rows or 0
        items = self._ids_in(read, n_rows)
        read = {name: cells for name, cells in read.items() if self._is_feature(name)}
        labelled = [name for name, cells in read.items() if _is_categorical(cells)]
        return Rows(items, tuple(read), self._values(read, labelled))

    def _of_frame(self, native: Any) -> Rows:
        """Return a data frame of any library that narwhals knows."""
        # Narwhals reads pandas at a fifth of the speed.
        is_pandas = hasattr(native, "set_axis") and hasattr(native, "columns")
        frame = native if is_pandas else frame_of(native)
        given = listed(frame.columns)
        names = _distinct(given)
        if names != given:
            frame = frame.set_axis(names, axis=1)
        if is_pandas and self.id not in names and self.id in (None, frame.index.name):
            items = self._items(frame.index.tolist(), "the index")
        else:
            ids = {self.id: listed(frame[self.id])} if self.id in names else dict.fromkeys(names)
            items = self._ids_in(ids, len(frame))
        types = frame.dtypes.tolist() if is_pandas else frame.schema.values()
        kind_of = _kind_in_pandas if is_pandas else _kind_in_narwhals
        kinds = {}
        for name, type_ in zip(names, types, strict=True):
            if self._is_feature(name):
                kinds[name] = kind = kind_of(type_)
                if kind in ("date", "nested"):
                    raise _refusal(name, f"got {type_}", kind)
        if not kinds:
            return Rows(items, (), [])
        frame = frame if len(kinds) == len(names) else frame[list(kinds)]
        if {*kinds.values()} == {"number"} and self.categorical.isdisjoint(kinds):
            table = frame.to_numpy()
            if table.dtype.kind in "fiub":  # not so if some are missing in a nullable column
                table = table.astype(np.float64, copy=False)
                return Rows(items, tuple(kinds), list(table.T))
        if is_pandas:
            cells = frame.to_numpy(dtype=object).T.tolist()
            columns = dict(zip(kinds, cells, strict=True))
        else:
            columns = frame.to_dict(as_series=False)
        labelled = [name for name, kind in kinds.items() if kind == "category"]
        return Rows(items, tuple(kinds), self._values(columns, labelled))

    def _values(
        self, columns: Mapping[str, Any], labelled: Iterable[str] = ()
    ) -> list[FloatArray | Labels]:
        """Return the numbers or the labels of each column."""
        cells, categorical = list(columns.values()), self.categorical.union(labelled) - self.numeric
        if cells and categorical.isdisjoint(columns):
            with suppress(OverflowError):  # of a whole number
                if PLAIN.issuperset(map(type, chain.from_iterable(cells))):
                    return list(np.array(cells, dtype=np.float64))
        values = [
            read_cells(name, cells, name in categorical, name in self.numeric)
            for name, cells in columns.items()
        ]
        for name, column in zip(columns, values, strict=True):
            if isinstance(column, list):
                check_strings([label for label in column if label], f"column {name!r}")
        return values

    def _is_feature(self, name: str) -> bool:
        return name != self.id and name not in self.ignore

    def _ids_in(self, columns: Mapping[str, Any], n_rows: int) -> list[Item]:
        """Return the ids of rows from their column, or their positions."""
        if self.id is None:
            return list(range(n_rows))
        if self.id not in columns:
            known = ", ".join(repr(name) for name in list(columns)[:10])
            raise InvalidTableError(
                f"the id column {self.id!r} is not in the table, which has {known or 'no columns'}:"
                " add it, or name another column (setting id)"
            )
        return self._items(columns[self.id], f"column {self.id!r}")

    def _items(self, values: Any, source: str) -> list[Item]:
        """Return ids after checking that each is a string or a whole number, and maybe unique."""
        items = [_item(value, row, source) for row, value in enumerate(values)]
        check_strings([item for item in items if isinstance(item, str)], source)
        if self.unique and len(set(items)) < len(items):
            first: dict[Item, int] = {}
            again = next(
                row for row, item in enumerate(items) if first.setdefault(item, row) != row
            )
            raise InvalidTableError(
                f"{source} has {items[again]!r} twice, in rows {first[items[again]]} and {again}: "
                "an id must name one option, so make ids unique, or number the options "
                "(reset_index(drop=True) in pandas)"
            )
        return items


def _item(value: Any, row: int, source: str) -> Item:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str):
        return str(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidTableError(
            f"{source} must hold strings or whole numbers as ids, got {value!r} in row {row}: "
            "convert it, or name another column"
        )
    if abs(value) > LARGEST_ID:
        raise InvalidTableError(
            f"{source} must hold whole numbers of at most {LARGEST_ID} as ids, got one of "
            f"{value.bit_length()} bits: give it as a string"
        )
    return int(value)


def _is_column(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, str | bytes | Mapping)


def _as_column(name: Any, cells: Any) -> Any:
    """Return the cells of a column of a dict after checking its form; masked ones are None."""
    n_axes = getattr(cells, "ndim", 1)
    if not _is_column(cells) or n_axes != 1:
        got = f"an array of {n_axes} dimensions" if n_axes != 1 else type(cells).__name__
        raise InvalidTableError(
            f"column {str(name)!r} of a dict must be a list or an array of one dimension, got "
            f"{got}: a table is columns {{'price': [3, 4]}}, or a list of dicts [{{'price': 3}}, "
            "{'price': 4}], also if it has only one row"
        )
    return cells.tolist() if isinstance(cells, np.ma.MaskedArray) else cells


def named_columns(columns: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    """Return columns by name after checking that names differ and lengths do not."""
    read: dict[str, Any] = {}
    for name, cells in columns:
        cells = _as_column(name, cells)
        first = next(iter(read), str(name))
        if len(cells) != len(read.get(first, cells)):
            raise InvalidTableError(
                f"columns must have equal lengths, got {len(cells)} cells in {str(name)!r} and "
                f"{len(read[first])} in {first!r}"
            )
        if str(name) in read:
            raise _twice(str(name))
        read[str(name)] = cells
    return read


def _is_categorical(cells: Any) -> bool:
    """Return whether a column was declared a category, as in pandas."""
    kind = getattr(getattr(cells, "dtype", None), "name", "")
    return isinstance(cells, Category) or kind == "category"


def check_strings(strings: Sequence[str], source: str) -> None:
    """Raise an error if a string is too long to keep, or cannot be written as UTF-8."""
    try:
        "".join(strings).encode()
    except UnicodeEncodeError as error:
        raise InvalidTableError(
            f"{source} has a string that is not valid Unicode, with {error.object[error.start]!r}: "
            "correct it"
        ) from None
    longest = max(map(len, strings), default=0)
    if longest > LONGEST_STRING:
        raise InvalidTableError(
            f"{source} must have strings of at most {LONGEST_STRING} characters, got one of "
            f"{longest}: shorten it, {IGNORE}"
        )


def _twice(name: str) -> InvalidTableError:
    return InvalidTableError(
        f"column {name!r} appears twice: names decide what a column is, so rename or remove one"
    )


def _distinct(columns: Iterable[Any]) -> list[str]:
    """Return names of columns as strings after checking that they differ."""
    names = list(map(str, columns))
    if len(set(names)) < len(names):
        raise _twice(next(name for name in names if names.count(name) > 1))
    return names


def frame_of(native: Any) -> Any:
    """Return a data frame of narwhals.

    Raises
    ------
    InvalidTableError
        Says that a table must have one of the forms.
    """
    if not hasattr(native, "collect"):  # lazy
        names = "column_names" if hasattr(native, "column_names") else "columns"
        _distinct(getattr(native, names, ()))
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


def _kind_in_pandas(kind: Any) -> str:
    """Return what a column holds, by its type."""
    if kind.kind in "fiub":
        return "number"
    return "date" if kind.kind in "mM" else "category" if kind.name == "category" else "other"


def _kind_in_narwhals(kind: Any) -> str:
    if kind.is_numeric():
        return "number"
    if kind.is_temporal() or kind.is_nested():
        return "date" if kind.is_temporal() else "nested"
    return "category" if isinstance(kind, nw.Categorical | nw.Enum) else "other"


# Single cells: missing, a number, a label, or refused with a remedy

_MISSING_TYPES = ("NAType", "NaTType")  # of pandas, which need not be installed
PLAIN = frozenset((float, int, bool, type(None)))
STRINGS = frozenset((str, type(None)))
_DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
_NESTED = (list, dict, tuple, set, frozenset, np.ndarray)

IGNORE = "or leave the column out (setting ignore)"

LONGEST_STRING = 1000
"""Most characters of an id, a label or the name of a column: an agent keeps them."""

LARGEST_ID = 2**63 - 1


def read_cells(
    name: str, cells: Iterable[Any], categorical: bool = False, numeric: bool = False
) -> FloatArray | Labels:
    """Return cells of one column as numbers or labels.

    Types decide, not contents: strings are labels, also if they look like numbers, unless the
    column was declared numeric. In a CSV file all is text: there a column is numbers if each of its
    cells is empty or a number.

    >>> read_cells("colour", ["red", None, float("nan")]), read_cells("code", ["3", "4"])
    (['red', None, None], ['3', '4'])
    >>> read_cells("size", [1, True, None]), read_cells("price", ["3.5", "", 4], numeric=True)
    (array([ 1.,  1., nan]), array([3.5, nan, 4. ]))
    """
    if isinstance(cells, np.ndarray):
        if cells.dtype.kind in "fiub" and not categorical:
            with np.errstate(over="ignore"):  # what is too large for a double is refused later
                return np.asarray(cells, dtype=np.float64)
        cells = cells.tolist()
    if numeric:
        cells = [_parsed(name, cell, row) for row, cell in enumerate(cells)]
    cells = [None if type(cell) is float and cell != cell else cell for cell in cells]
    kinds = set(map(type, cells))
    if kinds <= PLAIN and not categorical:
        return _as_numbers(cells)
    if kinds <= STRINGS:
        return Category(cells) if categorical else cells
    seen = [None if _is_missing(cell) else cell for cell in cells]
    if categorical:
        return Category(None if cell is None else label_of(name, cell) for cell in seen)
    if all(cell is None or isinstance(cell, str) for cell in seen):
        return [None if cell is None else str(cell) for cell in seen]
    for row, cell in enumerate(seen):
        if cell is not None and not _is_number(cell):
            raise _refused_cell(name, cell, f" in row {row}")
    return _as_numbers(seen)


def _parsed(name: str, cell: Any, row: int) -> Any:
    """Return the number that a string stands for, None if it is empty, or another cell as it is."""
    if not isinstance(cell, str):
        return cell
    try:
        return float(cell) if cell.strip() else None
    except ValueError:
        raise InvalidTableError(
            f"column {name!r} must be numbers (setting numeric), got {cell!r:.40} in row {row}: "
            "correct it, or leave it empty"
        ) from None


def _as_numbers(cells: list[Any]) -> FloatArray:
    try:
        with np.errstate(over="ignore"):  # of long doubles
            return np.array(cells, dtype=np.float64)
    except OverflowError:  # a whole number too large for a float is refused later, as infinite
        return np.array([checks.as_float(cell) for cell in cells])


def _is_missing(cell: Any) -> bool:
    """Return whether a cell is hidden: None, NaN, NA or NaT."""
    if cell is None or type(cell).__name__ in _MISSING_TYPES:
        return True
    if isinstance(cell, Decimal):
        return cell.is_nan()
    if isinstance(cell, float | np.floating):
        return bool(cell != cell)
    return isinstance(cell, np.datetime64 | np.timedelta64) and bool(np.isnat(cell))


def _is_number(cell: Any) -> bool:
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
    if not _is_number(cell):
        raise _refused_cell(name, cell)
    return str(int(cell)) if math.isfinite(cell) and cell == int(cell) else str(float(cell))


def _refused_cell(name: str, cell: Any, where: str = "") -> InvalidTableError:
    """Return the error for a cell that is neither number nor label."""
    text = repr(cell)
    text = text if len(text) <= 40 else f"{text[:37]}…"
    if isinstance(cell, str):
        return InvalidTableError(
            f"column {name!r} must be numbers or strings, not both, got the string {text}{where}: "
            "correct it, leave it empty, make all strings, or list the column in the setting "
            "categorical or numeric"
        )
    kind = "date" if isinstance(cell, _DATES) else "nested" if isinstance(cell, _NESTED) else ""
    return _refusal(name, f"got {type(cell).__name__} {text}{where}", kind)


def _refusal(name: str, got: str, kind: str) -> InvalidTableError:
    rule, remedy = "be numbers, booleans or strings", "convert it"
    if kind == "date":
        rule = "not be dates or times"
        remedy = "turn it into numbers, such as an age in days or the hour of the day"
    elif kind == "nested":
        rule, remedy = "not be nested", "give each part its own column"
    return InvalidTableError(f"column {name!r} must {rule}, {got}: {remedy}, {IGNORE}")
