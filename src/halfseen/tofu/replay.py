"""Which earlier rewards enter the regression of a new epoch."""

from abc import ABC, abstractmethod
from enum import StrEnum
from typing import Any

from halfseen import checks
from halfseen.tofu.ingredient import Ingredient, as_ingredient


class ReplayRule(Ingredient, ABC):
    """Decides which earlier rewards enter the regression of a new epoch, in the new basis.

    Examples
    --------
    >>> from halfseen import TofuPov
    >>> class WithoutBurnIn(ReplayRule):
    ...     '''All rewards but those of the burn-in policy.'''
    ...     def replays(self, *, by_burn_in, is_first):
    ...         return not by_burn_in
    >>> TofuPov(dim=4, rank=1, observe_prob=0.5, replay=WithoutBurnIn()).replay
    WithoutBurnIn()
    """

    @abstractmethod
    def replays(self, *, by_burn_in: bool, is_first: bool) -> bool:
        """Return whether an epoch learns rewards of earlier decisions again.

        Parameters
        ----------
        by_burn_in : bool
            Whether the burn-in policy made these decisions.
        is_first : bool
            Whether the epoch is the first one with a rank above 0.
        """


class Replay(StrEnum):
    """Which earlier rewards enter the regression of a new epoch, in the new basis.

    A burn-in reward is one that the burn-in policy earned, during burn-in or in an epoch of rank 0.

    Examples
    --------
    >>> Replay("full") is Replay.FULL
    True
    >>> [each.value for each in Replay]
    ['none', 'burn-in-once', 'burn-in', 'full']
    """

    NONE = "none"
    """None: Algorithm 1 literally."""
    BURN_IN_ONCE = "burn-in-once"
    """Burn-in rewards, in the first epoch that has a rank above 0."""
    BURN_IN = "burn-in"
    """Burn-in rewards, in every epoch."""
    FULL = "full"
    """All rewards so far, in every epoch."""

    def replays(self, *, by_burn_in: bool, is_first: bool) -> bool:
        """Return whether an epoch learns rewards of earlier decisions again (see `ReplayRule`)."""
        if self is Replay.FULL or self is Replay.NONE:
            return self is Replay.FULL
        return by_burn_in and (is_first or self is Replay.BURN_IN)


def checked_replay(name: str, value: Any, words: tuple[str, ...]) -> Any:
    """Return a rule from one of some words, a rule, or the result of its `to_dict`."""
    if isinstance(value, ReplayRule | dict):
        return as_ingredient(name, ReplayRule, value)  # type: ignore[type-abstract]
    return Replay(checks.one_of(name, value, words))


def plain_replay(value: Any) -> Any:
    """Return a word, or the plain form of a rule."""
    return value.to_dict() if isinstance(value, ReplayRule) else str(value)
