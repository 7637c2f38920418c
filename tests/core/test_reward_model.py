"""The reward model: groups of features with prior scales by evidence, and effects of items."""

import math

import numpy as np
import pytest

from halfseen.core.factor_rank import Search
from halfseen.core.factors import Arms, row_keys
from halfseen.core.features import INTERCEPT, Features
from halfseen.core.group_scales import ITEM, Scales, estimate_scales
from halfseen.core.group_scales import _Evidence as Evidence
from halfseen.core.items import Items
from halfseen.core.offers import Layout, Offer
from halfseen.core.plays import Plays
from halfseen.core.reward_model import NEGLIGIBLE, RewardModel
from halfseen.core.samples import Samples

DIM = 8
GROUPS = ["latent", "filled", "mask"]


def world(n, *, seed=0, n_items=None, noise=0.3):
    """Half-seen arms of which some come back, and rewards that depend on everything."""
    random = np.random.default_rng(seed)
    loadings, theta = random.normal(size=(2, DIM)), random.normal(size=2)
    latent = random.normal(size=(n_items or n, 2))
    arms = 3.0 + latent @ loadings + 0.5 * random.normal(size=(len(latent), DIM))
    arms[random.random(arms.shape) < 0.4] = np.nan
    effects = 0.7 * random.normal(size=len(latent)) if n_items else np.zeros(len(latent))
    played = random.integers(len(latent), size=n) if n_items else np.arange(n)
    rewards = 10.0 + (latent @ theta + effects)[played] + noise * random.normal(size=n)
    return arms[played], rewards


def plays_of(arms, rewards):
    plays = Plays.none(Layout(DIM))
    for round, (arm, reward) in enumerate(zip(arms, rewards, strict=True), 1):
        plays = plays.append(round, arm, float(reward))
    return plays


def features_of(arms):
    return Features(Search(Arms(arms)).run().model, (arms == arms).mean(axis=0), GROUPS)


def model_of(arms, rewards, **settings):
    table, _, samples = plays_of(arms, rewards).merged()
    return RewardModel.fitted(features_of(arms), Offer(table), samples, **settings)


def dense_posterior(model, arms, rewards, new):
    """Mean and deviation of new arms' rewards from the covariance of all, with a flat intercept."""

    def covariance(left, right):
        points, others = (model.features.points(each)[:, 1:] for each in (left, right))
        same = np.array([[_same(a, b) for b in right] for a in left])
        return points @ others.T + model.scales.of(ITEM) ** 2 * same

    inverse = np.linalg.inv(covariance(arms, arms) + np.eye(len(arms)))
    gain, ones, noise = covariance(new, arms) @ inverse, np.ones(len(arms)), model.scales.noise
    precision = ones @ inverse @ ones
    intercept = ones @ inverse @ rewards / precision
    means = intercept + gain @ (rewards - intercept)
    rest = (covariance(new, new) - gain @ covariance(arms, new)).diagonal()
    return means, noise * np.sqrt(rest + (1.0 - gain @ ones) ** 2 / precision)


def _same(a, b):
    return np.array_equal(a, b, equal_nan=True)


@pytest.mark.parametrize("n_items", [None, 12])
def test_estimates_and_widths_are_those_of_the_dense_gaussian(n_items):
    arms, rewards = world(60, n_items=n_items)
    model = model_of(arms[:40], rewards[:40], item_effects=n_items is not None)
    for arm, reward in zip(arms[40:], rewards[40:], strict=True):  # items that are new among them
        model = model.fork()
        one = Offer(arm[None])
        model.learn(one, model.features.points_of(one)[0], float(reward))
    new = np.vstack([arms[:5], world(5, seed=9)[0]])
    (_, estimates, widths), _ = model.score(Offer(new), 1.0, 1.0)
    means, deviations = dense_posterior(model, arms, rewards, new)
    # The intercept's prior is wide, not flat.
    np.testing.assert_allclose(estimates, means, rtol=1e-5)
    np.testing.assert_allclose(widths, deviations, rtol=1e-4)


def test_another_reward_of_an_item_that_was_played_often_is_learned():
    """The weight of the sample is tiny, and not lost to rounding."""
    keys = row_keys(np.ones((1, DIM)))
    items = Items(keys, np.array([1e9]), np.array([2.0]), math.exp(8.0))
    after, sample, target = items.after(int(keys[0]), np.ones(1), np.ones(1), 2.5)
    variance = math.exp(16.0)
    weight = 1.0 / (1.0 + variance * 1e9) / (1.0 + variance * (1e9 + 1))
    assert sample[0] == pytest.approx(math.sqrt(weight))
    assert target == pytest.approx(math.sqrt(weight) * (2.5 + variance * 1e9 * 0.5))
    assert after.counts[0] == 1e9 + 1


