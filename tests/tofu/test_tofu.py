"""TOFU-POV: the order inside a round, epochs and their log, rank 0, and its relatives."""

import math
from typing import ClassVar

import numpy as np
import pytest

from halfseen import (
    AmbientOful,
    ConstantThreshold,
    HorizonReachedError,
    LowRankWorld,
    PaperThreshold,
    Policy,
    PracticalThreshold,
    Slate,
    TofuPov,
    Unidentifiable,
    load,
)
from halfseen.policies import registry
from halfseen.state import Whole
from halfseen.values import Choice
from policy_runs import copy_of, few_arms, looks, offers, state_bytes, tofu, walk

REPLAYS = ("none", "burn-in-once", "burn-in", "full")


def after(n_rounds, rounds=None, **settings):
    policy = tofu(**settings)
    walk(policy, (rounds or few_arms(n_rounds))[:n_rounds])
    return policy


# Order inside a round


@pytest.mark.parametrize("n_rounds", [5, 11, 23])
def test_the_slate_that_opens_an_epoch_does_not_influence_its_subspace(n_rounds):
    policy = after(n_rounds)
    other = copy_of(policy)
    policy.choose(few_arms(n_rounds + 1)[-1].table)
    other.choose(np.full((9, 6), 1e50))
    ours, theirs = policy.epoch_log[-1], other.epoch_log[-1]
    assert ours.round == n_rounds + 1
    assert ours == theirs
    assert np.array_equal(policy.basis, other.basis)


def test_the_subspace_is_frozen_inside_an_epoch():
    policy = after(12)
    basis = policy.basis.copy()
    walk(policy, few_arms(11, seed=1))
    assert policy.epoch_log[-1].round == 12
    assert np.array_equal(policy.basis, basis)


# The epoch log


def corrected_covariance_by_hand(tables, observe_prob):
    arms = np.nan_to_num(np.vstack(tables))
    second_moment = arms.T @ arms / len(arms)
    return np.where(
        np.eye(arms.shape[1], dtype=bool),
        second_moment / observe_prob,
        second_moment / observe_prob**2,
    )


@pytest.mark.parametrize("horizon", [64, None])
def test_the_epoch_log_says_what_an_epoch_knew_and_chose(horizon):
    """Without a horizon log(2dT/δ) becomes log(2d·t(t+1)/δ), t the rounds before the epoch."""
    rounds = offers(60)
    rule = PracticalThreshold(constant=0.3, scale=1.0, cap=4)
    policy = after(60, rounds, rank=rule, horizon=horizon, replay="full")
    assert [record.epoch for record in policy.epoch_log] == [0, 1, 2, 3]
    for record in policy.epoch_log:
        before = [table for table, _ in rounds[: record.round - 1]]
        spectrum = np.linalg.eigvalsh(corrected_covariance_by_hand(before, 0.7))[::-1]
        n_epochs = (record.epoch + 1) * (record.epoch + 2) if horizon is None else 6 + 2
        n_events = (record.round - 1) * record.round if horizon is None else 64
        log_term = math.log(2 * 6 * n_events / (0.05 / (2 * n_epochs)))
        threshold = 0.3 / 0.7 * math.sqrt(log_term / record.n_arms)
        assert record.failure_prob == pytest.approx(0.05 / (2 * n_epochs), rel=1e-14)
        assert record.threshold == pytest.approx(threshold, rel=1e-12)
        assert record.eigenvalues == pytest.approx(spectrum[: len(record.eigenvalues)], abs=1e-12)
        assert record.rank == min(4, max(1, np.count_nonzero(spectrum >= threshold)))
        assert record.misspecification == 0.0


def replayed(policy, rounds):
    """Return how many rewards each epoch starts from, and the epochs of all decisions."""
    found, epochs = [], []
    for table, rewards in rounds:
        decision = policy.choose(table)
        if policy.epoch_log and decision.round == policy.epoch_log[-1].round:
            found.append(policy._epoch.model.n_samples)
        policy.learn(decision, rewards[decision.arm])
        epochs.append(decision.epoch)
    return found, epochs


@pytest.mark.parametrize(
    ("replay", "n_replayed", "n_kept"),
    [
        ("none", [0, 0, 0, 0], 0),
        ("burn-in-once", [5, 0, 0, 0], 0),
        ("burn-in", [5, 5, 5, 5], 5),
        ("full", [5, 11, 23, 47], 50),
    ],
)
def test_replay_decides_which_rewards_an_epoch_starts_from_and_which_are_kept(
    replay, n_replayed, n_kept
):
    policy = tofu(replay=replay)
    assert replayed(policy, few_arms(50))[0] == n_replayed
    assert len(policy._played) == n_kept


