"""The journal in a database that several processes share: SQLite or PostgreSQL."""

import json
import secrets
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from halfseen.agent.database import Database, Run
from halfseen.agent.deadline import Deadline
from halfseen.agent.events import (
    CHOOSE,
    DIGEST,
    EXPIRE,
    EXPIRY,
    OBSERVE,
    REWARD,
    Asked,
    Event,
    Made,
    StoredSet,
    hashed,
    packed,
    unpacked,
    varying_columns,
)
from halfseen.agent.journal import Lead, Leased, Rewards, Stale, Taken
from halfseen.errors import StorageError
from halfseen.frames import Rows
from halfseen.values import Note

SCHEMA = 1
"""Version of the tables and of what events mean."""

N_CHECKPOINTS = 3
"""Checkpoints that stay; older ones are superseded."""

USED_EVERY, UNUSED_FOR = 60.0, 180.0
"""Seconds after which the use of an offered set is noted again, and after which an unused one may
be deleted: whoever found it meanwhile has long committed, or failed."""

_AT_ONCE = 500  # rows that one transaction deletes, or one statement looks up
_SETS = 256  # offered sets that are remembered

# SQLite takes the names that PostgreSQL has for types.
TABLES = (
    """CREATE TABLE IF NOT EXISTS halfseen_agents (
    agent {key}, name TEXT NOT NULL UNIQUE, token TEXT NOT NULL, version BIGINT NOT NULL,
    last BIGINT NOT NULL, owner TEXT, until DOUBLE PRECISION)""",
    """CREATE TABLE IF NOT EXISTS halfseen_events (
    entry {key}, agent BIGINT NOT NULL, number BIGINT, kind TEXT NOT NULL,
    time DOUBLE PRECISION NOT NULL, decision TEXT, options BYTEA, body TEXT NOT NULL, law BYTEA)""",
    """CREATE UNIQUE INDEX IF NOT EXISTS halfseen_events_number
    ON halfseen_events (agent, number) WHERE number IS NOT NULL""",
    """CREATE INDEX IF NOT EXISTS halfseen_events_new
    ON halfseen_events (agent, entry) WHERE number IS NULL""",
    """CREATE TABLE IF NOT EXISTS halfseen_decisions (
    agent BIGINT, id TEXT, entry BIGINT NOT NULL, number BIGINT, time DOUBLE PRECISION NOT NULL,
    request BYTEA NOT NULL, items TEXT NOT NULL, places TEXT NOT NULL, closed BIGINT,
    weight DOUBLE PRECISION, notes TEXT, PRIMARY KEY (agent, id))""",
    """CREATE INDEX IF NOT EXISTS halfseen_decisions_closed
    ON halfseen_decisions (agent, closed, time)""",
    """CREATE TABLE IF NOT EXISTS halfseen_rewards (
    agent BIGINT, decision TEXT, place BIGINT, key TEXT, value DOUBLE PRECISION,
    final BIGINT NOT NULL, entry BIGINT NOT NULL, PRIMARY KEY (agent, decision, place, key))""",
    """CREATE TABLE IF NOT EXISTS halfseen_logs (
    agent BIGINT, key TEXT, request BYTEA NOT NULL, PRIMARY KEY (agent, key))""",
    """CREATE TABLE IF NOT EXISTS halfseen_sets (
    digest BYTEA PRIMARY KEY, names TEXT NOT NULL, varying BYTEA NOT NULL, members BYTEA NOT NULL,
    used DOUBLE PRECISION NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS halfseen_members (
    digest BYTEA PRIMARY KEY, content BYTEA NOT NULL, used DOUBLE PRECISION NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS halfseen_rows (
    digest BYTEA PRIMARY KEY, body TEXT NOT NULL, used DOUBLE PRECISION NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS halfseen_files (
    agent BIGINT, kind TEXT, number BIGINT, content BYTEA NOT NULL,
    PRIMARY KEY (agent, kind, number))""",
)

