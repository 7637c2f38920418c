"""Rounds of a simulation in one compiled call: the same as one after another, bit by bit."""

import math

import numpy as np
import pytest

from halfseen import AmbientOful, LatentUcb, TofuPov, archive
from halfseen.core.rank import PracticalThreshold

DIM, N_ROUNDS = 12, 160


def rounds(n_arms=5, *, dim=DIM, rank=2, seed=0, n_rounds=N_ROUNDS, show=0.6):
    """Return tables with NaN where hidden, and what each arm would pay."""
    random = np.random.default_rng(seed)
    basis = np.linalg.qr(random.normal(size=(dim, rank)))[0]
    latent = random.normal(size=(n_rounds, n_arms, rank))
    tables = latent @ basis.T
    tables[random.random(tables.shape) > show] = math.nan
    return tables, latent[..., 0] + 0.1 * random.normal(size=(n_rounds, n_arms))


def tofu(**settings):
    defaults = {"dim": DIM, "rank": 2, "observe_prob": 0.6, "burn_in": 8, "noise_scale": 0.1}
    return TofuPov(**(defaults | settings))


def one_by_one(policy, tables, rewards):
    chosen = []
    for table, pays in zip(tables, rewards.tolist(), strict=True):
        decision = policy.choose(table)
        policy.learn(decision, pays[decision.arm])
        chosen.append(decision.arm)
    return chosen


def in_blocks(policy, tables, rewards, size):
    """Return the chosen arms, and how many of them were chosen in common calls."""
    chosen, n_known, at = [], 0, 0
    while at < len(tables):
        end = min(at + size, len(tables))
        known = policy.play_known(tables[at:end], rewards[at:end]).tolist()
        n_known += len(known)
        chosen += known or one_by_one(policy, tables[at : at + 1], rewards[at : at + 1])
        at = len(chosen)
    return chosen, n_known


def state_of(policy):
    """Return everything but the names by which policies tell themselves apart."""
    return archive.to_bytes(nameless(policy.to_tree()))


def nameless(tree):
    if isinstance(tree, dict):
        return {key: nameless(value) for key, value in tree.items() if key != "token"}
    return [nameless(each) for each in tree] if isinstance(tree, list | tuple) else tree


CASES = {
    "plain": {},
    "practical": {"replay": "burn-in-once"},
    "nothing replayed": {"replay": "none"},
    "with a horizon": {"horizon": N_ROUNDS},
    "greedy": {"exploration": "greedy"},
    "bonus": {"bonus_scale": 1e-3, "last_eigenvalue": 0.5},
    "no ridge": {"impute_ridge": 0.0, "rank": 1},
    "chosen rank": {"rank": PracticalThreshold()},
    "unknown probability": {"observe_prob": None},
    "arms kept": {"subspace": "likelihood", "features": "posterior-mean"},
    "few arms kept": {"subspace": "likelihood", "memory_bytes": 20_000},
    "scales estimated": {
        "ridge": "estimated",
        "noise_scale": "estimated",
        "theta_bound": "estimated",
    },
}


@pytest.mark.parametrize("size", [1, 7, 64])
@pytest.mark.parametrize("settings", CASES.values(), ids=CASES)
def test_rounds_in_one_call_are_rounds_one_after_another(settings, size):
    tables, rewards = rounds(rank=1) if settings.get("rank") == 1 else rounds()
    quick, slow = tofu(**settings), tofu(**settings)
    chosen, n_known = in_blocks(quick, tables, rewards, size)
    assert chosen == one_by_one(slow, tables, rewards)
    assert state_of(quick) == state_of(slow)
    assert n_known >= 20


@pytest.mark.parametrize("n_arms", [1, 100, 511, 512, 1024, 1500])
def test_full_blocks_of_waiting_arms_are_summed_up_at_the_same_rounds(n_arms):
    tables, rewards = rounds(n_arms, n_rounds=40)
    quick, slow = tofu(), tofu()
    assert in_blocks(quick, tables, rewards, 16)[0] == one_by_one(slow, tables, rewards)
    assert state_of(quick) == state_of(slow)


