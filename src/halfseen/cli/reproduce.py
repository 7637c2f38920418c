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
        home, failed, studies = None, False, []
        for each in ORDER if everything else (name,):
            study = _part(each, scale, (seeds, p, methods), everything, console)
            if study is not None:
                studies.append((each, study))
        if scale == "paper" and cluster is None:
            _announce_time(studies, jobs or _n_cores(), console)
        for each, study in studies:
            if rebuild:
                rebuild_for(study)
            folder = folder_for(each, scale, out / each if everything and out else out)
            home = folder.parent if how.beside_others else None
            failed |= not _run(study, folder, console, how)
        if home is not None:
            refresh_page(home, console)
        if failed:
            raise typer.Exit(1)


def _announce_time(studies: "list[tuple[str, Study]]", n_processes: int, console: Console) -> None:
    """Say how long studies will take, if that is more than a minute."""
    from halfseen.studies.builtin import CORE_MINUTES, builtin_study

    minutes = {}
    for name, study in studies:
        share = len(study.cells()) / len(builtin_study(name).cells())
        minutes[name] = share * CORE_MINUTES[name] / n_processes
    total = sum(minutes.values())
    if total < 1.0:
        return
    longest = sorted((name for name in minutes if minutes[name] >= 1.0), key=minutes.__getitem__)
    parts = ", ".join(f"{name} {duration(minutes[name])}" for name in longest[::-1])
    where = "one process" if n_processes == 1 else f"{n_processes} processes"
    console.print(
        f"about {duration(total)} on {where}, less what is finished already"
        + (f" ({parts})" if len(studies) > 1 else ""),
        highlight=False,
    )


def _n_cores() -> int:
    import joblib

    return int(joblib.cpu_count())


def duration(minutes: float) -> str:
    """Return minutes for people.

    >>> duration(0.6), duration(59.7), duration(84.0)
    ('1 min', '1 h 0 min', '1 h 24 min')
    """
    whole = max(1, round(minutes))
    return f"{whole} min" if whole < 60 else f"{whole // 60} h {whole % 60} min"


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
