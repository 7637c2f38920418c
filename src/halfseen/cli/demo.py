"""`halfseen demo`: TOFU against zero-filling on the paper's main synthetic world."""

import functools
import time
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

if TYPE_CHECKING:
    from halfseen.simulation.compare import Summary

_METHODS = ("zf-oful", "tofu", "tofu-fh")


def demo(
    seeds: int = typer.Option(10, min=2, help="How many realizations of the world."),
) -> None:
    """Compare TOFU with zero-filled OFUL on the paper's main synthetic world."""
    started = time.perf_counter()
    console = Console()
    # Imported here: `halfseen --help` answers at once.
    with console.status("loading (the first time, compiling takes some seconds)"):
        from halfseen.report.look import LABELS
        from halfseen.simulation.compare import compare
        from halfseen.studies.synthetic import FULL_HISTORY, MAIN

    rows: dict[float, dict[str, Summary]] = {}
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("playing", total=len(MAIN.settings) * len(_METHODS) * seeds)
        for name, setting in MAIN.settings.items():
            sources = {"tofu-fh": FULL_HISTORY.settings[name]}
            methods = {
                method: functools.partial(sources.get(method, setting).build, method)
                for method in _METHODS
            }
            rows[setting.world.observe_prob] = compare(
                setting.world, methods, range(seeds), lambda: progress.advance(task)
            )
    console.print(_table(rows, {method: LABELS[method] for method in _METHODS}, seeds))
    console.print(
        "Lower is better. Same arms, masks and noise for every method; nothing is tuned.\n"
        f"{time.perf_counter() - started:.1f} s for {progress.tasks[0].completed:.0f} runs of 400 "
        "rounds, first compilation included."
    )


def _table(rows: "dict[float, dict[str, Summary]]", labels: dict[str, str], seeds: int) -> Table:
    table = Table(
        title=f"Final regret, mean ± standard error over {seeds} seeds\n"
        "(30 features, rank 3, 8 arms, 400 rounds)"
    )
    table.add_column("seen", justify="right")
    for label in labels.values():
        table.add_column(label, justify="right")
    for observe_prob, summaries in rows.items():
        cells = [
            f"{summaries[method].mean:.1f} ± {summaries[method].standard_error:.1f}"
            for method in labels
        ]
        table.add_row(f"{observe_prob:.0%}", *cells)
    return table
