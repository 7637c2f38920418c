"""The lease: the right of one process to refit for all."""

import threading
from contextlib import suppress

from halfseen.agent import clock
from halfseen.agent.storage import Storage
from halfseen.errors import StorageError

LEASE = 30.0
"""Seconds after which a lease that is not renewed ends: if a process is killed while it refits, the
others wait at most so long."""


class Lease:
    """The lease of an agent, which a thread renews until it is given back.

    Parameters
    ----------
    storage : Storage
    owner : str
        Of this process alone.
    """

    def __init__(self, storage: Storage, owner: str) -> None:
        self.storage, self._owner = storage, owner
        self._ends = threading.Event()
        self._renewer = threading.Thread(target=self._renew, daemon=True)

    def take(self) -> bool:
        """Return whether nobody else holds it."""
        if self.storage.lease(self._owner, LEASE) is None:
            return False
        with suppress(RuntimeError):  # there are too many threads: it ends in its time
            self._renewer.start()
        return True

    def give_back(self) -> None:
        """Let others take it."""
        self._ends.set()
        if self._renewer.is_alive():
            self._renewer.join()
        with suppress(StorageError):  # then it ends in its time
            self.storage.release(self._owner)

    def _renew(self) -> None:
        while not clock.wait(self._ends, LEASE / 3):
            with suppress(StorageError):  # the next try may be in time
                if self.storage.lease(self._owner, LEASE) is None:
                    return
