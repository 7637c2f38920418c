"""The reward model with a context: exact against dense Gaussians, also summed up and widened."""

import numpy as np
import pytest

from halfseen.core.context_features import BY_ITEM, CONTEXT, CROSSED, chosen_sides, joint
from halfseen.core.factor_rank import Search
from halfseen.core.factors import Arms, Factors
from halfseen.core.features import Features
from halfseen.core.group_scales import _Evidence as Evidence
from halfseen.core.item_coefficients import ItemCoefficients
from halfseen.core.offers import Layout, Offer
from halfseen.core.plays import Plays
from halfseen.core.reward_model import RewardModel
from halfseen.core.reward_reasons import reasons
from halfseen.core.summary import joined

DIM, CONTEXT_DIM, N_ITEMS = 5, 4, 6
GROUPS = ["latent", "filled", "mask"]
LAYOUT = Layout(DIM, CONTEXT_DIM, True)


def half_seen(random, n, dim, rank=2):
    rows = 2.0 + random.normal(size=(n, rank)) @ random.normal(size=(rank, dim))
    rows += 0.5 * random.normal(size=rows.shape)
    return np.where(random.random(rows.shape) < 0.7, rows, np.nan)


def world(n, *, seed=0, changing=True):
    """Plays of a few items in a context; the features of an item change, if not told otherwise."""
    random = np.random.default_rng(seed)
    items = random.integers(N_ITEMS, size=n).astype(float)
    arms = half_seen(random, n if changing else N_ITEMS, DIM)
    arms = arms if changing else arms[items.astype(int)]
    contexts = half_seen(random, n, CONTEXT_DIM)
    shown = np.nan_to_num(contexts)
    own = np.random.default_rng(99).normal(size=(N_ITEMS, CONTEXT_DIM))
    rewards = 4.0 + np.nan_to_num(arms)[:, 0] + (shown * own[items.astype(int)]).sum(axis=1)
    return Offer(arms, contexts, items), rewards + 0.3 * random.normal(size=n)


def side(table):
    return Features(Search(Arms(table)).run().model, (table == table).mean(axis=0), GROUPS)


def features_of(offer):
    return crossed(side(offer.table), side(offer.contexts))


def crossed(option, context):
    return joint(option, context, chosen_sides(option, context, by_item=True))


def plays_of(offer, rewards, layout=LAYOUT):
    plays = Plays.none(layout)
    for round, (row, reward) in enumerate(zip(layout.packed(offer), rewards, strict=True), 1):
        plays = plays.append(round, row, float(reward))
    return plays


def fitted(plays, features, **settings):
    rows, _, samples = plays.merged()
    if plays.summaries:
        samples = samples._replace(others=joined(plays.summaries))
    return RewardModel.fitted(features, plays.offers(rows), samples, **settings)


def some(offer, part):
    return Offer(*(each[part] for each in offer))


def covariance(model, left, right):
    """That of the rewards of arms, in units of the noise, without the intercept."""
    points, others = (model.features.points_of(each)[:, 1:] for each in (left, right))
    scales = model.scales.spread(model.features.item_columns)
    parts, their_parts = (model.features.parts_of(each) * scales for each in (left, right))
    same = left.keys[:, None] == right.keys
    return points @ others.T + (parts @ their_parts.T) * same


