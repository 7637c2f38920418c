"""Slate: the seen entries of the arms offered in one round."""

from typing import Any

import numpy as np
from numpy import empty
from numpy.ma import MaskedArray
from numpy.typing import NDArray

from halfseen.errors import InvalidSlateError
from halfseen.lazy import LazyModule
from halfseen.values.arrays import (
    LARGEST,
    SMALLEST,
    BoolArray,
    FloatArray,
    as_items,
    as_mask,
    as_table,
    out_of_range_error,
    read_only,
    seen_entries,
    zero_filled,
)

_tables = LazyModule("halfseen.kernels.tables")


class Slate:
    """The seen entries of the arms offered in one round.

    Parameters
    ----------
    values : array_like, shape (n_arms, dim)
        Feature values. The value of a hidden entry is ignored and set to zero. Entries below
        `SMALLEST` in absolute value become zero, too. None and the NA of pandas count as NaN.
    mask : array of bool, shape (n_arms, dim), optional
        True where an entry is seen. Without a mask, NaN means hidden, and so does a masked entry of
        a `numpy.ma` array.
    context : array_like, shape (context_dim,), optional
        A row that all arms share, NaN where hidden.
    items : array of int, shape (n_arms,), optional
        Who each arm is: whole numbers from 0 to 2⁵³ − 1. By default arms with equal values and
        equal holes are the same item.

    Attributes
    ----------
    values : ndarray, shape (n_arms, dim)
        Read-only, zero where hidden.
    mask : ndarray of bool, shape (n_arms, dim)
        Read-only, True where seen.
    context : ndarray, shape (context_dim,), or None
        Read-only, NaN where hidden.
    items : ndarray of int, shape (n_arms,), or None
        Read-only.

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

    # One array with NaN where hidden, never changed; `values` and `mask` are derived from it.
    __slots__ = ("_context", "_items", "_table")

    def __init__(
        self, values: Any, mask: Any = None, *, context: Any = None, items: Any = None
    ) -> None:
        is_masked = isinstance(values, MaskedArray)
        given = as_table(values.data if is_masked else values)
        if mask is not None:
            seen = as_mask(mask, given.shape)
            if (seen & np.isnan(given)).any():
                raise out_of_range_error(given, seen)
            given = np.where(seen, given, np.nan)
        elif is_masked:
            given = np.where(np.ma.getmaskarray(values), np.nan, given)
        # A copy: the caller's array is neither changed nor shared.
        table: FloatArray = empty(given.shape)
        if not _tables.copy_checked(given, table, SMALLEST, LARGEST):
            raise out_of_range_error(given, ~np.isnan(given))
        self._table = table
        self._context = None if context is None else checked_context(context)
        self._items = None if items is None else as_items(items, len(table))

    @classmethod
    def of(
        cls, options: Any, dim: int | None = None, *, context: Any = None, items: Any = None
    ) -> "Slate":
        """Return `options` as a slate; raise an error unless it has `dim` features, if given.

        A context and items that are given replace those of the slate.
        """
        slate = options if type(options) is cls else cls(options)
        if context is not None or items is not None:
            other = object.__new__(cls)
            other._table = slate._table
            other._context = slate._context if context is None else checked_context(context)
            n_arms = len(slate._table)
            other._items = slate._items if items is None else as_items(items, n_arms)
            slate = other
        if dim is not None and slate._table.shape[1] != dim:
            raise InvalidSlateError(
                f"a slate must have {dim} features per arm, got {slate._table.shape[1]}"
            )
        return slate

    def without_context(self) -> "Slate":
        """Return the same arms without the context."""
        other = object.__new__(Slate)
        other._table, other._context, other._items = self._table, None, self._items
        return other

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
        """Who each arm is; read-only, shape (n_arms,)."""
        return self._items

    @property
    def n_arms(self) -> int:
        """Number of offered arms."""
        n_arms: int = self._table.shape[0]
        return n_arms

    @property
    def dim(self) -> int:
        """Number of features, seen or not."""
        dim: int = self._table.shape[1]
        return dim

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Slate):
            return NotImplemented
        return all(_equal(getattr(self, name), getattr(other, name)) for name in Slate.__slots__)

    def __hash__(self) -> int:
        # Adding zero makes −0.0 into 0.0, which it equals.
        return hash(((self.values + 0.0).tobytes(), self.mask.tobytes()))

    def __repr__(self) -> str:
        more = "" if self._context is None else f", context_dim={len(self._context)}"
        return f"Slate(n_arms={self.n_arms}, dim={self.dim}, seen={self.mask.mean():.0%}{more})"


def checked_context(context: Any) -> FloatArray:
    """Return a context as a read-only array of shape (context_dim,), NaN where hidden.

    Raises
    ------
    InvalidSlateError
        It is not one row of numbers.
    """
    try:
        is_masked = isinstance(context, MaskedArray) and context.ndim == 1
        row = Slate(context[None] if is_masked else [context])._table[0]
    except InvalidSlateError as error:
        raise InvalidSlateError(
            f"a context must be one row of numbers, shape (context_dim,): {error}"
        ) from None
    return read_only(row)


def _equal(ours: Any, theirs: Any) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    return np.array_equal(ours, theirs, equal_nan=True)
