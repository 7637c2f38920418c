"""How a loop is compiled, and where its machine code is kept.

numba keeps it in the folder that NUMBA_CACHE_DIR names, in the package's or in the user's cache
folder, whichever is writable. If none is, the code stays in memory.
"""

import os
import pkgutil
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from numba import config, njit
from numba.types import Array, float64

from halfseen.log import logger

# Types of the arguments of compiled functions.
in_1 = Array(float64, 1, "C", readonly=True)
in_2 = Array(float64, 2, "C", readonly=True)
out_1 = float64[::1]
out_2 = float64[:, ::1]

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
