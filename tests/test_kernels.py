"""Compiled loops that do several steps at once: the same as the steps, one after another."""

import math

import numpy as np
import pytest

from halfseen import _kernels
from halfseen.core.latent import Lift, coordinates
from halfseen.core.ridge import Ridge
from halfseen.values import LARGEST, Slate

NAN = math.nan
NARROW = [1, 2, 3, 5, 9]
WIDE = [10, 16]


def half_seen(seed, n_arms, dim, show=0.7):
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(n_arms, dim))
    table[rng.random((n_arms, dim)) > show] = NAN
    return table


def frozen(rank, dim=50):
    """Return a basis and a regression in its coordinates that has seen a few samples."""
    rng = np.random.default_rng(rank)
    model = Ridge(rank, ridge=0.5)
    model.insert(rng.normal(size=(2 * rank, rank)), rng.normal(size=2 * rank))
    return np.linalg.qr(rng.normal(size=(dim, rank)))[0], model


def play(table, lift, model, start=2, room=5):
    """Call the loop of a whole round; return its answer and all that it may write to."""
    parts, chosen = np.full((3, len(table)), -7.0), np.full(table.shape[1], -7.0)
    point = np.full(lift.rank, -7.0)
    block = np.full((len(table) + room, table.shape[1]), -7.0)
    answer = _kernels.play_table(
        table, LARGEST, lift.plan, model.root, 0.7, parts, chosen, point, block, start, 0.0
    )
    return answer, parts, chosen, point, block


def state(model):
    return model.n_samples, model.log_det, model.root.tobytes()


# -- a round ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", NARROW)
@pytest.mark.parametrize("ridge", [0.0, 1e-5])
@pytest.mark.parametrize("n_arms", [1, 6, 255, 256, 257, 600])
def test_scoring_arms_is_scoring_their_coordinates_bit_by_bit(rank, ridge, n_arms):
    (basis, model), table = frozen(rank), half_seen(0, n_arms, 50)
    best, parts, _, point, _ = play(table, Lift.least_squares(basis, ridge), model)
    latent = coordinates(basis, Slate(table), ridge)
    expected_best, expected = model.score(latent, 0.7)
    assert parts.tobytes() == expected.tobytes()
    assert best == expected_best
    assert point.tobytes() == latent[best].tobytes()


@pytest.mark.parametrize(("bad", "first"), [([2, 4], 2), ([300, 299], 299), ([256], 256), ([0], 0)])
def test_scoring_names_the_first_arm_that_is_not_identified(bad, first):
    (basis, model), table = frozen(3), half_seen(0, 301, 50)
    table[bad, 1:] = NAN
    assert play(table, Lift.least_squares(basis, 0.0), model)[0] == -1 - first


