"""What decides the result of a cell, as one digest: results of other code are never mixed in."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path
from pickle import PicklingError
from typing import Any

from halfseen.errors import HalfseenError, MissingExtraError
from halfseen.measures import MEASURE, measure_named
from halfseen.policies.registry import registered
from halfseen.simulation.methods import Method
from halfseen.simulation.runner import Player
from halfseen.simulation.scripts import parts_of_script
from halfseen.simulation.sources import Code, Use, digest_of, sources_of
from halfseen.worlds.base import World, data_paths
from halfseen.worlds.registry import world_from

_FORMAT = 2  # of stored results: raise it when the meaning of a stored field changes


def fingerprint(
    plain: Mapping[str, Any], method: Method, *, seed: int, points: int, built: World | None = None
) -> str | None:
    """Return a digest of settings, code, data and versions; None if the code cannot be read.

    Parameters
    ----------
    plain : mapping
        The plain form of a world.
    method : Method
    seed, points : int
        As in a cell.
    built : World, optional
        The world of the plain form, where it was built before.
    """
    try:
        world = world_from(plain) if built is None else built
        code = [code_digest(each) for each in (*_classes(world), *_players(method))]
    except MissingExtraError:
        raise
    except HalfseenError:  # running the cell will tell
        return None
    if None in code:
        return None
    data = {name: _data_digest(path) for name, path in data_paths(world).items()}
    # What data say counts, not where they lie.
    settings = [{**plain, **data}, method.to_dict(), seed, points]
    return digest_of([_FORMAT, library_versions(), code_digest(Player), code, settings])


@cache
def code_digest(thing: Any) -> str | None:
    """Return a digest of the code behind a class or function; None if a source cannot be read.

    A source is read once: after an edit it must be imported anew, which makes a new class.

    >>> from halfseen import TofuPov, Uniform
    >>> code_digest(TofuPov) == code_digest(Uniform)
    False
    """
    if not isinstance(thing, Code) or "<locals>" in thing.__qualname__:
        return None  # it may use variables of the function in which it is defined
    home = thing.__module__
    try:
        if home == "__main__":
            parts, uses = parts_of_script(thing)
            sources = sources_of(uses)
        else:
            parts, sources = {}, sources_of([Use(home)], home.partition(".")[0])
            if home not in sources or thing.__name__ not in sources[home].names:
                return None
    except (OSError, SyntaxError, ImportError, PicklingError, TypeError, ValueError):
        return None
    return digest_of(parts | {name: source.digest for name, source in sources.items()})


@cache
def library_versions() -> dict[str, str]:
    """Return the versions of the libraries that compute."""
    return {name: metadata.version(name) for name in ("numpy", "scipy", "numba")}


def _classes(world: World) -> Iterator[type]:
    """Yield the class of a world, and those of its settings, such as a mask law."""
    yield type(world)
    for field in fields(world):  # type: ignore[arg-type]
        kind = type(getattr(world, field.name))
        if kind.__module__ != "builtins":
            yield kind


def _players(method: Method) -> Iterator[Any]:
    """Yield the policies that a method names, or its measure."""
    if method.policy == MEASURE:
        yield measure_named(method.settings.get("measure"))
    for name in method.policies():
        yield registered(name)


def _data_digest(path: Path) -> str:
    """Return a digest of a file, or of the files of a folder; "" where there is nothing."""
    if not path.exists():
        return ""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    stamps = [(file, file.stat()) for file in files if file.is_file()]
    return _content_digest(tuple((file, at.st_mtime_ns, at.st_size) for file, at in stamps))


@lru_cache(maxsize=8)  # tables may be large, cells are many
def _content_digest(stamps: tuple[tuple[Path, int, int], ...]) -> str:
    digest = hashlib.sha256()
    for path, _, _ in stamps:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
