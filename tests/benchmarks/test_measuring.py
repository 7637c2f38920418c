"""What the benchmarks report is measured as they say."""

import numpy as np

from benchmarks import agent, latent
from benchmarks.measuring import Quartiles, in_turns


def test_the_order_is_reversed_in_every_other_repeat():
    order = []
    runs = {name: lambda name=name: order.append(name) or 1.0 for name in "ab"}
    assert in_turns(runs, 3) == {"a": [1.0] * 3, "b": [1.0] * 3}
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert str(Quartiles(1.234, 12.34, 123.4)) == "12.3 (1.23–123)"


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
