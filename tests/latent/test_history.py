"""Rewards in bounded memory: merged by arm, summed up, and projected onto other features."""

from types import SimpleNamespace

import numpy as np
import pytest

from halfseen import LatentUcb
from halfseen.factors.model import Factors
from halfseen.latent.features import Features
from halfseen.latent.history import History, Observations
from halfseen.latent.projection import fitted_map, projected
from halfseen.latent.reward_model import RewardModel
from halfseen.latent.statistics import Statistics
from latent.test_reward_model import (
    CONTEXT_DIM,
    DIM,
    GROUPS,
    features_of,
    row_features,
    scores,
    side,
    world,
)


def keeping(n_rows):
    return LatentUcb(dim=1)._settings._replace(n_kept=n_rows)


def history_of(rows, history=None):
    history = history or History.empty(rows.arms.shape[1], rows.contexts.shape[1])
    for row in range(len(rows.rounds)):
        history = history.plus(*(column[row] for column in rows[:5]))
    return history


def fitted(history, features):
    return RewardModel.fitted(features, history.rows.merged(), history.summary)


def same_models(ours, theirs, new, rtol=1e-6):
    assert ours.scales.logs == pytest.approx(theirs.scales.logs, abs=1e-5)
    assert ours.scales.noise_scale == pytest.approx(theirs.scales.noise_scale, rel=rtol)
    for width in (0.0, 1.0):
        np.testing.assert_allclose(
            scores(ours, new, 1.0, width), scores(theirs, new, 1.0, width), rtol=rtol, atol=1e-6
        )


def test_merging_equal_arms_loses_nothing():
    rows = world(300, kind="return")
    features, history = features_of(rows), history_of(rows)
    merged = history.bounded(features, keeping(50))
    assert (len(history), len(merged), merged.summary) == (300, 8, None)
    assert merged.rows.counts.sum() == 300
    new = rows.select(slice(0, 20))
    same_models(fitted(merged, features), fitted(history, features), new)
    # Also if more rewards come after merging.
    more = world(40, seed=1, kind="return")
    history, merged = (history_of(more, each) for each in (history, merged))
    same_models(fitted(merged, features), fitted(history, features), new)


def test_merging_equal_rewards_invents_no_difference():
    rows = Observations(
        *(np.tile(column, (1000,) + (1,) * (column.ndim - 1)) for column in world(3))
    )
    merged = rows._replace(rewards=np.full(3000, 0.1)).merged()
    assert set(merged.rewards) == {0.1}
    assert not merged.squares.any()


@pytest.mark.parametrize("kind", ["fresh", "return", "features"])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_a_summary_is_as_good_as_its_rewards(kind, offset):
    rows = world(400, kind=kind)
    rows = rows._replace(rewards=rows.rewards + offset)
    most = 4 if kind == "return" else 100
    features, history = features_of(rows), history_of(rows.select(slice(0, 250)))
    small = history.bounded(features, keeping(most))
    history, small = (history_of(rows.select(slice(250, 400)), each) for each in (history, small))
    small = small.bounded(features, keeping(most))
    summary = small.summary
    assert len(small) == most
    assert summary.n_rewards == 400 - small.rows.counts.sum()
    assert summary.n_features == features.n_features
    new = world(20, seed=3, kind=kind)
    same_models(fitted(small, features), fitted(history, features), new, rtol=1e-4)


def test_of_too_many_arms_those_played_least_and_then_the_oldest_are_summed_up():
    arms = np.arange(5.0 * DIM).reshape(5, DIM)
    rows = world(7)._replace(arms=arms[[0, 1, 1, 2, 3, 3, 4]])
    kept = history_of(rows).bounded(features_of(world(30)), keeping(3))
    np.testing.assert_array_equal(kept.rows.arms, arms[[1, 3, 4]])
    np.testing.assert_array_equal(kept.rows.counts, [2, 2, 1])
    assert kept.summary.n_rewards == 2


