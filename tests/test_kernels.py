"""Compiled loops that do several steps at once: the same as the steps, one after another."""

import math

import numpy as np
import pytest

from halfseen import _kernels
from halfseen.core.latent import Lift, coordinates
from halfseen.core.ridge import Ridge
from halfseen.values import LARGEST, Slate

NAN = math.nan


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


def play(table, basis, ridge, model, start=2):
    """Call the loop of a whole round; return its answer and all that it may write to."""
    parts, chosen = np.full((3, len(table)), -7.0), np.full(table.shape[1], -7.0)
    block = np.full((len(table) + 5, table.shape[1]), -7.0)
    answer = _kernels.play_table(
        table, LARGEST, basis, ridge, np.full(basis.shape[1], 1.0 + ridge),
        model.factor, model.white, 0.7, parts, chosen, block, start, 0.0,
    )  # fmt: skip
    return answer, parts, chosen, block


@pytest.mark.parametrize("rank", [1, 3, 16])
@pytest.mark.parametrize("ridge", [0.0, 1e-5])
def test_scoring_arms_is_scoring_their_coordinates(rank, ridge):
    (basis, model), table = frozen(rank), half_seen(0, 6, 50)
    best, parts, _, _ = play(table, basis, ridge, model)
    expected_best, expected = model.score(coordinates(basis, Slate(table), ridge), 0.7)
    np.testing.assert_allclose(parts, expected, rtol=1e-10, atol=1e-12)
    assert best == expected_best


def test_scoring_names_the_first_arm_that_is_not_identified():
    (basis, model), table = frozen(3), half_seen(0, 6, 50)
    table[[2, 4], 1:] = NAN
    assert play(table, basis, 0.0, model)[0] == -3


@pytest.mark.parametrize("rank", [1, 3, 16])
def test_learning_an_arm_is_an_update_with_its_coordinates(rank):
    (basis, model), table = frozen(rank), half_seen(0, 1, 50)
    (_, expected) = frozen(rank)
    expected.update(coordinates(basis, Slate(table), 1e-5)[0], 2.5)
    assert model.learn_arm(Lift.least_squares(basis, 1e-5), table[0], 2.5)
    assert model.log_det == expected.log_det
    for name, array in expected.state().items():
        np.testing.assert_array_equal(model.state()[name], array)


def test_learning_an_arm_that_is_not_identified_changes_nothing():
    basis, model = frozen(3)
    before = {name: np.copy(value) for name, value in model.state().items()}
    growth = _kernels.learn_arm(
        basis, np.full(50, NAN), 0.0, np.ones(3),
        model._gram, model.response, model.factor, model.white, 2.5,
    )  # fmt: skip
    assert growth < 0.0
    for name, array in before.items():
        np.testing.assert_array_equal(model.state()[name], array)


def test_a_round_in_one_call_scores_chooses_and_waits_in_the_block():
    (basis, model), table = frozen(3), half_seen(0, 6, 50)
    before = table.tobytes()
    best, parts, chosen, block = play(table, basis, 1e-5, model)
    expected_best, expected = model.score(coordinates(basis, Slate(table), 1e-5), 0.7)
    assert best == expected_best
    np.testing.assert_allclose(parts, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(chosen, table[best])
    np.testing.assert_array_equal(block[2:8], Slate(table).values)
    assert (block[:2] == -7.0).all()
    assert (block[8:] == -7.0).all()
    assert table.tobytes() == before


@pytest.mark.parametrize("wild", [math.inf, -math.inf, 1e300, math.nextafter(LARGEST, math.inf)])
def test_a_wild_entry_stops_a_round_before_anything_is_written(wild):
    (basis, model), table = frozen(3), half_seen(0, 6, 50)
    table[4, 7] = wild
    answer, parts, chosen, block = play(table, basis, 1e-5, model)
    assert answer < 0
    for untouched in (parts, chosen, block):
        assert (untouched == -7.0).all()


def test_an_arm_that_is_not_identified_stops_a_round_before_it_is_chosen_or_waits():
    (basis, model), table = frozen(3), half_seen(0, 6, 50)
    table[4] = NAN
    answer, _, chosen, block = play(table, basis, 0.0, model)
    assert answer < 0
    assert (chosen == -7.0).all()
    assert (block == -7.0).all()


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_entries_of_the_largest_allowed_size_are_played(sign):
    (basis, model), table = frozen(3), half_seen(0, 6, 50)
    table[4, 7] = sign * LARGEST
    answer, parts, _, _ = play(table, basis, 1e-5, model)
    assert answer >= 0
    assert np.isfinite(parts).all()
