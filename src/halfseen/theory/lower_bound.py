"""Lower bounds on the regret of every policy.

The hard problem has four dimensions and rank three. An arm is, with probability 1/8 each, one of
four decision arms labelled (a, b) with a, b = ±1 and mean aνγ + bσΔ. Otherwise it is a worthless
side arm that reveals σ when both of its entries are seen. The learner must find the sign ν from
noisy rewards and the sign σ in spite of the masks; γ is the `reward_gap`, Δ the `hidden_gap`.

At the end, the regret of a policy that knows the family and ν and only has to discover σ
(`halfseen.paper.SignSeeker`). Until a side arm shows both entries it plays an arm of label a = ν;
afterwards it loses nothing.
"""

import math
from dataclasses import dataclass

from halfseen.errors import InvalidSettingError
from halfseen.theory.representation import Problem

GAP_SCALE = 1 / (2 * math.sqrt(2))
"""c_0 of the gaps: γ² + Δ² ≤ 2 c_0² S² B_X² = S² B_X²/4 uses the whole norm budget."""

COMPLETE_SLATE_FLOOR = 3 / 512
"""The least π_K, that of four arms.

Paper: eq:piK_lower
"""

LEAK_RATE_LIMIT = 0.5
"""Largest K p² + S² B_X²/R² for which the optimized form is derived here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LowerBound:
    """A lower bound on worst-case expected regret: for noisy rewards, and for what masks hide."""

    reward: float
    hidden: float

    @property
    def total(self) -> float:
        """The bound itself, the sum of the parts."""
        return self.reward + self.hidden


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """The two gaps of a hard problem: γ of the reward sign, Δ of the hidden sign."""

    reward_gap: float
    hidden_gap: float


def complete_slate_prob(n_arms: int) -> float:
    """Return π_K, the probability that a slate of K arms has all four decision labels.

    Inclusion-exclusion over missing labels: Σ_j (-1)^j C(4, j) (1 - j/8)^K. At K = 4 the terms
    cancel almost entirely, so they are added as whole multiples of 8^-K.

    Paper: eq:piK_def

    >>> complete_slate_prob(4) == 3 / 512
    True
    """
    signed_counts = enumerate((1, -4, 6, -4, 1))
    complete: int = sum(count * (8 - missing) ** n_arms for missing, count in signed_counts)
    possible: int = 8**n_arms
    return complete / possible


def complete_round_regret(gaps: Gaps, *, wrong_reward: bool, wrong_hidden: bool) -> float:
    """Return the least that an arm with wrong signs costs in a round with all four labels.

    γ for a label a ≠ ν, and Δ for b ≠ σ; a side arm has neither.

    Paper: lem:iid_regret_complete_round_refined

    >>> complete_round_regret(
    ...     Gaps(reward_gap=0.25, hidden_gap=0.5), wrong_reward=True, wrong_hidden=True
    ... )
    0.75
    """
    return gaps.reward_gap * wrong_reward + gaps.hidden_gap * wrong_hidden


def silence_floor(*, n_arms: int, observe_prob: float, round: int) -> float:
    """Return exp(-2Kp²t), a lower bound on P(no slate has revealed σ up to round t), for p ≤ 1/2.

    Paper: eq:no_reveal_lower_refined

    >>> silence_floor(n_arms=4, observe_prob=0.5, round=1) == math.exp(-2)
    True
    """
    return math.exp(-2 * n_arms * observe_prob**2 * round)


def gaps_fit(problem: Problem, gaps: Gaps) -> bool:
    """Return whether γ² + Δ² ≤ S² B_X²/4, so that the hard parameter has norm at most S.

    Paper: eq:iid_lb_norm_budget_refined
    """
    budget = (problem.theta_bound * problem.arm_bound) ** 2 / 4
    return gaps.reward_gap**2 + gaps.hidden_gap**2 <= budget * (1 + 1e-12)


def hard_instance_gaps(problem: Problem) -> Gaps:
    """Return the gaps of the proof: γ = c_0 min(S B_X, R/sqrt(T)), Δ = c_0 S B_X.

    Paper: eq:iid_lb_norm_budget_refined
    """
    scale = problem.theta_bound * problem.arm_bound
    noise = problem.noise_scale / math.sqrt(problem.horizon)
    return Gaps(reward_gap=GAP_SCALE * min(scale, noise), hidden_gap=GAP_SCALE * scale)


def reward_sign_error(problem: Problem, gap: float, *, round: int) -> float:
    """Return exp(-2(t-1)γ²/R²)/4, a lower bound on P(round t acts on the wrong ν).

    Here `gap` is γ: a sign that moves means by at most 2γ changes n rewards by a divergence of at
    most 2nγ²/R².

    Paper: lem:iid_nu_testing_refined
    Paper: eq:iid_lb_kl_nu
    """
    return math.exp(-2 * (round - 1) * (gap / problem.noise_scale) ** 2) / 4


def hidden_sign_error(problem: Problem, gap: float, *, round: int) -> float:
    """Return exp(-2Kp²t - 2(t-1)Δ²/R²)/4, a lower bound on P(round t acts on the wrong σ).

    Here `gap` is Δ.

    Paper: lem:iid_sigma_testing_refined
    Paper: eq:iid_lb_kl_sigma
    """
    n_arms, prob = problem.n_arms, problem.observe_prob
    seen = silence_floor(n_arms=n_arms, observe_prob=prob, round=round)
    return seen * reward_sign_error(problem, gap, round=round)


def lower_bound_at(problem: Problem, gaps: Gaps, *, round: int) -> LowerBound:
    """Return the lower bound on the expected regret of round t, averaged over the four signs.

    Paper: eq:iid_lb_per_round
    """
    _require_hard_problem(problem, gaps)
    complete = complete_slate_prob(problem.n_arms)
    reward = reward_sign_error(problem, gaps.reward_gap, round=round)
    hidden = hidden_sign_error(problem, gaps.hidden_gap, round=round)
    return LowerBound(
        reward=complete * gaps.reward_gap * reward, hidden=complete * gaps.hidden_gap * hidden
    )


def explicit_lower_bound(problem: Problem, gaps: Gaps) -> LowerBound:
    """Return the sum of `lower_bound_at` over all T rounds, as two geometric series.

    Paper: thm:iid_action_lower_bound_refined

    Raises
    ------
    InvalidSettingError
        Fewer than four arms, p above 1/2, no noise, or gaps beyond the norm budget.
    """
    first = lower_bound_at(problem, gaps, round=1)
    leak = 2 * problem.n_arms * problem.observe_prob**2
    reward, hidden = (
        2 * (gap / problem.noise_scale) ** 2 for gap in (gaps.reward_gap, gaps.hidden_gap)
    )
    return LowerBound(
        reward=first.reward * _geometric_sum(reward, problem.horizon),
        hidden=first.hidden * _geometric_sum(leak + hidden, problem.horizon),
    )


def leak_rate(problem: Problem) -> float:
    """Return K p² + S² B_X²/R², the rate at which σ leaks through slates and rewards."""
    if problem.noise_scale == 0:
        return math.inf
    signal = problem.theta_bound * problem.arm_bound / problem.noise_scale
    return problem.n_arms * problem.observe_prob**2 + signal**2


def lower_bound_applies(problem: Problem) -> bool:
    """Return whether the optimized form holds: K ≥ 4, p ≤ 1/2, R > 0 and a leak rate ≤ 1/2.

    Paper: thm:iid_missingness_lower_bound_main
    """
    hard = problem.n_arms >= 4 and problem.observe_prob <= 0.5
    return hard and leak_rate(problem) <= LEAK_RATE_LIMIT


def optimized_lower_bound(problem: Problem) -> LowerBound:
    """Return c_1 min(S B_X T, R sqrt(T)) + c_2 S B_X min(T, 1/q) with q the leak rate.

    From the explicit sums at the gaps of `hard_instance_gaps`, where c_0² = 1/8:

    - γ² ≤ c_0² R²/T, so each of the T terms is at least exp(-2c_0²) = exp(-1/4), and
      c_1 = π_K c_0 exp(-1/4)/4;
    - with a = 2Kp² + 2Δ²/R² ≤ 2q ≤ 1, Σ_t exp(-at) = (1 - exp(-aT))/(exp(a) - 1). Here
      1 - exp(-x) ≥ (1 - 1/e) min(1, x) and exp(a) - 1 ≤ (e - 1) a, so the sum is at least
      min(T, 1/a)/e ≥ min(T, 1/q)/(2e), and c_2 = π_K c_0/(8e).

    With π_K ≥ 3/512 the smaller of the two is a universal c of about 9.5e-5.

    Paper: eq:main_lower_bound_optimized
    Paper: eq:iid_lb_second_sum
    Paper: thm:iid_missingness_lower_bound_main

    Raises
    ------
    InvalidSettingError
        The premises of `lower_bound_applies` fail.
    """
    return _optimized(problem, rate=leak_rate(problem), slack=2.0)


def context_limited_applies(problem: Problem) -> bool:
    """Return whether slates leak more than rewards, R ≥ S B_X/(p sqrt(K)), and the bound holds."""
    revealed = problem.n_arms * problem.observe_prob**2
    return lower_bound_applies(problem) and leak_rate(problem) <= 2 * revealed * (1 + 1e-12)


def context_limited_lower_bound(problem: Problem) -> LowerBound:
    """Return the optimized form with 1/(Kp²) in place of 1/q, for R ≥ S B_X/(p sqrt(K)).

    There S² B_X²/R² ≤ Kp², hence a = 2Kp² + S² B_X²/(4R²) ≤ (9/4) Kp² and the second constant is
    π_K c_0/(9e).

    Paper: thm:iid_missingness_lower_bound_main

    Raises
    ------
    InvalidSettingError
        The premises of `lower_bound_applies` fail, or rewards leak more than slates.
    """
    revealed = problem.n_arms * problem.observe_prob**2
    if lower_bound_applies(problem) and not context_limited_applies(problem):
        least = problem.theta_bound * problem.arm_bound / math.sqrt(revealed)
        raise InvalidSettingError(
            f"noise_scale must be at least {least:g} in the context-limited regime, "
            f"got {problem.noise_scale!r}"
        )
    return _optimized(problem, rate=revealed, slack=2.25)


def _optimized(problem: Problem, *, rate: float, slack: float) -> LowerBound:
    """Evaluate the optimized form; `slack` bounds a/rate."""
    _require_hard_problem(problem, hard_instance_gaps(problem))
    if not lower_bound_applies(problem):
        raise InvalidSettingError(
            "n_arms * observe_prob**2 + (theta_bound * arm_bound / noise_scale)**2 must be at "
            f"most {LEAK_RATE_LIMIT:g}, got {leak_rate(problem):g}"
        )
    common = complete_slate_prob(problem.n_arms) * GAP_SCALE / 4
    scale, rounds = problem.theta_bound * problem.arm_bound, problem.horizon
    slow = min(scale * rounds, problem.noise_scale * math.sqrt(rounds))
    return LowerBound(
        reward=common * math.exp(-2 * GAP_SCALE**2) * slow,
        hidden=common / (slack * math.e) * scale * min(rounds, 1 / rate),
    )


def _require_hard_problem(problem: Problem, gaps: Gaps) -> None:
    if problem.n_arms < 4:
        raise InvalidSettingError(f"n_arms must be at least 4, got {problem.n_arms!r}")
    if problem.observe_prob > 0.5:
        raise InvalidSettingError(f"observe_prob must be in (0, 0.5], got {problem.observe_prob!r}")
    if problem.noise_scale == 0:
        raise InvalidSettingError("noise_scale must be in (0, inf), got 0")
    if not gaps_fit(problem, gaps):
        raise InvalidSettingError(
            f"the squares of the gaps must sum to at most (theta_bound * arm_bound)**2 / 4, "
            f"got {gaps!r}"
        )


def _geometric_sum(rate: float, n_terms: int) -> float:
    """Return Σ exp(-rate·t) over t = 0..n-1; expm1 keeps tiny rates exact."""
    return math.expm1(-rate * n_terms) / math.expm1(-rate) if rate > 0 else float(n_terms)


def reveal_prob(*, n_arms: int, observe_prob: float) -> float:
    """Return q = 1 - (1 - p²/2)^K, the probability that a slate reveals σ.

    An arm is a side arm with probability 1/2, and shows both entries with probability p².

    >>> reveal_prob(n_arms=1, observe_prob=0.5)
    0.125
    """
    return float(1 - (1 - observe_prob**2 / 2) ** n_arms)


def expected_wait(*, n_arms: int, observe_prob: float, horizon: int | None = None) -> float:
    """Return the expected number of rounds that are played before σ is known.

    Σ (1 - q)^t over t = 1 … T, that is (1 - q)/q without a horizon: about 2/(Kp²). The slate of a
    round is seen before the choice, so a round whose slate reveals σ does not count.

    >>> expected_wait(n_arms=1, observe_prob=0.5)
    7.0
    """
    reveal = reveal_prob(n_arms=n_arms, observe_prob=observe_prob)
    forever = (1 - reveal) / reveal
    return forever if horizon is None else forever * (1 - (1 - reveal) ** horizon)


def uninformed_loss(gaps: Gaps, *, n_arms: int, observe_prob: float) -> float:
    """Return the expected regret of a round in which ν is known and σ is not.

    The best arm that is offered has mean Δ + γ, Δ - γ, 0 (a side arm), γ - Δ or -Δ - γ. Without σ
    the policy plays an arm with a = ν, of mean γ on average over σ, or else a side arm, or else
    one with a = -ν. The expectation over slates of K arms that do not reveal σ is exact: given
    that, an arm is a side arm with probability (1 - p²)/2 over 1 - p²/2. It needs γ ≤ Δ.
    """
    gamma, delta = gaps.reward_gap, gaps.hidden_gap
    silent = 1 - observe_prob**2 / 2
    label, side = 1 / 8 / silent, (1 - observe_prob**2) / 2 / silent
    best = [
        (delta + gamma, label),
        (delta - gamma, label),
        (0.0, side),
        (gamma - delta, label),
        (-delta - gamma, label),
    ]
    blind = [(gamma, 2 * label), (0.0, side), (-gamma, 2 * label)]
    return _mean_of_first(best, n_arms) - _mean_of_first(blind, n_arms)


def _mean_of_first(ranked: list[tuple[float, float]], n_arms: int) -> float:
    """Return the mean value of the first kind that a slate has, from values and probabilities."""
    total, absent = 0.0, 1.0  # the probability that an arm is of none of the kinds so far
    for value, share in ranked:
        total += value * (absent**n_arms - max(0.0, absent - share) ** n_arms)
        absent -= share
    return total


def discovery_cost(problem: Problem, gaps: Gaps) -> float:
    """Return the expected regret of the policy that only has to discover σ: wait times loss.

    It is the upper side of the price of hidden entries, where rewards are too noisy to reveal σ;
    `explicit_lower_bound` is the lower side.
    """
    n_arms, observe_prob = problem.n_arms, problem.observe_prob
    wait = expected_wait(n_arms=n_arms, observe_prob=observe_prob, horizon=problem.horizon)
    return wait * uninformed_loss(gaps, n_arms=n_arms, observe_prob=observe_prob)
