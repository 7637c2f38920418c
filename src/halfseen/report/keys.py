"""Plain data of figures and claims, read key by key; every error names its place."""

from collections.abc import Mapping
from typing import Any

from halfseen import checks
from halfseen.errors import InvalidSettingError, StudyError


class Keys:
    """A table of a study file, of which only some keys are known.

    Parameters
    ----------
    plain : mapping
        What the study file says.
    where : str
        Its place there, such as "figures[0].panels[1]".
    known : tuple of str
        All keys it may have.

    Examples
    --------
    >>> Keys({"kind": "sweep", "logg": True}, "figures[0].panels[1]", ("kind", "log"))
    Traceback (most recent call last):
    halfseen.errors.StudyError: figures[0].panels[1].logg is not a key here; there are 'kind', 'log'
    """

    def __init__(self, plain: Any, where: str, known: tuple[str, ...]) -> None:
        if not isinstance(plain, Mapping):
            raise StudyError(f"{where} must be a table, got {plain!r}")
        for key in plain:
            if key not in known:
                names = ", ".join(repr(name) for name in known)
                raise StudyError(f"{where}.{key} is not a key here; there are {names}")
        self._plain, self.where = plain, where

    def text(self, key: str, default: str | None = None) -> str:
        """Return a text; without a default the key is required."""
        value = self._plain.get(key, default)
        if not isinstance(value, str) or (not value and default is None):
            raise self.error(key, "a text", value)
        return value

    def one_of(self, key: str, words: tuple[str, ...]) -> str:
        """Return one of the words."""
        try:
            return checks.one_of(f"{self.where}.{key}", self._plain.get(key), words)
        except InvalidSettingError as error:
            raise StudyError(str(error)) from None

    def texts(self, key: str) -> tuple[str, ...] | None:
        """Return texts, also from a single one; None where the key is not there."""
        if key not in self._plain:
            return None
        value = self._plain[key]
        listed = [value] if isinstance(value, str) else value
        if not isinstance(listed, list | tuple) or not listed:
            raise self.error(key, "a text or a list of them", value)
        if not all(isinstance(item, str) and item for item in listed):
            raise self.error(key, "a text or a list of them", value)
        return tuple(listed)

    def flag(self, key: str) -> bool:
        """Return a flag, false where the key is not there."""
        value = self._plain.get(key, False)
        if not isinstance(value, bool):
            raise self.error(key, "true or false", value)
        return value

    def number(self, key: str, low: float = 0.0) -> float:
        """Return a required number from `low` on."""
        try:
            return checks.real(f"{self.where}.{key}", self._plain.get(key), low)
        except InvalidSettingError as error:
            raise StudyError(str(error)) from None

    def list_of_numbers(self, key: str, low: float = 0.0) -> tuple[float, ...]:
        """Return required numbers from `low` on, also from a single one."""
        value = self._plain.get(key)
        listed = list(value) if isinstance(value, list | tuple) else [value]
        if not listed:
            raise self.error(key, "a number or a list of them", value)
        try:
            return tuple(checks.real(f"{self.where}.{key}", item, low) for item in listed)
        except InvalidSettingError as error:
            raise StudyError(str(error)) from None

    def probs(self, key: str) -> tuple[float, ...] | None:
        """Return probabilities, also from a single one; None where the key is not there."""
        if key not in self._plain:
            return None
        value = self._plain[key]
        listed = list(value) if isinstance(value, list | tuple) else [value]
        if not listed:
            raise self.error(key, "a probability or a list of them", value)
        try:
            return tuple(checks.probability(f"{self.where}.{key}", item) for item in listed)
        except InvalidSettingError as error:
            raise StudyError(str(error)) from None

    def prob(self, key: str) -> float | None:
        """Return one probability; None where the key is not there."""
        if key not in self._plain:
            return None
        if isinstance(self._plain[key], list | tuple):
            raise self.error(key, "one probability", self._plain[key])
        probs = self.probs(key)
        return probs[0] if probs else None

    def tables(self, key: str) -> list[Any]:
        """Return a required list, whose items the caller reads."""
        value = self._plain.get(key)
        if not isinstance(value, list | tuple) or not value:
            raise self.error(key, "a list of tables, at least one", value)
        return list(value)

    def error(self, key: str, what: str, value: Any) -> StudyError:
        """Return the error that a value is not what it must be."""
        return StudyError(f"{self.where}.{key} must be {what}, got {value!r}")
