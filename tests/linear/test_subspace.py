"""From a covariance to a subspace: eigenpairs, distances, alignment, incoherence."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.linalg import ArpackNoConvergence

from halfseen.linear import eigen as subspace
from halfseen.linear.eigen import align, distance, eigenpairs_above, incoherence, top_eigenpairs

seeds = st.integers(0, 2**32 - 1)


def orthonormal(rng, dim, rank):
    return np.linalg.qr(rng.normal(size=(dim, rank)))[0]


def symmetric(spectrum, seed=0):
    """Return a matrix of the given spectrum in random directions, and the directions."""
    vectors = orthonormal(np.random.default_rng(seed), len(spectrum), len(spectrum))
    matrix = (vectors * spectrum) @ vectors.T
    return (matrix + matrix.T) / 2, vectors


def large_spectrum(dim=300):
    """Return a few leading eigenvalues over a bulk of both signs, some far below zero."""
    bulk = np.linspace(-8.0, 0.5, dim - 6)
    return np.r_[5.0, 4.0, 3.0, 2.0, 1.5, 1.0, bulk]


# -- top eigenpairs --------------------------------------------------------------------------------


@given(st.integers(1, 12), seeds, st.data())
def test_eigenpairs_solve_the_equation_orthonormal_and_descending(dim, seed, data):
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(dim, dim))
    matrix += matrix.T
    count = data.draw(st.integers(0, dim))
    before = matrix.tobytes()
    values, vectors = top_eigenpairs(matrix, count)
    assert matrix.tobytes() == before
    assert values.shape == (count,)
    assert vectors.shape == (dim, count)
    assert vectors.flags.c_contiguous
    np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix)[::-1][:count], atol=1e-12)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(count), atol=1e-12)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-11)


@pytest.mark.parametrize("dim", [4, 30, 300])
def test_the_largest_entry_of_every_eigenvector_is_positive(dim):
    matrix, _ = symmetric(np.linspace(-1.0, 2.0, dim), seed=dim)
    _, vectors = top_eigenpairs(matrix, 4)
    largest = np.abs(vectors).argmax(axis=0)
    assert (vectors[largest, range(4)] > 0.0).all()


@pytest.mark.parametrize("count", [1, 3, 6, 8])
def test_lapack_and_lanczos_agree_in_eigenvalues_and_subspace(count):
    matrix, vectors = symmetric(large_spectrum(), seed=3)
    lapack, lanczos = subspace._lapack(matrix, count), subspace._lanczos(matrix.dot, 300, count)
    np.testing.assert_allclose(lanczos[0], lapack[0], rtol=1e-10)
    np.testing.assert_allclose(np.abs((lanczos[1] * lapack[1]).sum(axis=0)), 1.0, atol=1e-10)
    assert distance(lanczos[1], lapack[1]) < 1e-8
    if count <= 6:
        assert distance(lanczos[1], vectors[:, :count]) < 1e-8


def test_lapack_helps_out_when_lanczos_does_not_converge(monkeypatch):
    def give_up(*_, **__):
        raise ArpackNoConvergence("no convergence", np.empty(0), np.empty((0, 0)))

    matrix, _ = symmetric(large_spectrum(), seed=3)
    expected = np.linalg.eigvalsh(matrix)[::-1]
    monkeypatch.setattr(subspace, "eigsh", give_up)
    np.testing.assert_allclose(top_eigenpairs(matrix, 3)[0], expected[:3], rtol=1e-10)


def test_entries_of_very_different_magnitudes_give_finite_eigenvectors():
    """LAPACK's selected eigenvectors of this matrix are NaN."""
    diagonal = [
        1.542967954842058e93, 3.452884077233856e25, 2.403412336787385e134, 1.2307990630072973e183,
        4.804303007661584e189, 1.5962403866878812e104, 1.1822057817030701e166,
        5.8898391474258535e138,
    ]  # fmt: skip
    matrix = np.diag(diagonal)
    matrix[1, 4] = matrix[4, 1] = 3.3964876669472674e31
    matrix[1, 7] = matrix[7, 1] = -3.1263357565695082e-46
    matrix[3, 7] = matrix[7, 3] = 3.237409226168414e144
    matrix[4, 5] = matrix[5, 4] = -1.7342220627825004e-09
    matrix[4, 6] = matrix[6, 4] = 9.789464675730337e48
    values, vectors = top_eigenpairs(matrix, 2)
    np.testing.assert_allclose(values, [diagonal[4], diagonal[3]], rtol=1e-6)
    np.testing.assert_allclose(vectors, np.eye(8)[:, [4, 3]], atol=1e-9)


