"""Ridge regression: equal to the batch solution from the first sample to the millionth.

And the radius of its confidence ellipsoid, part by part.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfseen import state
from halfseen.errors import HalfseenError
from halfseen.linear.ridge import Confidence, Ridge

NAN = math.nan
RIDGES = [1e-10, 1e-8, 1e-4, 0.1, 1.0, 3.0, 100.0, 1e6]

seeds = st.integers(0, 2**32 - 1)


def fixed(size):
    """Return a radius that depends on nothing."""
    return lambda log_det, n_samples: size


def bits(model):
    return model.root.tobytes()


def fitted(points, rewards, ridge=1.0):
    model = Ridge(points.shape[1], ridge=ridge)
    model.insert(points, rewards)
    return model


def samples(seed, n_samples, dim):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_samples, dim)), rng.normal(size=n_samples)


def batch(points, rewards, ridge):
    """Return V and the estimate of the whole sample, and the factor of V from a QR of the points.

    Stacking sqrt(λ)I under the points never squares their condition.
    """
    dim = points.shape[1]
    stacked = np.r_[points, math.sqrt(ridge) * np.eye(dim)]
    factor = np.linalg.qr(stacked, mode="r")
    estimate = np.linalg.lstsq(stacked, np.r_[rewards, np.zeros(dim)])[0]
    return stacked.T @ stacked, estimate, factor


def widths_of(factor, points):
    """Return ‖R'⁻¹z‖ of every point."""
    return np.linalg.norm(np.linalg.solve(factor.T, points.T), axis=0)


# -- before the first sample -----------------------------------------------------------------------


@pytest.mark.parametrize("ridge", RIDGES)
@pytest.mark.parametrize("dim", [1, 3, 20])
def test_invariants_hold_before_the_first_sample(ridge, dim):
    model = Ridge(dim, ridge=ridge)
    points = np.random.default_rng(0).normal(size=(5, dim))
    estimates, widths = model.predict(points)
    assert (model.n_samples, model.log_det, model.ridge) == (0, 0.0, ridge)
    np.testing.assert_allclose(model.gram, ridge * np.eye(dim), rtol=1e-15)
    np.testing.assert_array_equal(model.factor, math.sqrt(ridge) * np.eye(dim))
    np.testing.assert_array_equal(model.white, np.zeros(dim))
    np.testing.assert_array_equal(model.estimate, np.zeros(dim))
    np.testing.assert_array_equal(estimates, np.zeros(5))
    np.testing.assert_allclose(widths, np.linalg.norm(points, axis=1) / ridge**0.5, rtol=1e-14)


# -- equal to the batch solution -------------------------------------------------------------------


