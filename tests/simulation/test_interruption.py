"""A run that is stopped in the middle: nothing is lost, nothing is left running.

Two of its 16 cells finish, the others wait to be let go.
"""

import os
import signal
from pathlib import Path

import pytest
from held_runs import N_CELLS, N_FREE, PATIENCE, HeldRuns, wait_until

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
