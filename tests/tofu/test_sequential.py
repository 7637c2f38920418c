"""Estimators that follow the arms in their order, of halfseen and of a stranger."""

import numpy as np
import pytest

from halfseen import (
    ArchiveError,
    FixedRank,
    HalfseenError,
    InvalidSettingError,
    LowRankWorld,
    PracticalThreshold,
    TofuPov,
    state,
)
from halfseen.linear.eigen import Directions, distance
from halfseen.testing import check_policy
from halfseen.tofu import (
    CorrectedCovariance,
    Grouse,
    Oja,
    Petrels,
    PosteriorMean,
    SequentialEstimator,
)
from policy_runs import few_arms, tofu, walk

SHIPPED = [Grouse(), Oja(), Petrels()]


class Recorded(SequentialEstimator):
    """Remembers its last round; its directions are the axes, with variances."""

    has_eigenvalues = True

    def start(self, dim, rank, random):
        return {"rows": np.zeros((4, dim)), "prob": np.zeros(dim)}

    def update(self, state, rows, observe_prob):
        prob = np.broadcast_to(observe_prob, rows.shape[1])
        return {"rows": np.nan_to_num(rows), "prob": prob}

    def directions(self, state):
        return Directions(np.eye(6)[:, :3], np.array([5.0, 2.0, 1e-9]))


def four_arms(n_rounds, seed=0):
    random = np.random.default_rng(seed)
    tables = random.normal(size=(n_rounds, 4, 6))
    tables[random.random(tables.shape) > 0.7] = np.nan
    return tables


@pytest.mark.parametrize("estimator", SHIPPED, ids=repr)
def test_the_contracts_of_policies_hold_with_every_sequential_estimator(estimator):
    check_policy(lambda: tofu(subspace=estimator, replay="burn-in-once"))


@pytest.mark.parametrize("estimator", SHIPPED, ids=repr)
def test_exact_low_rank_is_found_long_before_by_the_corrected_covariance(estimator):
    truth = LowRankWorld(dim=24, rank=2, observe_prob=0.4, n_arms=20, horizon=41).realize(7)
    found = []
    for each in (CorrectedCovariance(), estimator):
        policy = TofuPov(dim=24, rank=2, observe_prob=0.4, burn_in=40, subspace=each)
        for round in truth.rounds():
            policy.choose(round.slate)
        found.append(distance(policy.basis, truth.basis))
    assert found[0] > 0.05
    assert found[1] < 1e-3


def test_grouse_explains_an_arm_after_the_greedy_turn_and_leaves_what_is_orthogonal_to_it():
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(8, 2)))[0]
    row = np.random.default_rng(1).normal(size=8)
    started = {"basis": basis, "n_arms": np.zeros(())}
    turned = Grouse().update(started, row[None], 1.0)["basis"]
    assert np.allclose(turned.T @ turned, np.eye(2))
    assert np.allclose(turned @ (turned.T @ row), row)
    weights = basis.T @ row
    other = basis @ np.array([-weights[1], weights[0]])  # orthogonal to what explained the arm
    assert np.allclose(turned @ (turned.T @ other), other)


def test_petrels_with_everything_seen_is_one_ridge_regression_for_each_feature():
    rows = np.random.default_rng(2).normal(size=(1, 5))
    petrels = Petrels(penalty=0.5, discount=1.0)
    started = petrels.start(5, 1, np.random.default_rng(3))
    basis, moved = started["basis"][:, 0], petrels.update(started, rows, 1.0)["basis"][:, 0]
    arm = rows[0] / np.linalg.norm(rows)  # divided by the largest norm so far
    weight = basis @ arm
    # argmin of (x_j − b_j w)² + δ (b_j − start)²
    assert np.allclose(moved, (weight * arm + 0.5 * basis) / (weight**2 + 0.5))


