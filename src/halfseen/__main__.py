"""The command `halfseen`, also as `python -m halfseen`."""

import io
import sys

from halfseen.errors import MissingExtraError
from halfseen.lazy import from_extra


def main() -> None:
    """Run the command; if a dependency is missing, print how to install it and exit with 2."""
    try:
        with from_extra("service" if sys.argv[1:2] == ["serve"] else "paper"):
            from halfseen.cli import app
    except MissingExtraError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal may only support ASCII
    app(prog_name="halfseen")


if __name__ == "__main__":
    main()
