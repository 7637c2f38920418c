"""Awkward numbers: every one of these once ended in a foreign error, or in scores inf or NaN."""

import math

import numpy as np
import pandas as pd
import pytest

from halfseen import (
    InvalidSettingError,
    InvalidSlateError,
    LatentUcb,
    TofuPov,
)
from halfseen.factors import model as factors
from halfseen.factors.model import Factors, HalfSeenRows, extended, fit_factors
from halfseen.linear.ridge import Ridge
from halfseen.paper.pslb import Projection
from halfseen.values import LARGEST, SMALLEST, Slate
from robustness.hostile import Raises

NAN = math.nan


def play(policy, slates, *, seed=0):
    """Choose and learn in every round and return the decisions, all of them with finite scores."""
    random, decisions = np.random.default_rng(seed), []
    for slate in slates:
        decision = policy.choose(slate)
        for part in (decision.scores, decision.estimates, decision.widths):
            assert np.isfinite(part).all()
        policy.learn(decision, float(random.random()))
        decisions.append(decision)
    return decisions


# -- features in large units, whose squares drown the penalty -------------------------------------


def prices(random):
    net = random.uniform(1.0, 1e8, (8, 1))
    return np.hstack([net, 1.19 * net])


def timestamps(random):
    stamp = 1.7e9 + random.integers(0, 100_000, (8, 1))
    return np.hstack([stamp, stamp, random.normal(size=(8, 2))])


def low_rank(random):
    directions = np.random.default_rng(7).normal(size=(2, 10))
    return 1e7 * random.normal(size=(8, 2)) @ directions


@pytest.mark.parametrize("offer", [prices, timestamps, low_rank])
@pytest.mark.parametrize("kind", ["LatentUcb", "TofuPov"])
def test_collinear_features_in_large_units_are_played(offer, kind):
    for seed in range(4):
        random = np.random.default_rng(seed)
        slates = [offer(random) for _ in range(60)]
        dim = slates[0].shape[1]
        policy = LatentUcb() if kind == "LatentUcb" else tofu(dim, observe_prob="counted")
        assert len(play(policy, slates, seed=seed)) == 60


# -- very small and very large entries -------------------------------------------------------------


def tofu(dim, **settings):
    return TofuPov(**{"dim": dim, "rank": 2, "observe_prob": 0.5, "burn_in": 3} | settings)


def test_entries_below_the_smallest_size_count_as_zero():
    given = np.array([[1e-310, SMALLEST / 2, -SMALLEST / 2, SMALLEST, NAN]])
    slate = Slate(given)
    assert slate.values.tolist() == [[0.0, 0.0, 0.0, SMALLEST, 0.0]]
    assert slate.mask.tolist() == [[True, True, True, True, False]]
    assert Slate(given, ~np.isnan(given)) == slate


def test_the_projection_of_an_ill_conditioned_regression_has_a_determinant():
    model = Ridge(2, ridge=1.0)
    model.set_root(np.array([[1.0, 1e40], [0.0, 1e96]]), np.zeros(2), 0.0, 2)
    turned = np.array([[-1e-8, 1.0], [1.0, 1e-8]])
    assert math.isfinite(Projection.of(model, turned).inside.log_det)


def ill_conditioned():
    """Return a regression whose R has a small row with huge entries in it.

    Substitution multiplies there what it rounds.
    """
    model = Ridge(3, ridge=1e-50)
    factor = np.array([[1.0, 4e99, 4e99], [0.0, 9e99, 9.1e99], [0.0, 0.0, 1e-25]])
    model.set_root(factor, LARGEST * np.ones(3), 0.0, 3)
    return model


def test_scores_are_finite_where_samples_differ_in_size_by_more_than_rounding():
    points = LARGEST * np.array([[1.0, 1.0, 1.0], [1.0, -1.0, 0.3], [0.0, 0.7, 1.0]])
    assert np.isfinite(ill_conditioned().predict(points)).all()


def test_no_estimate_is_larger_than_the_penalty_allows():
    model = ill_conditioned()
    bound = np.linalg.norm(model.white) / math.sqrt(model.ridge)
    assert np.linalg.norm(model.estimate) <= 2.0 * math.sqrt(3) * bound


def test_a_start_fitted_to_far_larger_arms_does_no_harm():
    random = np.random.default_rng(0)
    table = 1e-99 * random.normal(size=(50, 2)) @ random.normal(size=(2, 6))
    start = Factors(np.ones(6), 1e99 * np.ones(6), random.normal(size=(2, 6)), np.ones(6))
    fit = fit_factors(HalfSeenRows(table), start)
    assert np.isfinite(fit.model.loadings).all()
    assert math.isfinite(fit.log_likelihood)


# -- work ------------------------------------------------------------------------------------------


def full_rank(n_arms, dim):
    return np.random.default_rng(0).normal(size=(n_arms, dim))


def test_a_fit_takes_no_more_steps_than_it_can_afford(monkeypatch):
    arms, n_allowed = HalfSeenRows(full_rank(300, 12)), 3
    start = extended(arms, fit_factors(arms, arms.empty_model()), 6)
    assert fit_factors(arms, start, tolerance=0.0).n_steps > n_allowed
    monkeypatch.setattr(factors, "MOST_WORK", n_allowed * factors.step_work(300, 12, 6))
    assert fit_factors(arms, start, tolerance=0.0).n_steps == n_allowed


# -- settings --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [{"horizon": 10**400}, {"burn_in": 10**400}, {"top_eigenvalue": 1e300, "arm_bound": 1.0}],
)
def test_numbers_that_would_overflow_later_are_refused_at_once(settings):
    with pytest.raises(InvalidSettingError):
        tofu(4, **settings)


def test_the_theorems_burn_in_says_that_it_is_too_long():
    with pytest.raises(InvalidSettingError, match="set burn_in yourself"):
        tofu(
            4, burn_in="theory", horizon=9, n_arms=5, arm_bound=LARGEST, top_eigenvalue=1.0,
            last_eigenvalue=1e-100,
        )  # fmt: skip


# -- what callers hand in --------------------------------------------------------------------------


def test_a_ragged_mask_is_refused():
    with pytest.raises(InvalidSlateError, match="a mask must be a table of bool"):
        Slate(np.ones((2, 2)), mask=[[True, False], [True]])


def test_an_object_that_cannot_become_an_array_is_refused_with_its_own_words():
    with pytest.raises(InvalidSlateError, match="the connection was lost"):
        Slate(Raises())
    with pytest.raises(InvalidSlateError, match="the connection was lost"):
        Slate(np.ones((1, 1)), mask=Raises())


def test_the_na_of_pandas_means_hidden():
    frame = pd.DataFrame({"a": [1.5, pd.NA], "b": [2.0, 3.0]}, dtype="Float64")
    assert Slate(frame) == Slate([[1.5, 2.0], [NAN, 3.0]])
    assert Slate([[1, pd.NA], [None, 2]]) == Slate([[1.0, NAN], [NAN, 2.0]])
