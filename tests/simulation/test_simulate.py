"""Policies in a world: the same numbers whoever runs them, and one's mistake stops no other."""

import json
import os
import re
import threading

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from halfseen import (
    AmbientOful,
    Choice,
    InvalidSettingError,
    LowRankWorld,
    TableWorld,
    Uniform,
    params,
)
from halfseen.errors import HalfseenError
from halfseen.paper import ProductContextWorld
from halfseen.policies.abilities import Reports
from halfseen.policies.registry import _CLASSES, register_policy
from halfseen.simulation.cells import Cell, CellKey, Result
from halfseen.simulation.methods import METHODS
from halfseen.simulation.simulate import run, run_cells, simulate
from halfseen.simulation.store import Store
from halfseen.worlds.base import _KINDS, World, register_world
from made_results import without_seconds, written_tables

WORLD = LowRankWorld(dim=8, rank=2, n_arms=4, horizon=60)
POLICIES = ["tofu", "zf-oful", "zf-pslb", "zf-thompson", "uniform", "oracle-masked"]


def grid(seeds=range(3), policies=POLICIES, **world):
    made = WORLD.replace(**world)
    return [
        Cell(key=CellKey("small", "default", 0.3, method, seed), world=made, method=METHODS[method])
        for method in policies
        for seed in seeds
    ]


def written(folder, **options):
    run(grid(), Store(folder), **options)
    return written_tables(folder)


@pytest.fixture(scope="module")
def plain_run(tmp_path_factory):
    return written(tmp_path_factory.mktemp("plain"), jobs=1)


def test_two_jobs_write_the_same_bytes_as_one(tmp_path, plain_run):
    assert written(tmp_path, jobs=2) == plain_run


def test_another_joblib_backend_writes_the_same_bytes(tmp_path, plain_run):
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert written(tmp_path) == plain_run


def test_the_order_of_cells_decides_the_order_of_rows_and_nothing_else():
    forward, backward = (run(cells, jobs=1) for cells in (grid(), grid()[::-1]))
    assert without_seconds(backward)[::-1] == without_seconds(forward)


def test_a_bar_is_shown_where_it_is_wanted(capsys):
    run(grid([0]), jobs=1)
    assert capsys.readouterr().out == ""
    run(grid([0]), jobs=1, progress=True)
    assert f"{len(POLICIES)} cells to run" in capsys.readouterr().out


def told(cell):
    return Result(status="ok", seconds=0.0, error=str(cell.key))


def test_a_slow_cell_keeps_no_other_waiting():
    others = threading.Semaphore(0)

    def run(cell):
        if cell.key.seed == 0:
            assert all(others.acquire(timeout=20) for _ in range(23))
        else:
            others.release()
        return told(cell)

    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert len(list(run_cells(grid(range(24), ["uniform"]), run=run))) == 24


def blas_threads(cell):
    counts = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    told = {"pid": os.getpid(), "blas": counts}
    return Result(status="ok", seconds=0.0, diagnostics=told)


@pytest.mark.parametrize("backend", ["loky", "threading", "sequential"])
def test_every_worker_holds_blas_to_one_thread(backend):
    with threadpool_limits(2), joblib.parallel_config(backend=backend, n_jobs=2):
        found = [result.diagnostics for _, result in run_cells(grid(), run=blas_threads)]
    assert len(found) == len(grid())
    assert all(told["blas"] for told in found)
    assert {count for told in found for count in told["blas"]} == {1}
    assert ({told["pid"] for told in found} == {os.getpid()}) == (backend != "loky")


@pytest.mark.parametrize("backend", ["threading", "sequential"])
def test_the_caller_gets_its_blas_threads_back(backend):
    with threadpool_limits(2, "blas"), joblib.parallel_config(backend=backend, n_jobs=2):
        list(run_cells(grid(), run=blas_threads))
        assert set(blas_threads(None).diagnostics["blas"]) == {2}


def test_numpy_seeds_are_seeds(tmp_path):
    tables = simulate("uniform", WORLD, np.arange(2), jobs=1, out=tmp_path)
    assert [row["seed"] for row in tables.per_seed] == [0, 1]


