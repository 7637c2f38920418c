"""One process of an agent: the learner while it holds the lease, a reader otherwise."""

import os
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from halfseen.agent import clock
from halfseen.agent.deadline import Deadline
from halfseen.agent.events import CHOOSE, EXPIRED, FORGOTTEN, REFIT, Event, Made, expired
from halfseen.agent.fitter import Fitter
from halfseen.agent.journal import Journal, Lead, Stale, Taken
from halfseen.agent.state import N_NOTES, Ready, Reducer, State
from halfseen.agent.upkeep import CHECKPOINT, EXPIRY, LEASE, VIEW, Upkeep
from halfseen.errors import StorageError
from halfseen.log import logger
from halfseen.policies.base import Policy

LEASE_SECONDS = 10.0
"""Seconds for which a process is the learner; it renews that while it works."""

_SAVED_EVERY = 1000  # events between two checkpoints
_EXPIRED_AT_ONCE = 500  # decisions that one event closes
_EVERY = 1.0  # seconds between two views, or tries to get the lease
_LOOKS = 0.25  # seconds between two looks at what expires
_OWN = 1000  # own decisions that a reader adds to its view
_ALL = 10**9
_MANY = 10  # events that may take long: each may be a log


class Codec(NamedTuple):
    """How states become bytes: a checkpoint, a view, and back from either."""

    dump: Callable[[State], bytes]
    view: Callable[[State], bytes]
    load: Callable[[bytes], State]


class Rules(NamedTuple):
    """What an agent does with decisions that wait.

    Attributes
    ----------
    expire_after : float or None
        Seconds after which they expire.
    expire_reward : float
    most_pending : int
        How many may wait without a database.
    """

    expire_after: float | None
    expire_reward: float
    most_pending: int


def resumed(state: State, journal: Journal) -> State:
    """Return the state of a checkpoint with the notes of what was pending then."""
    return state.with_notes(journal.pending(N_NOTES, as_of=state.number))


