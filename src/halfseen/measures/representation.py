"""Errors of the estimated subspace, of imputation and of surrogate rewards, and their bounds."""

import math

import numpy as np

from halfseen.core import theory
from halfseen.core.factors import Arms, Factors, Spectrum, fit_factors
from halfseen.core.latent import coordinates, fill
from halfseen.core.moments import Moments
from halfseen.core.subspace import align, distance
from halfseen.core.theory import Problem
from halfseen.measures.tools import bounded_low_rank, leading_basis, log_spaced, low_rank
from halfseen.values import BoolArray, FloatArray
from halfseen.worlds.base import Realization, Round
from halfseen.worlds.lowrank import LowRankRealization

Point = dict[str, float]


def representation(
    realization: Realization,
    *,
    points: int = 15,
    failure_prob: float = 0.1,
    impute_ridge: float = 1e-9,
) -> dict[str, list[float]]:
    """Return the errors of covariance, subspace, imputation and surrogate, and their bounds.

    After each of `points` rounds, evenly spaced in their logarithm, the corrected covariance and
    its leading subspace are compared with the truth, and the next slate, which the estimate has
    not seen, is filled in. The realization has bounded arms and at least two rounds.

    Imputation and surrogate errors are those of the worst and of the median arm of a slate;
    `*_bound_actual` is the lemma with the measured distance of the subspaces in place of ε;
    `gram_smallest` is λ_min(Û_Ω'Û_Ω)/p of the worst arm; `share_below_floor` is the share of arms
    below the lemma's 1/2. `rank_found` and `imputation_stable` are single numbers of arms: those at
    which the covariance error is at most λ_m/4, so that a threshold separates the spectrum, and at
    which the subspace is within p/32, as stable imputation requires. Between positions both are
    interpolated, and beyond the last one extrapolated, by the rate n^(-1/2).
    """
    truth = bounded_low_rank(realization)
    rounds = log_spaced(truth.world.horizon - 1, points)
    moments = Moments(truth.world.dim)
    found: list[Point] = []
    for n_absorbed, round in enumerate(truth.rounds()):
        if n_absorbed in rounds:
            basis = leading_basis(moments, truth)
            point = {"n_arms": moments.n_arms, **_of_covariance(truth, moments, basis)}
            errors = _of_arms(truth, basis, round, impute_ridge)
            bounds = _bounds(truth.problem(), n_absorbed, failure_prob, point["aligned_distance"])
            found.append({**point, **errors, **bounds})
        moments.absorb(round.slate)
    lists = {name: [float(point[name]) for point in found] for name in found[0]}
    problem = truth.problem()
    limits = {"rank_found": ("covariance_error", problem.last_eigenvalue / 4)}
    limits["imputation_stable"] = ("subspace_distance", problem.observe_prob / 32)
    first = {
        name: [arms_needed(lists["n_arms"], lists[value], limit)]
        for name, (value, limit) in limits.items()
    }
    return lists | first


def arms_needed(n_arms: list[float], errors: list[float], limit: float) -> float:
    """Return how many arms bring an error that falls like n^(-1/2) down to a limit.

    >>> arms_needed([100.0, 400.0], [0.4, 0.2], 0.1), arms_needed([100.0, 400.0], [0.4, 0.1], 0.2)
    (1600.0, 400.0)
    """
    at = next((at for at, error in enumerate(errors) if error <= limit), None)
    if at == 0:
        return n_arms[0]
    before = len(errors) - 1 if at is None else at - 1
    needed = n_arms[before] * (errors[before] / limit) ** 2
    return needed if at is None else min(needed, n_arms[at])


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
    truth: LowRankRealization, basis: FloatArray, round: Round, impute_ridge: float
) -> Point:
    """Return the errors of a round's arms in a basis that was estimated without them."""
    slate, means, _, arms = round
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
        # What holds for all bounded vectors: a larger bound says nothing.
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


def gram(
    realization: Realization, *, points: int = 15, failure_prob: float = 0.1
) -> dict[str, list[float]]:
    """Return how little the worst arm so far shows of the true subspace.

    `smallest` is the least λ_min(U_Ω'U_Ω)/p among the first n arms, `floor` the lemma's 3/4, and
    `needed_observe_prob` the smallest p for which the lemma promises it (above 1: no p does).
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


def subspace_error(realization: Realization, *, points: int = 16) -> dict[str, list[float]]:
    """Return how far two estimates of known rank are from the subspace as slates come in.

    `covariance_distance` is ‖P̂ − P‖₂ of the leading subspace of the corrected covariance, as in
    the paper; `likelihood_distance` that of the most likely one, by EM from the former and from
    the most likely one at the point before. `root_rate` falls like 1/√round and ends where
    `covariance_distance` does. Points are evenly spaced in the logarithm of the round.
    """
    truth = low_rank(realization)
    rounds = log_spaced(truth.world.horizon, points)
    moments, seen = Moments(truth.world.dim), list[FloatArray]()
    found: dict[str, list[float]] = {"covariance_distance": [], "likelihood_distance": []}
    model: Factors | None = None
    for round, (slate, *_) in enumerate(truth.rounds(), start=1):
        moments.absorb(slate)
        seen.append(np.where(slate.mask, slate.values, np.nan))
        if round not in rounds:
            continue
        estimate = leading_basis(moments, truth)
        found["covariance_distance"].append(distance(estimate, truth.basis))
        model = _likeliest(np.concatenate(seen), truth.world.rank, model)
        found["likelihood_distance"].append(distance(_span(model), truth.basis))
    last = found["covariance_distance"][-1]
    rate = [last * math.sqrt(rounds[-1] / round) for round in rounds]
    return {"round": [float(round) for round in rounds], **found, "root_rate": rate}


def _likeliest(table: FloatArray, rank: int, before: Factors | None) -> Factors:
    """Return the most likely model of arms, shape (n, dim) with NaN where hidden."""
    arms = Arms(table, through_origin=True)
    starts = [Spectrum(arms).start(rank), *(() if before is None else (before,))]
    fits = [fit_factors(arms, start, common_noise=True) for start in starts]
    return max(fits, key=lambda fit: fit.objective).model


def _span(model: Factors) -> FloatArray:
    """Return an orthonormal basis of the subspace of a model, shape (dim, rank)."""
    loadings = model.scale[:, None] * model.loadings.T
    basis: FloatArray = np.linalg.svd(loadings, full_matrices=False)[0]
    return basis


def seen_gram_eigenvalues(basis: FloatArray, mask: BoolArray) -> FloatArray:
    """Return the smallest eigenvalue of U_Ω'U_Ω of every arm, shape (n_arms,).

    >>> seen_gram_eigenvalues(np.full((4, 1), 0.5), np.array([[True, False, True, True]])).tolist()
    [0.75]
    """
    dim, rank = basis.shape
    squares = (basis[:, :, None] * basis[:, None, :]).reshape(dim, rank * rank)
    grams = (mask.astype(np.float64) @ squares).reshape(-1, rank, rank)
    return np.asarray(np.linalg.eigvalsh(grams)[:, 0], dtype=np.float64)
