"""What decides the result of a cell, as one digest: results of other code are never mixed in."""

import hashlib
from collections.abc import Iterator
from dataclasses import fields
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from halfseen.errors import HalfseenError, MissingExtraError
from halfseen.measures import MEASURE, measure_named
from halfseen.policies.registry import registered
from halfseen.simulation.methods import Method
from halfseen.simulation.runner import Player
from halfseen.simulation.sources import code_digest, digest_of
from halfseen.worlds.base import World, data_paths
from halfseen.worlds.registry import world_to_dict

_FORMAT = 2  # of stored results: raise it when the meaning of a stored field changes


def fingerprint(world: World, method: Method, *, seed: int, points: int) -> str | None:
    """Return a digest of settings, code, data and versions.

    None if a source cannot be read, or if the world has no plain form: without a name, say.
    """
    try:
        code = [code_digest(each) for each in (Player, *_classes(world), *_players(method))]
        # The contents of data files count, not their places.
        data = {name: _data_digest(path) for name, path in data_paths(world).items()}
        settings = [world_to_dict(world) | data, method.to_dict(), seed, points]
        return None if None in code else digest_of([_FORMAT, library_versions(), code, settings])
    except MissingExtraError:
        raise
    except (HalfseenError, TypeError):
        return None


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


@lru_cache(maxsize=8)  # every cell of a world asks, and its data may be large
def _content_digest(stamps: tuple[tuple[Path, int, int], ...]) -> str:
    digest = hashlib.sha256()
    for path, _, _ in stamps:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
