"""Decisions that wait for their reward, and which ones no longer do."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from halfseen import checks
from halfseen.errors import (
    AlreadyRewardedError,
    ForgottenDecisionError,
    UnknownDecisionError,
)
from halfseen.log import logger
from halfseen.frames import Item
from halfseen.values import Note

N_GONE = 10_000
"""Number of decisions that no longer wait whose ids are known."""

REWARDED, FORGOTTEN, CLOSED = "rewarded", "forgotten", "closed"


class Waiting(NamedTuple):
    """What an agent remembers of a decision until its reward comes.

    Attributes
    ----------
    number : int
        Decisions are counted from 1.
    item : str or int
    time : float
        When it was made, in seconds since 1970.
    note : Note
        What the policy remembers.
    is_logged : bool
        Whether the policy did not make the choice itself: then the arm counts as a logged one.
    """

    number: int
    item: Item
    time: float
    note: Note
    is_logged: bool = False


class WaitingDecisions:
    """Decisions that wait for their reward, oldest first, and the latest ones that no longer do.

    Bounded: at most `limit` decisions wait, then the oldest is forgotten; of those that no longer
    wait the latest `N_GONE` are known by id. Changes since `begin` can be undone.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.n_forgotten = 0
        self._waiting: dict[str, Waiting] = {}
        self._gone: OrderedDict[str, str] = OrderedDict()
        self._undo: list[Callable[[], object]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[tuple[str, Waiting]]:
        return iter(self._waiting.items())

    def begin(self) -> None:
        """Keep from now on what is needed to undo changes."""
        self._undo = []

    def undo(self) -> None:
        """Undo all changes since `begin`."""
        while self._undo:
            self._undo.pop()()

    def add(self, id: str, waiting: Waiting) -> str | None:
        """Let a decision wait; return the id of the one that is forgotten for it."""
        self._undo.append(lambda: self._waiting.pop(id, None))
        self._waiting[id] = waiting
        if len(self._waiting) <= self.limit:
            return None
        oldest = next(iter(self._waiting))
        self.remove(oldest, FORGOTTEN)
        return oldest

    def get(self, id: Any) -> Waiting:
        """Return what is remembered of a decision that waits.

        Raises
        ------
        AlreadyRewardedError, ForgottenDecisionError
        UnknownDecisionError
            The agent did not make the decision, or longer ago than it remembers.
        """
        id = checked_id(id)
        if id in self._waiting:
            return self._waiting[id]
        why = self._gone.get(id)
        if why == REWARDED:
            raise AlreadyRewardedError(
                f"decision {id} was rewarded before: each reward counts once, so drop this one"
            )
        if why == FORGOTTEN:
            raise ForgottenDecisionError(
                f"decision {id} was forgotten, because {self.limit} later ones waited for their "
                "rewards: make an agent with a larger max_pending, or expire what never comes"
            )
        if why == CLOSED:
            raise ForgottenDecisionError(
                f"decision {id} was closed by expire without a reward: expire later ones only"
            )
        raise UnknownDecisionError(
            f"decision {id} is not known here: another agent made it, or it was closed before the "
            f"latest {N_GONE}, or made after the checkpoint from which this agent continues"
        )

    def remove(self, id: str, why: str) -> None:
        """Let a decision no longer wait."""
        waiting, n_forgotten = self._waiting[id], self.n_forgotten

        def put_back() -> None:
            self.n_forgotten = n_forgotten
            self._gone.pop(id, None)
            self._waiting[id] = waiting
            by_number = sorted(self._waiting.items(), key=lambda each: each[1].number)
            self._waiting = dict(by_number)

        self._undo.append(put_back)
        del self._waiting[id]
        self._gone[id] = why
        self.n_forgotten += why == FORGOTTEN
        if len(self._gone) > N_GONE:
            earliest, reason = self._gone.popitem(last=False)
            self._undo.append(lambda: self._recall(earliest, reason))

    def _recall(self, id: str, why: str) -> None:
        self._gone[id] = why
        self._gone.move_to_end(id, last=False)

    def state(self, dim: int, context_dim: int) -> dict[str, Any]:
        """Return everything as plain values and arrays; arms and contexts have some features."""
        return {
            "waiting": [
                [id, *each[:3], each.is_logged, each.note.widened(dim, context_dim).to_dict()]
                for id, each in self._waiting.items()
            ],
            "gone": [[id, why] for id, why in self._gone.items()],
            "n_forgotten": self.n_forgotten,
        }

    def restore(self, state: dict[str, Any], check: Callable[[Note, bool], None]) -> None:
        """Continue from what `state` returned; `check` gets each note, and whether it is logged."""
        for id, number, item, time, is_logged, plain in state["waiting"]:
            note = Note.from_dict(plain)
            check(note, checks.boolean("is_logged", is_logged))
            self._waiting[checks.text("id", id)] = Waiting(
                checks.integer("number", number, 1),
                restored_item(item),
                checks.real("time", time),
                note,
                is_logged,
            )
        reasons = (REWARDED, FORGOTTEN, CLOSED)
        for id, why in state["gone"]:
            self._gone[checks.text("id", id)] = checks.one_of("reason", why, reasons)
        for found, most in ((self._waiting, self.limit), (self._gone, N_GONE)):
            checks.integer("the number of decisions", len(found), 0, most)
        self.n_forgotten = checks.integer("n_forgotten", state["n_forgotten"], 0)


def log_forgotten(id: str, n_forgotten: int, limit: str) -> None:
    """Log the 1st, 2nd, 4th, 8th, … decision that is forgotten."""
    if n_forgotten & (n_forgotten - 1) == 0:
        message = "decision %s was forgotten, %d so far: more than %s wait for their reward"
        logger.warning(message, id, n_forgotten, limit)


def checked_id(id: Any) -> str:
    """Return an id if it can be one."""
    if not isinstance(id, str):
        raise UnknownDecisionError(
            "learn needs what choose returned, its id, or a list or column of them, got "
            f"{type(id).__name__} {id!r:.40}: pass decision or decision.id, not an item or a "
            "position"
        )
    return id


def restored_item(item: Any) -> Item:
    """Return an id after checking that it is one."""
    return item if isinstance(item, str) else checks.integer("item", item)
