"""`python -m halfseen` is the same as `halfseen`."""

from halfseen.cli import app

app(prog_name="halfseen")
