"""The radius of the confidence ellipsoid, part by part."""

import math

import numpy as np
import pytest

from halfseen.linear.ridge import Confidence, Ridge


def confidence(**changes):
    settings = {
        "ridge": 4.0,
        "theta_bound": 3.0,
        "noise_scale": 0.5,
        "failure_prob": math.exp(-2.0),
        "misspecification": 0.25,
    }
    return Confidence(**(settings | changes))


def test_the_three_parts_by_hand():
    # √λ·S = 2·3; R·sqrt(2(log_det/2 + 2)) = .5·sqrt(16); b·√n = .25·3.
    assert confidence().parts(log_det=12.0, n_samples=9) == (6.0, 2.0, 0.75)
    assert confidence().total(12.0, 9) == 8.75
    assert confidence(noise_scale=0.0).parts(5.0, 4) == (6.0, 0.0, 0.5)
    assert confidence(misspecification=0.0).parts(1.0, 10**6)[2] == 0.0


def test_the_noise_part_is_the_papers_ratio_of_determinants():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(20, 3))
    model = Ridge(3, ridge=0.5)
    model.insert(points, rng.normal(size=20))
    _, noise, _ = confidence(ridge=0.5, failure_prob=0.01).parts(model.log_det, model.n_samples)
    det, det_ridge = np.linalg.det(model.gram), 0.5**3
    expected = 0.5 * math.sqrt(2.0 * math.log(math.sqrt(det) / (math.sqrt(det_ridge) * 0.01)))
    assert noise == pytest.approx(expected, rel=1e-12)


def test_rounding_below_zero_is_no_noise():
    assert confidence(failure_prob=1.0 - 1e-16 * 2).total(-1e-12, 0) == 6.0


@pytest.mark.parametrize("scale", [0.0, 0.25, 1.0, 8.0])
def test_the_radius_scale_multiplies_all_three_parts(scale):
    scaled = tuple(scale * part for part in confidence().parts(12.0, 9))
    assert confidence(radius_scale=scale).parts(12.0, 9) == scaled
