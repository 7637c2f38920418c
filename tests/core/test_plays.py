"""Rewards in bounded memory: merged by arm, summed up, and carried into other features."""

import numpy as np
import pytest

from core.test_reward_model import DIM, GROUPS, features_of, model_of, plays_of, world
from halfseen.core.factors import Factors
from halfseen.core.features import Features
from halfseen.core.group_scales import ITEM
from halfseen.core.offers import Layout, Offer
from halfseen.core.plays import Plays
from halfseen.core.reward_model import RewardModel
from halfseen.core.summary import Summary, carrying, joined


def fitted(plays, features, **settings):
    table, _, samples = plays.merged()
    if plays.summaries:
        samples = samples._replace(others=joined(plays.summaries))
    return RewardModel.fitted(features, plays.offers(table), samples, **settings)


def same_models(ours, theirs, new, rtol=1e-6):
    assert ours.scales.logs == pytest.approx(theirs.scales.logs, abs=1e-6)
    assert ours.scales.noise == pytest.approx(theirs.scales.noise, rel=rtol)
    for width in (0.0, 1.0):
        np.testing.assert_allclose(
            ours.score(Offer(new), 1.0, width)[0],
            theirs.score(Offer(new), 1.0, width)[0],
            rtol=rtol,
        )


def test_merging_equal_arms_loses_nothing():
    arms, rewards = world(300, n_items=12)
    features, plays = features_of(arms), plays_of(arms, rewards)
    merged = plays.compacted(features, 50)
    assert (plays.n_rows, merged.n_rows, merged.summaries) == (300, 12, ())
    assert merged.counts.sum() == 300
    theirs = fitted(plays, features, item_effects=True)
    same_models(fitted(merged, features, item_effects=True), theirs, arms[:20], rtol=1e-9)
    # Also if more rewards come after merging.
    more, later = world(40, seed=1, n_items=7)
    for arm, reward in zip(more, later, strict=True):
        plays, merged = (each.append(400, arm, reward) for each in (plays, merged))
    ours, theirs = (fitted(each, features, item_effects=True) for each in (merged, plays))
    same_models(ours, theirs, arms[:20], rtol=1e-9)


@pytest.mark.parametrize("item_effects", [False, True])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_a_summary_is_as_good_as_its_rewards(item_effects, offset):
    arms, rewards = world(400)
    rewards = rewards + offset
    features, plays = features_of(arms), plays_of(arms[:250], rewards[:250])
    small = plays.compacted(features, 100)
    for arm, reward in zip(arms[250:], rewards[250:], strict=True):
        plays, small = (each.append(300, arm, reward) for each in (plays, small))
    small = small.compacted(features, 100)
    (summary,) = small.summaries
    assert (small.n_rows, summary.n_rewards) == (100, 300)
    assert summary.rows.shape == (features.n_features + 1, features.n_features + 1)
    ours, theirs = (fitted(each, features, item_effects=item_effects) for each in (small, plays))
    if item_effects:  # items that were summed up are not known as items any more
        assert ours.scales.of(ITEM) == pytest.approx(theirs.scales.of(ITEM), rel=0.01)
    else:
        same_models(ours, theirs, world(20, seed=3)[0])


def test_of_too_many_arms_those_played_least_and_then_the_oldest_are_summed_up():
    arms = np.arange(5.0 * DIM).reshape(5, DIM)
    played = [0, 1, 1, 2, 3, 3, 4]
    plays = plays_of(arms[played], np.arange(7.0))
    kept = plays.compacted(features_of(world(30)[0]), 3)
    np.testing.assert_array_equal(kept.played.columns()[0], arms[[1, 3, 4]])
    np.testing.assert_array_equal(kept.counts, [2, 2, 1])
    assert kept.summaries[0].n_rewards == 2


