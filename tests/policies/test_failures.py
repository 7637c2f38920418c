"""An exception from inside leaves the state bytes as they were, and nothing is lost.

Each test lets one inner part fail once, at a moment that depends on it, and repeats the call.
"""

import numpy as np
import pytest

from halfseen import (
    AmbientOful,
    InvalidSlateError,
    LatentUcb,
    PaperThreshold,
    PracticalThreshold,
    Slate,
    TofuPov,
    Unidentifiable,
)
from halfseen.core.factors import Arms, Spectrum
from halfseen.core.reward_model import RewardModel
from halfseen.kernels import ridge as ridge_kernels
from halfseen.linear import eigen
from halfseen.linear.covariance import Moments
from halfseen.linear.history import Played, Reservoir
from halfseen.linear.lift import Lift
from halfseen.linear.ridge import Ridge
from halfseen.policies import explorations, latent_side
from halfseen.tofu import rank, subspace
from halfseen.tofu.epoch import Epoch
from policy_runs import copy_of, few_arms, looks, offers, state_bytes, walk


class InjectedError(Exception):
    """No error that any code could expect."""


def tofu(**settings):
    """Return a policy whose epochs start at rounds 6, 12, 24."""
    basics = {"dim": 6, "rank": 2, "observe_prob": 0.7, "burn_in": 5, "noise_scale": 0.1}
    return TofuPov(**(basics | settings))


def fail(*args, **kwargs):
    raise InjectedError


def fail_after(function):
    """Do all the work, then fail."""

    def failing(*args, **kwargs):
        function(*args, **kwargs)
        raise InjectedError

    return failing


def choose_fails_once(monkeypatch, policy, options, owner, name, failure=fail):
    """Check that a failing `choose` changes nothing and can be repeated."""
    before, untouched = state_bytes(policy), copy_of(policy)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, failure)
        with pytest.raises(InjectedError):
            policy.choose(options)
    assert state_bytes(policy) == before
    assert looks(policy.choose(options)) == looks(untouched.choose(options))
    assert state_bytes(policy) == state_bytes(untouched)


def learn_fails_once(monkeypatch, policy, decision, owner, name, failure=fail):
    """Check that a failing `learn` changes nothing and can be repeated."""
    before, untouched = state_bytes(policy), copy_of(policy)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, failure)
        with pytest.raises(InjectedError):
            policy.learn(decision, 0.4)
    assert state_bytes(policy) == before
    policy.learn(decision, 0.4)
    untouched.learn(decision, 0.4)
    assert state_bytes(policy) == state_bytes(untouched)


OPENING = {
    "eigen-solver of a fixed rank": (2, rank, "top_eigenpairs"),
    "eigen-solver of a threshold": (PracticalThreshold(), eigen, "top_eigenpairs"),
    "LAPACK": (2, eigen, "_lapack"),
    "LAPACK of a threshold": (PracticalThreshold(), eigen, "_lapack"),
    "covariance": (2, subspace, "covariance_of"),
    "product of the moments": (2, Moments, "sums"),
    "coordinates of the replay": (2, Lift, "coordinates"),
    "coordinates of a wide rank": (12, Lift, "coordinates"),
    "insertion of the replay": (2, Ridge, "insert"),
    "compiled insertion": (2, ridge_kernels, "insert"),
    "compiled scoring": (2, ridge_kernels, "measure"),
    "compiled scoring of a wide rank": (12, ridge_kernels, "measure"),
    "samples of the replay": (2, Played, "samples"),
}


@pytest.mark.parametrize("n_rounds", [5, 11, 23])
@pytest.mark.parametrize("late", [False, True], ids=["at its start", "at its end"])
@pytest.mark.parametrize("part", OPENING.values(), ids=list(OPENING))
def test_a_failure_while_an_epoch_opens_changes_nothing(monkeypatch, part, late, n_rounds):
    rule, owner, name = part
    dim = 15 if rule == 12 else 6
    policy = tofu(rank=rule, dim=dim)
    rounds = few_arms(n_rounds + 1, dim=dim)
    walk(policy, rounds[:-1])
    failure = fail_after(getattr(owner, name)) if late else fail
    choose_fails_once(monkeypatch, policy, rounds[-1].table, owner, name, failure)


LATENT_OPENING = {
    "sample of the arms": (latent_side, "row_keys"),
    "arms of a fit": (Arms, "__init__"),
    "spectral start": (Spectrum, "start"),
    "search for the rank": (latent_side.Search, "run"),
    "reward model": (RewardModel, "fitted"),
    "regression": (Ridge, "fitted"),
    "scoring": (RewardModel, "score"),
}


def latent(**settings):
    """Return a policy whose epochs start at rounds 2, 3, 5, 8, 12, 18."""
    return LatentUcb(dim=6, growth=1.5, **settings)


