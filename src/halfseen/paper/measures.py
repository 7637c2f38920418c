"""What the theory study measures: errors of the representation, coverage, excitation."""

import math
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from halfseen import checks, seeding, theory
from halfseen.baselines.ambient import AmbientOful
from halfseen.errors import InvalidSettingError
from halfseen.linear.covariance import Moments
from halfseen.linear.eigen import align, distance, top_eigenpairs
from halfseen.linear.ridge import Confidence
from halfseen.theory import Problem
from halfseen.tofu.imputation import coordinates, fill
from halfseen.values import BoolArray, FloatArray
from halfseen.worlds.base import Realization, Round
from halfseen.worlds.lowrank import LowRankRealization

_FAILURE_PROB = 0.1  # δ of every bound but that of the confidence set
_IMPUTE_RIDGE = 1e-9  # ρ where imputation is compared with its bounds
_MISS_PROB = 0.2  # δ_e of the confidence set
_MISS_RIDGE = 1e-5  # ρ there
_POINTS = 15  # positions of a list


def bounded_low_rank(realization: Realization) -> LowRankRealization:
    """Return the realization if it is that of a low-rank world with bounded arms."""
    if not isinstance(realization, LowRankRealization):
        raise InvalidSettingError(
            f"the theory is measured in a low-rank world, got {type(realization).__name__}"
        )
    if not math.isfinite(realization.problem().arm_bound):
        raise InvalidSettingError(
            'latent must be "uniform" where bounds are measured, because other arms are unbounded, '
            f"got {realization.world.latent!r}"
        )
    return realization


def log_spaced(last: int) -> list[int]:
    """Return at most 15 whole numbers from 1 to `last`, evenly spaced in their logarithm.

    >>> log_spaced(100)
    [1, 2, 3, 4, 5, 7, 10, 14, 19, 27, 37, 52, 72, 100]
    """
    return [int(number) for number in np.unique(np.round(np.geomspace(1, last, _POINTS)))]


def leading_basis(moments: Moments, realization: LowRankRealization) -> FloatArray:
    """Return the estimated basis of known rank, as an epoch would freeze it now."""
    world = realization.world
    return top_eigenpairs(moments.covariance(world.observe_prob), world.rank)[1]


# Errors of what is estimated from masked arms


Point = dict[str, float]


def representation(realization: Realization) -> dict[str, list[float]]:
    """Return the errors of covariance, subspace, imputation and surrogate, and their bounds.

    After some rounds, evenly spaced in their logarithm, the corrected covariance and its leading
    subspace are compared with the truth, and the next slate, which the estimate has not seen, is
    filled in. The realization has bounded arms and at least two rounds.

    Imputation and surrogate errors are those of the worst arm of a slate; `*_bound_actual` is the
    lemma with the measured distance of the subspaces in place of ε. `rank_found` and
    `imputation_stable` are single numbers of arms: those at which the covariance error is at most
    λ_m/4, so that a threshold separates the spectrum, and at which the subspace is within p/32, as
    stable imputation requires. Between positions both are interpolated, and beyond the last one
    extrapolated, by the rate n^(-1/2).
    """
    truth = bounded_low_rank(realization)
    rounds = log_spaced(truth.world.horizon - 1)
    moments = Moments(truth.world.dim)
    found: list[Point] = []
    for n_absorbed, round in enumerate(truth.rounds()):
        if n_absorbed in rounds:
            basis = leading_basis(moments, truth)
            point = {"n_arms": moments.n_arms, **_of_covariance(truth, moments, basis)}
            errors = _of_arms(truth, basis, round)
            bounds = _bounds(truth.problem(), n_absorbed, point["aligned_distance"])
            found.append({**point, **errors, **bounds})
        moments.absorb(round.slate)
    lists = {name: [float(point[name]) for point in found] for name in found[0]}
    problem, arms = truth.problem(), lists["n_arms"]
    separated = arms_needed(arms, lists["covariance_error"], problem.last_eigenvalue / 4)
    stable = arms_needed(arms, lists["subspace_distance"], problem.observe_prob / 32)
    return lists | {"rank_found": [separated], "imputation_stable": [stable]}


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


