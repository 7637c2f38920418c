"""The arrays behind slates and decisions: what they may hold, and how they are read."""

from typing import Any

import numpy as np
from numpy import ndarray
from numpy.typing import NDArray

from halfseen.errors import InvalidSlateError

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

_FLOAT = np.dtype(np.float64)

LARGEST = 1e100
"""Largest absolute value of a seen entry or a reward: their products and sums stay finite."""

LARGEST_POINT = 1e130
"""Above every coordinate and every root of a sum in a regression; its square is finite."""

SMALLEST = 1e-100
"""Entries with a smaller absolute value count as zero: squares of larger ones do not underflow."""

LARGEST_ITEM = 2**53 - 1
"""Largest number of an item: a float holds every whole number up to it."""


def zero_filled(table: FloatArray) -> FloatArray:
    """Return a table with zero where it has NaN, read-only."""
    values = np.where(table == table, table, 0.0)
    values.setflags(write=False)
    return values


def seen_entries(table: FloatArray) -> BoolArray:
    """Return where a table has no NaN, read-only."""
    mask: BoolArray = table == table  # NaN is the one value that differs from itself
    mask.setflags(write=False)
    return mask


def read_only(array: FloatArray) -> FloatArray:
    """Return a view that cannot be written to."""
    view = array.view()
    view.setflags(write=False)
    return view


def is_plain_table(values: Any) -> bool:
    """Return whether values are a non-empty array (n_arms, dim) of doubles in C order."""
    return (
        type(values) is ndarray
        and values.dtype is _FLOAT
        and values.ndim == 2
        and values.flags.c_contiguous
        and values.size > 0
    )


def as_table(values: Any) -> FloatArray:
    """Return values as an array (n_arms, dim) of doubles; it may be the caller's own."""
    if is_plain_table(values):
        plain: FloatArray = values
        return plain
    try:
        raw = np.asarray(values)
        if raw.dtype.kind not in "biufO":
            raise TypeError(f"entries are of type {raw.dtype}")
        if raw.dtype.kind == "O":
            raw = _plain_entries(raw)
        table = raw.astype(np.float64, order="C")
    except Exception as error:  # the object's own code runs here, and may raise anything
        raise InvalidSlateError(
            f"a slate must be a table of numbers with shape (n_arms, dim): {error}"
        ) from None
    shape = table.shape
    if len(shape) != 2:
        raise InvalidSlateError(
            f"a slate must have 2 dimensions (n_arms, dim), got {table.ndim} with shape "
            f"{table.shape}: one arm is a slate of shape (1, dim)"
        )
    if 0 in shape:
        raise InvalidSlateError(
            f"a slate must have at least one arm and one feature, got shape {table.shape}"
        )
    return table


def _plain_entries(raw: Any) -> Any:
    """Return an array of objects with NaN for the NA of pandas, which has no float value."""
    if any(isinstance(entry, str | bytes) for entry in raw.flat):
        raise TypeError("some entries are texts")
    missing = [type(entry).__name__ == "NAType" for entry in raw.flat]
    return np.where(np.reshape(missing, raw.shape), np.nan, raw)


def as_mask(mask: Any, shape: tuple[int, ...]) -> BoolArray:
    """Return a mask as an array of bool with the shape of the values."""
    try:
        seen = np.asarray(mask)
    except Exception as error:  # rows of different lengths, or the object's own error
        raise InvalidSlateError(
            f"a mask must be a table of bool with the shape of the values {shape}: {error}"
        ) from None
    if seen.dtype != np.bool_:
        raise InvalidSlateError(f"a mask must be of type bool (True = seen), got {seen.dtype}")
    if seen.shape != shape:
        raise InvalidSlateError(
            f"a mask must have the shape of the values {shape}, got {seen.shape}"
        )
    return seen


def out_of_range_error(given: FloatArray, seen: BoolArray) -> InvalidSlateError:
    """Return the error that names the first seen entry that is not finite or too large."""
    wrong = seen & ~(np.abs(given) <= LARGEST)
    arm, feature = (int(index) for index in np.argwhere(wrong)[0])
    return InvalidSlateError(
        f"seen entries must be finite and at most {LARGEST:g} in size, got {given[arm, feature]} "
        f"at arm {arm}, feature {feature}: hide it (NaN without a mask, False in the mask) or "
        f"correct it"
    )


def as_items(items: Any, n_arms: int) -> NDArray[np.int64]:
    """Return the numbers of items, one per arm, read-only."""
    try:
        given = np.asarray(items)
        numbers = given.astype(np.int64)
        is_whole = given.dtype.kind in "iuf" and bool((numbers == given).all())
    except Exception:  # the object's own code runs here, and may raise anything
        is_whole = False
    if not is_whole or numbers.shape != (n_arms,):
        raise InvalidSlateError(f"items must be {n_arms} whole numbers, one per arm, got {items!r}")
    if numbers.min() < 0 or numbers.max() > LARGEST_ITEM:
        raise InvalidSlateError(f"items must be in [0, 2**53 - 1], got {items!r}")
    numbers.setflags(write=False)
    return numbers
