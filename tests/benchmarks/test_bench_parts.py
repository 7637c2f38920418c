"""The small parts that measurements and the report are made of."""

import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import halfseen
from benchmarks import agent, budget, memory, service
from benchmarks.growth import Growth
from benchmarks.harness import Compared, Plan, Quartiles, in_turns
from benchmarks.large import Large
from benchmarks.latent import Latent, Played, Wide
from benchmarks.line_profile import Profile, profile
from benchmarks.peak import ROOT
from benchmarks.rotation import Size, rotation_of
from benchmarks.rounds import play_round, tofu_in_epoch
from halfseen.cli import app


def test_quartiles_are_written_with_three_figures():
    assert str(Quartiles(1.234, 12.34, 123.4)) == "12.3 (1.23–123)"


def test_everybody_has_a_turn_in_every_repeat_and_the_order_turns_round():
    order = []
    runs = {name: lambda name=name: order.append(name) or 1.0 for name in "ab"}
    assert in_turns(runs, 3) == {"a": [1.0] * 3, "b": [1.0] * 3}
    assert order == ["a", "b", "b", "a", "a", "b"]


def test_a_ratio_is_taken_repeat_by_repeat():
    compared = Compared.of([2.0, 40.0, 6.0], [1.0, 10.0, 2.0])
    assert compared.ratio.median == 3.0


def test_a_linear_run_has_slope_one():
    growth = Growth([10**3, 10**4, 10**5], [0.01, 0.1, 1.0], [9.0, 9.0, 10.0])
    assert growth.slope == pytest.approx(1.0)
    assert [row.met for row in budget.growth_rows(growth)] == [True, True]
    worse = growth._replace(seconds=[0.01, 0.3, 9.0], microseconds=[9.0, 20.0, 90.0])
    assert [row.met for row in budget.growth_rows(worse)] == [False, False]


def test_memory_rows_tell_flat_from_growing():
    flat = dict.fromkeys(memory.MEMORY_CASES, (1000, 5))
    flat[memory.ALL_REPLAYED] = 1000 + 4000 * 256, 5
    assert [row.met for row in budget.memory_rows(flat)] == [True, True]
    growing = {**flat, "10 T": (9000, 5)}
    assert not budget.memory_rows(growing)[0].met


def test_the_peak_of_a_child_is_not_that_of_its_parent():
    held = np.ones(50_000_000)  # 400 MB
    peak = "from benchmarks.peak import peak_bytes; print(peak_bytes())"
    command = [sys.executable, "-c", peak]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert 2**20 < int(done.stdout) < held.nbytes / 2


def test_latent_rows_show_which_budgets_are_met():
    quick, slow = Quartiles(90.0, 200.0, 300.0), Quartiles(900.0, 1100.0, 1200.0)
    run = Played(8000, 30.0, 1200.0)
    found = Latent(quick, quick, run, run, Wide(quick, 0), Wide(slow, 20), Profile(1.0, []))
    assert [row.met for row in budget.latent_rows(found)] == [True, True, True, None]
    late = run._replace(seconds=41.0)
    worse = found._replace(small=slow, newsgroups=late, full_rank=Wide(slow, 0))
    assert [row.met for row in budget.latent_rows(worse)] == [False, False, False, None]


def test_the_time_of_a_round_is_that_of_its_run():
    assert Played(400, 0.1, 5.0).microseconds == pytest.approx(250.0)


def test_a_large_run_over_its_memory_is_not_met():
    fine = Large(50_000, "LatentUcb", 30.0, 2**30, 1e-5, 20.0, 60.0)
    rows = budget.large_rows([fine, fine._replace(peak=3 * 2**30)])
    assert [row.met for row in rows] == [True, False]


@pytest.mark.parametrize("loop", ["self._kernel(", "_kernels.measure", "_kernels.best"])
def test_a_profile_charges_lines_of_the_package_and_knows_compiled_ones(loop):
    size = Size(300, 5, 4)
    slates = rotation_of(size, 1e6).endless()
    policy = tofu_in_epoch(size, slates)
    found = profile(lambda: [play_round(policy, slates) for _ in range(50)])
    compiled = {line.source for line in found.lines if line.compiled}
    assert any(loop in source for source in compiled)
    assert 0.0 < found.compiled_share < 1.0
    assert found.lines == sorted(found.lines, key=lambda line: -line.seconds)


def test_a_profile_does_not_count_what_happens_outside_of_the_package():
    assert profile(lambda: time.sleep(0.001)).lines == []


def test_bench_explains_itself_where_the_benchmarks_are_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(halfseen, "__file__", str(tmp_path / "a" / "b" / "halfseen.py"))
    result = CliRunner().invoke(app, ["bench"], env={"COLUMNS": "300"})
    assert result.exit_code == 2
    assert "clone the repository" in result.output
    assert len(result.output.strip().splitlines()) == 1


def test_bench_hands_its_options_over_and_returns_the_exit_code(monkeypatch):
    called = {}

    def run(command, **settings):
        called.update(settings, command=command)
        return type("Done", (), {"returncode": 1})

    monkeypatch.setattr("subprocess.run", run)
    result = CliRunner().invoke(app, ["bench", "--quick", "--no-peers", "--check"])
    assert result.exit_code == 1
    assert called["command"][1:] == ["-m", "benchmarks", "--quick", "--no-peers", "--check"]
    assert called["env"]["OMP_NUM_THREADS"] == "1"


def test_what_an_agent_adds_is_measured_for_every_form_of_a_table(monkeypatch):
    monkeypatch.setattr(agent, "_ROUNDS", 3)
    rows = budget.agent_rows(agent.measure_agent(Plan(quick=True)))
    assert len(rows) == agent.n_forms() == 8
    assert {row.required for row in rows} == {"≤ 150 µs", "≤ 5000 µs"}


def test_the_times_in_the_readme_are_those_of_the_committed_report():
    root = Path(__file__).parents[2]
    report = (root / "benchmarks" / "report.md").read_text(encoding="utf-8")
    readme = " ".join((root / "README.md").read_text(encoding="utf-8").split())
    inside = re.search(r"\(30, 3, 8\), in an epoch \|[^:]*: ([\d.]+) ", report)[1]
    whole = re.search(r"\*\*halfseen TofuPov\*\* \| 30 % \| ([\d.]+) ", report)[1]
    ratio = re.search(r"against the quickest peer \| ([\d.]+) times as fast as ([\w ]+),", report)
    told = f"takes {float(inside):.0f} µs inside an epoch and {float(whole):.0f} µs on average"
    assert told in readme
    assert f"That is {ratio[1]} times as fast as {ratio[2]}" in readme


def test_service_rows_tell_a_stall_and_growing_memory():
    def served(refit, slowest, megabytes):
        seconds = np.full(5000, 2e-5)
        seconds[3000] = slowest
        case = service.Case(service.SMALL, 5000, refit)
        return service.Service(case, seconds, {500: 4.0, 5000: megabytes}, 1.0, 0.1, 0.1)

    good = [served("inline", 0.04, 4.5), served("background", 0.02, 4.5)]
    assert [row.met for row in service.budget_rows(good)] == [True] * 5
    bad = [served("inline", 0.06, 9.0), served("background", 0.03, 9.0)]
    assert [row.met for row in service.budget_rows(bad)] == [False, False, True, False, True]
    assert len(service.lines(good)) == 5