def test_with_a_span_rewards_of_different_times_have_different_summaries():
    arms, rewards = world(300)
    features, plays = features_of(arms), Plays.none(Layout(DIM))
    for round, (arm, reward) in enumerate(zip(arms, rewards, strict=True), 1):
        plays = plays.append(round, arm, reward)
        if plays.n_rows == 40:
            plays = plays.compacted(features, 20, 50.0)
    rounds = [each.round for each in plays.summaries]
    assert 3 <= len(rounds) <= 6
    assert (np.diff(rounds) > 30).all()
    assert sum(each.n_rewards for each in plays.summaries) + plays.n_rows == 300
    recent = plays.since(200)
    assert min(each.round for each in recent.summaries) >= 200


def test_summaries_carry_exactly_between_linear_features():
    """Other units and offsets of features, all entries seen."""
    random = np.random.default_rng(0)
    arms, rewards = random.normal(size=(200, DIM)), random.normal(size=200)
    loadings = random.normal(size=(2, DIM))

    def features(location, scale):
        model = Factors(np.full(DIM, location), np.full(DIM, scale), loadings, np.ones(DIM))
        return Features(model, np.full(DIM, 0.5), GROUPS)

    old, new = features(0.0, 1.0), features(0.7, 2.0)
    plays = plays_of(arms, rewards).compacted(old, 60)
    carried, error = plays.carried(old, new)
    assert error < 1e-6
    direct = plays_of(arms, rewards).compacted(new, 60)
    ours, theirs = carried.summaries[0].rows, direct.summaries[0].rows
    np.testing.assert_allclose(ours.T @ ours, theirs.T @ theirs, rtol=1e-6, atol=1e-6)


def test_directions_that_no_arm_shows_are_carried_by_name():
    old = np.array([[1.0, 2.0, 0.0], [1.0, 3.0, 0.0]])
    matrix, error = carrying(old, 2.0 * old, np.eye(3))
    np.testing.assert_allclose(matrix, [[2, 0, 0], [0, 2, 0], [0, 0, 1]], atol=1e-9)
    assert error < 1e-9
    unrelated = np.column_stack([np.ones(2), [1.0, -1.0], np.zeros(2)])
    assert carrying(np.ones((2, 3)), unrelated, np.eye(3))[1] > 0.5


def test_summaries_join_to_the_summary_of_all():
    random = np.random.default_rng(0)
    points = np.column_stack([np.ones(50), random.normal(size=(50, 4))])
    counts, means, rounds = random.integers(1, 4, 50) * 1.0, random.normal(size=50), np.arange(50)
    parts = [slice(0, 9), slice(9, 30), slice(30, 50)]
    whole = Summary.of(points, counts, means, rounds)
    ours = joined([Summary.of(points[i], counts[i], means[i], rounds[i]) for i in parts])
    np.testing.assert_allclose(ours.rows.T @ ours.rows, whole.rows.T @ whole.rows, atol=1e-9)
    assert ours[1:-1] == pytest.approx(whole[1:-1])
    half = whole.faded(0.25)
    np.testing.assert_allclose(half.rows, whole.rows / 2)
    assert (half.n_rewards, half.round) == (whole.n_rewards / 4, whole.round)


def test_plays_survive_saving():
    arms, rewards = world(100)
    features = features_of(arms)
    plays = plays_of(arms, rewards).compacted(features, 40)
    again = Plays.restored(plays.state(), Layout(DIM), features)
    ours, theirs = fitted(again, features), fitted(plays, features)
    same_models(ours, theirs, arms, rtol=0.0)


def test_a_summary_in_many_steps_plays_like_all_rewards():
    """The latent model changes between the steps, so that summaries are carried with an error."""
    arms, rewards = world(2000, noise=0.3)
    plays, features = Plays.none(Layout(DIM)), None
    for first in range(0, 2000, 200):
        last, features = features, features_of(arms[: first + 200])
        if last is not None:
            plays, error = plays.compacted(last, 150).carried(last, features)
            assert error < 0.2
        for round in range(first, first + 200):
            plays = plays.append(round + 1, arms[round], rewards[round])
    new = world(50, seed=5)[0]
    ours = fitted(plays, features).score(Offer(new), 1.0, 0.0)[0][1]
    theirs = model_of(arms, rewards).score(Offer(new), 1.0, 0.0)[0][1]
    assert np.abs(ours - theirs).max() < 0.1 * theirs.std()
