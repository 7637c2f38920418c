"""Databases: SQLite for one machine, PostgreSQL beyond. Both speak the same SQL here."""

import os
import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar, Protocol

from halfseen.errors import InvalidSettingError, StorageError

DURABILITIES = ("power-loss", "crash")

PATIENCE = 5.0
"""Seconds that a call waits for a lock, or for a server."""

_APPLICATION = 0x68616C66  # "half", in the header of the file


class Run(Protocol):
    """Executes a statement; `?` marks its values."""

    def __call__(self, statement: str, /, *values: Any) -> Any:
        """Return a cursor."""


class Database(ABC):
    """A connection per process, which is opened again after a failure or a fork.

    Attributes
    ----------
    place : str
        Where it is, for messages: without a password.
    now : str
        The SQL expression of the database's time, in seconds since 1970.
    """

    now: ClassVar[str]
    types: ClassVar[dict[str, str]]

    def __init__(self, place: str) -> None:
        self.place = place
        self._lock = threading.RLock()
        self._connection: Any = None
        self._process = 0

    @abstractmethod
    def _connect(self) -> Any:
        """Return a connection; each statement outside of `BEGIN` and `COMMIT` is on its own."""

    @abstractmethod
    def _error(self, error: Exception) -> StorageError | None:
        """Return an error of the library as ours; None if it is none of the library's."""

    @abstractmethod
    def size(self) -> int:
        """Return the size in bytes."""

    def _begin(self) -> None:
        """Begin a transaction that writes."""
        self._run("BEGIN")

    def _run(self, statement: str, /, *values: Any) -> Any:
        return self._connection.execute(statement, values)

    def make(self, tables: Sequence[str], version: int) -> None:
        """Create tables that are missing, in one transaction."""
        with self.write() as run:
            for table in tables:
                run(table.format(**self.types))

    def read(self, query: str, *values: Any) -> list[Any]:
        """Return the rows that a query finds."""
        with self._guarded():
            found: list[Any] = self._run(query, *values).fetchall()
            return found

    @contextmanager
    def write(self) -> Iterator[Run]:
        """Run statements in one transaction, which is undone if anything fails."""
        with self._guarded():
            try:
                self._begin()
                yield self._run
                self._run("COMMIT")
            except BaseException:
                with suppress(Exception):  # it may be undone already
                    self._run("ROLLBACK")
                raise

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Use the connection of this process; after an error of the library open it anew."""
        with self._lock:
            try:
                if self._process != os.getpid():
                    _INHERITED.append(self._connection)  # not ours to close
                    self._connection, self._process = None, os.getpid()
                if self._connection is None or self._is_lost() or self._is_in_transaction():
                    self.close()
                    self._connection = self._connect()
                yield
            except StorageError:
                raise
            except Exception as error:
                found = self._error(error)
                if found is None:
                    raise
                self.close()
                raise found from None

    def _is_lost(self) -> bool:
        """Return whether the connection leads nowhere."""
        return False

    @abstractmethod
    def _is_in_transaction(self) -> bool:
        """Return whether an interrupt has left a transaction open."""

    def close(self) -> None:
        """Close the connection; the next call opens it again."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None and self._process == os.getpid():
                with suppress(Exception):
                    connection.close()

    def __del__(self) -> None:
        if "_lock" in self.__dict__:  # not so if it could not be made
            self.close()


_INHERITED: list[Any] = []  # connections of the process from which this one was forked


