"""Measures of the theory: by hand where possible, else against an independent computation."""

import json
import math

import numpy as np
import pytest
from numpy.linalg import eigvalsh, inv, norm

from halfseen import theory
from halfseen.errors import InvalidSettingError
from halfseen.paper.hard_instance import HardInstanceWorld
from halfseen.paper.measures_runs import (
    RegressionSamples,
    algorithm_1,
    bias_of,
    catalogue_of,
    play_epochs,
    steps_of,
)
from halfseen.paper.measures_subspace import (
    Radii,
    Surrogate,
    log_spaced,
    missed_by,
)
from halfseen.simulation.cells import play
from halfseen.simulation.methods import MEASURES
from halfseen.worlds.lowrank import LowRankWorld

WORLD = LowRankWorld(
    dim=12, rank=2, n_arms=15, horizon=60, observe_prob=0.8, latent="uniform", noise_scale=0.1
)
NAMES = ("representation", "gram", "algorithm-1", "coverage", "freezing")
SETTINGS = {"algorithm-1": {"burn_in": 9}, "coverage": {"burn_in": 5, "replicates": 10}}


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
    found = MEASURES["representation"](realization, points=4)
    problem = realization.problem()
    rounds = list(realization.rounds())
    assert found["n_arms"] == [15.0 * t for t in log_spaced(59, 4)]
    for position, t in enumerate(log_spaced(59, 4)):
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
    found = MEASURES["representation"](realization, points=3)
    arm_bound = realization.problem().arm_bound
    actual = np.array(found["aligned_distance"])
    assert found["imputation_bound_actual"] == pytest.approx((1 + 2 / 0.8) * arm_bound * actual)
    assert found["surrogate_bound_actual"] == pytest.approx((2 + 2 / 0.8) * arm_bound * actual)


def test_the_worst_seen_gram_only_falls_as_arms_come_in(realization):
    found = MEASURES["gram"](realization, points=6)
    masks = np.concatenate([r.slate.mask for r in realization.rounds()])
    basis = realization.basis
    worst = min(eigvalsh(basis[seen].T @ basis[seen])[0] for seen in masks)
    assert np.all(np.diff(found["smallest"]) <= 0)
    assert found["smallest"][-1] == pytest.approx(worst / 0.8)
    assert found["floor"] == pytest.approx([0.75] * len(found["floor"]))
    assert found["n_arms"][-1] == len(masks)


# A run of Algorithm 1


@pytest.fixture(scope="module")
def run(realization):
    policy = algorithm_1(realization, burn_in=9)
    ridge = theory.theorem_ridge(realization.problem())
    return play_epochs(policy, realization, ridge=ridge)


def test_a_run_taken_apart_is_the_run_that_the_runner_plays(realization, run):
    policy = algorithm_1(realization, burn_in=9)
    np.testing.assert_array_equal(np.cumsum(run.losses), play(policy, realization).regret)
    assert [epoch.record.round for epoch in run.epochs] == [10, 20, 40]
    assert [epoch.n_rounds for epoch in run.epochs] == [10, 20, 21]


def test_grams_widths_and_radii_are_those_that_the_policy_scored_with(realization):
    policy = algorithm_1(realization, burn_in=9)
    decisions = []
    choose = policy.choose
    policy.choose = lambda slate: decisions.append(choose(slate)) or decisions[-1]
    ridge = theory.theorem_ridge(realization.problem())
    run = play_epochs(policy, realization, ridge=ridge)
    for epoch in run.epochs:
        made = decisions[epoch.record.round - 1 :][: epoch.n_rounds]
        scored = [decision.widths[decision.arm] for decision in made]
        radii = epoch.radii(realization.problem())
        np.testing.assert_allclose(radii * epoch.widths, scored, rtol=1e-8)