@pytest.mark.parametrize("late", [False, True], ids=["at its start", "at its end"])
@pytest.mark.parametrize("part", LATENT_OPENING.values(), ids=list(LATENT_OPENING))
def test_a_failure_while_a_latent_epoch_opens_changes_nothing(monkeypatch, part, late):
    owner, name = part
    policy, random = latent(), np.random.default_rng(0)
    rounds = few_arms(12)
    for offer in rounds:
        offer.table[:] += 0.1 * random.standard_normal(offer.table.shape)
    walk(policy, rounds[:-1])
    n_epochs = len(policy.epoch_log)
    failure = fail_after(getattr(owner, name)) if late else fail
    choose_fails_once(monkeypatch, policy, rounds[-1].table, owner, name, failure)
    assert len(policy.epoch_log) == n_epochs + 1


@pytest.mark.parametrize("options", [Slate, np.array], ids=["slate", "table"])
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (explorations, "stream"),
        (RewardModel, "score"),
        (RewardModel, "draw"),
        (RewardModel, "win_shares"),
    ],
    ids=["stream", "scoring", "draw", "shares"],
)
def test_a_failure_while_thompson_sampling_plays_changes_nothing(monkeypatch, owner, name, options):
    policy = latent(rank=2, exploration="thompson")
    walk(policy, few_arms(15))
    table = options(few_arms(1, seed=1)[0].table)
    choose_fails_once(monkeypatch, policy, table, owner, name)


@pytest.mark.parametrize("call", ["choose", "absorb"])
def test_a_full_reservoir_that_fails_changes_nothing(monkeypatch, call):
    policy = latent(memory_bytes=480)
    walk(policy, few_arms(15))
    table = few_arms(1, seed=1)[0].table
    if call == "choose":
        choose_fails_once(monkeypatch, policy, table, Reservoir, "add")
        return
    before = state_bytes(policy)
    with monkeypatch.context() as patch:
        patch.setattr(Reservoir, "add", fail)
        with pytest.raises(InjectedError):
            policy.absorb(table)
    assert state_bytes(policy) == before


@pytest.mark.parametrize("late", [False, True], ids=["at its start", "at its end"])
@pytest.mark.parametrize(("owner", "name"), [(Epoch, "score"), (Ridge, "score")])
def test_a_failure_inside_an_epoch_changes_nothing(monkeypatch, owner, name, late):
    policy = tofu()
    walk(policy, few_arms(8))
    failure = fail_after(getattr(owner, name)) if late else fail
    choose_fails_once(monkeypatch, policy, few_arms(1, seed=1)[0].table, owner, name, failure)


def n_waiting(policy):
    return len(policy._offered.state()["waiting"])


def with_a_full_block(n_rounds, **settings):
    """Return a policy after some rounds, with room for four more arms until the next product."""
    policy = tofu(**settings)
    walk(policy, few_arms(n_rounds))
    for table, _ in few_arms(256, seed=2):
        if n_waiting(policy) < 1020:
            policy.absorb(table)
    assert n_waiting(policy) == 1020
    return policy


@pytest.mark.parametrize("n_arms", [6, 600, 1024, 3000])
@pytest.mark.parametrize("observe_prob", [0.7, None])
@pytest.mark.parametrize("call", ["choose", "absorb"])
def test_a_failing_product_of_a_full_block_changes_nothing(monkeypatch, call, n_arms, observe_prob):
    policy = with_a_full_block(8, observe_prob=observe_prob)
    table = offers(1, sizes=(n_arms,), seed=1)[0].table
    if call == "choose":
        choose_fails_once(monkeypatch, policy, table, Moments, "sums")
        return
    before, untouched = state_bytes(policy), copy_of(policy)
    with monkeypatch.context() as patch:
        patch.setattr(Moments, "sums", fail)
        with pytest.raises(InjectedError):
            policy.absorb(table)
    assert state_bytes(policy) == before
    policy.absorb(table)
    untouched.absorb(table)
    assert state_bytes(policy) == state_bytes(untouched)


@pytest.mark.parametrize("observe_prob", [0.7, None])
@pytest.mark.parametrize("n_arms", [4, 6, 600, 1024, 1025])
@pytest.mark.parametrize("bad", ["infinite", "blind"])
def test_a_bad_slate_offered_when_the_block_is_full_changes_nothing(observe_prob, n_arms, bad):
    policy = with_a_full_block(8, observe_prob=observe_prob, impute_ridge=0.0)
    table = offers(1, sizes=(n_arms,), seed=1)[0].table
    if bad == "infinite":
        table[-1, 2] = np.inf
    else:
        table[-1] = np.nan
    before = state_bytes(policy)
    with pytest.raises(InvalidSlateError if bad == "infinite" else Unidentifiable):
        policy.choose(table)
    assert state_bytes(policy) == before


