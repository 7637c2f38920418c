"""Options that several commands share, and how they are parsed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from halfseen.errors import HalfseenError, StudyError

RESULTS = Path("results")

Scale = Annotated[
    str, typer.Option(help="paper: full size. smoke: shows in seconds that everything works.")
]
Seeds = Annotated[
    str | None, typer.Option(help="Other seeds than the study's own: 100:120 or 3,5,7.")
]
Probs = Annotated[
    str | None, typer.Option("--p", help="Only these observation probabilities: .2,.3")
]
Methods = Annotated[str | None, typer.Option(help="Only these methods: tofu,zf-oful")]
Jobs = Annotated[
    int | None, typer.Option("--jobs", "-j", min=1, help="Processes; all cores by default.")
]
Cluster = Annotated[
    str | None,
    typer.Option(help="Address of a Dask scheduler whose workers run it (docs/many-machines.md)."),
]
Out = Annotated[
    Path | None, typer.Option("--out", "-o", help="Folder for results; results/STUDY by default.")
]
Again = Annotated[bool, typer.Option("--again", help="Also run finished cells again.")]
Rebuild = Annotated[
    bool,
    typer.Option(
        "--rebuild", help="Real data: first rebuild its features from raw data and compare."
    ),
]
Import = Annotated[
    list[str] | None,
    typer.Option(
        "--import",
        help="A Python file or module with policies and worlds of your own; may be repeated.",
    ),
]
Timing = Annotated[
    bool,
    typer.Option(help="Measure seconds; with --no-timing, equal runs write equal bytes."),
]


def words(text: str | None) -> list[str] | None:
    """Return the parts of a comma-separated list."""
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def numbers(text: str | None) -> list[float] | None:
    """Return the numbers of a comma-separated list."""
    parts = words(text)
    if parts is None:
        return None
    try:
        return [float(part) for part in parts]
    except ValueError:
        raise StudyError(
            f"--p must be numbers separated by commas, such as .2,.3, got {text!r}"
        ) from None


def import_plugins(names: list[str] | None) -> None:
    """Import the plugins that a command names."""
    from halfseen.simulation.plugins import load_plugin

    for name in names or ():
        load_plugin(name)


@contextmanager
def explained(console: Console) -> Iterator[None]:
    """Turn an error of ours, of a file or of memory into one line and exit code 2."""
    try:
        yield
    except (HalfseenError, OSError, MemoryError) as error:
        text = str(error) or "there is not enough memory"
        console.print(f"[bold red]error:[/] {escape(text)}", highlight=False, soft_wrap=True)
        raise typer.Exit(2) from None
