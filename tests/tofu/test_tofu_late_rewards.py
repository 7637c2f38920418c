"""TOFU-POV: a late reward enters exactly the regressions that it would have entered in time.

All slates have one arm, so that choices do not depend on what was learned.
"""

import numpy as np
import pytest

from halfseen import Slate
from halfseen.tofu.imputation import coordinates
from policy_runs import looks, offers, tofu


def play(policy, rounds, learned_after):
    """Choose in every round; learn the rewards of the rounds `learned_after` names after each."""
    decisions = {}
    for index, (table, rewards) in enumerate(rounds, start=1):
        decisions[index] = policy.choose(table), rewards[0]
        for late in learned_after.get(index, ()):
            policy.learn(*decisions[late])
    return decisions


def in_time(n_rounds):
    return {index: [index] for index in range(1, n_rounds + 1)}


def delayed(n_rounds, seed):
    """Return a schedule in which rewards come in random order, all of them up to `n_rounds`."""
    random = np.random.default_rng(seed)
    schedule = {}
    for late in random.permutation(np.arange(1, n_rounds + 1)):
        schedule.setdefault(int(random.integers(late, n_rounds + 1)), []).append(int(late))
    return schedule


# Permuted over three epochs


@pytest.mark.parametrize("seed", range(3))
def test_with_full_replay_delayed_and_permuted_rewards_end_in_the_same_state(seed):
    rounds = offers(60, sizes=(1,))
    prompt, late = tofu(replay="full"), tofu(replay="full")
    play(prompt, rounds[:47], in_time(47))
    play(late, rounds[:47], delayed(47, seed))
    ours, theirs = prompt._epoch.model, late._epoch.model
    assert ours.n_samples == theirs.n_samples == 47
    assert theirs.log_det == pytest.approx(ours.log_det, rel=1e-10)
    for name in ("root", "gram", "response", "factor", "white"):
        assert getattr(theirs, name) == pytest.approx(getattr(ours, name), rel=1e-10, abs=1e-10)

    # The next epoch replays in the order of the rounds, so nothing is left of the delay.
    opening, too = prompt.choose(rounds[47].table), late.choose(rounds[47].table)
    assert looks(opening) == looks(too)
    assert prompt._epoch.record == late._epoch.record
    assert prompt._epoch.model.root.tobytes() == late._epoch.model.root.tobytes()
    for policy, decision in ((prompt, opening), (late, too)):
        policy.learn(decision, 0.1)
    for table, _ in rounds[48:]:
        assert looks(prompt.choose(table)) == looks(late.choose(table))


def test_delayed_rewards_reach_the_burn_in_policy_too():
    rounds = offers(20, sizes=(1,))
    prompt, late = tofu(), tofu()
    play(prompt, rounds, in_time(20))
    play(late, rounds, {20: list(range(20, 0, -1))})
    ours, theirs = prompt._burner._model, late._burner._model
    assert theirs.n_samples == 5
    assert theirs.gram == pytest.approx(ours.gram, rel=1e-10)
    assert theirs.response == pytest.approx(ours.response, rel=1e-10)


# Which regression


IN_BURN_IN, IN_EPOCH_0, IN_EPOCH_1 = 3, 8, 15
USED = {
    # (round of the decision, round after which its reward comes): by which replay it is used
    (IN_BURN_IN, 9): {"burn-in-once", "burn-in", "full"},
    (IN_BURN_IN, 14): {"burn-in", "full"},
    (IN_BURN_IN, 30): {"burn-in", "full"},
    (IN_EPOCH_0, 10): {"none", "burn-in-once", "burn-in", "full"},
    (IN_EPOCH_0, 14): {"full"},
    (IN_EPOCH_0, 30): {"full"},
    (IN_EPOCH_1, 20): {"none", "burn-in-once", "burn-in", "full"},
    (IN_EPOCH_1, 30): {"full"},
}


@pytest.mark.parametrize("replay", ["none", "burn-in-once", "burn-in", "full"])
@pytest.mark.parametrize("late", USED, ids=lambda late: f"round {late[0]} after {late[1]}")
def test_a_late_reward_enters_the_regression_that_it_belongs_to(replay, late):
    played, now = late
    rounds = offers(now, sizes=(1,))
    policy = tofu(replay=replay)
    schedule = in_time(now)
    del schedule[played]
    decision, reward = play(policy, rounds, schedule)[played]
    model = policy._epoch.model
    before = model.root.copy()
    gram, response = model.gram, model.response
    policy.learn(decision, reward)
    model = policy._epoch.model

    if replay not in USED[late]:
        assert np.array_equal(model.root, before)
        return
    slate = Slate(decision.values[None], decision.mask[None])
    point = coordinates(policy.basis, slate, 1e-5)[0]
    assert model.n_samples == before[-1] + 1
    assert model.response - response == pytest.approx(point * reward, rel=1e-9)
    assert model.gram - gram == pytest.approx(np.outer(point, point), rel=1e-9)


@pytest.mark.parametrize(
    ("replay", "n_replayed"), [("none", 0), ("burn-in-once", 0), ("burn-in", 5), ("full", 23)]
)
@pytest.mark.parametrize("played", [IN_BURN_IN, IN_EPOCH_0, IN_EPOCH_1])
def test_the_next_epoch_replays_a_late_reward_like_one_in_time(replay, n_replayed, played):
    rounds = offers(24, sizes=(1,))
    schedules = in_time(23), in_time(23)
    schedules[1][played] = []
    schedules[1][20] = [20, played]
    prompt, late = tofu(replay=replay), tofu(replay=replay)
    for policy, schedule in zip((prompt, late), schedules, strict=True):
        play(policy, rounds, schedule)
    assert late._epoch.model.n_samples == n_replayed
    assert late.epoch_log[-1] == prompt.epoch_log[-1]
    ours, theirs = (policy._epoch.model.root for policy in (prompt, late))
    assert ours.tobytes() == theirs.tobytes()
