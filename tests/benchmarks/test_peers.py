"""Other libraries stay outside of the package, and one that fails keeps its row."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import halfseen
from benchmarks import imputing
from benchmarks.peers import contest
from benchmarks.peers.contest import Standing, peer_row, write_rounds
from benchmarks.peers.imputers import PEERS as IMPUTERS
from benchmarks.peers.players import PLAYERS
from benchmarks.report import contest_lines


def test_the_package_never_imports_a_peer():
    peer = re.compile(
        r"^\s*(import|from) (benchmarks|vowpalwabbit|river|ppca|fancyimpute)\b", re.MULTILINE
    )
    for path in Path(halfseen.__file__).parent.rglob("*.py"):
        assert not peer.search(path.read_text()), path


@pytest.mark.parametrize("player", [*PLAYERS.values(), *IMPUTERS.values()])
def test_every_peer_has_an_exact_version(player):
    assert re.fullmatch(r"[\d.]+", contest.version_of(player.PACKAGE))


def test_a_peer_that_cannot_be_loaded_answers_with_its_error(tmp_path):
    # In this environment, where no peer is installed.
    write_rounds(tmp_path / "rounds.npz", contest.WORLD.realize(0))
    command = ["-m", "benchmarks.peers.players", "River", str(tmp_path / "rounds.npz")]
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, cwd=contest.ROOT
    )
    assert "No module named 'river'" in json.loads(done.stdout.splitlines()[-1])["error"]


def test_without_installed_peers_ours_play_and_the_others_keep_their_rows(monkeypatch):
    monkeypatch.setattr(contest, "install", lambda: "no matching distribution")
    standings = contest.hold(quick=True, peers=True)
    rows = contest_lines(standings)
    assert sum("no matching distribution" in row for row in rows) == len(PLAYERS)
    assert {row.count("|") for row in rows} == {6}
    assert peer_row(standings).met is None
    assert all(min(each.regrets) > 0.0 for each in standings if each.ours)


@pytest.mark.parametrize(
    ("times", "measured", "met"),
    [
        ((150.0, 500.0), "15.0 times as fast as peer", True),
        ((500.0, 50.0), "5.0 times as fast as peer", False),
        ((150.0, None), "15.0 times as fast as peer; 1 of 2 peers ran", None),
        ((50.0, None), "5.0 times as fast as peer; 1 of 2 peers ran", False),
    ],
)
def test_the_factor_is_against_the_fastest_peer_and_a_missing_one_leaves_it_open(
    times, measured, met
):
    peers = [
        Standing("peer", "all", error="not installed")
        if each is None
        else Standing("peer", "all", False, "", (each,), (5.0,))
        for each in times
    ]
    row = peer_row([Standing("ours", "some", True, "", (10.0,), (5.0,)), *peers])
    assert (row.measured, row.met) == (measured, met)


def test_nothing_is_installed_if_the_caller_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("HALFSEEN_INSTALL_PEERS", "0")
    monkeypatch.setattr(contest, "VENV", tmp_path)
    monkeypatch.setattr(contest, "run", lambda *command: pytest.fail("something was run"))
    assert contest.install() == "not installed for this run"
    (tmp_path / "installed.txt").write_text(contest.REQUIREMENTS.read_text())
    assert contest.install() == ""


def test_imputers_of_others_that_cannot_run_keep_their_columns(monkeypatch):
    monkeypatch.setattr(contest, "install", lambda: "no matching distribution")
    full = np.random.default_rng(0).normal(size=(40, 1)) * np.ones((1, 4))
    table = np.where(np.eye(40, 4) > 0, np.nan, full)
    found = {"wine": imputing._contest(lambda seed: (full, table), 2, True)}
    (row,) = imputing.lines(found)[2:]
    assert row.count("no matching distribution") == len(IMPUTERS)
    errors = [float(cell.split()[0]) for cell in row.split("|")[2:6]]
    assert errors[0] < 0.01 < errors[1]  # ours, and the mean
