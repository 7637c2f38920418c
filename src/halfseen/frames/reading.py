"""Reads frames, dictionaries and arrays into rows: one item per row, columns by name."""

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from halfseen.errors import HalfseenError, InvalidTableError
from halfseen.frames.cells import LARGEST_ID, PLAIN, Category, Labels, check_strings, read_cells
from halfseen.frames.files import cells_of, columns_in, distinct, is_column, twice
from halfseen.values import FloatArray, Item, Slate
from halfseen.values.decision import listed
from halfseen.values.slate import as_table


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
        if isinstance(row, Mapping) and not any(is_column(each) for each in row.values()):
            row = [row]
        elif isinstance(row, np.ndarray) and row.ndim == 1:
            row = row[None]
        elif hasattr(row, "to_dict") and hasattr(row, "index") and not hasattr(row, "columns"):
            if not row.index.is_unique:  # a series of pandas
                raise twice(str(row.index[row.index.duplicated()][0]))
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
        if isinstance(first, Mapping) or is_column(first):
            rows = replace(self, id=None, unique=False).read(table)
            if rows.names:
                return rows
        raise InvalidTableError(
            f"a context must have columns with names, got {table!r:.60}: pass a dict such as "
            "{'country': 'DE'}, or a table"
        )

    def _read(self, options: Any) -> Rows:
        if isinstance(options, np.ndarray) and options.ndim == 1 and options.dtype.kind in "iuUO":
            options = options.tolist()  # ids alone
        n_rows = 0
        if isinstance(options, list | tuple):
            if not options:
                return Rows([], (), [])
            if isinstance(options[0], str | int | np.integer):
                return Rows(self._items(options, "the list of options"), (), [])
            n_rows = len(options)
        if isinstance(options, np.ndarray | Slate) or (
            n_rows and not isinstance(options[0], Mapping)
        ):
            return self._of_array(options)
        if hasattr(options, "set_axis") and hasattr(options, "columns"):
            return self._of_pandas(options)
        return self._of_columns(columns_in(options), n_rows)

    def _of_array(self, options: Any) -> Rows:
        # A copy in any case: the encoder checks the values.
        is_plain = type(options) is np.ndarray
        table = as_table(options).copy() if is_plain else Slate.of(options).table
        names = tuple(map(str, range(table.shape[1])))
        if self.id is not None or self.ignore or self.categorical:
            return self._of_columns(dict(zip(names, table.T, strict=True)))
        return Rows(list(range(len(table))), names, list(table.T))

    def _of_columns(self, columns: Mapping[str, Any], n_rows: int = 0) -> Rows:
        """Return columns of equal lengths; without any there are `n_rows` rows."""
        n_rows = len(next(iter(columns.values()), range(n_rows)))
        features = {
            name: cells_of(each) for name, each in columns.items() if self._is_feature(name)
        }
        return Rows(self._ids_in(columns, n_rows), tuple(features), self._values(features))

    def _of_pandas(self, frame: Any) -> Rows:
        """Return a frame of pandas, which narwhals reads at a fifth of the speed."""
        given = listed(frame.columns)
        names = distinct(given)
        frame = frame if names == given else frame.set_axis(names, axis=1)
        if self.id not in names and self.id in (None, frame.index.name):
            items = self._items(frame.index.tolist(), "the index")
        else:
            items = self._ids_in(frame, len(frame))
        features = [name for name in names if self._is_feature(name)]
        frame = frame if len(features) == len(names) else frame[features]
        types = dict(zip(features, frame.dtypes.tolist(), strict=True))
        are_numbers = all(type_.kind in "fiub" for type_ in types.values())
        if features and are_numbers and self.categorical.isdisjoint(features):
            table = frame.to_numpy()
            if table.dtype.kind in "fiub":  # not so if some are missing in a nullable column
                return Rows(items, tuple(features), list(table.astype(np.float64, copy=False).T))
        cells = dict(zip(features, frame.to_numpy(dtype=object).T.tolist(), strict=True))
        for name, type_ in types.items():
            if type_.kind == "O" and type_.name == "category":
                cells[name] = Category(cells[name])
        return Rows(items, tuple(features), self._values(cells))

    def _values(self, columns: Mapping[str, Any]) -> list[FloatArray | Labels]:
        """Return the numbers or the labels of each column."""
        cells = list(columns.values())
        if {*map(type, cells)} == {list} and self.categorical.isdisjoint(columns):
            with suppress(OverflowError):  # of a whole number
                if PLAIN.issuperset(map(type, chain.from_iterable(cells))):
                    return list(np.array(cells, dtype=np.float64))
        values = []
        for name, cells in columns.items():
            is_category = name in self.categorical or isinstance(cells, Category)
            column = read_cells(name, cells, is_category, name in self.numeric)
            if isinstance(column, list):
                check_strings([label for label in column if label], f"column {name!r}")
            values.append(column)
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
        return self._items(cells_of(columns[self.id]), f"column {self.id!r}")

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
