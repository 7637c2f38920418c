"""Regret inside one epoch, in which the representation is frozen, and over all epochs.

At the end, the bounds of two variants: with unknown rank, and with a single estimate of the
subspace after τ rounds. The best τ for the latter grows like T^(2/3), and so does its bound;
repeated estimates in epochs improve this to sqrt(T).

Letters: n rounds in the epoch, Γ its potential (a log-determinant ratio), q_t the width of the
played feature, β_t the confidence radius, b the misspecification, G_T and A_rep their envelopes
over all epochs.
"""

import math
from dataclasses import dataclass, replace

from halfseen import checks
from halfseen.errors import InvalidSettingError
from halfseen.theory.representation import (
    C_SUB,
    Problem,
    burn_in_length,
    log_term,
    misspecification_at,
    representation_level,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegretBound:
    """An upper bound on regret, in four parts.

    `startup` are the rounds before the representation is accurate, charged at the worst rate,
    `ridge` and `noise` the cost of learning m numbers from rewards, `representation` the cost of an
    estimated subspace and filled arms.
    """

    startup: float
    ridge: float
    noise: float
    representation: float

    @property
    def total(self) -> float:
        """The bound itself, the sum of the parts."""
        return self.startup + self.ridge + self.noise + self.representation


def potential_sums(*, n_rounds: int, potential: float) -> tuple[float, float]:
    """Return bounds on the sums of q_t² and of q_t over an epoch, if λ ≥ B_e²: 2Γ and sqrt(2nΓ).

    Paper: eq:potential_sums

    >>> potential_sums(n_rounds=4, potential=2.0)
    (4.0, 4.0)
    """
    return 2 * potential, math.sqrt(2 * n_rounds * potential)


def contracted_bias_bound(*, misspecification: float, n_samples: int) -> float:
    """Return b sqrt(n), which n misspecified rewards add to the confidence radius.

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


def confidence_term(failure_prob: float) -> float:
    """Return H_e = 2 log(1/δ_e).

    Paper: lemma:uniform_epoch_envelopes
    """
    return -2 * math.log(checks.failure_prob("failure_prob", failure_prob))


def epoch_regret_bound(
    problem: Problem,
    *,
    n_rounds: int,
    potential: float,
    ridge: float,
    confidence: float,
    misspecification: float,
) -> RegretBound:
    """Return the bound on R_e: 2√2 S sqrt(λΓn) + 2√2 R sqrt(Γ(Γ + H_e) n) + 2bn(sqrt(Γ) + 1).

    Paper: eq:epoch_regret_expanded
    """
    learned = 2 * potential_sums(n_rounds=n_rounds, potential=potential)[1]
    return RegretBound(
        startup=0.0,
        ridge=math.sqrt(ridge) * problem.theta_bound * learned,
        noise=problem.noise_scale * math.sqrt(potential + confidence) * learned,
        representation=2 * misspecification * n_rounds * (math.sqrt(potential) + 1),
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
    """Return A_rep = 4√2 C_sub S B_X (κ/p²) sqrt((m/K) log(8dT/δ_rep)): b_e ≤ A_rep / sqrt(τ_e).

    Paper: lemma:uniform_epoch_envelopes
    Paper: eq:be_unknown_rank_bound
    """
    logarithm = math.log(8 * problem.dim * problem.horizon / representation_failure_prob)
    learned = math.sqrt(problem.rank / problem.n_arms * logarithm)
    scale = 4 * math.sqrt(2) * C_SUB * problem.theta_bound * problem.arm_bound
    return scale * problem.conditioning / problem.observe_prob**2 * learned


def uniform_epoch_regret_bound(
    problem: Problem, *, n_rounds: int, confidence: float, misspecification: float
) -> RegretBound:
    """Return `epoch_regret_bound` with Γ = G_T and λ = 4 B_X².

    `confidence` is H_e of one epoch, or the H_T that the theorems use for all of them.

    Paper: eq:epoch_regret_uniform
    Paper: lemma:epoch_regret
    Paper: eq:main_proof_imported_epoch_bound
    """
    return epoch_regret_bound(
        problem,
        n_rounds=n_rounds,
        potential=potential_envelope(problem),
        ridge=theorem_ridge(problem),
        confidence=confidence,
        misspecification=misspecification,
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


def post_burn_in_regret_bound(
    problem: Problem, *, confidence: float, representation_failure_prob: float
) -> RegretBound:
    """Return the bound on the regret of all epochs together; `confidence` is H_T.

    In a doubling schedule Σ sqrt(n_e) and Σ n_e/sqrt(τ_e) are at most 4 sqrt(T), as in one epoch of
    16 T rounds with b = A_rep/(4 sqrt(T)).

    Paper: eq:main_regret_post_burnin_explicit
    """
    cost = representation_cost(problem, representation_failure_prob=representation_failure_prob)
    return uniform_epoch_regret_bound(
        problem,
        n_rounds=16 * problem.horizon,
        confidence=confidence,
        misspecification=cost / (4 * math.sqrt(problem.horizon)),
    )


def main_regret_bound(problem: Problem, *, failure_prob: float) -> RegretBound:
    """Return the explicit bound on R_T that holds with probability 1 - δ.

    2 B_X S t_b plus the bound over all epochs, where δ_rep = δ/2, t_b is taken at δ_rep/4, and
    H_T = 2 log(2(E + 1)/δ) counts the epochs that begin after t_b within the horizon (at least
    one). The condition on p is a premise: see `observe_prob_condition` at δ_rep/4.

    Paper: thm:main_regret

    Examples
    --------
    >>> problem = Problem(
    ...     dim=30, rank=3, n_arms=8, horizon=400, observe_prob=0.8, arm_bound=1.0,
    ...     last_eigenvalue=0.25, incoherence=1.0, theta_bound=1.0, noise_scale=0.05,
    ... )
    >>> main_regret_bound(problem, failure_prob=0.05).total > trivial_regret_bound(problem)
    True
    """
    burn_in = burn_in_length(problem, failure_prob=representation_level(failure_prob / 2))
    epochs = max(1, n_epochs(burn_in=burn_in, horizon=problem.horizon))
    learning = post_burn_in_regret_bound(
        problem,
        confidence=confidence_term(failure_prob / (2 * epochs)),
        representation_failure_prob=failure_prob / 2,
    )
    return replace(learning, startup=2 * problem.arm_bound * problem.theta_bound * burn_in)


def trivial_regret_bound(problem: Problem) -> float:
    """Return 2 S B_X T, the largest possible regret of any policy."""
    return 2 * problem.theta_bound * problem.arm_bound * problem.horizon


# With unknown rank


def rank_identification_length(problem: Problem, *, failure_prob: float) -> int:
    """Return t_rank = ⌈512 B_X² λ̄ / (λ_m² p² K) · log(2dT/δ_rank)⌉, after which ρ_t ≤ λ_m/4.

    Paper: eq:t_rank_explicit
    Paper: eq:rho_after_t_rank

    Raises
    ------
    InvalidSettingError
        The arms or their spectrum are unbounded, so no number of rounds suffices.
    """
    if not math.isfinite(problem.conditioning):
        raise InvalidSettingError(
            "the rank-identification time needs a finite arm_bound and top_eigenvalue, "
            f"got {problem.arm_bound!r} and {problem.top_eigenvalue!r}"
        )
    scale = 512 * problem.conditioning**2 * problem.rank
    scale /= problem.observe_prob**2 * problem.n_arms
    term = log_term(dim=problem.dim, failure_prob=failure_prob, horizon=problem.horizon, round=1)
    return math.ceil(scale * term)


def identification_length(
    problem: Problem, *, rank_failure_prob: float, representation_failure_prob: float
) -> int:
    """Return t_id, the larger of t_b (at δ_rep/4) and t_rank (at δ_rank).

    Paper: lemma:unknown_rank_representation
    """
    level = representation_level(representation_failure_prob)
    burn_in = burn_in_length(problem, failure_prob=level)
    return max(burn_in, rank_identification_length(problem, failure_prob=rank_failure_prob))


def rank_adaptive_n_epochs(horizon: int) -> int:
    """Return E_T = ⌈log2 T⌉ + 1, among which the rank-adaptive form divides δ_oful.

    Paper: thm:unknown_rank

    >>> rank_adaptive_n_epochs(400)
    10
    """
    return n_epochs_bound(horizon) - 1


def rank_adaptive_regret_bound(
    problem: Problem,
    *,
    rank_failure_prob: float,
    representation_failure_prob: float,
    oful_failure_prob: float,
) -> RegretBound:
    """Return the explicit bound on R_T that holds with probability 1 - δ_rank - δ_rep - δ_oful.

    4 B_X S (t_id + 1), because τ_⋆ ≤ 2 (t_id + 1), plus the same bound over epochs as with known
    rank, where H_T = 2 log(E_T/δ_oful).

    Paper: eq:unknown_rank_explicit_regret
    Paper: eq:tau_star_bound
    Paper: thm:unknown_rank
    """
    waiting = identification_length(
        problem,
        rank_failure_prob=rank_failure_prob,
        representation_failure_prob=representation_failure_prob,
    )
    learning = post_burn_in_regret_bound(
        problem,
        confidence=confidence_term(oful_failure_prob / rank_adaptive_n_epochs(problem.horizon)),
        representation_failure_prob=representation_failure_prob,
    )
    return replace(learning, startup=4 * problem.arm_bound * problem.theta_bound * (waiting + 1))


# With a single estimate of the subspace


def two_phase_regret_bound(problem: Problem, *, split: int, failure_prob: float) -> RegretBound:
    """Return the bound on R_T when the subspace is estimated once, after `split` = τ rounds.

    2 B_X S τ plus the bound on one epoch of T - τ rounds, with b_τ of τ slates. Half of δ goes to
    the representation, half to the epoch. The bound is proved for τ ≥ t_b, as for epochs; below t_b
    it is only a formula.

    Paper: lemma:epoch_regret
    """
    split = checks.integer("split", split, 1, problem.horizon)
    level = representation_level(failure_prob / 2)
    exploit = uniform_epoch_regret_bound(
        problem,
        n_rounds=problem.horizon - split,
        confidence=confidence_term(failure_prob / 2),
        misspecification=misspecification_at(problem, epoch_start=split + 1, failure_prob=level),
    )
    return replace(exploit, startup=2 * problem.arm_bound * problem.theta_bound * split)


def power_split(horizon: int, power: float) -> int:
    """Return ⌈T^a⌉ for a in (0, 1); 2/3 balances τ and T/sqrt(τ) without their constants.

    >>> power_split(1000, 2 / 3), power_split(1001, 2 / 3), power_split(10_000, 0.5)
    (100, 101, 100)
    """
    return max(1, math.ceil(math.pow(horizon, power) * (1 - 1e-12)))
