"""Latent coordinates and imputed arms: exact inside the subspace, honest where they cannot be."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from halfseen.errors import Unidentifiable
from halfseen.tofu.imputation import coordinates, fill
from halfseen.values import LARGEST, Slate

NAN = math.nan
RANKS = [1, 2, 3, 8, 24]
RIDGES = [0.0, 1e-6, 1e-5, 0.1, 1.0, 30.0]

seeds = st.integers(0, 2**32 - 1)


def orthonormal(rng, dim, rank):
    return np.linalg.qr(rng.normal(size=(dim, rank)))[0]


def half_seen(rng, n_arms, dim, show=0.7):
    """Return arms with NaN where hidden, not in any subspace."""
    values = rng.normal(size=(n_arms, dim))
    values[rng.random((n_arms, dim)) > show] = NAN
    return Slate(values)


# -- the identity U'x̂ = (1 + ρ)a -------------------------------------------------------------------


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("ridge", RIDGES)
def test_hidden_entries_are_filled_by_the_ridge_solution_of_the_seen_ones(rank, ridge):
    rng = np.random.default_rng(rank + 100)
    basis, slate = orthonormal(rng, 90, rank), half_seen(rng, 6, 90)
    filled, latent = fill(basis, slate, ridge), coordinates(basis, slate, ridge)
    np.testing.assert_allclose(latent, filled @ basis, atol=1e-10)
    for arm in range(6):
        seen = slate.mask[arm]
        rows = basis[seen]
        solution = np.linalg.solve(
            rows.T @ rows + ridge * np.eye(rank), rows.T @ slate.values[arm, seen]
        )
        np.testing.assert_allclose(latent[arm], (1.0 + ridge) * solution, atol=1e-10)
        np.testing.assert_allclose(filled[arm, ~seen], basis[~seen] @ solution, atol=1e-10)


def test_a_hidden_entry_by_hand():
    basis = np.array([[0.6], [0.8]])
    slate = Slate([[3.0, NAN], [NAN, 8.0]])
    np.testing.assert_allclose(coordinates(basis, slate), [[5.0], [10.0]], rtol=1e-15)
    np.testing.assert_allclose(fill(basis, slate), [[3.0, 4.0], [6.0, 8.0]], rtol=1e-15)
    # ρ = .64: a = .6·3/(.36 + .64) = 1.8, so U'x̂ = 1.64·1.8 and the hidden entry is .8·1.8.
    first = Slate([[3.0, NAN]])
    np.testing.assert_allclose(coordinates(basis, first, 0.64), [[2.952]], rtol=1e-15)
    np.testing.assert_allclose(fill(basis, first, 0.64), [[3.0, 1.44]], rtol=1e-15)


# -- properties ------------------------------------------------------------------------------------


@given(st.integers(1, 24), seeds, st.data())
def test_arms_inside_the_subspace_are_recovered(dim, seed, data):
    rank = data.draw(st.integers(1, dim))
    n_seen = data.draw(st.integers(rank, dim))
    rng = np.random.default_rng(seed)
    basis, truth = orthonormal(rng, dim, rank), rng.normal(size=(3, rank))
    mask = np.zeros((3, dim), dtype=bool)
    for row in mask:
        row[rng.permutation(dim)[:n_seen]] = True
        assume(np.linalg.svd(basis[row], compute_uv=False)[-1] > 0.05)
    slate = Slate(truth @ basis.T, mask)
    # The normal equations lose the square of the condition, here at most 400.
    np.testing.assert_allclose(coordinates(basis, slate), truth, atol=1e-10)
    np.testing.assert_allclose(fill(basis, slate), truth @ basis.T, atol=1e-10)


@given(st.integers(1, 24), seeds, st.sampled_from(RIDGES[1:]), st.data())
def test_filled_arms_do_not_change_when_the_basis_is_turned(dim, seed, ridge, data):
    rank = data.draw(st.integers(1, dim))
    rng = np.random.default_rng(seed)
    basis, turn = orthonormal(rng, dim, rank), orthonormal(rng, rank, rank)
    slate = half_seen(rng, 4, dim, show=0.9)
    atol = max(1e-11, 1e-12 / ridge)  # 1/ρ is the largest condition of a system
    turned = fill(basis @ turn, slate, ridge)
    np.testing.assert_allclose(turned, fill(basis, slate, ridge), atol=atol)
    latent = coordinates(basis @ turn, slate, ridge)
    np.testing.assert_allclose(latent, coordinates(basis, slate, ridge) @ turn, atol=10 * atol)


@given(seeds, st.sampled_from(RIDGES[1:]))
def test_seen_entries_of_filled_arms_are_kept_bit_by_bit(seed, ridge):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(4, 8)) * 10.0 ** rng.integers(-90, 90, (4, 8))
    values[rng.random((4, 8)) < 0.2] = -0.0
    values[rng.random((4, 8)) < 0.1] = LARGEST
    mask = rng.random((4, 8)) < 0.6
    filled = fill(orthonormal(rng, 8, 3), Slate(values, mask), ridge)
    assert filled[mask].tobytes() == values[mask].tobytes()
    assert np.isfinite(filled).all()


def test_rank_zero_has_no_coordinates_and_fills_zeros():
    slate, nothing = Slate([[1.0, NAN], [NAN, NAN]]), np.empty((2, 0))
    assert coordinates(nothing, slate).shape == (2, 0)
    assert fill(nothing, slate).tolist() == [[1.0, 0.0], [0.0, 0.0]]


# -- not identified --------------------------------------------------------------------------------


def with_dependent_rows(rng, dim, rank):
    """Return an orthonormal basis whose first `rank` rows span one dimension less."""
    rows = rng.normal(size=(dim, rank))
    rows[rank - 1] = rows[: rank - 1].sum(axis=0)
    return np.linalg.qr(rows)[0]


@pytest.mark.parametrize("rank", [2, 3, 8, 20])
def test_enough_seen_entries_with_dependent_rows_do_not_identify_an_arm(rank):
    """The first such arm is named."""
    rng = np.random.default_rng(rank)
    basis = with_dependent_rows(rng, 40, rank)
    values = rng.normal(size=(3, 40))
    values[1, rank:], values[2] = NAN, NAN
    with pytest.raises(Unidentifiable, match=f"arm 1 shows {rank} entries"):
        coordinates(basis, Slate(values))


@pytest.mark.parametrize("ridge", [1e-6, 1e-8, 1e-10])
@pytest.mark.parametrize("rank", [2, 16])
def test_a_tiny_ridge_is_a_ridge(ridge, rank):
    # Each coordinate is one entry of the arm; the ridge says zero where that is hidden.
    slate = Slate(np.r_[3.0, np.full(19, NAN)][None, :])
    latent = coordinates(np.eye(20)[:, :rank], slate, ridge)
    np.testing.assert_allclose(latent, np.r_[3.0, np.zeros(rank - 1)][None, :], rtol=1e-12)
