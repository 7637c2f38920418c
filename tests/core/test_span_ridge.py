"""Regression in the span of few samples: the same as in all dimensions, before and after."""

import copy
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halfseen.core.ridge import Ridge
from halfseen.core.span_ridge import SpanRidge
from halfseen.errors import ArchiveError, InvalidInputError, InvalidSettingError
from halfseen.values import LARGEST

NAN = math.nan


def pair(dim, ridge=1.0):
    return SpanRidge(dim, ridge=ridge), Ridge(dim, ridge=ridge)


def teach(models, points, rewards):
    for point, reward in zip(points, rewards, strict=True):
        for model in models:
            model.update(point, reward)


def fixed(size):
    """Return a radius that depends on nothing."""
    return lambda log_det, n_samples: size


def n_directions(model):
    """Return the dimension of the span, None once the plain form has taken over."""
    directions = model.state()["directions"]
    return None if directions is None else len(directions)


def assert_same_regression(span, plain, points, rtol=1e-9, radius=0.7):
    assert span.n_samples == plain.n_samples
    assert span.log_det == pytest.approx(plain.log_det, rel=rtol, abs=1e-12)
    best, parts = span.score(points, fixed(radius))
    expected_best, expected = plain.score(points, fixed(radius))
    size = np.abs(expected[1]).max()
    np.testing.assert_allclose(parts[1], expected[1], rtol=0, atol=rtol * size)
    np.testing.assert_allclose(parts[2], expected[2], rtol=rtol)
    np.testing.assert_array_equal(parts[0], parts[1] + parts[2])
    assert best == expected_best


def random_points(seed, n_points, dim):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_points, dim)), rng.normal(size=n_points)


# -- equal to the plain regression -----------------------------------------------------------------


