"""The clocks of agents, in one place, so that tests can set them."""

import threading
import time


def now() -> float:
    """Return seconds since 1970."""
    return time.time()


def elapsed() -> float:
    """Return seconds since some moment, which never go back."""
    return time.monotonic()


def wait(event: threading.Event, seconds: float) -> bool:
    """Wait until an event is set, or so long; return whether it is set."""
    return event.wait(seconds)
