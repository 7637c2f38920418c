"""`halfseen verify`: our regrets against the published ones."""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from halfseen.cli import options
from halfseen.cli.work import LOADING, How, folder_for, part_of, run_study

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from halfseen.simulation.tables import Tables
    from halfseen.studies.published import Comparison, Figure, Group, Key
    from halfseen.studies.published_summary import Level, Order, Summary, SummaryComparison
    from halfseen.studies.spec import Study

Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Also print the orders that agree.")]


def verify(
    name: Annotated[str, typer.Argument(help="A study with published figures.")],
    seeds: options.Seeds = None,
    p: options.Probs = None,
    methods: options.Methods = None,
    jobs: options.Jobs = None,
    out: options.Out = None,
    again: options.Again = False,
    verbose: Verbose = False,
) -> None:
    """Compare a study with the published figures; exit with 1 if one differs.

    Figures per seed are compared cell by cell. Where only means over seeds are published, the
    order of methods, their excess over the irreducible regret and the ranks they choose are.
    """
    console = Console()
    with console.status(LOADING):
        from halfseen.errors import StudyError
        from halfseen.studies.builtin import builtin_study
        from halfseen.studies.published import published
        from halfseen.studies.published_summary import PUBLISHED_FORM, published_summary
    with options.explained(console):
        study, figures, means = builtin_study(name), published(name), published_summary(name)
        if not figures and not means:
            raise StudyError(
                f"nothing is published for {name!r}: neither regrets per seed nor means"
            )
        if not figures:
            seeds = _seeds_of(means, seeds)
        known = {key.method for key in figures} | {mean.method for mean in means}
        known |= {f"{key}{PUBLISHED_FORM}" for key in known}
        asked = _with_published_forms(study, methods)
        study = _published_part(part_of(study, seeds, p, asked), known, methods)
        folder = folder_for(name, "paper", out)
        study.check()
        how = How(jobs=jobs, again=again, write=False, beside_others=out is None)
        tables = run_study(study, folder, console, how)
        if figures:
            agrees = _by_cell(study, tables, figures, console)
        else:
            agrees = _by_mean(study, tables, means, console, verbose)
    if not agrees:
        raise typer.Exit(1)


def _seeds_of(means: "Sequence[Summary]", asked: str | None) -> str:
    """Return the seeds over which means were published: with others there is no comparison."""
    from halfseen.errors import StudyError

    seeds = f"0:{max(mean.n for mean in means)}"
    if asked not in (None, seeds):
        raise StudyError(f"--seeds must be left out: published are means over {seeds}, got {asked}")
    return seeds


def _with_published_forms(study: "Study", methods: str | None) -> str | None:
    """Return methods with those at which their ranks are compared."""
    from halfseen.studies.published_summary import PUBLISHED_FORM

    forms = [f"{key}{PUBLISHED_FORM}" for key in options.words(methods) or ()]
    return methods and ",".join([methods, *(form for form in forms if form in study.methods)])


def _published_part(study: "Study", known: set[str], methods: str | None) -> "Study":
    from halfseen.errors import StudyError

    if not known & set(study.methods):
        raise StudyError(f"methods must be among the published {sorted(known)}, got {methods}")
    return study.narrowed(methods=[key for key in study.methods if key in known])


def _by_cell(
    study: "Study", tables: "Tables", figures: "Mapping[Key, Figure]", console: Console
) -> bool:
    from halfseen.studies.published import compare

    asked = {(c.key.setting, c.key.p, c.key.method, c.key.seed) for c in study.cells()}
    figures = {key: figure for key, figure in figures.items() if tuple(key) in asked}
    comparison = compare(tables.per_seed, figures)
    _tell(study.name, comparison, console)
    return comparison.agrees


def _by_mean(
    study: "Study", tables: "Tables", means: "Sequence[Summary]", console: Console, verbose: bool
) -> bool:
    from halfseen.studies.published_summary import compare_summary

    asked = {(c.key.p, c.key.method) for c in study.cells()}
    means = [mean for mean in means if (mean.p, mean.method) in asked]
    comparison = compare_summary(tables.per_seed, tables.diagnostics, means)
    _tell_means(study.name, comparison, console, verbose)
    return comparison.agrees


