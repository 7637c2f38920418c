"""`halfseen reproduce`: a figure or table of the paper with one command."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape

from halfseen.cli import options
from halfseen.cli.build_data import rebuild_for
from halfseen.cli.work import (
    LOADING,
    How,
    folder_for,
    part_of,
    refresh_page,
    report_on,
    run_study,
)
from halfseen.errors import StudyError

if TYPE_CHECKING:
    from halfseen.studies.spec import Study


def reproduce(
    name: Annotated[str, typer.Argument(help="A study (see `halfseen studies`), or all.")],
    scale: options.Scale = "paper",
    seeds: options.Seeds = None,
    p: options.Probs = None,
    methods: options.Methods = None,
    jobs: options.Jobs = None,
    cluster: options.Cluster = None,
    out: options.Out = None,
    again: options.Again = False,
    timing: options.Timing = True,
    rebuild: options.Rebuild = False,
    imports: options.Import = None,
) -> None:
    """Run a study of the package and write figures, tables and a report with verdicts."""
    console = Console()
    with console.status(LOADING):
        from halfseen.studies.builtin import ORDER
    everything = name == "all"
    how = How(
        jobs=jobs,
        cluster=cluster,
        again=again,
        timing=timing,
        scale=scale,
        beside_others=everything or out is None,
    )
    with options.explained(console):
        options.import_plugins(imports)
        home, failed = None, False
        for each in ORDER if everything else (name,):
            study = _part(each, scale, (seeds, p, methods), everything, console)
            if study is None:
                continue
            if rebuild:
                rebuild_for(study)
            folder = folder_for(each, scale, out / each if everything and out else out)
            home = folder.parent if how.beside_others else None
            failed |= not _run(study, folder, console, how)
        if home is not None:
            refresh_page(home, console)
        if failed:
            raise typer.Exit(1)


def _run(study: "Study", folder: Path, console: Console, how: How) -> bool:
    """Run a study and report on it; return whether all cells succeeded."""
    tables = run_study(study, folder, console, how)
    try:
        report_on(study, folder, tables, console)
    except typer.Exit:
        return False  # reported already; other studies go on
    return True


def _part(
    name: str,
    scale: str,
    wanted: tuple[str | None, str | None, str | None],
    may_skip: bool,
    console: Console,
) -> "Study | None":
    """Return the part of a study that is asked for; None where it has none and may be skipped."""
    from halfseen.studies.builtin import builtin_study

    try:
        study = part_of(builtin_study(name, scale), *wanted)
    except StudyError as error:
        if not may_skip:
            raise
        console.print(f"[bold]{name}[/]: skipped, {escape(str(error))}", highlight=False)
        return None
    study.check()
    return study
