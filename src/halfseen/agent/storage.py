"""Where events and checkpoints of agents are kept: a database that several processes share.

The numbers of an agent's events have no gaps and become visible in their order: the first statement
of every write updates the agent's row, whose lock the others wait for.
"""

import json
import secrets
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from halfseen.agent.database import Database, Run
from halfseen.agent.deadline import Deadline
from halfseen.agent.events import (
    CHOOSE,
    DIGEST,
    EXPIRE,
    LEARN,
    OBSERVE,
    Asked,
    Event,
    joined_set,
    packed,
    stored_set,
    unpacked,
)
from halfseen.errors import StorageError
from halfseen.frames import Rows

SCHEMA = 1
"""Version of the tables and of what events mean."""

EXPIRY = "\x18"
"""The key of the reward that a place gets when its decision expires; no caller can use it."""

N_CHECKPOINTS = 3
"""Checkpoints that stay; older ones are superseded."""

_AT_ONCE = 1000  # events that are read at once
_SETS = 256  # offered sets that are remembered

# SQLite takes the names that PostgreSQL has for types.
TABLES = (
    """CREATE TABLE IF NOT EXISTS halfseen_agents (
    agent {key}, name TEXT NOT NULL UNIQUE, token TEXT NOT NULL, version BIGINT NOT NULL,
    last BIGINT NOT NULL, owner TEXT, until DOUBLE PRECISION)""",
    """CREATE TABLE IF NOT EXISTS halfseen_events (
    agent BIGINT, number BIGINT, kind TEXT NOT NULL, time DOUBLE PRECISION NOT NULL, options BYTEA,
    body TEXT NOT NULL, law BYTEA, PRIMARY KEY (agent, number))""",
    """CREATE TABLE IF NOT EXISTS halfseen_decisions (
    agent BIGINT, id TEXT, number BIGINT NOT NULL, request BYTEA NOT NULL,
    PRIMARY KEY (agent, id))""",
    """CREATE TABLE IF NOT EXISTS halfseen_rewards (
    agent BIGINT, decision TEXT, place BIGINT, key TEXT, value DOUBLE PRECISION,
    final BIGINT NOT NULL, number BIGINT NOT NULL, PRIMARY KEY (agent, decision, place, key))""",
    """CREATE TABLE IF NOT EXISTS halfseen_logs (
    agent BIGINT, key TEXT, request BYTEA NOT NULL, PRIMARY KEY (agent, key))""",
    """CREATE TABLE IF NOT EXISTS halfseen_sets (
    digest BYTEA PRIMARY KEY, names TEXT NOT NULL, members BYTEA NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS halfseen_rows (digest BYTEA PRIMARY KEY, body TEXT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS halfseen_checkpoints (
    agent BIGINT, number BIGINT, covers BIGINT NOT NULL, state BYTEA NOT NULL,
    PRIMARY KEY (agent, number))""",
)


class Taken(Exception):  # noqa: N818 (a state, no mistake)
    """An id or a key was used before."""


class Stale(Exception):  # noqa: N818
    """Other events came first, or the lease is lost."""