def test_a_catalogue_has_the_law_of_the_arms_and_makes_the_bonus_small(realization):
    slates = list(catalogue_of(realization, 45_000))
    arms = np.concatenate([slate.values for slate in slates])
    mask = np.concatenate([slate.mask for slate in slates])
    assert len(arms) == 45_000
    assert mask.mean() == pytest.approx(0.8, abs=0.005)  # 540 000 entries: 9 standard errors
    whole = arms[mask.all(axis=1)]
    off = whole - whole @ realization.basis @ realization.basis.T
    assert norm(off) < 1e-9 * norm(whole)
    policy = algorithm_1(realization, burn_in=9)
    play_epochs(policy, realization, ridge=1.0, catalogue=45_000)
    assert [record.n_arms for record in policy.epoch_log] == [45_135, 45_285, 45_585]


def test_the_bias_term_lies_between_nothing_and_the_worst_signs(run):
    epoch = run.epochs[-1]
    found = bias_of(epoch, [5, 21])
    xi = epoch.biases[np.arange(21), epoch.chosen]
    pushed = epoch.played.T @ xi
    inverse = inv(epoch.ridge * np.eye(2) + epoch.played.T @ epoch.played)
    b = np.abs(epoch.means - epoch.latent @ epoch.target).max()
    assert found["bias_term"][-1] == pytest.approx(math.sqrt(pushed @ inverse @ pushed))
    assert found["contracted_bound"] == pytest.approx([b * math.sqrt(5), b * math.sqrt(21)])
    names = ("bias_term", "worst_bias_term", "contracted_bound", "naive_bound")
    for own, worst, contracted, naive in zip(*(found[name] for name in names), strict=True):
        assert own <= worst <= min(contracted, naive)


def test_regret_stays_below_what_the_lemmas_promise_and_they_below_the_trivial(realization):
    found = MEASURES["algorithm-1"](realization, burn_in=9, catalogue=20_000)
    regret, lemma, trivial, theorem = (
        np.array(found[name])
        for name in ("regret", "lemma_bound", "trivial_bound", "theorem_bound")
    )
    assert np.all(regret <= lemma)
    assert np.all(lemma <= trivial * (1 + 1e-12))
    assert np.all(trivial < theorem)
    assert found["round"][-1] == 60


def test_the_theorem_at_large_horizons_is_the_sum_of_its_parts_and_becomes_informative(realization):
    found = MEASURES["algorithm-1"](realization, burn_in=9)
    parts = [found[f"far_{part}"] for part in ("startup", "learning", "representation")]
    assert found["far_theorem"] == pytest.approx(np.sum(parts, axis=0))
    assert found["far_horizon"][-1] == 1e12
    assert found["far_theorem"][0] > found["far_trivial"][0]
    assert found["far_theorem"][-1] < found["far_trivial"][-1]


def test_a_spectrum_separates_before_imputation_is_stable(realization):
    found = MEASURES["representation"](realization, points=4)
    assert 0 < found["rank_found"][0] < found["imputation_stable"][0]


# Coverage


def test_an_ellipsoid_around_the_truth_misses_by_hand():
    # One arm z = 1 of mean 0 with target 0 and λ = 1: after the first round the estimate is η/2,
    # its error in V = 2 is |η|/√2, and β² = (S + R sqrt(log 2 + 2 log 2))². With S = 0 and R = 1
    # it misses for |η| > √(2·3·log 2) = 2.039, from the second round on.
    epoch = Surrogate(np.ones((2, 1, 1)), np.zeros((2, 1)), np.zeros(1))
    radii = Radii(1.0, 0.0, 1.0, 0.5, 0.0)
    noise = np.array([[2.03, 0.0], [2.05, 0.0], [-2.05, 0.0], [9.0, 0.0]])
    assert missed_by(epoch, noise, radii).tolist() == [0.0, 0.75]
    wider = radii._replace(misspecification=1.0)
    assert missed_by(epoch, noise, wider).tolist() == [0.0, 0.25]


def test_a_miss_is_remembered():
    epoch = Surrogate(np.ones((30, 1, 1)), np.zeros((30, 1)), np.zeros(1))
    noise = np.zeros((1, 30))
    noise[0, 0] = 9.0
    shares = missed_by(epoch, noise, Radii(1.0, 0.0, 1.0, 0.5, 0.0))
    assert shares.tolist() == [0.0] + [1.0] * 29


