"""The regret bounds of two variants: with unknown rank, and with a single estimate of the subspace.

The bound of the second is that of one frozen epoch after τ rounds. The τ that is best for it grows
like T^(2/3), and so does the bound. Repeated estimates in epochs improve this to sqrt(T).
"""

import math
from bisect import bisect_left
from dataclasses import replace

from halfseen import checks
from halfseen.errors import InvalidSettingError
from halfseen.theory.problem import Problem
from halfseen.theory.regret import (
    RegretBound,
    confidence_term,
    epoch_regret_bound,
    n_epochs_bound,
    post_burn_in_regret_bound,
    potential_envelope,
    theorem_ridge,
)
from halfseen.theory.representation import (
    log_term,
    misspecification_at,
    representation_level,
    theorem_burn_in,
)


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


def first_ranked_epoch_start(*, burn_in: int, identification: int) -> int:
    """Return τ_⋆, the start of the first epoch whose rank and imputation are reliable.

    Epochs start at 2^e (t_b + 1), and this is the first with τ_e - 1 ≥ t_id, so that its basis uses
    at least t_id slates. τ_⋆ ≤ 2 (t_id + 1).

    Paper: eq:tau_star_bound
    Paper: thm:unknown_rank

    >>> first_ranked_epoch_start(burn_in=9, identification=20)
    40
    """
    start = burn_in + 1
    while start < identification + 1:
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


def two_phase_regret_bound(problem: Problem, *, split: int, failure_prob: float) -> RegretBound:
    """Return the bound on R_T when the subspace is estimated once, after `split` = τ rounds.

    With n = T - τ, G = G_T, λ = 4 B_X² and b_τ the misspecification after τ slates:
    2 B_X S τ + 2√2 S sqrt(λGn) + 2√2 R sqrt(G(G + H) n) + 2 b_τ n (sqrt(G) + 1).
    Half of δ goes to the representation, half to the single epoch. The bound is proved for τ ≥ t_b,
    as for epochs; below t_b it is only a formula.

    Paper: lemma:epoch_regret
    """
    split = checks.integer("split", split, 1, problem.horizon)
    exploit = epoch_regret_bound(
        n_rounds=problem.horizon - split,
        potential=potential_envelope(problem),
        ridge=theorem_ridge(problem),
        theta_bound=problem.theta_bound,
        noise_scale=problem.noise_scale,
        confidence=confidence_term(failure_prob / 2),
        misspecification=misspecification_at(
            problem,
            epoch_start=split + 1,
            failure_prob=representation_level(failure_prob / 2),
        ),
    )
    return replace(exploit, startup=2 * problem.arm_bound * problem.theta_bound * split)


def best_split(problem: Problem, *, failure_prob: float, earliest: int = 1) -> int:
    """Return the whole τ in [earliest, T] with the smallest two-phase bound.

    The bound is aτ + s sqrt(T - τ) + c (T - τ)/sqrt(τ). Its second derivative falls as τ grows, so
    it is convex up to some round and concave after it. The minimum is that of the convex part or
    lies at an end of the concave part. Bisection finds both for any horizon.

    Raises
    ------
    InvalidSettingError
        `earliest` is not in [1, T].
    """
    last = problem.horizon
    earliest = checks.integer("earliest", earliest, 1, last)
    if earliest == last:
        return last

    def total(split: int) -> float:
        return two_phase_regret_bound(problem, split=split, failure_prob=failure_prob).total

    at_one = two_phase_regret_bound(problem, split=1, failure_prob=failure_prob)
    learning = (at_one.ridge + at_one.noise) / math.sqrt(last - 1)
    bias = at_one.representation / (last - 1)

    def is_concave(split: int) -> bool:
        bent_up = bias * (3 * last / split + 1) / (split * math.sqrt(split))
        left = last - split
        return learning / (left * math.sqrt(left)) > bent_up

    def rises(split: int) -> bool:
        return total(split + 1) >= total(split)

    turn = earliest + bisect_left(range(earliest, last), True, key=is_concave)
    convex = range(earliest, max(earliest, turn - 1))
    bottom = earliest + bisect_left(convex, True, key=rises)
    return min((bottom, turn, last), key=total)


def balanced_split(horizon: int) -> int:
    """Return ⌈T^(2/3)⌉, which balances τ and T/sqrt(τ) without their constants.

    >>> balanced_split(1000), balanced_split(1001)
    (100, 101)
    """
    return bisect_left(range(horizon), True, key=lambda split: split**3 >= horizon**2)


def power_split(horizon: int, power: float) -> int:
    """Return ⌈T^a⌉ for a in (0, 1).

    >>> power_split(10_000, 0.5), power_split(1000, 1 / 3)
    (100, 10)
    """
    return max(1, math.ceil(math.pow(horizon, power) * (1 - 1e-12)))
