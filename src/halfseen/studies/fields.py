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

NAMED = "*"
"""A place in a table whose key is the first word of the message."""

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
    """Return the details with which an error of pydantic can be raised again."""
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
        keys = f"; there are {', '.join(map(repr, known))}"
        texts = {key: checks.did_you_mean(key, known) or keys for key in unknown}
        errors = [_details(f"is not a key here{text}", (key,)) for key, text in texts.items()]
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


def _that(holds: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that returns its argument if `holds`, and raises otherwise."""

    def accept(value: Any) -> Any:
        if not holds(value):
            raise ValueError
        return value

    return accept


def _some(accept: Callable[[Any], Any], fewest: int = 0) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that accepts one value or a list of them and returns a tuple."""

    def accept_all(value: Any) -> tuple[Any, ...]:
        found = tuple(map(accept, value if isinstance(value, list | tuple) else [value]))
        if len(found) < fewest:
            raise ValueError
        return found

    return accept_all


_text = _that(lambda value: isinstance(value, str) and value)
_name = _that(lambda value: isinstance(value, str) and re.fullmatch(r"\w[\w.-]*", value))
_label = _that(lambda value: _name(_text(value).removeprefix("fig:")))
_list = _that(lambda value: isinstance(value, list | tuple))
_distinct = _that(lambda values: len(set(values)) == len(values))


def _number(value: Any) -> float:
    return checks.real("it", value, 0.0)


def _prob(value: Any) -> float:
    return checks.probability("it", value)


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
    if not seeds or min(seeds) < 0:
        raise ValueError
    return tuple(_distinct(seeds))


_SEEDS = 'different integers from 0 on, at most a million, such as "0:20" or [3, 5]'


def parse_seeds(value: Any) -> tuple[int, ...]:
    """Return seeds from a list, a number, or a text such as "0:20" or "3,5,7".

    >>> parse_seeds("0:3"), parse_seeds("3,5"), parse_seeds([7, 8])
    ((0, 1, 2), (3, 5), (7, 8))
    """
    try:
        return _seeds(value)
    except ValueError:
        raise StudyError(f"seeds must be {_SEEDS}, got {value!r}") from None


_NAME = "letters, digits, '-', '_' and '.', beginning with a letter or digit, as it names a file"
_PROB, _NUMBER = "a probability in (0, 1]", "a number in [0, inf)"

Text: TypeAlias = Annotated[str, must_be("a text", _text)]
Words: TypeAlias = Annotated[str, must_be("a text", _that(lambda value: isinstance(value, str)))]
"""A text that may be empty."""
Texts: TypeAlias = Annotated[tuple[str, ...], must_be("a text or a list of them", _some(_text, 1))]
TextList: TypeAlias = Annotated[
    tuple[str, ...], must_be("a list of texts", lambda value: _some(_text)(_list(value)))
]
Name: TypeAlias = Annotated[str, must_be(_NAME, _name)]
Label: TypeAlias = Annotated[str, must_be(_NAME, _label)]
"""A name, perhaps after "fig:"."""
Flag: TypeAlias = Annotated[
    bool, must_be("true or false", lambda value: checks.boolean("it", value))
]
Number: TypeAlias = Annotated[float, must_be(_NUMBER, _number)]
Numbers: TypeAlias = Annotated[
    tuple[float, ...], must_be(f"{_NUMBER} or a list of them", _some(_number, 1))
]
Prob: TypeAlias = Annotated[float, must_be(_PROB, _prob)]
Probs: TypeAlias = Annotated[
    tuple[float, ...],
    must_be(f"{_PROB} or a list of different ones", lambda value: _distinct(_some(_prob)(value))),
]
Seeds: TypeAlias = Annotated[tuple[int, ...], must_be(_SEEDS, _seeds)]
Points: TypeAlias = Annotated[
    int, must_be("an integer in [2, inf)", lambda value: checks.integer("it", value, 2))
]


def _by_key(value: Any) -> Any:
    """Return tables by key; a list of keys stands for empty tables."""
    if isinstance(value, list) and all(isinstance(key, str) for key in value):
        return {key: {} for key in value}
    return value


Settings: TypeAlias = dict[str, Any]
"""A table whose keys a world or a policy knows."""
MethodTables: TypeAlias = Annotated[dict[str, Settings], BeforeValidator(_by_key)]


def other_types(value: Any, place: Place = ()) -> dict[Place, str]:
    """Return the places of values that JSON lacks, so that they cannot be stored with results."""
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


def as_table(value: Any) -> Mapping[str, Any]:
    """Return a table, empty for what is none."""
    return value if isinstance(value, Mapping) else {}
