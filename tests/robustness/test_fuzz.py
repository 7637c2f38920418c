"""A few seconds of what `make soak` does at length."""

import pytest

from robustness import calls

FIRST_SEEDS = (0, 100, 200, 300)
ONCE_FAILED = (4240022,)


@pytest.mark.parametrize("seed", FIRST_SEEDS)
def test_no_allowed_call_fails_and_no_refused_one_changes_anything(seed):
    _, failures = calls.run(1000, seed)
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("seed", ONCE_FAILED)
def test_a_case_that_once_failed_passes(seed):
    n_calls, failure = calls.one(seed)
    assert n_calls > 0
    assert not failure, failure
