"""What the benchmarks report is measured as they say."""

import json
import time

import numpy as np
import pytest
from rich.console import Console

from benchmarks import agent, check, floors, latent
from benchmarks.measuring import Compared, Quartiles, in_turns
from benchmarks.tofu import Floor, Size, Slates, compare_rounds, play, tofu_in_epoch
from halfseen import TofuPov


@pytest.mark.parametrize("size", [Size(30, 3, 8), Size(200, 20, 4), Size(50, 5, 3)], ids=str)
def test_the_floor_of_a_round_solves_all_systems_of_the_slate(size):
    slates = Slates.draw(size, 1e5)
    floor, table = Floor(slates), slates.tables[1]
    floor.solve(table)
    for arm, latent_arm in zip(table, floor.latent.T, strict=True):
        rows = slates.basis[~np.isnan(arm)]
        gram = rows.T @ rows + floors.IMPUTE_RIDGE * np.eye(size.rank)
        exact = np.linalg.solve(gram, rows.T @ arm[~np.isnan(arm)])
        np.testing.assert_allclose(latent_arm, exact, rtol=1e-6, atol=1e-8)


def test_the_floor_of_an_update_adds_an_outer_product():
    matrix, point = np.eye(3), np.array([1.0, 2.0, 0.0])
    floors.add_outer(matrix, point, 2.0)
    np.testing.assert_allclose(matrix, np.eye(3) + 2.0 * np.outer(point, point))


def test_measured_rounds_stay_inside_one_epoch():
    slates = Slates.draw(Size(30, 3, 8), 1e5)
    rounds = slates.endless()
    policy = tofu_in_epoch(slates.size, rounds)
    play(policy, rounds, 2000)
    assert len(policy.epoch_log) == 1


def test_the_order_is_reversed_in_every_other_repeat():
    order = []
    runs = {name: lambda name=name: order.append(name) or 1.0 for name in "ab"}
    assert in_turns(runs, 3) == {"a": [1.0] * 3, "b": [1.0] * 3}
    assert order == ["a", "b", "b", "a", "a", "b"]


def test_a_ratio_is_taken_repeat_by_repeat():
    compared = Compared.of([2.0, 40.0, 6.0], [1.0, 10.0, 2.0])
    assert compared.ratio.median == 3.0
    assert str(Quartiles(1.234, 12.34, 123.4)) == "12.3 (1.23–123)"


def test_an_injected_slowdown_fails_the_check(monkeypatch, tmp_path):
    path, console = tmp_path / "baselines.json", Console(quiet=True)
    runs = {"round": lambda: compare_rounds(Size(30, 3, 8), 64, 3, 1e6).ratio.median}
    check.check(console, store=True, path=path, runs=runs)
    choose = TofuPov.choose

    def slow_choose(policy, options):
        time.sleep(0.001)  # a hundred rounds long: no noise can hide it
        return choose(policy, options)

    monkeypatch.setattr(TofuPov, "choose", slow_choose)
    assert not check.check(console, path=path, runs=runs)


@pytest.mark.parametrize(("measured", "holds"), [(2.5, True), (2.51, False), (1.0, True)])
def test_a_loss_of_more_than_a_quarter_fails(measured, holds, tmp_path):
    path = tmp_path / "baselines.json"
    path.write_text('{"round": 2.0}')
    assert check.check(Console(quiet=True), path=path, runs={"round": lambda: measured}) is holds


def test_a_baseline_that_nobody_measures_is_an_error():
    with pytest.raises(RuntimeError, match="opening"):
        check.losses({}, {"opening": 1.0})
    assert set(json.loads(check.BASELINES.read_text())) == set(check.ratios())


def test_what_an_agent_adds_is_measured_for_every_form_of_a_table(monkeypatch):
    monkeypatch.setattr(agent, "_ROUNDS", 3)
    monkeypatch.setattr(agent, "_storage_rows", lambda quick: [])
    monkeypatch.setattr(agent, "_linear_rows", lambda n: [])
    rows = agent.rows(quick=True)
    assert [row.required for row in rows] == ["≤ 150 µs"] * 4 + ["≤ 1200 µs"] * 4 + ["≤ 1000 µs"]


def test_the_cost_of_ten_times_the_input_is_measured_for_every_call():
    rows = list(agent._linear_rows(20))
    assert [row.required for row in rows] == ["≤ 15 ×"] * 6


def test_service_rows_show_a_stall_and_growing_memory():
    def served(slowest, megabytes):
        seconds = np.full(5000, 2e-5)
        seconds[3000] = slowest
        return latent.Service(5000, 0.0, seconds, (4.0, megabytes), 1.0, 0.1, 0.1)

    good = latent.service_rows([served(0.04, 4.5)])
    assert [row.met for row in good] == [True] * 4
    bad = latent.service_rows([served(0.06, 9.0)])
    assert [row.met for row in bad] == [False, True, False, True]


def test_a_served_run_has_a_time_for_every_round_and_both_sizes():
    found = latent.serve(120, 0.1)
    assert found.seconds.shape == (120,)
    assert found.seconds.min() > 0.0
    assert 0.0 < found.megabytes[0] < found.megabytes[1]
    assert str(found).count("|") == 10
