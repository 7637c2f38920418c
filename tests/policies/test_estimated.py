"""ε-greedy with an estimator of scikit-learn."""

import numpy as np
import pytest

from halfseen import EpsilonGreedy, load
from halfseen.baselines import estimated
from halfseen.baselines.estimated import ESTIMATORS


def played(n, estimator, **settings):
    """A policy that has met visitors: item 0 is good for the middle, item 1 for both ends."""
    policy = EpsilonGreedy(dim=1, estimator=estimator, **settings)
    random, names = np.random.default_rng(0), np.full((2, 1), np.nan)
    for visitor in random.uniform(-1.0, 1.0, n):
        hidden = np.where(random.random(2) < 0.3, np.nan, [visitor, random.normal()])
        decision = policy.choose(names, context=hidden, items=[0, 1])
        policy.learn(decision, float(decision.arm == (abs(visitor) > 0.5)))
    return policy


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_each_item_learns_a_shape_that_no_line_has(estimator):
    policy = played(260, estimator, epsilon=0.2)
    names = np.full((2, 1), np.nan)
    chosen = [
        policy.choose(names, context=[visitor, np.nan], items=[0, 1], explore=False).arm
        for visitor in (-0.9, 0.0, 0.9)
    ]
    assert chosen == [1, 0, 1]


def test_probabilities_share_epsilon_among_all_arms():
    policy = played(100, "forest", epsilon=0.2)
    law = policy.choose(np.full((2, 1), np.nan), context=[0.0, 0.0], items=[0, 1]).probabilities
    assert sorted(law.round(12)) == [0.1, 0.9]


def test_rewards_count_from_the_next_doubling_on_also_after_loading(tmp_path):
    policy = played(70, "forest")
    policy.save(tmp_path / "policy.npz")
    twin = load(tmp_path / "policy.npz")
    assert twin._n_fitted == policy._n_fitted == 63
    arms = {"context": [0.3, -1.0], "items": [0, 1]}
    scores = [each.score([[np.nan], [np.nan]], **arms).estimates for each in (policy, twin)]
    assert (scores[0] == scores[1]).all()


def test_the_latest_rewards_are_kept_also_after_loading(monkeypatch, tmp_path):
    monkeypatch.setattr(estimated, "_MOST_ROWS", 20)
    policy = played(70, "boosted-trees")
    assert (policy._played.columns.rounds == np.arange(41, 71)).all()
    assert policy._n_fitted == 23  # in round 64
    policy.learn_logged(np.full((200, 1), 0.5), [1.0] * 200)
    assert len(policy._played) < 40
    policy.save(tmp_path / "policy.npz")
    twin = load(tmp_path / "policy.npz")
    scores = [each.score([[0.5], [0.0]], context=[0.3, -1.0]) for each in (policy, twin)]
    assert (scores[0].estimates == scores[1].estimates).all()
    assert scores[0].estimates[0] == 1.0
