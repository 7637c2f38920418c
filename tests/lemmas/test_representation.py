"""Covariance, subspace, rank, Gram and imputation lemmas, where their bounds are not trivial.

Every statistical test names its estimator, its standard error and its false-alarm rate. Where a
bound holds with ease, another test shows what breaks it: the first one could have failed.
"""

import math
from itertools import islice

import numpy as np
import pytest
from lemma_tools import (
    RoundWorld,
    at_most,
    hidden_at_random,
    round_latents,
    spread_basis,
    worst_tilt,
)
from numpy.linalg import norm

from halfseen import theory
from halfseen.linear.covariance import Moments
from halfseen.linear.eigen import align, distance, top_eigenpairs
from halfseen.paper.measures import seen_gram_eigenvalues
from halfseen.tofu.imputation import coordinates, fill
from halfseen.tofu.rank import Known, PaperThreshold
from halfseen.values import Slate
from halfseen.worlds.lowrank import LowRankWorld

FAILURE_PROB = 0.1
WORLD = LowRankWorld(dim=6, rank=2, n_arms=2000, horizon=400, latent="uniform")


def population_covariance(realization):
    lift = realization.basis * realization.loadings
    return lift @ lift.T


def slate_covariances(realization):
    """Return the corrected covariance of each slate by itself: independent replicates."""
    estimates = []
    for slate, *_ in realization.rounds():
        moments = Moments(slate.dim)
        moments.absorb(slate)
        estimates.append(moments.covariance(realization.world.observe_prob))
    return np.array(estimates)


def with_wrong_diagonal(estimates, observe_prob):
    """Return what dividing every entry by p² would have given: a diagonal 1/p times too large."""
    return estimates * (1 + (1 / observe_prob - 1) * np.eye(estimates.shape[-1]))


# The corrected covariance


def error_bound_of_one_slate(realization):
    once = realization.problem().replace(horizon=1)
    return theory.covariance_error_at(once, round=1, failure_prob=FAILURE_PROB)


@pytest.mark.parametrize("observe_prob", [1.0, 0.8, 0.5, 0.3])
def test_the_covariance_error_exceeds_its_bound_no_more_often_than_stated(observe_prob):
    # Estimator: how many of 400 independent slates exceed the bound for δ = .1. At most 40 are
    # promised, standard error 6, rejected above 70: false alarm 2e-6.
    realization = WORLD.replace(observe_prob=observe_prob).realize(seed=2)
    deviations = slate_covariances(realization) - population_covariance(realization)
    errors = norm(deviations, 2, axis=(1, 2))
    bound, once = error_bound_of_one_slate(realization), realization.problem().replace(horizon=1)
    kept = [theory.covariance_event_holds(once, [e], failure_prob=FAILURE_PROB) for e in errors]
    assert kept == (errors <= bound).tolist()
    assert kept.count(False) <= at_most(len(errors), FAILURE_PROB)
    # Loose by a factor of 5 to 9 at the quantile that it speaks of, not more.
    assert bound / 9 < np.quantile(errors, 1 - FAILURE_PROB) < bound / 5


@pytest.mark.parametrize("observe_prob", [0.5, 0.3])
def test_a_wrong_diagonal_breaks_the_covariance_bound(observe_prob):
    realization = WORLD.replace(observe_prob=observe_prob).realize(seed=2)
    wrong = with_wrong_diagonal(slate_covariances(realization), observe_prob)
    errors = norm(wrong - population_covariance(realization), 2, axis=(1, 2))
    assert np.count_nonzero(errors > error_bound_of_one_slate(realization)) > 350


def fitted_slope(sizes, logs):
    """Return the least-squares slope of replicated logs, shape (n_sizes, n_replicates), and its se.

    The standard error uses the pooled spread of the replicates, not the residuals of the line.
    """
    centred = np.log(sizes) - np.log(sizes).mean()
    slope = centred @ logs.mean(axis=1) / (centred @ centred)
    variance = logs.var(axis=1, ddof=1).mean() / logs.shape[1]
    return slope, math.sqrt(variance / (centred @ centred))


