"""Potential, misspecification and regret of a run of Algorithm 1, and their bounds."""

from dataclasses import replace

import numpy as np

from halfseen.core import theory
from halfseen.core.theory import Problem
from halfseen.measures.runs import EpochRun, FrozenEpoch, algorithm_1, play_epochs
from halfseen.measures.tools import bounded_low_rank, log_spaced
from halfseen.values import FloatArray
from halfseen.worlds.base import Realization

_FARTHEST = 10**12
_SIGN_STEPS = 20


def algorithm_1_run(
    realization: Realization,
    *,
    burn_in: int = 249,
    catalogue: int = 0,
    failure_prob: float = 0.1,
    impute_ridge: float = 1e-9,
    points: int = 15,
) -> dict[str, list[float]]:
    """Return what the lemmas of one epoch and the theorem bound, on a run of Algorithm 1.

    Lists over the samples of the longest epoch (`n_samples`): potential, widths and
    misspecification, see `potential_of` and `bias_of`. Over the rounds of the run (`round`): regret
    and its bounds. Over horizons far beyond (`far_horizon`): the theorem and its parts.

    Parameters
    ----------
    realization : LowRankRealization
        With bounded arms.
    burn_in : int
        t_b; the theory's is longer than any run.
    catalogue : int
        Arms absorbed before the first round. Without them ε is vacuous in a run of this length.
    failure_prob : float
        δ of the theorem.
    impute_ridge : float
        ρ of the imputation.
    points : int
        Positions of each list, evenly spaced in their logarithm.
    """
    truth = bounded_low_rank(realization)
    problem = truth.problem()
    policy = algorithm_1(
        truth, burn_in=burn_in, failure_prob=failure_prob, impute_ridge=impute_ridge
    )
    ridge = theory.theorem_ridge(problem)
    run = play_epochs(policy, truth, ridge=ridge, impute_ridge=impute_ridge, catalogue=catalogue)
    longest = max(run.epochs, key=lambda epoch: epoch.n_rounds)
    samples = log_spaced(longest.n_rounds, points)
    return {
        "n_samples": [float(n) for n in samples],
        **potential_of(longest, problem, samples),
        **bias_of(longest, samples),
        **_regret_of(run, problem, failure_prob, points),
        **_far_horizons(problem, failure_prob, points),
    }


def potential_of(
    epoch: FrozenEpoch, problem: Problem, samples: list[int]
) -> dict[str, list[float]]:
    """Return Γ, Σq² and Σq after n samples of an epoch, and what bounds each of them."""
    known = {"arm_bound": problem.arm_bound, "observe_prob": problem.observe_prob}
    # b_e is proportional to ε, so the policy's b_e gives its ε.
    per_error = theory.misspecification(
        theta_bound=problem.theta_bound, subspace_error=1.0, **known
    )
    feature_bound = theory.feature_bound(
        subspace_error=epoch.record.misspecification / per_error, **known
    )
    sizes = np.cumsum(epoch.widths)
    squares = np.cumsum(epoch.widths**2)
    found: dict[str, list[float]] = {
        "potential": [float(epoch.potentials[n]) for n in samples],
        "potential_bound": [
            theory.potential_bound(
                n_rounds=n, rank=problem.rank, feature_bound=feature_bound, ridge=epoch.ridge
            )
            for n in samples
        ],
        "squared_widths": [float(squares[n - 1]) for n in samples],
        "widths": [float(sizes[n - 1]) for n in samples],
    }
    sums = [
        theory.potential_sums(n_rounds=n, potential=potential)
        for n, potential in zip(samples, found["potential"], strict=True)
    ]
    found["squared_widths_bound"] = [pair[0] for pair in sums]
    found["widths_bound"] = [pair[1] for pair in sums]
    return found