@given(st.integers(1, 12), st.integers(0, 40), st.sampled_from(RIDGES[2:]), seeds)
def test_incremental_updates_equal_the_batch_solution(dim, n_samples, ridge, seed):
    points, rewards = samples(seed, n_samples, dim)
    points[np.random.default_rng(seed).random(points.shape) < 0.3] = 0.0
    model = Ridge(dim, ridge=ridge)
    for point, reward in zip(points, rewards, strict=True):
        model.update(point, reward)
    gram, estimate, factor = batch(points, rewards, ridge)
    assert model.n_samples == n_samples
    np.testing.assert_allclose(model.gram, gram, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(model.response, points.T @ rewards, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(np.tril(model.factor, -1), np.zeros((dim, dim)))
    size = np.abs(estimate).max(initial=1.0)
    np.testing.assert_allclose(model.estimate, estimate, atol=1e-8 * size)
    others = np.random.default_rng(seed + 1).normal(size=(6, dim))
    estimates, widths = model.predict(others)
    np.testing.assert_allclose(estimates, others @ estimate, atol=1e-8 * size)
    np.testing.assert_allclose(widths, widths_of(factor, others), rtol=1e-8)


# -- scores ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("radius", [0.0, 0.5, 10.0])
def test_a_score_is_the_estimate_plus_the_radius_times_the_width(radius):
    model, points = fitted(*samples(0, 20, 4)), samples(1, 7, 4)[0]
    estimates, widths = model.predict(points)
    best, parts = model.score(points, fixed(radius))
    np.testing.assert_allclose(parts[1], estimates, rtol=1e-15)
    np.testing.assert_allclose(parts[2], radius * widths, rtol=1e-15)
    np.testing.assert_array_equal(parts[0], parts[1] + parts[2])
    assert best == parts[0].argmax()


# -- special points --------------------------------------------------------------------------------


def test_nan_in_a_point_counts_as_zero_everywhere():
    points, rewards = samples(0, 20, 4)
    hidden = np.random.default_rng(1).random((20, 4)) < 0.4
    holes, zeros = np.where(hidden, NAN, points), np.where(hidden, 0.0, points)
    model, plain = fitted(holes, rewards), fitted(zeros, rewards)
    assert bits(model) == bits(plain)
    model.update(holes[0], 1.0)
    plain.update(zeros[0], 1.0)
    assert bits(model) == bits(plain)
    np.testing.assert_array_equal(model.predict(holes), model.predict(zeros))
    best, parts = model.score(holes, fixed(2.0))
    assert best == model.score(zeros, fixed(2.0))[0]
    np.testing.assert_array_equal(parts, model.score(zeros, fixed(2.0))[1])


# -- the packed root -------------------------------------------------------------------------------


def test_a_factor_in_any_memory_order_may_be_set():
    factor, white = np.random.default_rng(0).normal(size=(4, 4)), np.arange(4.0)
    plain, turned = Ridge(4, ridge=1.0), Ridge(4, ridge=1.0)
    plain.set_root(factor, white, 0.0, 0)
    turned.set_root(np.asfortranarray(factor), np.repeat(white, 2)[::2], 0.0, 0)
    assert bits(turned) == bits(plain)


# -- a sample and a look in one pass ---------------------------------------------------------------


@pytest.mark.parametrize("entered", ["by the original", "by the fork", "not yet"])
def test_a_sample_enters_a_root_that_forks_share_once(entered):
    points, rewards = samples(0, 12, 3)
    model, plain = fitted(points[:10], rewards[:10]), fitted(points, rewards)
    model.update(points[10], rewards[10])
    fork = model.fork()
    if entered != "not yet":
        (model if entered == "by the original" else fork).predict(points)
    fork.update(points[11], rewards[11])
    assert model.n_samples == 11  # the fork's own sample still waits in it alone
    assert bits(fork) == bits(plain)


@pytest.mark.parametrize("dim", [1, 2, 5, 8])
def test_a_point_is_measured_alone_as_among_any_others(dim):
    """Points go four at a time: each has the same bits in every place of any company."""
    model, points = fitted(*samples(0, 20, dim)), samples(1, 9, dim)[0]
    together = model.score(points, fixed(0.7))[1]
    for n, point in enumerate(points):
        assert (
            model.score(point[None, :], fixed(0.7))[1].tobytes() == together[:, n : n + 1].tobytes()
        )
    for first in range(9):
        assert model.score(points[first:], fixed(0.7))[1].tobytes() == together[:, first:].tobytes()


def test_an_estimate_of_nothing_is_a_positive_zero():
    """So that no estimate reads -0.0, and a round in one call has the same bits."""
    for n_samples in (0, 5):
        points, _ = samples(0, 5, 3)
        model = fitted(points[:n_samples], np.zeros(n_samples))
        assert not np.signbit(model.score(points, fixed(1.0))[1]).any()


# -- one more dimension ----------------------------------------------------------------------------


def test_a_widened_regression_is_the_one_that_had_a_zero_there_all_along():
    points, rewards = samples(0, 12, 3)
    wider = fitted(points, rewards, ridge=0.5).widened(4)
    padded = fitted(np.c_[points, np.zeros(12)], rewards, ridge=0.5)
    later, later_rewards = samples(1, 5, 4)
    for model in (wider, padded):
        np.testing.assert_allclose(model.gram[3], [0.0, 0.0, 0.0, 0.5], rtol=1e-15)
        model.insert(later, later_rewards)
    assert wider.dim == 4
    assert bits(wider) == bits(padded)


# -- state -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "value"),
    [(0, 0.0), (-1, -1.0), (-1, 1e16), (-2, NAN), (-2, 1e10), (slice(0, 3), 0.0)],
)
def test_a_state_with_impossible_numbers_is_refused(place, value):
    root = fitted(*samples(0, 10, 4)).root.copy()
    root[place] = value
    with pytest.raises(HalfseenError):
        state.restore(Ridge(4, ridge=1.0), {"root": root})


# -- a million updates -----------------------------------------------------------------------------

N_POINTS, N_REPEATS, N_TILES = 200, 5000, 50


def played_points(dim, n_directions):
    """Return points of `n_directions` dimensions, as vectors and as coordinates in their span."""
    rng = np.random.default_rng(dim + n_directions)
    span = np.linalg.qr(rng.normal(size=(dim, n_directions)))[0]
    inside = rng.normal(size=(N_POINTS, n_directions))
    return inside @ span.T, inside


# The smallest penalty is the hardest; larger ones are tried where that takes no time.
LONG_RUNS = [(10, 10, 1e-8), (10, 3, 1e-8), (3, 3, 1e2)]


@pytest.mark.parametrize(("dim", "n_directions", "ridge"), LONG_RUNS)
def test_after_a_million_updates_the_regression_is_a_fresh_factorisation(dim, n_directions, ridge):
    points, inside = played_points(dim, n_directions)
    rewards = np.random.default_rng(7).normal(size=N_POINTS)
    model = Ridge(dim, ridge=ridge)
    tile, tile_rewards = np.tile(points, (N_TILES, 1)), np.tile(rewards, N_TILES)
    for _ in range(N_REPEATS // N_TILES):
        model.insert(tile, tile_rewards)
    assert model.n_samples == 1_000_000

    # In coordinates of the span, every point 5000 times: exact sums, no drift.
    repeated, targets = math.sqrt(N_REPEATS) * inside, math.sqrt(N_REPEATS) * rewards
    _, estimate, factor = batch(repeated, targets, ridge)
    others = np.random.default_rng(8).normal(size=(50, n_directions))
    asked = np.r_[inside, others]
    span = np.linalg.lstsq(inside, points)[0]
    estimates, widths = model.predict(asked @ span)
    np.testing.assert_allclose(widths, widths_of(factor, asked), rtol=1e-6)
    np.testing.assert_allclose(estimates, asked @ estimate, rtol=1e-6, atol=1e-9)
    log_det = 2.0 * np.log(np.abs(factor.diagonal())).sum() - n_directions * math.log(ridge)
    assert model.log_det == pytest.approx(log_det, rel=1e-9)


# -- the radius of the confidence ellipsoid --------------------------------------------------------


def confidence(**changes):
    settings = {
        "ridge": 4.0,
        "theta_bound": 3.0,
        "noise_scale": 0.5,
        "failure_prob": math.exp(-2.0),
        "misspecification": 0.25,
    }
    return Confidence(**(settings | changes))


@pytest.mark.parametrize(
    ("changes", "total"),
    [({}, 8.75), ({"noise_scale": 0.0}, 6.75), ({"misspecification": 0.0}, 8.0)],
)
def test_the_three_parts_by_hand(changes, total):
    # √λ·S = 2·3; R·sqrt(2(log_det/2 + 2)) = .5·sqrt(16); b·√n = .25·3.
    assert confidence(**changes).total(log_det=12.0, n_samples=9) == total


def test_the_noise_part_is_the_papers_ratio_of_determinants():
    model = fitted(*samples(0, 20, 3), ridge=0.5)
    noise_alone = {"theta_bound": 0.0, "misspecification": 0.0, "failure_prob": 0.01}
    noise = confidence(ridge=0.5, **noise_alone).total(model.log_det, model.n_samples)
    det, det_ridge = np.linalg.det(model.gram), 0.5**3
    expected = 0.5 * math.sqrt(2.0 * math.log(math.sqrt(det) / (math.sqrt(det_ridge) * 0.01)))
    assert noise == pytest.approx(expected, rel=1e-12)


def test_rounding_below_zero_is_no_noise():
    assert confidence(failure_prob=1.0 - 1e-16 * 2).total(-1e-12, 0) == 6.0


@pytest.mark.parametrize("scale", [0.0, 0.25, 1.0, 8.0])
def test_the_radius_scale_multiplies_all_three_parts(scale):
    assert confidence(radius_scale=scale).total(12.0, 9) == scale * confidence().total(12.0, 9)
