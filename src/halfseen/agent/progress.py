"""A progress bar that appears when something takes long."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

PATIENCE = 2.0
"""Seconds before a bar appears."""


def parts_with_bar(what: str, n_rows: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield start and stop of the parts of a long table; after a while a bar shows how far it is.

    The bar needs rich and a terminal; without them there is none.

    >>> list(parts_with_bar("learning", 5, 2))
    [(0, 2), (2, 4), (4, 5)]
    """
    started, bar, is_waiting = time.monotonic(), None, True
    try:
        for start in range(0, n_rows, size):
            if is_waiting and time.monotonic() - started > PATIENCE:
                bar, is_waiting = _bar(what, n_rows), False
            if bar is not None:
                bar.update(bar.task_ids[0], completed=start)
            yield start, min(start + size, n_rows)
    finally:
        if bar is not None:
            bar.stop()


def _bar(what: str, n_rows: int) -> "Progress | None":
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ModuleNotFoundError:
        return None
    bar = Progress(console=Console(stderr=True), transient=True)
    bar.add_task(what, total=n_rows)
    bar.start()
    return bar
