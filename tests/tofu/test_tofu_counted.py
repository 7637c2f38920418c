"""TOFU that counts observation probabilities, and TOFU that keeps arms instead of their moments."""

import numpy as np
import pytest

from halfseen import TofuPov, TwoPhase, load
from halfseen.linear.covariance import Moments
from halfseen.linear.history import Reservoir
from halfseen.tofu import parameters, subspace
from policy_runs import few_arms, looks, offers, walk


def tofu(**settings):
    basics = {"dim": 6, "rank": 2, "observe_prob": 0.7, "burn_in": 5, "noise_scale": 0.1}
    return TofuPov(**(basics | settings))


def test_counted_probabilities_are_the_shares_of_arms_that_show_a_feature():
    rounds = few_arms(11)
    seen = ~np.isnan(np.vstack([offer.table for offer in rounds[:5]]))
    ours = walk(tofu(observe_prob="counted"), rounds)
    theirs = walk(tofu(observe_prob=seen.mean(0)), rounds)
    for counted, given in zip(ours, theirs, strict=True):
        assert counted.arm == given.arm
        np.testing.assert_allclose(counted.scores, given.scores, rtol=1e-9)


def test_a_feature_that_was_never_seen_may_be_counted():
    policy, rounds = tofu(observe_prob="counted"), few_arms(14)
    for offer in rounds:
        offer.table[:, 3] = np.nan
    for decision in walk(policy, rounds):
        assert np.isfinite(decision.scores).all()
    assert np.abs(policy.basis[3]).max() < 1e-12


# Beyond 8192 features; here the limit is 5


@pytest.fixture
def low_limit(monkeypatch):
    for module in (parameters, subspace):
        monkeypatch.setattr(module, "LARGEST_DENSE_DIM", 5)


def test_arms_are_kept_beyond_the_limit_within_the_memory_given(low_limit):
    policy = tofu(memory_bytes=8 * 6 * 50)
    walk(policy, offers(20))
    assert policy._offered.rows.shape == (50, 6)
    for policy in (tofu(), TwoPhase(dim=6, rank=2, observe_prob=0.7, split=5)):
        assert policy._offered.max_rows == 64_000_000 // 48
    assert tofu(memory_bytes=1)._offered.max_rows == 2
    assert isinstance(tofu(dim=5)._offered, Moments)


@pytest.mark.parametrize("observe_prob", [0.7, "counted", None])
def test_a_policy_that_keeps_arms_is_saved_and_continues(low_limit, tmp_path, observe_prob):
    policy = tofu(observe_prob=observe_prob, memory_bytes=8 * 6 * 20)
    walk(policy, few_arms(13))
    assert isinstance(policy._offered, Reservoir)
    policy.save(tmp_path / "policy")
    restored, rounds = load(tmp_path / "policy"), few_arms(15, seed=1)
    ours, theirs = walk(policy, rounds), walk(restored, rounds)
    assert [looks(each) for each in ours] == [looks(each) for each in theirs]