_MADE = "d.id, d.items, d.time, d.places, d.notes, d.weight, d.number, d.request"
_EVENT = "e.kind, e.body, e.options, e.number, e.time, e.entry, e.decision"


class SqlJournal:
    """The events, decisions and files of one agent; `place` says where, without a password.

    Parameters
    ----------
    database : Database
    name : str
        Of the agent.
    """

    is_shared = True

    def __init__(self, database: Database, name: str) -> None:
        self.database, self.place, self.name = database, database.place, name
        self._agent, self._token = 0, ""
        self._known = 0  # the largest number of an event that was seen here
        self._other: SqlJournal | None = None
        self._sets: dict[bytes, Rows] = {}
        self._offered: Rows | None = None  # the last set that was written
        self._varying: frozenset[str] = frozenset()

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

    def create(self, start: bytes) -> None:
        """Create the agent with its first view and checkpoint, unless another process has."""

        def insert(run: Run) -> None:
            made = run(
                "INSERT INTO halfseen_agents (name, token, version, last) VALUES (?, ?, ?, 0) "
                "ON CONFLICT DO NOTHING RETURNING agent",
                *(self.name, secrets.token_hex(8), SCHEMA),
            ).fetchone()
            for kind in ("view", "checkpoint") if made else ():
                self._insert_file(run, made[0], kind, 0, start)

        self.database.write(insert)
        self.find()

    # Events

    def append(
        self,
        events: Sequence[Event],
        lead: Lead | None = None,
        *,
        view: bytes | None = None,
        checkpoint: bytes | None = None,
        deadline: Deadline | None = None,
    ) -> list[Event]:
        """Append events, all or none; see `Journal`."""
        # While others may write.
        stored = [(event.text(), packed(event.law), event.request()) for event in events]
        if len(events) > 1:
            for asked in (event.asked for event in events if event.asked is not None):
                self.database.write_part(partial(self._insert_set, asked=asked))  # many rows

        def insert(run: Run) -> list[Event]:
            if lead is None:
                self._check_agent(run)
            else:
                self._advance(run, lead, len(events))
            added = []
            for at, (event, plain) in enumerate(zip(events, stored, strict=True), 1):
                number = None if lead is None else lead.last + at
                added.append(self._insert_event(run, event, number, *plain))
            for kind, content in (("view", view), ("checkpoint", checkpoint)):
                if content is not None:
                    assert lead is not None
                    self._insert_file(run, self._agent, kind, lead.last + len(events), content)
            if deadline is not None:
                deadline.commit()
            return added

        return self.database.write(insert)

    def _advance(self, run: Run, lead: Lead, n: int) -> None:
        """Add to the number of the last event, or raise `Stale`."""
        done = run(
            "UPDATE halfseen_agents SET last = last + ? "
            "WHERE agent = ? AND token = ? AND version = ? AND owner = ? AND last = ?",
            *(n, self._agent, self._token, SCHEMA, lead.owner, lead.last),
        )
        if not done.rowcount:
            self._check_agent(run)
            raise Stale
        self._known = lead.last + n

    def _check_agent(self, run: Run) -> None:
        """Raise an error unless the agent is there and has the events that are known."""
        query = "SELECT last FROM halfseen_agents WHERE agent = ? AND token = ? AND version = ?"
        row = run(query, self._agent, self._token, SCHEMA).fetchone()
        if row is None:
            raise StorageError(
                f"agent {self.name!r} is no longer in {self.place}, or has another schema: "
                "restart this process"
            )
        if row[0] < self._known:
            raise StorageError(
                f"{self.place} ends with event {row[0]} and this process knows {self._known}: the "
                "database was set back, so restart this process"
            )

    def _insert_event(
        self, run: Run, event: Event, number: int | None, text: str, law: Any, request: bytes
    ) -> Event:
        digest = None if event.asked is None else self._insert_set(run, event.asked)
        row = run(
            "INSERT INTO halfseen_events (agent, number, kind, time, decision, options, body, law) "
            f"VALUES (?, ?, ?, {self.database.now}, ?, ?, ?, ?) RETURNING entry, time",
            *(self._agent, number, event.kind, event.body.get("id"), digest, text, law),
        ).fetchone()
        event = event._replace(number=number or 0, time=float(row[1]), entry=row[0])
        if event.kind == CHOOSE:
            made = event.made[0]._replace(time=event.time, number=number or 0, request=request)
            event = event._replace(made=(made,))
        self._insert_keys(run, event, request)
        return event

    def _insert_keys(self, run: Run, event: Event, request: bytes) -> None:
        """Write what makes an event count once, or raise `Taken`."""
        body = event.body
        if event.kind == CHOOSE:
            (made,) = event.made
            columns = "id, entry, number, time, request, items, places, weight, notes"
            plain = json.dumps(made.items), json.dumps(made.places), made.weight, _text(made.notes)
            own = made.id, event.entry, event.number or None, event.time, request, *plain
            self._insert_once(run, "decisions", columns, *own)
        elif event.kind == OBSERVE and "key" in body:
            self._insert_once(run, "logs", "key, request", body["key"], request)
        elif event.kind == REWARD:
            given = body["id"], body["place"], body["key"], body["value"]
            self._insert_reward(run, *given, body["total"] is not None, event.entry)
        elif event.kind == EXPIRE:
            for id, at, value in body["rewards"]:
                self._insert_reward(run, id, at, EXPIRY, value, True, event.entry)
        for before, after in event.changes.values():
            closed = None if after.is_open else event.number
            done = run(
                "UPDATE halfseen_decisions SET places = ?, closed = ? "
                "WHERE agent = ? AND id = ? AND places = ?",
                *(json.dumps(after.places), closed, self._agent, before.id),
                json.dumps(before.places),
            )
            if not done.rowcount:
                raise Taken

    def _insert_reward(self, run: Run, *given: Any) -> None:
        *reward, final, entry = given
        columns = "decision, place, key, value, final, entry"
        self._insert_once(run, "rewards", columns, *reward, int(final), entry)

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
        now = self.database.now
        query = f"SELECT {now} - used FROM halfseen_sets WHERE digest = ?"
        found = run(query, asked.digest).fetchone()
        if found and found[0] < USED_EVERY:
            return asked.digest
        stored = self._stored(asked.rows)
        members = hashed(stored.members)
        rows = sorted(stored.rows.items())  # in one order, so that none waits for another
        again = "ON CONFLICT (digest) DO UPDATE SET used = excluded.used WHERE excluded.used -"
        for table, columns, values in (
            ("rows", "body", rows),
            ("members", "content", [(members, stored.members)]),
            ("sets", "names, varying, members", [
                (asked.digest, stored.names, stored.varying, members)
            ]),
        ):  # fmt: skip
            marks = ", ".join("?" * len(values[0]))
            self.database.run_many(
                f"INSERT INTO halfseen_{table} (digest, {columns}, used) VALUES ({marks}, {now}) "
                + f"{again} halfseen_{table}.used > {USED_EVERY}",
                values,
            )
        return asked.digest

    def _stored(self, rows: Rows) -> StoredSet:
        """Return rows as they are stored; what varied once is kept with sets from then on."""
        if self._offered is not None:
            self._varying |= varying_columns(rows, self._offered)
        self._offered = rows
        return StoredSet.of(rows, self._varying)

    def number(self, lead: Lead, events: Sequence[Event]) -> None:
        """Give the next numbers to events without one."""

        def update(run: Run) -> None:
            self._advance(run, lead, len(events))
            many = self.database.run_many
            many(
                "UPDATE halfseen_events SET number = ? WHERE entry = ?",
                [(event.number, event.entry) for event in events],
            )
            made = [event.made[0] for event in events if event.kind == CHOOSE]
            many(
                "UPDATE halfseen_decisions SET number = ?, notes = ? WHERE agent = ? AND id = ?",
                [(each.number, _text(each.notes), self._agent, each.id) for each in made],
            )
            many(
                "UPDATE halfseen_decisions SET closed = ? WHERE agent = ? AND id = ?",
                [
                    (event.number, self._agent, id)
                    for event in events
                    if event.kind == EXPIRE or event.body.get("left") is False
                    for id in {made.id for made in event.made}
                ],
            )

        self.database.write(update)

    def news(self, after: int, most: int = 1000) -> list[Event]:
        """Return events after a number, then those without a number, with their decisions."""
        found = self.database.read(
            f"SELECT * FROM (SELECT {_EVENT} FROM halfseen_events e WHERE agent = ? "
            "AND number > ? ORDER BY number LIMIT ?) AS known UNION ALL "
            f"SELECT * FROM (SELECT {_EVENT} FROM halfseen_events e WHERE agent = ? "
            "AND number IS NULL ORDER BY entry LIMIT ?) AS new",
            *(self._agent, after, most, self._agent, most),
        )
        found = sorted(found, key=lambda row: (row[3] is None, row[3], row[5]))[:most]
        events = [self._event(row) for row in found]
        if not events:
            return events
        self._known = max(self._known, *(event.number for event in events))
        about = [_ids_of(event, row[-1]) for event, row in zip(events, found, strict=True)]
        known = self.decisions(list({id for ids in about for id in ids}))
        return [
            event._replace(made=tuple(known[id] for id in ids))
            for event, ids in zip(events, about, strict=True)
        ]

    def _event(self, row: Sequence[Any]) -> Event:
        kind, text, options, number, time, entry, _ = row
        body, asked = json.loads(text), None
        context = body.pop("context", None)
        if options is not None:
            context = None if context is None else Rows.from_dict(context)
            asked = Asked(self.rows(options), context, bytes(options))
        return Event(kind, body, asked, None, number or 0, time, (), entry)

    def _made(self, where: str, *values: Any) -> list[Made]:
        """Return decisions."""
        return [
            Made(
                id,
                tuple(json.loads(items)),
                time,
                tuple(json.loads(places)),
                () if notes is None else tuple(map(_note, json.loads(notes))),
                weight,
                number or 0,
                bytes(request),
            )
            for id, items, time, places, notes, weight, number, request in self.database.read(
                f"SELECT {_MADE} FROM halfseen_decisions d WHERE d.agent = ? AND {where}",
                *(self._agent, *values),
            )
        ]

    def rows(self, digest: bytes) -> Rows:
        """Return an offered set."""
        digest = bytes(digest)
        known = self._sets.get(digest)
        if known is None:
            found = self.database.read(
                "SELECT s.names, s.varying, m.content FROM halfseen_sets s "
                "JOIN halfseen_members m ON m.digest = s.members WHERE s.digest = ?",
                digest,
            )
            if not found:
                raise StorageError(
                    f"{self.place} is damaged: an offered set is missing; restore it from a copy"
                )
            names, varying, members = found[0][0], bytes(found[0][1]), bytes(found[0][2])
            digests = {members[at : at + DIGEST] for at in range(0, len(members), DIGEST)}
            texts: dict[bytes, str] = {}
            for some, marks in _some(sorted(digests)):
                query = f"SELECT digest, body FROM halfseen_rows WHERE digest IN ({marks})"
                texts |= {bytes(key): text for key, text in self.database.read(query, *some)}
            known = StoredSet(names, varying, members, texts).joined()
            for oldest in list(self._sets)[: 1 - _SETS]:
                self._sets.pop(oldest, None)  # or another thread has done so
            self._sets[digest] = known
        return known

    def now(self) -> float:
        """Return the database's time."""
        return float(self.database.value(f"SELECT {self.database.now}"))

    def n_behind(self, after: int) -> int:
        """Return how many events come after a number, or have none yet."""
        return int(
            self.database.value(
                "SELECT last - ? + (SELECT COUNT(*) FROM halfseen_events e WHERE e.agent = a.agent "
                "AND number IS NULL) FROM halfseen_agents a WHERE agent = ?",
                *(after, self._agent),
            )
        )

    def reading(self) -> "SqlJournal":
        """Return the journal over a connection of its own, for what takes long."""
        if self._other is None:
            other = SqlJournal(self.database.another(), self.name)
            other._agent, other._token = self._agent, self._token
            self._other = other
        return self._other

    def size(self) -> int | None:
        """Return the size of the database in bytes."""
        return self.database.size()

    def close(self) -> None:
        """Close the connections."""
        self.database.close()
        if self._other is not None:
            self._other.close()

    # Decisions

    def decisions(self, ids: Sequence[str]) -> dict[str, Made]:
        """Return decisions by id."""
        return {
            made.id: made
            for some, marks in _some(list(ids))
            for made in self._made(f"d.id IN ({marks})", *some)
        }

    def event_of(self, id: str) -> Event | None:
        """Return the event of a decision, with its options and probabilities."""
        made = self.decisions([id]).get(id)
        found = made and self.database.read(
            f"SELECT {_EVENT}, e.law FROM halfseen_events e JOIN halfseen_decisions d "
            "ON d.entry = e.entry WHERE d.agent = ? AND d.id = ?",
            *(self._agent, id),
        )
        if not made or not found:
            return None
        *row, law = found[0]
        return self._event(row)._replace(law=unpacked(law), made=(made,))

    def rewards(self, ids: Sequence[str]) -> dict[str, Rewards]:
        """Return the rewards of decisions that have any."""
        found: dict[str, dict[tuple[int, str], float]] = {}
        for some, marks in _some(list(ids)):
            for id, place, key, value in self.database.read(
                "SELECT decision, place, key, value FROM halfseen_rewards "
                f"WHERE agent = ? AND decision IN ({marks}) AND key <> ?",
                *(self._agent, *some, EXPIRY),
            ):
                found.setdefault(id, {})[place, key] = value
        return dict(found)

    def log_request(self, key: str) -> bytes | None:
        """Return a digest of the log that was observed with a key."""
        query = "SELECT request FROM halfseen_logs WHERE agent = ? AND key = ?"
        found = self.database.value(query, self._agent, key)
        return None if found is None else bytes(found)

    def pending(self, most: int | None = None, *, as_of: int | None = None) -> list[Made]:
        """Return decisions with an open place, the oldest first."""
        limit = "" if most is None else f" LIMIT {most:d}"
        if as_of is None:
            return self._made(f"d.closed IS NULL ORDER BY d.time, d.entry{limit}")
        return self._made(
            "d.number <= ? AND (d.closed IS NULL OR d.closed = 0 OR d.closed > ?) "
            f"ORDER BY d.number DESC{limit}",
            *(as_of, as_of),
        )[::-1]

    def gone(self, most: int) -> list[Made]:
        """Return the latest decisions without an open place."""
        return self._made("d.closed IS NOT NULL ORDER BY d.time DESC LIMIT ?", most)[::-1]

    # Views, checkpoints and the lease

    def view(self, after: int = -1) -> tuple[int, bytes] | None:
        """Return the latest view and the number of its event."""
        return self._file("view", after)

    def checkpoint(self) -> tuple[int, bytes]:
        """Return the latest checkpoint and the number of its event."""
        found = self._file("checkpoint", -1)
        if found is None:
            raise StorageError(
                f"{self.place} is damaged: agent {self.name!r} has no checkpoint; restore a copy"
            )
        return found

    def _file(self, kind: str, after: int) -> tuple[int, bytes] | None:
        found = self.database.read(
            "SELECT number, content FROM halfseen_files WHERE agent = ? AND kind = ? "
            "AND number > ? ORDER BY number DESC LIMIT 1",
            *(self._agent, kind, after),
        )
        if not found:
            return None
        self._known = max(self._known, int(found[0][0]))
        return int(found[0][0]), bytes(found[0][1])

    def _insert_file(self, run: Run, agent: int, kind: str, number: int, content: bytes) -> None:
        run(
            "INSERT INTO halfseen_files (agent, kind, number, content) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (agent, kind, number) DO UPDATE SET content = excluded.content",
            *(agent, kind, number, content),
        )
        n_kept = N_CHECKPOINTS if kind == "checkpoint" else 1
        run(
            "DELETE FROM halfseen_files WHERE agent = ? AND kind = ? AND number <= (SELECT number "
            "FROM halfseen_files WHERE agent = ? AND kind = ? ORDER BY number DESC LIMIT 1 "
            "OFFSET ?)",
            *(agent, kind, agent, kind, n_kept),
        )

    def lease(self, owner: str, seconds: float, ahead: float = 0.0) -> Leased | None:
        """Take or renew the lease, if nobody else holds it."""
        now = f"({self.database.now} + {float(ahead)!r})"
        row = self.database.write(
            lambda run: run(
                f"UPDATE halfseen_agents SET owner = ?, until = {now} + ? WHERE agent = ? AND "
                f"token = ? AND (owner IS NULL OR owner = ? OR until < {now} OR "
                f"until > {now} + ?) RETURNING {now}, last",
                *(owner, seconds, self._agent, self._token, owner, 2 * seconds),
            ).fetchone()
        )
        return None if row is None else Leased(float(row[0]), int(row[1]))

    def release(self, owner: str) -> None:
        """Give the lease back."""
        self.database.write(
            lambda run: run(
                "UPDATE halfseen_agents SET owner = NULL, until = NULL WHERE agent = ? "
                "AND token = ? AND owner = ?",
                *(self._agent, self._token, owner),
            )
        )

    # The log

    def logged(self, after: int, most: int) -> tuple[list[Any], dict[str, list[Any]]]:
        """Return decisions after an entry, and for each of them its rewards in their order.

        A decision is entry, time, digest of the options, body with its items, and probabilities; a
        reward is place, key, value, whether it is final, and entry.
        """
        found = self.database.read(
            "SELECT e.entry, e.time, e.options, e.body, e.law, d.items FROM halfseen_events e "
            "JOIN halfseen_decisions d ON d.agent = e.agent AND d.id = e.decision "
            f"WHERE e.agent = ? AND e.entry > ? AND e.kind = '{CHOOSE}' ORDER BY e.entry LIMIT ?",
            *(self._agent, after, most),
        )
        made = [
            [*row[:3], json.loads(row[3]) | {"items": json.loads(row[5])}, unpacked(row[4])]
            for row in found
        ]
        rewards: dict[str, list[Any]] = {row[3]["id"]: [] for row in made}
        for some, marks in _some(list(rewards)):
            for id, *reward in self.database.read(
                "SELECT decision, place, key, value, final, entry FROM halfseen_rewards "
                f"WHERE agent = ? AND decision IN ({marks}) ORDER BY entry",
                *(self._agent, *some),
            ):
                rewards[id].append(reward)
        return made, rewards

    def last_entry(self) -> int:
        """Return the key of the latest event."""
        query = "SELECT MAX(entry) FROM halfseen_events WHERE agent = ?"
        return int(self.database.value(query, self._agent) or 0)

    # Pruning, in transactions between which others write

    def prune(self, seconds: float) -> int:
        """Delete events of long ago, and rows to which no event refers; return their number.

        What came after the oldest checkpoint stays, and so does what is pending.
        """
        n_deleted, after = 0, 0
        while True:
            found = self.database.read(
                "SELECT e.entry, e.decision, d.closed FROM halfseen_events e "
                "LEFT JOIN halfseen_decisions d ON d.agent = e.agent AND d.id = e.decision "
                f"WHERE e.agent = ? AND e.entry > ? AND e.time < {self.database.now} - ? "
                "AND e.number <= (SELECT MIN(number) FROM halfseen_files "
                "WHERE agent = ? AND kind = 'checkpoint') ORDER BY e.entry LIMIT ?",
                *(self._agent, after, seconds, self._agent, _AT_ONCE),
            )
            if not found:
                break
            after = found[-1][0]
            old = [(entry, id) for entry, id, closed in found if id is None or closed]
            self.database.write_part(partial(self._delete, old=old))
            n_deleted += len(old)
        self._prune_sets()
        return n_deleted

    def _delete(self, run: Run, old: Sequence[tuple[int, str | None]]) -> None:
        """Delete events; with a decision its rewards."""
        many = self.database.run_many
        many("DELETE FROM halfseen_events WHERE entry = ?", [(entry,) for entry, _ in old])
        own = "WHERE agent = ? AND entry = ?"
        many(f"DELETE FROM halfseen_decisions {own}", [(self._agent, entry) for entry, _ in old])
        many(
            "DELETE FROM halfseen_rewards WHERE agent = ? AND decision = ?",
            [(self._agent, id) for id in {id for _, id in old if id is not None}],
        )

    def _prune_sets(self) -> None:
        """Delete offered sets to which no event of any agent refers, and rows of no set."""
        latest = self.now() - UNUSED_FOR
        used = self._values("events", "entry", "options")
        self._delete_unused("sets", used, latest)
        used = self._values("sets", "digest", "members")
        self._delete_unused("members", used, latest)
        used = {
            content[at : at + DIGEST]
            for content in self._values("members", "digest", "content")
            for at in range(0, len(content), DIGEST)
        }
        self._delete_unused("rows", used, latest)

    def _values(self, table: str, key: str, column: str) -> set[bytes]:
        """Return all values of a column, read in parts."""
        found: set[bytes] = set()
        for rows in self._parts(table, key, column):
            found |= {bytes(value) for _, value in rows if value is not None}
        return found

    def _parts(self, table: str, key: str, column: str) -> Iterator[list[Any]]:
        query = f"SELECT {key}, {column} FROM halfseen_{table} "
        rows = self.database.read(f"{query} ORDER BY {key} LIMIT {_AT_ONCE}")
        while rows:
            yield rows
            more = f"{query} WHERE {key} > ? ORDER BY {key} LIMIT {_AT_ONCE}"
            rows = self.database.read(more, rows[-1][0])

    def _delete_unused(self, table: str, used: Collection[bytes], latest: float) -> None:
        for rows in self._parts(table, "digest", "used"):
            gone = [
                (digest, latest)
                for digest, time in rows
                if time < latest and bytes(digest) not in used
            ]
            statement = f"DELETE FROM halfseen_{table} WHERE digest = ? AND used < ?"
            self.database.write_part(lambda _: self.database.run_many(statement, gone))  # noqa: B023


def _ids_of(event: Event, id: str | None) -> list[str]:
    """Return the decisions that an event is about."""
    if event.kind == EXPIRE:
        return list(dict.fromkeys(id for id, _, _ in event.body["rewards"]))
    return [] if id is None else [id]


def _note(plain: dict[str, Any]) -> Note:
    """Return a note that this package has written; `Note.from_dict` checks every number."""
    context = None if plain["context"] is None else np.array(plain["context"], np.float64)
    inner = None if plain["inner"] is None else _note(plain["inner"])
    arm = np.array(plain["values"], np.float64)
    return Note(plain["round"], plain["epoch"], arm, context, plain["item"], inner)


def _text(notes: Sequence[Note]) -> str | None:
    plain = [note.to_dict() for note in notes]
    return json.dumps(plain, separators=(",", ":")) if notes else None


def _some(values: list[Any]) -> Iterator[tuple[list[Any], str]]:
    """Yield values in lists that a statement can take, with the marks that stand for them."""
    for start in range(0, len(values), _AT_ONCE):
        some = values[start : start + _AT_ONCE]
        yield some, ", ".join("?" * len(some))
