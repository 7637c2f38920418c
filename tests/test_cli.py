"""The commands, as a person calls them."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import halfseen
from halfseen.baselines.trivial import Uniform
from halfseen.cli import app
from halfseen.paper import published, studies
from halfseen.paper.studies import ORDER, study_named
from halfseen.simulation.cells import CellKey
from shared import read

pytestmark = pytest.mark.usefixtures("unrendered")

COMMANDS = ("studies", "reproduce", "compare", "evaluate", "verify")
SMOKE = ("reproduce", "synthetic", "--scale", "smoke", "--jobs", "1")


def call(*arguments):
    return CliRunner().invoke(app, [*arguments], env={"COLUMNS": "150"})


def test_version_is_the_package_s():
    result = call("--version")
    assert result.exit_code == 0
    assert result.output == f"halfseen {halfseen.__version__}\n"


def test_help_loads_nothing_heavy():
    program = (
        "import sys\nfrom halfseen.cli import app\n"
        f"for command in ([], *([each] for each in {COMMANDS})):\n"
        "    app([*command, '--help'], standalone_mode=False)\n"
        "print(*{name.split('.')[0] for name in sys.modules})"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    *told, loaded = done.stdout.splitlines()
    assert "".join(told).count("Usage:") == 1 + len(COMMANDS)
    heavy = {"numpy", "numba", "scipy", "pandas", "matplotlib", "sklearn", "joblib"}
    assert not heavy & set(loaded.split())


def test_studies_lists_every_study_with_its_cells():
    result = call("studies")
    assert result.exit_code == 0
    for name in ORDER:
        assert name in result.output
        assert study_named(name).title in result.output
    assert "(1500 cells)" in result.output


def test_reproduce_writes_tables_a_manifest_and_a_report_and_keeps_small_runs_apart(here):
    result = call(*SMOKE, "--methods", "tofu,zf-oful,uniform")
    assert result.exit_code == 0, result.output
    assert "synthetic: Main synthetic study: regret when entries are hidden (12 cells)" in (
        " ".join(result.output.split())
    )
    folder = here / "results" / "smoke" / "synthetic"
    assert f"report: {folder.relative_to(here) / 'report.md'}" in result.output
    assert {file.name for file in folder.iterdir()} >= {
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
    assert manifest["scale"] == "smoke"
    assert manifest["study"]["name"] == "synthetic"
    assert [file.name for file in (here / "results").iterdir()] == ["smoke"]


def test_a_part_of_a_study_is_asked_for_with_options(here):
    part = ["--seeds", "100:102", "--p", ".3", "--methods", "tofu,uniform", "--out", "part"]
    result = call(*SMOKE, *part)
    assert result.exit_code == 0, result.output
    found = [(row["p"], row["method"], row["seed"]) for row in read(here / "part" / "per_seed.csv")]
    assert found == [("0.3", key, seed) for key in ("tofu", "uniform") for seed in ("100", "101")]
    assert [file.name for file in here.iterdir() if file.is_dir()] == ["part"]


def test_a_failed_cell_is_reported_with_exit_code_1_and_run_again_the_next_time(here, monkeypatch):
    choose = Uniform.decide

    def broken(self, slate):
        if self.seed == 1:
            raise RuntimeError("broken [on] purpose")
        return choose(self, slate)

    arguments = [*SMOKE, "--methods", "uniform,zf-oful", "--out", "mine"]
    monkeypatch.setattr(Uniform, "decide", broken)
    result = call(*arguments)
    assert result.exit_code == 1
    example = "for example ('synthetic', 'default', 0.8, 'uniform', 1): "
    assert f"2 of 8 cells failed, {example}" in result.output
    assert "RuntimeError: broken [on] purpose" in result.output
    folder = here / "mine"
    assert "Traceback" in (folder / "failures.txt").read_text()
    status = [(row["method"], row["seed"], row["status"]) for row in read(folder / "per_seed.csv")]
    assert status.count(("uniform", "1", "failed")) == 2
    assert [each[2] for each in status].count("ok") == 6
    monkeypatch.setattr(Uniform, "decide", choose)
    result = call(*arguments)
    assert result.exit_code == 0
    assert "2 cells to run" in result.output
    assert not (folder / "failures.txt").exists()


def test_reproduce_all_runs_every_study_and_tells_if_one_has_a_failed_cell(here, monkeypatch):
    small = study_named("synthetic", "smoke").narrowed(
        seeds=[0], observe_probs=[0.8], methods=["uniform"]
    )
    monkeypatch.setattr(studies, "ORDER", ("synthetic", "masks"))
    monkeypatch.setattr(studies, "study_named", lambda name, scale="paper": small)
    assert call("reproduce", "all", "--jobs", "1", "--out", "both").exit_code == 0
    assert (here / "both" / "synthetic" / "report.md").exists()
    assert (here / "both" / "masks" / "report.md").exists()
    monkeypatch.setattr(Uniform, "decide", None)
    assert call("reproduce", "all", "--jobs", "1", "--out", "other").exit_code == 1
    for name in ("synthetic", "masks"):
        assert (here / "other" / name / "failures.txt").exists()


@pytest.mark.parametrize("command", ["reproduce", "verify"])
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("main", "error: there is no study 'main', there are ['synthetic'"),
        ("syntetic", "error: there is no study 'syntetic': did you mean 'synthetic'?\n"),
    ],
)
def test_a_study_that_does_not_exist_is_answered_with_those_that_do(here, command, name, told):
    result = call(command, name)
    assert result.exit_code == 2
    assert result.output.startswith(told)
    assert not (here / "results").exists()


SMALL_PART = ["synthetic", "--seeds", "0:2", "--methods", "tofu,zf-oful", "--jobs", "1"]


def test_verify_agrees_on_a_small_part_and_leaves_other_tables_alone(here):
    result = call("verify", *SMALL_PART)
    assert result.exit_code == 0, result.output
    assert result.output.count(" rounding ") == 10  # two methods at five probabilities
    assert "synthetic agrees with the published results" in result.output
    assert [file.name for file in (here / "results" / "synthetic").iterdir()] == ["cells.jsonl"]


def test_verify_reports_a_published_figure_that_differs_from_ours(here, monkeypatch):
    figures = published.published("synthetic")
    key = CellKey("synthetic", "default", 0.4, "tofu", 1)
    figures[key] = figures[key]._replace(final_regret=figures[key].final_regret + 2e-6)
    monkeypatch.setattr(published, "published", lambda name: figures)
    result = call("verify", *SMALL_PART, "--p", ".4")
    assert result.exit_code == 1
    assert "0.000002 differs" in result.output
    assert "synthetic DIFFERS" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["masks"], "no results are published for 'masks'"),
        (["synthetic", "--methods", "impute-mean"], "methods must be among the published"),
    ],
)
def test_verify_needs_something_published(here, arguments, message):
    result = call("verify", *arguments)
    assert result.exit_code == 2
    assert message in result.output


def test_a_folder_that_cannot_be_made_is_reported_in_one_line(here):
    (here / "taken").write_text("")
    result = call(*SMOKE, "--methods", "uniform", "--out", "taken")
    assert result.exit_code == 2
    assert "error: File exists: taken" in result.output
    assert "Traceback" not in result.output


def test_ctrl_c_tells_how_to_go_on(here, monkeypatch):
    def interrupted(*arguments, **keywords):
        raise KeyboardInterrupt

    monkeypatch.setattr("halfseen.simulation.simulate.run", interrupted)
    result = call(*SMOKE, "--methods", "tofu,uniform,zf-oful", "--out", "[new]")
    assert result.exit_code == 130
    assert "kept in [new]; the same command continues from there" in result.output


# A table of one's own

LINES = ["round,arm,mean,a,b"] + [
    f"{at},{arm},{value},{value},{'' if at % 3 else at}"
    for at in range(30)
    for arm, value in (("x", 0.1), ("y", 0.9), ("z", 0.4))
]


def test_compare_takes_columns_by_name(here):
    text = "\n".join(LINES).replace("round,arm,mean", "visit,item,paid", 1)
    (here / "offers.csv").write_text(text)
    names = ["--round", "visit", "--id", "item", "--reward", "paid", "--context", "b"]
    asked = ["--seeds", "7,8", "--methods", "uniform", "-j", "1", "--out", "mine"]
    result = call("compare", "offers.csv", *names, *asked)
    assert result.exit_code == 0, result.output
    assert {row["seed"] for row in read(here / "mine" / "per_seed.csv")} == {"7", "8"}
    world = json.loads((here / "mine" / "manifest.json").read_text())["study"]["settings"][
        "default"
    ]
    assert world["world"]["context_columns"] == ["b"]
    assert world["world"]["id_column"] == "item"


def test_compare_reports_a_mistake_in_the_table_before_any_run(here):
    (here / "offers.csv").write_text("a,b\n1,2\n")
    for file, text in (("nowhere.csv", "does not exist"), ("offers.csv", "no column 'round'")):
        result = call("compare", file)
        assert (result.exit_code, "cells to run" in result.output) == (2, False)
        assert text in result.output
