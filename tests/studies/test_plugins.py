"""Policies and worlds of one's own reach a study, and the worker processes that run it."""

import csv

import pytest
from typer.testing import CliRunner

from halfseen.cli import app
from halfseen.errors import StudyError
from halfseen.simulation import plugins
from halfseen.simulation.plugins import GROUP, load_installed_plugins, load_plugin, loaded_plugins
from halfseen.studies.reading import read_study, study_from

POLICY = """
import os
from pathlib import Path

import halfseen
from halfseen import register_policy
from halfseen.worlds.base import register_world

Path(__file__).with_name(f"imported-{os.getpid()}").touch()


@register_policy
class NAME(halfseen.Uniform):
    pass


@register_world("KIND")
class Own(halfseen.LowRankWorld):
    pass
"""
STUDY = """
name = "mine"
seeds = "0:6"
observe_prob = 0.5
PLUGINS

[methods]
uniform = {}
mine = { policy = "NAME" }

[world]
kind = "KIND"
dim = 6
rank = 1
horizon = 30
"""


@pytest.fixture(autouse=True)
def _loaded_here_only(monkeypatch):
    """Workers of later tests do not import what a test has loaded, whose folder is gone."""
    monkeypatch.setattr(plugins, "_loaded", list(plugins._loaded))


def write(folder, name, listed=""):
    """Write a plugin and a study that uses it; names differ, as one process keeps what it loads."""
    for path, text in ((f"{name}.py", POLICY), (f"{name}.toml", STUDY)):
        text = text.replace("NAME", name.title().replace("_", "")).replace("KIND", f"{name}-world")
        (folder / path).write_text(text.replace("PLUGINS", listed))


def regrets(folder, method):
    with (folder / "per_seed.csv").open(newline="") as file:
        found = [row for row in csv.DictReader(file) if row["method"] == method]
    assert {row["status"] for row in found} == {"ok"}
    return [row["final_regret"] for row in found]


def check_results(folder, out, n_processes):
    """A subclass that changes nothing plays like its parent, in worker processes as well."""
    assert len(regrets(out, "mine")) == 6
    assert regrets(out, "mine") == regrets(out, "uniform")
    assert len(list(folder.glob("imported-*"))) >= n_processes  # the command, at least one worker


@pytest.mark.usefixtures("unrendered")
def test_a_study_file_names_its_plugins_relative_to_itself(tmp_path, monkeypatch):
    folder = tmp_path / "deep"
    folder.mkdir()
    write(folder, "own_study", 'plugins = ["own_study.py"]')
    monkeypatch.chdir(tmp_path)
    options = ["--jobs", "2", "--out", "out"]
    result = CliRunner().invoke(app, ["run", "deep/own_study.toml", *options])
    assert result.exit_code == 0, result.output
    check_results(folder, tmp_path / "out", n_processes=2)


@pytest.mark.usefixtures("unrendered")
@pytest.mark.parametrize(("name", "given"), [("own_module", ""), ("own_file", ".py")])
def test_an_option_imports_a_module_or_a_file(tmp_path, monkeypatch, name, given):
    write(tmp_path, name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    options = ["--import", f"{name}{given}", "--jobs", "1", "--out", "out"]
    result = CliRunner().invoke(app, ["run", f"{name}.toml", *options])
    assert result.exit_code == 0, result.output
    check_results(tmp_path, tmp_path / "out", n_processes=1)


@pytest.mark.usefixtures("unrendered")
def test_an_installed_package_names_its_plugins_as_entry_points(tmp_path, monkeypatch):
    site = tmp_path / "site"
    info = site / "theirs-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\ntheirs = theirs\n")
    write(site, "theirs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(site)
    load_installed_plugins.cache_clear()  # once per process
    result = CliRunner().invoke(app, ["run", "site/theirs.toml", "--jobs", "1", "--out", "out"])
    assert result.exit_code == 0, result.output
    check_results(site, tmp_path / "out", n_processes=1)


def test_a_stored_study_finds_its_plugins_again(tmp_path):
    write(tmp_path, "stored_one", 'plugins = ["stored_one.py"]')
    study = read_study(tmp_path / "stored_one.toml")
    assert study.plugins == (str(tmp_path / "stored_one.py"),)
    assert study.plugins[0] in loaded_plugins().names
    assert study_from(study.to_dict()) == study


def test_a_plugin_that_cannot_be_imported_is_a_mistake_of_the_study(tmp_path):
    write(tmp_path, "broken_one", 'plugins = ["gone.py", "broken_one.py", "no_such_module"]')
    (tmp_path / "broken_one.py").write_text("1 / 0")
    result = CliRunner().invoke(app, ["run", str(tmp_path / "broken_one.toml")])
    assert result.exit_code == 2
    first, gone, broken, absent = result.output.replace("\n  ", "\n").splitlines()
    assert first.endswith("broken_one.toml has 3 mistakes:")
    assert gone.startswith("plugins[0]: plugin ")
    assert gone.endswith("gone.py' cannot be imported: FileNotFoundError: there is no such file")
    assert broken.endswith("cannot be imported: ZeroDivisionError: division by zero")
    assert absent.startswith("plugins[2]: plugin 'no_such_module' cannot be imported: ModuleNot")


def test_a_file_cannot_take_the_name_of_a_module(tmp_path):
    (tmp_path / "json.py").write_text("")
    with pytest.raises(StudyError, match="another module is called 'json': rename the file"):
        load_plugin("json.py", tmp_path)


@pytest.mark.parametrize("command", [["run", "x.toml"], ["reproduce", "synthetic"], ["demo"]])
def test_every_command_that_runs_a_study_takes_imports(command):
    result = CliRunner().invoke(app, [*command, "--import", "no_such_module"])
    assert result.exit_code == 2
    assert "plugin 'no_such_module' cannot be imported" in result.output
