"""`halfseen reproduce`: a figure or table of the paper with one command."""

from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from halfseen.cli import options
from halfseen.cli.build_data import rebuild_for
from halfseen.cli.work import folder_for, part_of, refresh_page, report_on, run_study
from halfseen.errors import StudyError


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
    with console.status("loading (the first time, compiling takes some seconds)"):
        from halfseen.studies.builtin import ORDER, builtin_study
    with options.explained(console):
        options.import_plugins(imports)
        failed, home = False, None
        for each in ORDER if name == "all" else (name,):
            try:
                study = part_of(builtin_study(each, scale), seeds, p, methods)
            except StudyError as error:
                if name != "all":
                    raise
                console.print(f"[bold]{each}[/]: skipped, {escape(str(error))}", highlight=False)
                continue
            if rebuild:
                rebuild_for(study)
            base = out / each if name == "all" and out is not None else out
            folder = folder_for(each, scale, base)
            if name == "all" or out is None:
                home = folder.parent
            tables = run_study(
                study,
                folder,
                console,
                jobs=jobs,
                cluster=cluster,
                again=again,
                timing=timing,
                scale=scale,
                among_others=home is not None,
            )
            try:
                report_on(study, folder, tables, console)
            except typer.Exit:
                failed = True  # reported already; the other studies go on
        if home is not None:
            refresh_page(home, console)
        if failed:
            raise typer.Exit(1)
