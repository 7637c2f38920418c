"""Commands that are given nonsense end with exit code 2 and one sentence, never a traceback."""

import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from halfseen.cli import app

STUDY = """
name = "mine"
title = "Mine ± λ"
seeds = "0:2"
observe_prob = 0.8
methods = ["uniform"]

[world]
kind = "low-rank"
dim = 4
rank = 1
horizon = 10
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(STUDY, encoding="utf-8")
    return tmp_path


def refused(*arguments):
    """Return what a command says that ends with exit code 2."""
    result = CliRunner().invoke(app, [*arguments], env={"COLUMNS": "150"})
    assert result.exit_code == 2, result.output
    assert result.output.startswith("error: ")
    assert "Traceback" not in result.output
    return result.output


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("deep.toml", "name = " + "[" * 10_000 + "]" * 10_000),
        ("deep.json", "[" * 100_000 + "]" * 100_000),
        ("deep-tables.json", '{"a":' * 100_000 + "1" + "}" * 100_000),
    ],
    ids=["toml", "json", "tables"],
)
def test_a_deeply_nested_study_is_refused(here, name, text):
    (here / name).write_text(text)
    assert f"{name} is nested too deeply" in refused("run", name)


@pytest.mark.parametrize("depth", [100, 300, 480, 700, 900, 2000])
def test_any_depth_is_refused_by_whoever_meets_it_first(here, depth):
    nested = "[" * depth + "]" * depth
    for key in ("world", "methods", "figures", "unknown"):
        (here / "deep.json").write_text(f'{{"name": "x", "{key}": {nested}}}')
        refused("run", "deep.json")


@pytest.mark.parametrize("name", ["dim", "n_arms", "horizon", "rank"])
def test_a_size_that_no_memory_has_is_refused(here, name):
    text = STUDY.replace("rank = 1\n", "" if name == "rank" else "rank = 1\n")
    text = "".join(line for line in text.splitlines(True) if not line.startswith(f"{name} ="))
    (here / "mine.toml").write_text(f"{text}{name} = 9000000000000000000000\n", encoding="utf-8")
    assert f"world.{name} must be an integer in [1, " in refused("run", "mine.toml")


def test_running_out_of_memory_is_one_sentence(here, monkeypatch):
    def greedy(*args, **options):
        raise MemoryError

    monkeypatch.setattr("halfseen.studies.running.run_study", greedy)
    assert "there is not enough memory" in refused("run", "mine.toml", "--jobs", "1")


@pytest.mark.parametrize("command", ["run", "reproduce"])
def test_more_seeds_than_memory_holds_are_refused(here, command):
    study = "mine.toml" if command == "run" else "synthetic"
    told = refused(command, study, "--seeds", "0:99999999999")
    assert "seeds must be different integers from 0 on, at most a million" in told


def test_more_seeds_in_a_file_than_memory_holds_are_refused(here):
    (here / "mine.toml").write_text(STUDY.replace("0:2", "0:99999999999"), encoding="utf-8")
    assert "seeds must be different integers" in refused("run", "mine.toml")


RUN = ("run", "mine.toml", "--jobs", "1", "--out", "out")
WRONG = {
    "status": [None, 7, "well"],
    "seconds": ["x", None, float("nan")],
    "final_regret": ["x", [], float("inf")],
    "final_rank": ["x", {}],
    "rounds": [None, 3, ["x"], [1.5], [1]],
    "regret": ["xyz", [None], [1.0]],
    "ranks": [["x"], 0],
    "diagnostics": [3, [1], "x"],
    "error": [None, 3],
    "note": [[]],
}


@pytest.mark.usefixtures("unrendered")
def test_a_results_file_with_wrong_types_is_refused(here):
    assert CliRunner().invoke(app, RUN).exit_code == 0
    file = here / "out" / "cells.jsonl"
    first, *others = file.read_text().splitlines()
    for name, values in WRONG.items():
        for value in values:
            line = json.loads(first)
            line["result"][name] = value
            file.write_text("\n".join([json.dumps(line), *others]) + "\n")
            assert "cells.jsonl, line 1 is not a finished cell" in refused(*RUN), (name, value)


def test_a_deeply_nested_line_of_results_is_refused(here):
    (here / "out").mkdir()
    (here / "out" / "cells.jsonl").write_text("[" * 100_000 + "\n")
    assert "cells.jsonl, line 1 is not a finished cell" in refused(*RUN)


@pytest.mark.usefixtures("unrendered")
def test_a_whole_number_that_is_too_large_does_not_stop_the_page(here):
    assert CliRunner().invoke(app, (*RUN[:-1], "results/mine")).exit_code == 0
    table = here / "results" / "mine" / "per_seed.csv"
    table.write_text(table.read_text().replace("uniform,0,", f"uniform,{'9' * 30},"))
    result = CliRunner().invoke(app, ["page"])
    assert result.exit_code == 0, result.output
    assert "per_seed.csv is damaged" in (here / "results" / "index.html").read_text("utf-8")


@pytest.mark.usefixtures("unrendered")
def test_a_manifest_with_wrong_types_does_not_stop_the_page(here):
    assert CliRunner().invoke(app, (*RUN[:-1], "results/mine")).exit_code == 0
    file = here / "results" / "mine" / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"versions": 3}))
    assert CliRunner().invoke(app, ["page"]).exit_code == 0
    assert "manifest.json is damaged" in (here / "results" / "index.html").read_text("utf-8")


def test_commands_work_on_a_terminal_that_only_supports_ascii(here):
    arguments = ["run", "mine.toml", "--jobs", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "halfseen", *arguments],
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        encoding="ascii",
    )
    assert done.returncode == 0, done.stderr
    assert "Mine ? ?" in done.stdout
