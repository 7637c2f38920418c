"""Epochs tile the rounds, and their failure probabilities add up to no more than δ/2."""

import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfseen.errors import InvalidSettingError
from halfseen.tofu.epoch import EpochSchedule

schedules = st.builds(
    EpochSchedule,
    burn_in=st.integers(1, 300),
    growth=st.sampled_from([1.0001, 1.01, 1.1, 1.25, 1.5, 2.0, 3.0, 10.0]) | st.floats(1.001, 50.0),
)
horizons = st.integers(1, 2000)


@pytest.mark.parametrize(
    ("burn_in", "horizon", "starts"),
    [
        (30, 400, [31, 62, 124, 248]),
        (40, 600, [41, 82, 164, 328]),
        (50, 400, [51, 102, 204]),
        (500, 5000, [501, 1002, 2004, 4008]),
        (400, 8000, [401, 802, 1604, 3208, 6416]),
    ],
)
def test_epochs_of_the_published_studies_start_when_they_did(burn_in, horizon, starts):
    assert EpochSchedule(burn_in=burn_in).starts(horizon) == starts


@given(schedules, horizons)
def test_burn_in_and_epochs_tile_the_rounds(schedule, horizon):
    rounds = list(range(1, min(schedule.burn_in, horizon) + 1))
    epochs = [schedule.rounds(e, horizon) for e in range(len(schedule.starts(horizon)))]
    for epoch in epochs:
        assert len(epoch) >= 1
        rounds += epoch
    assert rounds == list(range(1, horizon + 1))


@given(schedules, horizons)
def test_the_epoch_at_a_round_is_the_one_whose_rounds_hold_it(schedule, horizon):
    epoch = schedule.epoch_at(horizon)
    if horizon <= schedule.burn_in:
        assert epoch == -1
    else:
        assert horizon in schedule.rounds(epoch, horizon)
        assert epoch == len(schedule.starts(horizon)) - 1


@given(schedules, horizons)
def test_starts_follow_the_rule_of_the_paper(schedule, horizon):
    starts = schedule.starts(horizon)
    expected, start = [], schedule.burn_in + 1
    while start <= horizon:
        expected.append(start)
        start = max(start + 1, math.ceil(schedule.growth * start))
    assert starts == expected
    assert [schedule.next_start(start) for start in starts[:-1]] == starts[1:]


@given(schedules, horizons, st.integers(0, 500))
def test_starts_do_not_depend_on_the_horizon(schedule, horizon, later):
    starts = schedule.starts(horizon)
    assert schedule.starts(horizon + later)[: len(starts)] == starts


def test_epochs_by_hand():
    schedule = EpochSchedule(burn_in=1, growth=1.5)
    assert schedule.starts(30) == [2, 3, 5, 8, 12, 18, 27]
    assert [schedule.epoch_at(round) for round in range(9)] == [-1, -1, 0, 1, 1, 2, 2, 2, 3]
    assert schedule.rounds(1, 30) == range(3, 5)
    assert schedule.rounds(1, 3) == range(3, 4)
    assert list(schedule.rounds(6, 30)) == [27, 28, 29, 30]
    assert list(schedule.rounds(7, 30)) == []


def test_a_growth_near_one_still_moves_on():
    assert EpochSchedule(burn_in=3, growth=1.0001).starts(8) == [4, 5, 6, 7, 8]


def test_there_is_no_epoch_when_burn_in_takes_all_rounds():
    schedule = EpochSchedule(burn_in=10)
    assert schedule.starts(10) == []
    assert schedule.starts(11) == [11]
    assert list(schedule.rounds(0, 10)) == []


# -- δ_e -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("horizon", "divisor"), [(400, 22), (600, 24), (1, 4), (2, 6), (256, 20), (257, 22), (8000, 30)]
)
@pytest.mark.parametrize("burn_in", [1, 30])
def test_with_a_horizon_the_divisor_is_that_of_the_paper(horizon, divisor, burn_in):
    schedule = EpochSchedule(burn_in=burn_in)
    shares = {schedule.failure_prob(0.05, epoch, horizon) for epoch in range(5)}
    assert shares == {0.05 / divisor}


