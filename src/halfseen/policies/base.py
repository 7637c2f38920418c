"""What every policy is: choose, learn, absorb, save."""

import os
import secrets
from abc import ABC, abstractmethod
from collections import OrderedDict
from numbers import Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from halfseen import archive, checks
from halfseen.errors import (
    ArchiveError,
    InvalidInputError,
    InvalidRewardError,
    UnknownDecisionError,
)
from halfseen.params import Declared, integer
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


class Choice(NamedTuple):
    """What a policy decided in a round.

    Attributes
    ----------
    arm : int
        Index of the chosen arm.
    parts : ndarray, shape (3, n_arms)
        Per arm a score and its two parts, estimate and width.
    epoch, point, inner
        As in `Note`.
    """

    arm: int
    parts: FloatArray
    epoch: int = -1
    point: FloatArray | None = None
    inner: str | None = None

    @classmethod
    def best(cls, estimates: Any, widths: Any = 0.0) -> "Choice":
        """Return the choice of the largest estimate plus width, the first of equals.

        >>> Choice.best([0.1, 0.3], [0.5, 0.2]).arm
        0
        """
        estimates = np.asarray(estimates, dtype=np.float64)
        widths = np.broadcast_to(np.asarray(widths, dtype=np.float64), estimates.shape)
        parts = np.stack([estimates + widths, estimates, widths])
        return cls(int(parts[0].argmax()), parts)


class Policy(Declared, ABC):
    """Chooses one of the offered arms per round and learns from its reward.

    Any exception leaves the policy exactly as it was. A subclass declares its parameters
    (`halfseen.params`) and writes five hooks: `setup`, `decide`, `update`, `state` and `restore`.
    `observe` is a sixth, for policies that learn from arms that were only offered.
    `halfseen.testing.check_policy` tells whether they keep their contracts.
    """

    needs: ClassVar[tuple[str, ...]] = ("dim",)
    """Parameters that a simulation gives the constructor, by the names of `Facts`."""

    dim: int = integer(low=1, doc="Number of features of every arm.")
    max_open: int = integer(
        default=10_000,
        low=1,
        doc="How many decisions wait for their reward at most; the oldest is forgotten first.",
    )

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._round = 0
        # Which decisions wait for a reward, oldest first. The token makes this
        # policy's ids differ from those of any other, also one with equal settings.
        self._token = secrets.token_hex(8)
        self._open: OrderedDict[str, Note] = OrderedDict()
        self.setup()

    # Hooks that a subclass writes.

    @abstractmethod
    def setup(self) -> None:
        """Make the state of a fresh policy from its parameters, which are attributes by now.

        Raises `InvalidSettingError` where parameters do not fit together.
        """

    @abstractmethod
    def decide(self, slate: Slate) -> Choice:
        """Choose from a valid slate.

        All that may fail comes first; whatever the hook changes of the policy, it changes last.
        """

    @abstractmethod
    def update(self, note: Note, reward: float) -> None:
        """Learn a finite reward of an open decision; what may fail comes first here, too."""

    def observe(self, slate: Slate) -> None:
        """Take note of a valid slate from which nothing is chosen; by default ignore it."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Return the state: all that a fresh policy with the same parameters lacks.

        A tree of dictionaries and lists with numbers, texts, None and arrays as leaves.
        """

    @abstractmethod
    def restore(self, state: dict[str, Any]) -> None:
        """Continue from what `state` returned, in a fresh policy."""

    # What callers use.

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
        slate = Slate.of(options, self.dim)
        return self._opened(slate, self.decide(slate))

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
        self.update(note, reward)
        del self._open[id]

    def absorb(self, options: Any) -> None:
        """Take note of offered arms without choosing: a catalogue, an old log.

        Raises
        ------
        InvalidSlateError
            The options are not a slate with `dim` features.
        """
        self.observe(Slate.of(options, self.dim))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to a file; what `halfseen.load` reads continues with the same bits."""
        archive.write(path, self.to_tree())

    def diagnostics(self) -> dict[str, Any]:
        """Return facts about the run so far, as plain JSON types."""
        return {}

    def to_tree(self) -> dict[str, Any]:
        """Return settings and state as a tree of plain values and arrays."""
        return {
            "policy": type(self).__name__,
            "settings": self.settings(),
            "round": self._round,
            "token": self._token,
            "open": [[id, note._asdict()] for id, note in self._open.items()],
            "state": self.state(),
        }

    @classmethod
    def from_tree(cls, tree: dict[str, Any]) -> Self:
        """Return the policy that `to_tree` described."""
        policy = cls(**tree["settings"])
        policy._round = checks.integer("round", tree["round"], 0)
        policy._token = str(tree["token"])
        for id, plain in tree["open"]:
            policy._open[str(id)] = policy._restored_note(plain)
        policy.restore(tree["state"])
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

    def _opened(self, slate: Slate, choice: Choice) -> Decision:
        """Turn a choice into an open decision; nothing can fail from here on."""
        arm, parts, epoch, point, inner = choice
        round = self._round + 1
        id = f"{self._token}-{round}"
        chosen = slate._table[arm].copy()  # an open decision does not keep its whole slate alive
        if len(self._open) == self.max_open:
            self._open.popitem(last=False)
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
    if isinstance(reward, float | Real | np.bool_):  # float first: it is the common case
        value = checks.as_float(reward)
        if -LARGEST <= value <= LARGEST:
            return value
    raise InvalidRewardError(
        f"a reward must be a finite number of size at most {LARGEST:g}, got {reward!r}"
    )
