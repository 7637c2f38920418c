"""`LatentUcb` in long service: bounded memory, and refits beside the epoch that serves."""

import copy
import os
import pickle
import threading

import numpy as np
import pytest

from halfseen import LatentUcb
from halfseen.latent.epoch import Epoch
from halfseen.latent.history import arms_kept
from halfseen.testing.policies import copy_of, state_bytes


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
    assert 0.0 < policy._diagnostics()["carry_error"] < 0.1


def test_memory_bytes_bound_what_grows():
    policy = LatentUcb(memory_bytes=48_000)
    play(policy, rounds(1000, dim=20))
    assert arms_kept(20, 48_000) == 100
    assert policy._arms.table.nbytes == 100 * 20 * 8
    assert len(policy._history) < 200
    assert policy._history.summaries[0].n_rewards > 700


@pytest.mark.parametrize("half_life", [None, 300.0])
def test_little_memory_costs_little_regret(half_life):
    """Noise of 1 needs all rewards: those of the last 100 to 200 rounds alone are not enough."""
    ours, theirs = (
        [
            play(
                LatentUcb(memory_bytes=memory, half_life=half_life), rounds(2000, seed=seed, dim=20)
            )
            for seed in range(4)
        ]
        for memory in (48_000, 10**8)
    )
    assert np.mean(ours) < 1.15 * np.mean(theirs)


def single_arms(n_rounds):
    """Yield slates of one arm, so that every policy plays the same ones."""
    return rounds(n_rounds, n_arms=1, dim=6)


@pytest.fixture
def held(monkeypatch):
    """Hold back refits until the event is set."""
    gate, opened = threading.Event(), Epoch.open.__func__

    def waiting(cls, *given):
        assert gate.wait(20.0)
        return opened(cls, *given)

    def hold(policy, play_one):
        """Play until a refit is held back; one that runs already ends first."""
        while policy._prepared is not None:
            policy._prepared.wait()
            play_one()
        monkeypatch.setattr(Epoch, "open", classmethod(waiting))
        while policy._prepared is None:
            play_one()
        return gate

    return hold


def playing(policy, slates):
    """Return a function that plays the next slate."""
    return lambda: play(policy, slates[policy.round : policy.round + 1])


@pytest.mark.parametrize("n_new", [0, 2])
def test_a_refit_in_the_background_serves_on_and_then_knows_all_rewards(held, n_new):
    """And all features, if some enter meanwhile."""
    policy, other = LatentUcb(refit="background", dim=6), LatentUcb(dim=6)
    slates = list(single_arms(60))
    while policy.round < 30 or policy._prepared is not None:
        for each in (policy, other):
            play(each, slates[each.round : each.round + 1])
        if policy._prepared is not None:
            policy._prepared.wait()
    gate = held(policy, playing(policy, slates))
    n_epochs, opening = len(policy._epoch_log), policy.round
    random = np.random.default_rng(0)
    more = [
        (np.hstack([table, random.normal(size=(len(table), n_new))]), reward)
        for table, reward in slates
    ]
    policy.widen(6 + n_new)
    play(policy, more[opening : opening + 5])
    assert len(policy._epoch_log) == n_epochs
    assert copy.deepcopy(policy)._prepared is policy._prepared
    assert copy_of(policy)._prepared is None  # from a file
    gate.set()
    policy._prepared.wait()
    play(other, slates[other.round : opening])
    other.widen(6 + n_new)
    play(other, more[opening : opening + 5])
    # The same as if the epoch had opened in time: the rewards since then were learned again.
    ours, theirs = (each.choose(more[opening + 5][0]) for each in (policy, other))
    assert len(policy._epoch_log) == n_epochs + 1
    assert [each.round for each in policy._epoch_log] == [each.round for each in other._epoch_log]
    assert len(policy._history) == len(other._history)
    np.testing.assert_allclose(ours.scores, theirs.scores, rtol=1e-9)