@pytest.mark.parametrize("observe_prob", [0.9, 0.5])
def test_covariance_and_subspace_errors_fall_like_one_over_root_n(observe_prob):
    # Estimator: slope of log error on log n, 60 independent replicates at each of 6 sizes; its
    # standard error is about .02. At 5 sigma the false alarm is 6e-7 for each of the two, and a
    # slope of -.35 or -.65 could not hide.
    rng = np.random.default_rng(3)
    basis = np.linalg.qr(rng.standard_normal((6, 2)))[0]
    sizes = 1000 * 2 ** np.arange(6)
    logs = np.empty((2, len(sizes), 60))
    for row, column in np.ndindex(logs.shape[1:]):
        moments = Moments(6)
        arms = round_latents(rng, sizes[row], 2) @ basis.T
        moments.absorb(hidden_at_random(rng, arms, observe_prob))
        covariance = moments.covariance(observe_prob)
        logs[0, row, column] = math.log(norm(covariance - basis @ basis.T, 2))
        logs[1, row, column] = math.log(distance(top_eigenpairs(covariance, 2)[1], basis))
    for errors in logs:
        slope, standard_error = fitted_slope(sizes, errors)
        assert abs(slope + 0.5) <= 5 * standard_error
        assert standard_error < 0.022


# The subspace


class Walk:
    """Subspace errors of one realization and their bounds, after every slate."""

    def __init__(self, realization):
        world, true = realization.world, realization.basis
        moments, found = Moments(world.dim), []
        for slate, *_ in realization.rounds():
            moments.absorb(slate)
            found.append(top_eigenpairs(moments.covariance(world.observe_prob), world.rank)[1])
        self.distances = np.array([distance(basis, true) for basis in found])
        self.aligned = np.array([norm(basis @ align(basis, true) - true, 2) for basis in found])
        problem = realization.problem()
        self.bounds = np.array(
            [
                theory.subspace_error_at(problem, round=t, failure_prob=FAILURE_PROB)
                for t in range(1, world.horizon + 1)
            ]
        )


@pytest.mark.parametrize(("observe_prob", "n_arms"), [(0.9, 4000), (0.6, 8000)])
def test_subspace_and_aligned_basis_stay_within_epsilon_in_all_rounds_at_once(observe_prob, n_arms):
    # Estimator: how many of 40 worlds exceed ε_t in any of 20 rounds, for δ = .1. At most 4 are
    # promised, standard error 1.9, rejected above 13: false alarm 2e-5.
    world = WORLD.replace(observe_prob=observe_prob, n_arms=n_arms, horizon=20)
    walks = [Walk(world.replace(loadings=(0.95, 1.05)).realize(seed)) for seed in range(40)]
    assert all(np.all(walk.bounds[10:] < 1) for walk in walks)  # there the bound says something
    for errors in ([walk.distances for walk in walks], [walk.aligned for walk in walks]):
        broken = sum(np.any(made > walk.bounds) for made, walk in zip(errors, walks, strict=True))
        assert broken <= at_most(len(walks), FAILURE_PROB)
    # The bound is 150 to 280 times the error: Bernstein, Davis-Kahan and C_sub = 12 multiply.
    share = np.median([walk.distances / walk.bounds for walk in walks])
    assert 1 / 300 < share < 1 / 130


def test_a_wrong_diagonal_leaves_the_subspace_bound():
    # One direction, unevenly spread, 10⁶ arms: ε is small enough to tell right from wrong.
    rng, n_arms, observe_prob = np.random.default_rng(4), 10**6, 0.3
    basis = np.array([[3.0], [1.0], [1.0], [1.0], [1.0], [1.0]]) / math.sqrt(14)
    moments = Moments(6)
    arms = round_latents(rng, n_arms, 1) @ basis.T
    moments.absorb(hidden_at_random(rng, arms, observe_prob))
    covariance = moments.covariance(observe_prob)
    bound = theory.subspace_error(
        n_arms=n_arms,
        arm_bound=1.0,
        top_eigenvalue=1.0,
        last_eigenvalue=1.0,
        observe_prob=observe_prob,
        log_term=theory.log_term(dim=6, failure_prob=FAILURE_PROB, horizon=1, round=1),
    )
    wrong = with_wrong_diagonal(covariance, observe_prob)
    assert bound < 0.1
    assert distance(top_eigenpairs(covariance, 1)[1], basis) <= bound
    assert distance(top_eigenpairs(wrong, 1)[1], basis) > 2 * bound


