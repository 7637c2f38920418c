"""PostgreSQL, by psycopg (extra `postgres`)."""

import re
from typing import Any, ClassVar

from halfseen.agent.database import PATIENCE, Database
from halfseen.errors import StorageError
from halfseen.lazy import from_extra

_PASSWORDS = r"(//[^:@/]*:)(.*)(?=@)", r"([?&]password=)([^&]*)"


class Postgres(Database):
    """A server. Each statement waits at most `PATIENCE` for a lock, each commit for the disk.

    Parameters
    ----------
    url : str
        `postgresql://user:password@host/name`; the password is never shown.
    """

    begin = "BEGIN"
    first = ("SELECT pg_advisory_xact_lock(7521954)",)  # one process at a time creates tables
    now = "(EXTRACT(EPOCH FROM clock_timestamp())::DOUBLE PRECISION)"
    types: ClassVar = {
        "key": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        "whole": "BIGINT",
        "real": "DOUBLE PRECISION",
        "bytes": "BYTEA",
    }

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
        self._library = psycopg
        self._url = url
        self._options = (
            f"-c lock_timeout={PATIENCE:g}s -c statement_timeout=60s "
            f"-c idle_in_transaction_session_timeout=60s -c client_min_messages=warning "
            "-c synchronous_commit=on"
        )

    def _connect(self) -> Any:
        connection = self._library.connect(
            self._url,
            autocommit=True,
            connect_timeout=int(PATIENCE),
            tcp_user_timeout=int(2000 * PATIENCE),  # the network may be cut off
            options=self._options,
        )
        connection.isolation_level = self._library.IsolationLevel.READ_COMMITTED
        return connection

    def _run(self, statement: str, /, *values: Any) -> Any:
        return self._connection.execute(statement.replace("?", "%s"), values)

    def _is_usable(self) -> bool:
        idle, connection = self._library.pq.TransactionStatus.IDLE, self._connection
        return not connection.closed and bool(connection.info.transaction_status == idle)

    def _error(self, error: Exception) -> StorageError | None:
        if not isinstance(error, self._library.Error | OSError):
            return None
        if isinstance(error, self._library.errors.LockNotAvailable):
            return StorageError(
                f"{self.place} was locked for {PATIENCE:g} s by another process: try again"
            )
        reason = self._without_secrets(str(error).partition("\nLINE")[0]).strip()
        return StorageError(f"{self.place} cannot be used: {reason or type(error).__name__}")

    def _without_secrets(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

    def size(self) -> int:
        """Return the size of all tables of halfseen."""
        query = (
            "SELECT COALESCE(SUM(pg_total_relation_size(oid)), 0)::BIGINT FROM pg_class "
            "WHERE relkind = 'r' AND relname LIKE 'halfseen_%%'"
        )
        return int(self.read(query)[0][0])