def test_copies_of_a_policy_share_a_refit_and_go_their_own_ways(held):
    """Also that which learns a log in place of the policy."""
    policy = LatentUcb(refit="background", dim=6)
    slates = list(single_arms(60))
    play(policy, slates[:20])
    gate = held(policy, playing(policy, slates))
    n_epochs, twin, refit = len(policy._epoch_log), copy.deepcopy(policy), policy._prepared
    policy.learn_logged(slates[40][0], [0.5] * len(slates[40][0]))
    assert policy._prepared is refit
    gate.set()
    refit.wait()
    for each, first in ((policy, 41), (twin, 50), (policy, 45), (twin, 55)):
        play(each, slates[first : first + 4])
    for each, first in ((policy, 41), (twin, 50)):
        assert len(each._epoch_log) > n_epochs
        rows = each._history.rows.arms[-8:]
        offered = np.vstack([table for table, _ in slates[first : first + 9]])
        assert all(any(np.array_equal(row, arm, equal_nan=True) for arm in offered) for row in rows)


def test_a_refit_to_a_log_alone_is_followed_by_one_that_knows_choices(held):
    """A log does not say how many arms a round offers, and so how often one comes back."""
    random = np.random.default_rng(0)
    arms, policy = random.normal(size=(20, 3)), LatentUcb(refit="background")

    def learn(n_rows):
        policy.learn_logged(arms[random.integers(20, size=n_rows)], random.normal(size=n_rows))

    learn(200)
    gate = held(policy, lambda: learn(10))
    n_logged = policy.round
    for at in range(40):
        policy.learn(policy.choose(arms), random.normal())
        if at == 3:
            gate.set()
        if policy._prepared is not None and gate.is_set():
            policy._prepared.wait()
    rare, often = (record for record in policy._epoch_log[-2:])
    assert rare.round <= n_logged + 1 < often.round <= n_logged + 15
    assert often.frequency > 5 * rare.frequency


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_starts_a_refit_again(held):
    policy = LatentUcb(refit="background", dim=6)
    slates = list(single_arms(60))
    play(policy, slates[:20])
    gate = held(policy, playing(policy, slates))
    lost, n_epochs = policy._prepared, len(policy._epoch_log)
    child = os.fork()
    if child == 0:
        gate.set()
        is_lost = lost.is_lost
        play(policy, slates[policy.round : policy.round + 1])
        policy._prepared.wait()
        play(policy, slates[policy.round : policy.round + 1])
        went_on = policy._schedule.n_failed_refits == 0 and len(policy._epoch_log) > n_epochs
        os._exit(0 if is_lost and went_on else 1)
    gate.set()
    assert os.waitpid(child, 0)[1] == 0


def test_a_call_that_fails_while_an_epoch_is_replaced_changes_nothing(held, monkeypatch):
    policy = LatentUcb(refit="background", dim=6)
    slates = list(single_arms(60))
    play(policy, slates[:20])
    gate = held(policy, playing(policy, slates))
    play(policy, slates[policy.round : policy.round + 3])
    gate.set()
    policy._prepared.wait()
    table, samples = slates[policy.round][0], []
    with monkeypatch.context() as patch:
        patch.setattr(LatentUcb, "_observe", lambda self, slate: 1 / 0)
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                policy.choose(table)
    policy.choose(table)
    samples = policy._epoch.reward_model.ridge.n_samples
    assert samples == len(policy._history) == policy.round - 1


def raising(error):
    def fail(*given):
        raise error

    return fail


@pytest.mark.parametrize(
    ("owner", "name", "error"),
    [
        (Epoch, "open", ZeroDivisionError()),
        (Epoch, "open", SystemExit()),
        (threading.Thread, "start", RuntimeError("can't start new thread")),
    ],
    ids=["an error", "an exit", "no thread"],
)
def test_a_refit_that_fails_in_the_background_is_logged_and_the_epoch_goes_on(
    monkeypatch, caplog, owner, name, error
):
    policy = LatentUcb(refit="background", dim=6)
    slates = list(single_arms(80))
    play(policy, slates[:30])
    if policy._prepared is not None:
        policy._prepared.wait()
    n_epochs = len(policy._epoch_log)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, raising(error))
        while policy._diagnostics()["n_failed_refits"] == 0:
            play(policy, slates[policy.round : policy.round + 1])
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "a refit failed" in caplog.text
    assert len(policy._epoch_log) <= n_epochs + 1
    while policy.round < len(slates):
        play(policy, slates[policy.round : policy.round + 1])
        if policy._prepared is not None:
            policy._prepared.wait()
    assert len(policy._epoch_log) > n_epochs + 1  # the next one succeeds


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
    assert grown._history.summaries
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
