"""The strategy that learns the subspace in a first phase and keeps it for the rest of the horizon.

Its regret bound is that of a single frozen epoch after τ rounds. The τ that is best for the bound
grows like T^(2/3), and so does the bound. Repeated estimates in epochs improve this to sqrt(T).
"""

import math
from bisect import bisect_left
from dataclasses import replace

from halfseen import checks
from halfseen.theory.problem import Problem
from halfseen.theory.regret import (
    RegretBound,
    confidence_term,
    epoch_regret_bound,
    potential_envelope,
    theorem_ridge,
)
from halfseen.theory.rounds import misspecification_at, representation_level


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
