"""Masked second moments: unbiased by exact enumeration, whatever the slates look like."""

import copy
import itertools
import math

import numpy as np
import pytest

from halfseen import state
from halfseen.errors import HalfseenError, InvalidSettingError
from halfseen.linear.covariance import Moments
from halfseen.values import Slate

NAN = math.nan


def absorbed(*slates, dim=None, count_pairs=False):
    moments = Moments(slates[0].dim if dim is None else dim, count_pairs=count_pairs)
    for slate in slates:
        moments.absorb(slate)
    return moments


def whole_arms(n_arms, dim, seed=0, show=0.6):
    """Return arms of small whole numbers, so that every order of summation gives the same bits."""
    rng = np.random.default_rng(seed)
    values = rng.integers(-9, 10, (n_arms, dim)).astype(float)
    values[rng.random((n_arms, dim)) > show] = NAN
    return values


def cut(arms, sizes):
    """Return consecutive slates of the given sizes, repeated until all arms are used."""
    starts, sizes = [0], itertools.cycle(sizes)
    while starts[-1] < len(arms):
        starts.append(starts[-1] + next(sizes))
    return [Slate(arms[start:stop]) for start, stop in itertools.pairwise(starts)]


def same(one, other):
    return (
        one.n_arms == other.n_arms
        and np.array_equal(one.sums().products, other.sums().products)
        and (not one.count_pairs or np.array_equal(one.sums().pairs, other.sums().pairs))
    )


def frozen_state(moments):
    """Return the state as bytes."""
    return {
        name: value.tobytes() if isinstance(value, np.ndarray) else value
        for name, value in state.dump(moments).items()
    }


# -- unbiased: all masks ---------------------------------------------------------------------------


def masks_with_probability(observe_prob):
    """Yield every mask with its probability, features seen independently of each other."""
    for mask in itertools.product([True, False], repeat=len(observe_prob)):
        seen = np.array(mask)
        yield seen, float(np.where(seen, observe_prob, 1.0 - observe_prob).prod())


def expected_covariance(arms, probabilities, observe_prob):
    """Return the exact mean of the estimate from one arm, over arms and over all their masks."""
    total = np.zeros((len(probabilities), len(probabilities)))
    for arm in arms:
        for mask, probability in masks_with_probability(probabilities):
            estimate = absorbed(Slate(arm[None, :], mask[None, :])).covariance(observe_prob)
            total += probability / len(arms) * estimate
    return total


@pytest.mark.parametrize(
    "probabilities", [[0.3], [0.2, 0.9], [1.0, 0.5, 0.25], [0.9, 0.1, 0.6, 1.0], np.r_[2:7] / 8.0]
)
def test_the_corrected_covariance_is_unbiased_with_one_probability_per_feature(probabilities):
    probabilities = np.array(probabilities)
    arms = np.random.default_rng(1).normal(size=(2, len(probabilities)))
    expected = expected_covariance(arms, probabilities, probabilities)
    np.testing.assert_allclose(expected, arms.T @ arms / 2, rtol=0, atol=1e-12)


BLOCKS = [[0, 1], [2], [3, 4]]
BLOCK_PROBS = np.array([0.5, 0.8, 0.3])


def block_masks():
    """Yield masks in which the features of a block come and go together, with probabilities."""
    for shown, probability in masks_with_probability(BLOCK_PROBS):
        mask = np.zeros(5, dtype=bool)
        for block, on in zip(BLOCKS, shown, strict=True):
            mask[block] = on
        yield mask, probability


def test_pairs_seen_together_are_exact_when_all_arms_are_equal_and_features_miss_in_blocks():
    arm = np.array([1.5, -2.0, 0.25, 3.0, -0.75])
    truth = np.outer(arm, arm)
    every = [mask for mask, _ in block_masks()]
    for masks in itertools.product(every, repeat=3):
        moments = absorbed(Slate(np.tile(arm, (3, 1)), np.array(masks)), count_pairs=True)
        together = np.array(masks).T.astype(int) @ np.array(masks).astype(int)
        np.testing.assert_array_equal(moments.sums().pair_counts(), together)
        estimate = moments.covariance(None)
        np.testing.assert_allclose(estimate, np.where(together > 0, truth, 0.0), rtol=1e-15)


