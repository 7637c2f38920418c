"""The two policies without epochs: OFUL by hand, and a die that is fair."""

import math

import numpy as np
import pytest

from halfseen import AmbientOful, Greedy, Uniform
from policy_runs import copy_of, looks, state_bytes


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


@pytest.mark.parametrize("kind", [AmbientOful, Greedy])
@pytest.mark.parametrize("n_learned", [1, 2], ids=["one", "two in a row"])
def test_in_many_dimensions_a_reward_that_waits_is_not_to_be_seen(kind, n_learned):
    """In many dimensions a reward enters when the regression is looked at next.

    One policy is only played, one is saved after every reward, one goes on from its saved copy.
    """
    random = np.random.default_rng(0)
    played = kind(dim=150)
    saved, restored = copy_of(played), copy_of(played)
    for _ in range(45):
        tables = random.standard_normal((n_learned, 3, 150))
        tables[random.random(tables.shape) < 0.3] = np.nan
        chosen = [
            [policy.choose(table) for table in tables] for policy in (played, saved, restored)
        ]
        for ours, *others in zip(*chosen, strict=True):
            assert all(looks(decision) == looks(ours) for decision in others)
        for decisions in zip(*chosen, strict=True):
            reward = random.standard_normal()
            for policy, decision in zip((played, saved, restored), decisions, strict=True):
                policy.learn(decision, reward)
            state_bytes(saved)
            restored = copy_of(restored)
    assert state_bytes(played) == state_bytes(saved) == state_bytes(restored)


def test_uniform_chooses_every_arm_equally_often():
    """Counts of 6000 throws: beyond 5 standard deviations with probability 2e-6 over 4 arms."""
    policy = Uniform(dim=1, seed=0)
    arms = [policy.choose(np.ones((4, 1))).arm for _ in range(6000)]
    counts = np.bincount(arms, minlength=4)
    assert np.abs(counts - 1500).max() < 5 * math.sqrt(6000 * 0.25 * 0.75)