@pytest.mark.parametrize("kind", ["fresh", "features"])
def test_summaries_project_exactly_between_linear_features(kind):
    """Other units and offsets of features, all entries seen."""
    rows = Observations(*(np.nan_to_num(column, nan=0.5) for column in world(200, kind=kind)))
    loadings = np.random.default_rng(0).normal(size=(2, DIM))

    def features(location, scale):
        def linear(dim):
            model = Factors(
                np.full(dim, location), np.full(dim, scale), loadings[:, :dim].copy(), np.ones(dim)
            )
            return row_features(model, np.full(dim, 0.5), GROUPS)

        context = linear(CONTEXT_DIM) if kind == "features" else side(rows.contexts)
        return Features(linear(DIM), context, n_items=8 * (kind == "features"))

    old, new = features(0.0, 1.0), features(0.7, 2.0)
    ours = history_of(rows).bounded(old, keeping(60)).in_new_features(old, new).summary
    theirs = history_of(rows).bounded(new, keeping(60)).summary
    np.testing.assert_allclose(ours.products, theirs.products, rtol=1e-6, atol=1e-5)
    np.testing.assert_array_equal(ours.keys, theirs.keys)
    np.testing.assert_allclose(ours.item_products, theirs.item_products, rtol=1e-6, atol=1e-5)


def test_directions_that_no_arm_shows_are_matched_by_name():
    old = np.array([[1.0, 2.0, 0.0], [1.0, 3.0, 0.0]])
    matrix = fitted_map(old, 2.0 * old, np.eye(3))
    np.testing.assert_allclose(matrix, [[2, 0, 0], [0, 2, 0], [0, 0, 1]], atol=1e-9)


def test_a_map_that_blows_up_a_summary_is_not_used():
    """The kept arms hardly show a column whose sum of squares is −1e-17, by rounding."""
    random, nothing = np.random.default_rng(0), np.empty((20, 0))

    def features(scale, group):
        phi = np.column_stack([np.ones(20), scale * random.normal(size=20)])
        columns = {"columns": {group: slice(1, 2)}, "item_columns": {}}
        sizes = {"n_features": 2, "n_item_columns": 0, "design": lambda *_: (phi, nothing)}
        return SimpleNamespace(**columns, **sizes)

    no_items = np.empty(0, dtype=np.uint64), np.empty((0, 0, 3))
    summary = Statistics(np.diag([11.0, -1e-17, 3.0]), *no_items, 0.0, 11.0)
    arms = features(1e-92, "latent"), features(1.0, "filled"), nothing, nothing
    assert projected(summary, *arms) is None


def test_summaries_join_to_the_summary_of_all():
    rows = world(50, kind="features")
    features = features_of(rows)
    phi, c = features.design(rows.arms, rows.contexts)
    first, second, whole = (
        rows.select(part).statistics(phi[part], c[part], shift=shift)
        for part, shift in ((slice(0, 9), 1.0), (slice(9, 50), 5.0), (slice(0, 50), 1.0))
    )
    ours = first.plus(second)
    np.testing.assert_allclose(ours.products, whole.products, atol=1e-8)
    np.testing.assert_array_equal(ours.keys, whole.keys)
    np.testing.assert_allclose(ours.item_products, whole.item_products, atol=1e-8)
    assert (ours.shift, ours.n_rewards) == (whole.shift, whole.n_rewards)


def test_a_summary_in_many_steps_plays_like_all_rewards():
    """The latent model changes between the steps, so that projections have an error."""
    rows = world(2000)
    history, features = None, None
    for first in range(0, 2000, 200):
        last, features = features, features_of(rows.select(slice(0, first + 200)))
        if last is not None:
            history = history.bounded(last, keeping(150)).in_new_features(last, features)
        history = history_of(rows.select(slice(first, first + 200)), history)
    new = world(50, seed=5)
    ours = scores(fitted(history, features), new, 1.0, 0.0)[1]
    theirs = scores(fitted(history_of(rows), features), new, 1.0, 0.0)[1]
    assert np.abs(ours - theirs).max() < 0.1 * theirs.std()