# Absorbed slates


def test_absorbed_slates_sharpen_the_subspace_like_offered_ones():
    rounds = offers(20)
    offered, absorbing = tofu(burn_in=13), tofu(burn_in=5)
    walk(offered, rounds[:14])
    for index, (table, _) in enumerate(rounds[:13]):
        # Before the first round, between rounds and after the last one of the burn-in.
        if index in (3, 4, 6, 9, 10):
            walk(absorbing, rounds[index : index + 1])
        else:
            absorbing.absorb(table)
    walk(absorbing, rounds[13:14])
    ours, theirs = offered.epoch_log[-1], absorbing.epoch_log[-1]
    assert (ours.round, theirs.round) == (14, 6)
    assert ours.n_arms == theirs.n_arms
    assert ours.eigenvalues == theirs.eigenvalues
    assert np.array_equal(offered.basis, absorbing.basis)


def test_an_absorbed_slate_is_no_round():
    policy = after(8)
    regression = policy._epoch.model.gram
    policy.absorb(few_arms(1)[0].table)
    assert policy.round == 8
    assert np.array_equal(policy._epoch.model.gram, regression)


# Rank 0


@pytest.mark.parametrize("replay", REPLAYS)
def test_the_papers_literal_threshold_leaves_the_main_world_to_the_burn_in_policy(replay):
    """2ρ at these sizes is far above every eigenvalue, so each epoch has rank 0."""
    settings = {"dim": 30, "noise_scale": 0.05}
    policy = TofuPov(
        **settings,
        rank=PaperThreshold(),
        observe_prob=0.3,
        horizon=400,
        burn_in=30,
        replay=replay,
        arm_bound=2.0,
        top_eigenvalue=1.5,
    )
    alone = AmbientOful(**settings)
    for slate, means, noise, _ in LowRankWorld().realize(0).rounds():
        decision, expected = policy.choose(slate), alone.choose(slate)
        assert decision.scores.tobytes() == expected.scores.tobytes()
        assert decision.arm == expected.arm
        policy.learn(decision, means[decision.arm] + noise)
        alone.learn(expected, means[expected.arm] + noise)
    assert [(record.round, record.rank) for record in policy.epoch_log] == [
        (31, 0),
        (62, 0),
        (124, 0),
        (248, 0),
    ]
    assert all(record.eigenvalues[0] < record.threshold for record in policy.epoch_log)
    assert policy._burner._model.n_samples == alone._model.n_samples == 400
    assert np.array_equal(policy._burner._model.gram, alone._model.gram)


@pytest.mark.parametrize(
    ("replay", "n_replayed"),
    [("none", (0, 0)), ("burn-in-once", (23, 0)), ("burn-in", (23, 23)), ("full", (23, 47))],
)
def test_after_epochs_of_rank_zero_all_rewards_of_the_burn_in_policy_are_burn_in_rewards(
    replay, n_replayed
):
    """Zero arms have no eigenvalue above the threshold: rank 0 at rounds 6 and 12, then 2."""
    rounds = few_arms(50)
    for table, _ in rounds[:11]:
        table[:] = np.where(np.isnan(table), np.nan, 0.0)
    policy = tofu(rank=ConstantThreshold(value=0.05, floor=0, cap=2), replay=replay)
    found, epochs = replayed(policy, rounds)
    assert found == [0, 0, *n_replayed]
    assert epochs[:24] == [-1] * 5 + [0] * 6 + [1] * 12 + [2]
    assert [record.rank for record in policy.epoch_log] == [0, 0, 2, 2]
    assert policy._burner._model.n_samples == 23


def test_rank_zero_after_higher_ranks_returns_to_the_burn_in_policy():
    """A threshold above the only eigenvalue that is left once many zero arms were offered."""
    policy = tofu(rank=ConstantThreshold(value=0.05, floor=0, cap=2), replay="burn-in-once")
    walk(policy, few_arms(8))
    policy.absorb(np.zeros((4000, 6)))
    alone = copy_of(policy._burner)
    rounds = few_arms(17)
    decisions = walk(policy, rounds[8:])
    assert [record.rank for record in policy.epoch_log] == [2, 0]
    expected = walk(alone, rounds[11:])
    assert [d.scores.tobytes() for d in decisions[3:]] == [d.scores.tobytes() for d in expected]


