"""Policies and worlds of one's own reach a study, and the worker processes that run it."""

import json

import pytest
from typer.testing import CliRunner

from halfseen.cli import app, parse_method
from halfseen.errors import InvalidSettingError, StudyError
from halfseen.paper.studies import synthetic
from halfseen.report.figures import drawn
from halfseen.simulation import simulate as plugins
from halfseen.simulation.results import Results
from halfseen.simulation.simulate import load_plugin
from shared import read

POLICY = """
import os
from pathlib import Path

import halfseen
from halfseen import register_policy

Path(__file__).with_name(f"imported-{os.getpid()}").touch()


@register_policy
class NAME(halfseen.Uniform):
    pass

"""


@pytest.fixture(autouse=True)
def _loaded_here_only(monkeypatch):
    """Workers of later tests do not import what a test has loaded, whose folder is gone."""
    monkeypatch.setattr(plugins, "_plugins", list(plugins._plugins))


@pytest.mark.parametrize("from_file", [False, True])
def test_a_method_of_ones_own_joins_tables_and_the_main_figure(here, from_file):
    given = "mine=tofu,subspace=Grouse,subspace.patience=5,burn_in=4"
    if from_file:
        (here / "mine.json").write_text(json.dumps(parse_method(given)))
        given = "mine.json"
    options = ["--methods", "tofu", "--method", given, "--seeds", "0", "--p", ".3", "--jobs", "1"]
    study = ["reproduce", "synthetic", "--scale", "smoke", "--out", "out", *options]
    result = CliRunner().invoke(app, study)
    assert result.exit_code == 0, result.output
    rows = read(here / "out" / "per_seed.csv")
    assert [row["method"] for row in rows] == ["tofu", "mine"]
    settings = json.loads((here / "out" / "manifest.json").read_text())["study"]["settings"]
    method = settings["default"]["methods"]["mine"]
    assert method["subspace"] == {"rule": "Grouse", "patience": 5}
    assert method["replay"] == "burn-in-once"
    found = Results.load(here / "out")
    (main, *_) = synthetic.figures(found)
    labels = {text.get_text() for text in drawn(main).legends[0].get_texts()}
    assert labels == {"TOFU", "mine"}


def test_a_file_that_has_no_methods_is_refused(here):
    (here / "mine.json").write_text('["tofu"]')
    with pytest.raises(InvalidSettingError, match="must have an object of settings by key"):
        parse_method("mine.json")


def write(folder, name):
    """Write a plugin; names differ, as one process keeps what it loads."""
    text = POLICY.replace("NAME", name.title().replace("_", ""))
    (folder / f"{name}.py").write_text(text)


def run(name, *options):
    study = ["synthetic", "--scale", "smoke", "--methods", f"uniform,{name.replace('_', '-')}"]
    return CliRunner().invoke(app, ["reproduce", *study, "--out", "out", *options])


def regrets(folder, method):
    found = [row for row in read(folder / "per_seed.csv") if row["method"] == method]
    assert {row["status"] for row in found} == {"ok"}
    return [row["final_regret"] for row in found]


def check_results(folder, out, name, n_processes):
    """A subclass that changes nothing plays like its parent, in worker processes as well."""
    own = regrets(out, name.replace("_", "-"))
    assert len(own) == 4
    assert own == regrets(out, "uniform")
    assert len(list(folder.glob("imported-*"))) >= n_processes  # the command, at least one worker


@pytest.mark.usefixtures("unrendered")
@pytest.mark.parametrize(("name", "given", "jobs"), [("own_module", "", 1), ("own_file", ".py", 2)])
def test_an_option_imports_a_module_or_a_file(here, monkeypatch, name, given, jobs):
    write(here, name)
    monkeypatch.syspath_prepend(here)
    result = run(name, "--import", f"{name}{given}", "--jobs", str(jobs))
    assert result.exit_code == 0, result.output
    check_results(here, here / "out", name, n_processes=jobs)


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("gone.py", None, "FileNotFoundError: there is no such file"),
        ("broken_one.py", "1 / 0", "ZeroDivisionError: division by zero"),
        ("no_such_module", None, "ModuleNotFoundError: No module named 'no_such_module'"),
    ],
)
def test_a_plugin_that_cannot_be_imported_is_named(here, name, text, error):
    if text is not None:
        (here / name).write_text(text)
    with pytest.raises(StudyError, match=rf"{name}' cannot be imported: {error}"):
        load_plugin(name)


def test_a_file_cannot_take_the_name_of_a_module(here):
    (here / "json.py").write_text("")
    with pytest.raises(StudyError, match="another module is called 'json': rename the file"):
        load_plugin("json.py")


@pytest.mark.parametrize("command", [["compare", "x.csv"], ["reproduce", "synthetic"]])
def test_every_command_that_runs_a_study_takes_imports(command):
    result = CliRunner().invoke(app, [*command, "--import", "no_such_module"])
    assert result.exit_code == 2
    assert "plugin 'no_such_module' cannot be imported" in result.output
