"""The ledger: which decisions wait for their reward, and what became of the others."""

import datetime
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from halfseen import checks
from halfseen.errors import AlreadyRewardedError, ForgottenDecisionError
from halfseen.state import Each, Field, Flag, Maybe, Plain, Real, Sizes, Value, Word
from halfseen.values import LARGEST, Item, Note
from halfseen.values.decision import checked_reward

N_GONE = 10_000
"""Number of decisions that no longer wait whose ids are known."""

LATEST = 250_000_000_000.0
"""Largest time of a decision, in seconds since 1970: in the year 9892."""

REWARDED, FORGOTTEN, EXPIRED = "rewarded", "forgotten", "expired"


class Pending(NamedTuple):
    """A decision without a final reward: its id, the chosen item, and when it was made.

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

    @property
    def items(self) -> tuple[Item, ...]:
        """The items of all places."""
        return tuple(place.item for place in self.places)

    def closed(self, why: str) -> "Gone":
        """Return what is remembered when it waits no longer."""
        return Gone(why, self.items, self.given)


class Gone(NamedTuple):
    """A decision that no longer waits: why, its items, and the rewards that it got."""

    why: str
    items: tuple[Item, ...]
    given: Mapping[tuple[int, str], float]


class _ById(NamedTuple):
    """Values of one kind by the id of a decision, at most so many, or as many as may wait."""

    field: Field
    most: int | None = None

    def dump(self, value: Mapping[str, Any]) -> list[Any]:
        return [[id, self.field.dump(each)] for id, each in value.items()]

    def load(self, name: str, plain: Any, sizes: Sizes) -> OrderedDict[str, Any]:
        most = sizes.owner.limit if self.most is None else self.most
        checks.integer("the number of decisions", len(plain), 0, most)
        return OrderedDict(
            (checks.text("id", id), self.field.load(name, each, sizes)) for id, each in plain
        )


def _item(name: str, item: Any) -> Item:
    return item if isinstance(item, str) else checks.integer(name, item)


def _given(name: str, plain: Any) -> dict[tuple[int, str], float]:
    """Return rewards by place and key."""
    return {
        (checks.integer("place", place, 0), checks.text("key", key) if key else ""): (
            checked_reward(reward)
        )
        for place, key, reward in plain
    }


_ITEM, _NOTE = Plain(_item), Plain(lambda name, plain: Note.from_dict(plain), Note.to_dict)
_GIVEN = Plain(_given, lambda given: [[*key, reward] for key, reward in given.items()])
_PLACE = Value(Place, item=_ITEM, note=_NOTE, total=Maybe(Real(-LARGEST, LARGEST)), is_open=Flag())
_WAITING = Value(
    Waiting,
    time=Real(0.0, LATEST),
    places=Each(_PLACE, least=1),
    weight=Maybe(Real(1e-15, LARGEST)),  # at least the probability under a uniform choice
    given=_GIVEN,
)
_GONE = Value(
    Gone, why=Word((REWARDED, FORGOTTEN, EXPIRED)), items=Each(_ITEM, least=1), given=_GIVEN
)


class Ledger:
    """Decisions that wait for their reward, the oldest first, and what became of the latest others.

    Bounded: at most `limit` decisions are `waiting`; of the others the latest `N_GONE` are known by
    id, as `gone`.
    """

    STATE: ClassVar[Mapping[str, Field]] = {
        "waiting": _ById(_WAITING),
        "gone": _ById(_GONE, N_GONE),
    }

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.waiting: OrderedDict[str, Waiting] = OrderedDict()
        self.gone: OrderedDict[str, Gone] = OrderedDict()

    @property
    def oldest(self) -> tuple[str, Waiting] | None:
        """The id of the decision that waits longest, and the decision."""
        return next(iter(self.waiting.items()), None)

    def apply(self, made: Mapping[str, Waiting], closed: Mapping[str, Gone]) -> None:
        """Add or replace decisions, and close some; a second time nothing happens."""
        for id, gone in closed.items():
            self.waiting.pop(id, None)
            self.gone[id] = gone
        self.waiting.update(made)
        while len(self.gone) > N_GONE:
            self.gone.popitem(last=False)


def check_open(id: str, known: Waiting | Gone, place: int) -> None:
    """Raise an error unless a place of a decision takes a reward; once expired, it is late.

    Raises
    ------
    AlreadyRewardedError
        The place has its final reward.
    ForgottenDecisionError
        Too many others waited.
    """
    if isinstance(known, Waiting):
        is_open = known.places[place].is_open
    elif known.why == FORGOTTEN:
        raise ForgottenDecisionError(
            f"decision {id} was forgotten, because max_pending later ones were pending: set a "
            "larger max_pending, or expire_after"
        )
    else:
        is_open = known.why == EXPIRED
    if not is_open:
        raise AlreadyRewardedError(
            f"decision {id} was rewarded before, and the reward was final: drop this one, or mark "
            "parts as not final, with a key for each"
        )
