"""Single values of a table: what is missing, a number, a label, or refused with a remedy."""

import datetime
import math
from collections.abc import Iterable
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from halfseen.errors import InvalidTableError
from halfseen.frames.rows import Labels
from halfseen.values import FloatArray

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
