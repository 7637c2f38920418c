"""TOFU-POV: the quick ways of choosing and learning are the long ones, bit by bit.

A plain table inside an epoch is played in one compiled call, and the reward of the last decision
enters the regression at coordinates that are at hand. Whatever is not that plain goes step by step.
"""

import itertools

import numpy as np
import pytest
from policy_runs import Offer, copy_of, looks, state_bytes

from halfseen import (
    Decision,
    InvalidRewardError,
    InvalidSlateError,
    Slate,
    TofuPov,
    Unidentifiable,
    UnknownDecisionError,
)
from halfseen.core.ridge import Ridge
from halfseen.policies.tofu_epoch import Epoch

DIM = 20
NARROW, WIDE = [1, 3, 5, 9], [10, 16]

VARIANTS = {
    "with a ridge": {},
    "without a ridge": {"impute_ridge": 0.0},
    "posterior mean": {"features": "posterior-mean"},
    "thompson": {"exploration": "thompson"},
    "greedy": {"exploration": "greedy"},
    "nothing replayed": {"replay": "none"},
    "burn-in replayed once": {"replay": "burn-in-once"},
    "pairs counted": {"observe_prob": None},
    "likelihood": {"subspace": "likelihood", "features": "posterior-mean", "ridge": "estimated"},
}

over_variants = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS.keys())
over_ranks = pytest.mark.parametrize("rank", NARROW + WIDE)


def tofu(rank=3, **settings):
    """Return a policy whose epochs start at rounds 6, 12, 24."""
    basics = {"dim": DIM, "rank": rank, "observe_prob": 0.9, "burn_in": 5, "noise_scale": 0.1}
    return TofuPov(**(basics | settings))


def rounds_of(sizes, seed=0):
    """Return rounds of arms in all directions, two entries of each hidden, as float32 has them."""
    random = np.random.default_rng(seed)
    theta, rounds = random.standard_normal(DIM), []
    for n_arms in sizes:
        arms = random.standard_normal((n_arms, DIM)).astype(np.float32).astype(np.float64)
        rewards = arms @ theta + 0.1 * random.standard_normal()
        for arm in arms:
            arm[random.permutation(DIM)[:2]] = np.nan
        rounds.append(Offer(arms, rewards))
    return rounds


def retold(decision):
    """Return an equal decision that is not the same object: the long way of learning."""
    return Decision.from_json(decision.to_json())


def twins(n_rounds, rank=3, **settings):
    """Return two equal policies after some rounds, the second one from a saved copy."""
    policy = tofu(rank, **settings)
    for table, rewards in rounds_of([4] * n_rounds, seed=1):
        decision = policy.choose(table)
        policy.learn(decision, float(rewards[decision.arm]))
    return policy, copy_of(policy)


# -- learning --------------------------------------------------------------------------------------


@over_variants
@over_ranks
def test_quick_and_long_learning_give_the_same_policy(rank, variant):
    quick = tofu(rank, **variant)
    long = copy_of(quick)
    for table, rewards in rounds_of([4, 1, 7] * 5):
        ours, theirs = quick.choose(table), long.choose(table)
        assert looks(ours) == looks(theirs)
        assert (quick._latest is ours) == (ours.epoch >= 0)
        quick.learn(ours, float(rewards[ours.arm]))
        long.learn(retold(theirs), float(rewards[ours.arm]))
    assert ours.epoch == 1
    assert state_bytes(quick) == state_bytes(long)


@over_variants
@over_ranks
def test_the_last_decision_learned_after_saving_and_loading_is_the_same(rank, variant):
    policy, _ = twins(8, rank, **variant)
    for table, rewards in rounds_of([4, 300, 4]):
        decision = policy.choose(table)
        restored = copy_of(policy)
        policy.learn(decision, float(rewards[decision.arm]))
        restored.learn(decision, float(rewards[decision.arm]))
        assert state_bytes(restored) == state_bytes(policy)


@pytest.mark.parametrize("rank", [3, 12])
@pytest.mark.parametrize("form", [np.float64, np.float32, int], ids=["float64", "float32", "int"])
def test_a_reward_of_another_type_is_the_same_reward(rank, form):
    policy, other = twins(8, rank)
    for table, _ in rounds_of([4] * 5):
        policy.learn(policy.choose(table), 2.0)
        other.learn(other.choose(table), form(2.0))
    assert state_bytes(other) == state_bytes(policy)


@pytest.mark.parametrize("rank", [3, 12])
@pytest.mark.parametrize("first", ["quick", "long"])
def test_the_last_decision_cannot_be_learned_twice(rank, first):
    policy, _ = twins(8, rank)
    decision = policy.choose(rounds_of([4])[0].table)
    policy.learn(decision if first == "quick" else retold(decision), 0.4)
    before = state_bytes(policy)
    for again in (decision, retold(decision)):
        with pytest.raises(UnknownDecisionError, match="is not open: it was learned before"):
            policy.learn(again, 0.4)
    assert state_bytes(policy) == before