@pytest.mark.parametrize("dim", [128, 131, 200])
@pytest.mark.parametrize("ridge", [0.01, 1.0, 100.0])
def test_scores_and_log_det_are_those_of_the_plain_regression_through_the_hand_over(dim, ridge):
    span, plain = pair(dim, ridge)
    points, rewards = random_points(dim, dim // 4 + 20, dim)
    asked = np.r_[points[:5], random_points(1, 5, dim)[0]]
    for n in range(len(points)):
        assert_same_regression(span, plain, np.r_[asked, points[n : n + 1]])
        teach((span, plain), points[n : n + 1], rewards[n : n + 1])
    assert n_directions(span) is None
    assert_same_regression(span, plain, np.r_[asked, points])


def test_the_plain_form_takes_over_when_a_quarter_of_all_dimensions_is_played():
    span, plain = pair(160)
    points, rewards = random_points(0, 42, 160)
    forms = []
    for n in range(42):
        teach((span, plain), points[n : n + 1], rewards[n : n + 1])
        forms.append(n_directions(span))
    assert forms == [*range(1, 41), None, None]


@pytest.mark.parametrize("dim", [1, 30, 127])
def test_in_few_dimensions_the_plain_form_works_from_the_start_bit_by_bit(dim):
    span, plain = pair(dim)
    assert n_directions(span) is None
    points, rewards = random_points(0, 10, dim)
    teach((span, plain), points, rewards)
    assert (
        span.score(points, fixed(2.0))[1].tobytes() == plain.score(points, fixed(2.0))[1].tobytes()
    )
    assert span.log_det == plain.log_det


# -- a sample that waits ---------------------------------------------------------------------------


def handed_over(dim=150, ridge=1.0):
    """Return a regression past the hand-over, and the plain one that it has become."""
    span = SpanRidge(dim, ridge=ridge)
    teach((span,), *random_points(dim, dim // 4 + 3, dim))
    plain = Ridge(dim, ridge=ridge)
    state = span.state()
    assert state["directions"] is None
    plain.restore(state["inner"])
    return span, plain


def frozen_state(model):
    state = model.state()
    inner = state.get("inner", state)
    return inner["n_samples"], inner["log_det"], inner["root"].tobytes()


LOOKS = {
    "score": lambda span: span.score(random_points(5, 3, span.dim)[0], fixed(1.0)),
    "state": lambda span: span.state(),
    "log_det": lambda span: span.log_det,
    "n_samples": lambda span: span.n_samples,
    "nothing": lambda span: None,
}


@pytest.mark.parametrize("dim", [128, 131, 150])
@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS.keys())
def test_a_waiting_sample_is_invisible_bit_by_bit(dim, look):
    """Whatever looks at the regression after a sample, or nothing does before the next one."""
    span, plain = handed_over(dim)
    points, rewards = random_points(1, 12, dim)
    points[np.random.default_rng(2).random(points.shape) < 0.3] = NAN
    for point, reward in zip(points, rewards, strict=True):
        teach((span, plain), [point], [reward])
        look(span)
    assert (span.n_samples, span.log_det) == (plain.n_samples, plain.log_det)
    assert frozen_state(span) == frozen_state(plain)


@pytest.mark.parametrize("n_points", [1, 3, 4, 5, 9])
@pytest.mark.parametrize("n_between", [1, 2, 3])
def test_scores_with_a_waiting_sample_are_those_of_one_that_entered_at_once(n_points, n_between):
    span, plain = handed_over()
    points, rewards = random_points(1, 12, 150)
    asked = random_points(2, n_points, 150)[0]
    sizes = []

    def radius(log_det, n_samples):
        sizes.append((log_det, n_samples))
        return 0.1 * n_samples

    for first in range(0, 12, n_between):
        chunk = slice(first, first + n_between)
        teach((span, plain), points[chunk], rewards[chunk])
        best, parts = span.score(asked, radius)
        assert sizes.pop() == (plain.log_det, plain.n_samples)
        expected_best, expected = plain.score(asked, radius)
        assert best == expected_best
        assert parts.tobytes() == expected.tobytes()
        again = span.score(asked, radius)[1]
        assert again.tobytes() == expected.tobytes()
    assert frozen_state(span) == frozen_state(plain)


def test_a_waiting_sample_is_the_point_as_it_was():
    span, plain = handed_over()
    point = random_points(1, 1, 150)[0][0]
    teach((span, plain), [point], [1.0])
    point[:] = 99.0
    assert frozen_state(span) == frozen_state(plain)


def test_a_restored_regression_forgets_a_sample_that_was_waiting():
    span, plain = handed_over()
    state = copy.deepcopy(span.state())
    teach((span,), *random_points(1, 1, 150))
    span.restore(state)
    assert frozen_state(span) == frozen_state(plain)


@pytest.mark.parametrize("n_samples", [0, 3, 45], ids=["fresh", "span form", "plain form"])
@pytest.mark.parametrize("shape", [(149,), (151,), (1, 150)])
def test_a_point_of_another_shape_is_refused_and_changes_nothing(n_samples, shape):
    span, untouched = SpanRidge(150, ridge=1.0), SpanRidge(150, ridge=1.0)
    teach((span, untouched), *random_points(0, n_samples, 150))
    with pytest.raises(InvalidInputError, match="expected an array of shape"):
        span.update(np.ones(shape), 1.0)
    assert frozen_state(span) == frozen_state(untouched)


@pytest.mark.parametrize("n_samples", [0, 3, 45], ids=["fresh", "span form", "plain form"])
def test_the_type_and_memory_order_of_a_point_do_not_matter(n_samples):
    span, plain = SpanRidge(150, ridge=1.0), SpanRidge(150, ridge=1.0)
    teach((span, plain), *random_points(0, n_samples, 150))
    point = np.random.default_rng(1).integers(-9, 10, 150).astype(float)
    asked = random_points(2, 4, 150)[0]
    for form in (np.float32, np.int64):
        teach((span,), [point.astype(form)], [1.0])
        teach((plain,), [point], [1.0])
    teach((span,), [np.repeat(point, 2)[::2]], [1.0])
    teach((plain,), [point], [1.0])
    ours, theirs = (model.score(asked, fixed(1.0))[1] for model in (span, plain))
    assert ours.tobytes() == theirs.tobytes()
    assert frozen_state(span) == frozen_state(plain)


@pytest.mark.parametrize("ridge", [1e-8, 1e-6])
def test_a_tiny_penalty_is_as_exact_as_in_the_plain_regression(ridge):
    span, plain = pair(160, ridge)
    points, rewards = random_points(3, 50, 160)
    outside = random_points(4, 5, 160)[0]
    for n in range(50):
        teach((span, plain), points[n : n + 1], rewards[n : n + 1])
        inside = np.r_[points[: n + 1], points[: n + 1].sum(axis=0, keepdims=True)]
        assert_same_regression(span, plain, inside, rtol=1e-6)
        assert_same_regression(span, plain, outside, rtol=1e-6)
    assert n_directions(span) is None


@settings(max_examples=15)
@given(st.integers(128, 200), st.integers(1, 12), st.integers(1, 90), st.integers(0, 2**32 - 1))
def test_samples_of_a_small_subspace_never_leave_the_span_form(dim, rank, n_samples, seed):
    rng = np.random.default_rng(seed)
    span, plain = pair(dim)
    basis = rng.normal(size=(rank, dim))
    points = rng.normal(size=(n_samples, rank)) @ basis
    teach((span, plain), points, rng.normal(size=n_samples))
    assert n_directions(span) == min(rank, n_samples)
    assert_same_regression(span, plain, np.r_[points[:5], rng.normal(size=(3, dim))], rtol=1e-7)


# -- special points --------------------------------------------------------------------------------


def test_repeated_points_add_no_direction():
    span, plain = pair(200)
    points, rewards = random_points(0, 5, 200)
    for _ in range(30):
        teach((span, plain), points, rewards)
    teach((span, plain), -3.0 * points, rewards)
    assert n_directions(span) == 5
    assert span.n_samples == 155
    assert_same_regression(span, plain, np.r_[points, random_points(1, 4, 200)[0]])


def test_repeated_points_after_the_hand_over_are_the_plain_regression_too():
    span, plain = pair(128)
    points, rewards = random_points(0, 33, 128)
    teach((span, plain), np.r_[points, points, points], np.r_[rewards, rewards, -rewards])
    assert n_directions(span) is None
    assert_same_regression(span, plain, np.r_[points, random_points(1, 4, 128)[0]])


def test_zero_points_count_as_samples_and_change_nothing_else():
    span, plain = pair(150)
    points, rewards = random_points(0, 45, 150)
    zero, asked = np.zeros((1, 150)), np.r_[points[:3], random_points(1, 3, 150)[0]]
    teach((span, plain), zero, [5.0])
    assert (span.n_samples, span.log_det, n_directions(span)) == (1, 0.0, 0)
    for n in range(45):
        teach((span, plain), zero, [1.0])
        assert_same_regression(span, plain, asked)
        teach((span, plain), points[n : n + 1], rewards[n : n + 1])
    teach((span, plain), zero, [1.0])
    assert span.n_samples == 92
    assert_same_regression(span, plain, asked)


def test_asking_about_the_zero_point_gives_zero():
    for n_samples in (0, 3, 45):
        span = SpanRidge(150, ridge=1.0)
        teach((span,), *random_points(0, n_samples, 150))
        assert span.score(np.zeros((2, 150)), fixed(1.0))[1].tolist() == [[0.0, 0.0]] * 3


def test_ties_go_to_the_lowest_index_on_both_sides_of_the_hand_over():
    for n_samples in (0, 3, 45):
        span = SpanRidge(150, ridge=1.0)
        teach((span,), *random_points(0, n_samples, 150))
        point = random_points(1, 1, 150)[0]
        assert span.score(np.r_[0.0 * point, point, point], fixed(100.0))[0] == 1


def test_nan_in_a_point_counts_as_zero():
    points, rewards = random_points(0, 50, 150)
    hidden = np.random.default_rng(1).random(points.shape) < 0.6
    holes, zeros = np.where(hidden, NAN, points), np.where(hidden, 0.0, points)
    span, filled = SpanRidge(150, ridge=1.0), SpanRidge(150, ridge=1.0)
    for n in range(50):
        teach((span,), holes[n : n + 1], rewards[n : n + 1])
        teach((filled,), zeros[n : n + 1], rewards[n : n + 1])
        parts, expected = span.score(holes, fixed(1.0))[1], filled.score(zeros, fixed(1.0))[1]
        assert parts.tobytes() == expected.tobytes()
    assert span.log_det == filled.log_det


def test_points_that_are_nearly_repeated_are_told_apart_under_a_small_penalty():
    span, plain = pair(128, 1e-4)
    points, rewards = random_points(0, 4, 128)
    nearly = points + 1e-6 * random_points(1, 4, 128)[0]
    teach((span, plain), np.r_[points, nearly], np.r_[rewards, rewards + 1.0])
    assert n_directions(span) == 8
    assert_same_regression(span, plain, np.r_[points, nearly, random_points(2, 3, 128)[0]], 1e-7)


@pytest.mark.parametrize("n_samples", [3, 40])
def test_entries_of_the_largest_allowed_size_keep_everything_finite(n_samples):
    span = SpanRidge(128, ridge=1.0)
    points = np.where(random_points(0, n_samples, 128)[0] > 0.0, LARGEST, -LARGEST)
    teach((span,), points, np.full(n_samples, LARGEST))
    assert math.isfinite(span.log_det)
    assert np.isfinite(span.score(points, fixed(1.0))[1]).all()


def test_points_handed_in_are_not_changed():
    span = SpanRidge(150, ridge=1.0)
    points, rewards = random_points(0, 45, 150)
    before = points.tobytes()
    teach((span,), points, rewards)
    span.score(points, fixed(1.0))
    assert points.tobytes() == before


@pytest.mark.parametrize("dim", [10, 200])
@pytest.mark.parametrize("ridge", [0.0, -1.0, NAN])
def test_a_penalty_that_is_no_positive_number_is_refused(dim, ridge):
    with pytest.raises(InvalidSettingError, match="ridge must be in"):
        SpanRidge(dim, ridge=ridge)


# -- state -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_samples", [0, 1, 20, 31, 32, 33, 50])
def test_a_restored_regression_continues_bit_by_bit_on_both_sides_of_the_hand_over(n_samples):
    span = SpanRidge(128, ridge=0.5)  # the plain form takes over at sample 33
    points, rewards = random_points(0, 60, 128)
    teach((span,), points[:n_samples], rewards[:n_samples])
    restored = SpanRidge(128, ridge=0.5)
    restored.restore(copy.deepcopy(span.state()))
    for n in range(n_samples, 60):
        ours, theirs = (model.score(points, fixed(1.0))[1] for model in (span, restored))
        assert theirs.tobytes() == ours.tobytes()
        teach((span, restored), points[n : n + 1], rewards[n : n + 1])
    assert (restored.n_samples, restored.log_det) == (60, span.log_det)
    assert n_directions(restored) is None


@pytest.mark.parametrize("n_samples", [5, 40])
def test_a_restored_regression_shares_nothing_with_the_state(n_samples):
    span, restored = SpanRidge(128, ridge=1.0), SpanRidge(128, ridge=1.0)
    points, rewards = random_points(0, 60, 128)
    teach((span,), points[:n_samples], rewards[:n_samples])
    before = span.score(points, fixed(1.0))[1].tobytes(), span.log_det
    restored.restore(span.state())
    teach((restored,), points, rewards)
    assert (span.score(points, fixed(1.0))[1].tobytes(), span.log_det) == before


@pytest.mark.parametrize(
    ("dim", "directions"),
    [
        pytest.param(128, np.zeros((2, 128)), id="fewer than the inner regression has"),
        pytest.param(128, np.zeros((33, 128)), id="more than there is room for"),
        pytest.param(128, np.zeros((3, 127)), id="of another dimension"),
        pytest.param(128, None, id="none for an inner regression in the span"),
        pytest.param(100, np.zeros((3, 100)), id="some where there is only the plain form"),
    ],
)
def test_a_state_that_does_not_fit_is_refused(dim, directions):
    span = SpanRidge(128, ridge=1.0)
    teach((span,), *random_points(0, 3, 128))
    with pytest.raises(ArchiveError):
        SpanRidge(dim, ridge=1.0).restore(span.state() | {"directions": directions})