class Member:
    """Keeps the state of one process in step with the journal, and writes to it.

    The learner applies every event. A reader has the latest view, to which it adds its own
    decisions, so that widths narrow where rewards are pending.

    Parameters
    ----------
    journal : Journal
    reducer : Reducer
    state : State
        That of the journal's latest checkpoint.
    codec : Codec
    rules : Rules
    lock : lock
        Held by whoever calls.
    """

    def __init__(
        self,
        journal: Journal,
        reducer: Reducer,
        state: State,
        codec: Codec,
        rules: Rules,
        lock: Any,
    ) -> None:
        self.journal, self.reducer, self.state = journal, reducer, state
        self.codec, self.rules, self.upkeep = codec, rules, Upkeep()
        self.fitter = Fitter(self, lock)
        self.failure: str | None = None  # why it cannot go on
        self._token = secrets.token_hex(8)
        self._leads_as = ""  # the owner of the lease, while that is this process
        self._is_view = False  # whether the state is only what choosing needs
        self._view_number = -1  # that of the latest view
        self._own: list[Event] = []  # a reader's decisions since its view
        self._published = self._saved = state.number

    @property
    def owner(self) -> str:
        """Name of this process as an owner of the lease; after a fork there are two."""
        return f"{self._token}-{os.getpid()}" if self.journal.is_shared else self._token

    @property
    def is_learner(self) -> bool:
        """Whether this process holds the lease, as far as it knows."""
        return self._leads_as == self.owner

    # In step with the journal

    def follow(self) -> State:
        """Return the state after all events for the learner, or that of the latest view."""
        self.check_usable()
        while True:
            if self.upkeep.is_due(LEASE):
                self._ask_for_lease()
            if not self.is_learner:
                self._look()
                return self.state
            try:
                while news := self.journal.news(self.state.number):
                    with self.renewing(len(news)):
                        self._take_up(news)
                return self.state
            except Stale:
                self.doubt()

    def check_usable(self) -> None:
        """Raise an error if this process cannot go on, or is closed."""
        if self.failure is not None:
            raise StorageError(self.failure)

    def doubt(self) -> None:
        """Ask for the lease before anything else: another process may have it."""
        self.upkeep.later(LEASE, 0.0)

    def _ask_for_lease(self) -> None:
        """Take the lease if it is free, or renew it."""
        found = self.journal.lease(self.owner, LEASE_SECONDS, self.upkeep.ahead[LEASE])
        if found is None:
            self.upkeep.later(LEASE, _EVERY)
            self._leads_as = ""
            return
        self.upkeep.synchronize(found.now - self.upkeep.ahead[LEASE])
        self.upkeep.later(LEASE, LEASE_SECONDS / 3.0)
        if not self.is_learner:
            number, content = self.journal.checkpoint()
            if self._is_view or number > self.state.number:
                self.state = resumed(self.codec.load(content), self.journal)
            self._is_view, self._own, self._saved = False, [], number
            self._leads_as = self.owner

    def _look(self) -> None:
        """Take the latest view, and add own decisions that it does not include."""
        found = self.journal.view(self._view_number)
        if found is None:
            return
        number, content = found
        state = self.codec.load(content)
        known = self.journal.decisions([event.body["id"] for event in self._own])
        own = [
            event
            for event in self._own[-_OWN:]
            if event.body["id"] in known and not 0 < known[event.body["id"]].number <= number
        ]
        for event in own:
            state = self.reducer.apply(state, event._replace(number=state.number + 1))
        self._own, self._view_number, self._is_view, self.state = own, number, True, state

    def _take_up(self, news: Sequence[Event]) -> None:
        """Apply what was appended, and give it numbers."""
        state, before = self.state, None
        events: list[Event] = []
        made: dict[str, Made] = {}
        for event in news:
            if event.number > state.number + 1 or (event.kind == REFIT and not event.policy):
                state = resumed(self.codec.load(self.journal.checkpoint()[1]), self.journal)
                events = []
            if event.number and event.number <= state.number:
                continue
            if not event.number and before is None:
                before = len(events)
            event, state = self._applied_as_next(state, event, made)
            events.append(event)
        if before is not None:
            lead = Lead(self.owner, events[before].number - 1)
            self.journal.number(lead, events[before:])
        self.fitter.applied(events)
        self.state = state

    def _applied_as_next(
        self, state: State, event: Event, made: dict[str, Made]
    ) -> tuple[Event, State]:
        """Return an event with the next number and what is known of its decisions, and its state.

        `made` are the decisions of events before it that the journal does not know in full.
        """
        known = tuple(
            each._replace(notes=made[each.id].notes) if each.id in made else each
            for each in event.made
        )
        event = event._replace(number=state.number + 1, made=known)
        state = self._applied(state, event)
        if event.kind == CHOOSE:
            decision = known[0]._replace(number=event.number, notes=state.notes)
            made[decision.id], event = decision, event._replace(made=(decision,))
        return event, state

    def _applied(self, state: State, event: Event, ready: Ready | None = None) -> State:
        """Apply an event; one that cannot be applied stops a process that shares a journal."""
        try:
            return self.reducer.apply(state, event, ready)
        except Exception as error:
            if not self.journal.is_shared or isinstance(error, StorageError):
                raise
            self.failure = (
                f"event {event.number} of {self.journal.place} cannot be applied, so this process "
                f"stops: {type(error).__name__}: {error}"
            )
            raise StorageError(self.failure) from error

    def whole(self) -> tuple[State, dict[str, Made]]:
        """Return the state after all events, also for a reader, which replays them.

        And decisions of which the journal does not know all.
        """
        state = self.follow()
        if self.is_learner:
            return state, {}
        state = resumed(self.codec.load(self.journal.checkpoint()[1]), self.journal)
        made: dict[str, Made] = {}
        for event in self.journal.news(state.number, _ALL):
            _, state = self._applied_as_next(state, event, made)
        return state, made

    # Writing

    def decide(self, event: Event, ready: Ready, deadline: Deadline) -> Event:
        """Append a decision unless a deadline has passed, and return it with its notes."""
        event = event._replace(number=self.state.number + 1)
        state = self._applied(self.state, event, ready)
        event = event._replace(made=(event.made[0]._replace(notes=state.notes),))
        if not self.is_learner:
            (bare,) = event.made
            bare = bare._replace(notes=())
            self._own += self.journal.append([event._replace(made=(bare,))], deadline=deadline)
            self.state = state
            return event
        events = [event]
        if not self.journal.is_shared and state.traffic.n_pending > self.rules.most_pending:
            events.append(expired(self.journal.pending(1), None, FORGOTTEN))
            events[1] = events[1]._replace(number=event.number + 1)
            state = self._applied(state, events[1])
            self._warn_of_forgotten(events[1], state.traffic.n_forgotten)
        return self._append(events, lambda _: state, deadline=deadline)[0]

    def tell(self, events: Sequence[Event]) -> None:
        """Append rewards or a log; the learner applies them."""
        if not self.is_learner:
            self.journal.append(events)
            return

        def applied(events: Sequence[Event]) -> State:
            state = self.state
            for event in events:
                state = self._applied(state, event)
            return state

        with self.renewing(len(events)):
            self._append(events, applied)

    @property
    def known(self) -> int:
        """The last event that the state includes, besides own decisions of a reader."""
        return self._view_number if self._is_view else self.state.number

    def _append(
        self, events: Sequence[Event], state: Callable[[Sequence[Event]], State], **more: Any
    ) -> list[Event]:
        """Append events as the learner, and take over the state after them."""
        done = self.journal.append(events, Lead(self.owner, self.state.number), **more)
        after = state(done)
        self.fitter.applied(done)
        self.state = after
        return done

    def _warn_of_forgotten(self, event: Event, n: int) -> None:
        if n & (n - 1) == 0:  # the 1st, 2nd, 4th, 8th, …
            message = "decision %s was forgotten, %d so far: more than max_pending = %d are pending"
            logger.warning(message, event.made[0].id, n, self.rules.most_pending)

    # Upkeep

    def tend(self, *, refit: bool = True) -> None:
        """Do what is due, as the learner: expire, refit, publish, save."""
        if not self.is_learner:
            return
        if self.rules.expire_after is not None and self.upkeep.is_due(EXPIRY):
            wait = self.rules.expire_after
            oldest = self.expire(self.upkeep.now(EXPIRY) - wait, self.rules.expire_reward)[1]
            due = wait if oldest is None else oldest + wait - self.upkeep.now(EXPIRY)
            self.upkeep.later(EXPIRY, max(due, min(_LOOKS, wait)))
        if refit:
            self.fitter.refit_if_due()
        else:
            self.publish_if_due()

    def expire(self, latest: float, reward: float | None) -> tuple[int, float | None]:
        """Close decisions that were made until a time; return their number, and the oldest's time.

        The learner closes them, whoever asks.
        """
        n_closed = 0
        while True:
            self.follow()
            oldest = next((made.time for made in self.journal.pending(1)), None)
            if oldest is None or oldest > latest:
                return n_closed, oldest
            some = self.journal.pending(_EXPIRED_AT_ONCE)
            old = [made for made in some if made.time <= latest]
            if self.is_learner:  # what it does not know yet, it takes up first
                old = [made for made in old if made.number]
            with suppress(Taken):  # or a reward has come meanwhile
                self.tell([expired(old, reward, EXPIRED)] if old else [])
                n_closed += len(old)

    def publish_if_due(self, every: int = _SAVED_EVERY) -> None:
        """Publish a view if something has changed, and a checkpoint after so many events."""
        if not self.journal.is_shared or not self.is_learner:
            return
        number, files = self.state.number, {}
        if number > self._published and self.upkeep.is_due(VIEW):
            files["view"] = self.codec.view(self.state)
        if number - self._saved >= every and self.upkeep.is_due(CHECKPOINT):
            files["checkpoint"] = self.codec.dump(self.state)
        if files:
            self._publish((), self.state, files)

    def publish_quietly(self) -> None:
        """Publish after a call that is done; if that fails, a later one does it."""
        with suppress(Stale, StorageError):
            self.publish_if_due()

    def _publish(self, events: Sequence[Event], state: State, files: dict[str, bytes]) -> None:
        self._append(events, lambda _: state, **files)
        if "view" in files:
            self._published = state.number
            self.upkeep.later(VIEW, _EVERY)
        self._saved = state.number if "checkpoint" in files else self._saved

    def refitted(self, event: Event, policy: Policy) -> None:
        """Append a refit, after which the policy is another one, with a view and a checkpoint."""
        number = self.state.number + 1
        event = event._replace(number=number, policy=policy)
        state, files = self._applied(self.state, event), {}
        if self.journal.is_shared:
            files = {"view": self.codec.view(state), "checkpoint": self.codec.dump(state)}
        self._publish([event], state, files)

    @contextmanager
    def renewing(self, n_events: int = _MANY) -> Iterator[None]:
        """Renew the lease from a thread during work that may take longer: many events, a refit."""
        done = threading.Event()

        def renew() -> None:
            while not clock.wait(done, LEASE_SECONDS / 3.0):
                with suppress(StorageError):
                    self.journal.lease(self.owner, LEASE_SECONDS, self.upkeep.ahead[LEASE])

        thread = threading.Thread(target=renew, daemon=True)
        with suppress(RuntimeError):  # there are too many threads: it ends in its time
            if self.journal.is_shared and n_events >= _MANY:
                thread.start()
        try:
            yield
        finally:
            done.set()
            if thread.is_alive():
                thread.join()

    def close(self) -> None:
        """Save what is new, and give the lease back."""
        try:
            if self.is_learner:
                self.upkeep.later(VIEW, 0.0)
                with suppress(Stale):
                    self.publish_if_due(1)
                self.journal.release(self.owner)
        finally:
            self._leads_as, self.failure = "", "the agent is closed: open it anew"
            self.journal.close()
