"""An exception from inside leaves the state bytes as they were, and nothing is lost.

Each test lets one inner part fail once, at a moment that depends on it, and repeats the call.
"""

import numpy as np
import pytest
from policy_runs import copy_of, few_arms, looks, offers, state_bytes, walk

from halfseen import (
    AmbientOful,
    HeldOutRank,
    LatentUcb,
    PaperThreshold,
    PracticalThreshold,
    Slate,
    TofuPov,
    _em_kernels,
    _kernels,
)
from halfseen.core import held_out, rank, scales, subspace
from halfseen.core.latent import Lift
from halfseen.core.likelihood import Arms, Ppca, Spectrum
from halfseen.core.moments import Moments
from halfseen.core.replay import Played
from halfseen.core.reservoir import Reservoir
from halfseen.core.ridge import Ridge
from halfseen.core.span_ridge import SpanRidge
from halfseen.policies import contest, tofu_epoch, tofu_rewards, tofu_subspace


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
    "eigen-solver of a threshold": (PracticalThreshold(), subspace, "top_eigenpairs"),
    "LAPACK": (2, subspace, "_lapack"),
    "LAPACK of a threshold": (PracticalThreshold(), subspace, "_lapack"),
    "covariance": (2, tofu_subspace, "covariance_of"),
    "product of the moments": (2, Moments, "sums"),
    "coordinates of the replay": (2, Lift, "coordinates"),
    "compiled coordinates": (2, _kernels, "coordinates"),
    "insertion of the replay": (2, Ridge, "insert"),
    "compiled insertion": (2, _kernels, "insert"),
    "compiled scoring": (2, _kernels, "play_table"),
    "samples of the replay": (2, Played, "samples"),
}


@pytest.mark.parametrize("n_rounds", [5, 11, 23])
@pytest.mark.parametrize("late", [False, True], ids=["at its start", "at its end"])
@pytest.mark.parametrize("part", OPENING.values(), ids=list(OPENING))
def test_a_failure_while_an_epoch_opens_changes_nothing(monkeypatch, part, late, n_rounds):
    rule, owner, name = part
    policy = tofu(rank=rule)
    rounds = few_arms(n_rounds + 1)
    walk(policy, rounds[:-1])
    failure = fail_after(getattr(owner, name)) if late else fail
    choose_fails_once(monkeypatch, policy, rounds[-1].table, owner, name, failure)


LATENT_OPENING = {
    "sample of the arms": (Reservoir, "sample"),
    "decision on the rank": (HeldOutRank, "decide"),
    "marks of held-out entries": (_em_kernels, "hold_out"),
    "fit of a rank": (held_out, "fit_arms"),
    "fit of the subspace": (tofu_subspace, "fit_arms"),
    "compiled fit": (_em_kernels, "climb"),
    "arms of a fit": (Arms, "__init__"),
    "spectral start": (Spectrum, "start"),
    "subspace of a model": (Ppca, "subspace"),
    "contest": (contest.Contest, "after"),
    "evidence of the contest": (contest, "Evidence"),
    "scales": (tofu_rewards, "estimate_scales"),
    "evidence of the scales": (scales, "Evidence"),
    "what hidden entries add": (Lift, "hidden_variances"),
    "compiled variances": (_em_kernels, "hidden_squares"),
    "coordinates of the replay": (Lift, "coordinates"),
    "insertion of the replay": (Ridge, "insert"),
    "compiled scoring": (_kernels, "play_table"),
}


def latent(**settings):
    """Return a policy whose epochs start at rounds 6, 9, 14."""
    return LatentUcb(dim=6, burn_in=5, growth=1.5, **settings)


@pytest.mark.parametrize("late", [False, True], ids=["at its start", "at its end"])
@pytest.mark.parametrize("part", LATENT_OPENING.values(), ids=list(LATENT_OPENING))
def test_a_failure_while_a_latent_epoch_opens_changes_nothing(monkeypatch, part, late):
    """The 13 rewards before are enough for a contest; noise leaves a fresh start much to gain."""
    owner, name = part
    policy, random = latent(), np.random.default_rng(0)
    rounds = few_arms(14)
    for offer in rounds:
        offer.table[:] += 0.1 * random.standard_normal(offer.table.shape)
    walk(policy, rounds[:-1])
    assert policy.schedule.starts(14)[-1] == 14
    failure = fail_after(getattr(owner, name)) if late else fail
    choose_fails_once(monkeypatch, policy, rounds[-1].table, owner, name, failure)


