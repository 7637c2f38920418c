"""The commands, as a person calls them."""

from typer.testing import CliRunner

import halfseen
from halfseen.cli import app
from halfseen.simulation.compare import compare, summarize
from halfseen.studies.synthetic import MAIN

run = CliRunner().invoke


def test_version_is_the_package_s():
    result = run(app, ["--version"])
    assert result.exit_code == 0
    assert halfseen.__version__ in result.output


def test_without_arguments_the_commands_are_listed():
    assert "demo" in run(app, []).output


def test_demo_prints_a_row_per_observation_probability_and_means_of_the_runs():
    result = run(app, ["demo", "--seeds", "2"], env={"COLUMNS": "100"})
    assert result.exit_code == 0
    setting = MAIN.settings["p=0.2"]
    summary = compare(setting.world, {"tofu": lambda: setting.build("tofu")}, range(2))["tofu"]
    assert f"{summary.mean:.1f} ± {summary.standard_error:.1f}" in result.output
    for share in ("80%", "60%", "40%", "30%", "20%"):
        assert share in result.output


def test_demo_refuses_a_single_seed_which_has_no_standard_error():
    assert run(app, ["demo", "--seeds", "1"]).exit_code != 0


def test_standard_error_is_sample_deviation_over_root_n():
    summary = summarize([1.0, 2.0, 4.0, 5.0])
    assert summary.mean == 3.0
    assert abs(summary.standard_error - (10 / 3 / 4) ** 0.5) < 1e-15


def test_methods_of_a_comparison_walk_the_same_realizations():
    setting = MAIN.settings["p=0.8"]
    twice = {name: lambda: setting.build("zf-oful") for name in ("a", "b")}
    summaries = compare(setting.world, twice, range(2))
    assert summaries["a"].final_regrets == summaries["b"].final_regrets
