"""Refits of a policy's models: at once, or in a thread while decisions go on."""

import threading
import time
from typing import TYPE_CHECKING, Any

from halfseen.agent.events import REFIT, Event
from halfseen.agent.journal import Stale
from halfseen.agent.state import State
from halfseen.agent.upkeep import REFIT as DUTY
from halfseen.errors import HalfseenError
from halfseen.log import logger
from halfseen.policies.abilities import Refits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from halfseen.agent.member import Member

_AFTER_FAILURE = 30.0  # seconds after which a refit that failed is tried again
_PATIENCE = 4.0  # seconds that closing waits for a refit to notice


class Fitter:
    """Refits the models of a learner.

    A refit fits a copy of the state as of some event. What comes meanwhile is applied to the copy
    as well, and the event of the refit has the policy after all of that.
    """

    def __init__(self, member: "Member", lock: Any) -> None:
        self._member, self._lock = member, lock
        self._fits: threading.Thread | None = None  # the thread that does now
        self._since: list[Event] = []  # events since it began
        self.worker: threading.Thread | None = None  # that of the latest refit beside decisions
        self.n_failed = 0

    def applied(self, events: "Sequence[Event]") -> None:
        """Remember events for the refit that is going on."""
        if self._fits is not None:
            self._since.extend(events)

    def refit_if_due(self) -> bool:
        """Refit if that is due, in a thread if the policy says so; return whether it is done."""
        state = self._member.state
        if not self._is_due(state):
            return False
        is_background = state.policy.able(Refits).refit == "background"
        if not (is_background and state.traffic.refit_seconds):
            return self.refit()
        if self.worker is None or not self.worker.is_alive():
            self.worker = threading.Thread(target=self._refit_quietly, daemon=True)
            try:
                self.worker.start()
            except RuntimeError:  # there are too many threads
                self._failed()
        return False

    def _is_due(self, state: State) -> bool:
        policy = state.policy
        is_due = isinstance(policy, Refits) and policy.is_refit_due
        return is_due and self._member.upkeep.is_due(DUTY)

    def refit(self) -> bool:
        """Refit now if that is due, and return whether the agent continues with it."""
        member = self._member
        with self._lock:
            state = member.follow()
            # In a process that was forked, the thread that refitted is not alive.
            is_refitting = self._fits is not None and self._fits.is_alive()
            if is_refitting or not (member.is_learner and self._is_due(state)):
                return False
            self._fits, self._since = threading.current_thread(), []
        try:
            with member.renewing():
                return self._refit(state)
        except HalfseenError:
            raise
        except Stale:
            member.doubt()
        except Exception:
            self._failed()
        finally:
            self._fits, self._since = None, []
        return False

    def _refit(self, state: State) -> bool:
        started = time.perf_counter()
        policy, member = state.policy.fork(), self._member
        policy.able(Refits).fit_models()
        event = Event(REFIT, {"seconds": time.perf_counter() - started, "covers": state.number})
        with self._lock:
            if member.failure is not None:
                return False
            latest, fitted = member.follow(), state._replace(policy=policy)
            for each in self._since:
                if each.number == fitted.number + 1:
                    fitted = member.reducer.apply(fitted, each)
            if not member.is_learner or fitted.number != latest.number:
                return False  # another process has learned meanwhile
            member.refitted(event, fitted.policy)
        return True

    def _refit_quietly(self) -> None:
        try:
            self.refit()
        except BaseException:  # nobody is there to catch it
            if self._member.failure is None:
                self._failed()

    def _failed(self) -> None:
        """Count and log the exception that is being handled, and try again later."""
        self.n_failed += 1
        logger.exception("a refit failed, %d so far: the epoch goes on", self.n_failed)
        self._member.upkeep.later(DUTY, _AFTER_FAILURE)

    def close(self) -> None:
        """Wait a little for a refit that is going on; what it finds is dropped."""
        if self.worker is not None and self.worker is not threading.current_thread():
            self.worker.join(_PATIENCE)