@pytest.mark.parametrize("told", [0.7, "counted", "unknown", np.linspace(0.5, 0.9, 6)], ids=str)
def test_a_sequential_estimator_gets_the_rows_of_a_round_in_their_order_and_p(told):
    policy, tables = tofu(subspace=Recorded(), observe_prob=told), four_arms(4)
    for table in tables:
        policy.choose(table)
    kept = policy._offered.state
    assert np.array_equal(kept["rows"], np.nan_to_num(tables[-1]))
    counted = (~np.isnan(tables)).mean(axis=(0, 1))
    assert np.allclose(kept["prob"], counted if isinstance(told, str) else told)


def test_a_rank_rule_and_the_posterior_mean_use_the_eigenvalues_of_a_sequential_estimator():
    rule = PracticalThreshold(constant=1e-3, scale=1.0)
    policy = tofu(rank=rule, subspace=Recorded(), imputation=PosteriorMean(), horizon=100)
    for table in four_arms(10):
        policy.choose(table)
    assert policy.epoch_log[-1].rank == 2
    assert policy.epoch_log[-1].eigenvalues == (5.0, 2.0, 1e-9)
    assert np.array_equal(policy.basis, np.eye(6)[:, :2])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rank": PracticalThreshold()}, "PracticalThreshold needs eigenvalues, which Grouse"),
        ({"imputation": PosteriorMean()}, "PosteriorMean needs eigenvalues, which Grouse"),
        ({"rank": FixedRank(rank=9)}, r"rank must be .* got 9"),
        ({"dim": 9000, "burn_in_policy": "zero-filled"}, "burn_in_policy='uniform'"),
    ],
)
def test_what_needs_eigenvalues_or_a_small_dim_is_refused_at_once(settings, message):
    with pytest.raises(InvalidSettingError, match=message):
        tofu(**{"subspace": Grouse(), **settings})


@pytest.mark.parametrize("bad", [{"rows": np.full((4, 6), np.nan)}, {"rows": np.zeros(3)}, {}])
def test_a_state_that_changes_its_shape_or_becomes_nan_is_refused_and_nothing_changes(bad):
    class Broken(Recorded):
        def update(self, state, rows, observe_prob):
            return {name: bad.get(name, state[name]) for name in ("rows", *bad)}

    policy = tofu(subspace=Broken())
    before = policy._offered
    with pytest.raises(HalfseenError, match=r"^Broken\.update must return finite arrays"):
        policy.choose(four_arms(1)[0])
    assert policy._offered is before
    assert policy.round == before.n_arms == 0


def test_arrays_of_a_state_cannot_be_changed_in_place():
    class InPlace(Recorded):
        def update(self, state, rows, observe_prob):
            state["rows"][:] = 1.0
            return state

    with pytest.raises(ValueError, match="read-only"):
        tofu(subspace=InPlace()).choose(four_arms(1)[0])


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: arrays | {"basis": arrays["basis"][:3]},
        lambda arrays: arrays | {"basis": arrays["basis"] * np.nan},
        lambda arrays: {"basis": arrays["basis"]},
        lambda arrays: [],
    ],
)
def test_a_damaged_state_is_refused(change):
    policy = tofu(subspace=Grouse())
    walk(policy, few_arms(3))
    saved = state.dump(policy._offered)
    with pytest.raises(ArchiveError):
        state.restore(tofu(subspace=Grouse())._offered, saved | {"state": change(saved["state"])})


def test_tofu_plays_with_more_features_than_a_matrix_of_all_pairs_may_have():
    world = LowRankWorld(dim=9000, rank=2, n_arms=3, horizon=8, observe_prob=0.3)
    for estimator in SHIPPED:
        policy = TofuPov(
            dim=9000, rank=2, observe_prob=0.3, burn_in=3, burn_in_policy="uniform",
            subspace=estimator,
        )  # fmt: skip
        for round in world.realize(0).rounds():
            policy.learn(policy.choose(round.slate), 0.5)
        assert policy.basis.shape == (9000, 2)
