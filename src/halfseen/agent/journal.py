"""The journal: what an agent was asked and told, and what it made of it, for all its processes.

Any process appends decisions and rewards, each under its own key; nobody waits for a number. One
process at a time holds the lease, the learner: it takes events up, gives them numbers, and
publishes a view, from which the others choose, and checkpoints, from which the next learner goes
on. What it writes is fenced: it counts only while it holds the lease, and after exactly the event
that it knows to be the last one.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, Protocol

from halfseen import checks
from halfseen.agent import clock
from halfseen.agent.deadline import Deadline
from halfseen.agent.events import CHOOSE, MADE, OBSERVE, REWARD, Event, Made, Place
from halfseen.errors import StorageError
from halfseen.state import Each, Plain, Value
from halfseen.values.decision import checked_reward

N_GONE = 10_000
"""Number of decisions that no longer wait whose ids are known without a database."""

_KEPT = 64  # numbered events that are kept without a database, where nobody else reads them


class Taken(Exception):  # noqa: N818 (a state, no mistake)
    """An id or a key was used before, or a place has changed since it was looked up."""


class Stale(Exception):  # noqa: N818
    """The lease is lost, or other events came first."""


Rewards = Mapping[tuple[int, str], float]
"""Rewards of a decision by place and key."""


class Saved(NamedTuple):
    """A decision with its rewards."""

    made: Made
    rewards: Rewards


def _given(name: str, plain: Any) -> dict[tuple[int, str], float]:
    return {
        (checks.integer("place", place, 0), checks.text("key", key) if key else ""): (
            checked_reward(reward)
        )
        for place, key, reward in plain
    }


SAVED = Each(
    Value(
        Saved,
        made=MADE,
        rewards=Plain(_given, lambda given: [[*key, reward] for key, reward in given.items()]),
    )
)
"""How decisions are saved with an agent."""


class Lead(NamedTuple):
    """What the learner may write: as the owner of the lease, after the last event."""

    owner: str
    last: int


class Leased(NamedTuple):
    """The lease: the journal's time when it was granted, and the number of the last event."""

    now: float
    last: int


class Journal(Protocol):
    """What an agent needs of a journal; `halfseen.testing.check_journal` checks it.

    Attributes
    ----------
    place : str
        Where it is, for messages: without a password.
    is_shared : bool
        Whether other processes, or later ones, read it.
    """

    place: str
    is_shared: bool

    def append(
        self,
        events: Sequence[Event],
        lead: Lead | None = None,
        *,
        view: bytes | None = None,
        checkpoint: bytes | None = None,
        deadline: Deadline | None = None,
    ) -> list[Event]:
        """Append events, all or none; return them with their times, and numbers if led.

        A decision's id, a reward's decision, place and key, and a log's key count once. Whether a
        place is open was decided from the decision as it was looked up: it must not have changed.
        A learner's events get the next numbers at once; its view and its checkpoint are those after
        the last of them. A deadline is looked at when all is ready to be committed.

        Raises
        ------
        Late
            The deadline has passed.
        Taken
            An id or key was used before, or a decision has changed.
        Stale
            `lead` has lost the lease, or does not know the last event.
        """

    def news(self, after: int, most: int = 1000) -> list[Event]:
        """Return events after a number in their order, then those without a number, oldest first.

        Each with the decisions that it is about.
        """

    def number(self, lead: Lead, events: Sequence[Event]) -> None:
        """Give the next numbers to events without one; decisions have their notes. Or `Stale`."""

    def decisions(self, ids: Sequence[str]) -> dict[str, Made]:
        """Return decisions by id: those that are known."""

    def event_of(self, id: str) -> Event | None:
        """Return the event of a decision, with its options and probabilities, if it is kept."""

    def rewards(self, ids: Sequence[str]) -> dict[str, Rewards]:
        """Return the rewards of decisions that have any."""

    def log_request(self, key: str) -> bytes | None:
        """Return a digest of the log that was observed with a key."""

    def pending(self, most: int | None = None, *, as_of: int | None = None) -> list[Made]:
        """Return decisions with an open place, the oldest first; at most so many.

        As of an event: the latest ones that had an open place after it.
        """

    def gone(self, most: int) -> list[Made]:
        """Return the latest decisions without an open place, at most so many, the oldest first."""

    def n_behind(self, after: int) -> int:
        """Return how many events come after a number, or have none yet."""

    def view(self, after: int = -1) -> tuple[int, bytes] | None:
        """Return the latest view and the number of its event, if that is after another number."""

    def checkpoint(self) -> tuple[int, bytes]:
        """Return the latest checkpoint and the number of its event."""

    def lease(self, owner: str, seconds: float, ahead: float = 0.0) -> Leased | None:
        """Take or renew the lease; None if another owner holds it.

        `ahead` is added to the journal's time. A deadline that lies further ahead than any lease is
        from before a clock was set back, and holds no more.
        """

    def release(self, owner: str) -> None:
        """Give the lease back."""

    def now(self) -> float:
        """Return the journal's time, in seconds since 1970."""

    def size(self) -> int | None:
        """Return its size in bytes, if it has one."""

    def close(self) -> None:
        """Close what is open."""


