"""The reward model: exact against dense Gaussians, with and without contexts and items."""

import math

import numpy as np
import pytest

from halfseen import Slate
from halfseen.factors.model import Factors, HalfSeenRows, choose_rank
from halfseen.latent.evidence import INTERCEPT, Evidence, Scales, reduced_design
from halfseen.latent.features import Features, RowFeatures
from halfseen.latent.groups import BY_ITEM, CENTRES, CONTEXT_GROUPS, CROSSED, ITEM
from halfseen.latent.history import Observations
from halfseen.latent.reward_model import NEGLIGIBLE, RewardModel
from halfseen.latent.row_model import RowModel

DIM, CONTEXT_DIM, N_ITEMS = 6, 4, 8
GROUPS = ["latent", "filled", "mask"]


def half_seen(random, n, dim, rank=2):
    rows = 2.0 + random.normal(size=(n, rank)) @ random.normal(size=(rank, dim))
    rows += 0.5 * random.normal(size=rows.shape)
    return np.where(random.random(rows.shape) < 0.7, rows, np.nan)


def world(n, *, seed=0, kind="fresh"):
    """Plays: "fresh" arms, arms that "return", or named items with changing "features"."""
    random = np.random.default_rng(seed)
    numbers = random.integers(N_ITEMS, size=n)
    context_dim = CONTEXT_DIM if kind == "features" else 0
    contexts = half_seen(random, n, context_dim) if context_dim else np.empty((n, 0))
    arms = half_seen(np.random.default_rng(7 if kind == "return" else seed), max(n, N_ITEMS), DIM)
    arms = arms[numbers] if kind == "return" else arms[:n]
    own = np.random.default_rng(99).normal(size=(N_ITEMS, 1 + context_dim))
    parts = np.column_stack([np.ones(n), np.nan_to_num(contexts)])
    rewards = 4.0 + np.nan_to_num(arms)[:, 0] + 0.3 * random.normal(size=n)
    if kind != "fresh":
        rewards += (parts * own[numbers]).sum(axis=1)
    items = numbers if kind == "features" else np.full(n, -1)
    zeros = np.zeros(n)
    return Observations(
        np.arange(1, n + 1), arms, contexts, items, rewards, np.ones(n), zeros, zeros
    )


def row_features(factors, shares, groups, first_levels=None):
    rows = RowModel.unknown(factors.dim)._replace(factors=factors, shares=shares)
    return RowFeatures(rows, groups, first_levels or {})


NO_CONTEXT = row_features(Factors.unknown(0), np.zeros(0), [])


def side(table, groups=GROUPS):
    if table.shape[1] == 0:
        return NO_CONTEXT
    factors = choose_rank(HalfSeenRows(table)).model
    return row_features(factors, (table == table).mean(axis=0), groups)


def features_of(rows, *, by_item=None, intercept=True):
    n_items = len(np.unique(rows.keys))
    by_item = n_items < len(rows.keys) if by_item is None else by_item
    arm, context = side(rows.arms), side(rows.contexts)
    return Features(arm, context, n_items=n_items * by_item, intercept=intercept)


@pytest.mark.parametrize(
    ("dim", "n_items", "groups"),
    [(150, 3, GROUPS), (250, 3, GROUPS[:2]), (150, 8, GROUPS[:2]), (500, 3, GROUPS[:1])],
)
def test_a_wide_context_loses_masks_by_item_before_its_values(dim, n_items, groups):
    context = row_features(Factors.unknown(dim), np.full(dim, 0.5), GROUPS)
    features = Features(NO_CONTEXT, context, n_items=n_items)
    assert list(features.item_columns) == [ITEM, *(BY_ITEM[group] for group in groups)]


def model_of(rows, features=None, **given):
    return RewardModel.fitted(features or features_of(rows), rows.merged(), **given)


