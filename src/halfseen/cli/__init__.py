"""Commands for people: one file each."""

import typer

import halfseen
from halfseen.cli.demo import demo

app = typer.Typer(
    help="Linear bandits for options you only half see.",
    no_args_is_help=True,
    add_completion=False,
)
app.command()(demo)


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
