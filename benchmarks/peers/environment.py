"""The peers' environment: made when it is first needed, from exact versions, beside this file.

With HALFSEEN_INSTALL_PEERS=0 nothing is installed: only peers that are there already are run.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
VENV = HERE / ".venv"
PYTHON = VENV / "bin" / "python"
REQUIREMENTS = HERE / "requirements.txt"
# What `play` itself imports; not every peer depends on it.
_NEEDED_BY_PLAY = ("numpy",)
_PIP = ("-m", "pip", "install", "-q", "--disable-pip-version-check")


class Installed(NamedTuple):
    """What became of a peer's installation; an empty error means that it is there."""

    error: str


def install(name: str, packages: tuple[str, ...]) -> Installed:
    """Install what a peer needs, at the versions of requirements.txt; remember that it worked."""
    marker = VENV / f"{name}.installed"
    wanted = REQUIREMENTS.read_text()
    if marker.exists() and marker.read_text() == wanted:
        return Installed("")
    if os.environ.get("HALFSEEN_INSTALL_PEERS") == "0":
        return Installed("not installed for this run")
    if not PYTHON.exists():
        made = _run(sys.executable, "-m", "venv", str(VENV))
        if made.returncode != 0:
            return Installed(_reason(made))
    done = _run(str(PYTHON), *_PIP, "-c", str(REQUIREMENTS), *_NEEDED_BY_PLAY, *packages)
    if done.returncode != 0:
        return Installed(_reason(done))
    marker.write_text(wanted)
    return Installed("")


def version_of(package: str) -> str:
    """Return the version that requirements.txt asks for."""
    for line in REQUIREMENTS.read_text().splitlines():
        name, _, version = line.partition("==")
        if name.lower() == package.lower():
            return version
    return "?"


def _run(*command: str) -> subprocess.CompletedProcess:
    return subprocess.run(command, capture_output=True, text=True)


def _reason(done: subprocess.CompletedProcess) -> str:
    """Return the line of pip's output that says what is wrong."""
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or ["no reason given"])[-1]