def _of_arms(truth: LowRankRealization, basis: FloatArray, round: Round) -> Point:
    """Return the errors of a round's arms in a basis that was estimated without them."""
    slate, means, _, arms = round
    filled = np.linalg.norm(fill(basis, slate, _IMPUTE_RIDGE) - arms, axis=1)
    surrogate = np.abs(means - coordinates(basis, slate, _IMPUTE_RIDGE) @ (basis.T @ truth.theta))
    return {"imputation_error": float(filled.max()), "surrogate_error": float(surrogate.max())}


def _bounds(problem: Problem, round: int, actual: float) -> Point:
    when: dict[str, Any] = {"round": round, "failure_prob": _FAILURE_PROB}
    error = theory.subspace_error_at(problem, **when)
    bounds = {
        "covariance_bound": theory.covariance_error_at(problem, **when),
        "subspace_bound": error,
        # What holds for all bounded vectors: a larger bound says nothing.
        "trivial_subspace": 1.0,
        "trivial_surrogate": 2 * problem.theta_bound * problem.arm_bound,
    }
    known = {"arm_bound": problem.arm_bound, "observe_prob": problem.observe_prob}
    for name, size in (("bound", error), ("bound_actual", actual)):
        known["subspace_error"] = size
        bounds[f"imputation_{name}"] = theory.imputation_error(**known)
        paid = theory.misspecification(theta_bound=problem.theta_bound, **known)
        bounds[f"surrogate_{name}"] = paid
    return bounds


def gram(realization: Realization) -> dict[str, list[float]]:
    """Return how little the worst arm shows of the true subspace.

    `smallest` is the least λ_min(U_Ω'U_Ω)/p among all arms, `floor` the lemma's 3/4.
    """
    truth = bounded_low_rank(realization)
    p = truth.world.observe_prob
    smallest = min(
        float(seen_gram_eigenvalues(truth.basis, slate.mask).min()) for slate, *_ in truth.rounds()
    )
    return {"smallest": [smallest / p], "floor": [theory.gram_floor_true(p) / p]}


def seen_gram_eigenvalues(basis: FloatArray, mask: BoolArray) -> FloatArray:
    """Return the smallest eigenvalue of U_Ω'U_Ω of every arm, shape (n_arms,).

    >>> seen_gram_eigenvalues(np.full((4, 1), 0.5), np.array([[True, False, True, True]])).tolist()
    [0.75]
    """
    dim, rank = basis.shape
    squares = (basis[:, :, None] * basis[:, None, :]).reshape(dim, rank * rank)
    grams = (mask.astype(np.float64) @ squares).reshape(-1, rank, rank)
    return np.asarray(np.linalg.eigvalsh(grams)[:, 0], dtype=np.float64)


# Coverage of the confidence set


class Surrogate(NamedTuple):
    """The rounds of an epoch in the coordinates of one basis.

    `latent` has shape (n_rounds, n_arms, rank), `means` (n_rounds, n_arms); `target` is ϑ* = Û'θ,
    which the ellipsoid should cover.
    """

    latent: FloatArray
    means: FloatArray
    target: FloatArray

    @property
    def largest_bias(self) -> float:
        """The smallest b for which the premise of the confidence set holds."""
        return float(np.abs(self.means - self.latent @ self.target).max())


