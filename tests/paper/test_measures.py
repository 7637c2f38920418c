"""Measures of the theory: by hand where possible, else against an independent computation."""

import json
import math
from functools import partial

import numpy as np
import pytest
from numpy.linalg import eigvalsh, norm

from halfseen import theory
from halfseen.errors import InvalidSettingError
from halfseen.linear.ridge import Confidence
from halfseen.paper.hard_instance import HardInstanceWorld, wait_for_sign
from halfseen.paper.measures import Surrogate, log_spaced, missed_by
from halfseen.paper.reestimation import Samples, projected_noise
from halfseen.simulation.methods import MEASURES
from halfseen.worlds.lowrank import LowRankWorld

WORLD = LowRankWorld(
    dim=12, rank=2, n_arms=15, horizon=60, observe_prob=0.8, latent="uniform", noise_scale=0.1
)
NAMES = ("representation", "gram", "coverage", "excitation", "reestimation")
SETTINGS = {"coverage": {"burn_in": 5, "replicates": 10}, "reestimation": {"burn_in": 9}}


@pytest.fixture(scope="module")
def realization():
    return WORLD.realize(seed=3)


@pytest.mark.parametrize("name", NAMES)
def test_a_measure_returns_plain_values_and_the_same_every_time(name, realization):
    found = MEASURES[name](realization, **SETTINGS.get(name, {}))
    assert found == MEASURES[name](WORLD.realize(seed=3), **SETTINGS.get(name, {}))
    assert found == json.loads(json.dumps(found, allow_nan=False))
    assert all(isinstance(values, list) and values for values in found.values())


@pytest.mark.parametrize("name", NAMES)
def test_a_measure_refuses_unbounded_arms_and_other_worlds(name):
    with pytest.raises(InvalidSettingError, match=r'latent must be "uniform".*got \'gaussian\''):
        MEASURES[name](WORLD.replace(latent="gaussian").realize(seed=0))
    with pytest.raises(InvalidSettingError, match="low-rank world, got HardInstance"):
        MEASURES[name](HardInstanceWorld(horizon=10).realize(seed=0))


def test_both_obstacles_appear_if_the_subspace_is_estimated_anew_and_neither_if_it_is_frozen():
    found = MEASURES["reestimation"](WORLD.replace(observe_prob=0.4).realize(3), burn_in=9)
    assert found["reestimated_drift"][0] > 0.01
    assert found["reestimated_smallest"][0] < -0.01
    assert found["frozen_drift"] == [0.0]
    assert found["frozen_smallest"][0] > -1e-9


def test_the_steps_of_projected_noise_add_up_to_the_projected_sum():
    random = np.random.default_rng(4)
    bases = np.array([np.linalg.qr(random.normal(size=(5, 2)))[0] for _ in range(7)])
    samples = Samples(random.normal(size=(7, 5)), random.normal(size=7), bases)
    steps, first = projected_noise(samples), samples.arms[0] * samples.noise[0]
    summed = (samples.arms * samples.noise[:, None]).sum(axis=0)
    last = bases[-1] @ (bases[-1].T @ summed)
    assert np.allclose(bases[0] @ (bases[0].T @ first) + sum(steps).sum(axis=0), last)


# Representation


def least_squares(basis, table):
    """Return coordinates and filled arms, one arm at a time."""
    latent, filled = [], []
    for row in table:
        seen = ~np.isnan(row)
        solution = np.linalg.lstsq(basis[seen], row[seen], rcond=None)[0]
        latent.append(solution)
        filled.append(np.where(seen, row, basis @ solution))
    return np.array(latent), np.array(filled)


def test_representation_errors_agree_with_a_computation_from_all_slates(realization):
    found = MEASURES["representation"](realization)
    problem = realization.problem()
    rounds = list(realization.rounds())
    assert found["n_arms"] == [15.0 * t for t in log_spaced(59)]
    for position, t in enumerate(log_spaced(59)):
        zeroed = np.concatenate([np.nan_to_num(r.slate.values) for r in rounds[:t]])
        covariance = zeroed.T @ zeroed / len(zeroed) / 0.8**2
        np.fill_diagonal(covariance, np.diag(covariance) * 0.8)
        lift = realization.basis @ np.diag(realization.loadings)
        basis = np.linalg.eigh(covariance)[1][:, -2:]
        projectors = basis @ basis.T, realization.basis @ realization.basis.T
        fresh = rounds[t]
        latent, filled = least_squares(basis, np.where(fresh.slate.mask, fresh.arms, np.nan))
        surrogate = np.abs(fresh.means - latent @ basis.T @ realization.theta)
        expected = {
            "covariance_error": norm(covariance - lift @ lift.T, 2),
            "subspace_distance": norm(projectors[0] - projectors[1], 2),
            "imputation_error": norm(filled - fresh.arms, axis=1).max(),
            "surrogate_error": surrogate.max(),
            "covariance_bound": theory.covariance_error_at(problem, round=t, failure_prob=0.1),
            "subspace_bound": theory.subspace_error_at(problem, round=t, failure_prob=0.1),
            "surrogate_bound": theory.misspecification_at(
                problem, epoch_start=t + 1, failure_prob=0.1
            ),
        }
        for name, value in expected.items():
            assert found[name][position] == pytest.approx(value, rel=1e-6), name