def test_given_that_a_pair_was_seen_its_estimate_is_unbiased_with_features_missing_in_blocks():
    arms = np.array([[1.0, 2.0, -1.0, 0.5, 3.0], [-2.0, 1.0, 4.0, 1.5, -1.0]])
    total, chance = np.zeros((5, 5)), np.zeros((5, 5))
    for pick in itertools.product([0, 1], repeat=2):
        for (one, p_one), (two, p_two) in itertools.product(block_masks(), repeat=2):
            moments = absorbed(Slate(arms[list(pick)], np.array([one, two])), count_pairs=True)
            probability = 0.25 * p_one * p_two
            total += probability * moments.covariance(None)
            chance += probability * (moments.sums().pair_counts() > 0)
    np.testing.assert_allclose(total / chance, arms.T @ arms / 2, rtol=0, atol=1e-12)


def test_before_the_first_arm_every_covariance_is_zero():
    moments = Moments(3, count_pairs=True)
    for observe_prob in (0.5, np.array([0.5, 0.2, 1.0]), None):
        np.testing.assert_array_equal(moments.covariance(observe_prob), np.zeros((3, 3)))


@pytest.mark.parametrize("poison", [NAN, math.inf, -math.inf, 1e300, -1e300])
def test_hidden_entries_never_enter_the_sums(poison):
    arms = whole_arms(30, 4)
    seen = ~np.isnan(arms)
    poisoned = absorbed(Slate(np.where(seen, arms, poison), seen), count_pairs=True)
    assert frozen_state(poisoned) == frozen_state(absorbed(Slate(arms), count_pairs=True))


# -- blocks of slates ------------------------------------------------------------------------------


@pytest.mark.parametrize("count_pairs", [False, True])
@pytest.mark.parametrize("sizes", [[1], [1023, 1], [1023, 2], [1024], [1025], [1, 2000]])
def test_sums_do_not_depend_on_the_sizes_of_slates(sizes, count_pairs):
    arms = whole_arms(5001, 3)
    moments = absorbed(*cut(arms, sizes), count_pairs=count_pairs)
    zeroed, seen = np.nan_to_num(arms), (~np.isnan(arms)).astype(float)
    assert moments.n_arms == 5001
    np.testing.assert_array_equal(moments.sums().products, zeroed.T @ zeroed)
    if count_pairs:
        np.testing.assert_array_equal(moments.sums().pair_counts(), seen.T @ seen)


# -- forks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("count_pairs", [False, True])
@pytest.mark.parametrize(("n_waiting", "n_arms"), [(1, 1), (1000, 24), (1000, 25), (1024, 1)])
def test_a_fork_goes_its_own_way(count_pairs, n_waiting, n_arms):
    moments = Moments(3, count_pairs=count_pairs)
    for slate in cut(whole_arms(n_waiting, 3, seed=2), [1]):
        moments.absorb(slate)
    plain, table = copy.deepcopy(moments), whole_arms(n_arms, 3, seed=1)
    before, fork = frozen_state(moments), moments.fork()
    fork.add(table)
    assert frozen_state(moments) == before
    plain.absorb(Slate(table))
    assert same(fork, plain)
    assert fork.n_arms == n_waiting + n_arms


# -- state -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("products", np.zeros((3, 2))),
        ("products", -np.eye(3)),
        ("pairs", None),
        ("pairs", np.full((3, 3), 6.0)),
        ("waiting", np.zeros((6, 3))),
        ("n_arms", 2.5),
    ],
)
def test_a_state_that_does_not_fit_is_refused(name, value):
    saved = state.dump(absorbed(Slate(whole_arms(5, 3)), count_pairs=True)) | {name: value}
    with pytest.raises(HalfseenError):
        state.restore(Moments(3, count_pairs=True), saved)


# -- one p for all ---------------------------------------------------------------------------------


def test_the_smallest_probability_stands_for_all():
    moments = absorbed(Slate([[1.0, NAN, NAN], [1.0, 2.0, NAN], [1.0, 2.0, NAN]]), count_pairs=True)
    sums = moments.sums()
    assert sums.smallest_prob(0.3) == 0.3
    assert sums.smallest_prob(np.array([0.9, 0.4, 0.7])) == 0.4
    assert sums.smallest_prob(None) == 2 / 3  # the third feature was never seen
    for nothing in (Moments(2, count_pairs=True), absorbed(Slate([[NAN, NAN]]), count_pairs=True)):
        assert nothing.sums().smallest_prob(None) == 1.0


# -- refusals --------------------------------------------------------------------------------------


def test_unknown_probabilities_need_counted_pairs():
    moments = absorbed(Slate([[1.0, 2.0]]))
    with pytest.raises(InvalidSettingError, match=r"Moments\(count_pairs=True\)"):
        moments.covariance(None)