def test_an_observation_probability_of_one_is_passed_whether_written_1_or_1_point_0():
    for prob in (1, 1.0):
        world = LowRankWorld(dim=4, rank=1, horizon=5, observe_prob=prob)
        (row,) = simulate(["uniform"], world, [0], jobs=1).per_seed
        assert repr(row["p"]) == "1.0"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], WORLD, [0]), "policies must name at least one, such as 'tofu', got none"),
        ((["uniform"], WORLD, []), "seeds must be different integers, at least one, got []"),
        (
            (["uniform"], WORLD, [1, 1]),
            "seeds must be different integers, at least one, got [1, 1]",
        ),
        ((["uniform"], WORLD, [-1]), "seed must be an integer in [0, inf), got -1"),
        ((["uniform"], WORLD, [0.5]), "seed must be an integer in [0, inf), got 0.5"),
        ((["nobody"], WORLD, [0]), "policies['nobody']: method must be one of"),
        (([Uniform(dim=8)], WORLD, [0]), "policies must be keys such as 'tofu'"),
        ((WORLD, ["tofu"], [0]), "policies must be keys such as 'tofu'"),
        ((["uniform"], "low-rank", [0]), "world must be a world, such as LowRankWorld()"),
        ((["uniform"], WORLD, 2), "seeds must be several, such as range(10), got 2"),
        (
            ({"mine": {"policy": "TofuPov", "rnak": 2}}, WORLD, [0]),
            "policies['mine']: rnak is not a setting of TofuPov",
        ),
        (
            ({"mine": {"policy": "Tofu"}}, WORLD, [0]),
            "policies['mine']: no policy is called 'Tofu'",
        ),
        (({"mine": 3}, WORLD, [0]), "policies['mine']: must be settings, a Method or a function"),
    ],
)
def test_an_impossible_simulation_is_refused_at_once(arguments, message):
    with pytest.raises(InvalidSettingError, match=re.escape(message)):
        simulate(*arguments, jobs=1)


def test_the_manifest_of_a_simulation_says_what_was_run(tmp_path):
    tables = simulate(["tofu", "uniform"], WORLD, [3, 5], jobs=1, out=tmp_path, points=7, name="me")
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["seeds"] == [3, 5]
    assert manifest["seconds"] >= 0.0
    assert manifest["versions"]["numpy"] == np.__version__
    (setting,) = manifest["study"]["settings"].values()
    assert setting["world"] == WORLD.to_dict()
    again = simulate(setting["methods"], WORLD, [3, 5], jobs=1, points=7, out=tmp_path, name="me")
    assert again.trajectories == tables.trajectories
    assert again.manifest["cells_run_now"] == 0


class Breaking(Reports, Uniform):
    """Fails on the realization of seed 1."""

    def decide(self, slate):
        if self.seed == 1 and self.round == 5:
            raise RuntimeError("broken on purpose")
        return super().decide(slate)


@pytest.fixture
def breaking():
    register_policy(Breaking)
    yield
    del _CLASSES["Breaking"]


@pytest.mark.usefixtures("breaking")
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failing_cell_is_recorded_and_the_others_finish(tmp_path, jobs):
    policies = {"breaks": {"policy": "Breaking"}, "uniform": {}}
    tables = simulate(policies, WORLD, range(3), jobs=jobs, out=tmp_path)
    status = [(row["method"], row["seed"], row["status"]) for row in tables.per_seed]
    assert status == [
        (method, seed, "failed" if (method, seed) == ("breaks", 1) else "ok")
        for method in policies
        for seed in range(3)
    ]
    ((key, error),) = tables.failures
    assert (key.method, key.seed) == ("breaks", 1)
    assert "Traceback" in error
    assert "RuntimeError: broken on purpose" in error
    assert error in (tmp_path / "failures.txt").read_text()
    assert [row["n"] for row in tables.summary] == [2, 3]


@pytest.mark.usefixtures("breaking")
@pytest.mark.parametrize("told", [{"count": np.int64(3)}, {"set": {1}}, None, {1j: 2}])
def test_diagnostics_that_are_not_plain_fail_their_cell_and_no_other(tmp_path, monkeypatch, told):
    monkeypatch.setattr(Breaking, "diagnostics", lambda self: told if self.seed == 0 else {})
    monkeypatch.setattr(Breaking, "decide", Uniform.decide)
    policies = {"breaks": {"policy": "Breaking"}}
    tables = simulate(policies, WORLD, range(2), jobs=1, out=tmp_path)
    assert [row["status"] for row in tables.per_seed] == (
        ["failed", "ok"] if told is not None else ["ok", "ok"]
    )


@pytest.mark.usefixtures("breaking")
def test_diagnostics_that_are_not_finite_are_left_out(tmp_path, monkeypatch):
    told = {"sizes": (1.0, float("inf"), float("nan"), 2.0)}
    monkeypatch.setattr(Breaking, "diagnostics", lambda self: told)
    policies = {"breaks": {"policy": "Breaking"}}
    for out in (None, tmp_path):
        tables = simulate(policies, WORLD, [0], jobs=1, out=out)
        assert [(row["position"], row["value"]) for row in tables.diagnostics] == [
            (0, 1.0),
            (3, 2.0),
        ]


