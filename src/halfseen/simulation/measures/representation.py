"""Covariance, subspace, imputation and surrogate errors beside their bounds, as arms come in."""

import numpy as np

from halfseen.core import theory
from halfseen.core.latent import coordinates, fill
from halfseen.core.moments import Moments
from halfseen.core.subspace import align, distance
from halfseen.core.theory import Problem
from halfseen.simulation.measures import register_measure
from halfseen.simulation.measures.tools import (
    bounded_low_rank,
    leading_basis,
    log_spaced,
    seen_gram_eigenvalues,
)
from halfseen.values import FloatArray, Slate
from halfseen.worlds.base import Realization
from halfseen.worlds.lowrank import LowRankRealization

Point = dict[str, float]


@register_measure("representation")
def representation(
    realization: Realization,
    *,
    points: int = 15,
    failure_prob: float = 0.1,
    impute_ridge: float = 1e-9,
) -> dict[str, list[float]]:
    """Return every error of the representation and its bound after more and more slates.

    After each of the chosen rounds the corrected covariance and its leading subspace are compared
    with the truth; the arms of the next slate, which the estimate has not seen, are filled in.

    Parameters
    ----------
    realization : LowRankRealization
        With bounded arms and at least two rounds.
    points : int
        How many rounds to look at, evenly spaced in their logarithm.
    failure_prob : float
        δ of every lemma.
    impute_ridge : float
        ρ of the imputation.

    Returns
    -------
    dict of lists
        One position per round looked at. The imputation and surrogate errors are those of the worst
        and of the median arm of a slate; `*_bound_actual` is the lemma with the measured distance
        of the subspaces in place of ε; `gram_smallest` is λ_min(Û_Ω'Û_Ω)/p of the worst arm and
        `share_below_floor` tells how many arms lie below the lemma's 1/2.
    """
    truth = bounded_low_rank(realization)
    rounds = log_spaced(truth.world.horizon - 1, points)
    moments = Moments(truth.world.dim)
    found: list[Point] = []
    for round, (slate, means, _, arms, *_) in enumerate(truth.rounds(), start=1):
        if round - 1 in rounds:
            basis = leading_basis(moments, truth)
            point = {"n_arms": moments.n_arms, **_of_covariance(truth, moments, basis)}
            errors = _of_arms(truth, basis, (slate, means, arms), impute_ridge)
            bounds = _bounds(truth.problem(), round - 1, failure_prob, point["aligned_distance"])
            found.append({**point, **errors, **bounds})
        moments.absorb(slate)
    return {name: [float(point[name]) for point in found] for name in found[0]}


def _of_covariance(truth: LowRankRealization, moments: Moments, basis: FloatArray) -> Point:
    lift = truth.basis * truth.loadings
    off = moments.covariance(truth.world.observe_prob) - lift @ lift.T
    apart = distance(basis, truth.basis)
    aligned = np.linalg.norm(basis @ align(basis, truth.basis) - truth.basis, 2)
    return {
        "covariance_error": float(np.linalg.norm(off, 2)),
        "subspace_distance": apart,
        "aligned_distance": max(apart, float(aligned)),
    }


def _of_arms(
    truth: LowRankRealization,
    basis: FloatArray,
    offered: tuple[Slate, FloatArray, FloatArray],
    impute_ridge: float,
) -> Point:
    """Return the errors of one slate's arms in a basis that was estimated without them."""
    slate, means, arms = offered
    filled = np.linalg.norm(fill(basis, slate, impute_ridge) - arms, axis=1)
    surrogate = np.abs(means - coordinates(basis, slate, impute_ridge) @ (basis.T @ truth.theta))
    p = truth.world.observe_prob
    grams = seen_gram_eigenvalues(basis, slate.mask)
    return {
        "imputation_error": float(filled.max()),
        "imputation_median": float(np.median(filled)),
        "surrogate_error": float(surrogate.max()),
        "surrogate_median": float(np.median(surrogate)),
        "gram_smallest": float(grams.min()) / p,
        "share_below_floor": float(np.mean(grams < theory.gram_floor_estimated(p))),
    }


def _bounds(problem: Problem, round: int, failure_prob: float, actual: float) -> Point:
    error = theory.subspace_error_at(problem, round=round, failure_prob=failure_prob)
    bounds = {
        "covariance_bound": theory.covariance_error_at(
            problem, round=round, failure_prob=failure_prob
        ),
        "subspace_bound": error,
        "gram_floor": theory.gram_floor_estimated(problem.observe_prob) / problem.observe_prob,
        # Beyond these the bounds say no more than that vectors are bounded.
        "trivial_subspace": 1.0,
        "trivial_surrogate": 2 * problem.theta_bound * problem.arm_bound,
    }
    for name, size in (("bound", error), ("bound_actual", actual)):
        known = {
            "arm_bound": problem.arm_bound,
            "observe_prob": problem.observe_prob,
            "subspace_error": size,
        }
        bounds[f"imputation_{name}"] = theory.imputation_error(**known)
        bounds[f"surrogate_{name}"] = theory.misspecification(
            theta_bound=problem.theta_bound, **known
        )
    return bounds


@register_measure("gram")
def gram(
    realization: Realization, *, points: int = 15, failure_prob: float = 0.1
) -> dict[str, list[float]]:
    """Return how badly the worst arm so far shows the true subspace.

    `smallest` is the least λ_min(U_Ω'U_Ω)/p among the first n arms, `floor` the lemma's 3/4, and
    `needed_observe_prob` the p from which the lemma promises it for all arms; above 1 none does.
    """
    truth = bounded_low_rank(realization)
    problem, p = truth.problem(), truth.world.observe_prob
    least = [
        float(seen_gram_eigenvalues(truth.basis, slate.mask).min()) / p
        for slate, *_ in truth.rounds()
    ]
    so_far = np.minimum.accumulate(least)
    rounds = log_spaced(problem.horizon, points)
    needed = theory.observe_prob_condition(
        dim=problem.dim,
        rank=problem.rank,
        n_arms=problem.n_arms,
        horizon=problem.horizon,
        incoherence=problem.incoherence,
        failure_prob=failure_prob,
    )
    return {
        "n_arms": [float(round * problem.n_arms) for round in rounds],
        "smallest": [float(so_far[round - 1]) for round in rounds],
        "floor": [theory.gram_floor_true(p) / p] * len(rounds),
        "observe_prob": [p],
        "needed_observe_prob": [needed],
    }
