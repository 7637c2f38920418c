"""How a loop is compiled, and where its machine code is kept.

numba keeps it in the folder that NUMBA_CACHE_DIR names, in the package's or, if that is read-only,
in the user's cache folder. If none is writable, a process works on a temporary copy of the code in
the package's folder. If there is none, the code stays in memory.
"""

import atexit
import os
import pkgutil
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from threading import RLock
from typing import Any

from numba import config, njit

from halfseen.log import logger

_PRECOMPILED = Path(__file__).parent / "__pycache__"
_changing_config = RLock()
_mentioned: set[str] = set()


def compiled(signature: Any, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function for a signature, as `numba.njit` does; options are those of `njit`."""

    def decorate(function: Callable[..., Any]) -> Any:
        if config.DISABLE_JIT:
            return function
        with _changing_config:
            dispatcher = _dispatcher(function, signature, options)
        if dispatcher.stats.cache_misses and function.__module__ not in _mentioned:
            _mentioned.add(function.__module__)
            where = dispatcher.stats.cache_path
            kept = f", which happens once: the machine code is kept in {where}" if where else ""
            logger.info("compiling the loops of %s%s", function.__module__, kept)
        return dispatcher

    return decorate


def warm_up(*, progress: bool = True) -> None:
    """Compile all loops now instead of at first use; later calls do nothing.

    The machine code is kept, so this happens once per machine and version: for example when a
    container image is built, not when its containers start.

    Parameters
    ----------
    progress : bool
        Whether to print a line to the standard error stream.

    Examples
    --------
    >>> import halfseen
    >>> halfseen.warm_up(progress=False)
    """

    def show(text: str) -> None:
        if progress:
            print(text, end="", file=sys.stderr, flush=True)

    started = time.perf_counter()
    show("halfseen: compiling, which happens once ")
    for module in pkgutil.iter_modules([os.path.dirname(__file__)]):
        import_module(f"halfseen.kernels.{module.name}")
        show(".")
    show(f" {time.perf_counter() - started:.1f} s\n")


def _dispatcher(function: Callable[..., Any], signature: Any, options: dict[str, Any]) -> Any:
    can_keep, folder = _place()
    if can_keep:
        try:
            with _cache_in(folder):
                return njit(signature, cache=True, **options)(function)
        except Exception as error:  # a full disk or a damaged cache can raise anything
            logger.warning("compiled code cannot be kept (%s): compiling in memory", error)
    return njit(signature, **options)(function)


@contextmanager
def _cache_in(folder: str) -> Iterator[None]:
    """Make numba keep code in a folder inside the block; if empty, in numba's own choice."""
    before = config.CACHE_DIR
    config.CACHE_DIR = folder or before
    try:
        yield
    finally:
        config.CACHE_DIR = before


def _probe() -> None:
    """Serve as an example of a loop, to find the folder in which numba keeps their code."""


@cache
def _place() -> tuple[bool, str]:
    """Return whether code can be kept, and the folder if numba cannot find one itself."""
    try:
        path = Path(njit(cache=True)(_probe).stats.cache_path)
    except RuntimeError:  # numba finds no folder that it can write to
        if folder := _temporary_copy():
            return True, folder
        logger.warning(
            "no folder for compiled loops is writable, so every process compiles them again: set "
            "NUMBA_CACHE_DIR to a writable folder"
        )
        return False, ""
    if path != _PRECOMPILED and not config.CACHE_DIR:
        _copy_precompiled(path)
    return True, ""


def _temporary_copy() -> str:
    """Return a temporary folder with a copy of precompiled code, or "" if there is none.

    It belongs to this process alone: nobody else can plant machine code in it.
    """
    if not any(_PRECOMPILED.glob("*.nbi")):
        return ""
    try:
        folder = tempfile.mkdtemp(prefix="halfseen-")
    except OSError:
        return ""
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with _cache_in(folder):
        _copy_precompiled(Path(njit(cache=True)(_probe).stats.cache_path))
    return folder


def _copy_precompiled(target: Path) -> None:
    """Copy machine code from the package's folder, for example compiled into an image.

    numba only uses folders that are writable; this also reads from read-only ones.
    """
    # Code before its index, and each file atomically: another process may be reading.
    for source in sorted(_PRECOMPILED.glob("*.nb?")):
        copy = target / source.name
        if copy.exists() and copy.stat().st_mtime >= source.stat().st_mtime:
            continue
        draft = copy.with_name(f"{copy.name}.{os.getpid()}")
        try:
            shutil.copy2(source, draft)
            draft.replace(copy)
        except OSError as error:
            draft.unlink(missing_ok=True)
            logger.warning("precompiled loops cannot be copied (%s)", error)
            return
