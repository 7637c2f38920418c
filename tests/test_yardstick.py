"""The yardstick of the benchmarks is the same algorithm, so that comparing times makes sense."""

import pytest
from benchmarks.speed import SIZES, rounds_of, time_ours, time_yardstick


@pytest.mark.parametrize("size", SIZES[:2], ids=str)
def test_yardstick_and_tofu_choose_the_same_arms(size):
    rounds = rounds_of(size)
    assert time_yardstick(size, rounds)[1] == time_ours(size, rounds)[1]
