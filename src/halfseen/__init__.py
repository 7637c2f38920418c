"""Linear bandits for options you only half see.

The stub `__init__.pyi` is the list of public names: type checkers read it, and
so does this module, which imports each name when it is first used.
"""

import ast
import os
from importlib import import_module

__version__ = "0.2.0"


def _listed() -> dict[str, str]:
    """Return the module of every public name; empty for a name that is a module itself."""
    with open(f"{os.path.splitext(__file__)[0]}.pyi", encoding="utf-8") as stub:
        tree = ast.parse(stub.read())
    imports = (node for node in tree.body if isinstance(node, ast.ImportFrom))
    return {alias.name: node.module or "" for node in imports for alias in node.names}


_HOME = _listed()
__all__ = sorted(_HOME)


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'halfseen' has no attribute {name!r}")
    home = _HOME[name]
    value: object = import_module(f"halfseen.{home or name}")
    if home:
        value = getattr(value, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