@pytest.mark.parametrize("memory_bytes", [480, 64_000_000], ids=["full", "not full"])
@pytest.mark.parametrize("late", [False, True], ids=["at its start", "at its end"])
@pytest.mark.parametrize(
    ("owner", "name"),
    [(Ridge, "fitted"), (tofu_rewards, "estimate_scales"), (_kernels, "score")],
    ids=["regression", "scales", "scoring"],
)
def test_a_failure_while_an_epoch_of_the_fallback_opens_changes_nothing(
    monkeypatch, owner, name, late, memory_bytes
):
    """Each arm shows one entry, from which no rank predicts another."""
    policy = latent(memory_bytes=memory_bytes)
    table = np.where(np.eye(4, 6, dtype=bool), 1.0, np.nan)
    walk(policy, [(table, np.arange(4.0))] * 13)
    assert policy.epoch_log[-1].fallback
    failure = fail_after(getattr(owner, name)) if late else fail
    choose_fails_once(monkeypatch, policy, table, owner, name, failure)


@pytest.mark.parametrize("options", [Slate, np.array], ids=["slate", "table"])
@pytest.mark.parametrize(
    ("owner", "name"),
    [(tofu_epoch, "stream"), (_kernels, "play_table"), (Lift, "coordinates"), (_kernels, "score")],
    ids=["draw", "scoring", "coordinates", "estimates"],
)
def test_a_failure_while_thompson_sampling_plays_changes_nothing(monkeypatch, owner, name, options):
    policy = latent(rank=2, exploration="thompson")
    walk(policy, few_arms(15))
    table = options(few_arms(1, seed=1)[0].table)
    choose_fails_once(monkeypatch, policy, table, owner, name)


@pytest.mark.parametrize("call", ["choose", "absorb"])
def test_a_failing_draw_of_a_full_reservoir_changes_nothing(monkeypatch, call):
    policy = latent(memory_bytes=480)
    walk(policy, few_arms(15))
    table = few_arms(1, seed=1)[0].table
    if call == "choose":
        choose_fails_once(monkeypatch, policy, table, Reservoir, "draw")
        return
    before = state_bytes(policy)
    with monkeypatch.context() as patch:
        patch.setattr(Reservoir, "draw", fail)
        with pytest.raises(InjectedError):
            policy.absorb(table)
    assert state_bytes(policy) == before


@pytest.mark.parametrize("late", [False, True], ids=["at its start", "at its end"])
def test_a_failure_while_a_table_is_played_inside_an_epoch_changes_nothing(monkeypatch, late):
    policy = tofu()
    walk(policy, few_arms(8))
    failure = fail_after(_kernels.play_table) if late else fail
    table = few_arms(1, seed=1)[0].table
    choose_fails_once(monkeypatch, policy, table, _kernels, "play_table", failure)


@pytest.mark.parametrize("late", [False, True], ids=["at its start", "at its end"])
def test_a_failure_while_a_slate_is_scored_inside_an_epoch_changes_nothing(monkeypatch, late):
    policy = tofu()
    walk(policy, few_arms(8))
    failure = fail_after(_kernels.play_table) if late else fail
    slate = Slate(few_arms(1, seed=1)[0].table)
    choose_fails_once(monkeypatch, policy, slate, _kernels, "play_table", failure)


@pytest.mark.parametrize("n_arms", [6, 1024, 3000])
@pytest.mark.parametrize("observe_prob", [0.7, None])
@pytest.mark.parametrize("call", ["choose", "absorb"])
def test_a_failing_product_of_a_full_block_changes_nothing(monkeypatch, call, n_arms, observe_prob):
    policy = tofu(observe_prob=observe_prob)
    walk(policy, offers(8, sizes=(4, 4, 4, 4, 4, 4, 1012, 8)))
    assert policy._offered.n_waiting == 1024
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


