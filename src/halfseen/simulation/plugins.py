"""Plugins: a user's files and modules, which register policies and worlds when imported."""

import importlib
import importlib.util
import sys
from collections.abc import Iterable
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple

from halfseen.errors import StudyError

GROUP = "halfseen.plugins"
"""The group of entry points by which an installed package names its modules."""

_loaded: list[str] = []  # absolute paths and names of modules, in the order of imports


class Plugins(NamedTuple):
    """Names of plugins; a process that unpickles them imports the plugins."""

    names: tuple[str, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        """Import the plugins on unpickling."""
        return load_plugins, (self.names,)


def loaded_plugins() -> Plugins:
    """Return all plugins that were loaded."""
    return Plugins(tuple(_loaded))


def load_plugin(name: str) -> str:
    """Import a plugin once, and return the name by which another process can import it.

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
            if name not in _loaded:
                _import_file(Path(name))
        else:
            importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise StudyError(
            f"plugin {name!r} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    if name not in _loaded:
        _loaded.append(name)
    return name


def load_plugins(names: Iterable[str]) -> Plugins:
    """Import the plugins that another process has loaded."""
    return Plugins(tuple(load_plugin(name) for name in names))


@cache
def load_installed_plugins() -> None:
    """Import the modules that installed packages name as plugins."""
    for point in entry_points(group=GROUP):
        load_plugin(point.module)


def _import_file(path: Path) -> None:
    """Import a file as a module of its name; it can import modules in the same folder."""
    if not path.is_file():
        raise FileNotFoundError("there is no such file")
    if path.stem in sys.modules:
        raise ImportError(f"another module is called {path.stem!r}: rename the file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path.stem]
        raise
