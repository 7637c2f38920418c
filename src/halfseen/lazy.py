"""Modules that are loaded when something of them is needed."""

from importlib import import_module
from types import ModuleType
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
        self._module: ModuleType | None = None

    def __getattr__(self, attribute: str) -> Any:
        if self._module is None:
            self._module = import_module(self._name)
        return getattr(self._module, attribute)
