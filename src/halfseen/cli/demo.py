"""`halfseen demo`: the paper's main synthetic study at full size, in about a minute."""

import time

from rich.console import Console

from halfseen.cli import options
from halfseen.cli.work import LOADING, How, folder_for, report_on, run_study


def demo(
    jobs: options.Jobs = None,
    cluster: options.Cluster = None,
    out: options.Out = None,
    again: options.Again = False,
    imports: options.Import = None,
) -> None:
    """Run the main synthetic study: the paper's methods and latent UCB, 5 values of p, 20 seeds."""
    started = time.perf_counter()
    console = Console()
    with console.status(LOADING):
        from halfseen.studies.builtin import builtin_study
    with options.explained(console):
        options.import_plugins(imports)
        study = builtin_study("synthetic")
        folder = folder_for(study.name, "paper", out)
        how = How(jobs=jobs, cluster=cluster, again=again, beside_others=out is None)
        tables = run_study(study, folder, console, how)
        report_on(study, folder, tables, console, None if out is not None else folder.parent)
    console.print(
        "Final regret, mean ± standard error; lower is better. Same arms, masks and noise for "
        f"every method; nothing is tuned. {time.perf_counter() - started:.0f} s in all."
    )
