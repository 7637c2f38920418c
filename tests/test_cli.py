"""The commands, as a person calls them."""

import csv
import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import halfseen
import halfseen.reports.page
from halfseen.cli import app
from halfseen.policies.uniform import Uniform
from halfseen.studies import builtin, published
from halfseen.studies.builtin import ORDER, builtin_study
from halfseen.studies.reading import study_from

pytestmark = pytest.mark.usefixtures("unrendered")

COMMANDS = ("demo", "studies", "reproduce", "run", "verify")
STUDY = """
name = "mine"
title = "Mine [draft]"
seeds = "0:2"
observe_prob = [0.8, 0.4]
methods = ["tofu", "zf-oful", "uniform"]

[world]
kind = "low-rank"
dim = 6
rank = 1
horizon = 40
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(STUDY)
    return tmp_path


def call(*arguments):
    return CliRunner().invoke(app, [*arguments], env={"COLUMNS": "150"})


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_version_is_the_package_s():
    result = call("--version")
    assert result.exit_code == 0
    assert result.output == f"halfseen {halfseen.__version__}\n"


def test_without_arguments_the_commands_are_listed():
    output = call().output
    assert all(command in output for command in COMMANDS)


def run_python(*arguments):
    return subprocess.run(
        [sys.executable, "-c", *arguments], capture_output=True, text=True, check=True
    ).stdout


def test_help_loads_nothing_heavy():
    program = (
        "import sys\nfrom halfseen.cli import app\n"
        f"for command in ([], *([each] for each in {COMMANDS})):\n"
        "    app([*command, '--help'], standalone_mode=False)\n"
        "print(*{name.split('.')[0] for name in sys.modules})"
    )
    *told, loaded = run_python(program).splitlines()
    assert "".join(told).count("Usage:") == 1 + len(COMMANDS)
    heavy = {"numpy", "numba", "scipy", "pandas", "matplotlib", "sklearn", "joblib"}
    assert not heavy & set(loaded.split())


def test_the_package_can_be_called_as_a_module():
    told = run_python(
        "import runpy, sys; sys.argv[1:] = ['--version']; "
        "runpy.run_module('halfseen', run_name='__main__')"
    )
    assert told == f"halfseen {halfseen.__version__}\n"


def test_studies_lists_every_study_with_its_cells():
    result = call("studies")
    assert result.exit_code == 0
    for name in ORDER:
        assert name in result.output
        assert builtin_study(name).title in result.output
    assert " 1600 " in result.output
    assert " 700 " in result.output


def test_run_writes_tables_a_manifest_and_a_report(here):
    result = call("run", "mine.toml", "--jobs", "1")
    assert result.exit_code == 0, result.output
    assert "mine: Mine [draft] (12 cells)" in result.output
    folder = here / "results" / "mine"
    assert f"report: {folder.relative_to(here) / 'report.md'}" in result.output
    names = {file.name for file in folder.iterdir()}
    assert names >= {
        "cells.jsonl",
        "per_seed.csv",
        "summary.csv",
        "trajectories.csv.gz",
        "diagnostics.csv",
        "manifest.json",
        "report.md",
    }
    assert len(read(folder / "per_seed.csv")) == 12
    means = {
        (row["p"], row["method"]): float(row["mean_regret"]) for row in read(folder / "summary.csv")
    }
    assert f"{means['0.8', 'tofu']:.1f}" in result.output
    manifest = json.loads((folder / "manifest.json").read_text())
    from halfseen.studies.reading import read_study

    assert study_from(manifest["study"]) == read_study(here / "mine.toml")
    assert manifest["scale"] == "paper"


def test_a_part_of_a_study_is_asked_for_with_options(here):
    part = ["--seeds", "100:102", "--p", ".4", "--methods", "tofu,uniform", "--out", "part"]
    result = call("run", "mine.toml", "--jobs", "1", *part)
    assert result.exit_code == 0, result.output
    found = [(row["p"], row["method"], row["seed"]) for row in read(here / "part" / "per_seed.csv")]
    assert found == [("0.4", key, seed) for key in ("tofu", "uniform") for seed in ("100", "101")]
    assert [file.name for file in here.iterdir() if file.is_dir()] == ["part"]


def test_without_timing_the_seconds_are_empty(here):
    arguments = ["run", "mine.toml", "--jobs", "1", "--methods", "uniform", "--out", "timed"]
    call(*arguments)
    assert all(float(row["seconds"]) >= 0.0 for row in read(here / "timed" / "per_seed.csv"))
    call(*arguments, "--no-timing")
    assert {row["seconds"] for row in read(here / "timed" / "per_seed.csv")} == {""}


def test_a_failed_cell_is_reported_with_exit_code_1_and_run_again_the_next_time(here, monkeypatch):
    choose = Uniform.decide

    def broken(self, slate):
        if self.seed == 1:
            raise RuntimeError("broken [on] purpose")
        return choose(self, slate)

    arguments = ["run", "mine.toml", "--jobs", "1", "--methods", "uniform,zf-oful"]
    monkeypatch.setattr(Uniform, "decide", broken)
    result = call(*arguments)
    assert result.exit_code == 1
    assert (
        "2 of 8 cells failed, for example ('mine', 'default', 0.8, 'uniform', 1): " in result.output
    )
    assert "RuntimeError: broken [on] purpose" in result.output
    folder = here / "results" / "mine"
    assert "Traceback" in (folder / "failures.txt").read_text()
    status = [(row["method"], row["seed"], row["status"]) for row in read(folder / "per_seed.csv")]
    assert status.count(("uniform", "1", "failed")) == 2
    assert [each[2] for each in status].count("ok") == 6
    monkeypatch.setattr(Uniform, "decide", choose)
    result = call(*arguments)
    assert result.exit_code == 0
    assert "8 cells, 6 of them finished before" in result.output
    assert not (folder / "failures.txt").exists()


def test_reproduce_runs_a_study_of_the_package_small_and_keeps_it_apart(here):
    arguments = ["--scale", "smoke", "--jobs", "1", "--methods", "tofu,zf-oful"]
    result = call("reproduce", "synthetic", *arguments)
    assert result.exit_code == 0, result.output
    folder = here / "results" / "smoke" / "synthetic"
    assert len(read(folder / "per_seed.csv")) == 2 * 2 * 2
    assert (folder / "report.md").exists()
    assert [file.name for file in (here / "results").iterdir()] == ["smoke"]


def test_reproduce_says_beforehand_how_long_it_takes(here, monkeypatch):
    command = sys.modules["halfseen.cli.reproduce"]  # the attribute is the function
    monkeypatch.setattr(command, "_run", lambda *given: True)
    monkeypatch.setattr(command, "refresh_page", lambda *given: None)
    minutes = dict.fromkeys(builtin.ORDER, 10.0) | {"tables": 80.0}
    monkeypatch.setattr("halfseen.studies.builtin.CORE_MINUTES", minutes)
    total = 10 * len(builtin.ORDER) + 70
    shown = " ".join(call("reproduce", "all", "--jobs", "1").stdout.split())
    assert f"about {total // 60} h {total % 60} min on one process" in shown
    assert "(tables 1 h 20 min, " in shown
    shown = " ".join(call("reproduce", "tables", "--jobs", "2", "--seeds", "0:15").stdout.split())
    assert "about 20 min on 2 processes" in shown
    assert "about" not in call("reproduce", "tables", "--scale", "smoke").stdout


def test_every_study_of_the_package_has_a_time():
    assert list(builtin.CORE_MINUTES) == list(builtin.ORDER)


def test_reproduce_all_runs_every_study_and_tells_if_one_has_a_failed_cell(here, monkeypatch):
    small = builtin_study("synthetic", "smoke").narrowed(
        seeds=[0], observe_probs=[0.8], methods=["uniform"]
    )
    monkeypatch.setattr(builtin, "ORDER", ("synthetic", "masks"))
    monkeypatch.setattr(builtin, "builtin_study", lambda name, scale="paper": small)
    assert call("reproduce", "all", "--jobs", "1", "--out", "both").exit_code == 0
    assert (here / "both" / "synthetic" / "report.md").exists()
    assert (here / "both" / "masks" / "report.md").exists()
    monkeypatch.setattr(Uniform, "decide", None)
    assert call("reproduce", "all", "--jobs", "1", "--out", "both", "--again").exit_code == 1
    for name in ("synthetic", "masks"):
        assert (here / "both" / name / "failures.txt").exists()


@pytest.mark.parametrize("command", ["reproduce", "verify"])
def test_a_study_that_does_not_exist_is_reported_with_those_that_do(here, command):
    result = call(command, "main")
    assert result.exit_code == 2
    assert "error: there is no study 'main', there are ['synthetic'" in result.output
    assert not (here / "results").exists()


@pytest.mark.parametrize("command", ["reproduce", "verify"])
def test_a_misspelt_study_is_answered_with_the_nearest_name(here, command):
    result = call(command, "syntetic")
    assert result.exit_code == 2
    assert result.output == "error: there is no study 'syntetic': did you mean 'synthetic'?\n"


def test_demo_runs_the_main_study_and_prints_the_means(here, monkeypatch):
    small = builtin_study("synthetic", "smoke").narrowed(methods=["tofu", "zf-oful"])
    asked = []
    monkeypatch.setattr(builtin, "builtin_study", lambda name: asked.append(name) or small)
    result = call("demo", "--jobs", "1")
    assert result.exit_code == 0, result.output
    assert asked == ["synthetic"]
    summary = read(here / "results" / "synthetic" / "summary.csv")
    assert len(summary) == 4
    for row in summary:
        mean, error = float(row["mean_regret"]), float(row["se_regret"])
        assert f"{mean:.1f}±{error:.1f}" in result.output.replace(" ", "")
    assert "Final regret, mean ± standard error; lower is better." in result.output


SMALL_PART = ["synthetic", "--seeds", "0:2", "--methods", "tofu,zf-oful", "--jobs", "1"]


def test_verify_agrees_on_a_small_part_and_leaves_other_tables_alone(here):
    result = call("verify", *SMALL_PART)
    assert result.exit_code == 0, result.output
    assert "20 deterministic cells compared, largest deviation" in result.output
    assert "synthetic agrees with the published figures" in result.output
    assert [file.name for file in (here / "results" / "synthetic").iterdir()] == ["cells.jsonl"]


def test_verify_reports_a_published_figure_that_differs_from_ours(here, monkeypatch):
    figures = published.published("synthetic")
    key = published.Key("default", 0.4, "tofu", 1)
    figures[key] = figures[key]._replace(final_regret=figures[key].final_regret + 2e-6)
    monkeypatch.setattr(published, "published", lambda name: figures)
    result = call("verify", *SMALL_PART, "--p", ".4")
    assert result.exit_code == 1
    assert "differs by 2e-06: ('default', 0.4, 'tofu', 1)" in result.output
    assert "synthetic DIFFERS" in result.output


def test_verify_tells_a_published_cell_without_a_result(here, monkeypatch):
    monkeypatch.setattr("halfseen.policies.ambient.AmbientOful.decide", None)
    result = call(
        "verify", "synthetic", "--seeds", "0", "--methods", "zf-oful", "--p", ".2", "-j", "1"
    )
    assert result.exit_code == 1
    assert "no result: ('default', 0.2, 'zf-oful', 0)" in result.output


def test_verify_does_not_judge_means_of_a_few_seeds(here):
    result = call(
        "verify", "synthetic", "--seeds", "0:3", "--methods", "uniform", "--p", ".2", "-j", "1"
    )
    assert result.exit_code == 1
    assert "too few seeds" in result.output
    assert "cannot be judged from so few seeds: at least 10 are needed" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["masks"], "nothing is published for 'masks': neither"),
        (["synthetic", "--methods", "impute-mean"], "methods must be among the published"),
    ],
)
def test_verify_needs_something_published(here, arguments, message):
    result = call("verify", *arguments)
    assert result.exit_code == 2
    assert message in result.output


def test_a_broken_store_is_reported_in_one_line(here):
    (here / "bad").mkdir()
    (here / "bad" / "cells.jsonl").write_text("[not a cell]\n")
    result = call("run", "mine.toml", "--out", "bad")
    assert result.exit_code == 2
    assert "line 1 is not a finished cell, got b'[not a cell]': remove the line" in result.output


def test_a_folder_that_cannot_be_made_is_reported_in_one_line(here):
    result = call("run", "mine.toml", "--methods", "uniform", "--jobs", "1", "--out", "mine.toml")
    assert result.exit_code == 2
    assert "error: [Errno 17] File exists: 'mine.toml'" in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("options", "how"),
    [([], "the same command"), (["--again"], "the same command without --again")],
)
def test_ctrl_c_tells_how_to_go_on(here, monkeypatch, options, how):
    def interrupted(*arguments, **keywords):
        raise KeyboardInterrupt

    monkeypatch.setattr("halfseen.simulation.simulate.run", interrupted)
    result = call("run", "mine.toml", "--out", "[new]", *options)
    assert result.exit_code == 130
    assert (
        f"0 of 12 cells are finished and kept in [new]; {how} goes on from there" in result.output
    )


def test_rebuild_needs_features_that_were_made_from_raw_data(here):
    result = CliRunner().invoke(app, ["reproduce", "synthetic", "--scale", "smoke", "--rebuild"])
    assert result.exit_code == 2
    assert "--rebuild: synthetic has no features" in " ".join(result.output.split())


def test_rebuild_compares_with_the_features_that_ship(monkeypatch):
    seen, module = [], sys.modules["halfseen.cli.build_data"]  # the package shows the command
    monkeypatch.setattr(module, "build_data", lambda source, compare: seen.append(source))
    module.rebuild_for(builtin_study("mnist", "smoke"))
    assert seen == ["mnist"]
