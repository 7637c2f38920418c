"""The types of which study files are made; each says in words what a value must be."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Self, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from halfseen import checks
from halfseen.errors import StudyError

Place = tuple[str | int, ...]
"""Where something stands in a table: keys, and positions in lists."""

_MISTAKE = "mistake"
_MOST_SEEDS = 1_000_000


def refuse(mistakes: Mapping[Place, str]) -> None:
    """Raise for all mistakes in a table at once, if there are any."""
    if mistakes:
        raise ValidationError.from_exception_data(
            _MISTAKE, [_details(text, place) for place, text in mistakes.items()]
        )


def _details(text: str, place: Place, value: Any = None) -> InitErrorDetails:
    error = PydanticCustomError(_MISTAKE, "{text}", {"text": text})
    return InitErrorDetails(type=error, loc=place, input=value)


def _again(error: Any) -> InitErrorDetails:
    """Return the details from which an error of pydantic can be raised once more."""
    if error["type"] == _MISTAKE:
        return _details(error["msg"], error["loc"], error["input"])
    context = error.get("ctx", {})
    return InitErrorDetails(type=error["type"], loc=error["loc"], input=error["input"], ctx=context)


class Table(BaseModel):
    """A table of a study file. An unknown key is a mistake, and so is a wrong value."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    @model_validator(mode="wrap")
    @classmethod
    def _explain_unknown_keys(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        known = tuple(cls.model_fields)
        unknown = [key for key in data if key not in known] if isinstance(data, Mapping) else []
        if not unknown:
            return handler(data)
        keys = ", ".join(repr(key) for key in known)
        errors = [
            _details(
                f"is not a key here{checks.did_you_mean(key, known) or f'; there are {keys}'}",
                (key,),
            )
            for key in unknown
        ]
        try:
            handler({key: value for key, value in data.items() if key in known})
        except ValidationError as error:
            errors += [_again(each) for each in error.errors()]
        raise ValidationError.from_exception_data(_MISTAKE, errors)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types: what the file says, without defaults."""
        return self.model_dump(mode="json", exclude_unset=True)


def must_be(what: str, accept: Callable[[Any], Any]) -> BeforeValidator:
    """Return the validator of a type; `accept` raises ValueError for what is not of it."""

    def validate(value: Any) -> Any:
        try:
            return accept(value)
        except ValueError:
            text = f"must be {what}, got {value!r}"
            raise PydanticCustomError(_MISTAKE, "{text}", {"text": text}) from None

    return BeforeValidator(validate)


def one_of(words: Sequence[str]) -> BeforeValidator:
    """Return the validator of a choice between words."""
    what = f"one of {', '.join(repr(word) for word in words)}"
    return must_be(what, lambda value: checks.one_of("it", value, tuple(words)))


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _name(value: Any) -> str:
    if not re.fullmatch(r"\w[\w.-]*", _text(value)):
        raise ValueError
    return str(value)


def _label(value: Any) -> str:
    _name(_text(value).removeprefix("fig:"))
    return str(value)


def _listed(value: Any, accept: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Return one or several values as a tuple."""
    listed = value if isinstance(value, list | tuple) else [value]
    return tuple(accept(item) for item in listed)


def _at_least_one(value: Any, accept: Callable[[Any], Any]) -> tuple[Any, ...]:
    found = _listed(value, accept)
    if not found:
        raise ValueError
    return found


def _prob(value: Any) -> float:
    return checks.probability("it", value)


def _probs(value: Any) -> tuple[float, ...]:
    found = _listed(value, _prob)
    if len(set(found)) < len(found):
        raise ValueError
    return found


def _number(value: Any) -> float:
    return checks.real("it", value, 0.0)


def _seeds(value: Any) -> tuple[int, ...]:
    if isinstance(value, str) and ":" in value:
        first, _, end = value.partition(":")
        listed = range(int(first or 0), int(end))
        if listed[_MOST_SEEDS:]:  # a range may be longer than memory
            raise ValueError
        seeds = tuple(listed)
    elif isinstance(value, str):
        seeds = tuple(int(part) for part in value.split(","))
    else:
        given = value if isinstance(value, list | tuple | range) else [value]
        seeds = tuple(checks.integer("seed", seed, 0) for seed in given)
    if not seeds or min(seeds) < 0 or len(set(seeds)) < len(seeds):
        raise ValueError
    return seeds


_SEEDS = 'different integers from 0 on, at most a million, such as "0:20" or [3, 5]'


def parse_seeds(value: Any, where: str = "seeds") -> tuple[int, ...]:
    """Return seeds from a list, a number, or a text such as "0:20" or "3,5,7".

    >>> parse_seeds("0:3"), parse_seeds("3,5"), parse_seeds([7, 8])
    ((0, 1, 2), (3, 5), (7, 8))
    """
    try:
        return _seeds(value)
    except ValueError:
        raise StudyError(f"{where} must be {_SEEDS}, got {value!r}") from None


_NAME = "letters, digits, '-', '_' and '.', beginning with a letter or digit, as it names a file"
_TEXTS, _PROB = "a text or a list of them", "a probability in (0, 1]"

Text: TypeAlias = Annotated[str, must_be("a text", _text)]
Words: TypeAlias = Annotated[
    str, must_be("a text", lambda value: value if value == "" else _text(value))
]
"""A text that may be empty."""
Name: TypeAlias = Annotated[str, must_be(_NAME, _name)]
Label: TypeAlias = Annotated[str, must_be(_NAME, _label)]
"""A name, perhaps after "fig:"."""
Texts: TypeAlias = Annotated[
    tuple[str, ...], must_be(_TEXTS, lambda value: _at_least_one(value, _text))
]
TextList: TypeAlias = Annotated[
    tuple[str, ...], must_be("a list of texts", lambda value: _list_of_texts(value))
]
Flag: TypeAlias = Annotated[bool, must_be("true or false", _flag)]
Number: TypeAlias = Annotated[float, must_be("a number in [0, inf)", _number)]
Numbers: TypeAlias = Annotated[
    tuple[float, ...],
    must_be("a number in [0, inf) or a list of them", lambda value: _at_least_one(value, _number)),
]
Prob: TypeAlias = Annotated[float, must_be(_PROB, _prob)]
Probs: TypeAlias = Annotated[
    tuple[float, ...], must_be(f"{_PROB} or a list of different ones", _probs)
]
Seeds: TypeAlias = Annotated[tuple[int, ...], must_be(_SEEDS, _seeds)]
Points: TypeAlias = Annotated[
    int, must_be("an integer in [2, inf)", lambda value: checks.integer("it", value, 2))
]


def _list_of_texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError
    return _listed(value, _text)


def _by_key(value: Any) -> Any:
    """Return tables by key, also from a list of keys."""
    if isinstance(value, list) and all(isinstance(key, str) for key in value):
        return {key: {} for key in value}
    return value


Settings: TypeAlias = dict[str, Any]
"""A table whose keys a world or a policy knows."""
MethodTables: TypeAlias = Annotated[dict[str, Settings], BeforeValidator(_by_key)]


def other_types(value: Any, place: Place = ()) -> dict[Place, str]:
    """Return the places of what JSON does not have, which could not be stored with results."""
    found: dict[Place, str] = {}
    if isinstance(value, Mapping):
        for key, item in value.items():
            found |= other_types(item, (*place, str(key)))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            found |= other_types(item, (*place, index))
    elif not isinstance(value, str | int | float | None) or (
        isinstance(value, float) and not math.isfinite(value)
    ):
        found[place] = f"must be a text, a finite number, true or false, got {value!r}"
    return found