def _tell(name: str, comparison: "Comparison", console: Console) -> None:
    from halfseen.studies.published import FEWEST_SEEDS

    if comparison.worst is not None:
        key, size = comparison.worst
        console.print(
            f"{len(comparison.deviations)} deterministic cells compared, largest deviation "
            f"{size:.1e} ({key.method}, {key.setting}, p = {key.p}, seed {key.seed})",
            highlight=False,
        )
    drawing = [group for group in comparison.groups if not group.exact]
    if drawing:
        console.print(_groups(drawing))
    for key in comparison.differing:
        console.print(f"[red]differs[/] by {comparison.deviations[key]:.3g}: {tuple(key)}")
    for key in comparison.missing:
        console.print(f"[red]no result[/]: {tuple(key)}")
    verdict = "agrees with the published figures" if comparison.agrees else "DIFFERS"
    if not any(group.telling for group in comparison.groups):
        verdict = f"cannot be judged from so few seeds: at least {FEWEST_SEEDS} are needed"
    console.print(f"[bold]{name} {verdict}[/]")


def _groups(groups: "list[Group]") -> Table:
    heads = ("setting", "p", "method", "seeds", "ours", "published", "difference")
    rows = [
        (
            group.agrees,
            group.setting,
            f"{group.p:g}",
            group.method,
            str(group.n),
            f"{group.ours.mean:.2f}",
            f"{group.published.mean:.2f}",
            f"{group.deviation:+.2f}" if group.telling else "too few seeds",
        )
        for group in groups
    ]
    title = "Methods that draw random numbers: means, and difference in standard errors"
    return _table(title, heads, rows)


def _tell_means(
    name: str, comparison: "SummaryComparison", console: Console, verbose: bool
) -> None:
    decided = comparison.decided_orders
    agreeing = sum(order.agrees for order in decided)
    console.print(
        f"{len(comparison.orders)} pairs of methods compared: for {len(decided)} of them the "
        f"published gap tells an order, and {agreeing} of these orders are ours, too",
        highlight=False,
    )
    shown = [order for order in comparison.orders if verbose or not order.agrees]
    if shown:
        console.print(_orders(shown))
    if comparison.excesses:
        console.print(_levels("Mean regret above the irreducible one", comparison.excesses, 1))
    if comparison.ranks:
        console.print(_levels("Mean rank that was chosen", comparison.ranks, 2))
    for mean in comparison.missing:
        console.print(f"[red]no result[/]: {mean.method}, p = {mean.p:g}", highlight=False)
    verdict = "agrees with the published means" if comparison.agrees else "DIFFERS"
    console.print(f"[bold]{name} {verdict}[/]")


def _orders(orders: "Iterable[Order]") -> Table:
    heads = ("p", "published lower", "higher", "published gap", "our gap", "SE", "verdict")
    rows = [
        (
            order.agrees,
            f"{order.p:g}",
            order.lower,
            order.higher,
            *(f"{each:.1f}" for each in (order.published, order.ours, order.standard_error)),
            _verdict(order.agrees) if order.telling else "too close to tell",
        )
        for order in orders
    ]
    return _table("Order of two methods: difference of mean regrets", heads, rows)


def _levels(title: str, levels: "Iterable[Level]", digits: int) -> Table:
    heads = ("p", "method", "published", "ours", "SE", "tolerance", "verdict")
    rows = []
    for level in levels:
        numbers = (level.published, level.ours, level.standard_error, level.tolerance)
        texts = (f"{number:.{digits}f}" for number in numbers)
        rows.append((level.agrees, f"{level.p:g}", level.method, *texts, _verdict(level.agrees)))
    return _table(title, heads, rows)


def _verdict(agrees: bool) -> str:
    return "agrees" if agrees else "differs"


def _table(title: str, heads: "Iterable[str]", rows: "Iterable[tuple[Any, ...]]") -> Table:
    """Return a table of rows, each of which begins with whether it agrees."""
    table = Table(title=title)
    for head in heads:
        left = head in ("setting", "method", "published lower", "higher", "verdict")
        # A key that is cut off is no key.
        table.add_column(head, justify="left" if left else "right", overflow="fold")
    for agrees, *cells in rows:
        table.add_row(*cells, style="" if agrees else "red")
    return table