def bias_of(epoch: FrozenEpoch, samples: list[int]) -> dict[str, list[float]]:
    """Return ‖Σzξ‖ in V⁻¹ after n samples, and the naive and the contracted bound on it.

    b is the largest bias of any offered arm of the epoch: the smallest for which the lemma's
    premise holds. `bias_term` has the run's own ξ, `worst_bias_term` the worst ξ = ±b found for the
    same features; `triangle_sum` is the middle step of the naive argument, bΣ‖z_s‖ in V_s⁻¹.
    """
    b = float(np.abs(epoch.biases).max())
    own = epoch.biases[np.arange(epoch.n_rounds), epoch.chosen]
    summed = np.cumsum(epoch.widths)
    found: dict[str, list[float]] = {
        "bias_term": [],
        "worst_bias_term": [],
        "triangle_sum": [b * float(summed[n - 1]) for n in samples],
        "naive_bound": [],
        "contracted_bound": [],
    }
    for n in samples:
        features, inverse = epoch.played[:n], np.linalg.inv(epoch.grams[n])
        potential = float(epoch.potentials[n])
        found["bias_term"].append(_pushed(features, inverse, own[:n]))
        found["worst_bias_term"].append(b * _worst_push(features, inverse))
        found["naive_bound"].append(
            theory.naive_bias_bound(misspecification=b, n_samples=n, potential=potential)
        )
        found["contracted_bound"].append(
            theory.contracted_bias_bound(misspecification=b, n_samples=n)
        )
    ratios = np.divide(found["naive_bound"], found["contracted_bound"])
    return {**found, "naive_over_contracted": [float(ratio) for ratio in ratios]}


def _pushed(features: FloatArray, inverse: FloatArray, errors: FloatArray) -> float:
    total = features.T @ errors
    return float(np.sqrt(total @ inverse @ total))


def _worst_push(features: FloatArray, inverse: FloatArray) -> float:
    """Return the largest ‖Σ±z‖ in V⁻¹ that repeated updates of the signs find."""
    signs = np.ones(len(features))
    for _ in range(_SIGN_STEPS):
        signs = np.where(features @ (inverse @ (features.T @ signs)) >= 0, 1.0, -1.0)
    return _pushed(features, inverse, signs)


def _regret_of(
    run: EpochRun, problem: Problem, failure_prob: float, points: int
) -> dict[str, list[float]]:
    """Return the regret so far, and its bounds by the lemmas, the theorem and the trivial argument.

    `lemma_bound` sums 2βq + 2b of every round, or 2·S·B_X where that is less; `theorem_bound` is
    the theorem's for a horizon of that many rounds.
    """
    most = 2 * problem.theta_bound * problem.arm_bound
    instant = np.full(len(run.losses), most)
    for epoch in run.epochs:
        first = epoch.record.round - 1
        promised = 2 * epoch.radii(problem) * epoch.widths + 2 * epoch.record.misspecification
        instant[first : first + epoch.n_rounds] = np.minimum(promised, most)
    regret, bound = np.cumsum(run.losses), np.cumsum(instant)
    rounds = log_spaced(len(regret), points)
    return {
        "round": [float(round) for round in rounds],
        "regret": [float(regret[round - 1]) for round in rounds],
        "lemma_bound": [float(bound[round - 1]) for round in rounds],
        "theorem_bound": [
            theory.main_regret_bound(
                replace(problem, horizon=round), failure_prob=failure_prob
            ).total
            for round in rounds
        ],
        "trivial_bound": [most * round for round in rounds],
    }


def _far_horizons(problem: Problem, failure_prob: float, points: int) -> dict[str, list[float]]:
    horizons = log_spaced(_FARTHEST, 2 * points)
    far = [replace(problem, horizon=horizon) for horizon in horizons]
    bounds = [theory.main_regret_bound(there, failure_prob=failure_prob) for there in far]
    level = theory.representation_level(failure_prob / 4)  # as if the rank were chosen
    naive = [theory.naive_regret_bound(there, failure_prob=failure_prob) for there in far]
    return {
        "far_horizon": [float(horizon) for horizon in horizons],
        "far_theorem": [bound.total for bound in bounds],
        "far_startup": [bound.startup for bound in bounds],
        "far_learning": [bound.ridge + bound.noise for bound in bounds],
        "far_representation": [bound.representation for bound in bounds],
        "far_burn_in": [float(theory.theorem_burn_in(there, failure_prob=level)) for there in far],
        "far_rank_length": [
            float(theory.rank_identification_length(there, failure_prob=failure_prob / 4))
            for there in far
        ],
        "far_naive_representation": [bound.representation for bound in naive],
        "far_naive_factor": [
            bound.representation / contracted.representation
            for bound, contracted in zip(naive, bounds, strict=True)
        ],
        "far_trivial": [theory.trivial_regret_bound(there) for there in far],
    }
