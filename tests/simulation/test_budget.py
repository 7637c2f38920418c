"""A run that takes too long is stopped, told, and not counted as a failure."""

import csv
import itertools
import json
import math
import pickle
import signal
import threading
import time
from contextlib import suppress
from typing import ClassVar

import pytest
from typer.testing import CliRunner

from halfseen import InvalidSettingError, LowRankWorld, ProductContextWorld, Uniform, play, simulate
from halfseen.cli import app
from halfseen.errors import BudgetExceededError, StudyError
from halfseen.simulation.cells import Cell, CellKey, run_cell
from halfseen.simulation.methods import METHODS, Method, method_from
from halfseen.simulation.store import Store
from halfseen.studies.reading import study_from

WORLD = LowRankWorld(dim=5, rank=1, n_arms=3, horizon=40)
PLAIN = {"kind": "low-rank", "dim": 5, "rank": 1, "n_arms": 3, "horizon": 40}
SLOW = method_from("uniform", {"budget_seconds": 5})


@pytest.fixture
def clock(monkeypatch):
    """Make every look at the clock one second later than the last."""
    seconds = itertools.count()
    monkeypatch.setattr(time, "thread_time", lambda: float(next(seconds)))


def cell(method=SLOW, seed=0, world=PLAIN):
    key = CellKey("small", "default", 0.3, "slow", seed)
    return Cell(key=key, world=world, method=method, horizon=40)


def rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.usefixtures("clock")
def test_no_round_is_begun_after_the_budget():
    policy = Uniform(dim=5)
    with pytest.raises(BudgetExceededError, match=r"^6\.0 s for 5 of 40 rounds, about 48 s for a"):
        play(policy, WORLD.realize(0), budget_seconds=5)
    assert policy.round == 5


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("budget", [40.0, 40.5, math.inf])
def test_a_run_that_is_over_in_time_is_kept_whole(budget):
    assert len(play(Uniform(dim=5), WORLD.realize(0), budget_seconds=budget).regret) == 40


def test_without_a_budget_no_round_looks_at_the_clock(monkeypatch):
    looks = itertools.count()
    monkeypatch.setattr(time, "thread_time", lambda: float(next(looks)))
    play(Uniform(dim=5), WORLD.realize(0))
    assert next(looks) < 2


@pytest.mark.usefixtures("clock")
def test_one_round_is_always_played_so_that_there_is_something_to_tell():
    with pytest.raises(BudgetExceededError) as caught:
        play(Uniform(dim=5), WORLD.realize(0), budget_seconds=1e-9)
    assert caught.value.n_played == 1


class Stuck(Uniform):
    """Does not come out of its fourth round."""

    def _choose(self, slate):
        while self.round == 3 and time.thread_time() < self.until:
            with suppress(Exception):
                sum(range(100))
        return super()._choose(slate)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs signals of the system")
def test_a_round_that_does_not_end_is_stopped_too():
    policy = Stuck(dim=5)
    policy.until = time.thread_time() + 20.0
    before = signal.getsignal(signal.SIGVTALRM)
    with pytest.raises(BudgetExceededError, match="for 3 of 40 rounds and a part of the next"):
        play(policy, WORLD.realize(0), budget_seconds=0.05)
    assert time.thread_time() < policy.until - 15.0
    assert signal.getsignal(signal.SIGVTALRM) is before
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


def test_in_another_thread_the_round_is_played_to_its_end():
    policy, caught = Stuck(dim=5), []

    def run():
        policy.until = time.thread_time() + 0.1
        try:
            play(policy, WORLD.realize(0), budget_seconds=0.05)
        except BudgetExceededError as error:
            caught.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert [(error.n_played, error.within) for error in caught] == [(4, False)]


def test_the_error_travels_between_processes():
    error = pickle.loads(pickle.dumps(BudgetExceededError(seconds=5.0, n_played=97, horizon=5000)))
    assert (error.seconds, error.n_played, error.horizon) == (5.0, 97, 5000)
    assert str(error) == "5.0 s for 97 of 5000 rounds, about 258 s for a run"


@pytest.mark.usefixtures("clock")
def test_a_cell_over_its_budget_is_skipped_with_what_was_measured():
    result = run_cell(cell())
    assert (result.status, result.seconds, result.error) == ("skipped", 6.0, "")
    assert result.note == "6.0 s for 5 of 40 rounds, about 48 s for a run"
    assert result.final_regret is None
    assert result.finished


@pytest.mark.usefixtures("clock")
def test_skipped_cells_have_rows_are_no_failures_and_are_not_run_again(tmp_path):
    policies = {"uniform": {}, "slow": SLOW}
    for run_now in (4, 0):
        tables = simulate(policies, WORLD, range(2), jobs=1, out=tmp_path)
        assert not tables.failures
        manifest = json.loads((tmp_path / "manifest.json").read_text())
        assert (manifest["cells_run_now"], manifest["cells_failed"]) == (run_now, 0)
        assert manifest["cells_skipped"] == 2
    told = [(row["method"], row["status"]) for row in rows(tmp_path / "per_seed.csv")]
    assert told == [("uniform", "ok")] * 2 + [("slow", "skipped")] * 2
    assert [row["seconds"] for row in rows(tmp_path / "per_seed.csv")][2:] == ["6.0", "6.0"]
    assert [row["n"] for row in tables.summary] == [2, 0]
    assert [row["note"][:5] for row in rows(tmp_path / "skipped.csv")] == ["6.0 s"] * 2
    assert not (tmp_path / "failures.txt").exists()