@pytest.mark.parametrize("dim", [3, 30, 300])
def test_a_zero_matrix_has_zero_eigenvalues_and_an_orthonormal_basis(dim):
    values, vectors = top_eigenpairs(np.zeros((dim, dim)), 3)
    np.testing.assert_array_equal(values, np.zeros(3))
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(3), atol=1e-12)


@pytest.mark.parametrize("dim", [30, 300])
@pytest.mark.parametrize("n_equal", [5, 30])
def test_repeated_eigenvalues_give_the_same_bits_in_every_call(dim, n_equal):
    matrix = np.zeros((dim, dim))
    matrix[range(n_equal), range(n_equal)] = 1.0
    first, again = top_eigenpairs(matrix, 8), top_eigenpairs(matrix, 8)
    np.testing.assert_allclose(first[0], np.r_[np.ones(8)[:n_equal], np.zeros(8)][:8], atol=1e-12)
    assert first[1].tobytes() == again[1].tobytes()


# -- eigenpairs above a threshold ------------------------------------------------------------------


@given(st.integers(1, 40), seeds, st.floats(-3.0, 3.0), st.integers(0, 40), st.integers(1, 50))
def test_the_selection_is_that_of_the_whole_spectrum_and_shows_the_gap(
    dim, seed, threshold, floor, cap
):
    floor = min(floor, dim, cap)
    matrix, _ = symmetric(np.random.default_rng(seed).normal(size=dim), seed=seed)
    spectrum = np.linalg.eigvalsh(matrix)[::-1]
    values, basis = eigenpairs_above(matrix, threshold, floor=floor, cap=cap)
    count = basis.shape[1]
    assert count == min(max(int((spectrum >= threshold).sum()), floor), cap, dim)
    assert min(count + 1, dim) <= len(values) <= max(8, 2 * (count + 1))  # few others
    assert basis.flags.c_contiguous
    np.testing.assert_allclose(values, spectrum[: len(values)], atol=1e-12)
    np.testing.assert_allclose(matrix @ basis, basis * values[:count], atol=1e-12)


# -- distances -------------------------------------------------------------------------------------


def projection(basis):
    return basis @ basis.T


@given(st.integers(1, 10), seeds, st.data())
def test_distance_is_the_norm_of_the_difference_of_projections(dim, seed, data):
    rng = np.random.default_rng(seed)
    first = orthonormal(rng, dim, data.draw(st.integers(1, dim)))
    # Near and far: a perturbation of the first, by any amount.
    size = data.draw(st.sampled_from([1e-6, 1e-3, 0.1, 1.0, 100.0]))
    second = np.linalg.qr(first + size * rng.normal(size=first.shape))[0]
    dense = np.linalg.norm(projection(first) - projection(second), 2)
    assert distance(first, second) == pytest.approx(dense, rel=1e-9, abs=1e-13)
    assert distance(second, first) == pytest.approx(dense, rel=1e-9, abs=1e-13)


# -- alignment -------------------------------------------------------------------------------------


@given(st.integers(1, 10), seeds, st.data())
def test_alignment_is_orthogonal_and_within_root_two_of_the_distance(dim, seed, data):
    rng = np.random.default_rng(seed)
    basis = orthonormal(rng, dim, data.draw(st.integers(1, dim)))
    size = data.draw(st.sampled_from([1e-3, 0.1, 1.0, 100.0]))
    target = np.linalg.qr(basis + size * rng.normal(size=basis.shape))[0]
    turn = align(basis, target)
    np.testing.assert_allclose(turn.T @ turn, np.eye(basis.shape[1]), atol=1e-12)
    bound = math.sqrt(2.0) * distance(basis, target)
    assert np.linalg.norm(basis @ turn - target, 2) <= bound + 1e-12


# -- incoherence -----------------------------------------------------------------------------------


@given(st.integers(1, 12), seeds, st.data())
def test_incoherence_lies_between_one_and_its_largest_and_belongs_to_the_subspace(dim, seed, data):
    rng = np.random.default_rng(seed)
    rank = data.draw(st.integers(1, dim))
    basis = orthonormal(rng, dim, rank)
    value = incoherence(basis)
    assert 1.0 - 1e-12 <= value <= math.sqrt(dim / rank) + 1e-12
    assert incoherence(basis @ orthonormal(rng, rank, rank)) == pytest.approx(value, rel=1e-10)