def test_a_burn_in_policy_that_fails_to_absorb_changes_nothing(monkeypatch):
    policy = with_a_full_block(8)
    before = state_bytes(policy)
    with monkeypatch.context() as patch:
        patch.setattr(AmbientOful, "observe", fail)
        for n_arms in (6, 3000):
            with pytest.raises(InjectedError):
                policy.absorb(offers(1, sizes=(n_arms,))[0].table)
    assert state_bytes(policy) == before


@pytest.mark.parametrize("n_rounds", [0, 3])
def test_a_burn_in_policy_that_fails_to_choose_changes_nothing(monkeypatch, n_rounds):
    policy = tofu()
    walk(policy, few_arms(n_rounds))
    table = few_arms(1, seed=1)[0].table
    choose_fails_once(monkeypatch, policy, table, AmbientOful, "decide")


def test_a_burn_in_policy_that_fails_in_the_round_that_opens_an_epoch_of_rank_zero_changes_nothing(
    monkeypatch,
):
    policy = tofu(rank=PaperThreshold())
    rounds = few_arms(12)
    walk(policy, rounds[:11])
    choose_fails_once(monkeypatch, policy, rounds[11].table, AmbientOful, "decide")
    assert [record.rank for record in policy.epoch_log] == [0, 0]


# Learning


REPLAYS = pytest.mark.parametrize("replay", ["none", "burn-in-once", "burn-in", "full"])


@REPLAYS
@pytest.mark.parametrize("n_rounds", [3, 8], ids=["in burn-in", "in an epoch"])
def test_a_burn_in_policy_that_fails_to_learn_changes_nothing(monkeypatch, replay, n_rounds):
    policy = tofu(replay=replay)
    rounds = few_arms(9)
    decision = policy.choose(rounds[0].table)
    walk(policy, rounds[1:n_rounds])
    learn_fails_once(monkeypatch, policy, decision, AmbientOful, "update")


@REPLAYS
def test_a_failure_while_a_reward_enters_the_regression_changes_nothing(monkeypatch, replay):
    policy = tofu(replay=replay)
    rounds = few_arms(9)
    walk(policy, rounds[:8])
    decision = policy.choose(rounds[8].table)
    learn_fails_once(monkeypatch, policy, decision, Ridge, "update")


@pytest.mark.parametrize("replay", ["burn-in-once", "burn-in", "full"])
def test_a_failure_while_a_late_burn_in_reward_enters_the_regression_changes_nothing(
    monkeypatch, replay
):
    policy = tofu(replay=replay)
    rounds = few_arms(9)
    decision = policy.choose(rounds[0].table)
    walk(policy, rounds[1:])
    learn_fails_once(monkeypatch, policy, decision, Ridge, "update")


@pytest.mark.parametrize("burn_in", [5, 80], ids=["in an epoch", "in burn-in"])
def test_a_failure_while_room_is_made_for_played_arms_changes_nothing(monkeypatch, burn_in):
    policy = tofu(replay="full", burn_in=burn_in)
    rounds = few_arms(65)
    walk(policy, rounds[:64])
    decision = policy.choose(rounds[64].table)
    learn_fails_once(monkeypatch, policy, decision, Played, "_grow")


# Ambient OFUL


@pytest.mark.parametrize("n_rounds", [0, 1, 37])
def test_a_failure_while_ambient_oful_learns_changes_nothing(monkeypatch, n_rounds):
    random = np.random.default_rng(0)
    policy = AmbientOful(dim=150)
    for _ in range(n_rounds):
        policy.learn(policy.choose(random.standard_normal((3, 150))), 0.2)
    decision = policy.choose(random.standard_normal((3, 150)))
    learn_fails_once(monkeypatch, policy, decision, Ridge, "update")


@pytest.mark.parametrize("name", ["update", "measure"])
def test_a_failure_while_a_waiting_reward_of_ambient_oful_enters_changes_nothing(monkeypatch, name):
    """In many dimensions a reward waits until it is needed, and then waits on if that fails."""
    random = np.random.default_rng(0)
    policy = AmbientOful(dim=150)
    for _ in range(40):
        policy.learn(policy.choose(random.standard_normal((3, 150))), 0.2)
    table, untouched = random.standard_normal((3, 150)), copy_of(policy)
    policy.learn(policy.choose(table), 0.2)
    untouched.learn(untouched.choose(table), 0.2)
    with monkeypatch.context() as patch:
        patch.setattr(ridge_kernels, name, fail)
        with pytest.raises(InjectedError):
            state_bytes(policy) if name == "update" else policy.choose(table)
    assert state_bytes(policy) == state_bytes(untouched)
    assert looks(policy.choose(table)) == looks(untouched.choose(table))
