"""Policies play the rounds of a realization."""

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from halfseen import checks
from halfseen.policies.base import Policy
from halfseen.values import FloatArray, Slate
from halfseen.worlds.base import Realization, Round

VIEWS = ("masked", "full")
"""What a policy sees of each round: the slate, or all arms with nothing hidden."""

# Limits of the rounds that are drawn at a time: they stay in the processor's cache while several
# policies play them, and large slates do not fill the memory.
_MOST_ROUNDS = 32
_MOST_ENTRIES = 2**17


class Trace(NamedTuple):
    """What a policy paid.

    Attributes
    ----------
    regret : ndarray, shape (horizon,)
        Cumulative pseudo-regret: best mean among the offered arms less the chosen one's, without
        noise.
    ranks : ndarray, shape (horizon,)
        Number of dimensions in which the policy chose; NaN for one without dimensions.
    """

    regret: FloatArray
    ranks: FloatArray

    @property
    def final_regret(self) -> float:
        """Regret after the last round."""
        return float(self.regret[-1])


class Player:
    """A policy that plays a realization, some rounds at a time.

    Parameters
    ----------
    policy : Policy
    horizon : int
        Rounds of the realization.
    """

    def __init__(self, policy: Policy, horizon: int) -> None:
        self.policy = policy
        self._losses = np.zeros(horizon)
        self._ranks = np.full(horizon, math.nan)
        self._n_played = 0

    def play(self, rounds: Sequence[Round]) -> None:
        """Play the next rounds."""
        policy = self.policy
        for index, round in enumerate(rounds, self._n_played):
            slate = round.slate
            if slate.context is not None and not policy.takes_context:
                slate = slate.without_context()
            decision = policy.choose(slate)
            rank = policy.current_rank
            mean = round.means.item(decision.arm)
            policy.learn(decision, round.reward(decision.arm))
            self._losses[index] = round.means.item(round.means.argmax()) - mean
            if rank is not None:
                self._ranks[index] = rank
        self._n_played += len(rounds)

    def trace(self) -> Trace:
        """Return what the policy has paid so far."""
        return Trace(np.cumsum(self._losses), self._ranks)


def play(policy: Policy, realization: Realization, view: str = "masked") -> Trace:
    """Let a policy play all rounds of a realization and return its regret.

    Parameters
    ----------
    policy : Policy
    realization : Realization
    view : "masked" or "full"

    Examples
    --------
    >>> from halfseen import LowRankWorld, Uniform
    >>> realization = LowRankWorld(dim=6, rank=2, horizon=50).realize(seed=0)
    >>> trace = play(Uniform(dim=6), realization)
    >>> trace.regret.shape, trace.final_regret > 0.0
    ((50,), True)

    Notes
    -----
    Paper: eq:app-reg-definition
    """
    checks.one_of("view", view, VIEWS)
    player = Player(policy, realization.facts.horizon)
    for shown in in_chunks(realization.rounds(), {view}):
        player.play(shown[view])
    return player.trace()


def in_chunks(rounds: Iterable[Round], views: Collection[str]) -> Iterator[dict[str, list[Round]]]:
    """Yield some rounds at a time, by view."""
    left = iter(rounds)
    while first := next(left, None):
        size = max(1, min(_MOST_ROUNDS, _MOST_ENTRIES // first.arms.size))
        chunk = [first, *islice(left, size - 1)]
        shown = {"masked": chunk}
        if "full" in views:
            shown["full"] = [round._replace(slate=_full(round)) for round in chunk]
        yield shown


def _full(round: Round) -> Slate:
    """Return all arms with nothing hidden; the context is shown as it is seen."""
    return Slate(round.arms, context=round.slate.context, items=round.slate.items)