def test_a_burn_in_policy_that_fails_to_absorb_changes_nothing(monkeypatch):
    policy = tofu()
    walk(policy, offers(8, sizes=(4, 4, 4, 4, 4, 4, 1012, 8)))
    before = state_bytes(policy)
    with monkeypatch.context() as patch:
        patch.setattr(AmbientOful, "absorb", fail)
        for n_arms in (6, 3000):
            with pytest.raises(InjectedError):
                policy.absorb(offers(1, sizes=(n_arms,))[0].table)
    assert state_bytes(policy) == before


@pytest.mark.parametrize("n_rounds", [0, 3])
def test_a_burn_in_policy_that_fails_to_choose_changes_nothing(monkeypatch, n_rounds):
    policy = tofu()
    walk(policy, few_arms(n_rounds))
    table = few_arms(1, seed=1)[0].table
    choose_fails_once(monkeypatch, policy, table, AmbientOful, "choose")


def test_a_burn_in_policy_that_fails_in_the_round_that_opens_an_epoch_of_rank_zero_changes_nothing(
    monkeypatch,
):
    policy = tofu(rank=PaperThreshold())
    rounds = few_arms(12)
    walk(policy, rounds[:11])
    choose_fails_once(monkeypatch, policy, rounds[11].table, AmbientOful, "choose")
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
    learn_fails_once(monkeypatch, policy, decision, AmbientOful, "learn")


@REPLAYS
def test_a_failure_while_a_reward_enters_the_regression_changes_nothing(monkeypatch, replay):
    policy = tofu(replay=replay)
    rounds = few_arms(9)
    walk(policy, rounds[:8])
    decision = policy.choose(rounds[8].table)
    learn_fails_once(monkeypatch, policy, decision, _kernels, "learn_arm")


@pytest.mark.parametrize("replay", ["burn-in-once", "burn-in", "full"])
def test_a_failure_while_a_late_burn_in_reward_enters_the_regression_changes_nothing(
    monkeypatch, replay
):
    policy = tofu(replay=replay)
    rounds = few_arms(9)
    decision = policy.choose(rounds[0].table)
    walk(policy, rounds[1:])
    learn_fails_once(monkeypatch, policy, decision, _kernels, "learn_arm")


@pytest.mark.parametrize("n_rounds", [0, 9], ids=["of burn-in", "of an epoch"])
def test_a_failure_while_a_late_reward_enters_the_fallback_changes_nothing(monkeypatch, n_rounds):
    policy = latent()
    offer = np.where(np.eye(4, 6, dtype=bool), 1.0, np.nan), np.arange(4.0)
    walk(policy, [offer] * n_rounds)
    decision = policy.choose(offer[0])
    walk(policy, [offer] * (14 - n_rounds))
    assert policy.epoch_log[-1].fallback
    learn_fails_once(monkeypatch, policy, decision, Ridge, "update")


@pytest.mark.parametrize("burn_in", [5, 80], ids=["in an epoch", "in burn-in"])
def test_a_failure_while_room_is_made_for_played_arms_changes_nothing(monkeypatch, burn_in):
    policy = tofu(replay="full", burn_in=burn_in)
    rounds = few_arms(65)
    walk(policy, rounds[:64])
    decision = policy.choose(rounds[64].table)
    learn_fails_once(monkeypatch, policy, decision, Played, "_grow")


# Ambient OFUL, which in many dimensions works in the span of few samples


@pytest.mark.parametrize(
    ("owner", "name", "n_rounds"),
    [
        (_kernels, "update_with_shadow", 0),
        (_kernels, "update_with_shadow", 1),
        (_kernels, "update_with_shadow", 37),
        (_kernels, "update_with_shadow", 38),
        (Ridge, "extended", 1),
        (Ridge, "extended", 36),
        (SpanRidge, "_split", 9),
        (SpanRidge, "_plain", 37),
    ],
)
def test_a_failure_while_ambient_oful_learns_changes_nothing(monkeypatch, owner, name, n_rounds):
    """Each sample is a new direction; 37 of them are a quarter of all and end the small span."""
    random = np.random.default_rng(0)
    policy = AmbientOful(dim=150)
    for _ in range(n_rounds):
        policy.learn(policy.choose(random.standard_normal((3, 150))), 0.2)
    decision = policy.choose(random.standard_normal((3, 150)))
    learn_fails_once(monkeypatch, policy, decision, owner, name)
