"""What of an object is saved, declared once per class: name, type, shape and range of each field.

A class lists the attributes that make up its state::

    class Mean:
        STATE = {"_n": Whole(low=0), "_sums": Array(("dim",))}

`dump(mean)` returns them as plain values and arrays, `restore(mean, plain)` checks and sets them.
`load(mean, plain)` only checks and returns them. A subclass adds its fields to those of its bases.
A leading underscore is not saved.

Compiled loops do not check bounds, and a file may be forged: everything is checked here, once.

Examples
--------
>>> class Mean:
...     STATE = {"_n": Whole(low=0), "_sums": Array(("dim",))}
...     dim, _n, _sums = 2, 3, np.array([1.0, 2.0])
>>> saved = dump(Mean())
>>> saved
{'n': 3, 'sums': array([1., 2.])}
>>> restore(Mean(), saved | {"n": -1})
Traceback (most recent call last):
halfseen.errors.InvalidSettingError: _n must be an integer in [0, 1e+15], got -1
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from halfseen import checks
from halfseen.errors import ArchiveError
from halfseen.values.slate import LARGEST, FloatArray


class Field(Protocol):
    """How one attribute is saved and checked."""

    def dump(self, value: Any) -> Any:
        """Return the value as plain values and arrays."""

    def load(self, name: str, plain: Any, sizes: "Sizes") -> Any:
        """Return the value after checking its plain form."""


class Sizes:
    """The sizes in shapes by name: attributes of an owner, or bound by the first array."""

    def __init__(self, owner: Any = None, **known: int) -> None:
        self.owner, self._known = owner, known

    def fits(self, want: int | str | None, got: int) -> bool:
        """Return whether an axis may have a size; None is any, an unknown name is bound to it."""
        if isinstance(want, str):
            if want not in self._known:
                self._known[want] = getattr(self.owner, want, got)
            want = self._known[want]
        return want is None or want == got


class Array(NamedTuple):
    """An array of numbers: finite, in a range; with `hidden`, NaN is allowed as well.

    A shape has numbers, names of sizes, or None for any size.
    """

    shape: tuple[int | str | None, ...]
    dtype: type = np.float64
    low: float = -math.inf
    high: float = math.inf
    hidden: bool = False

    def dump(self, value: Any) -> Any:
        """Return a copy, which does not change with its owner."""
        return np.array(value)

    def load(self, name: str, plain: Any, sizes: Sizes) -> Any:
        """Return a copy after checking shape, type and range."""
        fits = (
            isinstance(plain, np.ndarray)
            and plain.dtype == self.dtype
            and plain.ndim == len(self.shape)
            and all(sizes.fits(*pair) for pair in zip(self.shape, plain.shape, strict=True))
        )
        if not fits:
            kind = np.dtype(self.dtype).name
            raise ArchiveError(f"array {name!r} must have shape {self.shape} and type {kind}")
        inside = np.isfinite(plain) & (plain >= self.low) & (plain <= self.high)
        if self.hidden:
            inside |= np.isnan(plain)
        if not inside.all():
            raise ArchiveError(
                f"array {name!r} must be finite, from {self.low:g} to {self.high:g}, got "
                f"{plain[~inside][0]}"
            )
        return np.array(plain, order="C")


class Basis(NamedTuple):
    """An array with orthonormal columns."""

    shape: tuple[int | str | None, int | str | None]

    def dump(self, value: Any) -> Any:
        """Return a copy."""
        return np.array(value)

    def load(self, name: str, plain: Any, sizes: Sizes) -> FloatArray:
        """Return a copy after checking that columns are orthonormal."""
        columns: FloatArray = Array(self.shape, low=-2.0, high=2.0).load(name, plain, sizes)
        probe = np.random.default_rng(0).standard_normal((columns.shape[1], 1))
        if not np.allclose(columns.T @ (columns @ probe), probe, atol=1e-6):
            raise ArchiveError(f"array {name!r} must have orthonormal columns")
        return columns


class _Plain:
    """A value that is plain already."""

    def dump(self, value: Any) -> Any:
        """Return the value."""
        return value


class Whole(_Plain):
    """A whole number in a range."""

    def __init__(self, low: int = 0, high: int = checks.LARGEST_HORIZON) -> None:
        self._low, self._high = low, high

    def load(self, name: str, plain: Any, sizes: Sizes) -> int:
        """Return the number after a check."""
        return checks.integer(name, plain, self._low, self._high)


class Real(_Plain):
    """A finite number in a range."""

    def __init__(
        self, low: float = -math.inf, high: float = math.inf, *, low_open: bool = False
    ) -> None:
        self._low, self._high, self._low_open = low, high, low_open

    def load(self, name: str, plain: Any, sizes: Sizes) -> float:
        """Return the number after a check."""
        return checks.real(name, plain, self._low, self._high, low_open=self._low_open)


class Flag(_Plain):
    """True or False."""

    def load(self, name: str, plain: Any, sizes: Sizes) -> bool:
        """Return the value after a check."""
        return checks.boolean(name, plain)


class Text(_Plain):
    """A string."""

    def load(self, name: str, plain: Any, sizes: Sizes) -> str:
        """Return the string after a check."""
        if not isinstance(plain, str):
            raise ArchiveError(f"{name} must be a string, got {plain!r:.40}")
        return plain


class Word(_Plain):
    """One of some words."""

    def __init__(self, words: tuple[str, ...]) -> None:
        self._words = words

    def load(self, name: str, plain: Any, sizes: Sizes) -> str:
        """Return the word after a check."""
        return checks.one_of(name, plain, self._words)


class RandomState(_Plain):
    """The state of a random stream of numpy."""

    def load(self, name: str, plain: Any, sizes: Sizes) -> dict[str, Any]:
        """Return the state after a generator has taken it."""
        generator = np.random.PCG64()
        generator.state = plain
        return dict(generator.state)


class Levels:
    """Further levels of categories, each with the first feature of its category."""

    def __init__(self, dim: str) -> None:
        self._dim = dim

    def dump(self, value: Mapping[int, int]) -> list[list[int]]:
        """Return pairs."""
        return [list(pair) for pair in value.items()]

    def load(self, name: str, plain: Any, sizes: Sizes) -> dict[int, int]:
        """Return the mapping after checking that features exist."""
        last = (getattr(sizes.owner, self._dim) or 0) - 1
        return {
            checks.integer("a further level", level, 1, last): checks.integer(
                "the first feature of a category", first, 0, level - 1
            )
            for level, first in plain
        }


class Maybe(NamedTuple):
    """A field that may be None."""

    field: Field

    def dump(self, value: Any) -> Any:
        """Return None, or what the field does."""
        return None if value is None else self.field.dump(value)

    def load(self, name: str, plain: Any, sizes: Sizes) -> Any:
        """Return None, or what the field does."""
        return None if plain is None else self.field.load(name, plain, sizes)


class Each(NamedTuple):
    """A tuple of values of one kind, of some length or any."""

    field: Field
    length: int | None = None

    def dump(self, value: Any) -> list[Any]:
        """Return a list."""
        return [self.field.dump(each) for each in value]

    def load(self, name: str, plain: Any, sizes: Sizes) -> tuple[Any, ...]:
        """Return a tuple after checking each value."""
        if self.length not in (None, len(plain)):
            raise ArchiveError(f"{name} must have {self.length} values, got {len(plain)}")
        return tuple(self.field.load(name, each, sizes) for each in plain)


class Part:
    """An object with a state of its own, which a fresh owner has already."""

    def dump(self, value: Any) -> Any:
        """Return the state of the part."""
        return value.state() if hasattr(value, "state") else dump(value)

    def load(self, name: str, plain: Any, sizes: Sizes) -> Any:
        """Return the owner's part, with the saved state."""
        part = getattr(sizes.owner, name)
        if hasattr(part, "restore"):
            part.restore(plain)
        else:
            restore(part, plain)
        return part