# Relatives


@pytest.mark.parametrize("impute_ridge", [0.0, 1e-5])
def test_with_nothing_hidden_and_full_rank_it_is_ambient_oful(impute_ridge):
    """δ_e = δ / (2(⌈log2 60⌉ + 2)) = δ / 16, so δ = .16 gives every epoch OFUL's .01."""
    oful = {"dim": 6, "failure_prob": 0.01, "noise_scale": 0.3, "ridge": 0.5, "theta_bound": 2.0}
    policy = TofuPov(
        **oful | {"failure_prob": 0.16},
        rank=6,
        observe_prob=1.0,
        horizon=60,
        burn_in=1,
        burn_in_policy=AmbientOful(**oful),
        impute_ridge=impute_ridge,
        replay="full",
    )
    ambient = AmbientOful(**oful)
    random = np.random.default_rng(0)
    theta = random.standard_normal(6)
    for _ in range(60):
        arms = random.standard_normal((5, 6))
        decision, expected = policy.choose(arms), ambient.choose(arms)
        assert decision.arm == expected.arm
        assert decision.scores == pytest.approx(expected.scores, rel=1e-8, abs=1e-8)
        assert decision.widths == pytest.approx(expected.widths, rel=1e-8, abs=1e-8)
        reward = arms[decision.arm] @ theta + 0.3 * random.standard_normal()
        policy.learn(decision, reward)
        ambient.learn(expected, reward)
    assert len(policy.epoch_log) == 5


def test_the_bonus_widens_by_the_misspecification_of_all_samples_in_the_regression():
    bounds = {"arm_bound": 3.0, "top_eigenvalue": 2.0, "last_eigenvalue": 0.5, "horizon": 64}
    plain, half, full = (after(15, **bounds, bonus_scale=scale) for scale in (0.0, 0.5, 1.0))
    record = full.epoch_log[-1]
    log_term = math.log(2 * 6 * 64 / (0.05 / 8))
    error = 12 * 3.0 * math.sqrt(2.0) / (0.5 * 0.7) * math.sqrt(log_term / record.n_arms)
    assert record.misspecification == pytest.approx(3.0 * (2 + 2 / 0.7) * error, rel=1e-12)
    assert half.epoch_log[-1].misspecification == 0.5 * record.misspecification
    # The bonus changes choices, so one state is asked with and without it.
    epoch, slate = plain._epoch, Slate(few_arms(1, seed=1)[0].table)
    radius = epoch.radius(epoch.model.log_det, epoch.model.n_samples)
    narrow = epoch.score(slate)[1][2]
    epoch.radius = full._epoch.radius
    wide = epoch.score(slate)[1][2]
    bonus = record.misspecification * math.sqrt(15)
    assert epoch.model.n_samples == 15
    assert wide - narrow == pytest.approx(narrow / radius * bonus, rel=1e-9)


def test_a_tofu_as_burn_in_policy_plays_and_learns_as_it_would_alone():
    rounds = few_arms(40)
    inner = {"rank": 1, "burn_in": 2, "replay": "none"}
    outer = tofu(burn_in=40, burn_in_policy=tofu(**inner))
    inside, alone = walk(outer, rounds), walk(tofu(**inner), rounds)
    assert [d.scores.tobytes() for d in inside] == [d.scores.tobytes() for d in alone]


# Horizon


@pytest.mark.parametrize("horizon", [1, 5, 6, 30])
def test_after_its_horizon_choose_is_refused_and_changes_nothing(horizon):
    rounds = few_arms(horizon + 1)
    policy = tofu(horizon=horizon)
    decisions = [policy.choose(table) for table, _ in rounds[:horizon]]
    before = state_bytes(policy)
    with pytest.raises(HorizonReachedError, match=rf"all {horizon} rounds.*horizon=None"):
        policy.choose(rounds[horizon].table)
    assert state_bytes(policy) == before
    for decision in decisions:
        policy.learn(decision, 0.1)


# Arms that are not identified


def one_entry_seen(n_arms=3):
    table = np.full((n_arms, 6), 0.3)
    table[1, 1:] = np.nan
    return table


