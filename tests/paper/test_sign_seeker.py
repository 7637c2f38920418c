"""The policy that knows the hard family: its waiting time and regret are those of the construction.

Statistical tests compare a mean over runs with its expectation, at 5 standard errors.
"""

import itertools
import math

import numpy as np
import pytest

from halfseen import play, theory
from halfseen.paper import HardInstanceWorld, SignSeeker
from halfseen.testing import check_policy
from halfseen.theory import Gaps

NAN = math.nan


def test_the_contracts_of_policies_hold():
    check_policy(lambda: SignSeeker(dim=6))


def loss_by_enumeration(gaps, n_arms, observe_prob):
    """Return the regret of a blind round over all slates of arm kinds that do not reveal σ = 1."""
    g, d, silent = gaps.reward_gap, gaps.hidden_gap, 1 - observe_prob**2 / 2
    kinds = [((a, b), 1 / 8 / silent) for a in (1, -1) for b in (1, -1)]
    kinds.append((None, (1 - observe_prob**2) / 2 / silent))
    total = 0.0
    for slate in itertools.product(kinds, repeat=n_arms):
        labels = [label for label, _ in slate]
        means = [0.0 if label is None else label[0] * g + label[1] * d for label in labels]
        blind = [0.0 if label is None else label[0] * g for label in labels]
        total += math.prod(share for _, share in slate) * (max(means) - max(blind))
    return total


@pytest.mark.parametrize("observe_prob", [0.1, 0.5])
@pytest.mark.parametrize(
    "gaps", [Gaps(reward_gap=0.1, hidden_gap=0.3), Gaps(reward_gap=0.2, hidden_gap=0.2)]
)
def test_the_loss_of_a_blind_round_is_that_of_all_slates(gaps, observe_prob):
    found = theory.uninformed_loss(gaps, n_arms=4, observe_prob=observe_prob)
    assert found == pytest.approx(loss_by_enumeration(gaps, 4, observe_prob), rel=1e-12)


@pytest.mark.parametrize(("n_arms", "observe_prob"), [(4, 0.4), (32, 0.1)])
def test_wait_and_regret_are_those_of_the_construction_and_above_the_lower_bound(
    n_arms, observe_prob
):
    # 200 runs; the deviation of a geometric waiting time is about its mean.
    world = HardInstanceWorld(
        n_arms=n_arms, horizon=60, observe_prob=observe_prob, noise_scale=10.0, reward_sign=1
    )
    waits, regrets = [], []
    for seed in range(200):
        policy = SignSeeker(dim=4)
        regrets.append(play(policy, world.realize(seed)).final_regret)
        waits.append(policy.diagnostics()["wait"][0])
    truth = world.realize(0)
    expected = theory.expected_wait(n_arms=n_arms, observe_prob=observe_prob, horizon=60)
    cost = theory.discovery_cost(truth.problem(), truth.gaps)
    for found, mean in ((waits, expected), (regrets, cost)):
        error = np.std(found, ddof=1) / math.sqrt(len(found))
        assert abs(np.mean(found) - mean) < 5 * error
    assert theory.explicit_lower_bound(truth.problem(), truth.gaps).hidden < cost


@pytest.mark.parametrize(
    ("noise_scale", "observe_prob", "factor"), [(1e4, 0.001, 4.22), (100.0, 0.02, 16.6)]
)
def test_how_far_the_bound_is_from_what_the_policy_is_expected_to_pay(
    noise_scale, observe_prob, factor
):
    # The proof loses 2 in the probability of a wrong guess, 2 in what one costs, and where the sign
    # is found 4 in the rate of discovery.
    truth = HardInstanceWorld(
        n_arms=32, horizon=1000, observe_prob=observe_prob, noise_scale=noise_scale
    ).realize(0)
    bound = theory.explicit_lower_bound(truth.problem(), truth.gaps).hidden
    assert theory.discovery_cost(truth.problem(), truth.gaps) / bound == pytest.approx(
        factor, rel=0.01
    )


@pytest.mark.parametrize("reward_sign", [1, -1])
def test_once_the_sign_is_known_nothing_is_lost(reward_sign):
    world = HardInstanceWorld(n_arms=8, horizon=200, observe_prob=0.5, reward_sign=reward_sign)
    realization = world.realize(3)
    policy = SignSeeker(dim=4, reward_sign=reward_sign)
    trace = play(policy, realization)
    wait = policy.diagnostics()["wait"][0]
    assert policy.hidden_sign == realization.hidden_sign
    assert trace.final_regret == pytest.approx(trace.regret[wait - 1] if wait else 0.0)


def test_it_plays_the_better_reward_label_until_it_knows_the_hidden_sign():
    policy = SignSeeker(dim=4)
    decisions = [[-0.5, 0.5, 0, 0], [0.5, -0.5, 0, 0], [0.5, 0.5, 0, 0]]
    assert policy.choose(decisions[:2]).arm == 1
    policy.absorb([[NAN, NAN, -0.35, -0.35]])
    assert policy.choose(decisions).arm == 2
    assert policy.diagnostics() == {"wait": [1]}


def test_a_side_arm_is_better_than_the_wrong_reward_label():
    assert SignSeeker(dim=4).choose([[-0.5, 0.5, 0, 0], [NAN, NAN, 0.35, NAN]]).arm == 1
