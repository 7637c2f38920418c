"""What the commands that run studies have in common."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.markup import escape

from halfseen.cli.options import RESULTS, numbers, words

if TYPE_CHECKING:
    from halfseen.simulation.cells import Cell
    from halfseen.simulation.store import Store
    from halfseen.simulation.tables import Tables
    from halfseen.studies.spec import Study

LOADING = "loading (compiling takes some seconds the first time)"


def part_of(study: "Study", seeds: str | None, p: str | None, methods: str | None) -> "Study":
    """Return the part of a study that the options ask for; the study itself without any."""
    from halfseen.studies.fields import parse_seeds

    if (seeds, p, methods) == (None, None, None):
        return study
    return study.narrowed(
        seeds=None if seeds is None else parse_seeds(seeds),
        observe_probs=numbers(p),
        methods=words(methods),
    )


def folder_for(name: str, scale: str, out: Path | None) -> Path:
    """Return where results go: a smoke run never overwrites those at full size."""
    if out is not None:
        return out
    return RESULTS / name if scale == "paper" else RESULTS / scale / name


@dataclass(frozen=True, kw_only=True)
class How:
    """How a study is run.

    Attributes
    ----------
    jobs, cluster, again, timing, write
        As in `halfseen.studies.running.run_study`.
    scale : "paper" or "smoke"
    beside_others : bool
        Whether other studies have their folders beside this one's: cells that one of them has
        finished are not run again.
    """

    jobs: int | None = None
    cluster: str | None = None
    again: bool = False
    timing: bool = True
    write: bool = True
    scale: str = "paper"
    beside_others: bool = False


def run_study(study: "Study", folder: Path, console: Console, how: How) -> "Tables":
    """Run what is missing of a study with a progress bar, and write its tables.

    After Ctrl-C a message says how to go on; what is finished stays.
    """
    from halfseen.simulation.store import Store
    from halfseen.studies.running import run_study as run_all

    store = Store.among(folder) if how.beside_others else Store(folder)
    running: list[Cell] = []

    def announce(stage: str, cells: "Sequence[Cell]") -> None:
        running[:] = [cell for cell in cells if not cell.method.skip]
        what = "settings are chosen on other seeds first" if stage == "tuning" else study.title
        text = f"{what} ({_counts(store, running, len(cells), how.again)})"
        console.print(f"[bold]{study.name}[/]: {escape(text)}", highlight=False)

    # Workers inherit it: one thread each, whatever BLAS they find.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with _resumable(folder, running, console, how.again):
        return run_all(
            study,
            store,
            jobs=how.jobs,
            cluster=how.cluster,
            again=how.again,
            timing=how.timing,
            progress=True,
            write=how.write,
            manifest={"study": study.to_dict(), "scale": how.scale},
            announce=announce,
        )


def _counts(store: "Store", running: "list[Cell]", n_cells: int, again: bool) -> str:
    """Return how many cells there are, and how many of them need not be run."""
    if not again:
        store.borrow(running)
    finished = 0 if again else sum(store.has(cell) for cell in running)
    skipped = n_cells - len(running)
    text = f"{n_cells} cells"
    text += f", {finished} of them finished before" if finished else ""
    return text + (f", {skipped} of them skipped" if skipped else "")


@contextmanager
def _resumable(
    folder: Path, running: "list[Cell]", console: Console, again: bool
) -> Iterator[None]:
    """Turn Ctrl-C into a message about what is kept, and exit code 130."""
    from halfseen.simulation.store import Store

    try:
        yield
    except KeyboardInterrupt:
        kept = Store(folder)
        n_kept = sum(kept.has(cell) for cell in running)
        same = "the same command without --again" if again else "the same command"
        console.print(
            f"interrupted: {n_kept} of {len(running)} cells are finished and kept in "
            f"{escape(str(folder))}; {same} goes on from there",
            highlight=False,
            soft_wrap=True,
        )
        raise typer.Exit(130) from None


def report_on(
    study: "Study", folder: Path, tables: "Tables", console: Console, home: Path | None = None
) -> None:
    """Draw figures, write the report, print the table; exit with 1 if a cell failed.

    With `home`, the page over all studies in that folder is written anew as well.
    """
    from halfseen.reports.page import write_report
    from halfseen.reports.published import not_from_paper
    from halfseen.reports.terminal import terminal_tables

    with console.status("drawing figures"):
        page = write_report(study, folder)
    for table in terminal_tables(tables.summary, study, console.width):
        console.print(table)
    outside = not_from_paper(study)
    if outside:
        console.print(f"not from the paper: {'; '.join(outside)}", highlight=False, markup=False)
    console.print(f"report: {page}", highlight=False, soft_wrap=True, markup=False)
    if home is not None:
        refresh_page(home, console)
    if tables.failures:
        cell, error = tables.failures[0]
        example = f"{tuple(cell.key)}: {error.strip().splitlines()[-1]}"
        console.print(
            f"[bold red]{len(tables.failures)} of {len(tables.per_seed)} cells failed[/], for "
            f"example {escape(example)}\ntracebacks: {escape(str(folder / 'failures.txt'))}",
            highlight=False,
            soft_wrap=True,
        )
        raise typer.Exit(1)


def refresh_page(home: Path, console: Console) -> None:
    """Write the page over all studies whose results lie in a folder, and say where it is."""
    from halfseen.reports.index import write_index

    with console.status("writing the page"):
        written = write_index(home)
    console.print(f"all studies: {written}", highlight=False, soft_wrap=True, markup=False)
