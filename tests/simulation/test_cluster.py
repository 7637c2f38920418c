"""Cells on a cluster, with a scheduler and workers in processes of their own."""

import json
import os
import re
import signal
import sys
import threading
import time

import dask_process
import pytest
from distributed import Client
from held_runs import N_CELLS, N_FREE, PATIENCE, HeldRuns, wait_until
from typer.testing import CliRunner

from halfseen import InvalidSettingError, LowRankWorld, Uniform, simulate
from halfseen.cli import app
from halfseen.errors import ClusterError, MissingExtraError, StudyError
from halfseen.simulation import plugins
from halfseen.simulation import workers as clusters

OWN = clusters.library_versions()
WORLD = LowRankWorld(dim=6, rank=1, n_arms=3, horizon=20)


class Cluster:
    """A scheduler and workers on loopback."""

    def __init__(self, folder, failures=3):
        self.folder, self.failures, self.processes = folder, failures, []
        file = folder / "scheduler.json"
        self.scheduler = self.start("scheduler", "--port", "0", "--scheduler-file", str(file))
        wait_until(lambda: file.exists() and file.read_text().endswith("}"))
        self.address = json.loads(file.read_text())["address"]

    def start(self, what, *arguments):
        local = ("--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0")
        process = dask_process.start(what, [*local, *arguments], self.folder, self.failures)
        self.processes.append(process)
        return process

    def add_workers(self, count):
        """Start the first workers, or others after all have died, and wait for them."""
        for _ in range(count):
            self.start("worker", self.address, "--nthreads", "1", "--no-nanny")
        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(count, timeout=PATIENCE)

    def close(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.join(PATIENCE)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    made.add_workers(2)
    yield made
    made.close()


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return HeldRuns(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def on_one_machine(runs):
    return runs.finish("alone", "--jobs", "1")[1]


def test_the_cells_of_a_killed_worker_run_again_elsewhere(runs, cluster, on_one_machine):
    def kill_a_worker_in_the_middle():
        runs.wait_for_the_middle("killed")
        cluster.processes[-1].kill()
        runs.go.touch()

    runs.go.unlink()
    killer = threading.Thread(target=kill_a_worker_in_the_middle)
    killer.start()
    told, files = runs.run("killed", "--cluster", cluster.address)
    killer.join()
    assert f"100% {N_CELLS}/{N_CELLS} cells" in told  # the bar of one machine
    assert runs.n_finished("killed") == N_CELLS  # none is lost, none is kept twice
    assert files == on_one_machine


def test_after_ctrl_c_the_same_command_goes_on_and_the_workers_live(runs, cluster, on_one_machine):
    process = runs.started("cut", "--cluster", cluster.address)
    process.send_signal(signal.SIGINT)
    told, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, told
    assert f"interrupted: {N_FREE} of {N_CELLS} cells are finished and kept" in told
    assert "Traceback" not in told
    told, files = runs.finish("cut", "--cluster", cluster.address)
    assert f"({N_CELLS} cells, {N_FREE} of them finished before)" in told
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
    theirs = re.escape(clusters.halfseen.__version__)
    monkeypatch.setattr(clusters, "library_versions", lambda: {**OWN, "numpy": "0.1"})
    monkeypatch.setattr(clusters.halfseen, "__version__", "0.0.1")
    expected = rf"a worker on .* has halfseen {theirs}, not 0\.0\.1; numpy .*, not 0\.1: install"
    with pytest.raises(ClusterError, match=expected):
        simulate(["uniform"], WORLD, range(2), cluster=cluster.address)


def test_a_scheduler_that_cannot_be_reached_ends_the_command_with_2_and_one_sentence(runs):
    begun = time.monotonic()
    options = runs.command("nowhere", "--cluster", "tcp://127.0.0.1:1")
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


def test_without_the_extra_its_name_is_reported(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'halfseen\[cluster\]'"):
        simulate(["uniform"], WORLD, [0], cluster="tcp://127.0.0.1:1")


def test_a_cluster_that_fails_says_how(runs, tmp_path, monkeypatch):
    """Without workers; with a worker that its cells end; and when its scheduler is lost."""
    monkeypatch.setattr(clusters, "_PATIENCE", 1)
    frail = Cluster(tmp_path, failures=0)  # cells that have ended a worker are not tried again
    try:
        with pytest.raises(ClusterError, match=r"has no workers: start some with `dask worker"):
            simulate(["uniform"], WORLD, [0], cluster=frail.address)
        monkeypatch.undo()
        frail.add_workers(1)
        with pytest.raises(ClusterError, match=r"the same cells ended 1 workers, the last one tcp"):
            simulate({"deadly": lambda facts: os._exit(9)}, WORLD, [0], cluster=frail.address)
        frail.add_workers(1)
        process = runs.started("lost", "--cluster", frail.address)
        frail.scheduler.kill()
        told, _ = process.communicate(timeout=PATIENCE)
    finally:
        frail.close()
    assert process.returncode == 2, told
    assert f"error: the scheduler at {frail.address} was lost" in told
    assert "Traceback" not in told
