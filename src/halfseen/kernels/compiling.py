"""How a loop is compiled, and where its machine code is kept.

numba keeps it in the folder that NUMBA_CACHE_DIR names, in the package's or in the user's cache
folder. If the package's is read-only and has code, as in an image, a process works on a temporary
copy of it. If no folder is writable, the code stays in memory.
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
from numba.types import Array, boolean, float64

from halfseen.log import logger

# Types of the arguments of compiled functions.
in_1 = Array(float64, 1, "C", readonly=True)
in_2 = Array(float64, 2, "C", readonly=True)
any_1 = Array(float64, 1, "A", readonly=True)
any_2 = Array(float64, 2, "A", readonly=True)
out_1 = float64[::1]
out_2 = float64[:, ::1]
flags_1 = boolean[::1]

_PRECOMPILED = Path(__file__).parent / "__pycache__"
_changing_config = RLock()
_mentioned: set[str] = set()
_FIRST_USE = (
    "halfseen: compiling for the first use, about 15 seconds, once per machine and version. "
    "To do it ahead of time, call halfseen.warm_up()."
)


def compiled(signature: Any, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function for a signature, as `numba.njit` does; options are those of `njit`."""

    def decorate(function: Callable[..., Any]) -> Any:
        if config.DISABLE_JIT:
            return function
        with _changing_config:
            dispatcher = _dispatcher(function, signature, options)
        if dispatcher.stats.cache_misses and not _mentioned and _someone_watches():
            print(_FIRST_USE, file=sys.stderr, flush=True)
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

    _mentioned.add("warm_up")
    started = time.perf_counter()
    show("halfseen: preparing compiled code ")
    for module in pkgutil.iter_modules([os.path.dirname(__file__)]):
        import_module(f"halfseen.kernels.{module.name}")
        show(".")
    show(f" {time.perf_counter() - started:.1f} s\n")


def _someone_watches() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules


def _dispatcher(function: Callable[..., Any], signature: Any, options: dict[str, Any]) -> Any:
    try:
        with _cache_in(_copied_code()):
            return njit(signature, cache=True, **options)(function)
    except Exception as error:  # no writable folder, a full disk or a damaged cache
        if "memory" not in _mentioned:
            _mentioned.add("memory")
            logger.warning(
                "compiled loops cannot be kept (%s): compiling in memory, so every process "
                "compiles them again: set NUMBA_CACHE_DIR to a writable folder",
                error,
            )
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


@cache
def _copied_code() -> str:
    """Return a temporary folder with the code of a read-only package, or "" if there is none.

    numba only uses folders that are writable. This one belongs to the process alone: nobody else
    can plant machine code in it.
    """
    is_usable = config.CACHE_DIR or os.access(_PRECOMPILED, os.W_OK)
    if is_usable or not any(_PRECOMPILED.glob("*.nbi")):
        return ""
    try:
        folder = tempfile.mkdtemp(prefix="halfseen-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        with _cache_in(folder):
            target = njit(cache=True)(_probe).stats.cache_path
        for source in _PRECOMPILED.glob("*.nb?"):
            shutil.copy2(source, target)
    except OSError as error:
        logger.warning("precompiled loops cannot be copied (%s)", error)
        return ""
    return folder


def _probe() -> None:
    """Serve as an example of a loop, to find the folder in which numba keeps their code."""
