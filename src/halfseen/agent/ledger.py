"""The ledger: which decisions wait for their reward, and what became of the others."""

import datetime
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any, ClassVar, NamedTuple

import numpy as np

from halfseen import checks
from halfseen.errors import AlreadyRewardedError, ForgottenDecisionError, UnknownDecisionError
from halfseen.state import Array, Each, Field, Sizes, Value, Whole
from halfseen.values import FloatArray, Item, Note

N_GONE = 10_000
"""Number of decisions that no longer wait whose ids are known."""

REWARDED, FORGOTTEN, EXPIRED = "rewarded", "forgotten", "expired"

_WHY = {
    REWARDED: (
        AlreadyRewardedError,
        "was rewarded before: each reward counts once, so drop this one",
    ),
    FORGOTTEN: (
        ForgottenDecisionError,
        "was forgotten, because max_pending later ones waited for their rewards: make an agent "
        "with a larger max_pending, or expire what never comes",
    ),
    EXPIRED: (
        ForgottenDecisionError,
        "was closed by expire without a reward: expire later ones only",
    ),
}


class Pending(NamedTuple):
    """A decision that waits for its reward: its id, the chosen item, and when it was made.

    Examples
    --------
    >>> from halfseen import Agent
    >>> agent = Agent(id="sku")
    >>> decision = agent.choose([{"sku": "hat", "price": 3.0}])
    >>> [(each.id == decision.id, each.item) for each in agent.pending]
    [(True, 'hat')]
    >>> agent.learn(decision.id, 1.0)
    >>> agent.pending
    ()
    """

    id: str
    item: Item
    made: datetime.datetime


class Waiting(NamedTuple):
    """What is remembered of a decision until its reward comes: only what `learn` needs.

    Attributes
    ----------
    item : str or int
    time : float
        When it was made, in seconds since 1970.
    note : Note
        Of round 0 if the policy did not make the choice itself: the arm counts as a logged one.
    """

    item: Item
    time: float
    note: Note


class _WaitingField:
    def dump(self, value: Mapping[str, Waiting]) -> list[Any]:
        return [[id, each.item, each.time, each.note.to_dict()] for id, each in value.items()]

    def load(self, name: str, plain: Any, sizes: Sizes) -> OrderedDict[str, Waiting]:
        checks.integer("the number of decisions", len(plain), 0, sizes.owner.limit)
        return OrderedDict(
            (
                checks.text("id", id),
                Waiting(
                    item if isinstance(item, str) else checks.integer("item", item),
                    checks.real("time", time),
                    Note.from_dict(note),
                ),
            )
            for id, item, time, note in plain
        )


class _GoneField:
    def dump(self, value: Mapping[str, str]) -> list[Any]:
        return [list(pair) for pair in value.items()]

    def load(self, name: str, plain: Any, sizes: Sizes) -> OrderedDict[str, str]:
        checks.integer("the number of decisions", len(plain), 0, N_GONE)
        return OrderedDict(
            (checks.text("id", id), checks.one_of("reason", why, tuple(_WHY))) for id, why in plain
        )


class Ledger:
    """Decisions that wait for their reward, the oldest first, and what became of the latest others.

    Bounded: at most `limit` decisions wait; of the others the latest `N_GONE` are known by id.
    """

    STATE: ClassVar[Mapping[str, Field]] = {"_waiting": _WaitingField(), "_gone": _GoneField()}

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._waiting: OrderedDict[str, Waiting] = OrderedDict()
        self._gone: OrderedDict[str, str] = OrderedDict()

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[tuple[str, Waiting]]:
        return iter(self._waiting.items())

    @property
    def oldest(self) -> str | None:
        """The decision that waits longest."""
        return next(iter(self._waiting), None)

    def get(self, id: str) -> Waiting:
        """Return what is remembered of a decision that waits.

        Raises
        ------
        AlreadyRewardedError, ForgottenDecisionError
        UnknownDecisionError
            The agent did not make the decision, or longer ago than it remembers.
        """
        if id in self._waiting:
            return self._waiting[id]
        if id in self._gone:
            error, why = _WHY[self._gone[id]]
            raise error(f"decision {id} {why}")
        raise UnknownDecisionError(
            f"decision {id} is not known here: another agent made it, or it was closed before the "
            f"latest {N_GONE}, or made after the checkpoint from which this agent continues"
        )

    def apply(self, made: Mapping[str, Waiting], closed: Mapping[str, str]) -> None:
        """Add decisions, and close some for a reason; a second time nothing happens."""
        for id, why in closed.items():
            self._waiting.pop(id, None)
            self._gone[id] = why
        self._waiting.update(made)
        while len(self._gone) > N_GONE:
            self._gone.popitem(last=False)


BLOCK = 500
"""`lately` covers the latest one to two blocks of this many events."""


class Window(NamedTuple):
    """Sums of a vector: of all events before the last full block, of that block, and since.

    Attributes
    ----------
    sums : three ndarrays, shape (1 + width,)
        First what the others are divided by for a mean.
    n_events : int
        Events since the last full block.

    Examples
    --------
    >>> window = Window().added([1.0], 1).added([0.0, 1.0], 1)
    >>> window.means(lately=True).tolist()
    [0.5, 0.5]
    """

    sums: tuple[FloatArray, FloatArray, FloatArray] = (np.zeros(1), np.zeros(1), np.zeros(1))
    n_events: int = 0

    def added(self, vector: Any, count: float) -> "Window":
        """Return the window with one more event."""
        before, block, since = self.sums
        since = _sum(since, np.concatenate([[float(count)], vector]))
        if self.n_events + 1 < BLOCK:
            return Window((before, block, since), self.n_events + 1)
        return Window((_sum(before, block), since, np.zeros(1)))

    def total(self, *, lately: bool) -> float:
        """Return the number lately, or before."""
        return float(self._sums(lately)[0])

    def means(self, *, lately: bool) -> FloatArray:
        """Return the means lately, or before; NaN if there was nothing."""
        sums = self._sums(lately)
        means: FloatArray = sums[1:] / sums[0] if sums[0] else np.full(len(sums) - 1, np.nan)
        return means

    def _sums(self, lately: bool) -> FloatArray:
        return reduce(_sum, self.sums[1:] if lately else self.sums[:1], np.zeros(1))


def _sum(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return the sum of two vectors, the shorter of which continues with zeros."""
    shorter, longer = sorted((one, other), key=len)
    total = longer.copy()
    total[: len(shorter)] += shorter
    return total


WINDOW = Value(
    Window,
    sums=Each(Array((None,)), 3),
    n_events=Whole(high=BLOCK - 1),
)
"""How a window is saved."""
