"""Real tables in the report: problems of the study on other seeds; the peer may be missing."""

import numpy as np
import pytest

from benchmarks import choose_defaults, real_tables
from benchmarks.harness import Plan
from benchmarks.peers import environment
from benchmarks.peers.contest import Standing, write_rounds
from benchmarks.peers.filling import filled_by_means
from halfseen.studies.builtin import builtin_study

QUICK = Plan(quick=True)


@pytest.fixture(scope="module")
def problems():
    """Return what is found where the peer could not be installed."""
    failed = environment.Installed("no matching distribution")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(environment, "install", lambda name, packages: failed)
        patch.setattr(real_tables, "PROBLEMS", ("hepatitis", "diabetes"))
        return real_tables.measure_real_tables(QUICK)


def test_a_missing_peer_keeps_its_row_and_the_others_have_a_regret(problems):
    assert [problem.name for problem in problems] == ["hepatitis", "diabetes"]
    for problem in problems:
        ours, pipeline, peer = problem.standings
        assert ours.ours
        assert not pipeline.ours
        assert 0.0 < min(*ours.regrets, *pipeline.regrets) < problem.uniform
        assert peer.error == "no matching distribution"
    rows = real_tables.lines(problems)
    assert sum("no matching distribution" in row for row in rows) == len(problems)


def test_every_row_has_as_many_cells_as_the_head(problems):
    rows = [row for row in real_tables.lines(problems) if row]
    assert {row.count("|") for row in rows} == {7}


def test_without_peers_there_is_no_row_of_one(monkeypatch):
    monkeypatch.setattr(real_tables, "PROBLEMS", ("hepatitis",))
    (problem,) = real_tables.measure_real_tables(Plan(quick=True, peers=False))
    assert len(problem.standings) == 2


def test_a_run_that_was_cut_off_says_so():
    standing = Standing("peer", "all", False, "", (9.0,), (150,), (5.0,))
    assert "after 150 rounds" in real_tables._result(standing, 200)
    assert "after" not in real_tables._result(standing, 150)


def test_worlds_and_pipeline_are_those_of_the_study():
    study = builtin_study("tables").narrowed(methods=["scaled-mean-tenth"], seeds=[0])
    cells = {cell.key.setting: cell for cell in study.cells()}
    for name in real_tables.PROBLEMS:
        assert real_tables.world_of(name, Plan()) == cells[name].world
        assert cells[name].method == real_tables.PIPELINE


def test_neither_the_study_nor_the_choice_of_defaults_uses_the_seeds():
    used = {*builtin_study("tables").seeds, *choose_defaults.SEEDS}
    assert not used & set(real_tables._seeds(Plan()))


def test_holes_become_means_of_what_was_seen_so_far():
    nan = np.nan
    slates = np.array([[[1.0, nan], [3.0, nan]], [[nan, 5.0], [8.0, nan]]])
    expected = [[[1.0, 0.0], [3.0, 0.0]], [[4.0, 5.0], [8.0, 5.0]]]
    np.testing.assert_array_equal(filled_by_means(slates), expected)


def test_who_needs_every_entry_gets_no_hidden_value(tmp_path):
    realization = real_tables.world_of("diabetes", QUICK).realize(1000)
    with np.load(write_rounds(tmp_path / "rounds.npz", realization, fill=True)) as written:
        full, masked = written["full"], written["masked"]
    assert np.isnan(masked).any()
    np.testing.assert_array_equal(full, filled_by_means(masked))
