"""The regret bound of TOFU-POV with known rank, constants included."""

import math
from dataclasses import replace

from halfseen.theory.problem import Problem
from halfseen.theory.regret import (
    RegretBound,
    confidence_term,
    potential_envelope,
    representation_cost,
    theorem_ridge,
)
from halfseen.theory.regret import (
    n_epochs as count_epochs,
)
from halfseen.theory.rounds import representation_level, theorem_burn_in


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


def main_regret_bound(
    problem: Problem, *, failure_prob: float, n_epochs: int | None = None
) -> RegretBound:
    """Return the explicit bound on R_T that holds with probability 1 - δ.

    2 B_X S t_b plus the bound over all epochs, where δ_rep = δ/2, t_b is taken at δ_rep/4, and H_T
    counts the epochs that begin after t_b within the horizon (at least one). A policy that divides
    δ among more epochs should pass their number, for instance `n_epochs_bound(horizon)`.

    The condition on p is a premise: see `observe_prob_suffices` at δ_rep/4.

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
    if n_epochs is None:
        n_epochs = max(1, count_epochs(burn_in=burn_in, horizon=problem.horizon))
    learning = post_burn_in_regret_bound(
        problem,
        confidence=known_rank_confidence_term(n_epochs=n_epochs, failure_prob=failure_prob),
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
