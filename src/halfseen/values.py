"""Slate and Decision: the only things that cross borders."""

import json
import math
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from halfseen.errors import InvalidInputError, InvalidSlateError

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

LARGEST = 1e100
"""Largest size of a seen entry or a reward: products and sums of such stay finite."""


class Slate:
    """One round's offered arms: what is seen of them.

    Parameters
    ----------
    values : array_like, shape (n_arms, dim)
        Feature values. What stands at a hidden entry never matters: it is zeroed.
    mask : array of bool, shape (n_arms, dim), optional
        True where an entry is seen. Without it NaN means hidden (and so does the mask of a
        `numpy.ma` array).

    Attributes
    ----------
    values : ndarray, shape (n_arms, dim)
        Read-only, zero where hidden.
    mask : ndarray of bool, shape (n_arms, dim)
        Read-only, True where seen.

    Raises
    ------
    InvalidSlateError
        Not two-dimensional, no arms, a mask of another shape or type, or a seen entry that is not
        finite or beyond `LARGEST` (the message names arm, feature and value).

    Examples
    --------
    >>> slate = Slate([[1.0, float("nan")], [2.0, 3.0]])
    >>> slate.values.tolist(), slate.mask.tolist()
    ([[1.0, 0.0], [2.0, 3.0]], [[True, False], [True, True]])

    Notes
    -----
    Paper: eq:missing_model_bernoulli
    """

    __slots__ = ("mask", "values")

    values: FloatArray
    mask: BoolArray

    def __init__(self, values: Any, mask: Any = None) -> None:
        table = _as_table(values)
        # Copies: the caller's arrays are neither changed nor shared.
        if mask is None and not isinstance(values, np.ma.MaskedArray):
            kept, seen = np.empty(table.shape), np.empty(table.shape, dtype=np.bool_)
            sane = _split_seen(table, kept, seen, LARGEST)
        else:
            hidden = np.ma.getmaskarray(values) if mask is None else ~_as_mask(mask, table.shape)
            kept, seen = np.where(hidden, 0.0, table), ~hidden
            sane = (np.abs(kept) <= LARGEST).all()
        if not sane:
            raise _wild_entry(kept)
        kept.setflags(write=False)
        seen.setflags(write=False)
        _set_values(self, kept)
        _set_mask(self, seen)

    @classmethod
    def of(cls, options: Any, dim: int | None = None) -> "Slate":
        """Return `options` as a slate, checked to have `dim` features if that is given."""
        slate = options if type(options) is cls else cls(options)
        if dim is not None and slate.values.shape[1] != dim:
            raise InvalidSlateError(
                f"a slate must have {dim} features per arm, got {slate.values.shape[1]}"
            )
        return slate

    @property
    def n_arms(self) -> int:
        """Number of offered arms."""
        return int(self.values.shape[0])

    @property
    def dim(self) -> int:
        """Number of features, seen or not."""
        return int(self.values.shape[1])

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a Slate is immutable: cannot set {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a Slate is immutable: cannot delete {name!r}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Slate):
            return NotImplemented
        return np.array_equal(self.mask, other.mask) and np.array_equal(self.values, other.values)

    def __hash__(self) -> int:
        return hash((self.values.tobytes(), self.mask.tobytes()))

    def __repr__(self) -> str:
        return f"Slate(n_arms={self.n_arms}, dim={self.dim}, seen={self.mask.mean():.0%})"


def _as_table(values: Any) -> FloatArray:
    try:
        table = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidSlateError(
            f"a slate must be a table of numbers with shape (n_arms, dim): {error}"
        ) from None
    if table.ndim != 2:
        raise InvalidSlateError(
            f"a slate must have 2 dimensions (n_arms, dim), got {table.ndim} with shape "
            f"{table.shape}: one arm is a slate of shape (1, dim)"
        )
    if 0 in table.shape:
        raise InvalidSlateError(
            f"a slate must have at least one arm and one feature, got shape {table.shape}"
        )
    return table


def _as_mask(mask: Any, shape: tuple[int, ...]) -> BoolArray:
    seen = np.asarray(mask)
    if seen.dtype != np.bool_:
        raise InvalidSlateError(f"a mask must be of type bool (True = seen), got {seen.dtype}")
    if seen.shape != shape:
        raise InvalidSlateError(
            f"a mask must have the shape of the values {shape}, got {seen.shape}"
        )
    return seen


