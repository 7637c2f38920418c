"""`halfseen verify`: our regrets against the published ones, cell by cell."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from halfseen.cli import options
from halfseen.cli.work import folder_for, part_of, run_study

if TYPE_CHECKING:
    from halfseen.studies.published import Comparison, Group


def verify(
    name: Annotated[str, typer.Argument(help="A study with published figures per seed.")],
    seeds: options.Seeds = None,
    p: options.Probs = None,
    methods: options.Methods = None,
    jobs: options.Jobs = None,
    out: options.Out = None,
    again: options.Again = False,
) -> None:
    """Compare a study with the published figures, cell by cell; exit with 1 if one differs."""
    console = Console()
    with console.status("loading (the first time, compiling takes some seconds)"):
        from halfseen.errors import StudyError
        from halfseen.studies.builtin import builtin_study
        from halfseen.studies.published import compare, published
    with options.explained(console):
        figures = published(name)
        study = builtin_study(name)
        if not figures:
            raise StudyError(f"nothing is published per seed for {name!r}")
        known = {key.method for key in figures}
        study = part_of(study, seeds, p, methods)
        if not known & set(study.methods):
            raise StudyError(f"methods must be among the published {sorted(known)}, got {methods}")
        study = study.narrowed(methods=[key for key in study.methods if key in known])
        asked = {(c.key.setting, c.key.p, c.key.method, c.key.seed) for c in study.cells()}
        figures = {key: figure for key, figure in figures.items() if tuple(key) in asked}
        folder = folder_for(name, "paper", out)
        tables = run_study(study, folder, console, jobs=jobs, again=again, write=False)
        comparison = compare(tables.per_seed, figures)
    _tell(name, comparison, console)
    if not comparison.agrees:
        raise typer.Exit(1)


def _tell(name: str, comparison: "Comparison", console: Console) -> None:
    from halfseen.studies.published import FEWEST_SEEDS

    if comparison.worst is not None:
        key, size = comparison.worst
        console.print(
            f"{len(comparison.deviations)} deterministic cells compared, largest deviation "
            f"{size:.1e} ({key.method}, {key.setting}, p = {key.p}, seed {key.seed})",
            highlight=False,
        )
    if comparison.groups:
        console.print(_table(comparison.groups))
    for key in comparison.differing:
        console.print(f"[red]differs[/] by {comparison.deviations[key]:.3g}: {tuple(key)}")
    for key in comparison.missing:
        console.print(f"[red]no result[/]: {tuple(key)}")
    verdict = "agrees with the published figures" if comparison.agrees else "DIFFERS"
    if not comparison.deviations and not any(group.telling for group in comparison.groups):
        verdict = f"cannot be told from so few seeds: at least {FEWEST_SEEDS} are needed"
    console.print(f"[bold]{name} {verdict}[/]")


def _table(groups: "list[Group]") -> Table:
    table = Table(
        title="Methods that draw random numbers: means, and difference in standard errors"
    )
    for column in ("setting", "p", "method", "seeds", "ours", "published", "difference"):
        table.add_column(column, justify="left" if column in ("setting", "method") else "right")
    for group in groups:
        style = "" if group.agrees else "red"
        table.add_row(
            group.setting,
            f"{group.p:g}",
            group.method,
            str(group.n),
            f"{group.ours:.2f}",
            f"{group.published:.2f}",
            f"{group.standard_errors:+.2f}" if group.telling else "too few seeds",
            style=style,
        )
    return table