class MemoryJournal:
    """A journal of one process, in memory.

    It keeps all pending decisions, the outcome of the latest `N_GONE` others, and the latest
    events.
    """

    place, is_shared = "memory", False

    def __init__(self, saved: Iterable[Saved] = (), last: int = 0) -> None:
        self._events: deque[Event] = deque(maxlen=_KEPT)
        self._new: list[Event] = []
        self._open: OrderedDict[str, Made] = OrderedDict()
        self._gone: OrderedDict[str, Made] = OrderedDict()
        self._rewards: dict[str, Rewards] = {}
        self._logs: dict[str, bytes] = {}
        self._files = {"view": (last, b""), "checkpoint": (last, b"")}
        self._last, self._entry, self._owner, self._until = last, 0, "", 0.0
        for made, rewards in saved:
            self._rewards[made.id] = dict(rewards)
            self._put(made)

    def now(self) -> float:
        """Return the time."""
        return clock.now()

    def append(
        self,
        events: Sequence[Event],
        lead: Lead | None = None,
        *,
        view: bytes | None = None,
        checkpoint: bytes | None = None,
        deadline: Deadline | None = None,
    ) -> list[Event]:
        """Append events, all or none."""
        if lead is not None:
            self._check(lead)
        places: dict[str, tuple[Place, ...]] = {}
        for event in events:
            self._check_new(event, places)
        now, added = self.now(), []
        for at, event in enumerate(events, 1):
            number = 0 if lead is None else self._last + at
            event = event._replace(number=number, time=now, entry=self._entry + at)
            if event.kind == CHOOSE:
                made = event.made[0]._replace(time=now, number=number, request=event.request())
                event = event._replace(made=(made,))
            added.append(event)
        last = self._last + len(added) if lead is not None else self._last
        files = {"view": view, "checkpoint": checkpoint}
        if deadline is not None:
            deadline.commit()
        _surely(lambda: self._write(added, last, files))
        return added

    def _check(self, lead: Lead) -> None:
        if lead != (self._owner, self._last):
            raise Stale

    def _check_new(self, event: Event, places: dict[str, tuple[Place, ...]]) -> None:
        """Raise `Taken` unless an event is new, after others that changed some places."""
        body = event.body
        is_taken = False
        if event.kind == CHOOSE:
            is_taken = bool(self.decisions([body["id"]]))
        elif event.kind == REWARD:
            is_taken = (body["place"], body["key"]) in self._rewards.get(body["id"], {})
        elif event.kind == OBSERVE:
            is_taken = body.get("key") in self._logs
        known = {id: made.places for id, made in self.decisions(list(event.changes)).items()}
        for id, (before, after) in event.changes.items():
            is_taken |= places.get(id, known.get(id)) != before.places
            places[id] = after.places
        if is_taken:
            raise Taken

    def _write(self, events: Sequence[Event], last: int, files: Mapping[str, bytes | None]) -> None:
        """Write what a call changes; a second time nothing happens."""
        for event in events:
            body = event.body
            if event.kind == CHOOSE:
                self._put(event.made[0])
            elif event.kind == REWARD:
                given = self._rewards.get(body["id"], {})
                key = body["place"], body["key"]
                self._rewards[body["id"]] = {**given, key: body["value"]}
            elif event.kind == OBSERVE and "key" in body:
                self._logs[body["key"]] = event.request()
            for before, after in event.changes.values():
                self._put(self._decision(before.id)._replace(places=after.places))
            if event.entry > self._entry:
                (self._events if event.number else self._new).append(event)
                self._entry = event.entry
        self._last = last
        self._files |= {name: (last, each) for name, each in files.items() if each is not None}

    def _put(self, made: Made) -> None:
        if made.is_open:
            self._open[made.id] = made
            return
        self._open.pop(made.id, None)
        self._gone[made.id] = made
        while len(self._gone) > N_GONE:
            self._rewards.pop(self._gone.popitem(last=False)[0], None)

    def news(self, after: int, most: int = 1000) -> list[Event]:
        """Return events after a number, then those without a number."""
        if after < self._last and (not self._events or self._events[0].number > after + 1):
            raise StorageError(f"events after {after} are no longer kept in memory")
        found = [each for each in self._events if each.number > after] + self._new
        return [self._known(each) for each in found[:most]]

    def _known(self, event: Event) -> Event:
        """Return an event with what is known of its decisions now."""
        if event.kind == CHOOSE:
            return event
        known = self.decisions([each.id for each in event.made])
        return event._replace(made=tuple(known.get(each.id, each) for each in event.made))

    def number(self, lead: Lead, events: Sequence[Event]) -> None:
        """Give the next numbers to events without one."""
        self._check(lead)

        def write() -> None:
            taken = {event.entry for event in events}
            for event in events:
                if event.kind == CHOOSE:
                    (made,) = event.made
                    known = self._decision(made.id)
                    self._put(known._replace(notes=made.notes, number=event.number))
                if all(each.entry != event.entry for each in self._events):
                    self._events.append(event)
            self._new = [event for event in self._new if event.entry not in taken]
            self._last = lead.last + len(events)

        _surely(write)

    def _decision(self, id: str) -> Made:
        return self._open.get(id) or self._gone[id]

    def decisions(self, ids: Sequence[str]) -> dict[str, Made]:
        """Return decisions by id."""
        found = {id: self._open.get(id) or self._gone.get(id) for id in ids}
        return {id: made for id, made in found.items() if made is not None}

    def event_of(self, id: str) -> Event | None:
        """Return nothing: options are not kept."""
        return None

    def rewards(self, ids: Sequence[str]) -> dict[str, Rewards]:
        """Return the rewards of decisions that have any."""
        return {id: dict(self._rewards[id]) for id in ids if id in self._rewards}

    def log_request(self, key: str) -> bytes | None:
        """Return a digest of the log that was observed with a key."""
        return self._logs.get(key)

    def pending(self, most: int | None = None, *, as_of: int | None = None) -> list[Made]:
        """Return decisions with an open place, the oldest first."""
        if as_of is None:
            return list(self._open.values() if most is None else islice(self._open.values(), most))
        later = [each for each in (*self._events, *self._new) if not 0 < each.number <= as_of]
        closed = {id for each in later for id in each.changes}
        found = [each for each in self._open.values() if 0 < each.number <= as_of]
        found += [each for id in closed - self._open.keys() for each in [self._gone[id]]]
        return sorted(found, key=lambda made: made.number)[-most:] if most else found

    def gone(self, most: int) -> list[Made]:
        """Return the latest decisions without an open place."""
        return list(self._gone.values())[-most:]

    def n_behind(self, after: int) -> int:
        """Return how many events come after a number, or have none yet."""
        return self._last - after + len(self._new)

    def view(self, after: int = -1) -> tuple[int, bytes] | None:
        """Return the latest view."""
        found = self._files["view"]
        return found if found[0] > after else None

    def checkpoint(self) -> tuple[int, bytes]:
        """Return the latest checkpoint."""
        return self._files["checkpoint"]

    def lease(self, owner: str, seconds: float, ahead: float = 0.0) -> Leased | None:
        """Take or renew the lease."""
        now = self.now() + ahead
        is_held = now < self._until <= now + 2 * seconds
        if is_held and owner != self._owner:
            return None
        self._owner, self._until = owner, now + seconds
        return Leased(now, self._last)

    def release(self, owner: str) -> None:
        """Give the lease back."""
        if owner == self._owner:
            self._owner, self._until = "", 0.0

    def size(self) -> int | None:
        """Return nothing: memory has no size of its own."""
        return None

    def close(self) -> None:
        """Do nothing."""


def _surely(write: Callable[[], None]) -> None:
    """Write all of it also if an interrupt comes; it is raised when that is done."""
    try:
        write()
    except BaseException:
        write()
        raise
