"""Commands for people: one file each."""

import typer

import halfseen
from halfseen.cli.bench import bench
from halfseen.cli.build_data import build_data
from halfseen.cli.claims import claims
from halfseen.cli.demo import demo
from halfseen.cli.page import page
from halfseen.cli.reproduce import reproduce
from halfseen.cli.run import run
from halfseen.cli.studies import studies
from halfseen.cli.verify import verify

app = typer.Typer(
    help="Linear bandits for options you only half see.",
    no_args_is_help=True,
    add_completion=False,
)
for command in (demo, studies, reproduce, run, verify, page, claims, build_data, bench):
    app.command()(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"halfseen {halfseen.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Linear bandits for options you only half see."""
