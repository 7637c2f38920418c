"""Locks that a process which is forked finds free, whatever other threads do meanwhile."""

import os
import threading
import weakref
from typing import Any

# In the order in which a call takes them: a thread that holds one takes none of an earlier kind.
AGENT, DATABASE, CONNECTING = range(3)

_LOCKS: tuple["weakref.WeakValueDictionary[int, Any]", ...] = tuple(
    weakref.WeakValueDictionary() for _ in range(3)
)
_FORKING = threading.local()  # several threads may fork at once


def forkable_lock(kind: int) -> Any:
    """Return a new reentrant lock, which a fork waits for."""
    lock = threading.RLock()
    _LOCKS[kind][id(lock)] = lock
    return lock


def _before_fork() -> None:
    held: list[Any] = []
    _FORKING.held = held
    for locks in _LOCKS:
        for ref in locks.valuerefs():  # the earliest first, so that no two forks wait for another
            lock = ref()
            if lock is not None:
                lock.acquire()
                held.append(lock)


def _after_fork() -> None:
    for lock in _FORKING.held:
        lock.release()
    _FORKING.held = []


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
