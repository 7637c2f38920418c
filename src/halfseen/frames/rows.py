"""What is read from a table: one item per row, and columns of numbers or labels by name."""

import hashlib
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from halfseen.errors import InvalidTableError
from halfseen.values import FloatArray

Item = str | int
"""The id of an option."""

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

    def to_plain(self) -> dict[str, Any]:
        """Return the rows as plain JSON types; hidden values are None."""
        columns = [
            [None if value != value else value for value in column.tolist()]
            if isinstance(column, np.ndarray)
            else column
            for column in self.values()
        ]
        return {"items": self.items, "names": list(self.names), "columns": columns}

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> "Rows":
        """Return the rows that `to_plain` made plain."""
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
        twice = next(row for row, item in enumerate(items) if item in items[:row])
        raise InvalidTableError(
            f"{source} has {items[twice]!r} twice, in rows {items.index(items[twice])} and "
            f"{twice}: an id must name one option, so make ids unique, or number the options "
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
