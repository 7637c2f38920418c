"""The state of an agent, `apply`, the only way in which it changes, and what keeps it in step."""

import datetime
import os
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import partial
from itertools import islice
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from halfseen import archive, checks, state
from halfseen.agent import clock
from halfseen.agent.deadline import Deadline
from halfseen.agent.events import CHOOSE, EXPIRE, LEARN, OBSERVE, REFIT, Asked, Event
from halfseen.agent.forks import AGENT, forkable_lock
from halfseen.agent.health import LIFT, SIGNS, WINDOW, Lift, Signs, Window, n_seen
from halfseen.agent.lease import Lease
from halfseen.agent.ledger import EXPIRED, FORGOTTEN, REWARDED, Gone, Ledger, Place, Waiting
from halfseen.agent.storage import EXPIRY, Stale, Storage
from halfseen.errors import (
    ArchiveError,
    HalfseenError,
    InvalidSettingError,
    InvalidTableError,
    StorageError,
)
from halfseen.frames import Encoded, Encoder, EncoderField, Reader, Rows, ids_alone
from halfseen.latent.policy import INVERSE_GAP, LatentUcb
from halfseen.log import logger
from halfseen.params import Declared, choice, custom, integer, real
from halfseen.policies.abilities import AwaitsRewards, Grows, Refits, Reports, UsesItems
from halfseen.policies.base import Policy
from halfseen.policies.optimism import EXPLORATIONS
from halfseen.policies.registry import AnyPolicy, policy_to_dict
from halfseen.values import LARGEST, FloatArray, Note, Slate

_SAVED_EVERY = 10_000  # events between two checkpoints
_EXPIRED_AT_ONCE = 500  # decisions that one event closes
_PAUSE = 0.2  # seconds between two expiries, and after which a lease that was not free is asked for
_AFTER_FAILURE = 30.0  # seconds between a refit that failed and the next one
_ENCODED = 64  # encoded sets that are remembered
_REFITS = 20  # refits whose times are remembered


class Ready(NamedTuple):
    """What was asked, for a policy: a fork that knows all columns, and encoders that do.

    Attributes
    ----------
    policy : Policy
    options, context : Encoder
    slate : Slate
    contexts : ndarray, shape (n, context_dim), or None
    """

    policy: Policy
    options: Encoder
    context: Encoder
    slate: Slate
    contexts: FloatArray | None


def _checked_policy(name: str, value: Any) -> Policy:
    if not isinstance(value, Policy):
        kind = value.__name__ if isinstance(value, type) else type(value).__name__
        raise InvalidSettingError(f"must be a policy such as LatentUcb(), got {kind}", name=name)
    return value


def _checked_time(name: str, value: Any) -> datetime.timedelta:
    if isinstance(value, int | float) and not isinstance(value, bool):  # from `settings()`
        value = datetime.timedelta(seconds=value)
    if not isinstance(value, datetime.timedelta) or value <= datetime.timedelta(0):
        raise InvalidSettingError(f"must be a timedelta above 0, got {value!r}", name=name)
    return value


def _names(doc: str) -> Any:
    """Return a parameter that is a list of columns."""

    def check(name: str, value: Any) -> tuple[str, ...]:
        names = value if isinstance(value, list | tuple | set | frozenset) else None
        if names is None or not all(isinstance(each, str) for each in names):
            raise InvalidSettingError(f"must be a list of column names, got {value!r}", name=name)
        return tuple(sorted(set(names)))

    return custom(default=(), check=check, plain=list, kind="list of str", doc=doc)


