"""The two policies without epochs: OFUL by hand, and a die that is fair."""

import math

import numpy as np
import pytest

from halfseen import AmbientOful, Uniform


def test_oful_by_hand():
    """λ = 4, S = 1/2, R = 1, δ = e⁻²: at the start β = 2·½ + √4 = 3 and a unit arm has width ½."""
    policy = AmbientOful(
        dim=2, ridge=4.0, theta_bound=0.5, noise_scale=1.0, failure_prob=math.exp(-2)
    )
    first = policy.choose([[1.0, 0.0], [0.0, 2.0], [math.nan, 1.0]])
    assert first.arm == 1
    assert first.estimates.tolist() == [0.0, 0.0, 0.0]
    assert first.widths == pytest.approx([1.5, 3.0, 1.5], rel=1e-14)
    policy.learn(first, 4.0)
    # V = diag(4, 8), Σzr = (0, 8): the estimate is (0, 1), det V / λ² = 2.
    radius = 1.0 + math.sqrt(2 * (0.5 * math.log(2.0) + 2))
    second = policy.choose([[1.0, 0.0], [0.0, 2.0], [math.nan, 1.0]])
    assert second.estimates == pytest.approx([0.0, 2.0, 1.0], rel=1e-14)
    assert second.widths == pytest.approx(
        [radius / 2, 2 * radius / math.sqrt(8), radius / math.sqrt(8)], rel=1e-14
    )


def test_uniform_chooses_every_arm_equally_often():
    """Counts of 6000 throws: beyond 5 standard deviations with probability 2e-6 over 4 arms."""
    policy = Uniform(dim=1, seed=0)
    arms = [policy.choose(np.ones((4, 1))).arm for _ in range(6000)]
    counts = np.bincount(arms, minlength=4)
    assert np.abs(counts - 1500).max() < 5 * math.sqrt(6000 * 0.25 * 0.75)
