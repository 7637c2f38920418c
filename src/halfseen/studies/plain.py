"""Plain data of a study file, read key by key; every mistake is told with its place."""

import math
import re
from collections.abc import Mapping
from typing import Any

from halfseen import checks
from halfseen.errors import InvalidSettingError, StudyError


def read_table(value: Any, where: str, keys: tuple[str, ...]) -> Mapping[str, Any]:
    """Return a table that has no other keys than these."""
    name = where or "a study"
    if not isinstance(value, Mapping):
        raise StudyError(f"{name} must be a table, got {value!r}")
    for key in value:
        if key not in keys:
            path = f"{where}.{key}" if where else key
            raise StudyError(f"{path} is not a key of {name}, which has {list(keys)}")
    return value


def refuse_other_types(value: Any, where: str) -> None:
    """Refuse what JSON does not have, which would fail only when results are written."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            refuse_other_types(item, f"{where}.{key}" if where else str(key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            refuse_other_types(item, f"{where}[{index}]")
    elif not isinstance(value, str | int | float | None) or (
        isinstance(value, float) and not math.isfinite(value)
    ):
        raise StudyError(f"{where} must be a text, a finite number, true or false, got {value!r}")


def read_tables(value: Any, where: str) -> list[dict[str, Any]]:
    """Return a list of tables."""
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise StudyError(f"{where} must be a list of tables, got {value!r}")
    return [dict(item) for item in value]


def read_text(data: Mapping[str, Any], key: str, default: str | None = None) -> str:
    """Return a text that is not empty; that of "name" can name a folder."""
    value = data.get(key, default)
    if not isinstance(value, str) or not value:
        raise StudyError(f"{key} must be a text, got {value!r}")
    if key == "name" and not re.fullmatch(r"\w[\w.-]*", value):
        raise StudyError(
            "name must consist of letters, digits, '-', '_' and '.', and not begin with '-' or "
            f"'.', got {value!r}: it names a folder"
        )
    return value


def read_texts(value: Any, where: str) -> list[str]:
    """Return a list of texts."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise StudyError(f"{where} must be a list of texts, got {value!r}")
    return value


def parse_seeds(value: Any, where: str = "seeds") -> tuple[int, ...]:
    """Return seeds from a list, a number, or a text such as "0:20" or "3,5,7".

    >>> parse_seeds("0:3"), parse_seeds("3,5"), parse_seeds([7, 8])
    ((0, 1, 2), (3, 5), (7, 8))
    """
    try:
        if isinstance(value, str) and ":" in value:
            first, _, end = value.partition(":")
            seeds = tuple(range(int(first or 0), int(end)))
        elif isinstance(value, str):
            seeds = tuple(int(part) for part in value.split(","))
        elif isinstance(value, list | tuple | range):
            seeds = tuple(checks.integer("seed", seed, 0) for seed in value)
        else:
            seeds = (checks.integer("seed", value, 0),)
    except ValueError:  # InvalidSettingError is one, too
        seeds = ()
    if not seeds or min(seeds) < 0 or len(set(seeds)) < len(seeds):
        raise StudyError(
            f'{where} must be different integers from 0 on, such as "0:20" or [3, 5], got {value!r}'
        )
    return seeds


def read_integer(value: Any, where: str, low: int) -> int:
    """Return a whole number from `low` on."""
    try:
        return checks.integer(where, value, low)
    except InvalidSettingError as error:
        raise StudyError(str(error)) from None


def read_probs(value: Any, where: str) -> tuple[float, ...]:
    """Return probabilities, none twice, also from a single one."""
    listed = value if isinstance(value, list | tuple) else [value]
    try:
        probs = tuple(checks.probability(where, p) for p in listed)
    except InvalidSettingError as error:
        raise StudyError(str(error)) from None
    if len(set(probs)) < len(probs):
        raise StudyError(f"{where} must not repeat a value, got {list(probs)}")
    return probs


def first_of(
    key: str, data: Mapping[str, Any], smoke: Mapping[str, Any], default: Any
) -> tuple[Any, str]:
    """Return the value of a key and where it stands: in [smoke], in the study, or nowhere."""
    if key in smoke:
        return smoke[key], f"smoke.{key}"
    return data.get(key, default), key
