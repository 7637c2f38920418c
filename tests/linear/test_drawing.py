"""Probabilities of arms by hand, and draws that follow them."""

import math

import numpy as np
import pytest
from scipy.stats import chi2, norm

from halfseen.linear.drawing import N_DRAWS, drawn, inverse_gap, inverse_gap_rate, win_shares


def keys_of(*numbers):
    return np.array(numbers, dtype=np.uint64)


def test_equal_best_arms_share_what_remains():
    law = inverse_gap(np.array([1.0, 0.0, 1.0]), 7.0)
    assert law == pytest.approx([0.45, 0.1, 0.45])
    assert inverse_gap(np.zeros(4), 3.0).tolist() == [0.25] * 4


def test_the_rate_grows_with_the_root_of_rounds_per_information_and_with_arms_per_direction():
    assert inverse_gap_rate(8, 50, 32.0) == pytest.approx(10.0 * 2**0.5)
    assert inverse_gap_rate(8, 50, 4.0) == pytest.approx(40.0 * 2**0.5)
    assert inverse_gap_rate(8, 50, 0.0) == pytest.approx(160.0 * 2**0.5)


def test_win_shares_are_those_of_a_normal_law():
    """Two arms: P(first wins) = Φ(gap/deviation); 5 standard errors fail with 6e-7."""
    white, own = np.array([[1.0, 0.5], [0.2, 0.9]]), np.array([0.3, 0.4])
    deviation = math.sqrt(((white[0] - white[1]) ** 2).sum() + 0.09 + 0.16)
    expected = norm.cdf(0.4 / deviation)
    given = keys_of(7, 3), np.array([0.4, 0.0]), white, 0, np.random.default_rng(0)
    law = win_shares(*given, own)
    error = math.sqrt(expected * (1.0 - expected) / N_DRAWS)
    assert abs(law[0] - expected) < 5 * error + 1 / N_DRAWS
    assert law.sum() == pytest.approx(1.0)


def test_of_equal_arms_the_first_one_wins():
    white = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    random = np.random.default_rng(0)
    law = win_shares(keys_of(9, 4, 9, 4), np.zeros(4), white, 0, random)
    assert (law[:2] > 0.4).all()
    assert not law[2:].any()


def test_the_order_of_arms_does_not_matter_to_win_shares_and_draws():
    random = np.random.default_rng(0)
    white, estimates, keys = random.normal(size=(6, 3)), random.normal(size=6), keys_of(*range(6))
    order = random.permutation(6)
    law = win_shares(keys, estimates, white, 2, np.random.default_rng(1))
    place = int(np.flatnonzero(order == 2)[0])
    given = keys[order], estimates[order], white[order], place, np.random.default_rng(1)
    assert win_shares(*given).tolist() == law[order].tolist()
    arms = [drawn(law, estimates, keys, np.random.default_rng(seed)) for seed in range(50)]
    others = [
        drawn(law[order], estimates[order], keys[order], np.random.default_rng(seed))
        for seed in range(50)
    ]
    assert [int(order[other]) for other in others] == arms


def test_arms_are_drawn_with_their_probabilities():
    """Chi-square with 3 degrees of freedom; fails by chance with 1e-6."""
    law, random = np.array([0.1, 0.0, 0.5, 0.3, 0.1]), np.random.default_rng(0)
    arms = [drawn(law, np.zeros(5), keys_of(*range(5)), random) for _ in range(5000)]
    counts, possible = np.bincount(arms, minlength=5), law > 0.0
    assert not counts[~possible].any()
    expected = 5000 * law[possible]
    assert ((counts[possible] - expected) ** 2 / expected).sum() < chi2.isf(1e-6, 3)