@pytest.mark.parametrize("n_rounds", [5, 8, 11])
def test_without_ridge_an_unidentified_arm_is_refused_and_changes_nothing(n_rounds):
    policy = after(n_rounds, impute_ridge=0.0)
    before = state_bytes(policy)
    with pytest.raises(Unidentifiable, match=r"arm 1 shows 1 entry, .* 2 latent"):
        policy.choose(one_entry_seen())
    assert state_bytes(policy) == before


@pytest.mark.parametrize("replay", ["burn-in-once", "burn-in", "full"])
def test_without_ridge_unidentified_arms_are_skipped_on_replay(replay):
    rounds = few_arms(12)
    for table, _ in rounds[1:4]:
        table[:, 1:] = np.nan
    policy = after(6, rounds, impute_ridge=0.0, replay=replay)
    assert policy._epoch.model.n_samples == 2 + 1


@pytest.mark.parametrize("replay", REPLAYS)
def test_without_ridge_an_unidentified_arm_is_skipped_when_its_reward_is_late(replay):
    rounds = few_arms(12)
    policy = tofu(impute_ridge=0.0, replay=replay)
    late = policy.choose(one_entry_seen()[1:2])
    walk(policy, rounds[1:9])
    regression = policy._epoch.model.root.tobytes()
    n_samples = policy._epoch.model.n_samples
    policy.learn(late, 0.5)
    assert policy._epoch.model.root.tobytes() == regression
    assert policy._epoch.model.n_samples == n_samples


# Probabilities that are not known


@pytest.mark.parametrize("observe_prob", [None, "counted"])
def test_a_feature_that_was_never_seen_gets_no_weight(observe_prob):
    rounds = few_arms(30)
    for table, _ in rounds:
        table[:, 4] = np.nan
    policy = after(30, rounds, observe_prob=observe_prob)
    assert np.abs(policy.basis[4]).max() < 1e-12
    seen_at_last = few_arms(1, seed=1)[0].table
    assert np.isfinite(policy.choose(seen_at_last).scores).all()


def test_counted_probabilities_are_the_shares_of_arms_that_show_a_feature():
    rounds = few_arms(11)
    seen = ~np.isnan(np.vstack([offer.table for offer in rounds[:5]]))
    ours = walk(tofu(observe_prob="counted"), rounds)
    theirs = walk(tofu(observe_prob=seen.mean(0)), rounds)
    for counted, given in zip(ours, theirs, strict=True):
        assert counted.arm == given.arm
        np.testing.assert_allclose(counted.scores, given.scores, rtol=1e-9)


# A policy of the user's own


class Cautious(Policy):
    """Takes the arm of which most is seen; counts its lessons."""

    STATE: ClassVar = {"n_lessons": Whole()}

    def setup(self):
        self.n_lessons = self.n_absorbed = 0

    def decide(self, slate):
        return Choice.best(slate.mask.sum(axis=1))

    def update(self, note, reward):
        self.n_lessons += 1

    def collect(self, slate):
        self.n_absorbed += slate.n_arms


@pytest.fixture
def cautious_is_registered():
    registry.register_policy(Cautious)
    yield
    del registry._CLASSES["Cautious"]


@pytest.mark.usefixtures("cautious_is_registered")
@pytest.mark.parametrize("n_rounds", [0, 3, 8])
def test_a_registered_policy_of_the_users_own_plays_the_burn_in_and_is_saved_with_it(
    tmp_path, n_rounds
):
    rounds = few_arms(14)
    policy = tofu(burn_in_policy=Cautious(dim=6))
    early = walk(policy, rounds[:n_rounds])
    for decision, (table, _) in zip(early[:5], rounds, strict=False):
        assert decision.arm == (~np.isnan(table)).sum(axis=1).argmax()
    policy.save(tmp_path / "policy")
    restored = load(tmp_path / "policy")
    assert restored._burner.n_lessons == min(n_rounds, 5)
    ours, theirs = walk(policy, rounds[n_rounds:]), walk(restored, rounds[n_rounds:])
    assert [looks(decision) for decision in theirs] == [looks(decision) for decision in ours]
    assert restored._burner.n_lessons == 5


def test_the_burn_in_policy_sees_absorbed_slates_too():
    burner = Cautious(dim=6)
    policy = tofu(burn_in_policy=burner)
    policy.absorb(offers(1, sizes=(3000,))[0].table)
    walk(policy, few_arms(8))
    policy.absorb(few_arms(1)[0].table)
    assert policy._burner.n_absorbed == 3004
    assert burner.n_absorbed == 0  # what was given serves as a model and stays as it is