def learned(model, rows):
    for row in zip(rows.arms, rows.contexts, rows.items.tolist(), rows.rewards, strict=True):
        model, _ = model.updated(*row)
    return model


def slates(rows):
    """Each row as a slate with its context."""
    for row in range(len(rows.rounds)):
        items = None if rows.items[row] < 0 else [rows.items[row]]
        yield Slate(rows.arms[row : row + 1], items=items), rows.contexts[row : row + 1]


def scores(model, rows, *widths):
    found = [model.score(model.candidates(*each), *widths) for each in slates(rows)]
    return np.hstack(found)


def covariance(model, left, right):
    """That of the rewards of arms, in units of the noise, without the intercept."""
    points, parts = model.design(left.arms, left.contexts)
    others, theirs = model.design(right.arms, right.contexts)
    return points[:, 1:] @ others[:, 1:].T + (parts @ theirs.T) * (left.keys[:, None] == right.keys)


@pytest.mark.parametrize("kind", ["fresh", "return", "features"])
def test_residuals_and_information_are_those_of_the_dense_precision(kind):
    rows = world(60, kind=kind)
    model = model_of(rows)
    precision = np.linalg.inv(np.eye(60) + INTERCEPT**2 + covariance(model, rows, rows))
    columns = np.random.default_rng(1).normal(size=(60, 3))
    assert np.allclose(model.information(rows, columns), columns.T @ precision @ columns, atol=1e-8)
    assert np.allclose(model.residuals(rows), precision @ (rows.rewards - model.centre), atol=1e-8)