def test_regret_that_is_not_finite_fails_its_cell(tmp_path):
    """An arm pays inf that nobody chooses: no reward is wrong, but no regret is right."""

    class Second(Uniform):
        def decide(self, slate):
            return Choice(1, np.zeros((3, slate.n_arms)))

    (tmp_path / "log.csv").write_text("round,mean,x\n1,1,1\n1,2,1\n")
    world = TableWorld(path=tmp_path / "log.csv")
    object.__setattr__(world.table(), "payoffs", np.array([np.inf, 2.0]))
    with pytest.raises(HalfseenError, match=r"no cell could run.*the regret is not finite"):
        simulate({"second": lambda facts: Second(dim=1)}, world, [0], jobs=1)


def test_cells_that_failed_are_named_in_the_log(caplog):
    policies = {"uniform": {}, "broken": lambda facts: Uniform(dim=facts.dim + 1)}
    tables = simulate(policies, WORLD, [0, 1], jobs=1)
    assert len(tables.failures) == 2
    assert "2 of 4 cells failed" in caplog.text


def die(cell):
    os._exit(9)


def test_a_worker_that_is_killed_is_reported_in_one_line():
    with pytest.raises(HalfseenError, match=r"a worker process was killed .* run again with fewer"):
        list(run_cells(grid(), jobs=2, run=die))


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_function_makes_a_policy_of_one_s_own(jobs):
    policies = {"mine": lambda facts: AmbientOful(dim=facts.dim, noise_scale=0.05), "zf-oful": {}}
    tables = simulate(policies, WORLD, range(2), jobs=jobs)
    regrets = [row["final_regret"] for row in tables.per_seed]
    assert regrets[:2] == regrets[2:]


def test_results_of_a_function_cannot_be_stored(tmp_path):
    with pytest.raises(InvalidSettingError, match=r"results of \['mine'\] cannot be stored"):
        simulate({"mine": lambda facts: Uniform(dim=8)}, WORLD, [0], out=tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_workers_know_policies_and_worlds_that_only_the_caller_registered(tmp_path):
    """As in a notebook, whose classes no worker could import."""

    class Contrary(AmbientOful):
        def decide(self, slate):
            return Choice(0, np.zeros((3, slate.n_arms)))

    class Tiny(World):
        horizon: int = params.horizon(default=5)

        def realize(self, seed):
            return LowRankWorld(dim=3, rank=1, horizon=self.horizon).realize(seed)

    register_policy(Contrary)
    register_world("tiny")(Tiny)
    try:
        policies = {"contrary": {"policy": "Contrary"}}
        tables = simulate(policies, Tiny(), range(4), jobs=2, out=tmp_path)
        alone = simulate(policies, Tiny(), range(4), jobs=1)
    finally:
        del _CLASSES["Contrary"], _KINDS["tiny"]
    assert not tables.failures
    assert tables.trajectories == alone.trajectories


def test_workers_know_policies_that_only_settings_name():
    class Inner(Uniform):
        pass

    register_policy(Inner)
    try:
        named = {"burn_in": 5, "burn_in_policy": {"policy": "Inner", "settings": {"dim": 8}}}
        tables = simulate({"tofu": named}, WORLD, range(2), jobs=2)
    finally:
        del _CLASSES["Inner"]
    assert not tables.failures


def test_a_world_without_a_name_is_played_but_not_stored(tmp_path):
    class Nameless(LowRankWorld):
        horizon: int = params.horizon(default=5)

    world = Nameless(dim=3, rank=1)
    assert not simulate(["zf-oful"], world, range(2), jobs=2).failures
    with pytest.raises(InvalidSettingError, match="put @register_world on its class"):
        simulate(["zf-oful"], world, range(2), out=tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_a_world_whose_files_ship_with_it_is_played():
    world = ProductContextWorld(source="newsgroups", dim=30, horizon=5)
    assert not simulate(["uniform"], world, [0], jobs=1).failures


def test_a_table_is_found_wherever_the_workers_live(tmp_path, monkeypatch):
    """Workers of an earlier run are used again; they stay in the folder they were born in."""
    simulate(["uniform"], WORLD, range(2), jobs=2)
    (tmp_path / "log.csv").write_text("round,mean,a\n0,0.5,1\n0,0.1,2\n")
    monkeypatch.chdir(tmp_path)
    assert not simulate(["uniform"], TableWorld(path="log.csv"), range(2), jobs=2).failures
