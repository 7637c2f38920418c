"""One regression per item on the context: what it computes, and what it does not depend on."""

import math

import numpy as np
import pytest

from halfseen import DisjointArmsWorld, InvalidInputError, PerArmRidge, Uniform, play

NAMES = np.full((3, 1), np.nan)


def contexts(n, *, dim=3, seed=0):
    random = np.random.default_rng(seed)
    rows = random.standard_normal((n, dim))
    return np.where(random.random(rows.shape) < 0.7, rows, np.nan)


def played(policy, rows, unit=1.0, offset=0.0):
    """Play rows; item 0 or 2 pays 1 by the sign of the first entry, item 1 if it is hidden."""
    decisions = []
    for row in rows:
        decision = policy.choose(NAMES, context=offset + unit * row, items=[0, 1, 2])
        right = 1 if math.isnan(row[0]) else 2 * int(row[0] > 0)
        policy.learn(decision, float(decision.arm == right))
        decisions.append(decision)
    return decisions


def test_estimates_and_widths_are_those_of_ridge_regressions_by_hand():
    policy = PerArmRidge(dim=1, radius=0.5, ridge=2.0)
    rows = contexts(7)
    logged, rewards = np.array([0, 1, 0, 1, 1, 0]), np.array([1.0, 0.0, 0.5, 2.0, -1.0, 0.0])
    policy.learn_logged(np.full((6, 1), np.nan), rewards, contexts=rows[:6], items=logged)
    policy.absorb(NAMES, context=rows[6])
    decision = policy.choose(NAMES, context=rows[6], items=[0, 1, 2])  # round 7 fits again
    seen = rows == rows
    means = np.nanmean(rows, axis=0)
    filled = np.where(seen, rows, means)
    scaled = (filled - filled.mean(axis=0)) / filled.std(axis=0)
    points = np.hstack([scaled, ~seen, np.ones((7, 1))])
    for item in range(3):
        own = points[:6][logged == item]
        gram = own.T @ own + 2.0 * np.eye(7)
        theta = np.linalg.solve(gram, own.T @ (rewards[logged == item] - rewards.mean()))
        estimate = rewards.mean() + points[6] @ theta
        width = 0.5 * math.sqrt(points[6] @ np.linalg.solve(gram, points[6]))
        assert decision.estimates[item] == pytest.approx(estimate, rel=1e-9)
        assert decision.widths[item] == pytest.approx(width, rel=1e-9)


def test_units_and_offsets_of_context_columns_do_not_matter():
    rows = contexts(60)
    plain, other = PerArmRidge(dim=1), PerArmRidge(dim=1)
    ours = [decision.arm for decision in played(plain, rows)]
    theirs = played(other, rows, np.array([8.0, 0.25, 64.0]), 1000.0)
    assert [decision.arm for decision in theirs] == ours


def test_the_order_of_the_items_does_not_matter():
    policy = PerArmRidge(dim=1)
    played(policy, contexts(40))
    (row,) = contexts(1, seed=1)
    forth = policy.score(NAMES, context=row, items=[0, 1, 2])
    back = policy.score(NAMES, context=row, items=[2, 1, 0])
    assert np.array_equal(forth.estimates, back.estimates[::-1])


def test_rewards_before_the_first_context_are_kept():
    policy = PerArmRidge(dim=1, radius=0.0)
    policy.learn_logged(np.full((4, 1), np.nan), [0.0, 1.0, 0.0, 1.0], items=[0, 1, 0, 1])
    decision = policy.choose(NAMES[:2], context=[1.0, math.nan], items=[0, 1])
    assert decision.arm == 1
    assert policy.context_dim == 2
    with pytest.raises(InvalidInputError, match="features"):
        policy.choose(NAMES[:2], context=[1.0], items=[0, 1])


def test_ties_are_broken_at_random_and_decisions_say_so():
    chosen = set()
    for seed in range(30):
        decision = PerArmRidge(dim=1, seed=seed).choose(NAMES, context=[1.0], items=[0, 1, 2])
        assert decision.probabilities.tolist() == [1 / 3] * 3
        chosen.add(decision.arm)
    assert chosen == {0, 1, 2}


@pytest.mark.parametrize("radius", [0.0, 0.3])
def test_it_learns_disjoint_arms(radius):
    realization = DisjointArmsWorld(horizon=400, observe_prob=0.9).realize(seed=0)
    ours = play(PerArmRidge(dim=1, radius=radius), realization).final_regret
    assert ours < 0.4 * play(Uniform(dim=1), realization).final_regret


def test_thompson_sampling_draws_each_item_with_the_width_as_deviation():
    """Of 400 draws; rejected at 5 standard errors. Of 1,000 draws .5 has an error of .016."""
    draws = []
    for seed in range(200):
        policy = PerArmRidge(dim=1, exploration="thompson", radius=2.0, seed=seed)
        decision = policy.choose(NAMES[:2], context=[1.0], items=[0, 1])
        draws.append(decision.widths / 2.0)
        assert abs(decision.probabilities[0] - 0.5) < 0.08
    assert abs(np.std(draws) - 1.0) < 5 * np.sqrt(0.5 / 400)
    assert abs(np.mean(draws)) < 5 / np.sqrt(400)
