"""Modules that are loaded when something of them is needed."""

from importlib import import_module
from typing import Any


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
