"""`halfseen claims`: every claim of the paper with its verdict, in one table."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from halfseen.cli import options
from halfseen.cli.work import LOADING

Folder = Annotated[Path, typer.Argument(help="Holds the folders of studies.")]
Target = Annotated[Path, typer.Option("--out", "-o", help="The Markdown file to write.")]


def claims(folder: Folder = options.RESULTS, out: Target = Path("claims.md")) -> None:
    """Write all claims of the paper with their verdicts, from results on disk."""
    console = Console()
    with options.explained(console):
        with console.status(LOADING):
            from halfseen.reports.claims_page import write_claims
            from halfseen.reports.verdicts import counted
        counts = write_claims(folder, out)
    texts = [counted(outcome, n) for outcome, n in counts.items()]
    console.print(f"{', '.join(texts)}: {out}", highlight=False)
