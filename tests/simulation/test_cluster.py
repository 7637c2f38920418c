"""Cells on a cluster, with a scheduler and workers in processes of their own."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from halfseen import InvalidSettingError, LowRankWorld, Uniform, simulate
from halfseen.cli import app
from halfseen.errors import ClusterError, MissingExtraError, StudyError
from halfseen.simulation import cluster as clusters
from halfseen.simulation import plugins

FILES = ("per_seed.csv", "summary.csv", "trajectories.csv.gz", "diagnostics.csv")
PATIENCE = 60.0
OWN = clusters.library_versions()
WORLD = LowRankWorld(dim=6, rank=1, n_arms=3, horizon=20)
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


def wait_until(claim):
    end = time.monotonic() + PATIENCE
    while not claim():
        assert time.monotonic() < end
        time.sleep(0.02)


class Cluster:
    """A scheduler and workers on loopback."""

    def __init__(self, folder, failures=3):
        self.folder, self.failures, self.processes = folder, failures, []
        file = folder / "scheduler.json"
        self.scheduler = self.start("scheduler", "--port", "0", "--scheduler-file", str(file))
        wait_until(lambda: file.exists() and file.read_text().endswith("}"))
        self.address = json.loads(file.read_text())["address"]

    def start(self, what, *arguments):
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", f"distributed.cli.dask_{what}"),
                *("--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0"),
                *arguments,
            ],
            cwd=self.folder,
            env=os.environ | {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": str(self.failures)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.processes.append(process)
        return process

    def add_worker(self):
        return self.start("worker", self.address, "--nthreads", "1", "--no-nanny")

    def close(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait(PATIENCE)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    made.add_worker()
    made.add_worker()
    yield made
    made.close()


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
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
def on_one_machine(home):
    return finish(home, "alone", "--jobs", "1")[1]


def test_a_cluster_writes_the_same_bytes_and_shows_the_same_bar(home, cluster, on_one_machine):
    told, files = finish(home, "many", "--cluster", cluster.address)
    assert files == on_one_machine
    assert "100% 60/60 cells" in told


def started(home, out, address):
    """Return a command that has finished some cells and not all."""
    process = subprocess.Popen(
        [sys.executable, "-m", "halfseen", *command(home, out, "--cluster", address)],
        env=os.environ | {"COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # Where the tests run in the background, Ctrl-C is ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    path = home / out / "cells.jsonl"
    wait_until(lambda: path.exists() and path.read_bytes().count(b"\n") >= 3)
    return process


def n_finished(home, out):
    return (home / out / "cells.jsonl").read_bytes().count(b"\n")


def test_the_cells_of_a_killed_worker_run_again_elsewhere(home, cluster, on_one_machine):
    doomed = cluster.processes[-1]
    process = started(home, "killed", cluster.address)
    doomed.kill()
    finished = n_finished(home, "killed")
    cluster.add_worker()
    told, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, told
    assert finished < 60
    assert n_finished(home, "killed") == 60  # none is lost, none is kept twice
    assert {name: (home / "killed" / name).read_bytes() for name in FILES} == on_one_machine


def test_after_ctrl_c_the_same_command_goes_on_and_the_workers_live(home, cluster, on_one_machine):
    process = started(home, "cut", cluster.address)
    process.send_signal(signal.SIGINT)
    told, _ = process.communicate(timeout=PATIENCE)
    finished = n_finished(home, "cut")
    assert process.returncode == 130, told
    assert f"interrupted: {finished} of 60 cells are finished and kept" in told
    assert "Traceback" not in told
    told, files = finish(home, "cut", "--cluster", cluster.address)
    assert f"(60 cells, {finished} of them finished before)" in told
    assert files == on_one_machine


def test_a_policy_of_one_s_own_travels_to_the_workers(cluster):
    policies = {"mine": lambda facts: Uniform(dim=facts.dim), "uniform": {}}
    tables = simulate(policies, WORLD, range(2), cluster=cluster.address)
    assert tables.trajectories == simulate(policies, WORLD, range(2), jobs=1).trajectories


def test_a_plugin_that_a_worker_does_not_find_is_named(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(plugins, "_loaded", [str(tmp_path / "elsewhere.py")])
    with pytest.raises(StudyError, match=r"plugin '.*elsewhere\.py' cannot be imported"):
        simulate(["uniform"], WORLD, range(2), cluster=cluster.address)


def test_a_worker_with_other_versions_is_refused(cluster, monkeypatch):
    monkeypatch.setattr(clusters, "library_versions", lambda: {**OWN, "numpy": "0.1"})
    monkeypatch.setattr(clusters.halfseen, "__version__", "0.0.1")
    expected = r"a worker on .* has halfseen 0\.1\.0, not 0\.0\.1; numpy .*, not 0\.1: install the"
    with pytest.raises(ClusterError, match=expected):
        simulate(["uniform"], WORLD, range(2), cluster=cluster.address)


def test_a_scheduler_that_cannot_be_reached_ends_the_command_with_2_and_one_sentence(home):
    begun = time.monotonic()
    options = command(home, "nowhere", "--cluster", "tcp://127.0.0.1:1")
    result = CliRunner().invoke(app, options, env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert time.monotonic() - begun < 20
    (error,) = re.findall("error: .*", result.output)
    assert error.startswith("error: no Dask scheduler answers at 'tcp://127.0.0.1:1': start one")
    assert "Traceback" not in result.output


@pytest.mark.parametrize("address", ["nonsense", "tcp://127.0.0.1", "", "tcp://127.0.0.1:port"])
def test_what_is_no_address_is_refused(address):
    with pytest.raises(ClusterError, match="no Dask scheduler answers at"):
        simulate(["uniform"], WORLD, [0], cluster=address)


def test_a_cluster_has_its_own_number_of_workers():
    with pytest.raises(InvalidSettingError, match="jobs must not be given with a cluster"):
        simulate(["uniform"], WORLD, [0], jobs=2, cluster="tcp://127.0.0.1:1")


def test_without_the_extra_its_name_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'halfseen\[cluster\]'"):
        simulate(["uniform"], WORLD, [0], cluster="tcp://127.0.0.1:1")


@pytest.fixture
def frail(tmp_path):
    """A cluster without workers, on which cells that have ended one worker are not tried again."""
    made = Cluster(tmp_path, failures=0)
    yield made
    made.close()


def test_a_cluster_without_workers_says_how_to_start_some(frail, monkeypatch):
    monkeypatch.setattr(clusters, "_PATIENCE", 1)
    with pytest.raises(ClusterError, match=r"has no workers: start some with `dask worker tcp:"):
        simulate(["uniform"], WORLD, [0], cluster=frail.address)


def test_cells_that_end_their_workers_are_given_up(frail):
    frail.add_worker()
    with pytest.raises(ClusterError, match=r"the same cells ended 1 workers, the last one tcp:"):
        simulate({"deadly": lambda facts: os._exit(9)}, WORLD, [0], cluster=frail.address)


def test_a_scheduler_that_is_lost_in_the_middle_ends_the_command_with_2(home, frail):
    frail.add_worker()
    process = started(home, "lost", frail.address)
    frail.scheduler.kill()
    told, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2, told
    assert f"error: the scheduler at {frail.address} was lost" in told
    assert "Traceback" not in told
