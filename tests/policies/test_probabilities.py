"""A decision states the probabilities with which its arm was chosen."""

import numpy as np
import pytest
from scipy.stats import chi2

from halfseen import AmbientOful, Greedy, Imputed, LatentUcb, LinearThompson, Slate, Uniform
from policy_runs import few_arms, walk

DRAWN = {
    "thompson": {"exploration": "thompson"},
    "inverse-gap": {"exploration": "inverse-gap"},
    "ucb, shared": {"uniform_share": 0.3},
    "thompson, shared": {"exploration": "thompson", "uniform_share": 0.3},
    "inverse-gap, shared": {"exploration": "inverse-gap", "uniform_share": 0.3},
}


def redrawn(policy, slate, seed):
    """Return what a policy with another seed would choose now."""
    other = policy.fork()
    other.__dict__["seed"] = seed
    return other.decide(slate)


def surprise(choices):
    """Return how far counts of arms are from their stated probabilities.

    Given the probabilities, the sum of one-hot choices minus probabilities has mean 0 and the
    covariance Σ(diag p − pp'); its squared length in that norm is chi-square with rank many
    degrees of freedom. Returns it, over the quantile that is passed by chance with 1e-6.
    """
    laws = np.array([choice.probabilities for choice in choices])
    rest = np.bincount([choice.arm for choice in choices], minlength=laws.shape[1]) - laws.sum(0)
    covariance = np.diag(laws.sum(axis=0)) - laws.T @ laws
    rank = np.linalg.matrix_rank(covariance, tol=1e-6)
    assert rank > 0
    square = rest @ np.linalg.pinv(covariance, rcond=1e-9, hermitian=True) @ rest
    return square / chi2.isf(1e-6, rank)


@pytest.mark.parametrize("items", [False, True], ids=["new arms", "items"])
@pytest.mark.parametrize("name", DRAWN)
def test_arms_come_with_the_probabilities_that_are_stated(name, items):
    """Chi-square over 1500 seeds; each case fails by chance with 1e-6."""
    policy = LatentUcb(**DRAWN[name])
    rounds = few_arms(6 if items else 25)
    for table, rewards in rounds * (4 if items else 1):
        noise = np.random.default_rng(policy.round).normal()
        decision = policy.choose(table)
        policy.learn(decision, rewards[decision.arm] + noise)
    policy.choose(rounds[-1].table)  # opens an epoch if one is due
    slate = Slate(rounds[-1].table)
    choices = [redrawn(policy, slate, seed) for seed in range(1500)]
    assert surprise(choices) < 1.0
    wrong = [each._replace(probabilities=np.roll(each.probabilities, 1)) for each in choices]
    assert surprise(wrong) > 1.0


def test_linear_thompson_states_its_probabilities():
    """Chi-square over 1500 decisions; fails by chance with 1e-6."""
    policy = LinearThompson(dim=6)
    walk(policy, few_arms(10))
    table = few_arms(1, seed=4)[0].table
    slates = [Slate(table, id=f"visit {number}") for number in range(1500)]
    assert surprise([policy.decide(slate) for slate in slates]) < 1.0


def test_what_is_not_drawn_has_probability_1():
    for policy in (AmbientOful(dim=6), Greedy(dim=6), LatentUcb(), LatentUcb(exploration="greedy")):
        for decision in walk(policy, few_arms(12))[8:]:
            assert decision.probability == 1.0
            assert np.count_nonzero(decision.probabilities) == 1


def test_chance_has_equal_probabilities():
    table = few_arms(1)[0].table
    for policy in (Uniform(dim=6), LatentUcb(), LatentUcb(exploration="inverse-gap")):
        law = policy.choose(table).probabilities
        assert law.tolist() == [1.0 / len(table)] * len(table)


def test_a_uniform_share_is_mixed_in():
    rounds = few_arms(20)
    decision = walk(LatentUcb(uniform_share=0.4), rounds)[-1]
    law = np.sort(decision.probabilities)
    n = len(law)
    assert law == pytest.approx([*[0.4 / n] * (n - 1), 0.6 + 0.4 / n])


def test_the_farther_an_estimate_is_below_the_best_the_rarer_is_its_arm():
    """1/probability − n_arms is γ times the gap, with one γ, which grows from round to round."""
    rates = []
    policy = LatentUcb(exploration="inverse-gap")
    for at, (table, rewards) in enumerate(few_arms(120)):
        decision = policy.choose(table)
        policy.learn(decision, rewards[decision.arm] + 0.3 * np.random.default_rng(at).normal())
        gaps = decision.estimates.max() - decision.estimates
        rest = gaps > 0.0
        found = (1.0 / decision.probabilities[rest] - len(table)) / gaps[rest]
        if at >= 20:
            assert found == pytest.approx(found[0], rel=1e-9)
            rates.append(found[0] * policy.diagnostics()["noise_scale"] / np.sqrt(len(table)))
    assert 1.5 < rates[-1] / rates[0] < np.sqrt(120 / 20)


@pytest.mark.parametrize("name", DRAWN)
def test_neither_units_nor_the_order_of_arms_change_a_drawn_choice(name):
    """Powers of two change no bit, so nothing may change at all."""
    policy, other = (LatentUcb(seed=3, **DRAWN[name]) for _ in range(2))
    random = np.random.default_rng(0)
    factors = 2.0 ** random.integers(-9, 9, 6)
    for table, rewards in few_arms(40):
        order = random.permutation(len(table))
        decision, theirs = policy.choose(table), other.choose((factors * table)[order])
        assert order[theirs.arm] == decision.arm
        close = {"atol": 0.2} if "thompson" in name else {"rtol": 1e-6}  # frequencies vary
        np.testing.assert_allclose(theirs.probabilities, decision.probabilities[order], **close)
        policy.learn(decision, rewards[decision.arm])
        other.learn(theirs, 8.0 * rewards[decision.arm])


@pytest.mark.parametrize(
    "policy",
    [
        LatentUcb(exploration="inverse-gap", uniform_share=0.5),
        LatentUcb(exploration="thompson"),
        AmbientOful(dim=6),
        LinearThompson(dim=6),
        Imputed(dim=6, exploration="thompson"),
    ],
    ids=repr,
)
def test_one_round_without_exploring_plays_the_best_estimate(policy):
    for table, rewards in few_arms(30):
        decision = policy.choose(table, explore=False)
        policy.learn(decision, rewards[decision.arm])
        if decision.estimates.any():
            assert decision.probability == 1.0
            assert decision.estimates[decision.arm] == decision.estimates.max()
    assert policy.round == 30


def test_widths_of_a_score_are_deviations_and_not_draws():
    rounds = few_arms(20)
    optimistic, drawing = LatentUcb(), LatentUcb(exploration="thompson")
    for table, rewards in rounds:
        for policy in (optimistic, drawing):
            policy.learn_logged(table[:1], rewards[:1])
    ours, theirs = optimistic.score(rounds[0].table), drawing.score(rounds[0].table)
    np.testing.assert_array_equal(ours.widths, theirs.widths)
    assert (theirs.widths > 0.0).all()
