"""`halfseen bench`: speed and memory, compared with other libraries and the machine's limits."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import halfseen
from halfseen.cli import options
from halfseen.errors import HalfseenError

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def bench(
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer repeats, shorter horizons: two minutes.")
    ] = False,
    peers: Annotated[
        bool, typer.Option(help="Also other libraries, installed into an environment of their own.")
    ] = True,
    check: Annotated[
        bool, typer.Option("--check", help="Only compare ratios to the floor with the stored ones.")
    ] = False,
    store: Annotated[
        bool, typer.Option("--store", help="With --check: store the ratios instead.")
    ] = False,
) -> None:
    """Measure speed and memory, and write benchmarks/report.md (from a clone)."""
    console = Console()
    with options.explained(console):
        home = _clone(Path(halfseen.__file__))
        chosen = {"--quick": quick, "--no-peers": not peers, "--check": check, "--store": store}
        words = [word for word, wanted in chosen.items() if wanted]
        # A process of its own: numpy reads the number of threads when it is imported.
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks", *words],
            cwd=home,
            env={**os.environ, **dict.fromkeys(_THREADS, "1")},
        )
        if done.returncode:
            raise typer.Exit(done.returncode)


def _clone(module: Path) -> Path:
    """Return the folder that holds `benchmarks/` beside the package's source."""
    home = module.resolve().parents[2]
    if (home / "benchmarks" / "__main__.py").is_file():
        return home
    raise HalfseenError(
        "the benchmarks are not part of the installed package: clone the repository and call "
        "`halfseen bench` from an environment where it is installed with `pip install -e .`"
    )
