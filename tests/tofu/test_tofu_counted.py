"""TOFU that counts observation probabilities, and TOFU that keeps arms instead of their moments."""

import numpy as np
import pytest

from halfseen import TwoPhase
from halfseen.linear.covariance import Moments
from halfseen.tofu import parameters, subspace
from policy_runs import few_arms, offers, tofu, walk


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
