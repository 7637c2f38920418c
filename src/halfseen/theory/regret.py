"""Regret inside one epoch, in which the representation is frozen, and over all epochs.

Letters: n rounds in the epoch, Γ its potential (a log-determinant ratio), q_t the width of the
played feature, β_t the confidence radius, b the misspecification, G_T and A_rep their envelopes
over all epochs.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from halfseen import checks
from halfseen.theory.problem import Problem
from halfseen.theory.representation import C_SUB, representation_level, theorem_burn_in


@dataclass(frozen=True, slots=True, kw_only=True)
class RegretBound:
    """An upper bound on regret, in four parts.

    Parameters
    ----------
    startup : float
        Rounds before the representation is accurate, charged at the worst rate.
    ridge, noise : float
        The cost of learning m numbers from rewards: regularisation and noise.
    representation : float
        The cost of using an estimated subspace and filled arms.
    """

    startup: float
    ridge: float
    noise: float
    representation: float

    @property
    def total(self) -> float:
        """The bound itself, the sum of the parts."""
        return self.startup + self.ridge + self.noise + self.representation


def log_det_ratio(*, log_det: float, rank: int, ridge: float) -> float:
    """Return Γ_e = log det V - m log λ, the potential of an epoch from its gram's log-determinant.

    Paper: lem:epoch_potential

    >>> round(log_det_ratio(log_det=math.log(16), rank=2, ridge=2.0), 4)  # log(16 / 2²)
    1.3863
    """
    return log_det - rank * math.log(ridge)


def potential_bound(*, n_rounds: int, rank: int, feature_bound: float, ridge: float) -> float:
    """Return m log(1 + n B_e²/(m λ)), an upper bound on Γ_e of n rounds.

    Paper: lem:epoch_potential

    >>> potential_bound(n_rounds=2, rank=2, feature_bound=1.0, ridge=1.0) == 2 * math.log(2)
    True
    """
    return rank * math.log1p(n_rounds * feature_bound**2 / (rank * ridge))


def potential_sums(*, n_rounds: int, potential: float) -> tuple[float, float]:
    """Return bounds on the sums of q_t² and of q_t over an epoch: 2Γ and sqrt(2nΓ).

    They need λ ≥ B_e², which makes every q_t at most 1.

    Paper: eq:potential_sums

    >>> potential_sums(n_rounds=4, potential=2.0)
    (4.0, 4.0)
    """
    return 2 * potential, math.sqrt(2 * n_rounds * potential)


def contracted_bias_bound(*, misspecification: float, n_samples: int) -> float:
    """Return b sqrt(n), which n misspecified rewards add to the confidence radius.

    The leverage matrix of the features is a contraction, so the joint norm of the errors enters.

    Paper: lem:epoch_bias_term

    >>> contracted_bias_bound(misspecification=0.5, n_samples=16)
    2.0
    """
    return misspecification * math.sqrt(n_samples)


def naive_bias_bound(*, misspecification: float, n_samples: int, potential: float) -> float:
    """Return b sqrt(2nΓ), from the triangle inequality: larger by about sqrt(2m log n).

    Paper: eq:naive-bias-triangle

    >>> naive_bias_bound(misspecification=0.5, n_samples=16, potential=2.0)
    4.0
    """
    return misspecification * potential_sums(n_rounds=n_samples, potential=potential)[1]


def surrogate_regret_bound(*, radius: float, width: float) -> float:
    """Return 2βq, the largest regret of an optimistic choice in the surrogate model.

    Paper: lemma:surrogate_optimism
    """
    return 2 * radius * width


def instant_regret_bound(*, radius: float, width: float, misspecification: float) -> float:
    """Return 2βq + 2b, the largest true regret of an optimistic choice.

    Paper: lemma:true_vs_surrogate

    >>> instant_regret_bound(radius=2.0, width=0.5, misspecification=0.25)
    2.5
    """
    return surrogate_regret_bound(radius=radius, width=width) + 2 * misspecification


def epoch_regrets(regrets: ArrayLike, *, burn_in: int) -> tuple[float, ...]:
    """Return the regret of the burn-in and of each epoch, R_e, of one run.

    Paper: eq:app-epoch-regret

    Parameters
    ----------
    regrets : array, (n_rounds,)
        Regret of each round; epoch e holds the rounds from 2^e (t_b + 1) on, counted from 1.
    burn_in : int
        t_b.

    Examples
    --------
    >>> epoch_regrets([1.0, 1.0, 2.0, 2.0, 3.0], burn_in=1)
    (1.0, 3.0, 5.0)
    """
    losses = np.asarray(regrets, dtype=np.float64)
    count = n_epochs(burn_in=burn_in, horizon=losses.size)
    firsts = [(burn_in + 1) * 2**epoch - 1 for epoch in range(count)]
    return tuple(float(part.sum()) for part in np.split(losses, firsts))


def epoch_regret_raw(*, radii: ArrayLike, widths: ArrayLike, misspecification: float) -> float:
    """Return 2 Σ β_t q_t + 2bn, the bound on R_e from the radii and widths of a run.

    Paper: eq:epoch_regret_raw

    >>> epoch_regret_raw(radii=[1.0, 2.0], widths=[1.0, 0.5], misspecification=0.25)
    5.0
    """
    paid = np.asarray(radii, dtype=np.float64) * np.asarray(widths, dtype=np.float64)
    return float(2 * paid.sum() + 2 * misspecification * paid.size)


def confidence_term(failure_prob: float) -> float:
    """Return H_e = 2 log(1/δ_e).

    Paper: lemma:uniform_epoch_envelopes
    """
    return -2 * math.log(checks.failure_prob("failure_prob", failure_prob))


def steady_radius_sum_bound(
    *,
    n_rounds: int,
    potential: float,
    ridge: float,
    theta_bound: float,
    noise_scale: float,
    confidence: float,
) -> float:
    """Return (sqrt(λ) S + R sqrt(Γ + H_e)) sqrt(2nΓ), an upper bound on Σ w_t q_t.

    w_t is the radius without its misspecification part, and `confidence` is H_e.

    Paper: eq:first_sum_bound
    """
    noise = noise_scale * math.sqrt(potential + confidence)
    radius = math.sqrt(ridge) * theta_bound + noise
    return radius * potential_sums(n_rounds=n_rounds, potential=potential)[1]


def growing_radius_sum_bound(*, n_rounds: int, potential: float, misspecification: float) -> float:
    """Return b n sqrt(Γ), an upper bound on Σ b sqrt(t - τ_e) q_t.

    Paper: eq:second_sum_bound
    """
    return misspecification * n_rounds * math.sqrt(potential)


def epoch_regret_bound(
    *,
    n_rounds: int,
    potential: float,
    ridge: float,
    theta_bound: float,
    noise_scale: float,
    confidence: float,
    misspecification: float,
) -> RegretBound:
    """Return the bound on R_e from the epoch's own potential and misspecification.

    2√2 S sqrt(λΓn) + 2√2 R sqrt(Γ(Γ + H_e) n) + 2bn(sqrt(Γ) + 1), where `confidence` is
    H_e = 2 log(1/δ_e).

    Paper: eq:epoch_regret_expanded
    """
    summed = 2 * potential_sums(n_rounds=n_rounds, potential=potential)[1]
    deviation = math.sqrt(potential + confidence)
    growing = growing_radius_sum_bound(
        n_rounds=n_rounds, potential=potential, misspecification=misspecification
    )
    return RegretBound(
        startup=0.0,
        ridge=math.sqrt(ridge) * theta_bound * summed,
        noise=noise_scale * deviation * summed,
        representation=2 * growing + 2 * misspecification * n_rounds,
    )


def theorem_ridge(problem: Problem) -> float:
    """Return λ = 4 B_X², the square of B_⋆ = 2 B_X, which bounds feature norms after t_b.

    Paper: lemma:uniform_epoch_envelopes
    """
    return 4 * problem.arm_bound**2


def potential_envelope(problem: Problem) -> float:
    """Return G_T = m log(1 + T/m), an upper bound on every Γ_e if λ = 4 B_X².

    Paper: lemma:uniform_epoch_envelopes
    """
    return problem.rank * math.log1p(problem.horizon / problem.rank)


def representation_cost(problem: Problem, *, representation_failure_prob: float) -> float:
    """Return A_rep, for which b_e ≤ A_rep / sqrt(τ_e) in every epoch.

    4√2 C_sub S B_X (κ/p²) sqrt((m/K) log(8dT/δ_rep)).

    Paper: lemma:uniform_epoch_envelopes
    Paper: eq:be_unknown_rank_bound
    """
    log_term = math.log(8 * problem.dim * problem.horizon / representation_failure_prob)
    learned = math.sqrt(problem.rank / problem.n_arms * log_term)
    scale = 4 * math.sqrt(2) * C_SUB * problem.theta_bound * problem.arm_bound
    return scale * problem.conditioning / problem.observe_prob**2 * learned


def uniform_epoch_regret_bound(
    problem: Problem,
    *,
    epoch_start: int,
    n_rounds: int,
    confidence: float,
    representation_failure_prob: float,
) -> RegretBound:
    """Return the bound on R_e with the envelopes G_T, A_rep and λ = 4 B_X² put in.

    2√2 S sqrt(λ G_T n) + 2√2 R sqrt(G_T(G_T + H) n) + 2 A_rep (sqrt(G_T) + 1) n / sqrt(τ_e), where
    `confidence` is H: H_e of one epoch, or the H_T that the theorems use for all of them.

    Paper: eq:epoch_regret_uniform
    Paper: lemma:epoch_regret
    Paper: eq:main_proof_imported_epoch_bound
    """
    cost = representation_cost(problem, representation_failure_prob=representation_failure_prob)
    return epoch_regret_bound(
        n_rounds=n_rounds,
        potential=potential_envelope(problem),
        ridge=theorem_ridge(problem),
        theta_bound=problem.theta_bound,
        noise_scale=problem.noise_scale,
        confidence=confidence,
        misspecification=cost / math.sqrt(epoch_start),
    )


def n_epochs(*, burn_in: int, horizon: int) -> int:
    """Return E + 1, the number of epochs of the doubling schedule that begin within the horizon.

    >>> n_epochs(burn_in=30, horizon=400), n_epochs(burn_in=400, horizon=400)
    (4, 0)
    """
    return (horizon // (burn_in + 1)).bit_length()


def n_epochs_bound(horizon: int) -> int:
    """Return ⌈log2 T⌉ + 2, an upper bound on the number of epochs of any doubling schedule.

    >>> n_epochs_bound(400), n_epochs_bound(1)
    (11, 2)
    """
    return (horizon - 1).bit_length() + 2


def known_rank_confidence_term(*, n_epochs: int, failure_prob: float) -> float:
    """Return H_T = 2 log(2(E + 1)/δ), from δ_e = δ/(2(E + 1)) in each of E + 1 epochs.

    Paper: thm:main_regret

    >>> round(known_rank_confidence_term(n_epochs=5, failure_prob=0.1), 4)  # 2 log(100)
    9.2103
    """
    return confidence_term(failure_prob / (2 * n_epochs))


def doubling_sum_bound(horizon: int) -> float:
    """Return 4 sqrt(T), which bounds Σ sqrt(n_e) and Σ n_e/sqrt(τ_e) of a doubling schedule.

    Paper: eq:main_regret_post_burnin_explicit
    """
    return 4 * math.sqrt(horizon)


def post_burn_in_regret_bound(
    problem: Problem, *, confidence: float, representation_failure_prob: float
) -> RegretBound:
    """Return the bound on the regret of all epochs together.

    8√2 S sqrt(λ G_T T) + 8√2 R sqrt(G_T(G_T + H_T) T) + 8 A_rep (sqrt(G_T) + 1) sqrt(T), with
    λ = 4 B_X² and `confidence` = H_T.

    Paper: eq:main_regret_post_burnin_explicit
    """
    rounds = doubling_sum_bound(problem.horizon)
    potential = potential_envelope(problem)
    cost = representation_cost(problem, representation_failure_prob=representation_failure_prob)
    learning = 2 * math.sqrt(2 * potential) * rounds
    return RegretBound(
        startup=0.0,
        ridge=math.sqrt(theorem_ridge(problem)) * problem.theta_bound * learning,
        noise=problem.noise_scale * math.sqrt(potential + confidence) * learning,
        representation=2 * cost * (math.sqrt(potential) + 1) * rounds,
    )


def main_regret_bound(problem: Problem, *, failure_prob: float) -> RegretBound:
    """Return the explicit bound on R_T that holds with probability 1 - δ.

    2 B_X S t_b plus the bound over all epochs, where δ_rep = δ/2, t_b is taken at δ_rep/4, and H_T
    counts the epochs that begin after t_b within the horizon (at least one).

    The condition on p is a premise: see `observe_prob_condition` at δ_rep/4.

    Paper: thm:main_regret

    Examples
    --------
    >>> problem = Problem(
    ...     dim=30, rank=3, n_arms=8, horizon=400, observe_prob=0.8, arm_bound=1.0,
    ...     last_eigenvalue=0.25, incoherence=1.0, theta_bound=1.0, noise_scale=0.05,
    ... )
    >>> is_vacuous(main_regret_bound(problem, failure_prob=0.05), problem)
    True
    """
    representation_failure_prob = failure_prob / 2
    level = representation_level(representation_failure_prob)
    burn_in = theorem_burn_in(problem, failure_prob=level)
    epochs = max(1, n_epochs(burn_in=burn_in, horizon=problem.horizon))
    learning = post_burn_in_regret_bound(
        problem,
        confidence=known_rank_confidence_term(n_epochs=epochs, failure_prob=failure_prob),
        representation_failure_prob=representation_failure_prob,
    )
    return replace(learning, startup=2 * problem.arm_bound * problem.theta_bound * burn_in)


def naive_regret_bound(problem: Problem, *, failure_prob: float) -> RegretBound:
    """Return the bound with the misspecification controlled by the triangle inequality.

    With the naive radius b sqrt(2nΓ) in place of b sqrt(n), the sum over an epoch becomes
    Σ 2b sqrt(2(t - τ_e)Γ) q_t ≤ 2√2 bnΓ, and the last term of the theorem
    8 A_rep (√2 G_T + 1) sqrt(T): of order κ m^(3/2) sqrt(T)/(p² sqrt(K)) instead of
    κ m sqrt(T)/(p² sqrt(K)).

    Paper: eq:naive-bias-triangle
    """
    contracted = main_regret_bound(problem, failure_prob=failure_prob)
    potential = potential_envelope(problem)
    loss = (math.sqrt(2) * potential + 1) / (math.sqrt(potential) + 1)
    return replace(contracted, representation=loss * contracted.representation)


def trivial_regret_bound(problem: Problem) -> float:
    """Return 2 S B_X T, the largest possible regret of any policy."""
    return 2 * problem.theta_bound * problem.arm_bound * problem.horizon


def is_vacuous(bound: RegretBound, problem: Problem) -> bool:
    """Return whether a bound is no better than the trivial one."""
    return bound.total >= trivial_regret_bound(problem)
