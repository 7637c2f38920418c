"""Settings of all tests: properties are checked on the same examples in every run."""

import os

import pytest
from hypothesis import HealthCheck, settings

# Tests run beside each other: a second thread per test gains nothing. Read when numpy is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# No deadline: the first call of a compiled loop takes longer than all later ones together.
settings.register_profile(
    "halfseen",
    deadline=None,
    derandomize=True,
    max_examples=50,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],  # other processes may be at work
)
settings.load_profile("halfseen")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Work in an empty folder, and return it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def unrendered(monkeypatch):
    """Draw every figure, but write files without a picture: rendering takes most of a report."""
    from PIL import Image

    from halfseen.report import report

    def save(figure, folder, name):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.svg").write_text("<svg/>")
        (folder / f"{name}.pdf").write_text("%PDF")
        Image.new("RGB", (8, 8)).save(folder / f"{name}.png")
        return folder / f"{name}.png"

    monkeypatch.setattr(report, "save_figure", save)
