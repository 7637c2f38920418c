"""When duties are due: each has a clock of its own, the journal's time plus an offset."""

import math

from halfseen.agent import clock

EXPIRY, REFIT, VIEW, CHECKPOINT, LEASE = "expiry", "refit", "view", "checkpoint", "lease"


class Upkeep:
    """The clocks of an agent's duties.

    Attributes
    ----------
    ahead : dict
        Seconds by which the clock of each duty is ahead of the journal's; tests set them.

    Examples
    --------
    >>> upkeep = Upkeep()
    >>> upkeep.later(REFIT, 30.0)
    >>> upkeep.is_due(REFIT), upkeep.is_due(VIEW)
    (False, True)
    >>> upkeep.ahead[REFIT] += 31.0
    >>> upkeep.is_due(REFIT)
    True
    """

    def __init__(self) -> None:
        self.ahead = dict.fromkeys((EXPIRY, REFIT, VIEW, CHECKPOINT, LEASE), 0.0)
        self._due = dict.fromkeys(self.ahead, -math.inf)
        self._skew = clock.now() - clock.elapsed()

    def synchronize(self, now: float) -> None:
        """Take over the journal's time."""
        self._skew = now - clock.elapsed()

    def now(self, duty: str) -> float:
        """Return the time by the clock of a duty."""
        return clock.elapsed() + self._skew + self.ahead[duty]

    def is_due(self, duty: str) -> bool:
        """Return whether it is time for a duty."""
        return self.now(duty) >= self._due[duty]

    def later(self, duty: str, seconds: float) -> None:
        """Let a duty be due after some seconds."""
        self._due[duty] = self.now(duty) + seconds
