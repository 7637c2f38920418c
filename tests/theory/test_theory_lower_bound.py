"""The lower bound: the hard problem by enumeration, the sums term by term, the constants."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfseen import theory
from halfseen.errors import InvalidSettingError
from halfseen.theory import Gaps, Problem

HARD = Problem(
    dim=4,
    rank=3,
    n_arms=4,
    horizon=50,
    observe_prob=0.1,
    arm_bound=1.0,
    last_eigenvalue=0.1,
    incoherence=1.0,
    theta_bound=1.0,
    noise_scale=2.0,
)
SIGNS = (1, -1)


def leaking_problem(n_arms, horizon, theta_bound, reveal, signal):
    """Return a hard problem with Kp² = `reveal` and (S B_X / R)² = `signal`."""
    return HARD.replace(
        n_arms=n_arms,
        horizon=horizon,
        observe_prob=math.sqrt(reveal / n_arms),
        theta_bound=theta_bound,
        noise_scale=theta_bound / math.sqrt(signal),
    )


leaks = st.floats(-8.0, math.log10(0.2499)).map(lambda power: 10**power)
hard_problems = st.builds(
    leaking_problem,
    n_arms=st.integers(4, 60),
    horizon=st.integers(1, 10**8),
    theta_bound=st.floats(0.01, 10),
    reveal=leaks,
    signal=leaks,
)


# The hard problem


@pytest.mark.parametrize("n_arms", [4, 5, 6])
def test_the_chance_of_a_complete_slate_by_enumeration(n_arms):
    # Eight equally likely kinds of arm, four of which are the labels.
    slates = itertools.product(range(8), repeat=n_arms)
    complete = sum(1 for slate in slates if {0, 1, 2, 3} <= set(slate))
    assert theory.complete_slate_prob(n_arms) == complete / 8**n_arms


@given(st.integers(4, 2000))
def test_the_chance_of_a_complete_slate_grows_from_its_floor_towards_one(n_arms):
    chance = theory.complete_slate_prob(n_arms)
    assert theory.COMPLETE_SLATE_FLOOR <= chance <= 1
    assert theory.complete_slate_prob(n_arms + 1) >= chance


def test_a_complete_round_costs_at_least_the_gaps_of_the_wrong_signs():
    reward_gap, hidden_gap, arm_bound = 0.3, 0.2, 2.0
    labels = list(itertools.product(SIGNS, SIGNS))
    arms = {label: arm_bound / 2 * np.array([*label, 0, 0]) for label in labels}
    for reward_sign, hidden_sign in labels:
        theta = 2 / arm_bound * np.array([reward_gap * reward_sign, hidden_gap * hidden_sign, 0, 0])
        side = arm_bound / 2 * np.array([0, 0, 1, hidden_sign]) / math.sqrt(2)
        best = max(arm @ theta for arm in arms.values())
        assert best == pytest.approx(reward_gap + hidden_gap)
        for label, arm in (arms | {(0, 0): side}).items():
            least = theory.complete_round_regret(
                Gaps(reward_gap=reward_gap, hidden_gap=hidden_gap),
                wrong_reward=label[0] != reward_sign,
                wrong_hidden=label[1] != hidden_sign,
            )
            assert best - arm @ theta >= least - 1e-12


@given(hard_problems)
def test_the_gaps_of_the_proof_fit_the_norm_budget(problem):
    assert theory.gaps_fit(problem, theory.hard_instance_gaps(problem))


def test_the_norm_budget_is_exhausted_in_the_first_round():
    gaps = theory.hard_instance_gaps(HARD.replace(horizon=1))
    assert gaps.reward_gap**2 + gaps.hidden_gap**2 == pytest.approx(1 / 4)
    assert not theory.gaps_fit(HARD, Gaps(reward_gap=0.5, hidden_gap=0.01))


# Testing the two signs


@given(st.integers(1, 60), st.floats(1e-3, 0.5), st.integers(1, 500))
def test_the_hidden_sign_stays_hidden_at_least_as_often_as_claimed(n_arms, observe_prob, round):
    # t - 1 slates without a revealing side arm, and one in which no arm shows both entries.
    silent = (1 - observe_prob**2 / 2) ** (n_arms * (round - 1)) * (1 - observe_prob**2) ** n_arms
    floor = theory.silence_floor(n_arms=n_arms, observe_prob=observe_prob, round=round)
    assert silent >= floor * (1 - 1e-9)


def test_no_test_of_a_sign_beats_the_error_bound():
    # The best test of n Gaussian rewards errs with probability P(N(0, 1) > sqrt(n) γ/R).
    quiet = HARD.replace(noise_scale=1.0)
    for round, gap in itertools.product((1, 2, 10, 100), (0.01, 0.1, 0.5, 1.0)):
        least = math.erfc(math.sqrt((round - 1) / 2) * gap) / 2
        assert theory.reward_sign_error(quiet, gap, round=round) <= least


# The sums


@pytest.mark.parametrize("gaps", [Gaps(reward_gap=0.3, hidden_gap=0.4), (1e-9, 0.1), (0.2, 1e-12)])
def test_the_explicit_bound_is_the_sum_over_all_rounds(gaps):
    gaps = gaps if isinstance(gaps, Gaps) else Gaps(reward_gap=gaps[0], hidden_gap=gaps[1])
    rounds = [theory.lower_bound_at(HARD, gaps, round=t) for t in range(1, HARD.horizon + 1)]
    bound = theory.explicit_lower_bound(HARD, gaps)
    assert bound.reward == pytest.approx(sum(each.reward for each in rounds), rel=1e-12)
    assert bound.hidden == pytest.approx(sum(each.hidden for each in rounds), rel=1e-12)
    assert bound.total == bound.reward + bound.hidden


# The optimized form


@given(hard_problems)
def test_the_optimized_form_is_below_the_explicit_sums(problem):
    assert theory.lower_bound_applies(problem)
    explicit = theory.explicit_lower_bound(problem, theory.hard_instance_gaps(problem))
    optimized = theory.optimized_lower_bound(problem)
    assert optimized.reward <= explicit.reward * (1 + 1e-12)
    assert optimized.hidden <= explicit.hidden * (1 + 1e-12)


@given(hard_problems)
def test_the_universal_constant_of_the_docstring_is_valid(problem):
    scale, horizon = problem.theta_bound * problem.arm_bound, problem.horizon
    slow = min(scale * horizon, problem.noise_scale * math.sqrt(horizon))
    found = scale * min(horizon, 1 / theory.leak_rate(problem))
    assert theory.optimized_lower_bound(problem).total >= 9.5e-5 * (slow + found)


@given(hard_problems)
def test_the_context_limited_form_is_below_the_explicit_sums(problem):
    revealed = problem.n_arms * problem.observe_prob**2
    least_noise = problem.theta_bound * problem.arm_bound / math.sqrt(revealed)
    limited = problem.replace(noise_scale=max(least_noise, problem.noise_scale))
    explicit = theory.explicit_lower_bound(limited, theory.hard_instance_gaps(limited))
    bound = theory.context_limited_lower_bound(limited)
    assert bound.reward <= explicit.reward * (1 + 1e-12)
    assert bound.hidden <= explicit.hidden * (1 + 1e-12)
    # It is the corollary's form: at least the general one with 1/(2Kp²) for 1/q.
    assert bound.hidden >= theory.optimized_lower_bound(limited).hidden * 8 / 9 * (1 - 1e-12)


def test_the_missingness_price_is_the_inverse_of_the_reveal_rate():
    # With huge noise q = Kp² = .04, so T = 50 exceeds 1/q = 25.
    quiet = HARD.replace(noise_scale=1e6)
    bound = theory.optimized_lower_bound(quiet)
    constant = 3 / 512 / (2 * math.sqrt(2)) / (8 * math.e)
    assert bound.hidden == pytest.approx(constant * 25, rel=1e-9)
    assert bound.reward == pytest.approx(3 / 512 / (2 * math.sqrt(2)) / 4 * math.exp(-0.25) * 50)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_arms": 3}, "n_arms must be at least 4, got 3"),
        ({"observe_prob": 0.6}, "observe_prob must be in (0, 0.5], got 0.6"),
        ({"noise_scale": 0.0}, "noise_scale must be in (0, inf), got 0"),
        ({"noise_scale": 0.5}, "at most 0.5, got 4.04"),
        ({"n_arms": 200}, "at most 0.5, got 2.25"),
    ],
)
def test_the_optimized_form_is_refused_outside_of_its_premises(changes, message):
    problem = HARD.replace(**changes)
    assert not theory.lower_bound_applies(problem)
    for bound in (theory.optimized_lower_bound, theory.context_limited_lower_bound):
        with pytest.raises(InvalidSettingError) as refusal:
            bound(problem)
        assert message in str(refusal.value)


def test_the_context_limited_form_is_refused_when_rewards_tell_more():
    with pytest.raises(InvalidSettingError, match=r"at least 5 in the .* regime, got 2\.0"):
        theory.context_limited_lower_bound(HARD)


def test_gaps_beyond_the_norm_budget_are_refused():
    with pytest.raises(InvalidSettingError, match=r"reward_gap=0\.4"):
        theory.explicit_lower_bound(HARD, Gaps(reward_gap=0.4, hidden_gap=0.4))
