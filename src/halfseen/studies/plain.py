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
