"""The ledger: which decisions wait for their reward, and what became of the others."""

import datetime
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

from halfseen import checks
from halfseen.errors import AlreadyRewardedError, ForgottenDecisionError
from halfseen.state import Field, Sizes
from halfseen.values import Item, Note
from halfseen.values.decision import checked_reward

N_GONE = 10_000
"""Number of decisions that no longer wait whose ids are known."""

LATEST = 250_000_000_000.0
"""Largest time of a decision, in seconds since 1970: in the year 9892."""

REWARDED, FORGOTTEN, EXPIRED = "rewarded", "forgotten", "expired"
_WHY = REWARDED, FORGOTTEN, EXPIRED


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


class Place(NamedTuple):
    """One place of a decision: only what is needed to learn its reward.

    Attributes
    ----------
    item : str or int
    note : Note
    total : float or None
        Sum of the parts of its reward that have come; None if there are none.
    is_open : bool
        Whether more may come.
    """

    item: Item
    note: Note
    total: float | None = None
    is_open: bool = True


class Waiting(NamedTuple):
    """A decision that waits.

    Attributes
    ----------
    time : float
        When it was made, in seconds since 1970.
    places : tuple of Place
    weight : float or None
        The probability of the first item under a uniform choice, divided by the true one; None if
        some option could not be chosen.
    given : dict
        Rewards by place and key, which count once.
    """

    time: float
    places: tuple[Place, ...]
    weight: float | None
    given: Mapping[tuple[int, str], float] = {}


class Gone(NamedTuple):
    """A decision that no longer waits: why, its items, and the rewards that it got."""

    why: str
    items: tuple[Item, ...]
    given: Mapping[tuple[int, str], float]


class _GivenField:
    def dump(self, value: Mapping[tuple[int, str], float]) -> list[Any]:
        return [[place, key, reward] for (place, key), reward in value.items()]

    def load(self, plain: Any) -> dict[tuple[int, str], float]:
        return {
            (checks.integer("place", place, 0), checks.text("key", key) if key else ""): (
                checked_reward(reward)
            )
            for place, key, reward in plain
        }


_GIVEN = _GivenField()


class _WaitingField:
    def dump(self, value: Mapping[str, Waiting]) -> list[Any]:
        return [
            [
                id,
                each.time,
                [[item, note.to_dict(), *rest] for item, note, *rest in each.places],
                each.weight,
                _GIVEN.dump(each.given),
            ]
            for id, each in value.items()
        ]

    def load(self, name: str, plain: Any, sizes: Sizes) -> OrderedDict[str, Waiting]:
        checks.integer("the number of decisions", len(plain), 0, sizes.owner.limit)
        return OrderedDict(
            (
                checks.text("id", id),
                Waiting(
                    checks.real("time", time, 0.0, LATEST),
                    tuple(_place(*each) for each in places),
                    None if weight is None else checks.real("weight", weight, 0.0),
                    _GIVEN.load(given),
                ),
            )
            for id, time, places, weight, given in plain
        )


def _place(item: Any, note: Any, total: Any, is_open: Any) -> Place:
    return Place(
        _item(item),
        Note.from_dict(note),
        None if total is None else checked_reward(total),
        checks.boolean("is_open", is_open),
    )


def _item(item: Any) -> Item:
    return item if isinstance(item, str) else checks.integer("item", item)


class _GoneField:
    def dump(self, value: Mapping[str, Gone]) -> list[Any]:
        return [
            [id, each.why, list(each.items), _GIVEN.dump(each.given)] for id, each in value.items()
        ]

    def load(self, name: str, plain: Any, sizes: Sizes) -> OrderedDict[str, Gone]:
        checks.integer("the number of decisions", len(plain), 0, N_GONE)
        return OrderedDict(
            (
                checks.text("id", id),
                Gone(
                    checks.one_of("reason", why, _WHY),
                    tuple(_item(item) for item in items),
                    _GIVEN.load(given),
                ),
            )
            for id, why, items, given in plain
        )


class Ledger:
    """Decisions that wait for their reward, the oldest first, and what became of the latest others.

    Bounded: at most `limit` decisions wait; of the others the latest `N_GONE` are known by id.
    """

    STATE: ClassVar[Mapping[str, Field]] = {"_waiting": _WaitingField(), "_gone": _GoneField()}

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._waiting: OrderedDict[str, Waiting] = OrderedDict()
        self._gone: OrderedDict[str, Gone] = OrderedDict()

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[tuple[str, Waiting]]:
        return iter(self._waiting.items())

    @property
    def oldest(self) -> str:
        """The decision that waits longest; an error if there is none."""
        return next(iter(self._waiting))

    def get(self, id: str) -> Waiting | None:
        """Return what is remembered of a decision, if it waits."""
        return self._waiting.get(id)

    def gone(self, id: str) -> Gone | None:
        """Return what became of a decision that no longer waits, if it is known."""
        return self._gone.get(id)

    def apply(self, made: Mapping[str, Waiting], closed: Mapping[str, Gone]) -> None:
        """Add or replace decisions, and close some; a second time nothing happens."""
        for id, gone in closed.items():
            self._waiting.pop(id, None)
            self._gone[id] = gone
        self._waiting.update(made)
        while len(self._gone) > N_GONE:
            self._gone.popitem(last=False)


def is_repeated(id: str, known: Waiting | Gone, place: int, key: str, reward: float) -> bool:
    """Return whether a reward came before, with the same value.

    Raises
    ------
    AlreadyRewardedError
        It came with another value, or the place has its final reward.
    ForgottenDecisionError
        Too many others waited.
    """
    if (place, key) in known.given:
        before = known.given[place, key]
        if before == reward:
            return True
        raise AlreadyRewardedError(
            f"decision {id} was rewarded before, with {before}, got {reward}: each reward counts "
            "once, so drop this one, or give further parts a key of their own"
        )
    if isinstance(known, Waiting):
        if known.places[place].is_open:
            return False
    elif known.why == EXPIRED:  # it is counted as late
        return False
    elif known.why == FORGOTTEN:
        raise ForgottenDecisionError(
            f"decision {id} was forgotten, because max_pending later ones waited for their "
            "rewards: make an agent with a larger max_pending, or with expire_after=…"
        )
    raise AlreadyRewardedError(
        f"decision {id} was rewarded before, and the reward was final: drop this one, or give "
        "parts with final=False and a key for each"
    )
