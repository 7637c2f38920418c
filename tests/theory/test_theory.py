"""Constants, sampling and representation bounds: by pencil, by enumeration, by property."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from halfseen import theory
from halfseen.errors import InvalidSettingError
from halfseen.linear.covariance import corrected_covariance

PLAIN = theory.Problem(
    dim=4,
    rank=2,
    n_arms=5,
    horizon=100,
    observe_prob=0.5,
    arm_bound=2.0,
    last_eigenvalue=1.0,
    incoherence=1.0,
    theta_bound=3.0,
    noise_scale=0.1,
)


problems = st.builds(
    lambda dim, rank, slack, top, **rest: theory.Problem(
        dim=dim,
        rank=min(rank, dim),
        arm_bound=2.0,
        top_eigenvalue=top * slack * 4.0 / min(rank, dim),
        last_eigenvalue=slack * 4.0 / min(rank, dim),
        incoherence=1.0,
        **rest,
    ),
    dim=st.integers(1, 50),
    rank=st.integers(1, 5),
    slack=st.floats(0.05, 1.0),
    top=st.floats(1.0, 5.0),
    n_arms=st.integers(1, 20),
    horizon=st.integers(1, 10**6),
    observe_prob=st.floats(0.05, 1.0),
    theta_bound=st.floats(0.1, 10.0),
    noise_scale=st.floats(0.0, 5.0),
)
small_probs = st.floats(1e-6, 0.5)


# The problem


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("rank", 5, "rank must be an integer in [1, 4], got 5"),
        ("arm_bound", math.nan, "got nan"),
        ("top_eigenvalue", 0.5, "here 0.5, got 1.0"),
        ("last_eigenvalue", 2.1, "here 2, got 2.1"),
        ("incoherence", 1.5, "got 1.5"),
    ],
)
def test_an_impossible_setting_is_refused_with_its_value(setting, value, message):
    with pytest.raises(InvalidSettingError) as refusal:
        PLAIN.replace(**{setting: value})
    assert message in str(refusal.value)


def test_gaussian_arms_have_infinite_errors_and_no_burn_in():
    gaussian = PLAIN.replace(arm_bound=math.inf, top_eigenvalue=1.0)
    assert gaussian.conditioning == math.inf
    assert theory.subspace_error_at(gaussian, round=10, failure_prob=0.1) == math.inf
    assert theory.covariance_error_at(gaussian, round=10, failure_prob=0.1) == math.inf
    with pytest.raises(InvalidSettingError, match="arm_bound inf"):
        theory.burn_in_length(gaussian, failure_prob=0.1)
    with pytest.raises(InvalidSettingError, match="got inf"):
        theory.rank_identification_length(gaussian, failure_prob=0.1)


# One masked arm


def moments_by_enumeration(arm, observe_prob):
    """Return E[Y] and E[Y²] of the corrected covariance Y of one arm, over all 2^dim masks."""
    first = np.zeros((arm.size, arm.size))
    second = np.zeros_like(first)
    for mask in itertools.product((0, 1), repeat=arm.size):
        seen = sum(mask)
        weight = observe_prob**seen * (1 - observe_prob) ** (arm.size - seen)
        shown = arm * mask
        sample = corrected_covariance(np.outer(shown, shown), 1, observe_prob)
        first += weight * sample
        second += weight * sample @ sample
    return first, second


@pytest.mark.parametrize("dim", [1, 2, 3, 5])
@pytest.mark.parametrize("observe_prob", [0.2, 0.5, 0.9, 1.0])
def test_the_corrected_sample_is_unbiased_and_its_second_moment_exact(dim, observe_prob):
    arm = np.random.default_rng(dim).normal(size=dim)
    first, second = moments_by_enumeration(arm, observe_prob)
    np.testing.assert_allclose(first, np.outer(arm, arm), rtol=0, atol=1e-12)
    claimed, energy = theory.corrected_second_moment(arm, observe_prob), arm @ arm
    np.testing.assert_allclose(claimed, second, rtol=1e-12, atol=1e-12)
    # At most 2 B_X² λ̄/p², as matrix Bernstein needs it; for one arm B_X² and λ̄ are ‖x‖².
    assert np.linalg.norm(second, 2) <= 2 * energy * energy / observe_prob**2


def test_the_covariance_error_is_matrix_bernstein_with_the_norm_and_variance_bounds():
    # B_X = 2, λ̄ = 1.5, p = .3: the variance is at most 2 B_X² λ̄/p², the norm at most 3 B_X²/p².
    n_arms, log_term, settings = 70, 9.0, {"arm_bound": 2.0, "observe_prob": 0.3}
    variance, norm = 2 * 4 * 1.5 / 0.09, 3 * 4 / 0.09
    summed = math.sqrt(2 * n_arms * variance * log_term) + 2 / 3 * norm * log_term
    claimed = theory.covariance_error(
        n_arms=n_arms, top_eigenvalue=1.5, log_term=log_term, **settings
    )
    assert claimed == pytest.approx(summed / n_arms)


# Seen rows of a basis


@pytest.mark.parametrize(("dim", "observe_prob"), [(50, 0.3), (200, 0.5), (1000, 0.2)])
def test_rank_one_gram_matrices_fall_below_their_floor_as_rarely_as_promised(dim, observe_prob):
    # For U = 1/sqrt(d) the Gram matrix is a binomial count over d, and μ = 1.
    floor = theory.gram_floor_true(observe_prob)
    exact = binom.cdf(math.floor(floor * dim), dim, observe_prob)
    assert exact <= math.exp(-observe_prob * dim / theory.incoherence_constant())


@given(st.integers(1, 5), st.integers(1, 20), st.integers(1, 10**6), small_probs)
def test_the_condition_on_p_spends_exactly_the_failure_probability(
    rank, n_arms, horizon, failure_prob
):
    smallest = theory.observe_prob_condition(
        dim=10_000,
        rank=rank,
        n_arms=n_arms,
        horizon=horizon,
        incoherence=1.3,
        failure_prob=failure_prob,
    )
    largest_term = 1.3**2 * rank / 10_000
    exponent = smallest / (largest_term * theory.incoherence_constant())
    assert rank * horizon * n_arms * math.exp(-exponent) == pytest.approx(failure_prob)


# Errors of the representation


def test_the_anytime_log_term_spends_no_more_than_the_failure_probability():
    spent = sum(
        2 * 3 * math.exp(-theory.log_term(dim=3, failure_prob=0.2, horizon=None, round=t))
        for t in range(1, 2000)
    )
    assert spent == pytest.approx(0.2 * (1 - 1 / 2000))


def test_errors_of_a_problem_by_hand():
    log_term = theory.log_term(dim=4, failure_prob=0.1, horizon=100, round=1)
    assert log_term == pytest.approx(math.log(8000))
    # ε = 12 · (2·2/1) / .5 · sqrt(ℓ / 500), ρ = 2·2·sqrt(4ℓ/500)/.5 + 2·4ℓ/(500·.25)
    subspace = theory.subspace_error_at(PLAIN, round=100, failure_prob=0.1)
    covariance = theory.covariance_error_at(PLAIN, round=100, failure_prob=0.1)
    assert subspace == pytest.approx(96 * math.sqrt(log_term / 500))
    assert covariance == pytest.approx(8 * math.sqrt(4 * log_term / 500) + 0.064 * log_term)


@given(problems, st.integers(1, 10**6), small_probs)
def test_misspecification_is_projection_error_plus_imputation_error(problem, round, failure_prob):
    error = theory.subspace_error_at(problem, round=round, failure_prob=failure_prob)
    known = {"arm_bound": problem.arm_bound, "observe_prob": problem.observe_prob}
    imputed = theory.imputation_error(**known, subspace_error=error)
    bias = theory.misspecification_at(problem, epoch_start=round + 1, failure_prob=failure_prob)
    assert bias == pytest.approx(problem.theta_bound * (problem.arm_bound * error + imputed))


@given(problems, st.integers(1, 10**12), small_probs)
def test_a_subspace_error_below_sqrt_two_follows_from_the_covariance_error(
    problem, round, failure_prob
):
    # Davis-Kahan with gap λ_m: 2 ρ/λ_m, and sqrt(2) more for the aligned basis.
    subspace = theory.subspace_error_at(problem, round=round, failure_prob=failure_prob)
    covariance = theory.covariance_error_at(problem, round=round, failure_prob=failure_prob)
    if subspace < math.sqrt(2):
        assert covariance <= problem.last_eigenvalue / 2
        assert math.sqrt(2) * 2 * covariance / problem.last_eigenvalue <= subspace


# The burn-in


@given(problems, small_probs)
def test_the_burn_in_is_the_first_round_with_error_at_most_p_over_32(problem, failure_prob):
    burn_in = theory.burn_in_length(problem, failure_prob=failure_prob)
    limit = problem.observe_prob / 32
    after = theory.subspace_error_at(problem, round=burn_in, failure_prob=failure_prob)
    assert after <= limit * (1 + 1e-12)
    if burn_in > 1:
        short = theory.subspace_error_at(problem, round=burn_in - 1, failure_prob=failure_prob)
        assert short > limit * (1 - 1e-12)
