"""Plugins: a user's files and modules, which register policies and worlds when imported."""

import importlib
import importlib.util
import sys
from pathlib import Path

from halfseen.errors import StudyError

loaded: list[str] = []
"""Absolute paths and names of modules, in the order of imports."""


def load_plugin(name: str) -> None:
    """Import a plugin once.

    Parameters
    ----------
    name : str
        A Python file, or a module that can be imported or is in the current folder.

    Raises
    ------
    StudyError
        It does not exist, or its import fails.
    """
    path = Path(name if name.endswith(".py") else f"{name}.py")
    try:
        if name.endswith(".py") or (path.exists() and importlib.util.find_spec(name) is None):
            name = str(path.resolve())
            _import_file(Path(name))
        else:
            importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise StudyError(
            f"plugin {name!r} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    if name not in loaded:
        loaded.append(name)


def _import_file(path: Path) -> None:
    """Import a file as a module of its name; it can import modules in the same folder."""
    if not path.is_file():
        raise FileNotFoundError("there is no such file")
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    module = importlib.import_module(path.stem)
    if getattr(module, "__file__", None) != str(path):
        raise ImportError(f"another module is called {path.stem!r}: rename the file")
