"""Linear policies without epochs: OFUL, Thompson sampling, greedy play; and a fair die."""

import math

import numpy as np
import pytest

from halfseen import AmbientOful, Greedy, LinearThompson, Uniform
from halfseen.linear.ridge import Ridge
from policy_runs import few_arms, walk

DIM = 3


def taught(policy, n_rounds=12):
    """Let a policy learn from full and half-seen arms; return V and Σzr of what it learned."""
    random = np.random.default_rng(0)
    gram, response = np.eye(DIM), np.zeros(DIM)
    for _ in range(n_rounds):
        arm = np.where(random.random(DIM) < 0.7, random.standard_normal(DIM), np.nan)
        reward = float(random.standard_normal())
        policy.learn(policy.choose([arm]), reward)
        seen = np.nan_to_num(arm)
        gram += np.outer(seen, seen)
        response += reward * seen
    return gram, response


def test_parameters_are_drawn_from_the_stated_normal_law():
    """Each of 3 means and 6 covariances beyond 5 standard errors: in all with probability 5e-6."""
    policy = LinearThompson(dim=DIM, scale=0.7, seed=5)
    gram, response = taught(policy)
    covariance, mean = 0.49 * np.linalg.inv(gram), np.linalg.solve(gram, response)
    n = 4000
    draws = np.array([policy.choose(np.eye(DIM)).scores for _ in range(n)])
    assert (np.abs(draws.mean(axis=0) - mean) < 5 * np.sqrt(np.diag(covariance) / n)).all()
    centred = draws - mean
    error = np.sqrt((np.outer(np.diag(covariance), np.diag(covariance)) + covariance**2) / n)
    assert (np.abs(centred.T @ centred / n - covariance) < 5 * error).all()


def test_estimates_are_those_of_the_ridge_and_the_draw_is_the_same_for_all_arms():
    policy = LinearThompson(dim=DIM)
    gram, response = taught(policy)
    arms = np.array([[1.0, 2.0, 0.0], [0.0, 0.0, 1.0], [1.0, 2.0, 1.0]])
    decision = policy.choose(arms)
    estimate = np.linalg.solve(gram, response)
    assert decision.estimates == pytest.approx(arms @ estimate, rel=1e-10)
    assert decision.scores[2] == pytest.approx(decision.scores[:2].sum(), rel=1e-10)
    assert decision.widths.min() < decision.widths.max()


def test_the_scale_is_the_noise_scale_unless_it_is_given():
    plain = LinearThompson(dim=2, noise_scale=0.3).choose(np.eye(2))
    given = LinearThompson(dim=2, noise_scale=7.0, scale=0.3).choose(np.eye(2))
    assert plain.widths == pytest.approx(given.widths, rel=1e-14)
    wide, narrow = (LinearThompson(dim=2, scale=s).choose(np.eye(2)) for s in (1.0, 0.25))
    assert narrow.widths == pytest.approx(0.25 * wide.widths, rel=1e-14)


def test_without_scale_thompson_is_greedy():
    rounds = few_arms(40)
    ours = walk(LinearThompson(dim=6, scale=0.0), rounds)
    theirs = walk(Greedy(dim=6), rounds)
    assert [decision.arm for decision in ours] == [decision.arm for decision in theirs]
    for one, other in zip(ours, theirs, strict=True):
        assert one.scores == pytest.approx(other.scores, rel=1e-9, abs=1e-12)


def test_greedy_plays_the_best_estimate_of_the_ridge():
    policy, model = Greedy(dim=6, ridge=0.5), Ridge(6, ridge=0.5)
    for table, rewards in few_arms(40):
        decision = policy.choose(table)
        expected = np.nan_to_num(table) @ model.estimate
        assert decision.scores == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert expected[decision.arm] == pytest.approx(expected.max(), abs=1e-12)
        assert not decision.widths.any()
        policy.learn(decision, rewards[decision.arm])
        model.update(table[decision.arm], rewards[decision.arm])


def test_oful_by_hand():
    """λ = 4, S = 1/2, R = 1, δ = e⁻²: at the start β = 2·½ + √4 = 3 and a unit arm has width ½."""
    policy = AmbientOful(
        dim=2, ridge=4.0, theta_bound=0.5, noise_scale=1.0, failure_prob=math.exp(-2)
    )
    first = policy.choose([[1.0, 0.0], [0.0, 2.0], [math.nan, 1.0]])
    assert first.arm == 1
    assert first.estimates.tolist() == [0.0, 0.0, 0.0]
    assert first.widths == pytest.approx([1.5, 3.0, 1.5], rel=1e-14)
    policy.learn(first, 4.0)
    # V = diag(4, 8), Σzr = (0, 8): the estimate is (0, 1), det V / λ² = 2.
    radius = 1.0 + math.sqrt(2 * (0.5 * math.log(2.0) + 2))
    second = policy.choose([[1.0, 0.0], [0.0, 2.0], [math.nan, 1.0]])
    assert second.estimates == pytest.approx([0.0, 2.0, 1.0], rel=1e-14)
    assert second.widths == pytest.approx(
        [radius / 2, 2 * radius / math.sqrt(8), radius / math.sqrt(8)], rel=1e-14
    )


def test_uniform_chooses_every_arm_equally_often():
    """Counts of 6000 throws: beyond 5 standard deviations with probability 2e-6 over 4 arms."""
    policy = Uniform(dim=1, seed=0)
    arms = [policy.choose(np.ones((4, 1))).arm for _ in range(6000)]
    counts = np.bincount(arms, minlength=4)
    assert np.abs(counts - 1500).max() < 5 * math.sqrt(6000 * 0.25 * 0.75)
