"""The representation bounds of a whole `Problem`, round by round.

`failure_prob` is the δ of the lemma that a function evaluates. The theorems use the lemmas at a
smaller δ: see `representation_level`.
"""

from halfseen.theory import representation
from halfseen.theory.problem import Problem
from halfseen.theory.sampling import observe_prob_condition


def representation_level(representation_failure_prob: float) -> float:
    """Return δ_rep/4, the δ of the lemmas if the representation event may fail with δ_rep.

    The subspace lemma spends one quarter, the imputation lemma three.

    Paper: def:representation_event

    >>> representation_level(0.2)
    0.05
    """
    return representation_failure_prob / 4


def covariance_error_at(problem: Problem, *, round: int, failure_prob: float) -> float:
    """Return the bound on the covariance error after `round` slates (ρ_t for δ_rank)."""
    return representation.covariance_error(
        n_arms=round * problem.n_arms,
        arm_bound=problem.arm_bound,
        top_eigenvalue=problem.top_eigenvalue,
        observe_prob=problem.observe_prob,
        log_term=_log_term(problem, failure_prob),
    )


def subspace_error_at(problem: Problem, *, round: int, failure_prob: float) -> float:
    """Return ε_t, the bound on the subspace error after `round` slates."""
    return representation.subspace_error(
        n_arms=round * problem.n_arms,
        arm_bound=problem.arm_bound,
        top_eigenvalue=problem.top_eigenvalue,
        last_eigenvalue=problem.last_eigenvalue,
        observe_prob=problem.observe_prob,
        log_term=_log_term(problem, failure_prob),
    )


def theorem_burn_in(problem: Problem, *, failure_prob: float) -> int:
    """Return t_b, after which ε_t ≤ p/32."""
    return representation.burn_in_length(
        dim=problem.dim,
        n_arms=problem.n_arms,
        arm_bound=problem.arm_bound,
        top_eigenvalue=problem.top_eigenvalue,
        last_eigenvalue=problem.last_eigenvalue,
        observe_prob=problem.observe_prob,
        failure_prob=failure_prob,
        horizon=problem.horizon,
    )


def misspecification_at(problem: Problem, *, epoch_start: int, failure_prob: float) -> float:
    """Return b_e of the epoch that starts at τ_e, after τ_e - 1 slates."""
    error = subspace_error_at(problem, round=epoch_start - 1, failure_prob=failure_prob)
    return representation.misspecification(
        theta_bound=problem.theta_bound,
        arm_bound=problem.arm_bound,
        observe_prob=problem.observe_prob,
        subspace_error=error,
    )


def observe_prob_suffices(problem: Problem, *, failure_prob: float) -> bool:
    """Return whether the problem's p satisfies the condition of the imputation lemma.

    Paper: eq:p_condition_imputation
    """
    smallest = observe_prob_condition(
        dim=problem.dim,
        rank=problem.rank,
        n_arms=problem.n_arms,
        horizon=problem.horizon,
        incoherence=problem.incoherence,
        failure_prob=failure_prob,
    )
    return problem.observe_prob >= smallest


def _log_term(problem: Problem, failure_prob: float) -> float:
    return representation.log_term(
        dim=problem.dim, failure_prob=failure_prob, horizon=problem.horizon, round=1
    )
