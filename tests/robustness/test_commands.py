"""Commands that are given nonsense end with exit code 2 and one sentence, never a traceback."""

import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from halfseen import InvalidSettingError, LowRankWorld, simulate
from halfseen.cli import app
from halfseen.errors import StudyError
from halfseen.simulation.store import Store


def refused(*arguments):
    """Return what a command says that ends with exit code 2."""
    result = CliRunner().invoke(app, [*arguments], env={"COLUMNS": "150"})
    assert result.exit_code == 2, result.output
    assert result.output.splitlines()[-1].startswith("error: ")
    assert "Traceback" not in result.output
    return result.output


def test_running_out_of_memory_is_one_sentence(here, monkeypatch):
    def greedy(*args, **options):
        raise MemoryError

    monkeypatch.setattr("halfseen.paper.study.run_study", greedy)
    assert "there is not enough memory" in refused(*RUN)


def test_more_seeds_than_memory_holds_are_refused(here):
    told = refused("reproduce", "synthetic", "--seeds", "0:99999999999")
    assert "seeds must be at most a million distinct non-negative integers" in told


RUN = ("reproduce", "synthetic", "--scale", "smoke", "--methods", "uniform", "--jobs", "1")
RUN += ("--out", "out")


def test_a_plugin_that_exits_is_an_error(here):
    (here / "leaves.py").write_text("import sys; sys.exit(0)")
    assert "cannot be imported: SystemExit" in refused(*RUN, "--import", "leaves.py")


WORLD = LowRankWorld(dim=3, rank=1, n_arms=2, horizon=5, observe_prob=1.0)


def test_more_processes_than_a_machine_can_have_are_refused():
    with pytest.raises(InvalidSettingError, match=r"jobs must be an integer in \[1, 1024\], got"):
        simulate(["uniform"], WORLD, [0], jobs=100_000)


def test_a_second_run_in_the_same_folder_is_refused_while_the_first_one_writes(here):
    with Store("out").writing(), pytest.raises(StudyError, match="another run is writing to out"):
        simulate(["uniform"], WORLD, [0], out="out", jobs=1)
    simulate(["uniform"], WORLD, [0], out="out", jobs=1)


def test_commands_work_on_a_terminal_that_only_supports_ascii(here):
    done = subprocess.run(
        [sys.executable, "-m", "halfseen", *RUN],
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        encoding="ascii",
    )
    assert done.returncode == 0, done.stderr
    assert "mean ? standard error" in done.stdout
