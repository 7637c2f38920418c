"""The corrected covariance without its matrix, and what is refused where a matrix is needed."""

import numpy as np
import pytest

from halfseen import AmbientOful, Greedy, LatentUcb, LinearThompson, TofuPov, TwoPhase
from halfseen.errors import InvalidSettingError
from halfseen.linear.covariance import (
    LARGEST_DENSE_DIM,
    CovarianceOperator,
    Moments,
    corrected_covariance,
)
from halfseen.linear.eigen import distance, top_eigenpairs
from halfseen.paper import Pslb


@pytest.mark.parametrize(("n", "dim", "count"), [(1, 70, 1), (300, 70, 12), (300, 260, 4)])
def test_products_and_top_eigenpairs_are_those_of_the_matrix(n, dim, count):
    random = np.random.default_rng(0)
    filled = random.normal(size=(n, 4)) @ random.normal(size=(4, dim))
    filled[random.random(filled.shape) > 0.4] = 0.0
    prob = random.uniform(0.2, 0.9, dim)
    matrix, operator = (
        corrected_covariance(filled.T @ filled, n, prob),
        CovarianceOperator(filled, prob),
    )
    columns = random.normal(size=(dim, 3))
    np.testing.assert_allclose(operator.product(columns), matrix @ columns, rtol=0, atol=1e-9)
    values, vectors = top_eigenpairs(matrix, count)
    found, directions = top_eigenpairs(operator, count)
    np.testing.assert_allclose(found, values, rtol=1e-10)
    assert distance(vectors, directions) < 1e-8


@pytest.mark.parametrize("dim", [7, 300])
def test_nothing_has_eigenvalues_of_zero(dim):
    nothing, basis = top_eigenpairs(CovarianceOperator(np.zeros((3, dim)), np.ones(dim)), 2)
    assert nothing.tolist() == [0.0, 0.0]
    np.testing.assert_array_equal(basis.T @ basis, np.eye(2))


def test_beyond_the_limit_everything_in_all_features_is_refused_with_a_remedy():
    dim = LARGEST_DENSE_DIM + 1
    for make in (
        lambda: AmbientOful(dim=dim),
        lambda: Greedy(dim=dim),
        lambda: LinearThompson(dim=dim),
        lambda: Pslb(dim=dim, rank=2),
        lambda: TofuPov(dim=dim, rank=2, observe_prob=0.3, burn_in_policy="uniform"),
        lambda: TwoPhase(dim=dim, rank=2, observe_prob=0.3, split=5),
        lambda: Moments(dim),
    ):
        with pytest.raises(InvalidSettingError, match="got 8193: use LatentUcb"):
            make()


def test_beyond_the_limit_latent_ucb_plays():
    dim, random = LARGEST_DENSE_DIM + 1, np.random.default_rng(0)
    directions = random.normal(size=(2, dim)) / np.sqrt(dim)
    policy = LatentUcb()
    for _ in range(9):
        latent = random.normal(size=(4, 2))
        table = latent @ directions
        table[random.random(table.shape) > 0.3] = np.nan
        decision = policy.choose(table)
        policy.learn(decision, float(latent[decision.arm, 0]))
    assert policy.current_rank == 2
    assert np.isfinite(decision.scores).all()