def test_latent_ucb_plays_known_rounds_too():
    tables, rewards = rounds()
    quick, slow = LatentUcb(), LatentUcb()
    chosen, n_known = in_blocks(quick, tables, rewards, 32)
    assert chosen == one_by_one(slow, tables, rewards)
    assert state_of(quick) == state_of(slow)
    assert n_known > 0


@pytest.mark.parametrize("wide", [{"rank": 10}, {"exploration": "thompson"}], ids=str)
def test_what_has_no_quick_way_is_played_one_by_one(wide):
    tables, rewards = rounds(rank=2)
    policy = tofu(**wide)
    assert in_blocks(policy, tables, rewards, 32)[1] == 0


def test_a_policy_without_such_a_way_plays_none():
    tables, rewards = rounds()
    policy = AmbientOful(dim=DIM)
    before = state_of(policy)
    assert policy.play_known(tables, rewards).shape == (0,)
    assert state_of(policy) == before


class Own(TofuPov):
    def choose(self, options):
        return super().choose(options)


class OwnStep(TofuPov):
    n_learned = 0

    def _learn(self, decision, reward, note):
        self.n_learned += 1
        super()._learn(decision, reward, note)


class Counting:
    n_learned = 0

    def learn(self, decision, reward):
        self.n_learned += 1
        super().learn(decision, reward)


class Mixed(Counting, TofuPov):
    pass


class Heir(Mixed):
    pass


class Renamed(TofuPov):
    pass


@pytest.mark.parametrize("kind", [Own, OwnStep, Mixed, Heir])
def test_a_subclass_that_chooses_or_learns_in_its_own_way_is_never_bypassed(kind):
    tables, rewards = rounds()
    policy = kind(dim=DIM, rank=2, observe_prob=0.6, burn_in=8)
    assert in_blocks(policy, tables, rewards, 32)[1] == 0
    assert getattr(policy, "n_learned", N_ROUNDS) == N_ROUNDS


def test_a_subclass_that_changes_neither_plays_known_rounds():
    tables, rewards = rounds()
    policy = Renamed(dim=DIM, rank=2, observe_prob=0.6, burn_in=8)
    assert in_blocks(policy, tables, rewards, 32)[1] > 0


def test_rewards_that_do_not_fit_the_tables_are_not_played():
    tables, rewards = rounds()
    policy = tofu()
    one_by_one(policy, tables[:20], rewards[:20])
    for wrong in (rewards[20:28, :1], rewards[20:24], np.ones((8, 6))):
        assert len(policy.play_known(tables[20:28], np.ascontiguousarray(wrong))) == 0
    assert len(policy.play_known(tables[20:28, :0], rewards[20:28, :0])) == 0


@pytest.mark.parametrize("where", ["table", "reward"])
@pytest.mark.parametrize("wild", [math.inf, 1e101])
def test_what_must_be_refused_is_left_to_the_usual_way(where, wild):
    tables, rewards = rounds()
    policy = tofu()
    in_blocks(policy, tables[:20], rewards[:20], 8)
    (tables if where == "table" else rewards)[22, 0] = wild
    before = policy.round
    n_known = len(policy.play_known(tables[20:28], rewards[20:28]))
    assert n_known == (2 if where == "table" else 0)
    assert policy.round == before + n_known


def test_an_unidentified_arm_stops_before_its_round():
    tables, rewards = rounds(rank=1)
    policy, other = (tofu(rank=1, impute_ridge=0.0) for _ in range(2))
    for each in (policy, other):
        one_by_one(each, tables[:20], rewards[:20])
    tables[23, 1] = math.nan
    assert len(policy.play_known(tables[20:28], rewards[20:28])) == 3
    one_by_one(other, tables[20:23], rewards[20:23])
    assert state_of(policy) == state_of(other)


def test_open_decisions_stay_open_and_the_oldest_goes_only_by_choosing():
    tables, rewards = rounds()
    policy = tofu(max_open=2)
    one_by_one(policy, tables[:20], rewards[:20])
    first = policy.choose(tables[20])
    assert len(policy.play_known(tables[21:24], rewards[21:24])) == 3
    second = policy.choose(tables[24])
    assert policy.n_open == 2
    assert len(policy.play_known(tables[25:28], rewards[25:28])) == 0  # choosing would forget one
    policy.learn(second, 0.1)
    policy.learn(first, 0.2)
    assert policy.n_open == 0