class Sqlite(Database):
    """A file. Not for network file systems, whose locks do not hold."""

    now = "((julianday('now') - 2440587.5) * 86400.0)"
    types: ClassVar = {
        "key": "INTEGER PRIMARY KEY",
        "whole": "INTEGER",
        "real": "REAL",
        "bytes": "BLOB",
    }

    def __init__(self, path: str, durability: str) -> None:
        super().__init__(path)
        self.path = Path(path)
        self._synchronous = "FULL" if durability == "power-loss" else "NORMAL"
        self._file: tuple[int, int] | None = None
        if self.path.exists():
            self._check_ours()

    def _check_ours(self) -> None:
        """Raise an error if there is a file of another kind, without touching it."""
        try:
            with open(self.path, "rb") as file:
                head = file.read(100)
        except OSError as error:
            raise StorageError(f"{self.place} cannot be opened: {error.strerror}") from None
        is_ours = head[:16] == b"SQLite format 3\x00"
        if head and not (is_ours and int.from_bytes(head[68:72], "big") == _APPLICATION):
            raise StorageError(f"{self.place} is no database of halfseen: name another file")

    def make(self, tables: Sequence[str], version: int) -> None:
        """Create tables that are missing; refuse a newer schema."""
        found = self.read("PRAGMA user_version")[0][0]
        if found > version:
            raise StorageError(
                f"{self.place} has schema {found}, newer than {version}: upgrade halfseen"
            )
        if found < version:
            with self.write() as run:
                run(f"PRAGMA application_id = {_APPLICATION}")
                run(f"PRAGMA user_version = {version}")
                for table in tables:
                    run(table.format(**self.types))
        self._patiently("PRAGMA journal_mode = WAL")

    def _patiently(self, statement: str) -> None:
        """Run a statement for which SQLite itself does not wait."""
        ends = time.monotonic() + PATIENCE
        while True:
            try:
                self.read(statement)
                return
            except StorageError:
                if time.monotonic() > ends:
                    raise
                time.sleep(0.05)

    def _connect(self) -> Any:
        if self._file is not None:
            self._check_there()
        connection = sqlite3.connect(
            self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
        )
        connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        found = os.stat(self.path)
        self._file = found.st_dev, found.st_ino
        return connection

    def _is_lost(self) -> bool:
        """Return whether the file was deleted or replaced: SQLite would write to the old one."""
        try:
            found = os.stat(self.path)
        except OSError:
            return True
        return (found.st_dev, found.st_ino) != self._file

    def _is_in_transaction(self) -> bool:
        return bool(self._connection.in_transaction)

    def _begin(self) -> None:
        """Wait for the lock in short steps: SQLite's own take up to a tenth of a second."""
        self._run("PRAGMA busy_timeout = 0")
        ends, pause = time.monotonic() + PATIENCE, 0.0002
        while not self._connection.in_transaction:
            try:
                self._run("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > ends:
                    raise
                time.sleep(pause)
                pause = min(1.5 * pause, 0.005)
        self._run(f"PRAGMA busy_timeout = {1000 * PATIENCE:.0f}")

    def _check_there(self) -> None:
        """Do not create again what was deleted while it was in use."""
        if not self.path.exists() or not self.path.stat().st_size:
            raise StorageError(
                f"{self.place} was deleted while it was in use: restore it, or restart this process"
            )
        self._check_ours()

    def _error(self, error: Exception) -> StorageError | None:
        if not isinstance(error, sqlite3.Error | OSError):
            return None
        if "locked" in str(error):
            return StorageError(
                f"{self.place} was locked for {PATIENCE:g} s by another process: try again"
            )
        return StorageError(f"{self.place} cannot be used: {error}")

    def size(self) -> int:
        """Return the size of the file and of its write-ahead log."""
        files = self.path, Path(f"{self.path}-wal")
        return sum(file.stat().st_size for file in files if file.exists())


def opened(url: str | os.PathLike[str], durability: str) -> Database:
    """Return the database at a URL or a path."""
    if durability not in DURABILITIES:
        raise InvalidSettingError(
            f"must be one of {DURABILITIES}, got {durability!r}", name="durability"
        )
    text = os.fspath(url)
    if text.startswith(("postgresql://", "postgres://")):
        from halfseen.agent.postgres import Postgres

        return Postgres(text)
    return Sqlite(text.removeprefix("sqlite:///"), durability)
