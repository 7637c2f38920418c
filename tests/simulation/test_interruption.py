"""A run that is stopped in the middle: nothing is lost, nothing is left running."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from halfseen.cli import app

SOURCES = Path(__file__).resolve().parents[2] / "src"
FILES = ("per_seed.csv", "summary.csv", "trajectories.csv.gz", "diagnostics.csv")
STUDY = """
name = "slow"
seeds = "0:15"
observe_prob = [0.8, 0.4]
methods = ["tofu", "uniform"]

[world]
kind = "low-rank"
dim = 20
rank = 2
horizon = 1500
"""
PATIENCE = 60.0


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("interruption")
    (folder / "slow.toml").write_text(STUDY)
    return folder


def command(home, out, *options):
    return ["run", str(home / "slow.toml"), "--no-timing", "--out", str(home / out), *options]


def finish(home, out, *options):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules["halfseen.cli.run"], "report_on", lambda *_: None)  # no figures
        result = CliRunner().invoke(app, command(home, out, *options), env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    return result.output, {name: (home / out / name).read_bytes() for name in FILES}


@pytest.fixture(scope="module")
def uninterrupted(home):
    return finish(home, "whole", "--jobs", "1")[1]


def wait_until(claim):
    end = time.monotonic() + PATIENCE
    while not claim():
        assert time.monotonic() < end
        time.sleep(0.02)


def stopped(home, out, send):
    """Start a run in a process group of its own, stop it in the middle, return code and output."""
    path = home / out / "cells.jsonl"
    process = subprocess.Popen(
        [sys.executable, "-m", "halfseen", *command(home, out, "--jobs", "2")],
        env=os.environ | {"PYTHONPATH": str(SOURCES), "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        # Where the tests run in the background, Ctrl-C is ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        wait_until(lambda: path.exists() and path.read_bytes().count(b"\n") >= 3)
        send(process.pid)
        told, _ = process.communicate(timeout=PATIENCE)
        wait_until(lambda: not running(process.pid))  # no worker is left
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


def n_finished(home, out):
    return (home / out / "cells.jsonl").read_bytes().count(b"\n")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_after_ctrl_c_the_same_command_goes_on_and_ends_with_the_same_bytes(home, uninterrupted):
    code, told = stopped(home, "cut", lambda pid: os.killpg(pid, signal.SIGINT))
    assert code == 130
    finished = n_finished(home, "cut")
    assert 3 <= finished < 60
    expected = (
        f"interrupted: {finished} of 60 cells are finished and kept in {home / 'cut'}; the same "
        "command goes on from there"
    )
    assert expected in told
    assert "Traceback" not in told
    assert not (home / "cut" / "summary.csv").exists()
    told, files = finish(home, "cut", "--jobs", "1")
    assert f"(60 cells, {finished} of them finished before)" in told
    assert files == uninterrupted
    assert n_finished(home, "cut") == 60  # no cell ran twice


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_after_a_kill_in_mid_write_the_run_goes_on_with_the_same_bytes(home, uninterrupted):
    code, _ = stopped(home, "killed", lambda pid: os.kill(pid, signal.SIGKILL))
    assert code == -signal.SIGKILL
    path = home / "killed" / "cells.jsonl"
    path.write_bytes(path.read_bytes()[:-40])
    finished = n_finished(home, "killed")
    told, files = finish(home, "killed", "--jobs", "1")
    assert f"(60 cells, {finished} of them finished before)" in told
    assert files == uninterrupted
    assert n_finished(home, "killed") == 60


def test_a_finished_run_has_nothing_left_to_do_unless_asked(home, uninterrupted):
    path = home / "whole" / "cells.jsonl"
    before = path.read_bytes()
    told, files = finish(home, "whole", "--jobs", "1")
    assert "60 of them finished before" in told
    assert path.read_bytes() == before
    assert files == uninterrupted
    told, files = finish(home, "whole", "--jobs", "1", "--again")
    assert "finished before" not in told
    assert path.read_bytes() != before  # other seconds
    assert files == uninterrupted