def test_replicates_play_optimistically():
    # Two arms of equal estimate 0: the longer one is wider, is played, and alone is learned.
    epoch = Surrogate(np.array([[[1.0], [2.0]]] * 2), np.array([[0.0, 8.0]] * 2), np.array([4.0]))
    assert epoch.largest_bias == 4.0
    # V = 5, response 16: error (16/5 - 4)² · 5 = 3.2 against (1 + sqrt(log 5 + 2 log 2))² = 7.5.
    radii = Radii(1.0, 1.0, 1.0, 0.5, 0.0)
    assert missed_by(epoch, np.zeros((1, 2)), radii).tolist()[1:] == [1.0]  # 16 > 1 at the start
    low = Surrogate(epoch.latent, epoch.means / 8, np.array([0.5]))
    assert missed_by(low, np.zeros((1, 2)), radii).tolist() == [0.0, 0.0]


def test_without_the_misspecification_part_a_poor_subspace_is_missed():
    world = LowRankWorld(dim=30, rank=2, observe_prob=0.5, latent="uniform", loadings=(1.0, 1.0))
    found = MEASURES["coverage"](
        world.replace(noise_scale=0.1).realize(seed=0),
        burn_in=3,
        replicates=50,
    )
    assert found["missed_without_bias_part"][-1] > 0.9
    assert found["missed_with_bias_part"][-1] <= 0.2
    assert found["missed_true_subspace"][-1] <= 0.2


# Freezing


def turned(angle):
    return np.array([[math.cos(angle)], [math.sin(angle)]])


def test_one_turn_of_the_projection_by_hand():
    # P turns from e1 to e2 after x_1 = (1, 1), η_1 = 1; then x_2 = (0, 2), η_2 = 3.
    samples = RegressionSamples(
        np.array([[1.0, 1.0], [0.0, 2.0]]),
        np.array([1.0, 3.0]),
        np.array([turned(0.0), turned(math.pi / 2)]),
    )
    steps = steps_of(samples, ridge=1.0)
    # New noise: e2 · 6. Old noise (1, 1) was (1, 0) and becomes (0, 1): it moves by (-1, 1).
    assert steps["drift"] == pytest.approx([math.sqrt(2) / 7])
    assert steps["squared_widths"] == pytest.approx([1.0])  # of x_1: 1/λ
    assert steps["potential_sum"] == pytest.approx([2 * math.log(2)])


def test_reestimating_every_round_changes_the_past_and_freezing_does_not(realization):
    found = MEASURES["freezing"](realization, burn_in=9)
    assert found["reestimated_round"] == [float(t) for t in range(11, 61)]
    # An epoch's first round continues no regression.
    assert [t for t in range(11, 61) if float(t) not in found["frozen_round"]] == [20, 40]
    assert min(found["reestimated_drift"]) > 0
    assert max(found["frozen_drift"]) == 0


# Excitation


def test_offered_arms_excite_two_directions_and_chosen_ones_less(realization):
    found = MEASURES["excitation"](realization, points=4)
    assert found["example_offered"] == pytest.approx([0.5] * 4)  # I/2 in every round
    assert 0 < found["example_oful"][-1] < found["example_offered"][-1]


# The study


def test_the_likelihood_finds_the_subspace_and_the_covariance_comes_near_it():
    """Of exact rank: after 60 rounds the one is right to 1e-3, the other off by a tenth."""
    world = LowRankWorld(dim=12, rank=2, horizon=60, observe_prob=0.5)
    told = MEASURES["subspace-error"](world.realize(0), points=6)
    assert told["round"] == [1.0, 2.0, 5.0, 12.0, 26.0, 60.0]
    assert {len(values) for values in told.values()} == {6}
    assert told["likelihood_distance"][-1] < 1e-3
    assert 0.02 < told["covariance_distance"][-1] < 0.3
    assert told["root_rate"][-1] == told["covariance_distance"][-1]
    assert told["root_rate"][0] == pytest.approx(told["root_rate"][-1] * 60**0.5)


def test_a_subspace_is_measured_where_there_is_one():
    with pytest.raises(InvalidSettingError, match="low-rank world, got Hard"):
        MEASURES["subspace-error"](HardInstanceWorld(horizon=5).realize(0))
