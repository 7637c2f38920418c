"""The radius of the confidence ellipsoid, part by part."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfseen.linear.ridge import Confidence, Radius, Ridge


def confidence(**changes):
    settings = {
        "ridge": 4.0,
        "theta_bound": 3.0,
        "noise_scale": 0.5,
        "failure_prob": math.exp(-2.0),
        "misspecification": 0.25,
    }
    return Confidence(**(settings | changes))


positive = st.floats(1e-3, 1e3)
confidences = st.builds(
    Confidence,
    ridge=positive,
    theta_bound=positive,
    noise_scale=positive,
    failure_prob=st.floats(1e-12, 0.999),
    misspecification=st.floats(0.0, 10.0),
    radius_scale=positive,
)


def test_the_three_parts_by_hand():
    # √λ·S = 2·3; R·sqrt(2(log_det/2 + 2)) = .5·sqrt(16); b·√n = .25·3.
    radius = confidence().radius(log_det=12.0, n_samples=9)
    assert radius == Radius(regularization=6.0, noise=2.0, misspecification=0.75)
    assert radius.total == 8.75
    assert confidence().total(12.0, 9) == 8.75


def test_the_noise_part_is_the_papers_ratio_of_determinants():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(20, 3))
    model = Ridge(3, ridge=0.5)
    model.insert(points, rng.normal(size=20))
    radius = confidence(ridge=0.5, failure_prob=0.01).radius(model.log_det, model.n_samples)
    det, det_ridge = np.linalg.det(model.gram), 0.5**3
    expected = 0.5 * math.sqrt(2.0 * math.log(math.sqrt(det) / (math.sqrt(det_ridge) * 0.01)))
    assert radius.noise == pytest.approx(expected, rel=1e-12)
    assert radius.misspecification == 0.25 * math.sqrt(20)


def test_without_misspecification_that_part_is_zero_and_it_is_off_by_default():
    settings = {"ridge": 1.0, "theta_bound": 1.0, "noise_scale": 1.0, "failure_prob": 0.05}
    assert Confidence(**settings).radius(1.0, 10**6).misspecification == 0.0


def test_without_noise_that_part_is_zero():
    assert confidence(noise_scale=0.0).radius(5.0, 4) == Radius(6.0, 0.0, 0.5)


def test_rounding_below_zero_is_no_noise():
    nearly_sure = confidence(failure_prob=1.0 - 1e-16 * 2)
    assert nearly_sure.radius(-1e-12, 0).noise == 0.0
    assert nearly_sure.total(-1e-12, 0) == 6.0


@given(confidences, st.floats(0.0, 1e4), st.integers(0, 10**9))
def test_the_total_is_the_sum_of_the_parts_bit_by_bit(beta, log_det, n_samples):
    radius = beta.radius(log_det, n_samples)
    assert beta.total(log_det, n_samples) == radius.total == sum(radius)


@given(
    confidences, st.floats(0.0, 1e3), st.floats(0.0, 1e3), st.integers(0, 10**6), st.integers(0, 9)
)
def test_more_information_or_more_samples_never_shrink_the_radius(beta, log_det, more, n, many):
    assert beta.total(log_det + more, n + many) >= beta.total(log_det, n)


@given(st.floats(1e-9, 0.49), st.floats(0.0, 100.0))
def test_a_smaller_failure_probability_needs_a_larger_radius(failure_prob, log_det):
    careful = confidence(failure_prob=failure_prob).total(log_det, 1)
    bold = confidence(failure_prob=2.0 * failure_prob).total(log_det, 1)
    assert careful > bold


@pytest.mark.parametrize("scale", [0.0, 0.25, 1.0, 8.0])
def test_the_radius_scale_multiplies_all_three_parts(scale):
    plain = confidence().radius(12.0, 9)
    assert confidence(radius_scale=scale).radius(12.0, 9) == tuple(scale * part for part in plain)
    assert confidence(radius_scale=scale).total(12.0, 9) == scale * plain.total
