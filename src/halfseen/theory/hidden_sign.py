"""What it costs to wait until a slate of the hard family reveals the hidden sign σ.

A policy that knows the family and the reward sign ν needs nothing but σ. A side arm betrays σ when
both of its entries are seen. Until then the policy plays an arm of label a = ν; afterwards it loses
nothing.
"""

from halfseen.theory.lower_bound import Gaps
from halfseen.theory.problem import Problem

_SIDE, _LABEL = 1 / 2, 1 / 8  # probabilities of a side arm and of each decision arm


def reveal_prob(*, n_arms: int, observe_prob: float) -> float:
    """Return q = 1 - (1 - p²/2)^K, the probability that a slate reveals σ.

    An arm is a side arm with probability 1/2, and shows both entries with probability p².

    >>> reveal_prob(n_arms=1, observe_prob=0.5)
    0.125
    """
    return float(1 - (1 - observe_prob**2 * _SIDE) ** n_arms)


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
    one with a = -ν, of mean -γ. The expectation over slates of K arms that do not reveal σ is
    exact: given that, an arm is a side arm with probability (1 - p²)/2 over 1 - p²/2. γ ≤ Δ.
    """
    gamma, delta = gaps.reward_gap, gaps.hidden_gap
    silent = 1 - observe_prob**2 * _SIDE
    label, side = _LABEL / silent, _SIDE * (1 - observe_prob**2) / silent
    ranked = [
        (delta + gamma, label),
        (delta - gamma, label),
        (0.0, side),
        (gamma - delta, label),
        (-delta - gamma, label),
    ]
    blind = [(gamma, 2 * label), (0.0, side), (-gamma, 2 * label)]
    return _expected_first(ranked, n_arms) - _expected_first(blind, n_arms)


def _expected_first(ranked: list[tuple[float, float]], n_arms: int) -> float:
    """Return the mean value of the first kind of arm in a slate, from (value, probability)."""
    total, absent = 0.0, 1.0  # the probability that an arm is of none of the kinds so far
    for value, share in ranked:
        total += value * (absent**n_arms - max(0.0, absent - share) ** n_arms)
        absent -= share
    return total


def discovery_cost(problem: Problem, gaps: Gaps) -> float:
    """Return the expected regret of the policy that only has to discover σ: wait times loss."""
    n_arms, observe_prob = problem.n_arms, problem.observe_prob
    wait = expected_wait(n_arms=n_arms, observe_prob=observe_prob, horizon=problem.horizon)
    return wait * uninformed_loss(gaps, n_arms=n_arms, observe_prob=observe_prob)