def coverage(
    realization: Realization, *, burn_in: int = 30, replicates: int = 400, ridge: float = 0.01
) -> dict[str, list[float]]:
    """Return the share of epochs whose ellipsoid misses ϑ* in any round.

    One epoch is played `replicates` times, optimistically, with the same slates and fresh noise: in
    the true subspace, and in the one estimated from the `burn_in` slates before it, there with and
    without the misspecification part of the radius (b is the largest bias of any offered arm).
    λ is `ridge` (if small, the noise part of the radius dominates), δ_e is 0.2. The realization
    must have bounded arms.
    """
    truth = bounded_low_rank(realization)
    checks.integer("burn_in", burn_in, 1, truth.world.horizon - 1)
    checks.integer("replicates", replicates, 1)
    moments = Moments(truth.world.dim)
    for slate, *_ in islice(truth.rounds(), burn_in):
        moments.absorb(slate)
    estimated = _surrogate(truth, leading_basis(moments, truth), burn_in)
    exact = _surrogate(truth, truth.basis, burn_in)
    random = seeding.stream(truth.seed, "measure", "coverage")
    noise_scale = truth.world.noise_scale
    noise = noise_scale * random.standard_normal((replicates, len(exact.means)))
    known = {"theta_bound": 1.0, "noise_scale": noise_scale, "failure_prob": _MISS_PROB}
    cases = {
        "missed_true_subspace": (exact, exact.largest_bias),
        "missed_with_bias_part": (estimated, estimated.largest_bias),
        "missed_without_bias_part": (estimated, 0.0),
    }
    found = {"failure_prob": [_MISS_PROB]}
    for name, (epoch, bias) in cases.items():
        confidence = Confidence(ridge=ridge, misspecification=bias, **known)
        found[name] = [float(missed_by(epoch, noise, ridge, confidence).mean())]
    return found


def _surrogate(truth: LowRankRealization, basis: FloatArray, first: int) -> Surrogate:
    rounds = list(islice(truth.rounds(), first, None))
    latent = [coordinates(basis, round.slate, _MISS_RIDGE) for round in rounds]
    means = np.array([round.means for round in rounds])
    return Surrogate(np.array(latent), means, basis.T @ truth.theta)


def missed_by(
    epoch: Surrogate, noise: FloatArray, ridge: float, confidence: Confidence
) -> BoolArray:
    """Return which replicates miss in any round, shape (n_replicates,).

    `noise` has shape (n_replicates, n_rounds); the radius decides both choices and misses.
    """
    n, rank = len(noise), epoch.latent.shape[2]
    grams = np.tile(ridge * np.eye(rank), (n, 1, 1))
    responses, missed = np.zeros((n, rank)), np.zeros(n, dtype=np.bool_)
    for round, (points, means) in enumerate(zip(epoch.latent, epoch.means, strict=True)):
        inverses = np.linalg.inv(grams)
        estimates = np.einsum("rij,rj->ri", inverses, responses)
        log_dets = np.linalg.slogdet(grams)[1] - rank * np.log(ridge)
        beta = np.array([confidence.total(log_det, round) for log_det in log_dets.tolist()])
        off = estimates - epoch.target
        missed |= np.einsum("ri,rij,rj->r", off, grams, off) > beta**2
        squares = np.einsum("ki,rij,kj->rk", points, inverses, points, optimize=True)
        scores = estimates @ points.T + beta[:, None] * np.sqrt(np.maximum(squares, 0.0))
        chosen = np.argmax(scores, axis=1)
        played = points[chosen]
        grams += played[:, :, None] * played[:, None, :]
        responses += played * (means[chosen] + noise[:, round])[:, None]
    return missed


# Excitation


def excitation(realization: Realization) -> dict[str, list[float]]:
    """Return the smallest eigenvalues of the second moments of offered and of chosen arms.

    Every slate is {e₁, e₂} and e₁ pays 1, e₂ nothing; OFUL plays, with the noise and the horizon
    of the realization. Moments are averages over all rounds; that of the offered arms is I/2.
    """
    truth = bounded_low_rank(realization)
    noise_scale, horizon = truth.world.noise_scale, truth.world.horizon
    noise = noise_scale * seeding.stream(truth.seed, "measure", "excitation").normal(size=horizon)
    policy, n_seconds = AmbientOful(dim=2, noise_scale=noise_scale), 0
    for each in noise:
        decision = policy.choose(np.eye(2))
        policy.learn(decision, float(decision.arm == 0) + each)
        n_seconds += decision.arm
    share = min(n_seconds, horizon - n_seconds) / horizon
    return {"example_offered": [0.5], "example_oful": [share]}