# The rank


def selected_ranks(realization, rounds):
    """Return the rank that the paper's threshold selects after each of these numbers of slates."""
    problem, world = realization.problem(), realization.world
    rule, moments, ranks = PaperThreshold(), Moments(world.dim), {}
    slates = (slate for slate, *_ in realization.rounds())
    for t, slate in enumerate(islice(slates, max(rounds)), start=1):
        moments.absorb(slate)
        if t in rounds:
            known = Known(
                n_arms=moments.n_arms,
                round=t,
                horizon=world.horizon,
                observe_prob=world.observe_prob,
                failure_prob=4 * FAILURE_PROB,  # the rule spends a quarter
                epoch_failure_prob=FAILURE_PROB,
                arm_bound=problem.arm_bound,
                top_eigenvalue=problem.top_eigenvalue,
            )
            selection = rule.select(moments.covariance(world.observe_prob), known)
            ranks[t] = selection.basis.shape[1]
    return ranks


@pytest.mark.parametrize(("observe_prob", "n_arms"), [(0.9, 300), (0.5, 1500)])
def test_the_paper_threshold_finds_the_rank_in_time_and_nothing_too_early(observe_prob, n_arms):
    # Estimator: how many of 25 worlds break any of three claims, for δ_rank = .1. At most 2.5 are
    # promised, standard error 1.5, rejected above 10: false alarm 1.2e-5.
    #   ρ_t > λ_1: rank 0;  always: at most m;  ρ_t ≤ λ_m/4, and so at t_rank: exactly m.
    world = WORLD.replace(observe_prob=observe_prob, n_arms=n_arms, horizon=1000)
    broken, seen, first_found = 0, set(), []
    for seed in range(25):
        realization = world.replace(loadings=(0.7, 1.0)).realize(seed)
        problem = realization.problem()
        length = theory.rank_identification_length(problem, failure_prob=FAILURE_PROB)
        ranks = selected_ranks(realization, {*range(1, 30), *range(30, length, 10), length})
        claims = [rank_is_as_claimed(problem, t, rank) for t, rank in ranks.items()]
        broken += not all([*claims, ranks[length] == 2])
        seen |= set(ranks.values())
        first_found.append(min(t for t, rank in ranks.items() if rank == 2) / length)
    assert broken <= at_most(25, FAILURE_PROB)
    assert seen == {0, 1, 2}
    # t_rank is late: in these worlds the same rule finds the rank 15 to 40 times earlier.
    assert 1 / 40 < min(first_found) < max(first_found) < 1 / 15


def rank_is_as_claimed(problem, round, rank):
    error = theory.covariance_error_at(problem, round=round, failure_prob=FAILURE_PROB)
    least, most = theory.identified_ranks(problem, error)
    return least <= rank <= most


# Seen rows of the basis


@pytest.mark.parametrize(("dim", "rank"), [(4096, 1), (4096, 2), (1024, 4)])
@pytest.mark.parametrize("level", [0.3, 0.1])
def test_masks_see_the_true_basis_as_badly_as_allowed_no_more_often(dim, rank, level):
    # p is where the Chernoff step promises one mask a Gram matrix below 3p/4 with probability
    # `level` at most. Estimator: share of 2000 masks, standard error .010 or .007, 5 sigma, false
    # alarm 4e-7 or 7e-7. For a floor of p in place of 3p/4 the same test rejects.
    observe_prob = theory.incoherence_constant() * rank / dim * math.log(rank / level)
    masks = np.random.default_rng(5).random((2000, dim)) < observe_prob
    smallest = seen_gram_eigenvalues(spread_basis(dim, rank), masks)
    below = np.count_nonzero(smallest < theory.gram_floor_true(observe_prob))
    assert below <= at_most(2000, level)
    assert level / 100 < below / 2000 < level / 4  # Chernoff's bound is loose by that much
    assert np.count_nonzero(smallest < observe_prob) > at_most(2000, level)


