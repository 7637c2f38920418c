"""Tables, and where the reference material lies on machines that have it."""

import csv
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("HALFSEEN_SHARED", ROOT.parent / "shared"))


def read(path):
    """Return the rows of a CSV file by column."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def shared_file(*parts: str) -> Path:
    """Return a file of the reference material, or skip the test where it is not there."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(
            f"needs the reference material ({'/'.join(parts)}), which is not part of the project: "
            "set HALFSEEN_SHARED to its folder"
        )
    return path
