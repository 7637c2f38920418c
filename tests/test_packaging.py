"""Versions agree, lock files have hashes for everything and name no host."""

import re
import tomllib
from pathlib import Path

import pytest

import halfseen

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
LOCKS = sorted((ROOT / "locks").glob("*.txt"))


def read(name):
    return (ROOT / name).read_text("utf-8")


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def locked(path):
    """Return the entries of a lock file, each with its hashes, by the name of the package."""
    text = re.sub(r"^#.*\n", "", path.read_text("utf-8"), flags=re.MULTILINE)
    entries = text.replace("\\\n", " ").splitlines()
    return {re.match(r"[\w.-]+", entry)[0]: entry for entry in entries}


def names_of(requirements):
    return {canonical(re.match(r"[\w.-]+", text)[0]) for text in requirements} - {"halfseen"}


def test_the_changelog_and_the_citation_have_the_version_and_its_date():
    """What is not released yet may stand above it, with a higher number."""
    found = re.findall(r"^## (\S+) \((.*)\)$", read("CHANGELOG.md"), re.MULTILINE)
    waiting = [version for version, date in found if date == "unreleased"]
    version, date = found[len(waiting)]
    assert [each for each, _ in found] == sorted([each for each, _ in found], reverse=True)
    assert waiting == [each for each, _ in found[:1] if each != halfseen.__version__]
    assert version == halfseen.__version__
    citation = read("CITATION.cff")
    assert f"\nversion: {version}\n" in citation
    assert f"\ndate-released: {date}\n" in citation


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.stem)
def test_every_locked_version_is_exact_and_has_hashes_and_no_host_is_named(path):
    assert not re.search(r"://|--index|--find|@|^\s*/", path.read_text("utf-8"), re.MULTILINE)
    for name, entry in locked(path).items():
        assert re.match(r"[\w.-]+==[\w.]+( ;[^;]*?)?( +--hash=sha256:[0-9a-f]{64})+$", entry), name


def test_lock_files_agree_with_each_other():
    versions = {}
    for path in LOCKS:
        for name, entry in locked(path).items():
            versions.setdefault(name, set()).add(re.sub(r" ;.*?(?= +--hash)", "", entry))
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}


def test_lock_files_have_what_the_project_asks_for():
    project, groups = PROJECT["project"], PROJECT["dependency-groups"]
    extras = project["optional-dependencies"]
    base = names_of([*project["dependencies"], *groups["build"]])
    assert base <= set(locked(ROOT / "locks" / "base.txt"))
    dev = names_of(extras["dev"] + extras["paper"] + extras["service"])
    assert base | dev <= set(locked(ROOT / "locks" / "dev.txt"))
    for path in LOCKS:
        assert names_of(extras.get(path.stem, [])) <= set(locked(path)), path.name


def test_the_base_lock_has_none_of_the_extras():
    extras = PROJECT["project"]["optional-dependencies"].values()
    optional = {name for requirements in extras for name in names_of(requirements)}
    assert set(locked(ROOT / "locks" / "base.txt")).isdisjoint(optional)
