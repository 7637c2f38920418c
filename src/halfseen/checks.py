"""The one place that phrases range errors: what, range, value got."""

import difflib
import math
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any

from halfseen.errors import InvalidSettingError

LARGEST_SIZE = 10**7
"""Largest number of features or arms: a few rows of so many still fit into memory."""

LARGEST_HORIZON = 10**15
"""Up to here floating-point numbers count rounds exactly."""


def interval(low: float, high: float, low_open: bool = False, high_open: bool = False) -> str:
    """Return an interval in mathematical notation.

    >>> interval(0, 1, low_open=True)
    '(0, 1]'
    """
    left = "(" if low_open or math.isinf(low) else "["
    right = ")" if high_open or math.isinf(high) else "]"
    return f"{left}{low:g}, {high:g}{right}"


def as_float(value: Any) -> float:
    """Return `value` as a float; a number too large for a float becomes infinite.

    NaN if it cannot be converted: durations of numpy count as integers, and are not numbers.

    >>> as_float(10**400)
    inf
    """
    try:
        return float(value)
    except OverflowError:
        return math.inf
    except TypeError:
        return math.nan


def shown(value: Any) -> str:
    """Return a value as it is written, or the size of a number that has too many digits for that.

    >>> shown(10**5000)
    'a number of 16610 bits'
    """
    try:
        return repr(value)
    except ValueError:
        return f"a number of {value.bit_length()} bits"


def significant(value: float, digits: int = 4, sign: str = "") -> str:
    """Return a number as people write it, with at least so many significant digits.

    >>> significant(2019.5, 3), significant(0.12345), significant(12.0), significant(-1234567.8)
    ('2020', '0.1235', '12', '-1234568')
    >>> significant(1.5e-7), significant(2e12), significant(2.5, sign="+")
    ('1.5e-07', '2e+12', '+2.5')
    """
    if value == 0.0 or not 1e-4 <= abs(value) < 1e9:
        return f"{value:{sign}.{digits}g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:{sign}.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def real(
    name: str,
    value: Any,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    low_open: bool = False,
    high_open: bool = False,
) -> float:
    """Return `value` as a float if it is a finite real number in the interval.

    >>> real("theta_bound", 2, 0)
    2.0
    >>> real("growth", 1, 1, low_open=True)
    Traceback (most recent call last):
    halfseen.errors.InvalidSettingError: growth must be in (1, inf), got 1
    """
    if isinstance(value, Real) and not isinstance(value, bool):
        number = as_float(value)
        above = number > low if low_open else number >= low
        below = number < high if high_open else number <= high
        if math.isfinite(number) and above and below:
            return number
    where = interval(low, high, low_open, high_open)
    raise InvalidSettingError(f"must be in {where}, got {shown(value)}", name=name)


def probability(name: str, value: Any) -> float:
    """Return `value` as a float if it lies in (0, 1].

    >>> probability("observe_prob", 1.4)
    Traceback (most recent call last):
    halfseen.errors.InvalidSettingError: observe_prob must be in (0, 1], got 1.4
    """
    return real(name, value, 0.0, 1.0, low_open=True)


def failure_prob(name: str, value: Any) -> float:
    """Return `value` as a float if it lies in (0, 1) and is large enough to be divided further."""
    prob = real(name, value, 0.0, 1.0, low_open=True, high_open=True)
    return real(name, prob, 1e-100, 1.0, high_open=True)


def integer(name: str, value: Any, low: int | None = None, high: int | None = None) -> int:
    """Return `value` as an int if it is a whole number in the range; 3.0 and True are not.

    >>> integer("dim", 0, 1)
    Traceback (most recent call last):
    halfseen.errors.InvalidSettingError: dim must be an integer in [1, inf), got 0
    """
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if whole and (low is None or value >= low) and (high is None or value <= high):
        return int(value)
    where = interval(-math.inf if low is None else low, math.inf if high is None else high)
    raise InvalidSettingError(f"must be an integer in {where}, got {shown(value)}", name=name)


def size(name: str, value: Any, low: int = 1) -> int:
    """Return `value` as an int if it is a possible number of features or arms.

    >>> size("dim", 2 * 10**9)
    Traceback (most recent call last):
    halfseen.errors.InvalidSettingError: dim must be an integer in [1, 1e+07], got 2000000000
    """
    return integer(name, value, low, LARGEST_SIZE)


def one_of(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """Return `value` if it is one of the allowed words.

    >>> one_of("replay", "all", ("none", "full"))
    Traceback (most recent call last):
    halfseen.errors.InvalidSettingError: replay must be one of 'none', 'full', got 'all'
    """
    if not isinstance(value, str) or value not in allowed:
        words = ", ".join(repr(word) for word in allowed)
        raise InvalidSettingError(f"must be one of {words}, got {value!r}", name=name)
    return value


def boolean(name: str, value: Any) -> bool:
    """Return `value` if it is True or False.

    >>> boolean("indicators", 1)
    Traceback (most recent call last):
    halfseen.errors.InvalidSettingError: indicators must be True or False, got 1
    """
    if not isinstance(value, bool):
        raise InvalidSettingError(f"must be True or False, got {value!r}", name=name)
    return value


def text(name: str, value: Any) -> str:
    """Return `value` if it is a non-empty string.

    >>> text("token", 7)
    Traceback (most recent call last):
    halfseen.errors.InvalidSettingError: token must be a string, got 7
    """
    if not isinstance(value, str) or not value:
        raise InvalidSettingError(f"must be a string, got {value!r}", name=name)
    return value


def levels(given: Mapping[int, int], known: int, dim: int) -> None:
    """Raise an error unless each further level of a category is a new one of `dim` features.

    Levels come with the first feature of their category.

    >>> levels({3: 1}, 2, 3)
    Traceback (most recent call last):
    halfseen.errors.InvalidSettingError: a further level must be an integer in [2, 2], got 3
    """
    for level, first in given.items():
        integer("a further level", level, known, dim - 1)
        integer("the first feature of a category", first, 0, level - 1)


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """Return a question that suggests the nearest known word, or an empty string if none is near.

    >>> did_you_mean("syntetic", ["synthetic", "mnist"])
    ": did you mean 'synthetic'?"
    """
    near = difflib.get_close_matches(str(word), list(known), n=1)
    return f": did you mean {near[0]!r}?" if near else ""


def unused_name(name: str, new: type, known: Mapping[str, type]) -> None:
    """Raise an error if a class from elsewhere takes the name of one that halfseen has.

    >>> unused_name("int", float, {"int": int})
    """
    old = known.get(name)
    if old is not None and _is_ours(old) and not _is_ours(new):
        raise InvalidSettingError(
            f"the name {name!r} belongs to halfseen's {old.__name__}: choose another"
        )


def _is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "halfseen"
