"""Databases: SQLite for one machine, PostgreSQL beyond. Both speak the same SQL here."""

import os
import re
import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from halfseen import checks
from halfseen.agent.forks import CONNECTING, DATABASE, forkable_lock
from halfseen.errors import StorageError
from halfseen.lazy import from_extra

T = TypeVar("T")

DURABILITIES = ("power-loss", "crash")

PATIENCE = 5.0
"""Seconds that a call waits for a lock, or for a connection."""

ANSWER = 20.0
"""Seconds that a server has for a statement; it may be stopped, or cut off."""

LONGEST_PAUSE = 0.005
"""Seconds between two tries of a process that waits for a lock."""

_CONNECTING = forkable_lock(CONNECTING)  # SQLite then has locks which all connections share
_PASSWORDS = r"(//[^:@/]*:)(.*)(?=@)", r"([?&]password=)([^&]*)"
_APPLICATION = 0x68616C66  # "half", in the header of the file

Run = Callable[..., Any]
"""Executes a statement, in which `?` marks the values that follow it, and returns a cursor."""


class Database(ABC):
    """A connection per process, which is opened again after a failure or a fork.

    Attributes
    ----------
    place : str
        Where it is, for messages: without a password.
    now : str
        The SQL expression of the database's time, in seconds since 1970.
    begin : str
        The statement that begins a transaction which writes.
    key : str
        The type of a column that numbers its rows.
    first : tuple of str
        Statements before tables are created.
    """

    now: ClassVar[str]
    begin: ClassVar[str]
    key: ClassVar[str]
    first: ClassVar[tuple[str, ...]]

    def __init__(self, place: str) -> None:
        self.place = place
        self._lock = forkable_lock(DATABASE)
        self._connection: Any = None
        self._process = 0

    @abstractmethod
    def _connect(self) -> Any:
        """Return a connection; each statement outside of `BEGIN` and `COMMIT` is on its own."""

    @abstractmethod
    def _error(self, error: Exception) -> StorageError | None:
        """Return an error of the library as ours; None if it is none of the library's."""

    @abstractmethod
    def another(self) -> "Database":
        """Return the same database, with a connection of its own."""

    def _locked(self) -> StorageError:
        text = f"{self.place} was locked for {PATIENCE:g} s by another process: try again"
        return StorageError(text)

    @abstractmethod
    def size(self) -> int:
        """Return the size in bytes."""

    def make(self, tables: Sequence[str], version: int) -> None:
        """Create tables that are missing, in one transaction."""

        def create(run: Run) -> None:
            for statement in (*self.first, *tables):
                run(statement.format(version=version, key=self.key))

        self.write(create)

    @abstractmethod
    def _run(self, statement: str, /, *values: Any) -> Any:
        """Execute a statement, and wait if it is locked."""

    @abstractmethod
    def run_many(self, statement: str, values: Sequence[Sequence[Any]]) -> None:
        """Execute a statement for each of some values, inside of `write`."""

    def read(self, query: str, *values: Any) -> list[Any]:
        """Return the rows that a query finds."""
        found: list[Any] = self._guarded(lambda: self._run(query, *values).fetchall())
        return found

    def value(self, query: str, *values: Any) -> Any:
        """Return the one value that a query finds; None if it finds nothing."""
        found = self.read(query, *values)
        return found[0][0] if found else None

    def write(self, work: Callable[[Run], T]) -> T:
        """Run a function's statements in one transaction, which is undone if anything fails."""

        def transaction() -> T:
            try:
                self._run(self.begin)
                found = work(self._run)
                self._run("COMMIT")
            except BaseException:
                with suppress(Exception):  # it may be undone already
                    self._run("ROLLBACK")
                raise
            return found

        return self._guarded(transaction)

    def write_part(self, work: Callable[[Run], T]) -> T:
        """Write one of many parts, and let others write before the next one."""
        found = self.write(work)
        time.sleep(2 * LONGEST_PAUSE)
        return found

    def _guarded(self, work: Callable[[], T]) -> T:
        """Use the connection of this process; after an error of the library open it anew."""
        # A function, no context manager: a generator that is interrupted keeps its lock for as long
        # as somebody keeps the interrupt, and other threads would wait.
        with self._lock:
            try:
                if self._process != os.getpid():
                    _INHERITED.append(self._connection)  # not ours to close
                    self._connection, self._process = None, os.getpid()
                if self._connection is None or not self._is_usable():
                    self.close()
                    with _CONNECTING:
                        self._connection = self._connect()
                return work()
            except StorageError:
                raise
            except Exception as error:
                found = self._error(error)
                if found is None:
                    raise
                self.close()
                raise found from None

    @abstractmethod
    def _is_usable(self) -> bool:
        """Return whether it leads somewhere, and no interrupt has left a transaction open."""

    def close(self) -> None:
        """Close the connection; the next call opens it again."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None and self._process == os.getpid():
                with suppress(Exception), _CONNECTING:
                    connection.close()

    def __del__(self) -> None:
        if "_lock" in self.__dict__:  # not so if it could not be made
            self.close()


_INHERITED: list[Any] = []  # connections of the process from which this one was forked


class Sqlite(Database):
    """A file. Not for network file systems, whose locks do not hold."""

    now = "((julianday('now') - 2440587.5) * 86400.0)"
    begin = "BEGIN IMMEDIATE"
    first = (f"PRAGMA application_id = {_APPLICATION}", "PRAGMA user_version = {version}")
    key = "INTEGER PRIMARY KEY"

    def __init__(self, path: str, durability: str, *, must_exist: bool) -> None:
        super().__init__(path)
        self.path, self._durability = Path(path), durability
        self._synchronous = "FULL" if durability == "power-loss" else "NORMAL"
        self._file: tuple[int, int] | None = None
        if self.path.exists():
            self._check_ours()
        elif must_exist:
            raise StorageError(f"{self.place} does not exist: name another file")

    def another(self) -> "Sqlite":
        """Return the same file, with a connection of its own."""
        return Sqlite(self.place, self._durability, must_exist=True)

    def _check_ours(self) -> None:
        """Raise an error if there is a file of another kind, without touching it."""
        try:
            with open(self.path, "rb") as file:
                head = file.read(100)
        except OSError as error:
            raise StorageError(f"{self.place} cannot be opened: {error.strerror}") from None
        is_ours = head[:16] == b"SQLite format 3\x00"
        if head and not (is_ours and int.from_bytes(head[68:72], "big") == _APPLICATION):
            raise StorageError(f"{self.place} is not a halfseen database: name another file")

    def make(self, tables: Sequence[str], version: int) -> None:
        """Create tables that are missing; refuse a newer schema."""
        found = self.value("PRAGMA user_version")
        if found > version:
            raise StorageError(
                f"{self.place} has schema {found}, newer than {version}: upgrade halfseen"
            )
        if found < version:
            super().make(tables, version)
        self.read("PRAGMA journal_mode = WAL")

    def _connect(self) -> Any:
        if self._file is not None:  # do not create again what was deleted while it was in use
            if not self.path.exists() or not self.path.stat().st_size:
                raise StorageError(
                    f"{self.place} was deleted while it was in use: restore it, or restart this "
                    "process"
                )
            self._check_ours()
        self._connection = sqlite3.connect(
            self.path, timeout=0.0, isolation_level=None, check_same_thread=False
        )
        # Reads the file, which another process may be creating or recovering.
        self._run(f"PRAGMA synchronous = {self._synchronous}")
        found = os.stat(self.path)
        self._file = found.st_dev, found.st_ino
        return self._connection

    def _is_usable(self) -> bool:
        """If the file was deleted or replaced, SQLite would write to the old one."""
        try:
            found = os.stat(self.path)
        except OSError:
            return False
        is_same = (found.st_dev, found.st_ino) == self._file
        return is_same and not self._connection.in_transaction

    def _run(self, statement: str, /, *values: Any) -> Any:
        """Wait for a lock in short steps: SQLite's own take up to a tenth of a second."""
        ends, pause = time.monotonic() + PATIENCE, 0.0002
        while True:
            try:
                return self._connection.execute(statement, values)
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > ends:
                    raise
            time.sleep(pause)
            pause = min(1.5 * pause, LONGEST_PAUSE)

    def run_many(self, statement: str, values: Sequence[Sequence[Any]]) -> None:
        """Execute a statement for each of some values."""
        self._connection.executemany(statement, values)

    def _error(self, error: Exception) -> StorageError | None:
        if not isinstance(error, sqlite3.Error | OSError):
            return None
        if "locked" in str(error):
            return self._locked()
        return StorageError(f"{self.place} cannot be used: {error}")

    def size(self) -> int:
        """Return the size of the file and of its write-ahead log."""
        files = self.path, Path(f"{self.path}-wal")
        return sum(file.stat().st_size for file in files if file.exists())


