"""docs/your-own-policy.md: a stranger who saves every block and runs every command gets there.

Blocks only add to the end of a file, so a program that runs to its end would also have run before
the last block was added: each command is run once, where the page has it last.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "your-own-policy.md"


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    """Follow the page in an empty folder; return the folder and what each program printed."""
    folder, printed = tmp_path_factory.mktemp("mine"), {}
    env = os.environ | {"MPLBACKEND": "agg", "PYTHONWARNINGS": "error"}
    env |= {"LOKY_MAX_CPU_COUNT": "1"}  # as on a machine with one core
    env |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # as where pytest is all there is
    blocks = re.findall(r"```(\w+)\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    for index, (language, text) in enumerate(blocks):
        if language == "python":  # appended to the file that its first line names
            with (folder / text.split("\n")[0].removeprefix("# ")).open("a") as file:
                file.write(f"{text}\n\n")
        elif language == "sh" and (language, text) not in blocks[index + 1 :]:
            program, *arguments = shlex.split(text)
            assert program == "python"
            command = [sys.executable, *arguments]
            done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=env)
            assert done.returncode == 0, done.stdout + done.stderr
            printed[arguments[-1]] = done.stdout
    return folder, printed


def test_policy_and_world_pass_all_checks(walked):
    _, printed = walked
    lines = printed["check_mine.py"].splitlines()
    assert lines == ["Both policies pass all checks.", "Shop passes all checks."]
    assert " passed" in printed["test_mine.py"]


def test_the_walk_ends_with_a_table_and_a_figure(walked):
    folder, printed = walked
    rows = dict(re.findall(r"^ *(\S.*?) +([\d.]+) ±", printed["compare.py"], re.MULTILINE))
    regret = {method: float(value) for method, value in rows.items()}
    assert list(regret) == ["mine", "mine, without a bonus", "tofu-fh", "zf-oful", "uniform"]
    assert regret["tofu-fh"] < regret["mine, without a bonus"] < regret["uniform"]
    assert (folder / "regret.png").stat().st_size > 10_000
    assert (folder / "results" / "manifest.json").exists()


def test_the_page_shows_the_message_of_a_failed_check(walked):
    folder, _ = walked
    shown = re.search(r"```text\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL).group(1)
    program = "import mine; from halfseen.testing import check_policy\n"
    program += "mine.DiagonalUcb.STATE = {}\n"
    program += "check_policy(lambda: mine.DiagonalUcb(dim=6))"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.stderr.strip().endswith(" ".join(shown.split()))
