"""Linear functions over two ellipsoids: the same maximum as a general solver, and by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from halfseen.linear.ridge import Confidence, Ridge
from halfseen.paper.pslb import Ellipsoid, Projection, optimistic_parts

seeds = st.integers(0, 2**32 - 1)
ranks = st.integers(1, 10)


def from_shape(centre, shape, radius):
    """Return {θ : (θ − c)'A(θ − c) ≤ radius²} for a symmetric positive definite A."""
    whitener = np.linalg.cholesky(shape).T
    return Ellipsoid(centre, whitener, np.linalg.inv(whitener), radius)


def optimistic_values(points, first, second):
    """Return max ⟨x, θ⟩ over the θ in both ellipsoids, or None if there is no such θ."""
    parts = optimistic_parts(points, first, second)
    return None if parts is None else parts[0]


def random_shape(rng, rank, spread=1.0):
    """Return a positive definite matrix with axes of sizes around 1, in a random orientation."""
    turn = np.linalg.qr(rng.normal(size=(rank, rank)))[0]
    return turn @ np.diag(np.exp(rng.uniform(-spread, spread, rank))) @ turn.T


def ball(centre, radius):
    return from_shape(np.array(centre, float), np.eye(len(centre)), radius)


def pair_around(rng, rank, common, share):
    """Return two ellipsoids, each of which has `common` at `share` of its radius."""
    pair = []
    for _ in range(2):
        shape = random_shape(rng, rank)
        away = rng.normal(size=rank)
        away *= share / math.sqrt(away @ shape @ away)
        pair.append((common - away, shape, 1.0))
    scale = rng.uniform(0.5, 2.0)
    (a, A, _), (b, B, _) = pair
    return from_shape(a, A, 1.0), from_shape(b, B * scale**2, scale)


def solved(point, pair, start):
    """Return the maximum by sequential quadratic programming from a feasible start."""
    constraints = []
    for one in pair:
        shape = one.whitener.T @ one.whitener
        constraints.append(
            {
                "type": "ineq",
                "fun": lambda t, c=one, A=shape: c.radius**2 - (t - c.centre) @ A @ (t - c.centre),
                "jac": lambda t, c=one, A=shape: -2.0 * A @ (t - c.centre),
            }
        )
    answer = minimize(
        lambda t: -point @ t,
        start,
        jac=lambda t: -point,
        method="SLSQP",
        constraints=constraints,
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert max(-rule["fun"](answer.x) for rule in constraints) < 1e-7
    return point @ answer.x


# Against a general solver


@pytest.mark.parametrize("rank", range(1, 11))
@pytest.mark.parametrize("share", [0.0, 0.5, 0.9, 0.99], ids=lambda share: f"share {share}")
def test_generic_pairs_have_the_maximum_of_a_general_solver(rank, share):
    rng = np.random.default_rng(rank)
    for _ in range(4):
        common = rng.normal(size=rank)
        pair, points = pair_around(rng, rank, common, share), rng.normal(size=(3, rank))
        expected = [solved(point, pair, common) for point in points]
        np.testing.assert_allclose(optimistic_values(points, *pair), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("rank", range(1, 11))
def test_a_nested_ellipsoid_decides_alone(rank):
    rng = np.random.default_rng(rank)
    shape, centre = random_shape(rng, rank), rng.normal(size=rank)
    points = rng.normal(size=(6, rank))
    inner = from_shape(centre, shape, 0.7)
    outer = from_shape(centre + 1e-3, shape / 4.0, 1.0)
    widths = np.sqrt(np.einsum("ni,ij,nj->n", points, np.linalg.inv(shape), points))
    expected = points @ centre + 0.7 * widths
    for pair in ((inner, outer), (outer, inner), (inner, inner)):
        np.testing.assert_allclose(optimistic_values(points, *pair), expected, rtol=1e-12)


@pytest.mark.parametrize("rank", range(1, 11))
def test_ellipsoids_that_touch_have_one_point(rank):
    """The size of an intersection is the root of its depth, so 1e-16 becomes 1e-8."""
    rng = np.random.default_rng(rank)
    common = rng.normal(size=rank)
    outward = rng.normal(size=rank)
    pair = []
    for sign in (1.0, -1.0):
        shape = random_shape(rng, rank)
        step = np.linalg.solve(shape, sign * outward)
        pair.append(from_shape(common - step, shape, math.sqrt(step @ shape @ step)))
    points = rng.normal(size=(6, rank))
    np.testing.assert_allclose(optimistic_values(points, *pair), points @ common, atol=1e-5)


@pytest.mark.parametrize("rank", range(1, 11))
@pytest.mark.parametrize("gap", [1e-6, 1e-2, 3.0])
def test_ellipsoids_with_a_gap_do_not_intersect(rank, gap):
    rng = np.random.default_rng(rank)
    common, outward = rng.normal(size=rank), rng.normal(size=rank)
    pair = []
    for sign in (1.0, -1.0):
        shape = random_shape(rng, rank)
        step = np.linalg.solve(shape, sign * outward)
        size = math.sqrt(step @ shape @ step)
        pair.append(from_shape(common - (1.0 + gap) * step, shape, size))
    points = rng.normal(size=(2, rank))
    assert optimistic_values(points, *pair) is None
    assert optimistic_values(points, *pair[::-1]) is None


# By hand


def test_intervals_in_one_dimension():
    left, right = ball([0.0], 1.0), ball([1.5], 1.0)
    points = np.array([[2.0], [-1.0], [0.0]])
    np.testing.assert_allclose(optimistic_values(points, left, right), [2.0, -0.5, 0.0], atol=1e-12)


@pytest.mark.parametrize("distance", [0.1, 1.0, 1.9])
def test_two_discs_meet_in_a_lens(distance):
    left, right = ball([0.0, 0.0], 1.0), ball([distance, 0.0], 1.0)
    height = math.sqrt(1.0 - distance**2 / 4.0)
    points = np.array([[0.0, 1.0], [0.0, -3.0], [1.0, 0.0], [-1.0, 0.0]])
    expected = [height, 3.0 * height, 1.0, 1.0 - distance]
    np.testing.assert_allclose(optimistic_values(points, left, right), expected, atol=1e-12)


def test_a_disc_cut_by_a_far_disc_is_cut_as_by_a_plane():
    """Radius 1e8: the surface deviates from a plane by 1e-8 over the disc."""
    cut = ball([-1e8, 0.0], 1e8 + 0.6)
    points = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    expected = [0.6, 1.0, 1.4]
    np.testing.assert_allclose(
        optimistic_values(points, ball([0.0, 0.0], 1.0), cut), expected, atol=1e-7
    )


@pytest.mark.parametrize("order", [1, -1])
def test_radius_zero_is_a_point(order):
    points = np.array([[1.0, 2.0], [0.0, 0.0]])
    point, disc = ball([0.3, 0.4], 0.0), ball([0.0, 0.0], 0.5)
    assert optimistic_values(points, *(point, disc)[::order]).tolist() == pytest.approx([1.1, 0.0])
    assert optimistic_values(points, *(point, ball([1.0, 0.0], 0.5))[::order]) is None


def test_two_points_meet_if_they_are_the_same():
    points = np.array([[1.0, 2.0]])
    point = ball([0.3, 0.4], 0.0)
    assert optimistic_values(points, point, point).tolist() == pytest.approx([1.1])
    assert optimistic_values(points, point, ball([0.3, 0.5], 0.0)) is None


# Properties


@given(seeds, ranks)
def test_the_order_of_the_ellipsoids_does_not_matter(seed, rank):
    rng = np.random.default_rng(seed)
    pair, points = pair_around(rng, rank, np.zeros(rank), 0.8), rng.normal(size=(4, rank))
    values, swapped = optimistic_values(points, *pair), optimistic_values(points, *pair[::-1])
    np.testing.assert_allclose(values, swapped, rtol=1e-10, atol=1e-11)


@given(seeds, ranks)
def test_the_estimate_is_the_value_at_a_point_inside_both(seed, rank):
    rng = np.random.default_rng(seed)
    pair = pair_around(rng, rank, rng.normal(size=rank), 0.9)
    scores, estimates, widths = optimistic_parts(np.eye(rank), *pair)
    assert np.array_equal(scores, estimates + widths)
    assert (widths >= 0.0).all()
    for one in pair:
        assert one.contains(estimates[None, :]).all()


# Extremes


@pytest.mark.parametrize("exponent", [-100, -30, 0, 30, 100])
def test_axes_of_any_size_keep_values_right(exponent):
    """An ellipsoid flat in one direction: the value there is the smaller of both."""
    flat = from_shape(np.zeros(2), np.diag([1.0, 10.0**exponent]), 1.0)
    values = optimistic_values(np.eye(2), flat, ball([0.0, 0.0], 1.0))
    np.testing.assert_allclose(values, [1.0, min(1.0, 10.0 ** (-exponent / 2))], rtol=1e-9)


def test_ellipsoids_beyond_the_range_of_numbers_do_not_intersect():
    far = ball([1e200, 0.0], 1.0)
    assert optimistic_values(np.eye(2), ball([0.0, 0.0], 1e-150), far) is None
    assert optimistic_values(np.eye(2), far, ball([0.0, 0.0], 1e-150)) is None


# The regression inside of a subspace


@given(seeds, st.integers(1, 6), st.sampled_from([1e-8, 1.0, 100.0]))
def test_a_projected_model_is_the_regression_on_projected_samples(seed, rank, ridge):
    rng = np.random.default_rng(seed)
    samples, rewards = rng.normal(size=(20, 8)), rng.normal(size=20)
    basis = np.linalg.qr(rng.normal(size=(8, rank)))[0]
    model, direct = Ridge(8, ridge=ridge), Ridge(rank, ridge=ridge)
    model.insert(samples, rewards)
    direct.insert(samples @ basis, rewards)
    projection = Projection.of(model, np.ascontiguousarray(basis))
    precision, white = projection.inside.factor, projection.inside.white
    confidence = Confidence(ridge=ridge, theta_bound=1.0, noise_scale=0.5, failure_prob=0.05)
    sets = projection.sets(model, confidence)
    np.testing.assert_allclose(precision.T @ precision, direct.gram, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(precision.T @ white, direct.response, rtol=1e-10, atol=1e-10)
    inverse, root = np.linalg.inv(model.gram), sets.mapped.root
    np.testing.assert_allclose(root @ root.T, basis.T @ inverse @ basis, rtol=1e-8, atol=1e-12)
    shadow = basis.T @ model.estimate
    np.testing.assert_allclose(sets.mapped.centre, shadow, rtol=1e-8, atol=1e-10)
