"""Runs of a study of 16 cells, of which two finish and the others wait to be let go."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from halfseen.cli import app
from made_results import written_tables

PATIENCE = 60.0
N_CELLS, N_FREE = 16, 2


def wait_until(claim):
    end = time.monotonic() + PATIENCE
    while not claim():
        assert time.monotonic() < end
        time.sleep(0.02)


class HeldRuns:
    """Runs of one study, each into a folder of its own."""

    def __init__(self, folder):
        # The plugin looks for the file `go` beside itself.
        self.folder, self.go, self.plugin = folder, folder / "go", folder / f"{folder.name}.py"
        self.plugin.write_text(Path(__file__).with_name("held.py").read_text())

    def command(self, out, *options):
        study = ["synthetic", "--scale", "smoke", "--seeds", "0:4", "--methods", "held,tofu"]
        own = ["--import", str(self.plugin), "--out", str(self.folder / out)]
        return ["reproduce", *study, *own, *options]

    def n_finished(self, out):
        path = self.folder / out / "cells.jsonl"
        return path.read_bytes().count(b"\n") if path.exists() else 0

    def wait_for_the_middle(self, out):
        wait_until(lambda: self.n_finished(out) == N_FREE)

    def started(self, out, *options):
        """Start a command in a process group of its own; return it when no cell can go on."""
        self.go.unlink(missing_ok=True)
        process = subprocess.Popen(
            [sys.executable, "-m", "halfseen", *self.command(out, *options)],
            env=os.environ | {"COLUMNS": "200"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            # Where the tests run in the background, Ctrl-C is ignored, and children inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        self.wait_for_the_middle(out)
        return process

    def finish(self, out, *options):
        """Run the command here to its end; return its tables."""
        self.go.touch()
        return self.run(out, *options)

    def run(self, out, *options):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("halfseen.cli._show_report", lambda *_: True)
            result = CliRunner().invoke(app, self.command(out, *options), env={"COLUMNS": "200"})
        assert result.exit_code == 0, result.output
        return written_tables(self.folder / out)