@pytest.mark.parametrize("reward", [np.nan, np.inf, 1e101, "1", None, True + 0j])
def test_a_reward_that_is_no_number_leaves_the_last_decision_open(reward):
    policy, other = twins(8)
    table = rounds_of([4])[0].table
    decision, too = policy.choose(table), other.choose(table)
    before = state_bytes(policy)
    with pytest.raises(InvalidRewardError):
        policy.learn(decision, reward)
    assert state_bytes(policy) == before
    policy.learn(decision, 0.4)
    other.learn(retold(too), 0.4)
    assert state_bytes(policy) == state_bytes(other)


@pytest.mark.parametrize("variant", [{}, {"replay": "none"}], ids=["full replay", "no replay"])
@pytest.mark.parametrize("rank", [3, 12])
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_last_decision_is_learned_in_any_order_with_older_ones(rank, order, variant):
    quick, long = twins(8, rank, **variant)
    decisions = [quick.choose(table) for table, _ in rounds_of([4] * 3)]
    for table, _ in rounds_of([4] * 3):
        long.choose(table)
    for index in order:
        quick.learn(decisions[index], 0.1 * index)
        long.learn(retold(decisions[index]), 0.1 * index)
    assert state_bytes(quick) == state_bytes(long)


@pytest.mark.parametrize("variant", [{}, {"observe_prob": None}], ids=["one", "counted"])
@pytest.mark.parametrize("rank", [3, 12])
def test_the_last_decision_is_learned_after_other_arms_were_absorbed(rank, variant):
    quick, long = twins(8, rank, **variant)
    offered, catalogue = rounds_of([4, 1100])
    decision = quick.choose(offered.table)
    long.choose(offered.table)
    for policy in (quick, long):
        policy.absorb(catalogue.table)
    quick.learn(decision, 0.4)
    long.learn(retold(decision), 0.4)
    assert state_bytes(quick) == state_bytes(long)


@pytest.mark.parametrize("rank", [3, 12])
def test_with_room_for_one_open_decision_only_the_last_is_learned(rank):
    quick, long = twins(8, rank, max_open=1)
    first, last = (quick.choose(table) for table, _ in rounds_of([4] * 2))
    for table, _ in rounds_of([4] * 2):
        long.choose(table)
    with pytest.raises(UnknownDecisionError, match="max_open = 1"):
        quick.learn(first, 0.4)
    quick.learn(last, 0.4)
    long.learn(retold(last), 0.4)
    assert quick.n_open == 0
    assert state_bytes(quick) == state_bytes(long)


@pytest.mark.parametrize("replay", ["none", "burn-in-once", "burn-in", "full"])
@pytest.mark.parametrize("rank", [3, 12])
def test_a_late_burn_in_reward_may_come_before_that_of_the_last_decision(rank, replay):
    """It enters a copy of the epoch, which knows the last decision, too."""
    quick = tofu(rank, replay=replay)
    rounds = rounds_of([4] * 9)
    late = quick.choose(rounds[0].table)
    for table, rewards in rounds[1:8]:
        decision = quick.choose(table)
        quick.learn(decision, float(rewards[decision.arm]))
    long = copy_of(quick)
    decision = quick.choose(rounds[8].table)
    long.choose(rounds[8].table)
    for policy in (quick, long):
        policy.learn(late, 0.3)
    quick.learn(decision, 0.4)
    long.learn(retold(decision), 0.4)
    assert state_bytes(quick) == state_bytes(long)


@pytest.mark.parametrize("rank", [3, 12])
@pytest.mark.parametrize("bad", ["wild", "blind"])
@pytest.mark.parametrize("form", [np.array, np.asfortranarray], ids=["table", "other order"])
def test_the_last_decision_is_learned_after_a_choice_that_failed(rank, bad, form):
    quick, long = twins(8, rank, impute_ridge=0.0)
    offered, other = rounds_of([4, 4])
    decision = quick.choose(offered.table)
    long.choose(offered.table)
    other.table[1] = np.inf if bad == "wild" else np.nan
    before = state_bytes(quick)
    with pytest.raises(InvalidSlateError if bad == "wild" else Unidentifiable):
        quick.choose(form(other.table))
    assert state_bytes(quick) == before
    quick.learn(decision, 0.4)
    long.learn(retold(decision), 0.4)
    assert state_bytes(quick) == state_bytes(long)


def test_the_last_decision_of_another_policy_is_refused():
    policy, other = tofu(), tofu()
    for table, _ in rounds_of([4] * 8):
        ours, theirs = policy.choose(table), other.choose(table)
    before = state_bytes(policy)
    with pytest.raises(UnknownDecisionError, match="was made by another policy"):
        policy.learn(theirs, 0.4)
    with pytest.raises(UnknownDecisionError, match="learn needs a Decision, got NoneType"):
        policy.learn(None, 0.4)
    assert state_bytes(policy) == before
    policy.learn(ours, 0.4)


