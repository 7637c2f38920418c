"""`LatentUcb` in long service: bounded memory."""

import pickle

import numpy as np

from halfseen import LatentUcb
from halfseen.latent.history import arms_kept
from halfseen.testing.policies import state_bytes


def rounds(n_rounds, *, seed=0, n_arms=8, dim=30, noise=0.1):
    """Yield half-seen slates near a subspace, and what their arms pay without noise."""
    random, block = np.random.default_rng(seed), 500
    loadings, theta = random.normal(size=(3, dim)), random.normal(size=3)
    for first in range(0, n_rounds, block):
        latent = random.normal(size=(block, n_arms, 3))
        tables = latent @ loadings + noise * random.normal(size=(block, n_arms, dim))
        tables[random.random(tables.shape) < 0.5] = np.nan
        yield from zip(tables[: n_rounds - first], latent @ theta, strict=False)


def play(policy, slates):
    """Return the regret."""
    noise, regret = np.random.default_rng(0).normal(size=1000), 0.0
    for table, means in slates:
        decision = policy.choose(table)
        policy.learn(decision, float(means[decision.arm] + noise[policy.round % 1000]))
        regret += means.max() - means[decision.arm]
    return regret


def test_memory_is_flat_in_fifty_thousand_rounds():
    policy, sizes = LatentUcb(), {}
    slates = rounds(50_000, n_arms=4, dim=10)
    for n_rounds in (20_000, 30_000):
        play(policy, (next(slates) for _ in range(n_rounds)))
        sizes[policy.round] = len(pickle.dumps(policy)), len(state_bytes(policy))
    # Arms wait in a buffer that is between half full and full.
    assert sizes[50_000][0] <= 1.3 * sizes[20_000][0]
    assert sizes[50_000][1] <= 1.5 * sizes[20_000][1]
    assert max(size for size, _ in sizes.values()) < 5e6


def test_memory_bytes_bound_what_grows():
    policy = LatentUcb(memory_bytes=48_000)
    play(policy, rounds(1000, dim=20))
    assert arms_kept(20, 48_000) == 100
    assert policy._arms.table.nbytes == 100 * 20 * 8
    assert len(policy._history) < 200
    assert policy._history.summary.n_rewards > 700


def test_little_memory_costs_little_regret():
    """Noise of 1 needs all rewards: those of the last 100 to 200 rounds alone are not enough."""
    ours, theirs = (
        [play(LatentUcb(memory_bytes=memory), rounds(2000, seed=seed, dim=20)) for seed in range(4)]
        for memory in (48_000, 10**8)
    )
    assert np.mean(ours) < 1.15 * np.mean(theirs)


def test_new_features_enter_a_policy_with_items_and_summaries():
    """As if they had been known, hidden, from the start, if items have ids."""
    random = np.random.default_rng(0)
    items, means = random.normal(size=(60, 6)), random.normal(size=60)
    items[random.random(items.shape) < 0.3] = np.nan
    wide = np.hstack([items, np.full((60, 2), np.nan)])
    grown, known = LatentUcb(dim=6, memory_bytes=1), LatentUcb(dim=8, memory_bytes=1)
    for _ in range(80):
        offered = random.choice(60, size=4, replace=False)
        decisions = [
            policy.choose(table[offered], items=offered)
            for policy, table in ((grown, items), (known, wide))
        ]
        assert decisions[0].arm == decisions[1].arm
        reward = float(means[offered[decisions[0].arm]] + 0.1 * random.normal())
        for policy, decision in zip((grown, known), decisions, strict=True):
            policy.learn(decision, reward)
    assert grown._history.summary is not None
    assert len(grown._epoch.reward_model.items)
    grown.widen(8)
    for _ in range(40):
        offered = random.choice(60, size=4, replace=False)
        table = wide[offered]
        table[:, 6:] = random.normal(size=(4, 2))
        ours, theirs = (each.choose(table, items=offered) for each in (grown, known))
        np.testing.assert_allclose(ours.scores, theirs.scores, rtol=1e-6, atol=1e-6)
        for policy, decision in ((grown, ours), (known, theirs)):
            policy.learn(decision, 0.3)


def test_arms_without_ids_are_the_same_items_if_a_new_feature_is_hidden():
    random = np.random.default_rng(0)
    arms, means = random.normal(size=(30, 6)), 3.0 * random.normal(size=30)
    policy = LatentUcb(dim=6, memory_bytes=1)
    for n_rounds, dim in ((200, 6), (60, 7)):
        policy.widen(dim)
        arms = np.hstack([arms, np.full((30, dim - arms.shape[1]), np.nan)])
        for _ in range(n_rounds):
            offered = random.choice(30, size=10, replace=False)
            decision = policy.choose(arms[offered])
            policy.learn(decision, float(means[offered[decision.arm]] + 0.1 * random.normal()))
    assert policy._epoch.features.arm.model.dim == 7
    assert policy._history.summary is not None
    assert len(policy._epoch.reward_model.items) == 30