@pytest.mark.usefixtures("clock")
def test_nothing_is_left_of_skipped_cells_once_none_is_skipped(tmp_path):
    simulate({"slow": SLOW}, WORLD, [0], jobs=1, out=tmp_path)
    assert (tmp_path / "skipped.csv").exists()
    more = SLOW.changed({"budget_seconds": 1000})
    tables = simulate({"slow": more}, WORLD, [0], jobs=1, out=tmp_path)
    assert [row["status"] for row in tables.per_seed] == ["ok"]
    assert not (tmp_path / "skipped.csv").exists()


def test_without_timing_nothing_measured_is_written(tmp_path, monkeypatch):
    study = study_from(
        {"name": "s", "seeds": 0, "world": PLAIN, "methods": {"uniform": {"budget_seconds": 5}}}
    )
    (tmp_path / "s.json").write_text(json.dumps(study.to_dict()))
    written = []
    for step in (1.0, 1.5):  # another machine
        seconds = itertools.count(step=step)
        monkeypatch.setattr(time, "thread_time", lambda now=seconds: float(next(now)))
        out = tmp_path / f"out{step}"
        options = ["--no-timing", "--jobs", "1", "--out", str(out)]
        result = CliRunner().invoke(app, ["run", str(tmp_path / "s.json"), *options])
        assert result.exit_code == 0, result.output
        assert "- uniform, p = 0.3, seeds 0\n" in (out / "report.md").read_text(encoding="utf-8")
        written.append(
            [(out / name).read_bytes() for name in ("per_seed.csv", "skipped.csv", "summary.csv")]
        )
    assert b",skipped,\n" in written[0][0]
    assert written[0] == written[1]


def test_a_skipped_cell_comes_back_from_a_store(tmp_path, clock):
    result = run_cell(cell())
    Store(tmp_path).add(cell(), result)
    assert Store(tmp_path).get(cell()) == result
    assert Store(tmp_path).missing([cell(), cell(seed=1)]) == [cell(seed=1)]
    assert Store(tmp_path).get(cell(SLOW.changed({"budget_seconds": 9}))) is None


def test_a_budget_is_part_of_the_plain_form():
    assert SLOW.to_dict() == {"policy": "Uniform", "view": "masked", "budget_seconds": 5.0}
    assert method_from("another", SLOW.to_dict()) == SLOW
    assert SLOW.changed({"view": "full"}).budget_seconds == 5.0
    assert SLOW.changed({"budget_seconds": None}) == METHODS["uniform"]


@pytest.mark.parametrize("budget", [0, -1.0, math.inf, math.nan, "5", True])
def test_a_budget_is_a_positive_number(budget):
    with pytest.raises(InvalidSettingError, match=r"budget_seconds must be in \(0, inf\), got "):
        method_from("tofu", {"budget_seconds": budget})


def test_where_nobody_plays_there_is_no_budget():
    with pytest.raises(InvalidSettingError, match="budget_seconds must be left out where nobody"):
        Method(policy="measure", budget_seconds=1.0)


def test_what_is_tuned_has_no_budget():
    plain = {
        "name": "s",
        "seeds": 0,
        "world": PLAIN,
        "methods": {"zf-oful": {"budget_seconds": 5}},
        "tuning": {"seeds": [9], "methods": {"zf-oful": {"ridge": [0.1, 1.0]}}},
    }
    with pytest.raises(StudyError, match=r"^methods\.zf-oful\.budget_seconds cannot be set.*got 5"):
        study_from(plain)


class TestIrreducible:
    """What a world knows to be unavoidable is told with every cell."""

    WORLD = ProductContextWorld(source="newsgroups", dim=30, horizon=40)
    PLAIN: ClassVar = {"kind": "product-context", "source": "newsgroups", "dim": 30, "horizon": 40}

    def test_it_is_told_with_what_the_policy_tells(self):
        result = run_cell(cell(METHODS["zf-oful"], 1, self.PLAIN))
        assert result.status == "ok", result.error
        assert result.diagnostics["irreducible"] == self.WORLD.realize(1).irreducible_regret()

    def test_it_is_told_of_a_skipped_cell_too(self, clock):
        result = run_cell(cell(SLOW, 1, self.PLAIN))
        assert result.status == "skipped"
        assert list(result.diagnostics) == ["irreducible"]

    def test_other_worlds_have_none(self):
        assert "irreducible" not in run_cell(cell(METHODS["zf-oful"])).diagnostics
