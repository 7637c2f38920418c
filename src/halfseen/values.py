"""Slate and Decision: what callers give to a policy and get from it."""

import json
import math
from typing import Any

import numpy as np
from numpy import empty, ndarray
from numpy.ma import MaskedArray
from numpy.typing import NDArray

from halfseen import checks
from halfseen.errors import InvalidInputError, InvalidSlateError
from halfseen.lazy import LazyModule

_tables = LazyModule("halfseen.kernels.tables")

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
        given = _as_table(values.data if is_masked else values)
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
        self._table = table
        self._context = None if context is None else checked_context(context)
        self._items = None if items is None else _as_items(items, len(table))

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
            other._items = slate._items if items is None else _as_items(items, n_arms)
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
        return _zero_filled(self._table)

    @property
    def mask(self) -> BoolArray:
        """True where seen; read-only, shape (n_arms, dim)."""
        return _seen(self._table)

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
    return _read_only(row)


def _as_items(items: Any, n_arms: int) -> NDArray[np.int64]:
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


def _equal(ours: Any, theirs: Any) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    return np.array_equal(ours, theirs, equal_nan=True)


def _zero_filled(table: FloatArray) -> FloatArray:
    values = np.where(table == table, table, 0.0)
    values.setflags(write=False)
    return values


def _seen(table: FloatArray) -> BoolArray:
    mask: BoolArray = table == table  # NaN is the one value that differs from itself
    mask.setflags(write=False)
    return mask


def _read_only(array: FloatArray) -> FloatArray:
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


def _as_table(values: Any) -> FloatArray:
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


def _as_mask(mask: Any, shape: tuple[int, ...]) -> BoolArray:
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
    wrong = seen & ~(np.abs(given) <= LARGEST)
    arm, feature = (int(index) for index in np.argwhere(wrong)[0])
    return InvalidSlateError(
        f"seen entries must be finite and at most {LARGEST:g} in size, got {given[arm, feature]} "
        f"at arm {arm}, feature {feature}: hide it (NaN without a mask, False in the mask) or "
        f"correct it"
    )


