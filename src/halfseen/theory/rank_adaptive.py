"""The regret bound of TOFU-POV with unknown rank, constants included."""

import math
from dataclasses import replace
from enum import Enum

from halfseen.errors import InvalidSettingError
from halfseen.theory.main_theorem import n_epochs_bound, post_burn_in_regret_bound
from halfseen.theory.problem import Problem
from halfseen.theory.regret import RegretBound, confidence_term
from halfseen.theory.representation import log_term
from halfseen.theory.rounds import representation_level, theorem_burn_in


def rank_is_separated(*, covariance_error: float, last_eigenvalue: float) -> bool:
    """Return whether the threshold 2ρ selects exactly the signal eigenvalues: ρ ≤ λ_m/4.

    If the covariance is off by at most ρ, signal eigenvalues are then at least 3λ_m/4 and so above
    2ρ, while null ones are at most ρ.

    Paper: eq:rho_after_t_rank
    Paper: lemma:unknown_rank_identification

    >>> rank_is_separated(covariance_error=0.25, last_eigenvalue=1.0)
    True
    """
    return covariance_error <= last_eigenvalue / 4


def rank_identification_length(problem: Problem, *, failure_prob: float) -> int:
    """Return t_rank, after which ρ_t ≤ λ_m/4.

    ⌈512 B_X² λ̄ / (λ_m² p² K) · log(2dT/δ_rank)⌉.

    Paper: eq:t_rank_explicit

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
    """Return t_id = max(t_b, t_rank), after which rank and imputation are reliable.

    t_b is taken at δ_rep/4, t_rank at δ_rank.

    Paper: lemma:unknown_rank_representation
    """
    level = representation_level(representation_failure_prob)
    burn_in = theorem_burn_in(problem, failure_prob=level)
    return max(burn_in, rank_identification_length(problem, failure_prob=rank_failure_prob))


class FirstRankedEpoch(Enum):
    """The first correctly ranked epoch, e_⋆, by the two definitions of the paper.

    Paper: thm:unknown_rank
    """

    AFTER = "τ_e - 1 ≥ t_id"
    """The definition before the theorem, and ours: the basis uses τ_e - 1 ≥ t_id slates."""

    AT = "τ_e ≥ t_id"
    """The definition inside the proof: τ_e = t_id counts, although its basis is one slate short."""


def first_ranked_epoch_start(
    *,
    burn_in: int,
    identification: int,
    rule: FirstRankedEpoch = FirstRankedEpoch.AFTER,
) -> int:
    """Return τ_⋆, the start of the first epoch whose rank and imputation are reliable.

    Epochs start at 2^e (t_b + 1). Under both definitions τ_⋆ ≤ 2 (t_id + 1). They differ only if
    t_id is itself the start of an epoch.

    Paper: eq:tau_star_bound

    Examples
    --------
    >>> first_ranked_epoch_start(burn_in=9, identification=20)
    40
    >>> first_ranked_epoch_start(burn_in=9, identification=20, rule=FirstRankedEpoch.AT)
    20
    """
    earliest = identification + 1 if rule is FirstRankedEpoch.AFTER else identification
    start = burn_in + 1
    while start < earliest:
        start *= 2
    return start


def rank_adaptive_n_epochs(horizon: int) -> int:
    """Return E_T = ⌈log2 T⌉ + 1, among which the rank-adaptive form divides δ_oful.

    Paper: thm:unknown_rank

    >>> rank_adaptive_n_epochs(400)
    10
    """
    return n_epochs_bound(horizon) - 1


def rank_adaptive_confidence_term(*, horizon: int, failure_prob: float) -> float:
    """Return H_T = 2 log(E_T/δ_oful) with E_T = ⌈log2 T⌉ + 1 epochs sharing δ_oful.

    Paper: thm:unknown_rank

    >>> round(rank_adaptive_confidence_term(horizon=512, failure_prob=0.1), 4)  # 2 log(100)
    9.2103
    """
    return confidence_term(failure_prob / rank_adaptive_n_epochs(horizon))


def rank_adaptive_regret_bound(
    problem: Problem,
    *,
    rank_failure_prob: float,
    representation_failure_prob: float,
    oful_failure_prob: float,
) -> RegretBound:
    """Return the explicit bound on R_T that holds with probability 1 - δ_rank - δ_rep - δ_oful.

    4 B_X S (t_id + 1), because τ_⋆ ≤ 2 (t_id + 1), plus the same bound over epochs as with known
    rank.

    Paper: eq:unknown_rank_explicit_regret
    Paper: thm:unknown_rank
    """
    waiting = identification_length(
        problem,
        rank_failure_prob=rank_failure_prob,
        representation_failure_prob=representation_failure_prob,
    )
    learning = post_burn_in_regret_bound(
        problem,
        confidence=rank_adaptive_confidence_term(
            horizon=problem.horizon, failure_prob=oful_failure_prob
        ),
        representation_failure_prob=representation_failure_prob,
    )
    return replace(learning, startup=4 * problem.arm_bound * problem.theta_bound * (waiting + 1))
