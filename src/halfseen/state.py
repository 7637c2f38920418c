"""What of an object is saved, declared once per class: name, type, shape and range of each field.

A class lists the attributes that make up its state::

    class Mean:
        STATE = {"_n": Whole(low=0), "_sums": Array(("dim",))}

`dump(mean)` returns them as plain values and arrays, `restore(mean, plain)` checks and sets them,
one after the other. Then it calls `mean.after_loading()`, if there is such a method, to compute
what is not saved and to check that fields fit together. A subclass adds its fields to those of its
bases. A leading underscore is not saved.

An attribute of a kind that is not listed here needs its own field: a class with `dump` and
`load`.

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
from collections.abc import Callable, Mapping
from functools import partial
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

    def __getitem__(self, name: str) -> int:
        return self._known[name]

    def inner(self) -> "Sizes":
        """Return a copy: names that it binds are not bound here."""
        return Sizes(self.owner, **self._known)


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


ARMS = Array(("n", "dim"), low=-LARGEST, high=LARGEST, hidden=True)
"""Rows of half-seen arms."""


class Arrays(NamedTuple):
    """Arrays of numbers by name: finite, with the names and shapes that a fresh owner has."""

    low: float = -math.inf
    high: float = math.inf

    def dump(self, value: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        """Return copies."""
        return {name: np.array(array) for name, array in value.items()}

    def load(self, name: str, plain: Any, sizes: Sizes) -> dict[str, FloatArray]:
        """Return copies after checking names, shapes and range."""
        fresh: Mapping[str, FloatArray] = getattr(sizes.owner, name)
        if not isinstance(plain, dict) or plain.keys() != fresh.keys():
            raise ArchiveError(f"{name} must have the arrays {list(fresh)}")
        return {
            each: Array(array.shape, low=self.low, high=self.high).load(each, plain[each], sizes)
            for each, array in fresh.items()
        }


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


class Plain:
    """A value that is plain already, or that a function makes plain.

    A check gets its name and plain form, and returns the value.
    """

    def __init__(
        self, check: Callable[[str, Any], Any], plain: Callable[[Any], Any] = lambda value: value
    ) -> None:
        self._check, self._plain = check, plain

    def dump(self, value: Any) -> Any:
        """Return the plain value."""
        return self._plain(value)

    def load(self, name: str, plain: Any, sizes: Sizes) -> Any:
        """Return the value after its check."""
        return self._check(name, plain)


class Whole(Plain):
    """A whole number in a range."""

    def __init__(self, low: int = 0, high: int = checks.LARGEST_HORIZON) -> None:
        super().__init__(lambda name, value: checks.integer(name, value, low, high))


class Real(Plain):
    """A finite number in a range."""

    def __init__(
        self, low: float = -math.inf, high: float = math.inf, *, low_open: bool = False
    ) -> None:
        super().__init__(lambda name, value: checks.real(name, value, low, high, low_open=low_open))


class Word(Plain):
    """One of some words."""

    def __init__(self, words: tuple[str, ...]) -> None:
        super().__init__(lambda name, value: checks.one_of(name, value, words))


def _string(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ArchiveError(f"{name} must be a string, got {value!r:.40}")
    return value


Flag = partial(Plain, checks.boolean)
"""The field of True or False."""

Text = partial(Plain, _string)
"""The field of a string."""


class Levels:
    """Further levels of categories, each with the first feature of its category."""

    def __init__(self, dim: str) -> None:
        self._dim = dim

    def dump(self, value: Mapping[int, int]) -> list[list[int]]:
        """Return pairs."""
        return [list(pair) for pair in value.items()]

    def load(self, name: str, plain: Any, sizes: Sizes) -> dict[int, int]:
        """Return the mapping after checking that features exist."""
        levels = dict(plain)
        checks.levels(levels, 1, getattr(sizes.owner, self._dim) or 0)
        return levels


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
    """A tuple of values of one kind, of some length or any from `least` on."""

    field: Field
    length: int | None = None
    least: int = 0

    def dump(self, value: Any) -> list[Any]:
        """Return a list."""
        return [self.field.dump(each) for each in value]

    def load(self, name: str, plain: Any, sizes: Sizes) -> tuple[Any, ...]:
        """Return a tuple after checking each value."""
        if self.length not in (None, len(plain)):
            raise ArchiveError(f"{name} must have {self.length} values, got {len(plain)}")
        if len(plain) < self.least:
            raise ArchiveError(f"{name} must have at least {self.least} values, got {len(plain)}")
        return tuple(self.field.load(name, each, sizes) for each in plain)


class Part(NamedTuple):
    """An object with a declared state: a fresh owner has it, or `make` returns one from sizes."""

    make: Callable[[Sizes], Any] | None = None

    def dump(self, value: Any) -> Any:
        """Return the state of the part."""
        return dump(value)

    def load(self, name: str, plain: Any, sizes: Sizes) -> Any:
        """Return the part with the saved state."""
        part = getattr(sizes.owner, name) if self.make is None else self.make(sizes)
        restore(part, plain)
        return part


class Value:
    """An object that is made from its fields, such as a named tuple or a frozen dataclass."""

    def __init__(self, make: Callable[..., Any], **fields: Field) -> None:
        self._make, self._fields = make, fields

    def dump(self, value: Any) -> dict[str, Any]:
        """Return its fields."""
        return {name: field.dump(getattr(value, name)) for name, field in self._fields.items()}

    def load(self, name: str, plain: Any, sizes: Sizes) -> Any:
        """Return the object after checking its fields."""
        _check_names(name, self._fields, plain)
        inner, fields = sizes.inner(), self._fields.items()
        return self._made(sizes, {key: field.load(key, plain[key], inner) for key, field in fields})

    def _made(self, sizes: Sizes, values: dict[str, Any]) -> Any:
        return self._make(**values)


class Built(Value):
    """An object that is made from its owner and its fields."""

    def _made(self, sizes: Sizes, values: dict[str, Any]) -> Any:
        return self._make(sizes.owner, **values)


def dump(item: Any) -> dict[str, Any]:
    """Return the declared state of an object as plain values and arrays."""
    fields = _fields_of(type(item))
    return {name.lstrip("_"): field.dump(getattr(item, name)) for name, field in fields.items()}


def restore(item: Any, plain: Any) -> None:
    """Set the declared state of a fresh object to what `dump` returned."""
    fields, sizes = _fields_of(type(item)), Sizes(item)
    _check_names(type(item).__name__, fields, plain)
    for name, field in fields.items():
        setattr(item, name, field.load(name, plain[name.lstrip("_")], sizes))
    if hasattr(item, "after_loading"):
        item.after_loading()


def _fields_of(kind: type) -> dict[str, Field]:
    """Return the fields that a class and its bases declare."""
    found: dict[str, Field] = {}
    for base in reversed(kind.__mro__):
        found |= base.__dict__.get("STATE", {})
    return found


def _check_names(owner: str, fields: Mapping[str, Field], plain: Any) -> None:
    if not isinstance(plain, dict) or plain.keys() != {name.lstrip("_") for name in fields}:
        raise ArchiveError(f"the state of {owner} must have the fields {list(fields)}")
