"""Impute, standardise, intercept: what the inner policy sees, and what it has learned."""

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from halfseen import Imputed, Standardized
from halfseen.baselines.imputed import Scaling
from policy_runs import few_arms, walk

FITS = [5, 8, 12, 18, 27]  # rounds at which `small` fits


def small(**settings):
    return Standardized(**{"dim": 6, "first_fit": 4, "noise_scale": 0.1} | settings)


@pytest.mark.parametrize("imputer", ["zero", "mean", "iterative"])
def test_columns_are_those_of_impute_then_standardise(imputer):
    rounds, policy = few_arms(12), small(imputer=imputer)
    walk(policy, rounds)
    imputed = Imputed(dim=6, first_fit=4, noise_scale=0.1, imputer=imputer)
    walk(imputed, rounds)
    before = np.vstack([offer.table for offer in rounds[:11]])  # the last fit is before round 12
    scaler = StandardScaler().fit(imputed.shown(before))
    table = few_arms(1, seed=1)[0].table
    shown = policy.shown(table)
    assert shown.shape == (len(table), 7)
    assert shown[:, :6] == pytest.approx(scaler.transform(imputed.shown(table)))
    assert (shown[:, 6] == 1.0).all()


def test_indicators_are_one_where_hidden():
    policy = small(indicators=True)
    walk(policy, few_arms(9))
    table = few_arms(1, seed=1)[0].table
    assert np.array_equal(policy.shown(table)[:, 6:12], np.isnan(table))


@pytest.mark.parametrize("exploration", ["ucb", "thompson", "greedy"])
def test_all_rewards_are_learned_as_columns_are_now(exploration):
    rounds, policy = few_arms(30), small(exploration=exploration)
    decisions = walk(policy, rounds)
    arms = np.array([np.where(each.mask, each.values, np.nan) for each in decisions])
    rewards = [offer.rewards[each.arm] for offer, each in zip(rounds, decisions, strict=True)]
    shown = policy.shown(arms)
    gram, response = shown.T @ shown + np.eye(7), shown.T @ rewards
    table = few_arms(1, seed=1)[0].table
    expected = policy.shown(table) @ np.linalg.solve(gram, response)
    assert policy.choose(table).estimates == pytest.approx(expected, abs=1e-9)


def test_a_late_reward_counts_as_if_it_had_come_in_time():
    """The fits do not depend on rewards, so both regressions have the same samples."""
    rounds = few_arms(9)
    late, timely = small(exploration="greedy"), small(exploration="greedy")
    first = late.choose(rounds[0].table), timely.choose(rounds[0].table)
    assert first[0].arm == first[1].arm
    timely.learn(first[1], 0.7)
    for offer in rounds[1:]:
        for policy in (late, timely):
            policy.absorb(offer.table)
    for _ in range(6):
        one = rounds[1].table[:1]
        late.learn(late.choose(one), 0.2)
        timely.learn(timely.choose(one), 0.2)
    late.learn(first[0], 0.7)
    table = rounds[2].table
    assert late.choose(table).estimates == pytest.approx(timely.choose(table).estimates, abs=1e-9)


def test_units_and_offsets_of_columns_do_not_matter():
    """From the first fit on; before it, features are in their own units."""
    scale, shift = 10.0 ** np.arange(-3, 3), np.arange(6) * 1e3
    first, second = small(), small()
    for number, (table, rewards) in enumerate(few_arms(40), start=1):
        arms = table[:1] if number < FITS[0] else table
        one, other = first.choose(arms), second.choose(arms * scale + shift)
        assert one.arm == other.arm
        assert other.scores == pytest.approx(one.scores, abs=1e-6) or number < FITS[0]
        first.learn(one, rewards[one.arm])
        second.learn(other, rewards[one.arm])


def test_constant_columns_keep_their_unit():
    scaling = Scaling.of(np.array([[0.1, 1e9], [0.1, 1e9], [0.1, 1e9 + 1]]))
    assert scaling.deviations[0] == 1.0
    assert scaling.deviations[1] == pytest.approx(np.sqrt(2) / 3)
