"""Floors do the work they claim to do."""

import numpy as np
import pytest

from benchmarks import floors
from benchmarks.rotation import Size, rotation_of
from benchmarks.rounds import Floor, play_round, tofu_in_epoch


@pytest.mark.parametrize("size", [Size(30, 3, 8), Size(200, 20, 4), Size(50, 5, 3)], ids=str)
def test_the_floor_of_a_round_solves_all_systems_of_the_slate(size):
    rotation = rotation_of(size, 1e5)
    floor, table = Floor(rotation), rotation.tables[1]
    floor.solve(table, floor.given, floors.IMPUTE_RIDGE, floor.scratch, floor.latent)
    for arm, latent in zip(table, floor.latent.T, strict=True):
        rows = rotation.basis[~np.isnan(arm)]
        gram = rows.T @ rows + floors.IMPUTE_RIDGE * np.eye(size.rank)
        exact = np.linalg.solve(gram, rows.T @ arm[~np.isnan(arm)])
        np.testing.assert_allclose(latent, exact, rtol=1e-6, atol=1e-8)


def test_the_floor_of_an_update_adds_an_outer_product():
    matrix, point = np.eye(3), np.array([1.0, 2.0, 0.0])
    floors.add_outer(matrix, point, 2.0)
    np.testing.assert_allclose(matrix, np.eye(3) + 2.0 * np.outer(point, point))


def test_slates_rotate_beyond_the_wanted_size_and_start_again():
    rotation = rotation_of(Size(30, 3, 8), 1e6)
    assert 0.9e6 < rotation.tables.nbytes <= 1e6
    assert abs(np.isnan(rotation.tables).mean() - 0.7) < 0.01
    slates = rotation.endless()
    for _ in range(len(rotation.tables)):
        next(slates)
    np.testing.assert_array_equal(next(slates)[0], rotation.tables[0])


def test_measured_rounds_stay_inside_one_epoch():
    rotation = rotation_of(Size(30, 3, 8), 1e5)
    slates = rotation.endless()
    policy = tofu_in_epoch(rotation.size, slates)
    for _ in range(2000):
        play_round(policy, slates)
    assert len(policy.epoch_log) == 1
