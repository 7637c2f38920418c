"""Cells on a real Dask cluster of two worker processes on loopback: `make test-cluster`."""

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from importlib import import_module

import joblib
import numpy as np
import pandas as pd
import pytest
from held_runs import N_CELLS, N_FREE, PATIENCE, HeldRuns, wait_until
from typer.testing import CliRunner

from halfseen import HalfseenError, LowRankWorld, Uniform, paper, simulate, tune
from halfseen.cli import app
from halfseen.simulation import cluster as clusters
from halfseen.sklearn import LatentImputer, MaskedPCA
from made_results import without_seconds

distributed = pytest.importorskip("distributed", reason="needs the extra cluster")
needs_processes = pytest.mark.skipif(
    "HALFSEEN_CLUSTER" not in os.environ,
    reason="starts a Dask cluster of processes: make test-cluster",
)
WORLD = LowRankWorld(dim=6, rank=1, n_arms=3, horizon=20)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    before = os.getcwd()
    os.chdir(tmp_path_factory.mktemp("elsewhere"))  # of the workers
    local = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(**local) as cluster:
        os.chdir(before)
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as client, joblib.parallel_config("dask", client=client):
        yield client


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return HeldRuns(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def on_one_machine(runs):
    return runs.finish("alone", "--jobs", "1")


def on_cluster(command, address):
    return CliRunner().invoke(app, [*command, "--cluster", address], env={"COLUMNS": "200"})


@needs_processes
def test_the_cells_of_a_killed_worker_run_again_elsewhere(runs, cluster, on_one_machine):
    """They have a policy that no worker can import."""

    def kill_a_worker_in_the_middle():
        runs.wait_for_the_middle("killed")
        os.kill(cluster.workers[0].pid, signal.SIGKILL)
        runs.go.touch()

    runs.go.unlink()
    killer = threading.Thread(target=kill_a_worker_in_the_middle)
    killer.start()
    tables = runs.run("killed", "--cluster", cluster.scheduler_address)
    killer.join()
    assert tables == on_one_machine
    assert runs.n_finished("killed") == N_CELLS  # none is lost, none is kept twice


@needs_processes
def test_after_ctrl_c_the_same_command_goes_on_and_waiting_cells_are_not_begun(
    runs, cluster, on_one_machine
):
    process = runs.started("cut", "--cluster", cluster.scheduler_address)
    process.send_signal(signal.SIGINT)
    told, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, told
    assert "finished cells are kept in" in told
    assert "Traceback" not in told
    runs.go.touch()
    wait_until(lambda: not cluster.scheduler.tasks)
    assert runs.finish("cut", "--cluster", cluster.scheduler_address) == on_one_machine
    assert runs.n_finished("cut") == N_CELLS > N_FREE


@needs_processes
def test_when_the_scheduler_is_lost_one_error_says_so_and_what_is_done_is_kept(
    runs, tmp_path, on_one_machine
):
    def start(what, *arguments):
        command = [sys.executable, "-m", "dask", what, *arguments, "--no-dashboard"]
        nothing = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(command, cwd=tmp_path, **nothing)

    file = tmp_path / "scheduler.json"
    scheduler = start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", file)
    worker = start("worker", "--scheduler-file", file, "--nthreads", "2", "--no-nanny")
    try:
        wait_until(file.exists)
        with distributed.Client(scheduler_file=str(file), timeout=PATIENCE) as client:
            address = client.scheduler.address
            client.wait_for_workers(1, timeout=PATIENCE)
        process = runs.started("lost", "--cluster", address)
        scheduler.kill()
        told, _ = process.communicate(timeout=PATIENCE)
    finally:
        for each in (scheduler, worker):
            each.kill()
            each.wait()
    assert process.returncode == 2, told
    assert "error: the Dask scheduler was lost" in told
    assert "Traceback" not in told
    assert runs.n_finished("lost") == N_FREE
    assert runs.finish("lost", "--jobs", "1") == on_one_machine


OWN_MODULE = """
from halfseen import LowRankWorld, Uniform, params, register_policy, register_world
from halfseen.simulation.methods import MEASURES
from halfseen.tofu.rank import FixedRank, RankRule
from {helper} import offset

@register_policy
class Mine(Uniform):
    shift: int = params.integer(default=0, low=0)
    def decide(self, slate):
        choice = super().decide(slate)
        return choice._replace(arm=(choice.arm + self.shift + offset()) % slate.n_arms)

class OneByMine(RankRule):
    extra: int = params.integer(default=0, low=0)
    def select(self, covariance, known):
        return FixedRank(rank=1 + self.extra).select(covariance, known)

@register_world("own-world")
class OwnWorld(LowRankWorld):
    dim: int = params.size(default=7)

def size(realization):
    return {{"size": [float(realization.facts.dim + offset())]}}

MEASURES["own-size"] = size
"""


@needs_processes
def test_modules_of_one_s_own_travel_with_what_they_import(client, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_helper.py").write_text("def offset():\n    return 2\n")
    (tmp_path / "own_module.py").write_text(OWN_MODULE.format(helper="own_helper"))
    own = import_module("own_module")
    policies = {
        "mine": {"policy": "Mine", "shift": 1},
        "tofu": {"rank": {"rule": "OneByMine", "extra": 1}},
        "inner": {"method": "tofu", "burn_in_policy": {"policy": "Mine", "settings": {"dim": 7}}},
        "measured": {"policy": "measure", "measure": "own-size"},
        "made": lambda facts: Uniform(dim=facts.dim, seed=facts.seed),
    }
    world = own.OwnWorld(rank=1, n_arms=3, horizon=40)
    there = simulate(policies, world, range(2))
    here = simulate(policies, world, range(2), jobs=1)
    assert not there.failures
    assert without_seconds(there) == without_seconds(here)
    assert (there.trajectories, there.diagnostics) == (here.trajectories, here.diagnostics)


@needs_processes
@pytest.mark.parametrize("study", ["digits", "hard-instance"])  # is tuned, measures
def test_a_study_has_equal_results_on_a_cluster(client, study):
    part = {"scale": "smoke", "seeds": [0]}
    part |= {"methods": ["zf-oful", "uniform"], "observe_probs": [0.3]} if study == "digits" else {}
    there, here = paper.run(study, **part), paper.run(study, **part, jobs=1)
    assert there.diagnostics == here.diagnostics
    assert without_seconds(there) == without_seconds(here)


@needs_processes
def test_tuning_chooses_the_same_on_a_cluster(client):
    task = "zf-oful", {"ridge": [0.1, 1.0]}, WORLD, range(100, 102)
    there = tune(*task, reporting=range(2))
    assert there.rows == tune(*task, reporting=range(2), jobs=1).rows


@needs_processes
def test_a_cell_that_fails_on_a_cluster_has_its_reason(client):
    def fails(facts):
        raise ValueError("no such luck")

    found = simulate({"uniform": {}, "mine": fails}, WORLD, range(2))
    assert [key.method for key, _ in found.failures] == ["mine", "mine"]
    assert all(reason.endswith("ValueError: no such luck\n") for _, reason in found.failures)


@needs_processes
def test_a_cell_that_ends_its_workers_is_reported_and_not_waited_for(client, cluster, monkeypatch):
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    with pytest.raises(HalfseenError, match=r"a cell ended 1 workers, the last one tcp.* memory"):
        simulate({"deadly": lambda facts: os._exit(9)}, WORLD, range(2))


class Unknown:
    def __reduce__(self):
        return import_module, ("no_such_module",)


@needs_processes
def test_a_worker_that_lacks_what_is_sent_or_has_other_versions_is_refused(client, monkeypatch):
    with pytest.raises(HalfseenError, match=r"cannot run what it is sent: ModuleNotFoundError: .*"):
        list(clusters.run_on(client, [(Unknown(),)]))
    other = clusters._code() | {"numpy": "0.1"}
    monkeypatch.setattr(clusters, "_code", lambda: other)
    with pytest.raises(HalfseenError, match=r"it has numpy .*, not 0\.1: install the same"):
        simulate(["uniform"], WORLD, range(2))


def ends_the_first_worker(frame, flag):
    """Kill the worker in which the first partition is read, once."""
    with suppress(FileExistsError):
        flag.touch(exist_ok=False)
        os._exit(9)
    return frame


@needs_processes
def test_tables_are_fitted_and_filled_on_workers_even_if_one_is_killed(client, tmp_path):
    dd = pytest.importorskip("dask.dataframe")
    random = np.random.default_rng(0)
    table = random.normal(size=(400, 2)) @ random.normal(size=(2, 5))
    table[random.random(table.shape) < 0.4] = np.nan
    frame = pd.DataFrame(table, columns=list("abcde"))
    lazy = dd.from_pandas(frame, npartitions=4)
    known = LatentImputer(max_samples=300, random_state=0).fit(frame)
    for name in ("fit", "transform"):
        frail = lazy.map_partitions(ends_the_first_worker, tmp_path / name, meta=frame)
        if name == "fit":
            found = LatentImputer(max_samples=300, random_state=0).fit(frail)
            assert np.array_equal(found.components_, known.components_)
            assert np.allclose(MaskedPCA(2).fit(lazy).mean_, MaskedPCA(2).fit(frame).mean_)
        else:
            filled = known.transform(frail).compute()
            assert np.allclose(filled, known.transform(frame), rtol=0.0, atol=1e-9)
    assert (tmp_path / "fit").exists()
    assert (tmp_path / "transform").exists()


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nonsense", "", "tcp://127.0.0.1:port"])
def test_an_address_without_a_scheduler_ends_the_command_with_one_sentence(here, address):
    result = on_cluster(["reproduce", "synthetic", "--scale", "smoke"], address)
    assert result.exit_code == 2
    assert f"error: no Dask scheduler answers at '{address}': start one" in result.output


def test_a_cluster_has_its_own_number_of_workers(here):
    result = on_cluster(["reproduce", "synthetic", "--jobs", "2"], "tcp://127.0.0.1:1")
    assert result.exit_code == 2
    assert "--jobs must be left out: a cluster has its own workers, got 2" in result.output


def test_without_the_extra_its_name_is_reported(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(HalfseenError, match=r"extra cluster\): pip install distributed"),
        clusters.connected("tcp://127.0.0.1:1"),
    ):
        pass
