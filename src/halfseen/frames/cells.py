"""Cells of a column: missing, a number, a label, or refused with a remedy."""

import datetime
import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from halfseen import checks
from halfseen.errors import InvalidTableError
from halfseen.values import FloatArray

Labels = list[str | None]
"""A column of categories; None where hidden."""


class Category(list[str | None]):
    """Labels of a column that was declared a category: they may well be numbers."""


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
        categorical = False
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


def is_numeral(label: str) -> bool:
    """Return whether a string is a finite number."""
    try:
        return math.isfinite(float(label))
    except ValueError:
        return False
