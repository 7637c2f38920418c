"""One policy walks one realization."""

from typing import NamedTuple

import numpy as np

from halfseen.policies.base import Policy
from halfseen.values import FloatArray
from halfseen.worlds.base import Realization


class Trace(NamedTuple):
    """What a policy paid.

    Attributes
    ----------
    regret : ndarray, shape (horizon,)
        Cumulative pseudo-regret: best mean among the offered arms less the chosen one's, noise
        aside.
    """

    regret: FloatArray

    @property
    def final_regret(self) -> float:
        """Regret after the last round."""
        return float(self.regret[-1])


def play(policy: Policy, realization: Realization) -> Trace:
    """Let a policy play all rounds of a realization and return its regret.

    Notes
    -----
    Paper: eq:app-reg-definition
    """
    losses = np.zeros(realization.horizon)
    for index, (slate, means, noise) in enumerate(realization.rounds()):
        decision = policy.choose(slate)
        policy.learn(decision, float(means[decision.arm]) + noise)
        losses[index] = means.max() - means[decision.arm]
    return Trace(np.cumsum(losses))
