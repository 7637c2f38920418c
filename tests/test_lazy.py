"""What is said of libraries that are not installed."""

import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from halfseen import MissingExtraError
from halfseen.lazy import from_extra, missing

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]


@pytest.mark.parametrize("extra", ["paper", "service", "postgres", "sklearn", "parquet"])
def test_a_hint_names_all_libraries_of_an_extra_that_are_missing_and_nothing_else(
    extra, monkeypatch
):
    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", absent)
    own = {each for each in EXTRAS[extra] if not each.startswith("halfseen")}
    remedy = str(missing("library", extra)).partition("pip install ")[2].partition(" (see")[0]
    named = set(remedy.replace("'", "").split())
    assert own <= named
    assert not any(each.startswith("halfseen") for each in named)


def test_a_hint_leaves_out_what_is_installed(monkeypatch):
    true = metadata.version

    def version(name):
        if name == "joblib":
            raise metadata.PackageNotFoundError(name)
        return true(name)

    monkeypatch.setattr(metadata, "version", version)
    with (
        pytest.raises(MissingExtraError, match=r"pip install 'joblib>=1\.5', or set jobs=1"),
        from_extra("paper", "set jobs=1"),
    ):
        raise ModuleNotFoundError(name="joblib")