def _wild_entry(kept: FloatArray) -> InvalidSlateError:
    arm, feature = (int(index) for index in np.argwhere(~(np.abs(kept) <= LARGEST))[0])
    return InvalidSlateError(
        f"seen entries must be finite and at most {LARGEST:g} in size, got {kept[arm, feature]} at "
        f"arm {arm}, feature {feature}: hide it (NaN without a mask, False in the mask) or mend it"
    )


def _split_seen(table: FloatArray, kept: FloatArray, seen: BoolArray, largest: float) -> bool:
    """Load the compiled loop at its first use and stand aside: importing Slate stays light."""
    global _split_seen
    from halfseen import _kernels

    _split_seen = _kernels.split_seen
    return _split_seen(table, kept, seen, largest)


# The way around `Slate.__setattr__`, for its constructor alone.
_set_values = Slate.values.__set__  # type: ignore[attr-defined]
_set_mask = Slate.mask.__set__  # type: ignore[attr-defined]


class Decision(NamedTuple):
    """What a policy chose, why, and all that it needs to learn from the reward later.

    Attributes
    ----------
    id : str
        Names this decision among all decisions of all policies.
    arm : int
        Index of the chosen arm in its slate.
    round : int
        Counted from 1.
    epoch : int
        Counted from 0; −1 during burn-in and for policies without epochs.
    values, mask : ndarray, shape (dim,)
        The chosen arm as seen: zero where hidden, True where seen.
    parts : ndarray, shape (3, n_arms)
        Per arm the optimistic score and its two parts: score = estimate + width.
    """

    id: str
    arm: int
    round: int
    epoch: int
    values: FloatArray
    mask: BoolArray
    parts: FloatArray

    @property
    def scores(self) -> FloatArray:
        """Optimistic score of each arm, shape (n_arms,)."""
        return self.parts[0]

    @property
    def estimates(self) -> FloatArray:
        """Estimated reward of each arm, shape (n_arms,)."""
        return self.parts[1]

    @property
    def widths(self) -> FloatArray:
        """Confidence width of each arm, shape (n_arms,)."""
        return self.parts[2]

    def to_dict(self) -> dict[str, Any]:
        """Return the decision as plain JSON types; hidden values are null."""
        return {
            "id": self.id,
            "arm": self.arm,
            "round": self.round,
            "epoch": self.epoch,
            "values": [
                value if seen else None
                for value, seen in zip(self.values.tolist(), self.mask.tolist(), strict=True)
            ],
            "scores": self.scores.tolist(),
            "estimates": self.estimates.tolist(),
            "widths": self.widths.tolist(),
        }

    def to_json(self) -> str:
        """Return the decision as one line of JSON; floats survive the way back bit by bit."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_dict(cls, plain: Any) -> "Decision":
        """Build a decision from what `to_dict` returned.

        Raises
        ------
        InvalidInputError
            A field is missing, of the wrong type, or not finite.
        """
        try:
            values = [math.nan if value is None else float(value) for value in plain["values"]]
            slate = Slate([values])
            parts = np.array(
                [plain["scores"], plain["estimates"], plain["widths"]], dtype=np.float64
            )
            arm, round_, epoch = (plain[name] for name in ("arm", "round", "epoch"))
            whole = all(type(number) is int for number in (arm, round_, epoch))
            fits = parts.ndim == 2 and np.isfinite(parts).all()
            if not (isinstance(plain["id"], str) and whole and fits and 0 <= arm < parts.shape[1]):
                raise ValueError("a field is of the wrong type or out of range")
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInputError(f"not a decision: {type(error).__name__}: {error}") from None
        return decision(plain["id"], arm, round_, epoch, slate, 0, parts)

    @classmethod
    def from_json(cls, text: str) -> "Decision":
        """Build a decision from what `to_json` returned."""
        try:
            plain = json.loads(text)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(f"not a decision: {error}") from None
        return cls.from_dict(plain)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Decision) and self.to_dict() == other.to_dict()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.id)


def decision(
    id: str, arm: int, round: int, epoch: int, slate: Slate, row: int, parts: FloatArray
) -> Decision:
    """Return a decision that owns its arrays: `row` of the slate is copied, `parts` is taken over.

    The copy keeps an open decision from keeping its whole slate alive.
    """
    values, mask = slate.values[row].copy(), slate.mask[row].copy()
    values.setflags(write=False)
    mask.setflags(write=False)
    parts.setflags(write=False)
    return Decision(id, arm, round, epoch, values, mask, parts)
