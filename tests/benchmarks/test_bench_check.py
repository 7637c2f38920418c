"""`make bench-check` notices what has become slower, and only that."""

import time

import pytest
from rich.console import Console

from benchmarks import check, rounds
from benchmarks.rotation import Size, rotation_of
from halfseen import TofuPov


@pytest.fixture
def round_ratio(monkeypatch):
    """Return how to measure a small case of what the check measures."""
    monkeypatch.setattr(rounds, "rotation_of", lambda size: rotation_of(size, 1e6))
    case = rounds.Case(Size(30, 3, 8), n_rounds=64, repeats=3, budget=3.0)
    return {"round": lambda: check._round_ratio(case)}


def test_an_injected_slowdown_fails(round_ratio, monkeypatch, tmp_path):
    path, console = tmp_path / "baselines.json", Console(quiet=True)
    check.check(console, keep=True, path=path, runs=round_ratio)
    choose = TofuPov.choose

    def slow_choose(policy, options):
        time.sleep(0.001)  # a hundred rounds long: no noise can hide it
        return choose(policy, options)

    monkeypatch.setattr(TofuPov, "choose", slow_choose)
    assert not check.check(console, path=path, runs=round_ratio)


@pytest.mark.parametrize(
    ("measured", "holds"), [(2.0, True), (2.5, True), (2.51, False), (1.0, True)]
)
def test_a_loss_of_more_than_a_quarter_fails(measured, holds):
    (verdict,) = check.judge({"round": measured}, {"round": 2.0})
    assert verdict.holds is holds


def test_every_stored_baseline_is_measured_and_every_measurement_has_a_baseline():
    assert set(check.stored()) == set(check.subset())


def test_a_baseline_that_nobody_measures_is_an_error():
    with pytest.raises(RuntimeError, match="opening"):
        check.judge({}, {"opening": 1.0})


def test_stored_ratios_come_back(tmp_path):
    path = tmp_path / "baselines.json"
    check.store({"round": 1.23456}, path)
    assert check.stored(path) == {"round": 1.235}