def test_a_round_in_one_call_scores_chooses_and_waits_in_the_block():
    (basis, model), table = frozen(3), half_seen(0, 6, 50)
    before, untouched = table.tobytes(), state(model)
    best, parts, chosen, point, block = play(table, Lift.least_squares(basis, 1e-5), model)
    latent = coordinates(basis, Slate(table), 1e-5)
    expected_best, expected = model.score(latent, 0.7)
    assert best == expected_best
    np.testing.assert_allclose(parts, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(chosen, table[best])
    np.testing.assert_array_equal(point, latent[best])
    np.testing.assert_array_equal(block[2:8], Slate(table).values)
    assert (block[:2] == -7.0).all()
    assert (block[8:] == -7.0).all()
    assert table.tobytes() == before
    assert state(model) == untouched


@pytest.mark.parametrize("start", [0, 5])
def test_a_table_that_just_fits_is_played_and_one_more_arm_is_not(start):
    (basis, model), table = frozen(3), half_seen(0, 6, 50)
    lift = Lift.least_squares(basis, 1e-5)
    assert play(table, lift, model, start, room=start)[0] >= 0
    answer, parts, chosen, point, block = play(table, lift, model, start + 1, room=start)
    assert answer == -1 - len(table)
    for untouched in (parts, chosen, point, block):
        assert (untouched == -7.0).all()


def test_a_table_of_another_width_is_not_played():
    (basis, model), table = frozen(3), half_seen(0, 6, 50)
    lift = Lift.least_squares(basis, 1e-5)
    parts, chosen, point = np.empty((3, 6)), np.empty(49), np.empty(3)
    block = np.full((20, 50), -7.0)
    narrower = np.ascontiguousarray(table[:, :49])
    answer = _kernels.play_table(
        narrower, LARGEST, lift.plan, model.root, 0.7, parts, chosen, point, block, 0, 0.0
    )
    assert answer < 0
    assert (block == -7.0).all()


@pytest.mark.parametrize("wild", [math.inf, -math.inf, 1e300, math.nextafter(LARGEST, math.inf)])
@pytest.mark.parametrize(("n_arms", "arm"), [(6, 4), (600, 599), (600, 0)])
def test_a_wild_entry_stops_a_round_before_it_is_chosen_or_waits(wild, n_arms, arm):
    (basis, model), table = frozen(3), half_seen(0, n_arms, 50)
    table[arm, 7] = wild
    untouched = state(model)
    answer, _, chosen, _, block = play(table, Lift.least_squares(basis, 1e-5), model)
    assert answer == -1 - n_arms
    assert (chosen == -7.0).all()
    assert (block == -7.0).all()
    assert state(model) == untouched


@pytest.mark.parametrize(("n_arms", "arm"), [(6, 4), (600, 599), (600, 300)])
def test_an_arm_that_is_not_identified_stops_a_round_before_it_is_chosen_or_waits(n_arms, arm):
    (basis, model), table = frozen(3), half_seen(0, n_arms, 50)
    table[arm] = NAN
    answer, _, chosen, _, block = play(table, Lift.least_squares(basis, 0.0), model)
    assert answer == -1 - arm
    assert (chosen == -7.0).all()
    assert (block == -7.0).all()


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("rank", NARROW)
def test_entries_of_the_largest_allowed_size_are_played(sign, rank):
    (basis, model), table = frozen(rank), half_seen(0, 6, 50)
    table[4, 7] = sign * LARGEST
    answer, parts, _, point, _ = play(table, Lift.least_squares(basis, 1e-5), model)
    assert answer >= 0
    assert np.isfinite(parts).all()
    assert np.isfinite(point).all()


@pytest.mark.parametrize("n_arms", [2, 256, 257, 600])
def test_of_equal_arms_the_first_is_chosen_in_any_lane(n_arms):
    (basis, model), arm = frozen(3), half_seen(0, 1, 50)
    lift = Lift.least_squares(basis, 1e-5)
    assert play(np.tile(arm, (n_arms, 1)), lift, model)[0] == 0


# -- learning --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", NARROW + WIDE)
def test_learning_an_arm_is_an_update_with_its_coordinates(rank):
    (basis, model), table = frozen(rank), half_seen(0, 1, 50)
    (_, expected) = frozen(rank)
    expected.update(coordinates(basis, Slate(table), 1e-5)[0], 2.5)
    assert model.learn_arm(Lift.least_squares(basis, 1e-5), table[0], 2.5)
    assert state(model) == state(expected)


@pytest.mark.parametrize("rank", [3, 16])
@pytest.mark.parametrize("n_seen", [0, 1, 2])
def test_learning_an_arm_that_is_not_identified_changes_nothing(rank, n_seen):
    basis, model = frozen(rank)
    before, arm = state(model), np.full(50, NAN)
    arm[:n_seen] = 1.0
    assert not model.learn_arm(Lift.least_squares(basis, 0.0), arm, 2.5)
    assert state(model) == before


@pytest.mark.parametrize("rank", NARROW + WIDE)
@pytest.mark.parametrize("place", [-1, 0, 2])
def test_learning_a_point_is_an_update_and_keeps_its_arm(rank, place):
    (_, model), (_, expected) = frozen(rank), frozen(rank)
    rng = np.random.default_rng(0)
    point, arm, arms = rng.normal(size=rank), half_seen(1, 1, 7)[0], np.full((3, 7), -7.0)
    model.log_det += _kernels.learn_point(model.root, point, 2.5, arm, arms, place)
    model.n_samples += 1
    expected.update(point, 2.5)
    assert state(model) == state(expected)
    kept = np.full((3, 7), -7.0)
    if place >= 0:
        kept[place] = arm
    assert arms.tobytes() == kept.tobytes()


# -- the root --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [1, 2, 5, 40])
def test_what_is_packed_is_unpacked_bit_by_bit_and_nothing_else_is_written(dim):
    rng = np.random.default_rng(dim)
    factor, white = rng.normal(size=(dim, dim)), rng.normal(size=dim)
    root = np.full(dim * (dim + 3) // 2, NAN)
    _kernels.pack(factor, white, root)
    assert not np.isnan(root).any()
    again, too = np.full((dim, dim), -7.0), np.full(dim, NAN)
    _kernels.unpack(root, again, too)
    below = np.tri(dim, k=-1, dtype=bool)
    assert again.tobytes() == np.where(below, -7.0, factor).tobytes()
    assert too.tobytes() == white.tobytes()
    repacked = np.full_like(root, NAN)
    _kernels.pack(again, too, repacked)
    assert repacked.tobytes() == root.tobytes()


@pytest.mark.parametrize("dim", [1, 2, 3, 10, 11])
@pytest.mark.parametrize("n_points", range(1, 10))
@pytest.mark.parametrize("zeros", ["none", "some", "all"])
def test_measuring_with_a_sample_is_updating_and_then_measuring(dim, n_points, zeros):
    rng = np.random.default_rng(n_points)
    _, model = frozen(dim, dim)
    points, sample = rng.normal(size=(n_points, dim)), rng.normal(size=dim + 1)
    points[rng.random(points.shape) < 0.2] = NAN
    if zeros != "none":
        sample[:dim] *= 0.0 if zeros == "all" else rng.random(dim) < 0.5
    together, apart = model.root.copy(), model.root.copy()
    parts, expected = np.full((3, n_points), -7.0), np.full((3, n_points), -7.0)
    growth = _kernels.update(apart, sample[:dim].copy(), sample[dim], apart[:0])
    assert _kernels.measure(apart, apart[:0], points, expected) == 0.0
    assert _kernels.measure(together, sample.copy(), points, parts) == growth
    assert together.tobytes() == apart.tobytes()
    assert parts.tobytes() == expected.tobytes()


def test_measuring_without_a_sample_leaves_the_root_alone():
    _, model = frozen(5)
    before = model.root.tobytes()
    _kernels.measure(model.root, model.root[:0], half_seen(0, 9, 5), np.empty((3, 9)))
    assert model.root.tobytes() == before


@pytest.mark.parametrize("dim", [1, 4, 7])
def test_inserting_is_updating_one_by_one_bit_by_bit(dim):
    rng = np.random.default_rng(dim)
    points, rewards = rng.normal(size=(30, dim)), rng.normal(size=30)
    points[rng.random(points.shape) < 0.3] = NAN
    _, model = frozen(dim, dim)
    at_once, one_by_one = model.root.copy(), model.root.copy()
    growth = _kernels.insert(at_once, points, rewards)
    grown = 0.0
    for point, reward in zip(points, rewards, strict=True):
        grown += _kernels.update(one_by_one, point, reward, one_by_one[:0])
    assert at_once.tobytes() == one_by_one.tobytes()
    assert growth == grown


@pytest.mark.parametrize("radius", [0.0, 0.7])
def test_the_best_is_the_first_of_the_largest_scores(radius):
    rng = np.random.default_rng(0)
    for n_points in (1, 2, 7, 100):
        parts = np.stack([np.full(n_points, NAN), rng.normal(size=n_points), rng.random(n_points)])
        estimates, squares = parts[1].copy(), parts[2].copy()
        best = _kernels.best(parts, radius)
        assert best == parts[0].argmax()
        assert parts[1].tobytes() == estimates.tobytes()
        np.testing.assert_allclose(parts[2], radius * np.sqrt(squares), rtol=1e-15)
        np.testing.assert_array_equal(parts[0], parts[1] + parts[2])
    assert _kernels.best(np.zeros((3, 5)), radius) == 0
