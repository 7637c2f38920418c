"""Scales of a reward regression: the evidence is the dense one, and the noise is found."""

import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from halfseen.core.scales import (
    _PENALTIES,
    _PRIOR_REWARDS,
    _PRIOR_SHARE,
    UNKNOWN,
    Evidence,
    Scales,
    estimate_scales,
    without_hidden,
)

SHAPES = [(1, 1), (1, 5), (3, 8), (7, 8), (8, 8), (9, 8), (40, 3)]
over_shapes = pytest.mark.parametrize("shape", SHAPES, ids=str)


def samples(seed, shape, *, noise=0.4):
    """Return points of mean square 1 and rewards with a parameter of norm 2."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=shape)
    theta = rng.normal(size=shape[1])
    rewards = points @ (2.0 * theta / np.linalg.norm(theta)) + noise * rng.normal(size=shape[0])
    return points, rewards


def dense_evidence(points, rewards, ridge):
    """Return the evidence of a penalty and the noise variance that goes with it.

    Rewards are normal with covariance R²(I + ZZ'/λ); pseudo rewards, each with the prior's share
    of the mean squared reward as its residual, count as further samples of the noise.
    """
    n = len(rewards)
    shape = np.eye(n) + points @ points.T / ridge
    left = rewards @ np.linalg.solve(shape, rewards)
    left += _PRIOR_REWARDS * _PRIOR_SHARE * (rewards @ rewards) / n
    variance = left / (n + _PRIOR_REWARDS)
    log_density = multivariate_normal(cov=variance * shape).logpdf(rewards)
    # The prior's part of the density of all n + _PRIOR_REWARDS samples.
    pseudo = _PRIOR_REWARDS * _PRIOR_SHARE * (rewards @ rewards) / n / variance
    log_density -= 0.5 * (_PRIOR_REWARDS * math.log(2.0 * math.pi * variance) + pseudo)
    return log_density, variance


@over_shapes
def test_the_best_penalty_is_that_of_largest_dense_evidence(shape):
    for seed in range(5):
        points, rewards = samples(seed, shape)
        dense = [dense_evidence(points, rewards, ridge) for ridge in _PENALTIES]
        best = int(np.argmax([evidence for evidence, _ in dense]))
        ridge, variance = Evidence(points, rewards).best_ridge()
        assert ridge == _PENALTIES[best]
        assert variance == pytest.approx(dense[best][1], rel=1e-9)


@over_shapes
@pytest.mark.parametrize("ridge", [1e-4, 0.1, 100.0])
def test_the_estimate_is_the_ridge_solution(shape, ridge):
    points, rewards = samples(1, shape)
    gram = points.T @ points + ridge * np.eye(shape[1])
    expected = np.linalg.solve(gram, points.T @ rewards)
    np.testing.assert_allclose(Evidence(points, rewards).estimate(ridge), expected, atol=1e-8)


def test_dimensions_in_which_nothing_happens_change_nothing():
    """With them there are more dimensions than samples, without them fewer."""
    points, rewards = samples(2, (12, 4))
    wide = np.hstack([points, np.zeros((12, 20))])
    narrow, wider = Evidence(points, rewards), Evidence(wide, rewards)
    assert wider.best_ridge() == pytest.approx(narrow.best_ridge(), rel=1e-9)
    np.testing.assert_allclose(wider.estimate(0.3)[:4], narrow.estimate(0.3), rtol=1e-9)
    assert not wider.estimate(0.3)[4:].any()


@pytest.mark.parametrize("shape", [(6, 10), (6, 4)], ids=["more dimensions", "fewer dimensions"])
@pytest.mark.parametrize("seed", range(6))
def test_arms_that_were_played_more_than_once_are_no_trouble(shape, seed):
    """Their Gram matrix is singular, and rounding may put its zeros below 0."""
    points = samples(seed, (3, shape[1]))[0][[0, 1, 2, 0, 1, 2]]
    rewards = samples(seed, (6, 1))[1]
    evidence = Evidence(points, rewards)
    gram = points.T @ points + 0.5 * np.eye(shape[1])
    expected = np.linalg.solve(gram, points.T @ rewards)
    np.testing.assert_allclose(evidence.estimate(0.5), expected, atol=1e-6)
    dense = [dense_evidence(points, rewards, ridge) for ridge in _PENALTIES]
    best = int(np.argmax([log_density for log_density, _ in dense]))
    assert evidence.best_ridge() == pytest.approx((_PENALTIES[best], dense[best][1]), rel=1e-6)


@pytest.mark.parametrize("noise", [0.01, 0.3, 3.0])
@pytest.mark.parametrize("rank", [1, 5])
def test_the_noise_is_found(noise, rank):
    """From 600 rewards, R has standard error R/√(2·600) = .029 R; the prior adds .017 E[r²] to R².

    Asserted at 5 sigma over 6 cases, false alarm rate 4e-6.
    """
    points, rewards = samples(int(10 * noise), (600, rank), noise=noise)
    scales, theta = estimate_scales(points, rewards)
    prior = _PRIOR_REWARDS * _PRIOR_SHARE * float(rewards @ rewards) / 600 / 602
    assert abs(math.sqrt(scales.noise_scale**2 - prior) / noise - 1.0) < 5 / math.sqrt(1200)
    assert scales.residual_scale == scales.noise_scale
    assert scales.theta_bound == pytest.approx(np.linalg.norm(theta))
    assert abs(scales.theta_bound - 2.0) < 5 * noise * math.sqrt(rank / 600) + 1e-3


def test_more_noise_asks_for_a_larger_penalty():
    """λ is the noise variance over that of a coordinate of the parameter, here R²/(4/20)."""
    ridges = []
    for noise in (0.05, 0.5, 5.0):
        points, rewards = samples(3, (400, 20), noise=noise)
        ridges.append(estimate_scales(points, rewards)[0].ridge)
    expected = np.array([0.05, 0.5, 5.0]) ** 2 / (4.0 / 20)
    assert (np.abs(np.log10(ridges / expected)) <= 0.75).all()


def test_rewards_of_zero_leave_the_scales_unknown():
    points = samples(4, (5, 3))[0]
    scales, theta = estimate_scales(points, np.zeros(5))
    assert scales == UNKNOWN
    assert theta.tolist() == [0.0, 0.0, 0.0]
    assert Evidence(points, np.zeros(5)).best_ridge() == (1.0, 0.0)
    assert estimate_scales(np.empty((0, 3)), np.empty(0))[0] == UNKNOWN


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (2, 2)], ids=str)
def test_few_rewards_do_not_prove_that_there_is_no_noise(shape):
    """Not even those that a parameter explains exactly."""
    points, rewards = samples(5, shape, noise=0.0)
    scales, _ = estimate_scales(points, rewards)
    least = _PRIOR_REWARDS * _PRIOR_SHARE / (len(rewards) + _PRIOR_REWARDS)
    assert scales.noise_scale**2 >= least * float(rewards @ rewards) / len(rewards) * (1 - 1e-9)


def test_points_of_zeros_leave_all_to_the_noise():
    rewards = np.array([1.0, -1.0, 1.0, -1.0])
    scales, theta = estimate_scales(np.zeros((4, 2)), rewards)
    assert not theta.any()
    assert scales.theta_bound == 0.0
    prior = _PRIOR_REWARDS * _PRIOR_SHARE
    expected = math.sqrt((4.0 + prior) / (4.0 + _PRIOR_REWARDS))
    assert scales.noise_scale == pytest.approx(expected)


@pytest.mark.parametrize("factor", [100.0, 0.01, 1e-90, 1e90])
def test_scales_grow_with_the_rewards(factor):
    points, rewards = samples(6, (30, 4))
    plain, theta = estimate_scales(points, rewards)
    scaled, other = estimate_scales(points, factor * rewards)
    assert scaled.ridge == plain.ridge
    for name in ("noise_scale", "theta_bound", "residual_scale"):
        assert getattr(scaled, name) == pytest.approx(factor * getattr(plain, name), rel=1e-9)
    np.testing.assert_allclose(other, factor * theta, rtol=1e-9)


def test_a_power_of_two_changes_no_bit_but_the_exponents():
    points, rewards = samples(7, (30, 4))
    plain, theta = estimate_scales(points, rewards)
    scaled, other = estimate_scales(points, 2.0**-40 * rewards)
    assert scaled.noise_scale == 2.0**-40 * plain.noise_scale
    assert np.array_equal(other, 2.0**-40 * theta)


# -- what hidden entries add ----------------------------------------------------------------------


def test_noise_is_what_is_left_of_the_residuals():
    scales = Scales(1.0, 5.0, 1.0, 5.0)
    less = without_hidden(scales, np.array([6.0, 12.0]))
    assert less == Scales(1.0, 4.0, 1.0, 5.0)  # 25 − 9


def test_hidden_entries_never_take_all_of_the_residuals():
    scales = Scales(1.0, 2.0, 1.0, 2.0)
    assert without_hidden(scales, np.array([50.0])).noise_scale == pytest.approx(0.02)


def test_the_noise_is_found_in_spite_of_hidden_entries():
    """Rewards see latents of which ẑ is known with error: residuals are noise and that error.

    With 4000 rewards R² has standard error √(2/4000)·(R² + hidden) < .006 R²·3.3; at 5 sigma.
    """
    rng = np.random.default_rng(8)
    n, noise, theta, hidden = 4000, 0.3, np.array([1.0, -2.0]), 0.09
    means = rng.normal(size=(n, 2))
    latents = means + math.sqrt(hidden / 5.0) * rng.normal(size=(n, 2))
    rewards = latents @ theta + noise * rng.normal(size=n)
    scales = without_hidden(estimate_scales(means, rewards)[0], np.full(n, hidden))
    error = 5 * math.sqrt(2 / n) * (noise**2 + hidden)
    assert abs(scales.residual_scale**2 - noise**2 - hidden) < error
    assert abs(scales.noise_scale**2 - noise**2) < error
