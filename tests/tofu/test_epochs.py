"""Epochs start as in the paper, and their failure probabilities add up to no more than δ/2."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfseen import TofuPov
from halfseen.tofu.epoch import EpochSchedule

burn_ins = st.integers(1, 300)
growths = st.sampled_from([1.0001, 1.01, 1.1, 1.25, 1.5, 2.0, 3.0, 10.0]) | st.floats(1.001, 50.0)
horizons = st.integers(1, 2000)


def shares(n_epochs, failure_prob=0.05, **settings):
    policy = TofuPov(dim=4, rank=1, observe_prob=0.5, failure_prob=failure_prob, **settings)
    return [policy.epoch_failure_prob(epoch) for epoch in range(n_epochs)]


@given(burn_ins, growths, horizons)
def test_starts_follow_the_rule_of_the_paper(burn_in, growth, horizon):
    expected, start = [], burn_in + 1
    while start <= horizon:
        expected.append(start)
        start = max(start + 1, math.ceil(growth * start))
    assert EpochSchedule(burn_in, growth).starts(horizon) == expected


@pytest.mark.parametrize(
    ("horizon", "divisor"), [(400, 22), (600, 24), (1, 4), (2, 6), (256, 20), (257, 22), (8000, 30)]
)
@pytest.mark.parametrize("burn_in", [1, 30])
def test_with_a_horizon_the_divisor_is_that_of_the_paper(horizon, divisor, burn_in):
    assert set(shares(5, horizon=horizon, burn_in=burn_in)) == {0.05 / divisor}


@pytest.mark.parametrize("growth", [1.25, 1.5, 3.0])
def test_with_another_growth_every_epoch_gets_the_same_share(growth):
    n_epochs = len(EpochSchedule(5, growth).starts(300))
    expected = [0.05 / (2 * n_epochs)] * n_epochs
    assert shares(n_epochs, horizon=300, burn_in=5, growth=growth) == expected
    assert shares(1, horizon=5, burn_in=9, growth=growth) == [0.05 / 2]  # no epoch at all


@given(burn_ins, growths, horizons, st.floats(1e-6, 0.5))
def test_with_a_horizon_all_shares_add_up_to_half_of_delta_at_most(burn_in, growth, horizon, total):
    n_epochs = len(EpochSchedule(burn_in, growth).starts(horizon))
    (share,) = shares(1, total, horizon=horizon, burn_in=burn_in, growth=growth)
    assert n_epochs * share <= total / 2 * (1 + 1e-12)


@pytest.mark.parametrize("n_epochs", [1, 10, 10_000])
def test_without_a_horizon_any_number_of_shares_adds_up_to_less_than_half_of_delta(n_epochs):
    found = shares(n_epochs)
    assert found[:4] == pytest.approx([0.05 / (2 * (e + 1) * (e + 2)) for e in range(4)][:n_epochs])
    assert math.fsum(found) == pytest.approx(0.025 * n_epochs / (n_epochs + 1), rel=1e-12)