def test_the_opening_of_the_next_epoch_replays_what_was_learned_quickly_and_late_alike():
    """Quick, long and late rewards end in the same order of rounds."""
    quick, long = twins(8)
    rounds = rounds_of([1] * 5)
    pairs = [(quick.choose(table), long.choose(table)) for table, _ in rounds[:3]]
    for ours, _ in pairs[::-1]:
        quick.learn(ours, 0.1 * ours.round)
    for _, theirs in pairs:
        long.learn(retold(theirs), 0.1 * theirs.round)
    for table, _ in rounds[3:]:
        ours, theirs = quick.choose(table), long.choose(table)
    assert ours.epoch == 1
    assert looks(ours) == looks(theirs)
    assert quick._epoch.model.root.tobytes() == long._epoch.model.root.tobytes()


# -- choosing --------------------------------------------------------------------------------------

LONG_FORMS = {
    "fortran order": np.asfortranarray,
    "float32": lambda table: table.astype(np.float32),
    "list": lambda table: table.tolist(),
    "every other column": lambda table: np.repeat(table, 2, axis=1)[:, ::2],
}
QUICK_FORMS = {"table": np.array, "slate": Slate}
over_long_forms = pytest.mark.parametrize("form", LONG_FORMS.values(), ids=LONG_FORMS.keys())


def fail(*args, **kwargs):
    raise AssertionError("this way is not to be taken")


@pytest.mark.parametrize("form", QUICK_FORMS.values(), ids=QUICK_FORMS.keys())
@pytest.mark.parametrize("rank", NARROW)
def test_a_plain_table_in_a_narrow_epoch_is_not_scored_step_by_step(monkeypatch, rank, form):
    policy, _ = twins(8, rank)
    monkeypatch.setattr(Epoch, "score", fail)
    monkeypatch.setattr(Ridge, "update", fail)
    for table, _ in rounds_of([4, 300, 1]):
        policy.learn(policy.choose(form(table)), 0.4)


@over_long_forms
def test_other_forms_of_a_table_are_scored_step_by_step(monkeypatch, form):
    policy, _ = twins(8)
    monkeypatch.setattr(Epoch, "play_table", fail)
    policy.choose(form(rounds_of([4])[0].table))


@pytest.mark.parametrize(
    ("rank", "variant"), [(10, {}), (3, {"exploration": "thompson"})], ids=["wide", "thompson"]
)
def test_wide_epochs_and_thompson_sampling_are_scored_step_by_step(monkeypatch, rank, variant):
    policy, _ = twins(8, rank, **variant)
    monkeypatch.setattr(Epoch, "play_table", fail)
    for table, _ in rounds_of([4] * 2):
        policy.learn(policy.choose(table), 0.4)


@over_variants
@over_long_forms
@pytest.mark.parametrize("rank", [*NARROW, 12])
def test_quick_and_long_choosing_give_the_same_decisions_and_policy(rank, form, variant):
    quick = tofu(rank, **variant)
    long = copy_of(quick)
    for table, rewards in rounds_of([4, 1, 7, 300, 9, 2, 5] * 2):
        ours, theirs = quick.choose(table), long.choose(form(table))
        assert looks(ours) == looks(theirs)
        for policy, decision in ((quick, ours), (long, theirs)):
            policy.learn(decision, float(rewards[decision.arm]))
    assert state_bytes(quick) == state_bytes(long)


@pytest.mark.parametrize("rank", [3, 12])
@over_long_forms
def test_quick_and_long_choosing_are_the_same_before_any_reward(rank, form):
    quick = tofu(rank)
    long = copy_of(quick)
    for table, _ in rounds_of([4, 1, 7] * 4):
        assert looks(quick.choose(table)) == looks(long.choose(form(table)))
    assert state_bytes(quick) == state_bytes(long)


@pytest.mark.parametrize("observe_prob", [0.9, None], ids=["one", "counted"])
@pytest.mark.parametrize("n_arms", [4, 8, 600, 1000, 1024, 1025])
@pytest.mark.parametrize("form", [np.asfortranarray, Slate], ids=["fortran order", "slate"])
def test_a_block_that_is_full_makes_no_difference(n_arms, observe_prob, form):
    """Neither between the ways, nor but for rounding to sums that never waited."""
    quick, long = twins(8, observe_prob=observe_prob)
    for table, _ in rounds_of([4] * 256, seed=2):
        if quick._offered.n_waiting < 1020:
            quick.absorb(table)
            long.absorb(table)
    assert quick._offered.n_waiting == 1020
    n_before, (products, pairs) = quick._offered.n_arms, quick._offered.sums()
    rounds = rounds_of([n_arms, 8, n_arms], seed=3)
    for table, _ in rounds:
        ours, theirs = quick.choose(table), long.choose(form(table))
        assert looks(ours) == looks(theirs)
        assert state_bytes(quick) == state_bytes(long)
        quick.learn(ours, 0.4)
        long.learn(retold(theirs), 0.4)
    arms = np.concatenate([table for table, _ in rounds])
    zeroed, seen = np.nan_to_num(arms), (~np.isnan(arms)).astype(float)
    assert quick._offered.n_arms == n_before + len(arms)
    np.testing.assert_allclose(
        quick._offered.second_moment(), products + zeroed.T @ zeroed, rtol=1e-11, atol=1e-11
    )
    if observe_prob is None:
        np.testing.assert_array_equal(quick._offered.pair_counts(), pairs + seen.T @ seen)
