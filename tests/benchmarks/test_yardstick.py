"""The yardstick of the benchmarks is the same algorithm, so that comparing times makes sense."""

import pytest

from benchmarks.speed import RUNS, rounds_of, time_ours, time_yardstick


@pytest.mark.parametrize("run", RUNS[:2], ids=lambda run: str(run.size))
def test_yardstick_and_tofu_choose_the_same_arms(run):
    rounds = rounds_of(run)
    assert time_yardstick(run, rounds)[1] == time_ours(run, rounds)[1]