def test_bounds_at_the_measured_distance_are_the_lemmas_at_that_distance(realization):
    found = MEASURES["representation"](realization)
    arm_bound = realization.problem().arm_bound
    actual = np.array(found["aligned_distance"])
    assert found["imputation_bound_actual"] == pytest.approx((1 + 2 / 0.8) * arm_bound * actual)
    assert found["surrogate_bound_actual"] == pytest.approx((2 + 2 / 0.8) * arm_bound * actual)


def test_the_worst_seen_gram_is_that_of_all_arms(realization):
    masks = np.concatenate([r.slate.mask for r in realization.rounds()])
    basis = realization.basis
    worst = min(eigvalsh(basis[seen].T @ basis[seen])[0] for seen in masks)
    found = MEASURES["gram"](realization)
    assert found == {"smallest": [pytest.approx(worst / 0.8)], "floor": [pytest.approx(0.75)]}


def test_a_spectrum_separates_before_imputation_is_stable(realization):
    found = MEASURES["representation"](realization)
    assert 0 < found["rank_found"][0] < found["imputation_stable"][0]


# Coverage


radius_with = partial(Confidence, ridge=1.0, noise_scale=1.0, failure_prob=0.5)


def test_an_ellipsoid_around_the_truth_misses_by_hand():
    # One arm z = 1 of mean 0 with target 0 and λ = 1: after the first round the estimate is η/2,
    # its error in V = 2 is |η|/√2, and β² = (S + R sqrt(log 2 + 2 log 2))². With S = 0 and R = 1
    # it misses for |η| > √(2·3·log 2) = 2.039, from the second round on.
    epoch = Surrogate(np.ones((2, 1, 1)), np.zeros((2, 1)), np.zeros(1))
    radius = radius_with(theta_bound=0.0)
    noise = np.array([[2.03, 0.0], [2.05, 0.0], [-2.05, 0.0], [9.0, 0.0]])
    assert missed_by(epoch, noise, 1.0, radius).tolist() == [False, True, True, True]
    wider = radius_with(theta_bound=0.0, misspecification=1.0)
    assert missed_by(epoch, noise, 1.0, wider).tolist() == [False, False, False, True]


def test_a_miss_is_remembered():
    epoch = Surrogate(np.ones((30, 1, 1)), np.zeros((30, 1)), np.zeros(1))
    noise = np.zeros((1, 30))
    noise[0, 0] = 9.0
    assert missed_by(epoch, noise, 1.0, radius_with(theta_bound=0.0)).tolist() == [True]


def test_replicates_play_optimistically():
    # Two arms of equal estimate 0: the longer one is wider, is played, and alone is learned.
    epoch = Surrogate(np.array([[[1.0], [2.0]]] * 2), np.array([[0.0, 8.0]] * 2), np.array([4.0]))
    assert epoch.largest_bias == 4.0
    # V = 5, response 16: error (16/5 - 4)² · 5 = 3.2 against (1 + sqrt(log 5 + 2 log 2))² = 7.5.
    radius = radius_with(theta_bound=1.0)
    assert missed_by(epoch, np.zeros((1, 2)), 1.0, radius).tolist() == [True]  # 16 > 1 at first
    low = Surrogate(epoch.latent, epoch.means / 8, np.array([0.5]))
    assert missed_by(low, np.zeros((1, 2)), 1.0, radius).tolist() == [False]


def test_without_the_misspecification_part_a_poor_subspace_is_missed():
    world = LowRankWorld(dim=30, rank=2, observe_prob=0.5, latent="uniform", loadings=(1.0, 1.0))
    found = MEASURES["coverage"](
        world.replace(noise_scale=0.1).realize(seed=0), burn_in=3, replicates=50
    )
    assert found["missed_without_bias_part"][-1] > 0.9
    assert found["missed_with_bias_part"][-1] <= 0.2
    assert found["missed_true_subspace"][-1] <= 0.2


# Excitation and the hidden sign


def test_offered_arms_excite_two_directions_and_chosen_ones_less(realization):
    found = MEASURES["excitation"](realization)
    assert found["example_offered"] == [0.5]  # of I/2
    assert 0 < found["example_oful"][0] < 0.5


@pytest.mark.parametrize(("n_arms", "observe_prob"), [(4, 0.4), (32, 0.1)])
def test_the_wait_for_the_hidden_sign_is_that_of_the_construction(n_arms, observe_prob):
    """A mean over 200 runs against its expectation, at 5 standard errors."""
    world = HardInstanceWorld(n_arms=n_arms, horizon=60, observe_prob=observe_prob)
    waits = [wait_for_sign(world.realize(seed))["wait"][0] for seed in range(200)]
    expected = theory.expected_wait(n_arms=n_arms, observe_prob=observe_prob, horizon=60)
    assert abs(np.mean(waits) - expected) < 5 * np.std(waits, ddof=1) / math.sqrt(200)


def test_hard_instances_violate_the_upper_bounds_condition_on_p():
    # μ²m/d = 1, so C_μ log(mTK/δ) is at least C_μ = 29 times log(3/δ) > 1.
    smallest = theory.observe_prob_condition(
        dim=4, rank=3, n_arms=1, horizon=1, incoherence=math.sqrt(4 / 3), failure_prob=0.5
    )
    assert smallest > 29