class Replica(Declared):
    """Settings and state of an agent. Equal events leave equal states, bit by bit.

    `apply` does not choose, draw, fit or read a clock. It first prepares everything that an event
    changes, on a fork of the policy and in new objects; then it assigns that, by one method that
    may run twice.

    A call changes it by `_record`: an event is appended to the database, if there is one, and
    applied after those of other processes. Whoever holds the lease refits for all.
    """

    policy: Policy | None = custom(
        default=None,
        check=_checked_policy,
        plain=lambda policy: {"policy": type(policy).__name__, "settings": policy.settings()},
        kind="Policy",
        doc="The policy that chooses; by default `LatentUcb()`. The agent uses a copy.",
    )
    explore: str | None = choice(
        default=None,
        words=(*EXPLORATIONS, INVERSE_GAP),
        doc='How the agent explores, if no policy is given; by default "ucb".',
    )
    uniform_share: float | None = real(
        default=None,
        low=0.0,
        high=1.0,
        doc="""Share of the decisions in which all options are equally likely, if no policy is
    given; by default 0.""",
    )
    id: str | None = custom(
        default=None,
        check=checks.text,
        kind="str",
        doc="The column with item ids; by default the index of a frame, or positions.",
    )
    ignore: Sequence[str] = _names(doc="Columns to leave out.")
    categorical: Sequence[str] = _names(doc="Columns whose numbers are categories.")
    numeric: Sequence[str] = _names(doc="Columns whose strings are numbers.")
    max_levels: int = integer(
        default=50, low=1, doc="Levels of a category that have their own feature; others share 16."
    )
    max_columns: int = integer(default=1000, low=1, doc="Largest number of columns.")
    max_pending: int = integer(
        default=10_000,
        low=1,
        doc="Largest number of pending decisions; the oldest is forgotten first.",
    )
    expire_after: datetime.timedelta | None = custom(
        default=None,
        check=_checked_time,
        plain=lambda value: value.total_seconds(),
        kind="timedelta",
        doc="How long a decision is pending; by default until `expire` is called.",
    )
    expire_reward: float = real(
        default=0.0,
        low=-LARGEST,
        high=LARGEST,
        doc="The reward of a decision that expires without one.",
    )
    STATE: ClassVar[Mapping[str, state.Field]] = {
        "_policy": AnyPolicy(),
        "_options": EncoderField(),
        "_context": EncoderField(),
        "_ledger": state.Part(),
        "_n_decisions": state.Whole(),
        "_n_forgotten": state.Whole(),
        "_n_late": state.Whole(),
        "_seen": WINDOW,
        "_context_seen": WINDOW,
        "_rewards": WINDOW,
        "_lift": LIFT,
        "_signs": SIGNS,
        "_refit_seconds": state.Each(state.Real(0.0)),
        "_last": state.Whole(),
    }

    def setup(self) -> None:
        """Create the state of a fresh agent; its parameters are already set as attributes."""
        if both := set(self.ignore) & {*self.categorical, *self.numeric, self.id}:
            raise InvalidSettingError(
                f"must not have columns that are used, got {sorted(both)}", name="ignore"
            )
        if both := set(self.numeric) & {*self.categorical}:
            raise InvalidSettingError(
                f"must not have columns that are categorical, got {sorted(both)}", name="numeric"
            )
        self._reader = Reader(
            self.id, frozenset(self.ignore), frozenset(self.categorical), frozenset(self.numeric)
        )
        self._policy = self._fresh_policy()
        encoder = Encoder(max_levels=self.max_levels, max_columns=self.max_columns)
        self._options, self._context = encoder, encoder
        self._ledger = Ledger(self.max_pending)
        self._n_decisions, self._n_forgotten, self._n_late = 0, 0, 0
        # Entries seen of each feature, per option and per context, and rewards.
        self._seen, self._context_seen, self._rewards = (Window(), Window(), Window())
        self._lift, self._signs = Lift(), Signs()
        self._refit_seconds: tuple[float, ...] = ()  # of the latest refits
        self._last = 0  # event that this state includes
        self._lock = forkable_lock(AGENT)
        self.storage: Storage | None = None  # `open` sets it
        self._encodings: OrderedDict[tuple[bytes, bool], Any] = OrderedDict()
        # In this process alone:
        self._token = secrets.token_hex(8)
        self._saved = 0  # event of the latest checkpoint known here
        self._next_expiry, self._next_refit = 0.0, 0.0  # when to try again, by `clock.elapsed`
        self._n_failed_refits = 0  # in this process
        self._worker: threading.Thread | None = None
        self._refitter: threading.Thread | None = None  # the thread that refits now
        self._since: dict[int, Event] = {}  # without a database: events since it began
        self._failure: str | None = None  # why it cannot go on
        self._is_closed = False
        self._lease: Lease | None = None  # while this process refits for all
        self._n_warned = 0  # warnings that this process has logged and that still hold

    def _fresh_policy(self) -> Policy:
        """Return a copy of the policy given, or the agent's own with its exploration."""
        both = {"exploration": self.explore, "uniform_share": self.uniform_share}
        given: dict[str, Any] = {name: value for name, value in both.items() if value is not None}
        if self.policy is None:
            return LatentUcb(**given)
        for name in given:
            raise InvalidSettingError(
                "is for the agent's own policy: leave it out, or set it in the policy given, as "
                f"LatentUcb({name}=…)",
                name={"exploration": "explore"}.get(name, name),
            )
        return deepcopy(self.policy)

    @property
    def learner(self) -> Policy:
        """The policy in its present state, which must not be changed."""
        return self._policy

    # Files

    def to_dict(self) -> dict[str, Any]:
        """Return settings and state as plain values and arrays."""
        settings = self.settings()
        del settings["policy"]
        return {"agent": settings, "state": state.dump(self)}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        """Return the agent that `to_dict` described."""
        agent = cls(**plain["agent"])
        state.restore(agent, plain["state"])
        policy = agent._policy
        for encoder, dim in ((agent._options, policy.dim), (agent._context, policy.context_dim)):
            if encoder.width > (dim or 0):
                raise ArchiveError(f"{encoder.width} features are too many for a policy with {dim}")
        for waiting in agent._ledger.waiting.values():
            for place in waiting.places:
                policy.check_note(place.note)
        agent.__dict__["policy"] = type(policy)(**policy.settings())
        return agent

    # Events

    def apply(self, event: Event, ready: Ready | None = None) -> None:
        """Change the state as an event says; `ready` is what it asks, if that is known.

        Raises
        ------
        StorageError
            The event is not the next one, or cannot be applied.
        """
        if event.number != self._last + 1:
            raise StorageError(
                f"event {event.number} follows event {self._last}: others are missing, restore them"
            )
        if event.kind == CHOOSE:
            self._apply_choice(event, ready)
        elif event.kind == LEARN:
            self._apply_rewards(event)
        elif event.kind == EXPIRE:
            self._apply_expiry(event)
        elif event.kind == OBSERVE:
            self._apply_log(event, ready)
        elif event.kind == REFIT:
            self._continue_from_checkpoint(event.number)
        else:
            raise StorageError(f"it is a {event.kind!r}, which is not known: upgrade halfseen")

    def _assign(
        self,
        event: Event,
        changed: dict[str, Any],
        made: Mapping[str, Waiting] | None = None,
        closed: Mapping[str, Gone] | None = None,
    ) -> None:
        """Assign what an event changes; an interrupt is raised when that is done."""
        changed["_last"] = event.number
        try:
            self._ledger.apply(made or {}, closed or {})
            self.__dict__.update(changed)
        except BaseException:
            self._ledger.apply(made or {}, closed or {})
            self.__dict__.update(changed)
            raise

    def _apply_choice(self, event: Event, ready: Ready | None) -> None:
        """Let a decision wait; if too many do, the oldest is forgotten."""
        body = event.body
        if ready is None:
            assert event.asked is not None
            ready = self._encoded(event.asked, lenient=True)
            ready.policy.prepare(ready.slate)
        policy, slate = ready.policy, ready.slate
        places = []
        for arm, item in zip(body["arms"], body["items"], strict=True):
            note = policy.advance(slate, arm)
            if isinstance(policy, AwaitsRewards):
                policy.await_reward(note)
            places.append(Place(item, note))
        n, n_waiting = self._n_decisions + 1, len(self._ledger.waiting)
        table, contexts = slate.table, ready.contexts
        changed: dict[str, Any] = {
            "_policy": policy,
            "_options": ready.options,
            "_context": ready.context,
            "_n_decisions": n,
            "_seen": self._seen.added(n_seen(table), len(table)),
            "_signs": self._signs.decided(n, min(n_waiting + 1, self.max_pending)),
        }
        if contexts is not None:
            changed["_context_seen"] = self._context_seen.added(n_seen(contexts), len(contexts))
        made = {body["id"]: Waiting(event.time, tuple(places), body["weight"])}
        closed = {}
        if n_waiting >= self.max_pending:
            closed = self._forgotten(policy)
            changed["_n_forgotten"] = self._n_forgotten + 1
        self._assign(event, changed, made, closed)

    def _forgotten(self, policy: Policy) -> dict[str, Gone]:
        """Let a policy forget the oldest decision; the logger warns now and then."""
        (id, oldest), n = next(iter(self._ledger.waiting.items())), self._n_forgotten + 1
        if isinstance(policy, AwaitsRewards):
            policy.give_up(*(each.note for each in oldest.places if each.is_open))
        if n & (n - 1) == 0:  # the 1st, 2nd, 4th, 8th, …
            message = "decision %s was forgotten, %d so far: more than max_pending = %d are pending"
            logger.warning(message, id, n, self.max_pending)
        return {id: oldest.closed(FORGOTTEN)}

    def _apply_rewards(self, event: Event) -> None:
        """Learn rewards; those of decisions that no longer wait are counted as late."""
        n_late = self._n_late
        made: dict[str, Waiting] = {}
        final: list[tuple[Waiting, int, float]] = []
        for id, at, key, value, is_final in event.rewards:
            waiting = made.get(id) or self._ledger.waiting.get(id)
            if waiting is None or not waiting.places[at].is_open:
                n_late += 1
                continue
            place = waiting.places[at]
            total = value + (place.total or 0.0)
            places = list(waiting.places)
            places[at] = place._replace(total=total, is_open=not is_final)
            given = {**waiting.given, (at, key): value}
            made[id] = waiting._replace(places=tuple(places), given=given)
            if is_final:
                final.append((made[id], at, total))
        changed = self._learned(final) | {"_n_late": n_late}
        done = [id for id, each in made.items() if not any(place.is_open for place in each.places)]
        closed = {id: made.pop(id).closed(REWARDED) for id in done}
        self._assign(event, changed, made, closed)

    def _apply_expiry(self, event: Event) -> None:
        """Close decisions: each open place gets its parts, or the reward of expiry, if any."""
        waiting = self._ledger.waiting
        final: list[tuple[Waiting, int, float]] = []
        forgotten: list[Note] = []
        for id, at, _, value, _ in event.rewards:
            if value is None:
                forgotten.append(waiting[id].places[at].note)
            else:
                final.append((waiting[id], at, value))
        closed = {id: waiting[id].closed(EXPIRED) for id in event.body["ids"]}
        self._assign(event, self._learned(final, forgotten), closed=closed)

    def _learned(
        self, rewards: Sequence[tuple[Waiting, int, float]], forgotten: Sequence[Note] = ()
    ) -> dict[str, Any]:
        """Return what changes if some rewards are learned."""
        if not rewards and not forgotten:
            return {}
        policy = self._policy.fork()
        window, lift, signs = self._rewards, self._lift, self._signs
        if forgotten and isinstance(policy, AwaitsRewards):
            policy.give_up(*forgotten)
        for waiting, at, reward in rewards:
            note = waiting.places[at].note
            policy.update(note.widened(policy.dim, policy.context_dim), reward)
            window, signs = window.added([reward], 1), signs.rewarded(reward)
            if at == 0 and waiting.weight is not None:
                lift = lift.added(reward, waiting.weight)
        return {"_policy": policy, "_rewards": window, "_lift": lift, "_signs": signs}

    def _apply_log(self, event: Event, ready: Ready | None) -> None:
        """Learn from rows that somebody else chose."""
        assert event.asked is not None
        ready = ready or self._encoded(event.asked, log=True, lenient=True)
        table, contexts = ready.slate.table, ready.contexts
        policy = ready.policy
        policy.learn_rows(ready.slate, event.rewards, contexts)
        seen, context_seen, window = self._seen, self._context_seen, self._rewards
        for row, reward in enumerate(event.rewards):
            seen = seen.added(table[row] == table[row], 1)
            if contexts is not None:
                context_seen = context_seen.added(contexts[row] == contexts[row], 1)
            window = window.added([reward], 1)
        changed = {"_policy": policy, "_options": ready.options, "_context": ready.context}
        changed |= {"_seen": seen, "_context_seen": context_seen, "_rewards": window}
        self._assign(event, changed)

    def _continue_from_checkpoint(self, number: int = -1) -> None:
        """Take the state after the checkpoint of a refit, or a later one."""
        assert self.storage is not None
        self._continue_as(self.at_checkpoint(self.storage, number))

    def _continue_as(self, other: Self) -> None:
        """Take the state of another agent."""
        names = ("policy", *self.STATE)
        self.__dict__.update({name: other.__dict__[name] for name in names})

    @classmethod
    def at_checkpoint(cls, storage: Storage, number: int = -1) -> Self:
        """Return an agent after the checkpoint of a refit, or after the latest one."""
        number, covers, content = storage.checkpoint(number)
        other = cls.from_dict(archive.from_bytes(content, storage.place))
        other.storage = storage
        for event in storage.after(covers, number):
            if event.number < number or event.kind != REFIT:
                other.apply(event)
            else:
                other._count_refit(event)
        return other

    def _count_refit(self, event: Event) -> None:
        """Count the refit from which this state comes."""
        self._refit_seconds = (*self._refit_seconds[1 - _REFITS :], event.body["seconds"])
        self._last = event.number

    @property
    def _is_background(self) -> bool:
        """Whether a thread refits the policy."""
        return isinstance(self._policy, Refits) and self._policy.refit == "background"

    @property
    def _refits_policy(self) -> bool:
        """Whether the agent refits the policy, for all processes or in a thread."""
        return self.storage is not None or self._is_background

    def _warnings(self) -> list[str]:
        """Return what looks wrong about rewards."""
        found = self._signs.warnings(len(self._ledger.waiting))
        return [*(found if self.expire_after is None else ()), *Reports.of(self._policy).warnings()]

    @property
    def _owner(self) -> str:
        """Name of this replica as an owner of the lease; after a fork there are two."""
        return f"{self._token}-{os.getpid()}"

    # How a call changes the agent: append an event, then apply it

    def _record(
        self,
        event: Event,
        ready: Ready | None = None,
        *,
        exactly: bool = False,
        deadline: Deadline | None = None,
    ) -> None:
        """Append an event, and apply it after those that others have appended."""
        if self.storage is None:
            if deadline is not None:
                deadline.commit()
            event = event._replace(number=self._last + 1, time=clock.now())
            if self._refitter is not None:
                self._since[event.number] = event
        else:
            event = self.storage.append(event, self._last, exactly=exactly, deadline=deadline)
            if event.number > self._last + 1:
                ready = None  # it was made from an earlier state
                self._catch_up(event.number - 1)
        self._apply_or_stop(event, ready)
        warnings = self._warnings()
        for text in warnings[self._n_warned :]:
            logger.warning(text)
        self._n_warned = len(warnings)

    def _catch_up(self, until: int | None = None) -> None:
        """Apply what other processes have appended."""
        self._check_usable()
        if self.storage is not None:
            for event in self.storage.after(self._last, until):
                if event.number > self._last + 1:  # what is between was pruned
                    self._continue_from_checkpoint()
                self._apply_or_stop(event)

    def _check_usable(self) -> None:
        """Raise an error if this agent is closed, or cannot go on."""
        if self._failure is not None:
            raise StorageError(self._failure)

    def _apply_or_stop(self, event: Event, ready: Ready | None = None) -> None:
        """Apply an event; with a database, one that cannot be applied stops this agent."""
        if event.number <= self._last:  # a refit has led to a later checkpoint
            return
        try:
            self.apply(event, ready)
        except Exception as error:
            if self.storage is None or isinstance(error, StorageError):
                raise
            self._failure = (
                f"event {event.number} of {self.storage.place} cannot be applied, so this process "
                f"stops: {type(error).__name__}: {error}"
            )
            raise StorageError(self._failure) from error

    # Upkeep

    def tick(self) -> None:
        """Expire, refit and save what is due, unless another process does so; for a worker.

        `choose` does this as well; a worker that calls `tick` every second saves it the time.
        """
        with self._lock:
            self._catch_up()
            self._expire_if_due()
        self.refit_if_due()
        with self._lock:
            self._catch_up()
            self._save_if_due()

    def _tend(self) -> None:
        """Do what is due and no worker has done."""
        self._expire_if_due()
        if self._is_refit_due:
            if self._is_background and self._refit_seconds:
                self._refit_beside()
            else:
                self.refit_if_due()
        self._save_if_due()

    def _expire_if_due(self) -> None:
        """Close decisions that have waited too long."""
        oldest = self._ledger.oldest
        if self.expire_after is None or oldest is None:
            return
        wait = self.expire_after.total_seconds()
        if clock.elapsed() >= self._next_expiry and oldest[1].time <= clock.now() - wait:
            self._next_expiry = clock.elapsed() + _PAUSE
            self._expire(self._now() - wait, self.expire_reward)

    def _now(self) -> float:
        """Return the time that events have."""
        return clock.now() if self.storage is None else self.storage.now()

    @property
    def _is_refit_due(self) -> bool:
        policy = self._policy
        is_due = self._refits_policy and isinstance(policy, Refits) and policy.is_refit_due
        return is_due and clock.elapsed() >= self._next_refit

    def refit_if_due(self) -> bool:
        """Refit the policy's models for all processes if that is due; return whether it did.

        The state is that of some event. Other events may come while models are fitted: at the event
        of the refit, every process continues from the new state and applies them again.
        """
        thread = threading.current_thread()
        try:
            with self._lock:
                self._catch_up()
                # In a process that was forked, the thread that refitted is not alive.
                is_refitting = self._refitter is not None and self._refitter.is_alive()
                if is_refitting or not self._is_refit_due:
                    return False
                self._refitter = thread
                if not self._take_lease():
                    return False
            return self._refit()
        except HalfseenError:
            raise
        except Exception:
            self._refit_failed()
            return False
        finally:
            if self._refitter is thread:
                try:
                    self._end_lease()
                finally:
                    self._refitter, self._since = None, {}

    def _take_lease(self) -> bool:
        """Return whether this process may refit; if not, it asks again a little later."""
        if self.storage is None:
            return True
        self._lease = Lease(self.storage, self._owner)
        is_ours = self._lease.take()
        if not is_ours:
            self._lease, self._next_refit = None, clock.elapsed() + _PAUSE
        return is_ours

    def _end_lease(self) -> None:
        """Give the lease back; a second time nothing happens."""
        with self._lock:
            lease, self._lease = self._lease, None
            if lease is not None:
                lease.give_back()

    def _refit(self) -> bool:
        """Fit a copy of the policy; return whether all continue with it."""
        with self._lock:
            policy, plain, covers = deepcopy(self._policy), self.to_dict(), self._last
            self._since = {}
        started = time.perf_counter()
        policy.able(Refits).fit_models()
        plain["state"]["policy"] = policy_to_dict(policy)
        event = Event(REFIT, {"seconds": time.perf_counter() - started, "covers": covers})
        content = b"" if self.storage is None else archive.to_bytes(plain)
        with self._lock:
            if self._is_closed:
                return False
            if self.storage is None:
                other = self.from_dict(plain)
                for number in range(covers + 1, self._last + 1):
                    other.apply(self._since[number])
                other._count_refit(event._replace(number=self._last + 1))
                self._continue_as(other)
                return True
            try:
                self.storage.append(event, covers, owner=self._owner, checkpoint=content)
            except Stale:
                return False
            self._catch_up()
            self._saved = self._last
        return True

    def _refit_beside(self) -> None:
        """Let a thread refit, unless one does."""
        if self._worker is None or not self._worker.is_alive():
            self._worker = threading.Thread(target=self._refit_quietly, daemon=True)
            try:
                self._worker.start()
            except RuntimeError:  # there are too many threads
                self._refit_failed()

    def _refit_quietly(self) -> None:
        try:
            self.refit_if_due()
        except BaseException:  # nobody is there to catch it
            if not self._is_closed:
                self._refit_failed()

    def _refit_failed(self) -> None:
        """Count and log the exception that is being handled, and try again later."""
        self._n_failed_refits += 1
        logger.exception("a refit failed, %d so far: the epoch goes on", self._n_failed_refits)
        self._next_refit = clock.elapsed() + _AFTER_FAILURE

    def _save_if_due(self, every: int = _SAVED_EVERY) -> None:
        """Save the state after so many events, unless another process has."""
        if self.storage is not None and self._last - self._saved >= every:
            self._saved = self.storage.last_checkpoint()
            if self._last - self._saved >= every:
                self._save_checkpoint()

    def _save_checkpoint(self) -> None:
        """Save the state, from which other processes start faster."""
        assert self.storage is not None
        self.storage.save(self._last, archive.to_bytes(self.to_dict()))
        self._saved = self._last

    def _expire(self, latest: float, reward: float | None) -> int:
        """Close all decisions that were made until a time."""
        n_closed = 0
        while True:
            old = (id for id, each in self._ledger.waiting.items() if each.time <= latest)
            ids = list(islice(old, _EXPIRED_AT_ONCE))
            if not ids:
                return n_closed
            rewards = [
                [id, at, EXPIRY, reward if place.total is None else place.total, True]
                for id in ids
                for at, place in enumerate(self._ledger.waiting[id].places)
                if place.is_open
            ]
            event = Event(EXPIRE, {"ids": ids, "reward": reward, "rewards": rewards})
            try:
                self._record(event, exactly=True)
                n_closed += len(ids)
            except Stale:
                self._catch_up()

    # From tables to slates

    def _encoded(self, asked: Asked, *, log: bool = False, lenient: bool = False) -> Ready:
        """Return what was asked, for a policy that knows its columns.

        Parameters
        ----------
        asked : Asked
        log : bool
            Whether each row has its own context.
        lenient : bool
            Whether columns that do not fit count as hidden: what other processes have chosen from
            meanwhile may leave no room for them, or make them another kind.

        Raises
        ------
        InvalidTableError
            Also if a column or level is new and the policy cannot grow.
        """
        policy, rows = self._policy.fork(), asked.rows
        if isinstance(policy, Refits):
            policy.refits_itself = not self._refits_policy
        uses_items = isinstance(policy, UsesItems)
        has_ids = self.id is not None or not rows.names or rows.is_named
        if not rows.names and not uses_items:
            raise ids_alone()
        known = policy.dim or 0
        # Items may have no columns, or none that was ever seen.
        dim = max(1, known) if uses_items else known
        table, options, numbers = self._encoded_options(asked, dim, lenient)
        if table.dim > known:
            try:
                policy.widen(table.dim, levels=options.levels(known))
            except InvalidSettingError as error:
                raise _refused(options, known, error) from None
        context, contexts, row = self._context, None, None
        if asked.context is not None:
            known = policy.context_dim
            encode = partial(_fitted, context) if lenient else context.encode
            shown, context = encode(asked.context, dim=max(1, known))
            policy.widen(context_dim=shown.dim, context_levels=context.levels(known))
            contexts, row = shown.table, None if log else shown.table[0]
        slate = Slate.of(table, context=row, items=numbers if has_ids else None)
        return Ready(policy, options, context, slate, contexts)

    def _encoded_options(self, asked: Asked, dim: int, lenient: bool) -> Any:
        """Return slate, encoder and item numbers of options; known sets are kept."""
        cache, key, encoder = self._encodings, (asked.digest, lenient), self._options
        known = cache.get(key)
        if known is not None and known[0] is encoder and known[1] == dim:
            return known[2]
        rows, policy = asked.rows, self._policy
        if lenient:
            room = policy.dim if policy.dim and not isinstance(policy, Grows) else np.inf
            slate, options = _fitted(encoder, rows, dim, room)
        else:
            slate, options = encoder.encode(rows, dim=dim)
        numbers = np.array(rows.numbers()) if isinstance(policy, UsesItems) else None
        found = slate, options, numbers
        if asked.digest and options is encoder:
            cache[key] = encoder, dim, found
            if len(cache) > _ENCODED:
                cache.popitem(last=False)
        return found


def _fitted(encoder: Encoder, rows: Rows, dim: int, room: float = np.inf) -> Encoded:
    """Return rows as a slate; columns that an encoder refuses, or has no room for, are hidden."""

    def tried(some: Rows) -> Encoded | None:
        try:
            found = encoder.encode(some, dim=dim)
        except InvalidTableError:
            return None
        return found if found.slate.dim <= room else None

    found = tried(rows)
    if found is not None:
        return found
    kept = Rows(rows.items, (), [])
    for name, column in zip(rows.names, rows.columns, strict=True):
        more = Rows(rows.items, (*kept.names, name), [*kept.columns, column])
        kept = kept if tried(more) is None else more
    return encoder.encode(kept, dim=dim)


def _refused(encoder: Encoder, known: int, error: Exception) -> InvalidTableError:
    entered = [name for name, each in encoder.columns.items() if each.features[-1] >= known]
    names = ", ".join(repr(name) for name in entered[:5])
    return InvalidTableError(
        f"column {names} has values that are new, and {error}, or list the column in the "
        "setting ignore"
    )
