"""What decides the result of a cell, as one digest: results of other code are never mixed in.

It covers the settings, the seed, the contents of data files, the versions of the libraries that
compute, the modules of halfseen that compute (not those that draw, judge or print), and the user's
own files: those of the classes in the cell, and what these import from the same folder.
"""

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from importlib import metadata
from modulefinder import ModuleFinder
from operator import attrgetter
from pathlib import Path

import halfseen
from halfseen.errors import HalfseenError
from halfseen.policies.registry import registered
from halfseen.simulation.methods import Method
from halfseen.worlds.base import World

_FORMAT = 3  # of stored results: raise it when the meaning of a stored field changes
_PACKAGE = Path(halfseen.__file__).parent
_INSTALLED = {"site-packages", "dist-packages"}

# Folders and modules that cannot change what a cell computes.
_NOT_COMPUTING = (
    *("__main__.py", "agent", "cli.py", "log.py", "progress.py", "report", "testing", "tools"),
    *(f"paper/{name}.py" for name in ("claims", "published", "study")),
    *("paper/__init__.py", "paper/studies"),
    *(f"simulation/{name}.py" for name in ("cluster", "simulate", "store")),
    *(f"simulation/{name}.py" for name in ("fingerprints", "plugins", "results", "tune")),
)


def fingerprint(world: World, method: Method, *, seed: int, points: int) -> str | None:
    """Return a digest of settings, code, data and versions.

    None if the file of a class is not known, as in a notebook, or if the world has no plain form.
    """
    try:
        # The contents of data files count, not their places.
        data = {name: _data_digest(path) for name, path in world.data_paths().items()}
        settings = [world.to_dict() | data, method.to_dict(), seed, points]
        parts = (type(getattr(world, name)) for name in world.params)
        classes = (type(world), *parts, *map(registered, method.policies()))
        own = sorted({file for each in classes for file in _own_files(each)})
        code = [library_versions(), package_digest(), _contents(own)]
        return _hex(json.dumps([_FORMAT, code, settings], sort_keys=True).encode())
    except (HalfseenError, TypeError, LookupError, ImportError):
        return None


@cache
def library_versions() -> dict[str, str]:
    """Return the versions of the libraries that compute."""
    return {name: metadata.version(name) for name in ("numpy", "scipy", "numba")}


@cache
def package_digest() -> str:
    """Return a digest of the modules of halfseen that compute, read once per process."""
    parts = (f"{name}\n".encode() + (_PACKAGE / name).read_bytes() for name in computing_modules())
    return _hex(b"\n".join((halfseen.__version__.encode(), *parts)))


def computing_modules() -> list[str]:
    """Return the files of halfseen that can change the result of a cell, as relative paths."""
    files = (path.relative_to(_PACKAGE) for path in _PACKAGE.rglob("*.py"))
    skipped = {Path(name) for name in _NOT_COMPUTING}
    return sorted(file.as_posix() for file in files if not skipped & {file, *file.parents})


def _own_files(thing: type) -> Iterator[Path]:
    """Yield the files of the user's own behind a class and its bases.

    LookupError if a class is not found in its module: it may depend on anything.
    """
    for base in thing.__mro__:
        top = base.__module__.partition(".")[0]
        if top in ("halfseen", "builtins"):
            continue
        module = sys.modules[base.__module__]
        try:
            is_found = attrgetter(base.__qualname__)(module) is base
        except AttributeError:
            is_found = False
        if not is_found or not hasattr(module, "__file__"):
            raise LookupError
        if top not in sys.stdlib_module_names:
            yield from _files_behind(base.__module__, Path(str(module.__file__)))


@cache
def _files_behind(name: str, file: Path) -> list[Path]:
    """Return the files of a module and of all that it imports from its folder.

    Of a package that folder is the one which contains it. An installed package counts as a whole.
    """
    depth = name.count(".") + (file.stem == "__init__")
    root = file.parents[depth]
    if _INSTALLED & set(root.parts):
        return sorted(root.joinpath(name.partition(".")[0]).rglob("*.py")) or [file]
    finder = ModuleFinder(path=[str(root)], excludes=["halfseen"])
    if name == "__main__":
        finder.run_script(str(file))
    else:
        finder.import_hook(name)
    found = (getattr(module, "__file__", None) for module in finder.modules.values())
    return [Path(path) for path in found if path]


def _data_digest(path: Path) -> str:
    """Return a digest of a file, or of the files of a folder; "" where there is nothing."""
    if not path.exists():
        return ""
    return _contents(sorted(path.iterdir()) if path.is_dir() else [path])


def _contents(files: Iterable[Path]) -> str:
    stamps = [(file, file.stat()) for file in files if file.is_file()]
    return _content_digest(tuple((file, at.st_mtime_ns, at.st_size) for file, at in stamps))


@lru_cache(maxsize=8)  # every cell of a world asks, and its data may be large
def _content_digest(stamps: tuple[tuple[Path, int, int], ...]) -> str:
    digest = hashlib.sha256()
    for path, _, _ in stamps:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _hex(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
