"""`halfseen build-data`: train the classifiers whose frozen features ship with the package."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

from halfseen.cli import options
from halfseen.errors import StudyError

if TYPE_CHECKING:
    from halfseen.paper.databuild import Difference, Done
    from halfseen.paper.product_context import Frozen
    from halfseen.studies.spec import Study

Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for the archive and its manifest.")]


def build_data(
    source: Annotated[str, typer.Argument(help="mnist (needs the extra `images`) or newsgroups.")],
    seeds: Annotated[
        str | None, typer.Option(help="Other seeds than those that ship: 100:120 or 3,5,7.")
    ] = None,
    out: Out = Path("data"),
    again: Annotated[bool, typer.Option("--again", help="Also rebuild finished seeds.")] = False,
    compare: Annotated[
        bool,
        typer.Option("--compare", help="Write nothing; compare with the features that ship."),
    ] = False,
) -> None:
    """Build the frozen features of MNIST or 20 Newsgroups from raw data, which is downloaded."""
    console = Console()
    with options.explained(console):
        from halfseen import checks
        from halfseen.paper import databuild as build
        from halfseen.studies.fields import parse_seeds

        checks.one_of("source", source, tuple(build.RECIPES))
        wanted = list(build.SEEDS if seeds is None else parse_seeds(seeds))
        with console.status("loading the raw data (the first time it is downloaded)"):
            raw = build.RECIPES[source].load()
        with _progress(console) as progress:
            done = _advancing(progress, progress.add_task(source, total=len(wanted), note=""))
            if compare:
                differences = build.compare(source, raw, wanted, done=done)
            else:
                archive = build.build(source, raw, wanted, out, again=again, done=done)
        if compare:
            console.print(_table(source, differences))
        else:
            console.print(f"{archive}, {archive.stat().st_size / 1e6:.2f} MB", soft_wrap=True)


def rebuild_for(study: "Study") -> None:
    """Build the features behind a study's worlds again, and compare them with those in use."""
    worlds = [setting.world for setting in study.settings.values()]
    sources = dict.fromkeys(world["source"] for world in worlds if "source" in world)
    if not sources:
        raise StudyError(f"--rebuild: {study.name} has no features that are built from raw data")
    for source in sources:
        build_data(source, compare=True)


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
        console=console,
    )


def _advancing(progress: Progress, task: TaskID) -> "Done":
    def done(seed: int, frozen: "Frozen") -> None:
        note = f"seed {seed}: held-out accuracy {frozen.heldout_accuracy:.3f}"
        progress.update(task, advance=1, note=note)

    return done


def _table(source: str, differences: "dict[int, Difference]") -> Table:
    table = Table(title=f"{source}: rebuilt features against those that ship")
    for column in ("seed", "features", "weights", "labels", "held-out accuracy"):
        table.add_column(column, justify="right")
    for seed, each in differences.items():
        table.add_row(
            str(seed),
            f"{each.features:.1e}",
            f"{each.weights:.1e}",
            str(each.labels),
            f"{each.heldout_accuracy:+.4f}",
        )
    return table
