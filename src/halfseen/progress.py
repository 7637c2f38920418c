"""The progress bar; without rich there is none."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

T = TypeVar("T")

PATIENCE = 2.0
"""Seconds before a bar that nobody asked for appears."""


def with_bar(
    what: str,
    total: int,
    steps: Iterable[T],
    size: Callable[[T], int],
    *,
    note: Callable[[int], str] = lambda n_done: "",
    patience: float | None = None,
    console: "Console | None" = None,
) -> Iterator[T]:
    """Yield steps; a bar shows how much of a total is done.

    Parameters
    ----------
    what : str
        Shown before the bar.
    total : int
        Sum of the sizes of all steps.
    steps : iterable
    size : callable
        Returns the size of a step, which is done when the next one is asked for.
    note : callable
        Returns what is shown after the bar when that many steps are done.
    patience : float, optional
        Seconds before the bar appears on the standard error stream; by default `PATIENCE`.
    console : rich.console.Console, optional
        Shows the bar instead.

    Examples
    --------
    >>> list(with_bar("learning", 5, [(0, 2), (2, 5)], lambda part: part[1] - part[0]))
    [(0, 2), (2, 5)]
    """
    appears = time.monotonic() + (PATIENCE if patience is None else patience)
    bar, done, n_done = None, 0, 0

    def show() -> None:
        nonlocal bar
        if bar is None and time.monotonic() >= appears:
            bar = _bar(console)
            if bar is not None:
                bar.add_task(what, total=max(total, 1), note="")
                bar.start()
        if bar is not None:
            bar.update(bar.task_ids[0], completed=done if total else 1, note=note(n_done))

    try:
        show()
        for step in steps:
            yield step
            done, n_done = done + size(step), n_done + 1
            show()
    finally:
        if bar is not None:
            bar.stop()


def _bar(console: "Console | None") -> "Progress | None":
    try:
        from rich import progress as parts
        from rich.console import Console
    except ModuleNotFoundError:
        return None
    return parts.Progress(
        parts.TextColumn("{task.description}"),
        parts.BarColumn(),
        parts.TaskProgressColumn(),
        parts.TextColumn("{task.fields[note]}"),
        parts.TimeElapsedColumn(),
        parts.TextColumn("left"),
        parts.TimeRemainingColumn(),
        console=console or Console(stderr=True),
        transient=console is None,
    )
