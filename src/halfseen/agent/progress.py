"""A progress bar that appears when something takes long."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress

T = TypeVar("T")

PATIENCE = 2.0
"""Seconds before a bar appears."""


def with_bar(what: str, total: int, steps: Iterable[T], done: Callable[[T], int]) -> Iterator[T]:
    """Yield steps; after a while a bar shows how much of a total is done before each.

    The bar needs rich and a terminal; without them there is none.
    """
    started, bar, is_waiting = time.monotonic(), None, True
    try:
        for step in steps:
            if is_waiting and time.monotonic() - started > PATIENCE:
                bar, is_waiting = _bar(what, total), False
            if bar is not None:
                bar.update(bar.task_ids[0], completed=done(step))
            yield step
    finally:
        if bar is not None:
            bar.stop()


def parts_with_bar(what: str, n_rows: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield start and stop of the parts of a long table, with a bar.

    >>> list(parts_with_bar("learning", 5, 2))
    [(0, 2), (2, 4), (4, 5)]
    """
    parts = ((start, min(start + size, n_rows)) for start in range(0, n_rows, size))
    return with_bar(what, n_rows, parts, lambda part: part[0])


def _bar(what: str, total: int) -> "Progress | None":
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ModuleNotFoundError:
        return None
    bar = Progress(console=Console(stderr=True), transient=True)
    bar.add_task(what, total=total)
    bar.start()
    return bar
