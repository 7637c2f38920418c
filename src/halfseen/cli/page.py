"""`halfseen page`: one page over all studies that were run."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from halfseen.cli import options
from halfseen.cli.work import refresh_page


def page(
    folder: Annotated[Path, typer.Argument(help="Holds the folders of studies.")] = options.RESULTS,
) -> None:
    """Write index.html over all studies in a folder, without running anything."""
    console = Console()
    with options.explained(console):
        refresh_page(folder, console)