def test_copies_of_an_item_get_the_same_draw_wherever_they_stand():
    arms, rewards = world(60, n_items=12)
    model = model_of(arms, rewards, item_effects=True)
    slate = np.vstack([arms[:4], arms[:1]])
    draws = model.draw(Offer(slate), np.random.default_rng(0), 1.0, 1.0)
    turned = model.draw(Offer(slate[::-1].copy()), np.random.default_rng(0), 1.0, 1.0)
    assert draws[0] == draws[4]
    np.testing.assert_array_equal(turned[::-1], draws)


def test_the_number_of_items_is_bounded(monkeypatch):
    monkeypatch.setattr("halfseen.core.items.MOST_ITEMS", 8)
    arms, rewards = world(60, n_items=12)
    items = model_of(arms, rewards, item_effects=True).items
    counts = np.unique([row.tobytes() for row in arms], return_counts=True)[1]
    assert sorted(items.counts.tolist()) == sorted(counts.tolist())[-8:]
    new = int(row_keys(world(1, seed=9)[0])[0])
    after, sample, target = items.after(new, np.ones(1), np.ones(1), 2.0)
    assert after is items
    assert (sample[0], target) == (root := 1.0 / math.sqrt(1.0 + items.scale**2), 2.0 * root)


@pytest.mark.parametrize("n", [12, 200])  # fewer and more rewards than features
@pytest.mark.parametrize("intercept", [True, False])
def test_evidence_is_the_density_of_contrasts(n, intercept):
    """Differences between two settings are those of the dense density with the mean left out."""
    arms, rewards = world(n, n_items=n // 3)
    latent = Search(Arms(arms)).run().model
    features = Features(latent, (arms == arms).mean(axis=0), GROUPS, intercept=False)
    keys = [row.tobytes() for row in arms]
    items = np.array([sorted(set(keys)).index(key) for key in keys])
    first = [items.tolist().index(item) for item in range(items.max() + 1)]
    points = features.points(np.ascontiguousarray(arms[first]))
    points[:, 0] = 1.0
    groups = {group: points[:, columns] for group, columns in features.columns.items()}
    evidence = Evidence(points, features.columns, Samples.of(items, rewards), intercept)
    # An orthonormal basis of everything but the mean.
    basis = np.eye(n)
    if intercept:
        basis = np.linalg.qr(np.column_stack([np.ones(n), np.eye(n)[:, 1:]]))[0][:, 1:]
    targets = basis.T @ rewards

    def dense(logs):
        covariance = np.eye(n) + math.exp(2 * logs[ITEM]) * (items[:, None] == items)
        for group, block in groups.items():
            rows = block[items]
            covariance += math.exp(2 * logs[group]) * rows @ rows.T
        covariance = basis.T @ covariance @ basis
        left = targets @ np.linalg.solve(covariance, targets) / evidence.unit**2 + 0.1
        size = len(targets) + 2
        return -0.5 * (size * math.log(left / size) + np.linalg.slogdet(covariance)[1]), left / size

    settings = [
        {"latent": 0.0, "filled": 0.0, "mask": -1.0, ITEM: 0.0},
        {"latent": 1.5, "filled": -2.0, "mask": 0.5, ITEM: -1.0},
    ]
    ours, theirs = [evidence.of(logs) for logs in settings], [dense(logs) for logs in settings]
    assert ours[1][0] - ours[0][0] == pytest.approx(theirs[1][0] - theirs[0][0], rel=1e-6)
    assert [each[1] for each in ours] == pytest.approx([each[1] for each in theirs], rel=1e-6)


def test_scales_do_not_depend_on_the_unit_or_the_mean_of_rewards():
    arms, rewards = world(80)
    scales = model_of(arms, rewards).scales
    for factor, shift in ((1e-90, 0.0), (1e90, 0.0), (3.0, 1e6)):
        other = model_of(arms, factor * rewards + shift).scales
        assert other.logs == scales.logs
        assert other.noise == pytest.approx(factor * scales.noise, rel=1e-4)


def test_a_scale_stays_at_its_centre_while_rewards_say_nothing_about_it():
    # One arm, played again and again: its rewards say nothing about features.
    arms, _ = world(1)
    rewards = np.random.default_rng(0).normal(size=50)
    samples = Samples.of(np.zeros(50, dtype=int), rewards)
    model = RewardModel.fitted(features_of(world(50)[0]), Offer(arms), samples)
    assert model.scales.logs == {"latent": 0.0, "filled": 0.0, "mask": -1.0}


@pytest.mark.parametrize("n_items", [3, 8, 60])
def test_the_scale_of_items_is_the_posterior_mean_of_its_square(n_items):
    """Without features, against a fine sum over log τ."""
    random = np.random.default_rng(n_items)
    items = np.repeat(np.arange(n_items), 4)
    rewards = random.normal(size=n_items)[items] + 0.3 * random.normal(size=len(items))
    samples = Samples.of(items, rewards)
    ones = np.ones((n_items, 1))
    evidence = Evidence(ones, {}, samples, True)
    grid = np.linspace(-5.0, 7.0, 2401)
    found = np.array([evidence.of({ITEM: log}) for log in grid])
    rests = grid + 0.5 * np.log(found[:, 1]) - evidence.log_spread
    density = found[:, 0] - 0.5 * rests**2
    weights = np.exp(density - density.max())
    expected = np.sqrt(weights @ np.exp(2.0 * grid) / weights.sum())
    scales = estimate_scales(ones, {}, samples, centres={ITEM: 0.0})
    # With many items the posterior is narrower than a step, and the mode is as good as the step.
    assert abs(math.log(scales.of(ITEM) / expected)) < (0.02 if n_items < 10 else 0.25)


def test_evidence_finds_the_groups_that_matter():
    random = np.random.default_rng(0)
    points = np.column_stack([np.ones(400), random.normal(size=(400, 9)) / math.sqrt(3)])
    columns = {name: slice(1 + 3 * i, 4 + 3 * i) for i, name in enumerate(GROUPS)}
    centres = dict.fromkeys(GROUPS, 0.0)
    for name in GROUPS:
        rewards = 5.0 * points[:, columns[name]] @ random.normal(size=3) + random.normal(size=400)
        samples = Samples.of(np.arange(400), rewards)
        scales = estimate_scales(points, columns, samples, centres=centres)
        others = [scales.of(other) for other in GROUPS if other != name]
        assert scales.of(name) > 5 * max(others)
        assert scales.noise == pytest.approx(1.0, abs=0.15)  # 4 standard errors


def test_thompson_draws_have_the_posterior_deviation():
    arms, rewards = world(60, n_items=12)
    model = model_of(arms, rewards, item_effects=True)
    new = np.vstack([arms[:3], world(3, seed=9)[0]])
    (_, _, widths), _ = model.score(Offer(new), 1.0, 1.0)
    draws = [model.draw(Offer(new), np.random.default_rng(seed), 1.0, 1.0) for seed in range(4000)]
    # The standard error of a deviation from 4000 draws is 1.1 %.
    np.testing.assert_allclose(np.std(draws, axis=0), widths, rtol=0.06)


def test_a_model_survives_saving():
    arms, rewards = world(60, n_items=12)
    model = model_of(arms, rewards, item_effects=True)
    again = RewardModel.restored(model.state(), features_of(arms))
    given = Offer(arms), 2.0, 1.0
    for ours, theirs in zip(model.score(*given), again.score(*given), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_features_by_hand():
    table = np.array([[1.0, 3.0], [3.0, 5.0], [2.0, np.nan]])
    latent = Arms(table).empty_model()
    features = Features(
        latent,
        np.array([1.0, 2 / 3]),
        ["filled", "mask"],
        Scales({"filled": 0.0, "mask": math.log(2)}, 1.0),
    )
    deviation = math.sqrt(2 / 3)
    np.testing.assert_allclose(
        features.points(table),
        [
            [INTERCEPT, -1 / deviation / math.sqrt(2), -1 / math.sqrt(2), 0, math.sqrt(2)],
            [INTERCEPT, 1 / deviation / math.sqrt(2), 1 / math.sqrt(2), 0, math.sqrt(2)],
            [INTERCEPT, 0, 0, 0, -2 * math.sqrt(2)],
        ],
        atol=1e-12,
    )


def test_a_group_that_moves_nothing_is_left_out_of_a_round():
    random = np.random.default_rng(0)
    arms = random.normal(size=(40_000, 2)) @ random.normal(size=(2, DIM))
    arms += 0.1 * random.normal(size=arms.shape)
    arms[random.random(arms.shape) < 0.4] = np.nan
    features = features_of(arms[:500])
    latent = features.points(arms)[:, features.columns["latent"]]
    rewards = latent @ [5.0, 3.0] + random.normal(size=40_000)
    model = RewardModel.fitted(features, Offer(arms), Samples.of(np.arange(40_000), rewards))
    assert model.scales.logs["mask"] <= NEGLIGIBLE
    assert "mask" not in model.features.columns
    assert "latent" in model.features.columns
