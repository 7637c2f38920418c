"""One policy walks one realization."""

import math
from typing import NamedTuple

import numpy as np

from halfseen import checks
from halfseen.policies.base import Policy
from halfseen.simulation.budget import Budget
from halfseen.values import FloatArray, Slate
from halfseen.worlds.base import Realization

VIEWS = ("masked", "full")
"""What a policy sees of each round: the slate, or all arms with nothing hidden."""


class Trace(NamedTuple):
    """What a policy paid.

    Attributes
    ----------
    regret : ndarray, shape (horizon,)
        Cumulative pseudo-regret: best mean among the offered arms less the chosen one's, noise
        aside.
    ranks : ndarray, shape (horizon,)
        Number of dimensions in which the policy chose; NaN for one without dimensions.
    """

    regret: FloatArray
    ranks: FloatArray

    @property
    def final_regret(self) -> float:
        """Regret after the last round."""
        return float(self.regret[-1])


def play(
    policy: Policy,
    realization: Realization,
    view: str = "masked",
    *,
    budget_seconds: float = math.inf,
) -> Trace:
    """Let a policy play all rounds of a realization and return its regret.

    Parameters
    ----------
    policy : Policy
    realization : Realization
    view : "masked" or "full"
    budget_seconds : float
        Processor time after which the run is stopped.

    Raises
    ------
    BudgetExceededError
        The time was up before the last round was over; the policy is of no further use.

    Notes
    -----
    Paper: eq:app-reg-definition
    """
    full = checks.one_of("view", view, VIEWS) == "full"
    horizon = realization.facts.horizon
    losses, ranks = np.zeros(horizon), np.full(horizon, math.nan)
    with Budget(budget_seconds, horizon) as budget:
        for index, (slate, means, noise, arms) in enumerate(realization.rounds()):
            budget.begin(index)
            decision = policy.choose(Slate(arms) if full else slate)
            ranks[index] = _rank(policy)
            mean = means.item(decision.arm)
            policy.learn(decision, mean + noise)
            losses[index] = means.item(means.argmax()) - mean
    return Trace(np.cumsum(losses), ranks)


def _rank(policy: Policy) -> float:
    rank = policy.current_rank
    return math.nan if rank is None else rank