class Built(NamedTuple):
    """An object that its class builds from its owner and its state, with `restored`."""

    type: Any

    def dump(self, value: Any) -> Any:
        """Return the state of the object."""
        return value.state()

    def load(self, name: str, plain: Any, sizes: Sizes) -> Any:
        """Return the object."""
        return self.type.restored(sizes.owner, plain)


class Value:
    """An immutable object, made from its fields, such as a named tuple or a frozen dataclass."""

    def __init__(self, type: Any, **fields: Field) -> None:
        self._type, self._fields = type, fields

    def dump(self, value: Any) -> dict[str, Any]:
        """Return its fields."""
        return {name: field.dump(getattr(value, name)) for name, field in self._fields.items()}

    def load(self, name: str, plain: Any, sizes: Sizes) -> Any:
        """Return the object after checking its fields."""
        return self._type(**_loaded(name, self._fields, plain, sizes))


ARMS = Array(("n", "dim"), low=-LARGEST, high=LARGEST, hidden=True)
"""Rows of half-seen arms."""


def fields_of(kind: type) -> dict[str, Field]:
    """Return the fields that a class and its bases declare."""
    found: dict[str, Field] = {}
    for base in reversed(kind.__mro__):
        found |= base.__dict__.get("STATE", {})
    return found


def dump(item: Any) -> dict[str, Any]:
    """Return the declared state of an object as plain values and arrays."""
    fields = fields_of(type(item))
    return {name.lstrip("_"): field.dump(getattr(item, name)) for name, field in fields.items()}


def load(item: Any, plain: Any) -> dict[str, Any]:
    """Return checked values of the fields of an object, by name, without setting them."""
    return _loaded(type(item).__name__, fields_of(type(item)), plain, Sizes(item))


def restore(item: Any, plain: Any) -> None:
    """Set the declared state of an object to what `dump` returned."""
    for name, value in load(item, plain).items():
        setattr(item, name, value)


def _loaded(owner: str, fields: Mapping[str, Field], plain: Any, sizes: Sizes) -> dict[str, Any]:
    if not isinstance(plain, dict) or plain.keys() != {name.lstrip("_") for name in fields}:
        raise ArchiveError(f"the state of {owner} must have the fields {list(fields)}")
    return {
        name: field.load(name, plain[name.lstrip("_")], sizes) for name, field in fields.items()
    }