@pytest.mark.parametrize("growth", [1.25, 1.5, 3.0])
def test_with_another_growth_every_epoch_gets_the_same_share(growth):
    schedule = EpochSchedule(burn_in=5, growth=growth)
    n_epochs = len(schedule.starts(300))
    shares = [schedule.failure_prob(0.05, epoch, 300) for epoch in range(n_epochs)]
    assert shares == [0.05 / (2 * n_epochs)] * n_epochs


def test_with_another_growth_and_no_epoch_at_all_the_share_is_still_finite():
    assert EpochSchedule(burn_in=9, growth=1.5).failure_prob(0.1, 0, 5) == 0.05


@pytest.mark.parametrize("growth", [1.25, 2.0])
def test_without_a_horizon_shares_shrink_with_the_epoch(growth):
    schedule = EpochSchedule(burn_in=30, growth=growth)
    shares = [schedule.failure_prob(0.12, epoch, None) for epoch in range(4)]
    assert shares == pytest.approx([0.12 / 4, 0.12 / 12, 0.12 / 24, 0.12 / 40], rel=1e-15)


@given(schedules, horizons, st.floats(1e-6, 0.5))
def test_with_a_horizon_all_shares_add_up_to_half_of_delta_at_most(schedule, horizon, total):
    n_epochs = len(schedule.starts(horizon))
    shares = [schedule.failure_prob(total, epoch, horizon) for epoch in {0, n_epochs - 1}]
    assert n_epochs * max(shares) <= total / 2 * (1 + 1e-12)


@given(st.integers(1, 10**9), st.integers(1, 10**12))
def test_doubling_never_has_more_epochs_than_the_divisor_counts(burn_in, horizon):
    n_epochs = len(EpochSchedule(burn_in=burn_in).starts(horizon))
    assert n_epochs <= (horizon - 1).bit_length() + 2  # ⌈log₂ T⌉ + 2 without rounding


@pytest.mark.parametrize("n_epochs", [1, 10, 10_000])
def test_without_a_horizon_any_number_of_shares_adds_up_to_less_than_half_of_delta(n_epochs):
    schedule = EpochSchedule(burn_in=30)
    spent = math.fsum(schedule.failure_prob(0.05, epoch, None) for epoch in range(n_epochs))
    assert spent == pytest.approx(0.025 * n_epochs / (n_epochs + 1), rel=1e-12)
    assert spent < 0.025


# -- settings --------------------------------------------------------------------------------------


@pytest.mark.parametrize("burn_in", [0, -1, 1.0, None, True, "30"])
def test_burn_in_must_be_a_whole_number_from_one_on(burn_in):
    with pytest.raises(InvalidSettingError, match=r"burn_in must be an integer in \[1, inf\), got"):
        EpochSchedule(burn_in=burn_in)


@pytest.mark.parametrize("growth", [1, 0.5, -2.0, 1e7, math.nan, math.inf, "2", None, True])
def test_growth_must_be_a_number_above_one(growth):
    with pytest.raises(InvalidSettingError, match=r"growth must be in \(1, 1e\+06\], got"):
        EpochSchedule(burn_in=30, growth=growth)


def test_numpy_numbers_become_plain_ones():
    schedule = EpochSchedule(burn_in=np.int64(30), growth=np.float32(1.5))
    assert (type(schedule.burn_in), type(schedule.growth)) == (int, float)
    assert schedule == EpochSchedule(burn_in=30, growth=1.5)


def test_a_schedule_cannot_be_changed():
    schedule = EpochSchedule(burn_in=30)
    with pytest.raises(FrozenInstanceError):
        schedule.burn_in = 40
    with pytest.raises(TypeError):
        EpochSchedule(30)