@pytest.mark.parametrize("rank", [1, 2])
def test_all_masks_of_a_run_see_the_true_basis_well_if_p_meets_its_condition(rank):
    # Estimator: how many of 200 runs of 5 rounds with 4 arms have any Gram matrix below 3p/4, for
    # δ = .2. At most 40 are promised, standard error 5.7, rejected above 68: false alarm 1.2e-6.
    sizes = {"dim": 4096, "rank": rank, "n_arms": 4, "horizon": 5}
    observe_prob = theory.observe_prob_condition(**sizes, incoherence=1.0, failure_prob=0.2)
    assert observe_prob < 0.1
    masks = np.random.default_rng(6).random((4000, 4096)) < observe_prob
    smallest = seen_gram_eigenvalues(spread_basis(4096, rank), masks).reshape(200, 20)
    broken = np.any(smallest < theory.gram_floor_true(observe_prob), axis=1)
    assert 0 < np.count_nonzero(broken) <= at_most(200, 0.2)


@pytest.mark.parametrize("observe_prob", [0.3, 0.5, 0.8])
def test_an_estimated_basis_keeps_half_of_p_even_if_tilted_in_the_worst_way(observe_prob):
    # Deterministic for each mask that sees the true basis well; the tilt is made for the mask.
    rng, true, sine = np.random.default_rng(7), spread_basis(1024, 2), observe_prob / 32
    for mask in rng.random((50, 1024)) < observe_prob:
        before = seen_gram_eigenvalues(true, mask[None])[0]
        assert before >= theory.gram_floor_true(observe_prob)
        estimated, _ = worst_tilt(true, mask, sine)
        after = seen_gram_eigenvalues(estimated, mask[None])[0]
        assert distance(estimated, true) == pytest.approx(sine)
        assert after >= theory.gram_floor(observe_prob)
        # Weyl: it falls by the distance at most, and at p = 1/2 by almost as much.
        share = 2 * math.sqrt(before * (1 - before))
        assert before - after <= sine * (1 + 1e-9)
        assert before - after == pytest.approx(share * sine, rel=0.05)


@pytest.mark.parametrize("observe_prob", [0.3, 0.5, 0.8])
def test_a_basis_25_times_farther_off_loses_half_of_p(observe_prob):
    rng, true = np.random.default_rng(7), spread_basis(1024, 2)
    for mask in rng.random((50, 1024)) < observe_prob:
        estimated, _ = worst_tilt(true, mask, 25 * observe_prob / 32)
        smallest = seen_gram_eigenvalues(estimated, mask[None])[0]
        assert smallest < theory.gram_floor(observe_prob)


# Filled arms and surrogate means


def actual_error(estimated, true):
    """Return the ε that the proof uses: both projectors and aligned bases are within it."""
    aligned = norm(estimated @ align(estimated, true) - true, 2)
    return max(distance(estimated, true), aligned)


def representation_errors(estimated, theta, arms, slate):
    """Return the largest imputation error, surrogate error and feature norm of a slate's arms."""
    latent = coordinates(estimated, slate)
    surrogate = latent @ (estimated.T @ theta)
    imputed = norm(fill(estimated, slate) - arms, axis=1).max()
    return imputed, np.abs(arms @ theta - surrogate).max(), norm(latent, axis=1).max()


def representation_bounds(error, observe_prob, arm_bound, theta_bound):
    known = {"arm_bound": arm_bound, "observe_prob": observe_prob, "subspace_error": error}
    surrogate = theory.misspecification(theta_bound=theta_bound, **known)
    imputed = theory.imputation_error(**known)
    return imputed, surrogate, arm_bound + imputed