@pytest.mark.parametrize("changing", [True, False])
def test_estimates_and_widths_are_those_of_the_dense_gaussian(changing):
    offer, rewards = world(70, changing=changing)
    early = some(offer, slice(0, 50))
    model = fitted(plays_of(early, rewards[:50]), features_of(early), item_effects=True)
    assert isinstance(model.items, ItemCoefficients)
    for place in range(50, 70):
        model = model.fork()
        one = offer.one(place)
        model.learn(one, model.features.points_of(one)[0], float(rewards[place]))
    new, _ = world(8, seed=5)
    new = new._replace(items=np.append(new.items[:6], [77.0, 78.0]))  # two items are new
    (_, estimates, widths), _ = model.score(new, 1.0, 1.0)
    inverse = np.linalg.inv(covariance(model, offer, offer) + np.eye(70))
    gain, ones = covariance(model, new, offer) @ inverse, np.ones(70)
    precision = ones @ inverse @ ones
    intercept = ones @ inverse @ rewards / precision
    means = intercept + gain @ (rewards - intercept)
    rest = (covariance(model, new, new) - gain @ covariance(model, offer, new)).diagonal()
    deviations = model.scales.noise * np.sqrt(rest + (1.0 - gain @ ones) ** 2 / precision)
    # The intercept's prior is wide, not flat.
    np.testing.assert_allclose(estimates, means, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(widths, deviations, rtol=1e-4)


def test_the_evidence_is_that_of_the_dense_gaussian():
    """Up to a constant, for scales of all groups."""
    offer, rewards = world(60)
    features, plays = features_of(offer), plays_of(offer, rewards)
    rows, _, samples = plays.merged()
    points = features.points_of(plays.offers(rows))
    model = fitted(plays, features, item_effects=True)
    from halfseen.core.reward_model import _sums

    sums = _sums(features, plays.offers(rows), points, samples, samples.mean())
    evidence = Evidence(points, features.columns, samples, True, sums, features.item_columns)
    found = []
    for shift in (0.0, -0.7, 0.9):
        logs = {
            group: log + shift * (index % 3)
            for index, (group, log) in enumerate(model.scales.logs.items())
        }
        scales = model.scales._replace(logs=logs)
        other = features.scaled(scales, list(features.columns), list(features.item_columns))
        dense = RewardModel(other, scales, 0.0, model.model, None)
        v = covariance(dense, offer, offer) + np.eye(60)
        inverse, targets = np.linalg.inv(v), (rewards - rewards.mean()) / evidence.unit
        ones = np.ones(60)
        rest = targets @ inverse @ targets - (ones @ inverse @ targets) ** 2 / (
            ones @ inverse @ ones
        )
        left = rest + 2.0 * 0.05
        n = 60 - 1 + 2.0
        log_det = np.linalg.slogdet(v)[1] + np.log(ones @ inverse @ ones)
        found.append(evidence.of(logs)[0] + 0.5 * (n * np.log(left / n) + log_det))
    np.testing.assert_allclose(found, found[0], atol=1e-6)


def test_the_parts_of_a_score_add_up():
    offer, rewards = world(80)
    model = fitted(plays_of(offer, rewards), features_of(offer), item_effects=True)
    new = some(world(4, seed=3)[0], slice(0, 4))
    new = new._replace(contexts=new.contexts[:1])
    why = reasons(model, new, 2.0, 1.0)
    (scores, estimates, _), _ = model.score(new, 2.0, 1.0)
    np.testing.assert_allclose(why.estimates, estimates, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(why.scores, scores, rtol=1e-9, atol=1e-9)
    assert np.ptp(why.context, axis=0).max() == 0.0
    assert np.ptp(why.crossed, axis=0).max() > 0.0


def test_summed_up_plays_give_the_same_model():
    offer, rewards = world(200)
    features, plays = features_of(offer), plays_of(offer, rewards)
    short = plays.compacted(features, 60)
    assert short.n_rows == 60
    ours, theirs = (fitted(each, features, item_effects=True) for each in (short, plays))
    assert ours.scales.logs == pytest.approx(theirs.scales.logs, abs=1e-6)
    new = world(20, seed=7)[0]
    np.testing.assert_allclose(
        ours.score(new, 1.0, 1.0)[0], theirs.score(new, 1.0, 1.0)[0], rtol=1e-5, atol=1e-6
    )


def test_summaries_by_item_carry_exactly_between_linear_features():
    """Other units and offsets of the context, all entries seen."""
    random = np.random.default_rng(0)
    offer, rewards = world(200)
    offer = Offer(*(np.nan_to_num(each, nan=0.5) for each in offer))
    loadings = random.normal(size=(2, CONTEXT_DIM))

    def features(location, scale):
        model = Factors(
            np.full(CONTEXT_DIM, location),
            np.full(CONTEXT_DIM, scale),
            loadings,
            np.ones(CONTEXT_DIM),
        )
        return crossed(side(offer.table), Features(model, np.full(CONTEXT_DIM, 0.5), GROUPS[:2]))

    old, new = features(0.0, 1.0), features(0.7, 2.0)
    carried, error = plays_of(offer, rewards).compacted(old, 60).carried(old, new)
    assert error < 1e-6
    direct = plays_of(offer, rewards).compacted(new, 60)
    ours, theirs = carried.summaries[0].items, direct.summaries[0].items
    np.testing.assert_array_equal(ours.keys, theirs.keys)
    np.testing.assert_allclose(ours.sums, theirs.sums, rtol=1e-6, atol=1e-6)


def test_a_widened_model_scores_as_before():
    """New features of arms and contexts, which no reward has used, change nothing."""
    offer, rewards = world(80)
    features = features_of(offer)
    model = fitted(plays_of(offer, rewards), features, item_effects=True)

    def widened(old, dim):
        shares = np.pad(old._shares, (0, dim - old.model.dim))
        return Features(old.model.widened(dim), shares, list(old.columns))

    sides = widened(features.option, DIM + 2), widened(features.context, CONTEXT_DIM + 1)
    wider = joint(*sides, features.sides)
    keys = offer.keys
    grown = model.widened(wider, keys, keys)
    new = world(10, seed=4)[0]
    longer = new._replace(
        table=np.pad(new.table, ((0, 0), (0, 2)), constant_values=np.nan),
        contexts=np.pad(new.contexts, ((0, 0), (0, 1)), constant_values=np.nan),
    )
    np.testing.assert_allclose(
        grown.score(longer, 1.0, 1.0)[0], model.score(new, 1.0, 1.0)[0], rtol=1e-7, atol=1e-9
    )


def test_a_model_with_a_context_survives_saving():
    offer, rewards = world(80)
    features = features_of(offer)
    model = fitted(plays_of(offer, rewards), features, item_effects=True)
    again = RewardModel.restored(model.state(), features)
    for ours, theirs in zip(
        again.score(offer, 2.0, 1.0), model.score(offer, 2.0, 1.0), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_a_reward_by_context_and_item_is_found_in_its_groups():
    offer, rewards = world(400)
    scales = fitted(plays_of(offer, rewards), features_of(offer), item_effects=True).scales
    by_item = max(scales.of(group) for group in BY_ITEM.values())
    assert by_item > 5.0 * scales.of(CROSSED)
    shared = max(scales.of(group) for group in CONTEXT.values())
    assert by_item > shared
