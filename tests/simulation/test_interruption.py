"""A run that is stopped in the middle: nothing is lost, nothing is left running.

Two of its 16 cells finish, the others wait to be let go.
"""

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


needs_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="looks for processes in /proc"
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return HeldRuns(tmp_path_factory.mktemp("interruption"))


@pytest.fixture(scope="module")
def uninterrupted(runs):
    return runs.finish("whole", "--jobs", "1")


def stopped(runs, out, send):
    """Stop a run in the middle; return its code and its output once no process of it is left."""
    process = runs.started(out, "--jobs", "2")
    try:
        send(process.pid)
        told, _ = process.communicate(timeout=PATIENCE)
        wait_until(lambda: not running(process.pid))
    finally:
        if running(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, told


def running(group):
    """Return the processes of a group that have not ended."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            state, _, its_group = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(its_group) == group and state != "Z":
            found.append(folder.name)
    return found


@needs_proc
def test_after_ctrl_c_the_same_command_goes_on_and_ends_with_the_same_bytes(runs, uninterrupted):
    code, told = stopped(runs, "cut", lambda pid: os.killpg(pid, signal.SIGINT))
    assert code == 130
    assert runs.n_finished("cut") == N_FREE
    kept = f"finished cells are kept in {runs.folder / 'cut'}"
    assert f"interrupted: {kept}; the same command continues from there" in told
    assert "Traceback" not in told
    assert not (runs.folder / "cut" / "summary.csv").exists()
    assert runs.finish("cut", "--jobs", "1") == uninterrupted
    assert runs.n_finished("cut") == N_CELLS  # no cell ran twice


@needs_proc
def test_after_a_kill_in_mid_write_the_run_goes_on_with_the_same_bytes(runs, uninterrupted):
    code, _ = stopped(runs, "killed", lambda pid: os.kill(pid, signal.SIGKILL))
    assert code == -signal.SIGKILL
    path = runs.folder / "killed" / "cells.jsonl"
    path.write_bytes(path.read_bytes()[:-40])
    assert runs.finish("killed", "--jobs", "1") == uninterrupted
    assert runs.n_finished("killed") == N_CELLS + 1  # and the line that was cut
