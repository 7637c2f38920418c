"""How long a run may take: between rounds by the clock, within a round by a signal."""

import math
import signal
import threading
import time
from types import FrameType, TracebackType
from typing import Any

from halfseen.errors import BudgetExceededError


class TimeIsUp(BaseException):
    """Raised within a round; no `except Exception` on the way holds it back."""


class Budget:
    """A context in which a run may use so much processor time and no more.

    It is not the time on the wall, in which other programs have a say. A single round may be long,
    too, so that a signal of the operating system stops it. Only the main thread of a process hears
    it, between two steps of Python: elsewhere a round that has begun is played to its end.

    Parameters
    ----------
    seconds : float
        Infinite where there is no budget.
    horizon : int
        Rounds of the whole run.

    Raises
    ------
    BudgetExceededError
        On leaving the context, or by `begin`.
    """

    def __init__(self, seconds: float, horizon: int) -> None:
        self.seconds, self.horizon = seconds, horizon
        self._started, self._n_played = 0.0, 0
        self._earlier: Any = None

    def __enter__(self) -> "Budget":
        self._started = time.thread_time()
        if self._signals:
            self._earlier = signal.signal(signal.SIGVTALRM, _call)
            signal.setitimer(signal.ITIMER_VIRTUAL, self.seconds)
        return self

    def begin(self, n_played: int) -> None:
        """Begin a round after others; the first one always is, so that there is a measurement."""
        self._n_played = n_played
        if self.seconds == math.inf:  # asking for the time takes longer than a cheap choice
            return
        used = time.thread_time() - self._started
        if n_played and used > self.seconds:
            raise self._exceeded(used, within=False)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._signals:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
            signal.signal(signal.SIGVTALRM, self._earlier)
        if kind is TimeIsUp:
            raise self._exceeded(time.thread_time() - self._started, within=True) from None

    @property
    def _signals(self) -> bool:
        main = threading.current_thread() is threading.main_thread()
        return math.isfinite(self.seconds) and main and hasattr(signal, "setitimer")

    def _exceeded(self, used: float, *, within: bool) -> BudgetExceededError:
        return BudgetExceededError(
            seconds=used, n_played=self._n_played, horizon=self.horizon, within=within
        )


def _call(signum: int, frame: FrameType | None) -> None:
    raise TimeIsUp
