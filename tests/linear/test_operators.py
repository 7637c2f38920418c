"""The corrected covariance without its matrix, and its top eigenpairs."""

import numpy as np
import pytest

from halfseen import (
    AmbientOful,
    Greedy,
    LatentUcb,
    LinearThompson,
    LowRankWorld,
    TofuPov,
    TwoPhase,
    play,
)
from halfseen.errors import InvalidSettingError
from halfseen.linear.covariance import LARGEST_DENSE_DIM, CovarianceOperator, Moments
from halfseen.linear.eigen import distance, top_eigenpairs
from halfseen.paper import Pslb
from halfseen.tofu import parameters, subspace
from policy_runs import offers, tofu, walk


def arms(n, dim, rank, prob, seed=0):
    random = np.random.default_rng(seed)
    table = random.normal(size=(n, rank)) @ random.normal(size=(rank, dim))
    table[random.random(table.shape) > prob] = np.nan
    return table


def dense(table, prob):
    moments = Moments(table.shape[1], count_pairs=True)
    moments.add(table)
    sums = moments.sums()
    return sums.covariance(sums.shares() if prob is None else prob)[0]


PROBS = {"one for all": 0.4, "one per feature": np.linspace(0.2, 0.9, 70), "counted": None}


@pytest.mark.parametrize("prob", PROBS.values(), ids=list(PROBS))
@pytest.mark.parametrize("n", [1, 40, 128, 300])
def test_its_products_are_those_of_the_matrix(prob, n):
    table = arms(n, 70, 4, 0.4)
    matrix, operator = dense(table, prob), CovarianceOperator(table, prob)
    columns = np.random.default_rng(1).normal(size=(70, 3))
    np.testing.assert_allclose(operator.product(columns), matrix @ columns, rtol=0, atol=1e-10)
    assert operator.trace() == pytest.approx(matrix.trace(), rel=1e-12)
    assert operator.shape == matrix.shape


@pytest.mark.parametrize("prob", PROBS.values(), ids=list(PROBS))
@pytest.mark.parametrize(("n", "dim", "count"), [(25, 70, 3), (300, 70, 12), (300, 260, 4)])
def test_its_top_eigenpairs_are_those_of_the_matrix(prob, n, dim, count):
    table = arms(n, dim, 4, 0.4)
    prob = np.resize(prob, dim) if isinstance(prob, np.ndarray) else prob
    matrix, operator = dense(table, prob), CovarianceOperator(table, prob)
    values, vectors = top_eigenpairs(matrix, count)
    found, directions = top_eigenpairs(operator, count)
    np.testing.assert_allclose(found, values, rtol=1e-10)
    assert distance(vectors, directions) < 1e-8


def test_a_feature_that_is_never_seen_has_no_part():
    table = arms(60, 20, 2, 0.5)
    table[:, 7] = np.nan
    product = CovarianceOperator(table).product(np.eye(20))
    assert not product[7].any()
    assert not product[:, 7].any()


@pytest.mark.parametrize("dim", [7, 300])
def test_repeated_eigenvalues_and_those_of_nothing_are_found(dim):
    table = np.full((4, dim), np.nan)
    table[range(4), range(4)] = 2.0
    values, vectors = top_eigenpairs(CovarianceOperator(table, 1.0), 5)
    np.testing.assert_allclose(values, [1.0, 1.0, 1.0, 1.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(5), atol=1e-10)
    nothing, basis = top_eigenpairs(CovarianceOperator(np.full((3, dim), np.nan), 0.5), 2)
    assert nothing.tolist() == [0.0, 0.0]
    np.testing.assert_array_equal(basis.T @ basis, np.eye(2))


@pytest.mark.parametrize("observe_prob", [0.4, "counted"])
def test_tofu_makes_the_same_choices_with_and_without_the_matrix(monkeypatch, observe_prob):
    settings = {"dim": 30, "rank": 3, "observe_prob": observe_prob, "burn_in": 10}
    found = []
    for limit in (30, 29):
        for module in (parameters, subspace):
            monkeypatch.setattr(module, "LARGEST_DENSE_DIM", limit)
        policy = TofuPov(**settings, burn_in_policy="uniform")
        trace = play(policy, LowRankWorld(horizon=70, observe_prob=0.4).realize(3))
        found.append((trace.regret, policy.basis))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    assert distance(found[0][1], found[1][1]) < 1e-8


def test_arms_are_kept_beyond_the_limit_within_the_memory_given(monkeypatch):
    """The limit is 8192 features; here it is 5."""
    for module in (parameters, subspace):
        monkeypatch.setattr(module, "LARGEST_DENSE_DIM", 5)
    policy = tofu(memory_bytes=8 * 6 * 50)
    walk(policy, offers(20))
    assert policy._offered.rows.shape == (50, 6)
    for policy in (tofu(), TwoPhase(dim=6, rank=2, observe_prob=0.7, split=5)):
        assert policy._offered.max_rows == 64_000_000 // 48
    assert tofu(memory_bytes=1)._offered.max_rows == 2
    assert isinstance(tofu(dim=5)._offered, Moments)


def test_beyond_the_limit_everything_in_all_features_is_refused_with_a_remedy():
    dim = LARGEST_DENSE_DIM + 1
    for make in (
        lambda: AmbientOful(dim=dim),
        lambda: Greedy(dim=dim),
        lambda: LinearThompson(dim=dim),
        lambda: Pslb(dim=dim, rank=2),
        lambda: Moments(dim),
    ):
        with pytest.raises(InvalidSettingError, match="got 8193: use TofuPov or LatentUcb"):
            make()


@pytest.mark.parametrize("kind", ["TofuPov", "LatentUcb"])
def test_beyond_the_limit_latent_policies_play(kind):
    dim, random = LARGEST_DENSE_DIM + 1, np.random.default_rng(0)
    directions = random.normal(size=(2, dim)) / np.sqrt(dim)
    policy = LatentUcb()
    if kind == "TofuPov":
        policy = TofuPov(dim=dim, rank=2, observe_prob=0.3, burn_in=2)
    for _ in range(9):
        latent = random.normal(size=(4, 2))
        table = latent @ directions
        table[random.random(table.shape) > 0.3] = np.nan
        decision = policy.choose(table)
        policy.learn(decision, float(latent[decision.arm, 0]))
    assert policy.current_rank == 2
    assert np.isfinite(decision.scores).all()
