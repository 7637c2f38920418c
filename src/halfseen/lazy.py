"""Modules that are loaded when something of them is needed, and may not be installed."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from halfseen.errors import MissingExtraError


class LazyModule:
    """Stands for a module until an attribute is asked for: compiled loops cost seconds to load.

    Parameters
    ----------
    name : str

    Examples
    --------
    >>> LazyModule("math").sqrt(4.0)
    2.0
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        found = getattr(import_module(self._name), attribute)
        setattr(self, attribute, found)  # the next time it is a plain attribute
        return found


@contextmanager
def from_extra(extra: str, otherwise: str = "") -> Iterator[None]:
    """Say which extra to install where an import inside of the block finds no such library.

    Parameters
    ----------
    extra : str
    otherwise : str
        What else the user may do.

    Raises
    ------
    MissingExtraError

    Examples
    --------
    >>> with from_extra("paper"):
    ...     import crystal_ball
    Traceback (most recent call last):
    halfseen.errors.MissingExtraError: crystal_ball is missing: pip install 'halfseen[paper]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        alternative = f", or {otherwise}" if otherwise else ""
        raise MissingExtraError(
            f"{error.name} is missing: pip install 'halfseen[{extra}]'{alternative}"
        ) from None
