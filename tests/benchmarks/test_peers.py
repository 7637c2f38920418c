"""Peers stay outside of the package, and one that fails keeps its row."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import halfseen
from benchmarks.budget import peer_row
from benchmarks.harness import Plan
from benchmarks.peers import adapters, contest, environment
from benchmarks.report import _contest

PEERS = {"coba", "mabwiser", "vowpalwabbit", "bayesianbandits", "obp", "river", "ppca"}


def imported_by(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name.split(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


def test_the_package_never_imports_a_peer():
    for path in Path(halfseen.__file__).parent.rglob("*.py"):
        assert not {"benchmarks", *PEERS} & set(imported_by(path)), path


@pytest.mark.parametrize("name", adapters.NAMES)
def test_every_adapter_says_what_it_needs_at_an_exact_version(name):
    told = contest.constants(name)
    assert told["SEES"] in ("all", "some")
    assert told["TITLE"]
    for package in told["PACKAGES"]:
        assert re.fullmatch(r"[\d.]+", environment.version_of(package)), package


def test_all_adapters_are_listed():
    folder = Path(adapters.__file__).parent
    assert sorted(adapters.NAMES) == sorted(p.stem for p in folder.glob("[a-z]*.py"))


def test_a_peer_that_cannot_be_loaded_answers_with_its_error():
    # In this environment, where no peer is installed.
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.peers.play", "coba_linucb"],
        capture_output=True,
        text=True,
        cwd=environment.ROOT,
        input="",
    )
    assert "No module named 'coba'" in json.loads(done.stdout)["error"]


@pytest.fixture(scope="module")
def standings():
    """Return the standings of a contest where no peer could be installed."""
    failed = environment.Installed("no matching distribution")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(environment, "install", lambda name, packages: failed)
        return contest.hold_contest(Plan(quick=True))


def test_a_peer_that_does_not_install_keeps_its_row_with_the_error(standings):
    text = "\n".join(_contest(standings))
    assert text.count("no matching distribution") == len(adapters.NAMES)
    assert peer_row(standings).met is None


def test_yardstick_and_tofu_have_the_same_regret_in_the_contest(standings):
    by_title = {each.title: each for each in standings}
    ours, yardstick = by_title["**halfseen TofuPov**"], by_title["yardstick"]
    np.testing.assert_allclose(ours.regrets, yardstick.regrets)
    assert ours.finished


def test_the_factor_is_taken_against_the_quickest_peer():
    ours = contest.Standing("ours", "some", True, "", (10.0,), (400,), (5.0,))
    quick = contest.Standing("quick", "all", False, "", (150.0,), (400,), (5.0,))
    slow = contest.Standing("slow", "all", False, "", (500.0,), (400,), (5.0,))
    row = peer_row([ours, slow, quick])
    assert row.met
    assert row.measured == "15.0 times as fast as quick"


@pytest.mark.parametrize(("time", "met"), [(150.0, None), (50.0, False)])
def test_with_a_peer_missing_the_budget_can_be_missed_but_not_met(time, met):
    ours = contest.Standing("ours", "some", True, "", (10.0,), (400,), (5.0,))
    ran = contest.Standing("ran", "all", False, "", (time,), (400,), (5.0,))
    missing = contest.Standing("missing", "all", False, "not installed")
    row = peer_row([ours, ran, missing])
    assert row.met is met
    assert "1 of 2 peers ran" in row.measured


def test_nothing_is_installed_if_the_caller_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("HALFSEEN_INSTALL_PEERS", "0")
    monkeypatch.setattr(environment, "VENV", tmp_path)
    monkeypatch.setattr(environment, "_run", lambda *command: pytest.fail("something was run"))
    assert environment.install("peer", ("package",)).error == "not installed for this run"
    (tmp_path / "peer.installed").write_text(environment.REQUIREMENTS.read_text())
    assert environment.install("peer", ("package",)).error == ""