class Storage:
    """The events and checkpoints of one agent; `place` says where, without a password.

    Parameters
    ----------
    database : Database
    name : str
        Of the agent.
    """

    def __init__(self, database: Database, name: str) -> None:
        self.database, self.place, self.name = database, database.place, name
        self._agent, self._token = 0, ""
        self._sets: dict[bytes, Rows] = {}

    # Agents

    def find(self) -> bool:
        """Return whether the agent exists."""
        query = "SELECT agent, token, version FROM halfseen_agents WHERE name = ?"
        found = self.database.read(query, self.name)
        if not found:
            return False
        self._agent, self._token, version = found[0]
        if version != SCHEMA:
            raise StorageError(
                f"agent {self.name!r} in {self.place} has schema {version}, this halfseen has "
                f"{SCHEMA}: install the version of halfseen that wrote it, or a newer one"
            )
        return True

    def create(self, state: bytes) -> None:
        """Create the agent with its first checkpoint, unless another process was faster."""

        def insert(run: Run) -> None:
            made = run(
                "INSERT INTO halfseen_agents (name, token, version, last) VALUES (?, ?, ?, 0) "
                "ON CONFLICT DO NOTHING RETURNING agent",
                *(self.name, secrets.token_hex(8), SCHEMA),
            ).fetchone()
            if made:
                self._insert_checkpoint(run, made[0], 0, 0, state)

        self.database.write(insert)
        self.find()

    # Events

    def append(
        self,
        event: Event,
        after: int,
        *,
        exactly: bool = False,
        owner: str | None = None,
        checkpoint: bytes | None = None,
        deadline: Deadline | None = None,
    ) -> Event:
        """Append an event; return it with its number and time.

        Parameters
        ----------
        event : Event
        after : int
            The last event that the caller knows.
        exactly : bool
            Whether there may be no later one.
        owner : str, optional
            Who must hold the lease.
        checkpoint : bytes, optional
            The state after the event `after`, to continue from after this one.
        deadline : Deadline, optional
            Looked at when all is ready to be committed.

        Raises
        ------
        Taken, Stale, Late, StorageError
        """
        # While others may write.
        text, law, request = event.text(), packed(event.law), event.request()

        def insert(run: Run) -> Event:
            row = run(
                "UPDATE halfseen_agents SET last = last + 1 WHERE agent = ? AND token = ? AND "
                f"version = ? RETURNING last, owner, {self.database.now}",
                *(self._agent, self._token, SCHEMA),
            ).fetchone()
            if row is None:
                raise StorageError(
                    f"agent {self.name!r} is no longer in {self.place}, or has another schema: "
                    "restart this process"
                )
            number, time = int(row[0]), float(row[2])
            if number <= after:
                raise StorageError(
                    f"{self.place} ends with event {number - 1} and this process knows {after}: "
                    "the database was set back, so restart this process"
                )
            if (exactly and number > after + 1) or owner not in (None, row[1]):
                raise Stale
            digest = None if event.asked is None else self._insert_set(run, event.asked)
            self._insert_keys(run, event, number, request)
            run(
                "INSERT INTO halfseen_events (agent, number, kind, time, options, body, law) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                *(self._agent, number, event.kind, time, digest, text, law),
            )
            if checkpoint is not None:
                self._insert_checkpoint(run, self._agent, number, after, checkpoint)
            if deadline is not None:
                deadline.commit()
            return event._replace(number=number, time=time)

        return self.database.write(insert)

    def _insert_keys(self, run: Run, event: Event, number: int, request: bytes) -> None:
        """Write what makes an event count once."""
        body = event.body
        if event.kind == CHOOSE:
            self._insert_once(run, "decisions", "id, number, request", body["id"], number, request)
        elif event.kind == OBSERVE and "key" in body:
            self._insert_once(run, "logs", "key, request", body["key"], request)
        elif event.kind in (LEARN, EXPIRE):
            columns = "decision, place, key, value, final, number"
            for *reward, final in event.rewards:
                self._insert_once(run, "rewards", columns, *reward, int(final), number)

    def _insert_once(self, run: Run, table: str, columns: str, *values: Any) -> None:
        marks = ", ".join("?" * (1 + len(values)))
        made = run(
            f"INSERT INTO halfseen_{table} (agent, {columns}) VALUES ({marks}) "
            "ON CONFLICT DO NOTHING",
            *(self._agent, *values),
        )
        if not made.rowcount:
            raise Taken

    def _insert_set(self, run: Run, asked: Asked) -> bytes:
        """Write an offered set, unless it is there, and its rows; return its digest."""
        if run("SELECT 1 FROM halfseen_sets WHERE digest = ?", asked.digest).fetchone():
            return asked.digest  # its rows are there with it
        names, members, rows = stored_set(asked.rows)
        for digest, text in sorted(rows.items()):  # in one order, so that none waits for another
            run(
                "INSERT INTO halfseen_rows (digest, body) VALUES (?, ?) ON CONFLICT DO NOTHING",
                *(digest, text),
            )
        run(
            "INSERT INTO halfseen_sets (digest, names, members) VALUES (?, ?, ?) "
            "ON CONFLICT DO NOTHING",
            *(asked.digest, names, members),
        )
        return asked.digest

    def after(self, number: int, until: int | None = None) -> Iterator[Event]:
        """Yield the events after a number, in order, read by ranges."""
        while until is None or number < until:
            most = _AT_ONCE if until is None else min(_AT_ONCE, until - number)
            found = self.database.read(
                "SELECT number, kind, time, options, body FROM halfseen_events "
                "WHERE agent = ? AND number > ? ORDER BY number LIMIT ?",
                *(self._agent, number, most),
            )
            yield from map(self._event, found)
            if len(found) < most:
                return
            number = found[-1][0]

    def _event(self, row: Sequence[Any]) -> Event:
        number, kind, time, options, text = row
        body, asked = json.loads(text), None
        context = body.pop("context", None)
        if options is not None:
            context = None if context is None else Rows.from_dict(context)
            asked = Asked(self.rows(options), context, options)
        return Event(kind, body, asked, None, number, time)

    def rows(self, digest: bytes) -> Rows:
        """Return an offered set."""
        digest = bytes(digest)
        known = self._sets.get(digest)
        if known is None:
            found = self.database.read(
                "SELECT names, members FROM halfseen_sets WHERE digest = ?", digest
            )
            if not found:
                raise StorageError(
                    f"{self.place} is damaged: an offered set is missing; restore it from a copy"
                )
            names, content = found[0][0], bytes(found[0][1])
            members = [content[at : at + DIGEST] for at in range(0, len(content), DIGEST)]
            texts: dict[bytes, str] = {}
            for some, marks in _some(members):
                query = f"SELECT digest, body FROM halfseen_rows WHERE digest IN ({marks})"
                texts |= {bytes(key): text for key, text in self.database.read(query, *some)}
            known = joined_set(names, [texts[each] for each in members])
            for oldest in list(self._sets)[: 1 - _SETS]:
                self._sets.pop(oldest, None)  # or another thread has done so
            self._sets[digest] = known
        return known

    def now(self) -> float:
        """Return the database's time."""
        return float(self.database.value(f"SELECT {self.database.now}"))

    def last(self) -> int:
        """Return the number of the last event."""
        query = "SELECT last FROM halfseen_agents WHERE agent = ? AND token = ?"
        return int(self.database.value(query, self._agent, self._token) or 0)

    def decision(self, id: str) -> tuple[Event, bytes] | None:
        """Return the event of a decision, with its probabilities, and a digest of its request."""
        found = self.database.read(
            "SELECT e.number, e.kind, e.time, e.options, e.body, e.law, d.request "
            "FROM halfseen_decisions d JOIN halfseen_events e "
            "ON e.agent = d.agent AND e.number = d.number WHERE d.agent = ? AND d.id = ?",
            *(self._agent, id),
        )
        if not found:
            return None
        *row, law, request = found[0]
        return self._event(row)._replace(law=unpacked(law)), bytes(request)

    def reward(self, id: str, place: int, key: str) -> float | None:
        """Return a reward of a decision, if it came."""
        found: float | None = self.database.value(
            "SELECT value FROM halfseen_rewards "
            "WHERE agent = ? AND decision = ? AND place = ? AND key = ?",
            *(self._agent, id, place, key),
        )
        return found

    def log_request(self, key: str) -> bytes | None:
        """Return a digest of the log that was observed with a key."""
        query = "SELECT request FROM halfseen_logs WHERE agent = ? AND key = ?"
        found = self.database.value(query, self._agent, key)
        return None if found is None else bytes(found)

    # Checkpoints and the lease

    def checkpoint(self, number: int = -1) -> tuple[int, int, bytes]:
        """Return the checkpoint of a refit, or the latest one if it is superseded.

        The event after which its state holds, the last event that the state includes (those between
        are applied to it), and the state.
        """
        found = self.database.read(
            "SELECT number, covers, state FROM halfseen_checkpoints "
            "WHERE agent = ? ORDER BY number = ? DESC, number DESC LIMIT 1",
            *(self._agent, number),
        )
        if not found:
            raise StorageError(
                f"{self.place} is damaged: agent {self.name!r} has no checkpoint; restore a copy"
            )
        return int(found[0][0]), int(found[0][1]), bytes(found[0][2])

    def last_checkpoint(self) -> int:
        """Return the number of the latest checkpoint."""
        query = "SELECT MAX(number) FROM halfseen_checkpoints WHERE agent = ?"
        return int(self.database.value(query, self._agent) or 0)

    def save(self, number: int, state: bytes) -> None:
        """Write a checkpoint after an event; older ones than the latest three go."""
        given = number, number, state
        self.database.write(lambda run: self._insert_checkpoint(run, self._agent, *given))

    def _insert_checkpoint(
        self, run: Run, agent: int, number: int, covers: int, state: bytes
    ) -> None:
        run(
            "INSERT INTO halfseen_checkpoints (agent, number, covers, state) VALUES (?, ?, ?, ?) "
            "ON CONFLICT DO NOTHING",
            *(agent, number, covers, state),
        )
        run(
            "DELETE FROM halfseen_checkpoints WHERE agent = ? AND number <= (SELECT number FROM "
            "halfseen_checkpoints WHERE agent = ? ORDER BY number DESC LIMIT 1 OFFSET ?)",
            *(agent, agent, N_CHECKPOINTS),
        )

    def lease(self, owner: str, seconds: float) -> float | None:
        """Take or renew the lease, if nobody else holds it; return the database's time then."""
        now = self.database.now
        row = self.database.write(
            lambda run: run(
                f"UPDATE halfseen_agents SET owner = ?, until = {now} + ? WHERE agent = ? AND "
                f"token = ? AND (owner IS NULL OR owner = ? OR until < {now} OR "
                f"until > {now} + ?) RETURNING {now}",
                # A deadline further ahead than any lease is one from before a clock was set back.
                *(owner, seconds, self._agent, self._token, owner, 2 * seconds),
            ).fetchone()
        )
        return None if row is None else float(row[0])

    def release(self, owner: str) -> None:
        """Give the lease back."""
        self._write(
            "UPDATE halfseen_agents SET owner = NULL, until = NULL WHERE agent = ? "
            "AND token = ? AND owner = ?",
            *(self._agent, self._token, owner),
        )

    def _write(self, statement: str, *values: Any) -> None:
        self.database.write(lambda run: run(statement, *values))

    # The log

    def decisions(self, after: int, most: int) -> tuple[list[Any], dict[str, list[Any]]]:
        """Return decisions after an event, and for each of them its rewards in their order.

        A decision is number, time, digest of the options, body and probabilities; a reward is
        place, key, value, whether it is final, and number.
        """
        found = self.database.read(
            "SELECT number, time, options, body, law FROM halfseen_events "
            f"WHERE agent = ? AND number > ? AND kind = '{CHOOSE}' ORDER BY number LIMIT ?",
            *(self._agent, after, most),
        )
        made = [[*row[:3], json.loads(row[3]), unpacked(row[4])] for row in found]
        rewards: dict[str, list[Any]] = {row[3]["id"]: [] for row in made}
        for some, marks in _some(list(rewards)):
            for id, *reward in self.database.read(
                "SELECT decision, place, key, value, final, number FROM halfseen_rewards "
                f"WHERE agent = ? AND decision IN ({marks}) ORDER BY number",
                *(self._agent, *some),
            ):
                rewards[id].append(reward)
        return made, rewards

    def prune(self, seconds: float, waiting: Collection[str]) -> int:
        """Delete events of long ago, and rows to which no event refers; return their number.

        What came after the oldest checkpoint stays, and so does what waits.
        """
        found = self.database.read(
            "SELECT MAX(e.number), (SELECT MIN(covers) FROM halfseen_checkpoints WHERE agent = ?) "
            f"FROM halfseen_events e WHERE e.agent = ? AND e.time < {self.database.now} - ?",
            *(self._agent, self._agent, seconds),
        )
        last = min(int(found[0][0] or 0), int(found[0][1] or 0))
        old = self.database.read(
            "SELECT id, number FROM halfseen_decisions WHERE agent = ? AND number <= ?",
            *(self._agent, last),
        )
        kept = {number for id, number in old if id in waiting}
        ids = [id for id, _ in old if id not in waiting]
        found = self.database.read(
            "SELECT number FROM halfseen_events WHERE agent = ? AND number <= ?", self._agent, last
        )
        numbers = [number for (number,) in found if number not in kept]
        for table, column, gone in (
            ("rewards", "decision", ids),
            ("decisions", "id", ids),
            ("events", "number", numbers),
        ):
            for some, marks in _some(gone):  # not all at once: others want to write
                query = f"DELETE FROM halfseen_{table} WHERE agent = ? AND {column} IN ({marks})"
                self._write(query, self._agent, *some)
        self.database.write(_prune_rows)
        return len(numbers)


def _prune_rows(run: Run) -> None:
    """Delete offered sets to which no event of any agent refers, and rows of no set."""
    run("UPDATE halfseen_agents SET last = last")  # nobody may append meanwhile
    run(
        "DELETE FROM halfseen_sets WHERE digest IN "  # NOT IN would take PostgreSQL hours
        "(SELECT digest FROM halfseen_sets EXCEPT SELECT options FROM halfseen_events)"
    )
    used = {
        bytes(members)[at : at + DIGEST]
        for (members,) in run("SELECT members FROM halfseen_sets").fetchall()
        for at in range(0, len(members), DIGEST)
    }
    for (digest,) in run("SELECT digest FROM halfseen_rows").fetchall():
        if bytes(digest) not in used:
            run("DELETE FROM halfseen_rows WHERE digest = ?", digest)


def _some(values: list[Any]) -> Iterator[tuple[list[Any], str]]:
    """Yield values in lists that a statement can take, with the marks that stand for them."""
    for start in range(0, len(values), 500):
        some = values[start : start + 500]
        yield some, ", ".join("?" * len(some))