@pytest.mark.parametrize("kind", ["fresh", "return", "features"])
def test_estimates_and_widths_are_those_of_the_dense_gaussian(kind):
    rows = world(70, kind=kind)
    model = model_of(rows.select(slice(0, 50)))
    model = learned(model, rows.select(slice(50, 70)))
    new = world(10, seed=5, kind=kind)
    if kind == "features":
        new.items[-2:] = 77, 78  # two items are new
    _, estimates, widths = scores(model, new, 1.0, 1.0)
    inverse = np.linalg.inv(covariance(model, rows, rows) + np.eye(70))
    gain, ones = covariance(model, new, rows) @ inverse, np.ones(70)
    precision = ones @ inverse @ ones
    intercept = ones @ inverse @ rows.rewards / precision
    means = intercept + gain @ (rows.rewards - intercept)
    rest = (covariance(model, new, new) - gain @ covariance(model, rows, new)).diagonal()
    deviations = model.scales.noise_scale * np.sqrt(rest + (1.0 - gain @ ones) ** 2 / precision)
    # The intercept's prior is wide, not flat.
    np.testing.assert_allclose(estimates, means, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(widths, deviations, rtol=1e-4)


def evidence_of(rows, features, *, narrow=False):
    points, parts = features.design(rows.arms, rows.contexts)
    columns = features.blocks
    if narrow:
        points, columns = reduced_design(points, columns)
    shift = float(rows.rewards.mean()) if features.intercept else 0.0
    rewards = rows.statistics(points, parts, shift=shift)
    return Evidence(rewards, columns, features.item_blocks)


@pytest.mark.parametrize("kind", ["fresh", "return", "features"])
@pytest.mark.parametrize(("n", "intercept"), [(12, True), (60, True), (60, False)])
def test_the_evidence_is_the_density_of_the_dense_gaussian(kind, n, intercept):
    """Up to a constant: with the intercept left out, the noise at its best, and the priors."""
    rows = world(n, kind=kind)
    features = features_of(rows, intercept=intercept)
    evidence = evidence_of(rows, features, narrow=n == 12)
    random, found = np.random.default_rng(0), []
    for _ in range(3):
        logs = dict(zip(evidence.blocks, random.normal(size=len(evidence.blocks)), strict=True))
        scales = Scales(logs, 1.0)
        model = RewardModel.prior(features, scales)
        v = covariance(model, rows, rows) + np.eye(n)
        inverse, ones = np.linalg.inv(v), np.ones(n)
        targets = rows.rewards - intercept * rows.rewards.mean()
        mean_square = np.mean(targets**2)
        left, log_det = targets @ inverse @ targets, np.linalg.slogdet(v)[1]
        if intercept:
            left -= (ones @ inverse @ targets) ** 2 / (ones @ inverse @ ones)
            log_det += np.log(ones @ inverse @ ones)
        n_pseudo = 2.0 + 0.02 * n
        left, size = left + n_pseudo * 0.05 * mean_square, n - intercept + n_pseudo
        value, noise, *_ = evidence.at(np.array(list(logs.values())))
        assert noise == pytest.approx(left / size, rel=1e-6)
        rests = [log - CENTRES[group] for group, log in logs.items()]
        if ITEM in logs:
            place = evidence.blocks.index(ITEM)
            rests[place] += 0.5 * math.log(noise / mean_square) - evidence._log_item_deviation
        prior = 0.5 * np.sum(np.square(rests))
        found.append(value + prior + 0.5 * (size * np.log(left / size) + log_det))
    np.testing.assert_allclose(found, found[0], atol=1e-6)


@pytest.mark.parametrize("kind", ["fresh", "return", "features"])
def test_the_effective_number_of_coefficients_is_the_trace_of_the_dense_smoother(kind):
    """tr(I − C) = tr K(K + I)⁻¹, where K + I also has the intercept."""
    rows = world(60, kind=kind)
    features = features_of(rows)
    scales = evidence_of(rows, features).maximise({})
    k = covariance(RewardModel.prior(features, scales), rows, rows)
    inverse = np.linalg.inv(k + np.eye(60) + INTERCEPT**2)
    assert scales.n_effective == pytest.approx(np.trace(k @ inverse), rel=1e-6)


@pytest.mark.parametrize("kind", ["fresh", "return", "features"])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_gradient_is_that_of_the_density(kind, intercept):
    rows = world(50, kind=kind)
    evidence = evidence_of(rows, features_of(rows, intercept=intercept))
    logs = np.random.default_rng(1).normal(size=len(evidence.blocks))
    gradient, information = evidence.derivatives(evidence.at(logs))
    step = 1e-5
    for place, slope in enumerate(gradient):
        moves = step * np.eye(len(logs))[place]
        values = [evidence.at(logs + sign * moves).log for sign in (-1, 1)]
        assert slope == pytest.approx((values[1] - values[0]) / (2 * step), rel=1e-4, abs=1e-4)
    assert np.linalg.eigvalsh(information).min() > 0.0


def test_no_scales_are_more_likely_than_those_found():
    rows = world(150, kind="features")
    evidence = evidence_of(rows, features_of(rows))
    start = np.array([CENTRES[group] for group in evidence.blocks])
    scales = evidence.maximise({})
    again = evidence.maximise(scales.logs)
    features = [group for group in evidence.blocks if group not in (ITEM, *BY_ITEM.values())]
    for group in features:
        assert again.logs[group] == pytest.approx(scales.logs[group], abs=0.3)
    found = np.array([scales.logs[group] for group in evidence.blocks])
    best = evidence.at(found).log
    random = np.random.default_rng(0)
    for _ in range(20):
        assert evidence.at(start + random.normal(size=len(start))).log < best + 1.0


def test_scales_do_not_depend_on_the_unit_or_the_mean_of_rewards():
    rows = world(80)
    scales = model_of(rows).scales
    for factor, shift in ((1e-90, 0.0), (1e90, 0.0), (3.0, 1e6)):
        other = model_of(rows._replace(rewards=factor * rows.rewards + shift)).scales
        assert other.logs == pytest.approx(scales.logs, abs=1e-4)
        assert other.noise_scale == pytest.approx(factor * scales.noise_scale, rel=1e-4)


def test_a_scale_stays_at_its_centre_while_rewards_say_nothing_about_it():
    # One arm, played again and again: its rewards say nothing about features.
    one = world(1)
    rows = Observations(*(np.repeat(column, 50, axis=0) for column in one))
    rows = rows._replace(rewards=np.random.default_rng(0).normal(size=50))
    model = model_of(rows, features_of(world(50)))
    assert model.scales.logs == pytest.approx({"latent": 0.0, "filled": 0.0, "mask": -1.0})


@pytest.mark.parametrize("n_items", [3, 8, 60])
def test_the_scale_of_items_is_the_posterior_mean_of_its_square(n_items):
    """Without features, against a fine sum over log τ."""
    random = np.random.default_rng(n_items)
    items = np.repeat(np.arange(n_items), 4)
    rewards = random.normal(size=n_items)[items] + 0.3 * random.normal(size=len(items))
    rewards -= rewards.mean()
    rows = Observations(*(np.repeat(column, len(items), axis=0) for column in world(1)))
    rows = rows._replace(items=items, rewards=rewards)
    ones = np.ones((len(items), 1))
    evidence = Evidence(rows.statistics(ones, ones, shift=0.0), {}, {ITEM: np.array([0])})
    grid = np.linspace(-5.0, 7.0, 2401)
    density = np.array([evidence.at(np.array([log])).log for log in grid])
    weights = np.exp(density - density.max())
    expected = np.sqrt(weights @ np.exp(2.0 * grid) / weights.sum())
    assert evidence.maximise({}).logs[ITEM] == pytest.approx(math.log(expected), abs=1e-3)


def test_a_reward_by_context_and_item_is_found_in_its_groups():
    scales = model_of(world(400, kind="features")).scales
    by_item = max(scales.logs[group] for group in BY_ITEM.values())
    assert by_item > math.log(5.0) + scales.logs[CROSSED]
    assert by_item > max(scales.logs[group] for group in CONTEXT_GROUPS.values())


def test_rewards_that_are_predicted_without_error_leave_some_noise():
    rows = world(2000)
    rewards = 4.0 + np.nan_to_num(rows.arms) @ np.arange(1.0, 1.0 + DIM)
    model = HalfSeenRows(rows.arms).empty_model()
    arm = row_features(model, np.full(DIM, 0.7), ["filled", "mask"])
    features = Features(arm, NO_CONTEXT, n_items=0)
    scales = model_of(rows._replace(rewards=rewards), features).scales
    assert 0.03 < scales.noise_scale / rewards.std() < 0.04


def test_a_useless_category_has_a_small_scale_of_its_own():
    """Items differ by a number and by the first of three categories of the context."""
    random = np.random.default_rng(0)
    rows, n_levels = world(500, kind="features"), 6
    levels = [np.eye(n_levels)[random.integers(n_levels, size=500)] for _ in range(3)]
    contexts = np.column_stack([random.normal(size=500), *levels])
    tastes = random.normal(size=(N_ITEMS, 1 + n_levels))
    rewards = (contexts[:, : 1 + n_levels] * tastes[rows.items]).sum(axis=1)
    rows = rows._replace(contexts=contexts, rewards=rewards + 0.3 * random.normal(size=500))
    firsts = {1 + n: 1 + n - n % n_levels for n in range(3 * n_levels) if n % n_levels}
    context = row_features(HalfSeenRows(contexts).empty_model(), np.ones(19), ["filled"], firsts)
    features = Features(side(rows.arms), context, n_items=N_ITEMS)
    logs = model_of(rows, features).scales.logs
    useful, useless = ("", " 1"), (" 7", " 13")
    assert min(logs["item-filled" + each] for each in useful) > 0.5
    assert max(logs["item-filled" + each] for each in useless) < -1.0


def test_a_group_that_moves_nothing_is_left_out_of_a_round():
    random = np.random.default_rng(0)
    arms = random.normal(size=(40_000, 2)) @ random.normal(size=(2, DIM))
    arms += 0.1 * random.normal(size=arms.shape)
    arms[random.random(arms.shape) < 0.4] = np.nan
    rows = world(40_000)._replace(arms=arms)
    features = features_of(rows.select(slice(0, 500)))
    latent = features.arm.design(arms)[:, features.arm.columns["latent"]]
    rewards = latent @ np.resize([5.0, 3.0], latent.shape[1]) + random.normal(size=40_000)
    model = model_of(rows._replace(rewards=rewards), features)
    assert math.exp(model.scales.logs["mask"]) < NEGLIGIBLE
    assert not np.isin(features.blocks["mask"], model.columns).any()
    assert np.isin(features.blocks["latent"], model.columns).all()


@pytest.mark.parametrize("kind", ["return", "features"])
def test_thompson_draws_have_the_posterior_deviation(kind):
    rows = world(60, kind=kind)
    model = model_of(rows)
    slate = Slate(rows.arms[:4], items=None if kind == "return" else rows.items[:4])
    arms = model.candidates(slate, rows.contexts[:1])
    widths = model.score(arms, 1.0, 1.0)[2]
    draws = [model.draw(arms, np.random.default_rng(seed)) for seed in range(4000)]
    # The standard error of a deviation from 4000 draws is 1.1 %.
    np.testing.assert_allclose(np.std(draws, axis=0), widths, rtol=0.06)


def test_copies_of_an_item_get_the_same_draw_wherever_they_stand():
    rows = world(60, kind="return")
    model = model_of(rows)
    table = np.vstack([rows.arms[:4], rows.arms[:1]])

    def draws(table):
        arms = model.candidates(Slate(table), rows.contexts[:1])
        return model.draw(arms, np.random.default_rng(0))

    assert draws(table)[0] == draws(table)[4]
    np.testing.assert_array_equal(draws(table[::-1].copy())[::-1], draws(table))


def test_the_number_of_items_is_bounded(monkeypatch):
    monkeypatch.setattr("halfseen.latent.items.MOST_ITEMS", 5)
    rows = world(60, kind="return")
    model = model_of(rows)
    keys, counts = np.unique(rows.keys, return_counts=True)
    kept, _ = model.items.sorted()
    assert sorted(counts[np.isin(keys, kept)]) == sorted(counts)[-5:]
    model = learned(model, world(3, seed=9))
    assert len(model.items) == 5


def test_an_update_leaves_the_model_as_it_was():
    rows = world(60, kind="features")
    model, new = model_of(rows), world(9, seed=3, kind="features")
    before = scores(model, new, 1.0, 1.0)
    for row in range(len(new.rounds)):  # every update starts from the same model
        learned(model, new.select(slice(row, row + 1)))
    np.testing.assert_array_equal(scores(model, new, 1.0, 1.0), before)


def test_features_by_hand():
    table = np.array([[1.0, 3.0], [3.0, 5.0], [2.0, np.nan]])
    model = HalfSeenRows(table).empty_model()
    arm = row_features(model, np.array([1.0, 2 / 3]), ["filled", "mask"])
    scales = Scales({"filled": 0.0, "mask": math.log(2)}, 1.0)
    features = Features(arm, NO_CONTEXT, n_items=0)
    model = RewardModel.prior(features, scales)
    deviation = math.sqrt(2 / 3)
    np.testing.assert_allclose(
        model.design(table, np.empty((1, 0)))[0],
        [
            [INTERCEPT, -1 / deviation / math.sqrt(2), -1 / math.sqrt(2), 0, math.sqrt(2)],
            [INTERCEPT, 1 / deviation / math.sqrt(2), 1 / math.sqrt(2), 0, math.sqrt(2)],
            [INTERCEPT, 0, 0, 0, -2 * math.sqrt(2)],
        ],
        atol=1e-12,
    )
