"""Latent coordinates: those of a dense solve, or of a Gaussian given what is seen of it."""

import numpy as np
import pytest

from halfseen.linear.lift import SMALLEST_IMPUTE_RIDGE, Lift

# Ranks from 10 on go through another loop.
RANKS = [1, 2, 3, 7, 9, 10, 15, 16, 17, 24]


def orthonormal(rng, dim, rank):
    return np.linalg.qr(rng.normal(size=(dim, rank)))[0]


def prior(rng, dim, rank):
    """Return a basis, variances along it and a variance of the noise."""
    return orthonormal(rng, dim, rank), rng.uniform(0.1, 3.0, rank), float(rng.uniform(0.05, 1.0))


def masked(rng, arms, show=0.5):
    return np.where(rng.random(arms.shape) < show, arms, np.nan)


def dense_posterior(basis, variances, noise, arm):
    """Return the mean of z given the seen entries of x = Uz + noise, by conditioning."""
    seen = ~np.isnan(arm)
    rows, spread = basis[seen], np.diag(variances)
    gain = spread @ rows.T @ np.linalg.inv(rows @ spread @ rows.T + noise * np.eye(len(rows)))
    return gain @ arm[seen]


def dense_coordinates(lift, arm):
    """Return scales·a with (W_Ω'W_Ω + ρI)a = W_Ω'x_Ω."""
    seen = ~np.isnan(arm)
    rows = lift.columns.T[seen]
    gram = rows.T @ rows + lift.ridge * np.eye(lift.rank)
    return lift.scales * np.linalg.solve(gram, rows.T @ arm[seen])


ALL_RANKS = [*range(1, 13), 20]


@pytest.mark.parametrize("n_arms", [1, 7, 255, 256, 257, 600])
@pytest.mark.parametrize("ridge", [0.0, 1e-5, 0.3])
@pytest.mark.parametrize("rank", ALL_RANKS)
def test_coordinates_are_those_of_a_dense_solve(rank, ridge, n_arms):
    """For 600 arms there are three chunks of lanes."""
    rng = np.random.default_rng(rank)
    lift = Lift(orthonormal(rng, 45, rank), ridge, rng.uniform(0.5, 2.0, rank))
    table = masked(rng, rng.normal(size=(n_arms, 45)), show=0.8)
    points = lift.coordinates(table)
    assert points.shape == (n_arms, rank)
    expected = np.array([dense_coordinates(lift, arm) for arm in table])
    np.testing.assert_allclose(points, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("ridge", [0.0, 1e-5])
@pytest.mark.parametrize("rank", ALL_RANKS)
def test_an_arms_coordinates_do_not_depend_on_its_neighbours_bit_by_bit(rank, ridge):
    """Alone, in a slate, in any part of one, and beside arms that are not identified."""
    rng = np.random.default_rng(rank)
    lift = Lift.least_squares(orthonormal(rng, 45, rank), ridge)
    table = masked(rng, rng.normal(size=(600, 45)), show=0.8)
    together = lift.coordinates(table)
    for arm in (0, 1, 2, 3, 7, 254, 255, 256, 257, 511, 512, 513, 598, 599):
        alone = lift.coordinates(table[arm : arm + 1])
        assert alone.tobytes() == together[arm : arm + 1].tobytes()
    for first, stop in ((1, 600), (3, 262), (250, 507), (590, 600)):
        assert lift.coordinates(table[first:stop]).tobytes() == together[first:stop].tobytes()
    beside = table.copy()
    beside[::2] = np.nan
    assert lift.coordinates(beside)[1::2].tobytes() == together[1::2].tobytes()


@pytest.mark.parametrize("rank", ALL_RANKS)
def test_without_a_ridge_arms_that_are_not_identified_are_nan_in_any_lane(rank):
    rng = np.random.default_rng(rank)
    lift = Lift.least_squares(orthonormal(rng, 45, rank), 0.0)
    table = masked(rng, rng.normal(size=(600, 45)), show=0.8)
    expected = lift.coordinates(table)
    bad = np.zeros(600, dtype=bool)
    bad[[0, 1, 5, 255, 256, 300, 511, 512, 513, 599]] = True
    for n_seen, arm in enumerate(np.flatnonzero(bad)):
        table[arm, n_seen % rank :] = np.nan  # shows fewer entries than there are coordinates
    points = lift.coordinates(table)
    assert np.isnan(points[bad]).all()
    assert points[~bad].tobytes() == expected[~bad].tobytes()


@pytest.mark.parametrize("rank", ALL_RANKS)
def test_with_a_ridge_every_arm_is_identified(rank):
    rng = np.random.default_rng(rank)
    lift = Lift.least_squares(orthonormal(rng, 45, rank), 1e-5)
    table = masked(rng, rng.normal(size=(300, 45)), show=0.1)
    table[7] = np.nan
    points = lift.coordinates(table)
    assert np.isfinite(points).all()
    assert not points[7].any()


def test_no_arms_have_no_coordinates():
    for rank in (3, 12):
        lift = Lift.least_squares(orthonormal(np.random.default_rng(0), 20, rank), 0.0)
        assert lift.coordinates(np.empty((0, 20))).shape == (0, rank)


@pytest.mark.parametrize("rank", RANKS)
def test_posterior_means_are_those_of_dense_conditioning(rank):
    rng = np.random.default_rng(rank)
    basis, variances, noise = prior(rng, 26, rank)
    table = masked(rng, rng.normal(size=(12, 26)))
    latent = Lift.posterior_mean(basis, variances, noise).coordinates(table)
    expected = [dense_posterior(basis, variances, noise, row) for row in table]
    np.testing.assert_allclose(latent, expected, atol=1e-11)


def test_by_hand():
    """One entry 2 of two, U = (.6, .8)', Λ = 1, σ² = .64: mean .6·2/(.36 + .64)."""
    lift = Lift.posterior_mean(np.array([[0.6], [0.8]]), np.array([1.0]), 0.64)
    assert lift.coordinates(np.array([[2.0, np.nan]])).tolist() == [[pytest.approx(1.2)]]


@pytest.mark.parametrize("scale", [1e-90, 1e-3, 1e5, 1e90])
def test_coordinates_grow_with_the_arms(scale):
    rng = np.random.default_rng(4)
    basis, variances, noise = prior(rng, 9, 3)
    table = masked(rng, rng.normal(size=(6, 9)))
    plain = Lift.posterior_mean(basis, variances, noise)
    scaled = Lift.posterior_mean(basis, scale**2 * variances, scale**2 * noise)
    expected = scale * plain.coordinates(table)
    np.testing.assert_allclose(scaled.coordinates(scale * table), expected, rtol=1e-9)


def test_without_noise_inside_the_subspace_the_coordinates_are_exact():
    rng = np.random.default_rng(6)
    basis = orthonormal(rng, 12, 3)
    latents = rng.normal(size=(8, 3))
    table = latents @ basis.T
    table[:, 6:] = np.nan
    lift = Lift.posterior_mean(basis, np.ones(3), 0.0)
    assert lift.ridge == SMALLEST_IMPUTE_RIDGE
    np.testing.assert_allclose(lift.coordinates(table), latents, atol=1e-7)


def test_a_subspace_without_variance_gives_zeros():
    basis = orthonormal(np.random.default_rng(7), 5, 2)
    lift = Lift.posterior_mean(basis, np.zeros(2), 1e-6)
    assert not lift.coordinates(np.ones((3, 5))).any()
