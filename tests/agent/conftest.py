"""For tests: clocks, and databases: a file, or a PostgreSQL server that the tests start."""

import os
import threading
import time
from contextlib import closing

import pytest

from agent.servers import Server
from halfseen.agent import clock as clocks
from halfseen.agent import database

REQUIRED = os.environ.get("HALFSEEN_POSTGRES") == "required"  # set by `make test-postgres`


@pytest.fixture(scope="session")
def server():
    """Return a running PostgreSQL server."""
    if not REQUIRED:
        pytest.skip("PostgreSQL: `make test-postgres` installs it and runs these tests")
    with closing(Server()) as started:
        yield started


@pytest.fixture
def file(tmp_path):
    """Return the path of a database of SQLite."""
    return str(tmp_path / "shop.db")


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, file):
    """Return where a database may be: a file, or a server, whose tables are dropped."""
    if request.param == "sqlite":
        return file
    return request.getfixturevalue("server").fresh()


class Clock:
    """A clock that stands still between calls of `advance`."""

    def __init__(self):
        self.time = 1e9
        self._deadlines = {}  # of threads that wait, or have waited

    def now(self):
        return self.time

    def wait(self, event, seconds):
        thread = threading.current_thread()
        self._deadlines[thread] = self.time + seconds
        while not event.is_set() and self.time < self._deadlines[thread]:
            event.wait(0.001)
        return event.is_set()

    def until_somebody_waits(self):
        self._until(lambda: any(thread.is_alive() for thread in [*self._deadlines]))

    def advance(self, seconds):
        """Let time pass; who waited for it has done its work and waits again, or has ended."""
        self.time += seconds
        self._until(
            lambda: (
                not any(
                    thread.is_alive() and deadline <= self.time
                    for thread, deadline in [*self._deadlines.items()]
                )
            )
        )

    @staticmethod
    def _until(is_so):
        for _ in range(20_000):
            if is_so():
                return
            time.sleep(0.001)
        raise AssertionError("a thread does not wait")


@pytest.fixture
def clock(monkeypatch):
    """Set the clocks of agents and of their databases."""
    made = Clock()
    for name, function in (("now", made.now), ("elapsed", made.now), ("wait", made.wait)):
        monkeypatch.setattr(clocks, name, function)
    for kind in (database.Sqlite, database.Postgres):
        expression = property(lambda self: f"({made.time!r} + 0.0)")
        monkeypatch.setattr(kind, "now", expression)
    return made
