"""`halfseen studies`: what can be reproduced."""

from rich.console import Console
from rich.table import Table


def studies() -> None:
    """List the studies of the package."""
    from halfseen.studies.builtin import ORDER, builtin_study
    from halfseen.studies.published import published

    table = Table(title="halfseen reproduce NAME")
    table.add_column("name", no_wrap=True)
    table.add_column("what it shows")
    table.add_column("cells", justify="right")
    table.add_column("published", justify="right")
    for name in ORDER:
        study, figures = builtin_study(name), published(name)
        table.add_row(name, study.title, str(len(study.cells())), str(len(figures) or "–"))
    console = Console()
    console.print(table)
    console.print(
        "A cell is one method on one seed. `published` counts those that `verify` checks."
    )