class Postgres(Database):
    """A server. A statement waits at most `PATIENCE` for a lock and `ANSWER` for its result.

    Parameters
    ----------
    url : str
        `postgresql://user:password@host/name`; the password is never shown.
    """

    begin = "BEGIN"
    first = ("SELECT pg_advisory_xact_lock(7521954)",)  # one process at a time creates tables
    now = "(EXTRACT(EPOCH FROM clock_timestamp())::DOUBLE PRECISION)"
    key = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"

    def __init__(self, url: str) -> None:
        place, found = url, []
        for pattern in _PASSWORDS:
            found += [secret for _, secret in re.findall(pattern, place)]
            place = re.sub(pattern, r"\1***", place)
        super().__init__(place)
        # What the rest of the URL shows, such as a user of the same name, need not be masked.
        self._secrets = [secret for secret in found if secret not in place]
        with from_extra("postgres"):
            import psycopg

        class Connection(psycopg.Connection):
            def wait(self, *given: Any, **named: Any) -> Any:
                return super().wait(*given, **{"timeout": ANSWER} | named)

        self._library, self._kind = psycopg, Connection
        self._url = url
        self._options = (
            f"-c lock_timeout={PATIENCE:g}s -c statement_timeout={ANSWER:g}s "
            f"-c idle_in_transaction_session_timeout=60s -c client_min_messages=warning "
            "-c synchronous_commit=on"
        )

    def another(self) -> "Postgres":
        """Return the same server, with a connection of its own."""
        return Postgres(self._url)

    def _connect(self) -> Any:
        connection = self._kind.connect(
            self._url,
            autocommit=True,
            connect_timeout=int(PATIENCE),
            options=self._options,
        )
        connection.isolation_level = self._library.IsolationLevel.READ_COMMITTED
        return connection

    def _run(self, statement: str, /, *values: Any) -> Any:
        return self._connection.execute(statement.replace("?", "%s"), values)

    def run_many(self, statement: str, values: Sequence[Sequence[Any]]) -> None:
        """Execute a statement for each of some values, without waiting for each answer."""
        self._connection.cursor().executemany(statement.replace("?", "%s"), values)

    def _is_usable(self) -> bool:
        idle, connection = self._library.pq.TransactionStatus.IDLE, self._connection
        return not connection.closed and bool(connection.info.transaction_status == idle)

    def _error(self, error: Exception) -> StorageError | None:
        if not isinstance(error, self._library.Error | OSError):
            return None
        if isinstance(error, self._library.errors.LockNotAvailable):
            return self._locked()
        reason = str(error).partition("\nLINE")[0].strip()
        for secret in self._secrets:
            reason = reason.replace(secret, "***")
        if "timeout" in reason:
            return StorageError(f"{self.place} did not answer in time ({reason}): try again")
        return StorageError(f"{self.place} cannot be used: {reason or type(error).__name__}")

    def size(self) -> int:
        """Return the size of all tables of halfseen."""
        query = (
            "SELECT COALESCE(SUM(pg_total_relation_size(oid)), 0)::BIGINT FROM pg_class "
            "WHERE relkind = 'r' AND relname LIKE 'halfseen_%%'"
        )
        return int(self.value(query))


def opened(
    url: str | os.PathLike[str], durability: str = "power-loss", *, must_exist: bool = False
) -> Database:
    """Return the database at a URL or a path."""
    checks.one_of("durability", durability, DURABILITIES)
    text = os.fspath(url)
    if text.startswith(("postgresql://", "postgres://")):
        return Postgres(text)
    path = text.removeprefix("sqlite:///")
    if "://" in path:
        scheme = path.partition("://")[0]
        raise StorageError(f"{scheme}:// is not a halfseen database: name a file or postgresql://…")
    if path in ("", ":memory:"):
        raise StorageError(f"{path!r} is not a file: name one, or use Agent() without a database")
    return Sqlite(path, durability, must_exist=must_exist)
