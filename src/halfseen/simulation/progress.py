"""The progress bar of a run."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from halfseen.lazy import from_extra
from halfseen.simulation.cells import Cell

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


@contextmanager
def progress_over(
    cells: Sequence[Cell],
    missing: Sequence[Cell],
    *,
    shown: bool = True,
    console: "Console | None" = None,
) -> Iterator[Callable[[Cell], None]]:
    """Show a bar over `cells`, of which only `missing` are still to be run.

    Yields a function to call with each finished cell. The bar counts rounds, not cells, so that the
    time left is right even if horizons differ.
    """
    if not shown or not cells:
        yield lambda cell: None
        return
    with _bar(console) as progress:
        total = sum(cell.horizon for cell in missing)
        finished = len(cells) - len(missing)
        task = progress.add_task(
            cells[0].key.study, total=max(total, 1), finished=finished, all=len(cells)
        )
        if not missing:
            progress.update(task, completed=1)

        def done(cell: Cell) -> None:
            nonlocal finished
            finished += 1
            progress.update(task, advance=cell.horizon, finished=finished)

        yield done


def _bar(console: "Console | None") -> "Progress":
    with from_extra("paper", "set progress=False"):
        from rich import progress as parts
    return parts.Progress(
        parts.TextColumn("{task.description}"),
        parts.BarColumn(),
        parts.TaskProgressColumn(),
        parts.TextColumn("{task.fields[finished]}/{task.fields[all]} cells"),
        parts.TimeElapsedColumn(),
        parts.TextColumn("left"),
        parts.TimeRemainingColumn(),
        console=console,
    )
