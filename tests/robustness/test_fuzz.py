"""A few seconds of what `make soak` does at length."""

import pytest

from robustness import calls

# Seeds that once found a fault, beside fresh ones.
FIRST_SEEDS = (0, 100, 200, 300)


@pytest.mark.parametrize("seed", FIRST_SEEDS)
def test_no_allowed_call_fails_and_no_refused_one_changes_anything(seed):
    _, failures = calls.run(1000, seed)
    assert not failures, "\n".join(failures)
