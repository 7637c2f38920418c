"""Compiled loops: where their machine code is kept, and what happens if it cannot be."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import halfseen

PACKAGE = Path(halfseen.__file__).parent
# One small file of loops, because compiling all of them takes 15 seconds.
COMPILES = """
import logging, sys
if "-v" in sys.argv:
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
import numpy as np
from halfseen.kernels import tables
copied = np.empty((1, 2))
tables.copy_checked(np.array([[1.0, 1e-300]]), copied, 1e-200, 1e100)
print(copied.tolist())
"""


@pytest.fixture
def package(tmp_path):
    """Return a folder with a copy of the package and its machine code."""
    home = tmp_path / "site-packages"
    ignored = shutil.ignore_patterns("data", "*.pyc")
    shutil.copytree(PACKAGE, home / "halfseen", ignore=ignored)
    return home


def run(program, package, *arguments, **environment):
    """Run a program with the package of a folder and no home, in a process of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=kept
        | {
            "HOME": "/dev/null",
            "PYTHONPATH": str(package),
            "PYTHONDONTWRITEBYTECODE": "1",
            "XDG_CACHE_HOME": "/dev/null",
        }
        | environment,
        cwd=package,
        capture_output=True,
        text=True,
    )


def without_code(package):
    """Leave the folder of machine code out, and let nobody make one, not even root."""
    folder = package / "halfseen" / "kernels" / "__pycache__"
    shutil.rmtree(folder)
    folder.write_text("in the way")


def test_without_any_folder_loops_are_compiled_in_memory(package):
    without_code(package)
    done = run(COMPILES, package, "-v")
    assert (done.returncode, done.stdout) == (0, "[[1.0, 0.0]]\n"), done.stderr
    assert "every process compiles them again: set NUMBA_CACHE_DIR" in done.stderr


def test_the_folder_of_the_user_s_choice_is_used(package, tmp_path):
    chosen = tmp_path / "chosen"
    done = run(COMPILES, package, NUMBA_CACHE_DIR=str(chosen))
    assert (done.returncode, done.stderr) == (0, "")
    assert list(chosen.rglob("tables.copy_checked*.nbc"))


def test_damaged_machine_code_is_compiled_again_in_memory(package):
    for index in (package / "halfseen" / "kernels" / "__pycache__").glob("tables*.nbi"):
        index.write_bytes(index.read_bytes()[:20])
    done = run(COMPILES, package, "-v")
    assert (done.returncode, done.stdout) == (0, "[[1.0, 0.0]]\n"), done.stderr
    assert "compiling in memory" in done.stderr


def test_warming_up_loads_every_loop_and_shows_progress(capsys):
    halfseen.warm_up()
    names = {file.stem for file in (PACKAGE / "kernels").glob("*.py")} - {"__init__"}
    assert names <= {name.rpartition(".")[2] for name in sys.modules if "halfseen.kernels" in name}
    told = capsys.readouterr()
    dots = "." * len(names)
    assert told.err.startswith(f"halfseen: preparing compiled code {dots} ")
    assert told.out == ""
    halfseen.warm_up(progress=False)
    assert capsys.readouterr().err == ""
