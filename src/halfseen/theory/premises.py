"""Which premises of the theorems a problem meets, and which of their bounds say something."""

import math
from typing import NamedTuple

from halfseen import checks
from halfseen.theory.lower_bound import LEAK_RATE_LIMIT, leak_rate
from halfseen.theory.problem import Problem
from halfseen.theory.regret import main_regret_bound, trivial_regret_bound
from halfseen.theory.representation import (
    misspecification_at,
    observe_prob_condition,
    representation_level,
    subspace_error_at,
    theorem_burn_in,
)
from halfseen.theory.variants import (
    best_split,
    rank_adaptive_regret_bound,
    two_phase_regret_bound,
)


class Premise(NamedTuple):
    """One premise of a theorem.

    Attributes
    ----------
    name : str
    needed, given : float
        What the theorem needs at least, and what there is.
    text : str
        One sentence with both numbers.
    """

    name: str
    needed: float
    given: float
    text: str

    @property
    def factor(self) -> float:
        """How many times too small `given` is; at most 1 if the premise holds."""
        return math.inf if math.isinf(self.needed) else self.needed / self.given

    @property
    def holds(self) -> bool:
        """Whether there is enough."""
        return self.factor <= 1


class Premises(NamedTuple):
    """What the theorems need and what their bounds say, for one problem.

    Attributes
    ----------
    upper : tuple of Premise
        Of the regret theorem with a known rank. That with an unknown rank divides δ further, so it
        needs a little more.
    lower : tuple of Premise
        Of the lower bound.
    shares : dict
        Each bound divided by what holds without any theory: 2·S·B_X·T for a regret, 1 for ε and
        2·S·B_X for b, both after T rounds. Infinite for unbounded arms.
    """

    upper: tuple[Premise, ...]
    lower: tuple[Premise, ...]
    shares: dict[str, float]

    @property
    def vacuous(self) -> tuple[str, ...]:
        """The bounds that say nothing: their share is at least 1."""
        return tuple(name for name, share in self.shares.items() if share >= 1)


def mask_premise(*, needed: float, observe_prob: float) -> Premise:
    """Return the theorem's condition on p."""
    text = f"the theorem needs p of at least {needed:.3g}, and p is {observe_prob:.3g}"
    return Premise("condition on p", needed, observe_prob, text)


def burn_in_premise(*, needed: float, burn_in: int) -> Premise:
    """Return the theorem's condition on the burn-in."""
    text = f"the theorem needs a burn-in of {needed:,.0f} rounds, and it has {burn_in:,}"
    return Premise("burn-in", needed, burn_in, text)


def premises_of(
    problem: Problem, *, failure_prob: float = 0.05, burn_in: int | None = None
) -> Premises:
    """Return which premises of the theorems hold and which of their bounds are vacuous.

    A realization of `LowRankWorld` or `HardInstanceWorld` has a `problem()`.

    `burn_in` is that of a policy; by default the whole horizon, the most that there can be. The
    bound for one estimate is proved only if that comes after t_b rounds: where these are more than
    the horizon, its share is that of exploring to the end.

    Paper: thm:main_regret
    Paper: eq:p_condition_imputation

    Examples
    --------
    >>> problem = Problem(
    ...     dim=30, rank=3, n_arms=8, horizon=400, observe_prob=0.8, arm_bound=1.0,
    ...     last_eigenvalue=0.25, incoherence=1.0, theta_bound=1.0, noise_scale=0.05,
    ... )
    >>> found = premises_of(problem)
    >>> [(premise.name, premise.holds) for premise in found.upper]
    [('bounded arms', True), ('condition on p', False), ('burn-in', False)]
    >>> round(found.upper[1].factor)
    52
    """
    rounds = problem.horizon if burn_in is None else checks.integer("burn_in", burn_in, 1)
    bounded = math.isfinite(problem.conditioning)
    level = representation_level(failure_prob / 2)
    needed = observe_prob_condition(
        dim=problem.dim,
        rank=problem.rank,
        n_arms=problem.n_arms,
        horizon=problem.horizon,
        incoherence=problem.incoherence,
        failure_prob=level,
    )
    wait = theorem_burn_in(problem, failure_prob=level) if bounded else math.inf
    upper = (
        _boundedness(problem),
        mask_premise(needed=needed, observe_prob=problem.observe_prob),
        burn_in_premise(needed=wait, burn_in=rounds),
    )
    shares = dict.fromkeys(_BOUNDS, math.inf)
    if bounded:
        shares = _shares(problem, failure_prob, earliest=int(min(wait, problem.horizon)))
    return Premises(upper, _lower_premises(problem), shares)


def _boundedness(problem: Problem) -> Premise:
    if math.isfinite(problem.arm_bound):
        return Premise("bounded arms", 0.0, 1.0, f"no arm is longer than {problem.arm_bound:.3g}")
    return Premise("bounded arms", math.inf, 1.0, "the theorem needs arms of bounded length")


def _lower_premises(problem: Problem) -> tuple[Premise, ...]:
    leak = leak_rate(problem)
    return (
        Premise("number of arms", 4, problem.n_arms, f"K ≥ 4 is needed, K is {problem.n_arms}"),
        Premise(
            "hidden entries",
            problem.observe_prob,
            0.5,
            f"p ≤ 1/2 is needed, p is {problem.observe_prob:.3g}",
        ),
        Premise(
            "noise",
            leak,
            LEAK_RATE_LIMIT,
            f"Kp² + (S B_X/R)² ≤ 1/2 is needed, it is {leak:.3g}",
        ),
    )


_BOUNDS = ("known rank", "unknown rank", "one estimate", "subspace error", "misspecification")


def _shares(problem: Problem, failure_prob: float, *, earliest: int) -> dict[str, float]:
    trivial, level = trivial_regret_bound(problem), representation_level(failure_prob / 2)
    known = main_regret_bound(problem, failure_prob=failure_prob)
    unknown = rank_adaptive_regret_bound(
        problem,
        rank_failure_prob=failure_prob / 4,
        representation_failure_prob=failure_prob / 4,
        oful_failure_prob=failure_prob / 2,
    )
    split = best_split(problem, failure_prob=failure_prob, earliest=earliest)
    once = two_phase_regret_bound(problem, split=split, failure_prob=failure_prob)
    last = problem.horizon
    error = subspace_error_at(problem, round=last, failure_prob=level)
    bias = misspecification_at(problem, epoch_start=last + 1, failure_prob=level)
    values = (
        known.total / trivial,
        unknown.total / trivial,
        once.total / trivial,
        error,
        bias * last / trivial,
    )
    return dict(zip(_BOUNDS, values, strict=True))
