"""What every policy is: choose, learn, absorb, save."""

import os
import secrets
from abc import ABC, abstractmethod
from numbers import Real
from typing import Any, ClassVar, NamedTuple, Self

from halfseen import archive, checks
from halfseen.errors import (
    ArchiveError,
    InvalidInputError,
    InvalidRewardError,
    UnknownDecisionError,
)
from halfseen.values import LARGEST, Decision, FloatArray, Slate


class Note(NamedTuple):
    """What a policy remembers of a decision until its reward comes.

    Attributes
    ----------
    round, epoch : int
        As in the decision.
    arm : ndarray, shape (dim,)
        The chosen arm as it was seen, NaN where hidden. Empty where the policy was loaded from a
        file of format 2, which left it to the decision.
    point : ndarray, optional
        The arm's coordinates in its epoch, where the policy has found them.
    inner : str, optional
        The id under which an inner policy knows the decision.
    """

    round: int
    epoch: int
    arm: FloatArray
    point: FloatArray | None = None
    inner: str | None = None


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
        # Which decisions wait for a reward, oldest first. The token tells this policy's decisions
        # from those of any other, also one with equal settings.
        self._token = secrets.token_hex(8)
        self._open: dict[str, Note] = {}

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

    def learn(self, decision: Decision | str, reward: float) -> None:
        """Learn from the reward of a decision, however late and in whatever order it comes.

        Parameters
        ----------
        decision : Decision or str
            What `choose` returned, or its id.
        reward : float

        Raises
        ------
        InvalidRewardError
            The reward is not a finite number.
        UnknownDecisionError
            The decision is not one of this policy's, has been learned before, or was forgotten.
        """
        if type(reward) is not float or not -LARGEST <= reward <= LARGEST:
            reward = _checked_reward(reward)
        id = decision._id if isinstance(decision, Decision) else decision
        note = self._open.get(id) if isinstance(id, str) else None
        if note is None:
            raise self._unknown(id)
        if not note.arm.size:
            note = self._recalled(id, decision)
        self._learn(note, reward)
        del self._open[id]

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
            "open": [[id, note._asdict()] for id, note in self._open.items()],
            "state": self._state(),
        }

    @classmethod
    def from_tree(cls, tree: dict[str, Any]) -> Self:
        """Return the policy that `to_tree` described."""
        policy = cls(**tree["settings"])
        policy._round = checks.integer("round", tree["round"], 0)
        policy._token = str(tree["token"])
        policy._open = {str(id): policy._restored_note(plain) for id, plain in tree["open"]}
        policy._restore(tree["state"])
        return policy

    def _restored_note(self, plain: dict[str, Any]) -> Note:
        arm = archive.array(plain, "arm", (None,))
        if arm.size not in (0, self.dim):
            raise ArchiveError(f"an open decision must have {self.dim} features, got {arm.size}")
        return Note(
            checks.integer("round", plain["round"], 1),
            checks.integer("epoch", plain["epoch"], -1),
            arm,
            None if plain["point"] is None else archive.array(plain, "point", (None,)),
            None if plain["inner"] is None else str(plain["inner"]),
        )

    @abstractmethod
    def _choose(self, slate: Slate) -> Decision:
        """Choose from a valid slate and return what `_answer` returns."""

    @abstractmethod
    def _learn(self, note: Note, reward: float) -> None:
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
        self,
        slate: Slate,
        arm: int,
        parts: FloatArray,
        *,
        epoch: int = -1,
        point: FloatArray | None = None,
        inner: str | None = None,
    ) -> Decision:
        """Turn a choice into an open decision; nothing can fail from here on.

        `parts` has shape (3, n_arms): scores, estimates, widths. The others are as in `Note`.
        """
        round = self._round + 1
        id = f"{self._token}-{round}"
        chosen = slate._table[arm].copy()  # an open decision does not keep its whole slate alive
        if len(self._open) == self.max_open:
            del self._open[next(iter(self._open))]
        self._open[id] = Note(round, epoch, chosen, point, inner)
        self._round = round
        return Decision(id, arm, round, epoch, chosen, parts)

    def _recalled(self, id: str, decision: Decision | str) -> Note:
        """Complete the note of a decision that was open in a file of format 2."""
        if not isinstance(decision, Decision):
            raise UnknownDecisionError(
                f"decision {id} was open in a file of an earlier version, which kept its arm in "
                "the decision alone: pass the Decision instead of its id"
            )
        if decision._chosen.shape != (self.dim,):
            raise InvalidInputError(
                f"the decision's arm must have {self.dim} features, got {len(decision._chosen)}"
            )
        note = self._open[id]._replace(arm=decision._chosen, epoch=decision._epoch)
        self._open[id] = note
        return note

    def _unknown(self, id: Any) -> UnknownDecisionError:
        if not isinstance(id, str):
            return UnknownDecisionError(
                f"learn needs a Decision or the id of one, got {type(id).__name__}"
            )
        if not id.startswith(f"{self._token}-"):
            return UnknownDecisionError(f"decision {id} was made by another policy")
        return UnknownDecisionError(
            f"decision {id} is not open: it was learned before, or forgotten because more than "
            f"max_open = {self.max_open} decisions waited"
        )


def _checked_reward(reward: Any) -> float:
    if isinstance(reward, float | Real):  # float first: numpy's floats are quick to tell
        value = checks.as_float(reward)
        if -LARGEST <= value <= LARGEST:
            return value
    raise InvalidRewardError(
        f"a reward must be a finite number of size at most {LARGEST:g}, got {reward!r}"
    )
