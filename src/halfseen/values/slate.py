"""Slate: the seen entries of the arms offered in one round, and the numbers that it may hold."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy import empty
from numpy.ma import MaskedArray
from numpy.typing import NDArray

from halfseen.errors import InvalidSlateError
from halfseen.lazy import LazyModule

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

_tables = LazyModule("halfseen.kernels.tables")

LARGEST = 1e100
"""Largest absolute value of a seen entry or a reward: their products and sums stay finite."""

LARGEST_POINT = 1e130
"""Above every coordinate and every root of a sum in a regression; its square is finite."""

SMALLEST = 1e-100
"""Entries with a smaller absolute value count as zero: squares of larger ones do not underflow."""

LARGEST_ITEM = 2**53 - 1
"""Largest number of an item: a float holds every whole number up to it."""


class Slate:
    """The seen entries of the arms offered in one round.

    Parameters
    ----------
    values : array_like, shape (n_arms, dim)
        Feature values. The value of a hidden entry is ignored and set to zero. Entries below
        `SMALLEST` in absolute value also become zero. None and the NA of pandas count as NaN.
    mask : array of bool, shape (n_arms, dim), optional
        True where an entry is seen. Without a mask, NaN means hidden, and so does a masked entry of
        a `numpy.ma` array.
    context : array_like, shape (context_dim,), optional
        A row that all arms share, NaN where hidden.
    items : array of int, shape (n_arms,), optional
        Item ids, one integer from 0 to 2⁵³ − 1 per arm. By default arms with equal values and equal
        masks are the same item.
    id : str
        Of the decision, if it has one: it names the random streams of a policy that draws. By
        default they are named after the round. Equality ignores it.

    Raises
    ------
    InvalidSlateError
        The values are not a table of numbers, there are no arms, the mask has another shape or
        type, or a seen entry is not finite or beyond `LARGEST` (the message names arm, feature and
        value).

    Examples
    --------
    >>> slate = Slate([[1.0, float("nan")], [2.0, 3.0]])
    >>> slate.values.tolist(), slate.mask.tolist()
    ([[1.0, 0.0], [2.0, 3.0]], [[True, False], [True, True]])
    >>> Slate([[1.0], [2.0]], context=[30.0, None]).context.tolist()
    [30.0, nan]

    Notes
    -----
    Paper: eq:missing_model_bernoulli
    """

    # Policies keep the table without a copy; `values` and `mask` are derived from it.
    __slots__ = ("_context", "_id", "_items", "_table")

    def __init__(
        self, values: Any, mask: Any = None, *, context: Any = None, items: Any = None, id: str = ""
    ) -> None:
        is_masked = isinstance(values, MaskedArray)
        given = as_table(values.data if is_masked else values)
        if mask is not None:
            seen = _as_mask(mask, given.shape)
            if (seen & np.isnan(given)).any():
                raise _out_of_range_error(given, seen)
            given = np.where(seen, given, np.nan)
        elif is_masked:
            given = np.where(np.ma.getmaskarray(values), np.nan, given)
        # A copy: the caller's array is neither changed nor shared.
        table: FloatArray = empty(given.shape)
        if not _tables.copy_checked(given, table, SMALLEST, LARGEST):
            raise _out_of_range_error(given, ~np.isnan(given))
        table.setflags(write=False)
        self._table = table
        self._context = None if context is None else _checked_context(context)
        self._items = None if items is None else _as_items(items, len(table))
        self._id = id

    @classmethod
    def of(
        cls, options: Any, dim: int | None = None, *, context: Any = None, items: Any = None
    ) -> "Slate":
        """Return `options` as a slate; raise an error unless it has `dim` features, if given.

        A context and items that are given replace those of the slate.
        """
        slate = options if type(options) is cls else cls(options)
        if context is not None or items is not None:
            slate = slate._with(
                slate._table,
                slate._context if context is None else _checked_context(context),
                slate._items if items is None else _as_items(items, slate.n_arms),
                slate._id,
            )
        if dim is not None and slate._table.shape[1] != dim:
            raise InvalidSlateError(f"a slate must have {dim} features per arm, got {slate.dim}")
        return slate

    def contexts(self, given: Any) -> FloatArray | None:
        """Return one context per arm, shape (n_arms, context_dim): what is given, or this one.

        Raises InvalidSlateError if their number is another one.
        """
        if given is None:
            context = self._context
            return None if context is None else np.tile(context, (self.n_arms, 1))
        table = Slate.of(given).table
        if len(table) != self.n_arms:
            raise InvalidSlateError(
                f"there must be a context for each of {self.n_arms} arms, got {len(table)}"
            )
        return table

    def some(self, arms: Any, *, id: str = "") -> "Slate":
        """Return some of the arms, with the same context, for a decision of an id."""
        items = None if self._items is None else self._items[arms]
        return self._with(self._table[arms], self._context, items, id)

    def one_by_one(self, contexts: FloatArray | None = None) -> Iterator["Slate"]:
        """Yield a slate for each arm, with its row of contexts (n_arms, context_dim)."""
        for arm in range(self.n_arms):
            items = None if self._items is None else self._items[arm : arm + 1]
            context = None if contexts is None else contexts[arm]
            yield self._with(self._table[arm : arm + 1], context, items)

    def without_context(self) -> "Slate":
        """Return the same arms without the context."""
        return self._with(self._table, None, self._items, self._id)

    @staticmethod
    def _with(
        table: FloatArray,
        context: FloatArray | None,
        items: NDArray[np.int64] | None,
        id: str = "",
    ) -> "Slate":
        """Return a slate of parts that were checked before."""
        for part in (table, context, items):
            if part is not None:
                part.setflags(write=False)
        slate = object.__new__(Slate)
        slate._table, slate._context, slate._items, slate._id = table, context, items, id
        return slate

    @property
    def table(self) -> FloatArray:
        """Feature values, NaN where hidden; read-only, shape (n_arms, dim)."""
        return self._table

    @property
    def values(self) -> FloatArray:
        """Feature values, zero where hidden; read-only, shape (n_arms, dim)."""
        return zero_filled(self._table)

    @property
    def mask(self) -> BoolArray:
        """True where seen; read-only, shape (n_arms, dim)."""
        return seen_entries(self._table)

    @property
    def context(self) -> FloatArray | None:
        """The row that all arms share, NaN where hidden; read-only, shape (context_dim,)."""
        return self._context

    @property
    def items(self) -> NDArray[np.int64] | None:
        """Item ids; read-only, shape (n_arms,)."""
        return self._items

    @property
    def id(self) -> str:
        """Of the decision; empty if it has none."""
        return self._id

    @property
    def n_arms(self) -> int:
        """Number of offered arms."""
        return len(self._table)

    @property
    def dim(self) -> int:
        """Number of features, seen or not."""
        return int(self._table.shape[1])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Slate):
            return NotImplemented
        names = ("table", "context", "items")
        return all(_equal(getattr(self, name), getattr(other, name)) for name in names)

    def __hash__(self) -> int:
        return hash((self.values + 0.0).tobytes())  # −0 and 0 are equal

    def __reduce__(self) -> Any:
        return Slate._with, (
            self._table,
            self._context,
            self._items,
            self._id,
        )  # copies are read-only too

    def __repr__(self) -> str:
        more = "" if self._context is None else f", context_dim={len(self._context)}"
        return f"Slate(n_arms={self.n_arms}, dim={self.dim}, seen={self.mask.mean():.0%}{more})"


def _checked_context(context: Any) -> FloatArray:
    """Return a context as a read-only array of shape (context_dim,), NaN where hidden.

    Raises
    ------
    InvalidSlateError
        It is not one row of numbers.
    """
    try:
        is_masked = isinstance(context, MaskedArray) and context.ndim == 1
        row: FloatArray = Slate(context[None] if is_masked else [context]).table[0]
    except InvalidSlateError as error:
        raise InvalidSlateError(
            f"a context must be one row of numbers, shape (context_dim,): {error}"
        ) from None
    return row


def _equal(ours: Any, theirs: Any) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    return np.array_equal(ours, theirs, equal_nan=True)


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


def as_table(values: Any) -> FloatArray:
    """Return values as an array (n_arms, dim) of doubles; it may be the caller's own."""
    try:
        raw = np.asarray(values)
        if raw.dtype.kind not in "biufO":
            raise TypeError(f"entries are of type {raw.dtype}")
        if raw.dtype.kind == "O":
            raw = _plain_entries(raw)
        with np.errstate(over="ignore"):  # of long doubles; the range is checked later
            table = raw.astype(np.float64, order="C", copy=False)
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
        raise TypeError("some entries are strings")
    missing = [type(entry).__name__ == "NAType" for entry in raw.flat]
    return np.where(np.reshape(missing, raw.shape), np.nan, raw)


def _as_mask(mask: Any, shape: tuple[int, ...]) -> BoolArray:
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


def _out_of_range_error(given: FloatArray, seen: BoolArray) -> InvalidSlateError:
    """Return the error that names the first seen entry that is not finite or too large."""
    wrong = seen & ~(np.abs(given) <= LARGEST)
    arm, feature = (int(index) for index in np.argwhere(wrong)[0])
    return InvalidSlateError(
        f"seen entries must be finite and at most {LARGEST:g} in size, got {given[arm, feature]} "
        f"at arm {arm}, feature {feature}: hide it (NaN without a mask, False in the mask) or "
        f"correct it"
    )


def _as_items(items: Any, n_arms: int) -> NDArray[np.int64]:
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
