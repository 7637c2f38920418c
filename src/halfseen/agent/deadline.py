"""Until when a call may change an agent, for callers that do not wait longer."""

import math
import threading

from halfseen.agent import clock


class Late(Exception):  # noqa: N818 (a state, no mistake)
    """The deadline has passed, or the caller has given up: nothing was changed."""


class Deadline:
    """A time after which a call changes nothing, which the caller may bring forward to now.

    Parameters
    ----------
    seconds : float
        From now.

    Examples
    --------
    >>> deadline = Deadline(60.0)
    >>> deadline.cancel()
    True
    >>> deadline.commit()
    Traceback (most recent call last):
    halfseen.agent.deadline.Late
    """

    def __init__(self, seconds: float = math.inf) -> None:
        self._until = clock.elapsed() + seconds
        self._lock = threading.Lock()
        self._is_cancelled = False
        self.is_committed = False

    def check(self) -> None:
        """Raise `Late` if it has passed."""
        if self._is_cancelled or clock.elapsed() > self._until:
            raise Late

    def commit(self) -> None:
        """Raise `Late` if it has passed; if not, the change cannot be cancelled any more."""
        with self._lock:
            self.check()
            self.is_committed = True

    def cancel(self) -> bool:
        """Return whether the call changes nothing from now on."""
        with self._lock:
            self._is_cancelled = not self.is_committed
            return self._is_cancelled
