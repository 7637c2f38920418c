"""A replica among others on one database: it appends events, catches up, and does what is due."""

import os
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from itertools import islice

from halfseen import archive
from halfseen.agent.events import EXPIRE, REFIT, Event
from halfseen.agent.replica import Ready, Replica
from halfseen.agent.storage import EXPIRED, Stale
from halfseen.errors import HalfseenError, StorageError
from halfseen.log import logger
from halfseen.policies.registry import policy_to_dict

LEASE = 30.0
"""Seconds for which a process may expire, refit and save for all: after it was killed while it did,
the others wait for so long."""

_SAVED_EVERY = 10_000  # events between two checkpoints
_EXPIRED_AT_ONCE = 500  # decisions that one event closes
_PAUSE = 0.2  # seconds after which a lease that was not free is asked for again
_AFTER_FAILURE = 30.0  # and after a refit that failed


class Member(Replica):
    """A replica that others share a database with; without one, it is alone.

    A call changes it by `_record`: an event is appended to the database, and applied after those
    of others. Whoever holds the lease expires, refits and saves for all.
    """

    def setup(self) -> None:
        """Create the state of a fresh agent, without a database."""
        super().setup()
        self._token = secrets.token_hex(8)
        self._saved = 0  # event of the latest checkpoint known here
        self._next_try = 0.0  # when to ask for the lease again
        self._n_failed_refits = 0  # in this process
        self._worker: threading.Thread | None = None
        self._refitter: threading.Thread | None = None  # the thread that refits now
        self._since: dict[int, Event] = {}  # without a database: events since it began
        self._failure: str | None = None  # why it cannot go on
        self._n_warned = 0  # warnings that this process has logged and that still hold

    @property
    def _owner(self) -> str:
        """Name of this replica as an owner of the lease; after a fork there are two."""
        return f"{self._token}-{os.getpid()}"

    # How a call changes the agent: append an event, then apply it

    def _record(self, event: Event, ready: Ready | None = None, *, exactly: bool = False) -> None:
        """Append an event, and apply it after those that others have appended."""
        if self._storage is None:
            event = event._replace(number=self._last + 1, time=time.time())
            if self._refitter is not None:
                self._since[event.number] = event
        else:
            event = self._storage.append(event, self._last, exactly=exactly)
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
        if self._failure is not None:
            raise StorageError(self._failure)
        if self._storage is not None:
            for event in self._storage.after(self._last, until):
                if event.number > self._last + 1:  # what is between was pruned
                    self._continue_from_checkpoint()
                self._apply_or_stop(event)

    def _apply_or_stop(self, event: Event, ready: Ready | None = None) -> None:
        """Apply an event; with a database, one that cannot be applied stops this agent."""
        if event.number <= self._last:  # a refit has led to a later checkpoint
            return
        try:
            self.apply(event, ready)
        except Exception as error:
            if self._storage is None or isinstance(error, StorageError):
                raise
            self._failure = (
                f"event {event.number} of {self._storage.place} cannot be applied, so this process "
                f"stops: {type(error).__name__}: {error}"
            )
            raise StorageError(self._failure) from error

    # What one process does for all

    def tick(self) -> None:
        """Expire, refit and save what is due, unless another process does so; for a worker.

        `choose` does this as well; a worker that calls `tick` every second saves it the time.
        """
        with self._lock:
            self._catch_up()
            self._expire_if_due()
        self.refit_if_due()
        with self._lock:
            self._save_if_due()

    def _tend(self) -> None:
        """Do what is due and no worker has done."""
        self._expire_if_due()
        if self._is_refit_due and time.monotonic() >= self._next_try:
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
        if oldest[1].time > time.time() - wait:
            return
        with self._leased() as now:
            if now is not None:
                self._expire(now - wait, self.expire_reward)

    @contextmanager
    def _leased(self) -> Iterator[float | None]:
        """Hold the lease and give the database's time, or None if another process holds it."""
        storage = self._storage
        if storage is None:
            yield time.time()
            return
        now = storage.lease(self._owner, LEASE) if time.monotonic() >= self._next_try else None
        if now is None:
            self._next_try = max(self._next_try, time.monotonic() + _PAUSE)
            yield None
            return
        try:
            yield now
        finally:
            storage.release(self._owner)

    @property
    def _is_refit_due(self) -> bool:
        return self._refits_policy and self._policy._is_refit_due

    def refit_if_due(self) -> bool:
        """Refit the policy's models for all processes if that is due; return whether it did.

        The state is that of some event. Other events may come while models are fitted: at the event
        of the refit, every process continues from the new state and applies them again.
        """
        with self._lock:
            self._catch_up()
            # In a process that was forked, the thread that refitted is not alive.
            is_refitting = self._refitter is not None and self._refitter.is_alive()
            if is_refitting or not self._is_refit_due:
                return False
            self._refitter = threading.current_thread()
        try:
            with self._leased() as now:
                return now is not None and self._refit()
        except HalfseenError:
            raise
        except Exception:
            self._refit_failed()
            return False
        finally:
            self._refitter, self._since = None, {}

    def _refit(self) -> bool:
        """Fit a copy of the policy; return whether all continue with it."""
        with self._lock:
            policy, plain, covers = deepcopy(self._policy), self.to_dict(), self._last
            self._since = {}
        started = time.perf_counter()
        policy._refit()
        plain["state"]["policy"] = policy_to_dict(policy)
        event = Event(REFIT, {"seconds": time.perf_counter() - started, "covers": covers})
        content = b"" if self._storage is None else archive.to_bytes(plain)
        with self._lock:
            if self._storage is None:
                other = self.from_dict(plain)
                for number in range(covers + 1, self._last + 1):
                    other.apply(self._since[number])
                other._count_refit(event._replace(number=self._last + 1))
                self._continue_as(other)
                return True
            try:
                self._storage.append(event, covers, owner=self._owner, checkpoint=content)
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
            self._refit_failed()

    def _refit_failed(self) -> None:
        """Count and log the exception that is being handled, and try again later."""
        self._n_failed_refits += 1
        logger.exception("a refit failed, %d so far: the epoch goes on", self._n_failed_refits)
        self._next_try = time.monotonic() + _AFTER_FAILURE

    def _save_if_due(self, every: int = _SAVED_EVERY) -> None:
        """Save the state after so many events, unless another process has."""
        if self._storage is not None and self._last - self._saved >= every:
            self._saved = self._storage.last_checkpoint()
            if self._last - self._saved >= every:
                self._save_checkpoint()

    def _save_checkpoint(self) -> None:
        """Save the state, from which other processes start faster."""
        assert self._storage is not None
        self._storage.save(self._last, archive.to_bytes(self.to_dict()))
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
                [id, at, EXPIRED, reward if place.total is None else place.total, True]
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
