"""`halfseen run`: a study of one's own, from a file."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from halfseen.cli import options
from halfseen.cli.work import LOADING, How, folder_for, part_of, report_on, run_study


def run(
    file: Annotated[Path, typer.Argument(help="A study as TOML or JSON (docs/your-data.md).")],
    scale: options.Scale = "paper",
    seeds: options.Seeds = None,
    p: options.Probs = None,
    methods: options.Methods = None,
    jobs: options.Jobs = None,
    cluster: options.Cluster = None,
    out: options.Out = None,
    again: options.Again = False,
    timing: options.Timing = True,
    imports: options.Import = None,
) -> None:
    """Run a study from a file and write figures, tables and a report."""
    console = Console()
    with console.status(LOADING):
        from halfseen.studies.reading import read_study
    with options.explained(console):
        options.import_plugins(imports)
        whole = read_study(file, scale)
        study = part_of(whole, seeds, p, methods)
        if study is not whole:  # other seeds may have other worlds
            study.check()
        folder = folder_for(study.name, scale, out)
        how = How(
            jobs=jobs,
            cluster=cluster,
            again=again,
            timing=timing,
            scale=scale,
            beside_others=out is None,
        )
        tables = run_study(study, folder, console, how)
        # A folder of the user's own choice may lie among others that are no studies.
        home = folder.parent if out is None else None
        report_on(study, folder, tables, console, home)
