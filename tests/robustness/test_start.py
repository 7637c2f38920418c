"""The library starts wherever it is put: read-only, without a home, without a temporary folder."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import halfseen

PACKAGE = Path(halfseen.__file__).parent
CHOOSES = """
import logging, sys
if "-v" in sys.argv:
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
import halfseen
policy = halfseen.AmbientOful(dim=2)
print(policy.choose([[0.0, 1.0], [3.0, float("nan")]]).arm, halfseen.__file__)
"""
# One small file of loops, because compiling all of them takes 15 seconds.
COMPILES = """
import logging, sys
if "-v" in sys.argv:
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
import numpy as np
from halfseen.kernels import tables
filled = np.empty((1, 2))
tables.copy_filled(np.array([[1.0, np.nan]]), filled)
print(filled.tolist())
"""


@pytest.fixture
def package(tmp_path):
    """Return a folder with a copy of the package and its machine code."""
    halfseen.AmbientOful(dim=2)  # compiled by now
    home = tmp_path / "site-packages"
    ignored = shutil.ignore_patterns("data", "vendor", "*.pyc")
    shutil.copytree(PACKAGE, home / "halfseen", ignore=ignored)
    return home


@pytest.fixture
def temporary(tmp_path):
    folder = tmp_path / "temporary"
    folder.mkdir(mode=0o700)
    return folder


def run(program, package, temporary, *arguments, before=(), **environment):
    """Run a program with the package of a folder and no home, in a process of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    return subprocess.run(
        [*before, sys.executable, "-c", program, *arguments],
        env=kept
        | {
            "HOME": "/dev/null",
            "TMPDIR": str(temporary),
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


def read_only(folder):
    """Return what to put before a command so that a folder is really read-only for it."""
    if os.geteuid() != 0:
        for each in [*folder.rglob("*"), folder]:
            each.chmod(0o555 if each.is_dir() else 0o444)
        return ()
    mount = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
    before = ("unshare", "--mount", "sh", "-c", mount, str(folder))
    if shutil.which("unshare") is None or subprocess.run([*before, "true"], check=False).returncode:
        pytest.skip("root may write anywhere here, and cannot mount a folder read-only")
    return before


def test_a_read_only_package_without_a_home_starts_with_the_code_it_was_given(package, temporary):
    """What was compiled when an image was built serves, although numba cannot write beside it."""
    before = read_only(package)
    done = run(CHOOSES, package, temporary, "-v", before=before)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["1", str(package / "halfseen" / "__init__.py")]
    assert "compiling" not in done.stderr
    assert list(temporary.iterdir()) == []  # the copy is removed


def test_without_any_folder_loops_are_compiled_in_memory(package, temporary):
    without_code(package)
    done = run(COMPILES, package, temporary, "-v")
    assert (done.returncode, done.stdout) == (0, "[[1.0, 0.0]]\n"), done.stderr
    assert "every process compiles them again: set NUMBA_CACHE_DIR" in done.stderr
    assert list(temporary.iterdir()) == []


def test_the_folder_of_the_user_s_choice_is_used_and_no_other(package, temporary, tmp_path):
    chosen = tmp_path / "chosen"
    done = run(COMPILES, package, temporary, NUMBA_CACHE_DIR=str(chosen))
    assert (done.returncode, done.stderr) == (0, "")
    assert list(chosen.rglob("tables.copy_filled*.nbc"))
    assert list(temporary.iterdir()) == []


def test_damaged_machine_code_is_compiled_again_in_memory(package, temporary):
    for index in (package / "halfseen" / "kernels" / "__pycache__").glob("tables*.nbi"):
        index.write_bytes(index.read_bytes()[:20])
    done = run(COMPILES, package, temporary, "-v")
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