class Decision:
    """What a policy chose and why.

    Immutable. Policies create decisions; `from_json` reads one back.

    Attributes
    ----------
    id : str
        Unique among all decisions of all policies.
    arm : int
        Index of the chosen arm in its slate.
    round : int
        Counted from 1.
    epoch : int
        Counted from 0; −1 during burn-in and for policies without epochs.
    values, mask : ndarray, shape (dim,)
        The chosen arm as seen: zero where hidden, True where seen.
    scores, estimates, widths : ndarray, shape (n_arms,)
        The optimistic score of each arm and its two parts: score = estimate + width.
    probabilities : ndarray, shape (n_arms,)
        With which probability each arm was chosen, given all that the policy knew.
    probability : float
        That of the chosen arm; 1 if nothing was drawn.

    Examples
    --------
    >>> from halfseen import AmbientOful
    >>> decision = AmbientOful(dim=2).choose([[1.0, float("nan")], [0.5, 0.0]])
    >>> decision.arm, decision.round, decision.probability
    (0, 1, 1.0)
    >>> decision.values.tolist(), decision.mask.tolist()
    ([1.0, 0.0], [True, False])
    """

    __slots__ = ("_arm", "_chosen", "_epoch", "_id", "_parts", "_probabilities", "_round")

    def __init__(
        self,
        id: str,
        arm: int,
        round: int,
        epoch: int,
        chosen: FloatArray,
        parts: FloatArray,
        probabilities: FloatArray | None = None,
    ) -> None:
        """Take over the arrays.

        `chosen` is the chosen arm with NaN where hidden, `parts` has shape (3, n_arms): scores,
        estimates, widths. Without `probabilities` the choice was not drawn.
        """
        self._id = id
        self._arm = arm
        self._round = round
        self._epoch = epoch
        self._chosen = chosen
        self._parts = parts
        self._probabilities = probabilities

    @property
    def id(self) -> str:
        """Unique name of this decision among all decisions of all policies."""
        return self._id

    @property
    def arm(self) -> int:
        """Index of the chosen arm in its slate."""
        return self._arm

    @property
    def round(self) -> int:
        """Round of the decision, counted from 1."""
        return self._round

    @property
    def epoch(self) -> int:
        """Epoch of the decision, counted from 0; −1 if there is none."""
        return self._epoch

    @property
    def values(self) -> FloatArray:
        """The chosen arm, zero where hidden; read-only, shape (dim,)."""
        return _zero_filled(self._chosen)

    @property
    def mask(self) -> BoolArray:
        """True where the chosen arm is seen; read-only, shape (dim,)."""
        return _seen(self._chosen)

    @property
    def scores(self) -> FloatArray:
        """Optimistic score of each arm; read-only, shape (n_arms,)."""
        return _read_only(self._parts[0])

    @property
    def estimates(self) -> FloatArray:
        """Estimated reward of each arm; read-only, shape (n_arms,)."""
        return _read_only(self._parts[1])

    @property
    def widths(self) -> FloatArray:
        """Confidence width of each arm; read-only, shape (n_arms,)."""
        return _read_only(self._parts[2])

    @property
    def probabilities(self) -> FloatArray:
        """Probability with which each arm was chosen; read-only, shape (n_arms,)."""
        return chances(self._probabilities, self._arm, self._parts.shape[1])

    @property
    def probability(self) -> float:
        """Probability with which the chosen arm was chosen."""
        return 1.0 if self._probabilities is None else float(self._probabilities[self._arm])

    def to_dict(self) -> dict[str, Any]:
        """Return the decision as plain JSON types; hidden values are null."""
        return {
            "id": self.id,
            "arm": self.arm,
            "round": self.round,
            "epoch": self.epoch,
            "values": [None if math.isnan(value) else value for value in self._chosen.tolist()],
            "scores": self.scores.tolist(),
            "estimates": self.estimates.tolist(),
            "widths": self.widths.tolist(),
            "probability": self.probability,
            "probabilities": self.probabilities.tolist(),
        }

    def to_json(self) -> str:
        """Return the decision as one line of JSON; floats come back with the same bits."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_dict(cls, plain: Any) -> "Decision":
        """Build a decision from what `to_dict` returned.

        One of an earlier version has no probabilities; it is taken for one that was not drawn.

        Raises
        ------
        InvalidInputError
            A field is missing, of the wrong type, or not finite.
        """
        try:
            id, arm, round, epoch = (plain[name] for name in ("id", "arm", "round", "epoch"))
            for name, value, low in (("arm", arm, 0), ("round", round, 1), ("epoch", epoch, -1)):
                checks.integer(name, value, low)
            values = [math.nan if value is None else _number(value) for value in plain["values"]]
            parts = [
                [_number(value) for value in plain[name]]
                for name in ("scores", "estimates", "widths")
            ]
            if not isinstance(id, str):
                raise TypeError(f"id must be a text, got {id!r}")
            if not arm < len(parts[0]) == len(parts[1]) == len(parts[2]):
                raise ValueError("scores, estimates and widths must have an entry for each arm")
            law = plain.get("probabilities")
            law = None if law is None else _checked_law(law, arm, len(parts[0]))
            table = Slate([values])._table
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InvalidInputError(f"not a decision: {type(error).__name__}: {error}") from None
        return cls(id, arm, round, epoch, table[0], np.array(parts), law)

    @classmethod
    def from_json(cls, text: str) -> "Decision":
        """Build a decision from what `to_json` returned."""
        try:
            plain = json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInputError(f"not a decision: {error}") from None
        return cls.from_dict(plain)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Decision):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(self._id)

    def __repr__(self) -> str:
        return f"Decision(arm={self._arm}, round={self._round}, epoch={self._epoch})"


def chances(probabilities: FloatArray | None, arm: int, n_arms: int) -> FloatArray:
    """Return probabilities of arms, read-only; without them the arm is certain.

    >>> chances(None, 1, 3).tolist()
    [0.0, 1.0, 0.0]
    """
    if probabilities is None:
        probabilities = np.zeros(n_arms)
        probabilities[arm] = 1.0
    return _read_only(probabilities)


def _checked_law(given: Any, arm: int, n_arms: int) -> FloatArray:
    law = np.array([_number(value) for value in given])
    is_law = len(law) == n_arms and law.min() >= 0.0 and abs(law.sum() - 1.0) <= 1e-9
    if not is_law or law[arm] == 0.0:
        raise ValueError("probabilities must add up to 1, that of the arm above 0")
    return law


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"expected a number, got {value!r}")
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"expected a finite number, got {value!r}")
    return number
