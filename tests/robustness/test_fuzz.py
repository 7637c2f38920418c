"""A few seconds of what `make soak` does at length."""

import pytest

from halfseen import warm_up
from robustness import agents, calls, faults, files

ONCE_FAILED = (4240022, 77150002)


@pytest.mark.parametrize("seed", [0, 100, 200, 300])
def test_no_allowed_call_fails_and_no_refused_one_changes_anything(seed):
    _, failures = calls.run(1000, seed)
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 4, 840006])  # the last one once failed
def test_replicas_of_an_agent_agree_whatever_is_called_or_interrupted(seed):
    n_calls, failure = agents.one(seed)
    assert n_calls > 0, failure


@pytest.mark.parametrize("seed", ONCE_FAILED)
def test_a_case_that_once_failed_passes(seed):
    n_calls, failure = calls.one(seed)
    assert n_calls > 0
    assert not failure, failure


@pytest.mark.parametrize("seed", range(4))
def test_a_changed_archive_is_refused_or_plays_finite_scores(seed):
    assert files.run(250, seed) == (250, [])


def test_an_archive_that_is_not_changed_is_not_refused():
    """The control: what is refused above is refused because of its change."""
    for content in files.saved().values():
        again = files.zipped(files.entries_of(content))
        assert files.plays(files.loaded(again))


def test_an_interrupt_at_any_point_leaves_the_old_state_or_the_new_one():
    warm_up(progress=False)  # compiling while every line is traced would take minutes
    tried, failures = faults.run(200, seed=0)
    assert tried >= 200
    assert failures == []
