"""What every policy is: choose, learn, absorb, save."""

import os
import secrets
from abc import ABC, abstractmethod
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from halfseen import archive, checks
from halfseen.errors import InvalidInputError, InvalidRewardError, UnknownDecisionError
from halfseen.values import LARGEST, Decision, FloatArray, Slate

Note = tuple[Any, ...]
"""How an inner policy knows a decision: id, round and epoch, and what else a subclass needs (plain
values and arrays) to hand it the reward."""


_NO_ROUNDS = np.empty(0, dtype=np.int64)


class Policy(ABC):
    """Chooses one of the offered arms per round and learns from its reward.

    Any exception leaves the policy exactly as it was. Subclasses implement `_choose`, `_learn`,
    `_absorb`, `settings`, `_state` and `_restore`; in `_choose`, `_answer` comes last, because from
    there on the decision stands.

    Parameters
    ----------
    dim : int
        Number of features of every arm.
    max_open : int
        How many decisions wait for their reward at most; the oldest is forgotten first.
    """

    told: ClassVar[tuple[str, ...]] = ("dim",)
    """What the runner tells the constructor about a realization, by the names of `Facts`."""

    def __init__(self, *, dim: int, max_open: int = 10_000) -> None:
        self.dim = checks.integer("dim", dim, 1)
        self.max_open = checks.integer("max_open", max_open, 1)
        self._round = 0
        # Which decisions wait for a reward, oldest first, each with a note of the subclass. The
        # token tells this policy's decisions from those of any other, also one with equal settings.
        self._token = secrets.token_hex(8)
        self._open: dict[str, Note | None] = {}

    @property
    def round(self) -> int:
        """Number of choices made so far."""
        return self._round

    @property
    def current_rank(self) -> int | None:
        """Number of dimensions in which the next choice is made; None where there are none."""
        return None

    @property
    def n_open(self) -> int:
        """Number of decisions that wait for their reward."""
        return len(self._open)

    def choose(self, options: Any) -> Decision:
        """Choose one of the offered arms.

        Parameters
        ----------
        options : Slate or array_like, shape (n_arms, dim)
            NaN where hidden.

        Raises
        ------
        InvalidSlateError
            The options are not a slate with `dim` features.
        """
        return self._choose(Slate.of(options, self.dim))

    def learn(self, decision: Decision, reward: float) -> None:
        """Learn from the reward of a decision, however late and in whatever order it comes.

        Raises
        ------
        InvalidRewardError
            The reward is not a finite number.
        UnknownDecisionError
            The decision is not one of this policy's, has been learned before, or was forgotten.
        """
        if type(reward) is not float or not -LARGEST <= reward <= LARGEST:
            reward = _checked_reward(reward)
        if not isinstance(decision, Decision) or decision._id not in self._open:
            raise self._unknown(decision)
        if decision._chosen.shape[0] != self.dim:
            raise InvalidInputError(
                f"the decision's arm must have {self.dim} features, got {len(decision._chosen)}"
            )
        id = decision._id
        self._learn(decision, reward, self._open[id])
        del self._open[id]

    def play_known(self, tables: FloatArray, rewards: FloatArray) -> NDArray[np.int64]:
        """Play the first of some rounds of which every reward is known, as in a simulation.

        The same, bit by bit, as `choose` and `learn` in one round after another, for as many rounds
        as a policy can play faster than that: here none.

        Parameters
        ----------
        tables : ndarray, shape (n_rounds, n_arms, dim)
            C-contiguous; NaN where hidden.
        rewards : ndarray, shape (n_rounds, n_arms)
            What each arm would pay; C-contiguous.

        Returns
        -------
        arms : ndarray, shape (n_played,)
            The chosen arm of each round that was played.
        """
        return _NO_ROUNDS

    def absorb(self, options: Any) -> None:
        """Take note of offered arms without choosing: a catalogue, an old log.

        Raises
        ------
        InvalidSlateError
            The options are not a slate with `dim` features.
        """
        self._absorb(Slate.of(options, self.dim))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to a file, from which `halfseen.load` continues bit by bit."""
        archive.write(path, self.to_tree())

    def diagnostics(self) -> dict[str, Any]:
        """Return what this policy has to tell about its run so far, as plain JSON types."""
        return {}

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain JSON types."""

    def to_tree(self) -> dict[str, Any]:
        """Return settings and state as a tree of plain values and arrays."""
        return {
            "policy": type(self).__name__,
            "settings": self.settings(),
            "round": self._round,
            "token": self._token,
            "open": list(self._open.items()),
            "state": self._state(),
        }

    @classmethod
    def from_tree(cls, tree: dict[str, Any]) -> Self:
        """Return the policy that `to_tree` described."""
        policy = cls(**tree["settings"])
        policy._round = checks.integer("round", tree["round"], 0)
        policy._token = str(tree["token"])
        policy._open = {str(id): note and tuple(note) for id, note in tree["open"]}
        policy._restore(tree["state"])
        return policy

    @abstractmethod
    def _choose(self, slate: Slate) -> Decision:
        """Choose from a valid slate and return what `_answer` returns."""

    @abstractmethod
    def _learn(self, decision: Decision, reward: float, note: Note | None) -> None:
        """Learn a valid reward of an open decision."""

    def _absorb(self, slate: Slate) -> None:  # noqa: B027
        """Take note of a valid slate; a policy that learns from rewards alone need not."""

    @abstractmethod
    def _state(self) -> dict[str, Any]:
        """Return what tells this policy from a fresh one with the same settings."""

    @abstractmethod
    def _restore(self, state: dict[str, Any]) -> None:
        """Continue from what `_state` returned."""

    def _answer(
        self, slate: Slate, arm: int, parts: FloatArray, epoch: int = -1, note: Note | None = None
    ) -> Decision:
        """Turn a choice into an open decision; nothing can fail from here on."""
        # A copy: an open decision does not keep its whole slate alive.
        return self._opened(slate._table[arm].copy(), arm, parts, epoch, note)

    def _opened(
        self, chosen: FloatArray, arm: int, parts: FloatArray, epoch: int, note: Note | None
    ) -> Decision:
        """Return a new open decision, which takes over the arrays."""
        round = self._round + 1
        id = f"{self._token}-{round}"
        if len(self._open) == self.max_open:
            del self._open[next(iter(self._open))]
        self._open[id] = note
        self._round = round
        return Decision(id, arm, round, epoch, chosen, parts)

    def _unknown(self, decision: Any) -> UnknownDecisionError:
        if not isinstance(decision, Decision):
            return UnknownDecisionError(f"learn needs a Decision, got {type(decision).__name__}")
        if not decision.id.startswith(f"{self._token}-"):
            return UnknownDecisionError(f"decision {decision.id} was made by another policy")
        return UnknownDecisionError(
            f"decision {decision.id} of round {decision.round} is not open: it was learned before, "
            f"or forgotten because more than max_open = {self.max_open} decisions waited"
        )


def _checked_reward(reward: Any) -> float:
    if isinstance(reward, float | Real):  # float first: numpy's floats are quick to tell
        value = checks.as_float(reward)
        if -LARGEST <= value <= LARGEST:
            return value
    raise InvalidRewardError(
        f"a reward must be a finite number of size at most {LARGEST:g}, got {reward!r}"
    )