@pytest.mark.parametrize("observe_prob", [0.3, 0.5, 0.8])
def test_the_surrogate_error_is_at_most_the_sum_of_two_errors_of_features(observe_prob):
    # Step by step as in the proof, for arms at random: S times the error of the features, which is
    # at most what lies outside of the estimated subspace plus what is filled in wrongly.
    rng, true = np.random.default_rng(9), spread_basis(512, 2)
    estimated = worst_tilt(true, rng.random(512) < observe_prob, observe_prob / 32)[0]
    arms, theta = round_latents(rng, 200, 2) @ true.T, 3.0 * true @ [0.6, 0.8]
    slate = hidden_at_random(rng, arms, observe_prob)
    filled, projector = fill(estimated, slate), estimated @ estimated.T
    missed = norm(arms - filled @ projector, axis=1)
    outside, imputed = norm(arms - arms @ projector, axis=1), norm(arms - filled, axis=1)
    surrogate = coordinates(estimated, slate) @ (estimated.T @ theta)
    assert np.all(np.abs(arms @ theta - surrogate) <= 3.0 * missed + 1e-12)
    assert np.all(missed <= outside + imputed + 1e-12)
    steps = theory.surrogate_steps(
        theta_bound=3.0,
        arm_bound=math.sqrt(2),
        observe_prob=observe_prob,
        subspace_error=actual_error(estimated, true),
    )
    assert np.all(outside <= steps.outside + 1e-12)
    assert np.all(imputed <= steps.imputed)
    assert np.all(missed <= steps.feature)
    assert np.all(np.abs(arms @ theta - surrogate) <= steps.surrogate)
    _, whole, _ = representation_bounds(
        actual_error(estimated, true), observe_prob, math.sqrt(2), 3.0
    )
    assert steps.surrogate == pytest.approx(whole)


@pytest.mark.parametrize("observe_prob", [0.3, 0.5, 0.8])
@pytest.mark.parametrize("share", [1.0, 1e-5])
def test_filled_arms_and_surrogate_means_of_a_basis_tilted_in_the_worst_way(observe_prob, share):
    # Deterministic, with the basis's actual error, from the largest that is allowed down to almost
    # none. The bounds are within a factor of 5 (imputation) and 10 (surrogate) of what an adversary
    # achieves who knows the mask.
    rng, true = np.random.default_rng(8), spread_basis(512, 2)
    for mask in rng.random((40, 512)) < observe_prob:
        estimated, inside = worst_tilt(true, mask, share * observe_prob / 32)
        assert seen_gram_eigenvalues(estimated, mask[None])[0] >= observe_prob / 2
        arms, theta = 2.0 * (true @ inside)[None], 3.0 * true @ inside
        made = representation_errors(estimated, theta, arms, Slate(arms, mask[None]))
        bounds = representation_bounds(actual_error(estimated, true), observe_prob, 2.0, 3.0)
        shares = np.array(made) / bounds
        assert np.all(shares <= 1)
        assert np.all(shares >= [1 / 5, 1 / 10, 0.9])


def test_after_the_burn_in_of_the_theory_every_bound_of_the_representation_holds():
    # The one test in which nothing is forced: t_b slates of 5000 arms are absorbed, and ε is the
    # theory's. δ = .1; the events are checked, so that the rest is deterministic.
    world = RoundWorld(
        dim=32, rank=1, n_arms=5000, horizon=1000, observe_prob=0.9, noise_scale=0.1, seed=10
    )
    problem = world.problem()
    burn_in = theory.burn_in_length(problem, failure_prob=FAILURE_PROB)
    moments = Moments(32)
    for slate in world.catalogue(burn_in * 5000, block=5000):
        moments.absorb(slate)
    error = theory.subspace_error_at(problem, round=burn_in, failure_prob=FAILURE_PROB)
    estimated = top_eigenpairs(moments.covariance(0.9), 1)[1]
    assert 0.99 * 0.9 / 32 < error <= 0.9 / 32
    assert actual_error(estimated, world.basis) <= error
    rng = np.random.default_rng(11)
    arms = world.arms(rng, 5000)
    slate = hidden_at_random(rng, arms, 0.9)
    assert np.all(seen_gram_eigenvalues(estimated, slate.mask) >= 0.45)
    made = representation_errors(estimated, world.theta, arms, slate)
    bounds = representation_bounds(error, 0.9, problem.arm_bound, problem.theta_bound)
    shares = np.array(made) / bounds
    assert np.all(shares <= 1)
    assert bounds[2] <= 2 * problem.arm_bound
    # With ε loose by 170, imputation and surrogate errors are hundreds of times below their bounds.
    assert 1 / 1000 < shares[0] < 1 / 500
    assert 1 / 4000 < shares[1] < 1 / 1500
