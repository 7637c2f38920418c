"""Latent coordinates: those of a dense solve, or of a Gaussian given what is seen of it."""

import numpy as np
import pytest

from halfseen.linear.lift import SMALLEST_IMPUTE_RIDGE, Lift

RANKS = [1, 2, 3, 8, 20]


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


@pytest.mark.parametrize("rank", RANKS)
def test_an_arms_coordinates_do_not_depend_on_its_neighbours_bit_by_bit(rank):
    """Alone, and beside arms that are not identified."""
    rng = np.random.default_rng(rank)
    lift = Lift.least_squares(orthonormal(rng, 45, rank), 0.0)
    table = masked(rng, rng.normal(size=(60, 45)), show=0.8)
    together = lift.coordinates(table)
    for arm in range(0, 60, 7):
        alone = lift.coordinates(table[arm : arm + 1])
        assert alone.tobytes() == together[arm : arm + 1].tobytes()
    table[::2] = np.nan
    assert lift.coordinates(table)[1::2].tobytes() == together[1::2].tobytes()


@pytest.mark.parametrize("rank", RANKS)
def test_rounding_never_identifies_an_arm_that_shows_fewer_entries_than_the_rank(rank):
    rng = np.random.default_rng(0)
    table = rng.normal(size=(4000, 40))
    for row in table:
        row[rng.permutation(40)[rank - 1 :]] = np.nan
    latent = Lift.least_squares(orthonormal(rng, 40, rank), 0.0).coordinates(table)
    assert np.isnan(latent).all()


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
