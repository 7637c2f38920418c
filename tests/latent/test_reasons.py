"""What it is worth to see more, against closed forms and by hand."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from halfseen.factors.table import moved_by_seeing
from halfseen.values.reasons import Gains


def excess(gap, deviation):
    return deviation * norm.pdf(gap / deviation) - gap * norm.sf(gap / deviation)


def test_seeing_one_arm_gains_what_it_may_exceed_the_others_by():
    gains = Gains.of(np.array([1.0, 0.4, 0.2]), np.array([[0.5], [0.5], [0.5]]))
    expected = [excess(gap, 0.5) for gap in (0.6, 0.6, 0.8)]
    assert gains.single[:, 0] == pytest.approx(expected, rel=1e-12)


def test_the_best_of_two_equal_arms_is_expected_above_both():
    """E[max] of two independent N(0, s²) is s/√π."""
    gains = Gains.of(np.zeros(2), np.array([[0.3, 0.0], [0.3, 0.0]]))
    assert gains.all_arms == pytest.approx([0.3 / math.sqrt(math.pi), 0.0], rel=1e-5)


def test_if_one_arm_alone_is_moved_both_gains_agree():
    estimates = np.array([3.0, 2.5, -4.0])
    for arm in range(2):
        deviations = np.zeros((3, 1))
        deviations[arm] = 0.7
        gains = Gains.of(estimates, deviations)
        assert gains.all_arms[0] == pytest.approx(gains.single[arm, 0], rel=1e-4)
        assert gains.single[arm, 0] == pytest.approx(excess(0.5, 0.7), rel=1e-12)


def test_nothing_is_gained_without_an_alternative_or_without_news():
    assert not Gains.of(np.ones(1), np.ones((1, 2))).all_arms.any()
    assert not Gains.of(np.ones(1), np.ones((1, 2))).single.any()
    assert not np.hstack(list(map(np.ravel, Gains.of(np.ones(3), np.zeros((3, 2)))))).any()


def test_seeing_moves_a_sum_as_a_normal_law_of_all_entries_says():
    """Var E[v'x | x_G] = c'C⁻¹c with the covariance of hidden entries given the seen ones."""
    random = np.random.default_rng(0)
    loadings, noise, weights = random.normal(size=(2, 5)), np.linspace(0.2, 1, 5), np.arange(1.0, 6)
    hidden = np.array([True, False, True, False, True])
    full = loadings.T @ loadings + np.diag(noise)
    rest = full[hidden][:, hidden] - full[hidden][:, ~hidden] @ np.linalg.solve(
        full[~hidden][:, ~hidden], full[~hidden][:, hidden]
    )
    v, groups = weights[hidden], [[0], [4], [0, 2], [1], [1, 4]]
    ours = moved_by_seeing(hidden, loadings, noise, weights, groups)
    places = [[0], [2], [0, 1], [], [2]]
    for found, some in zip(ours, places, strict=True):
        c = rest[some] @ v
        expected = math.sqrt(c @ np.linalg.solve(rest[np.ix_(some, some)], c)) if some else 0.0
        assert found == pytest.approx(expected, rel=1e-10)
