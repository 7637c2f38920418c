"""The one-shot strategy: TOFU-POV until its second epoch, and never a second epoch."""

import numpy as np
import pytest

from halfseen import InvalidSettingError, TofuPov, TwoPhase
from policy_runs import few_arms, looks, walk

BASICS = {"dim": 6, "rank": 2, "observe_prob": 0.7, "noise_scale": 0.1}


@pytest.mark.parametrize("replay", ["none", "burn-in"])
@pytest.mark.parametrize("first", ["zero-filled", "uniform"])
def test_up_to_the_second_epoch_it_is_tofu(first, replay):
    settings = BASICS | {"burn_in_policy": first, "replay": replay, "seed": 3}
    two_phase, tofu = TwoPhase(**settings, split=9), TofuPov(**settings, burn_in=9)
    rounds = few_arms(40)
    ours, theirs = walk(two_phase, rounds), walk(tofu, rounds)
    assert [record.round for record in tofu.epoch_log] == [10, 20, 40]
    assert [looks(d) for d in ours[:19]] == [looks(d) for d in theirs[:19]]
    assert [d.scores.tolist() for d in ours[19:]] != [d.scores.tolist() for d in theirs[19:]]


@pytest.mark.parametrize("horizon", [None, 300])
def test_the_subspace_is_estimated_once(horizon):
    policy = TwoPhase(**BASICS, split=4, horizon=horizon)
    rounds = few_arms(300)
    walk(policy, rounds[:5])
    basis = policy.basis.copy()
    decisions = walk(policy, rounds[5:])
    assert [record.round for record in policy.epoch_log] == [5]
    assert np.array_equal(policy.basis, basis)
    assert {decision.epoch for decision in decisions} == {0}


@pytest.mark.parametrize(
    ("horizon", "split", "burn_in"),
    [(1000, {}, 100), (400, {}, 55), (10_000, {"split": 0.5}, 100), (1000, {"split": 0.3}, 8)],
)
def test_the_split_is_a_power_of_the_horizon_by_default_two_thirds(horizon, split, burn_in):
    assert TwoPhase(**BASICS, horizon=horizon, **split).schedule.burn_in == burn_in


def test_with_a_horizon_half_of_the_failure_probability_is_the_second_phases():
    policy = TwoPhase(**BASICS, split=4, horizon=50, failure_prob=0.06)
    walk(policy, few_arms(6))
    assert policy.epoch_log[0].failure_prob == 0.03


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ({"split": 0}, "split .* got 0"),
        ({"split": 2.5}, r"split .* got 2\.5"),
        ({"split": "best"}, "split .* got 'best'"),
        ({"split": 0.5}, "split=0.5 needs a horizon"),
    ],
    ids=str,
)
def test_a_bad_setting_is_refused_by_name_and_value(setting, says):
    with pytest.raises(InvalidSettingError, match=says):
        TwoPhase(**BASICS | {"split": 5} | setting)
