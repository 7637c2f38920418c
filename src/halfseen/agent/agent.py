"""The agent: tables in, items out, rewards by id."""

import datetime
import json
import os
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from halfseen import archive, checks
from halfseen.agent.database import opened
from halfseen.agent.events import CHOOSE, EXPIRE, LEARN, OBSERVE, REFIT, Asked, Event
from halfseen.agent.explanation import Explanation, Measurement, checked_costs
from halfseen.agent.health import epochs_of, mean_of, shares
from halfseen.agent.ledger import Pending, Waiting, is_repeated
from halfseen.agent.logs import frames_of
from halfseen.agent.replica import Ready, Replica
from halfseen.agent.storage import EXPIRED, Checkpoint, Stale, Storage, Taken
from halfseen.errors import (
    AlreadyRewardedError,
    ArchiveError,
    HalfseenError,
    InvalidInputError,
    InvalidSettingError,
    InvalidTableError,
    StorageError,
    UnknownDecisionError,
)
from halfseen.frames import Column
from halfseen.log import logger
from halfseen.policies.base import Policy
from halfseen.policies.registry import policy_from_dict, policy_to_dict
from halfseen.values import Choice, Decision, FloatArray, Item, Note, Scores
from halfseen.values.decision import checked_reward, checked_rewards, listed

T = TypeVar("T")
Path = str | os.PathLike[str]

LEASE = 30.0
"""Seconds for which a process may expire, refit and save for all: after it was killed while it did,
the others wait for so long."""

_SAVED_EVERY = 20_000  # events between two checkpoints
_LOG_ROWS = 5000  # rows of a log in one event
_EXPIRED_AT_ONCE = 500  # decisions that one event closes
_PAUSE = 0.2  # seconds after which a lease that was not free is asked for again
_AFTER_FAILURE = 30.0  # and after a refit that failed


class Scored(NamedTuple):
    """What an agent expects of an option, and which share of the known columns it shows.

    Examples
    --------
    >>> from halfseen import Agent
    >>> agent = Agent(id="sku")
    >>> agent.observe({"sku": ["hat", "coat"], "price": [3.0, 9.0], "size": [1, 2]}, [0.0, 1.0])
    >>> scored = agent.score([{"sku": "coat", "price": 9.0}])[0]
    >>> scored.item, scored.share_seen
    ('coat', 0.5)
    """

    item: Item
    estimate: float
    width: float
    share_seen: float


class Agent(Replica):
    """Chooses among the rows of a table, and learns rewards by id.

    Tables are data frames (pandas, polars, pyarrow), lists of dicts, dicts of columns, or arrays.
    What is missing is hidden. Names of columns decide, not their order. Numbers are features,
    strings are categories; a column or level that was not there before enters.

    `Agent()` lives in this process. `Agent.open("shop.db")` is one agent of many processes, in a
    database: nothing that a call has returned for is lost.

    All methods may be called from several threads. Memory is bounded. Any exception leaves the
    agent as it was, or, if it comes after the database has the change, as it is there.

    Examples
    --------
    >>> agent = Agent(id="sku")
    >>> offers = [{"sku": "a", "price": 3.0, "colour": "red"}, {"sku": "b", "price": 4.0}]
    >>> decision = agent.choose(offers)
    >>> decision.item in ("a", "b")
    True
    >>> agent.learn(decision.id, 1.0)
    >>> [str(column) for column in agent.columns.values()]
    ['sku: id', 'price: number', 'colour: category of 1 level']
    """

    def setup(self) -> None:
        """Create the state of a fresh agent, without a database."""
        super().setup()
        self._owner = secrets.token_hex(8)  # of the lease
        self._saved = 0  # event of the latest checkpoint known here
        self._next_try = 0.0  # when to ask for the lease again
        self._n_failed_refits = 0  # in this process
        self._worker: threading.Thread | None = None
        self._failure: str | None = None  # why it cannot go on

    # Choosing

    def choose(
        self,
        options: Any,
        *,
        context: Any = None,
        k: int = 1,
        id: str | None = None,
        explore: bool = True,
    ) -> Decision:
        """Choose one of the options, or a ranked list of several.

        Parameters
        ----------
        options : table, or list of ids
            One row per option. Ids alone are enough for a policy that learns about items.
        context : row, optional
            What all options share, such as the visitor: a dict, a series, or a table of one row.
            Its columns have nothing to do with those of the options.
        k : int
            Number of different items, `decision.chosen`; each of them gets a reward of its own.
        id : str, optional
            Of the decision; by default one that cannot be guessed. With a database, the same id
            with the same request returns the same decision.
        explore : bool
            False for the option with the largest estimate, in this request.

        Raises
        ------
        InvalidTableError
            Names the column or the row, the value got, and the remedy.
        InvalidInputError
            There is a context, and the policy cannot use one; or it cannot help exploring; or the
            id was used for another request.
        StorageError
            The database cannot be used.
        """
        checks.boolean("explore", explore)
        asked = self._asked(options, context)
        n_options = len(asked.rows.items)
        if k != 1:
            checks.integer("k, the number of places,", k, 1, n_options)
        name = secrets.token_hex(12) if id is None else _checked_key("id", id)
        with self._lock:
            self._tend()
            body: dict[str, Any] = {"id": name, "arms": [0] * k, "explore": explore}
            event = Event(CHOOSE, body, asked)
            if id is not None and (known := self._decided_before(event)) is not None:
                return known
            ready = self._encoded(asked)
            ready.policy._prepare(ready.slate)
            decided, choices, arms = self._decided(ready, name, k, explore)
            if self._storage is None:
                decided._key = ""
                ready = ready._replace(policy=decided, inners=tuple(e.inner for e in choices))
            first, chances = choices[0], [_probability(each) for each in choices]
            body |= {
                "arms": arms,
                "items": [asked.rows.items[arm] for arm in arms],
                "probabilities": chances,
                "weight": _weight(first, n_options),
                "based_on": self._last,
            }
            try:
                self._record([event._replace(law=first.probabilities)], ready)
            except Taken:  # another process was faster
                self._catch_up()
                again = {"context": context, "k": k, "explore": explore}
                return self._decided_before(event) or self.choose(options, **again)
            note = self._note_of(name, ready, arms[0])
        places = list(zip(arms, chances, strict=True))[1:]
        return Decision(
            type(decided).__name__,
            arms[0],
            note,
            first.parts,
            first.probabilities,
            id=name,
            items=asked.rows.items,
            rows=asked,
            places=places,
        )

    def _decided(
        self, ready: Ready, name: str, k: int, explore: bool
    ) -> tuple[Any, list[Choice], list[int]]:
        """Return a fork of the policy that has decided, its choices, and the arms of all places.

        Each place is chosen among the options that are left. Random streams are keyed by the
        decision's id, so that processes in the same round do not draw alike; without a database, by
        the round, so that a seed repeats everything.
        """
        policy, slate = ready.policy._fork(), ready.slate
        policy._key = "" if self._storage is None else name
        key = policy._key or str(policy.round + 1)
        rest = np.arange(slate.n_arms)
        choices: list[Choice] = []
        arms: list[int] = []
        for place in range(k):
            if place:
                policy._key, rest = f"{key}/{place}", rest[rest != arms[-1]]
            offered = slate.some(rest) if place else slate
            choices.append(policy.decide(offered) if explore else policy._exploit(offered))
            arms.append(int(rest[choices[-1].arm]))
        return policy, choices, arms

    def _note_of(self, id: str, ready: Ready, arm: int) -> Note:
        """Return the note of a decision, or one that looks like it if it no longer waits."""
        waiting, slate = self._ledger.get(id), ready.slate
        if waiting is not None:
            return waiting.places[0].note
        return Note(1, -1, slate._table[arm].copy(), slate._context)

    def _decided_before(self, event: Event) -> Decision | None:
        """Return the decision with the id of an event; an error if it was asked otherwise.

        Its scores are those of today: a database has probabilities, but no scores.
        """
        id, asked = event.body["id"], event.asked
        assert asked is not None
        found = None if self._storage is None else self._storage.decision(id)
        if found is None and not self._ledger.get(id) and not self._ledger.gone(id):
            return None
        if found is None or found[1] != event.request():
            raise InvalidInputError(
                f"decision {id} was made before, for another request: give each request an id of "
                "its own, and open a database for requests that are repeated"
            )
        body, law = found[0].body, found[0].law
        ready = self._encoded(asked, lenient=True)
        parts = ready.policy._appraise(ready.slate)
        arms = body["arms"]
        return Decision(
            type(ready.policy).__name__,
            arms[0],
            self._note_of(id, ready, arms[0]),
            parts,
            law,
            id=id,
            items=asked.rows.items,
            rows=asked,
            places=list(zip(arms, body["probabilities"], strict=True))[1:],
        )

    def score(self, options: Any, *, context: Any = None) -> tuple[Scored, ...]:
        """Return estimate, width and share of seen columns of each option, without choosing."""
        asked = self._asked(options, context)
        with self._lock:
            self._catch_up()
            ready = self._encoded(asked)
            estimates, widths = ready.policy.score(ready.slate)
        firsts = [column.features[0] for column in ready.options.columns.values()]
        seen = ready.slate.mask[:, firsts].mean(axis=1) if firsts else np.ones(len(estimates))
        columns = (asked.rows.items, estimates.tolist(), widths.tolist(), seen.tolist())
        return tuple(Scored(*each) for each in zip(*columns, strict=True))

    def explain(
        self,
        decision: Decision | Any,
        *,
        context: Any = None,
        item: Item | None = None,
        costs: Mapping[str, float] | None = None,
    ) -> Explanation:
        """Return why an option has its score, and which hidden column is worth measuring.

        Under the present model: if rewards came since the decision, `is_current` is False.

        Parameters
        ----------
        decision : Decision, str or table
            What `choose` returned, its id if the agent has a database, or options.
        context : row, optional
            That of the options; a decision has its own.
        item : str or int, optional
            The option; by default the chosen one, or the one with the best score.
        costs : mapping, optional
            For columns what it costs to measure them, in units of the reward; others are free. A
            name that options and context share has one cost.

        Raises
        ------
        InvalidInputError
            The policy cannot explain its scores, or an item or a column is not known.
        """
        asked, made = None, None
        if isinstance(decision, Decision):
            asked, made = decision._rows, Scores(decision.estimates, decision.widths)
            item = decision.item if item is None else item
        elif isinstance(decision, str):
            found = None if self._storage is None else self._storage.decision(decision)
            if found is None:
                raise UnknownDecisionError(
                    f"decision {decision!r:.80} is in no database of this agent: pass what choose "
                    "returned, or options"
                )
            asked, body = found[0].asked, found[0].body
            item = body["items"][0] if item is None else item
        asked = self._asked(decision, context) if asked is None else asked
        prices = checked_costs(costs, self.columns | self.context_columns)
        with self._lock:
            self._catch_up()
            ready = self._encoded(asked)
            columns, context_columns = (
                {name: list(each.features) for name, each in encoder.columns.items()}
                for encoder in (ready.options, ready.context)
            )
            given = ready.policy, ready.slate, asked.rows.items, columns, context_columns
            return Explanation.of(*given, item=item, costs=prices, made=made)

    def worth_measuring(
        self, log: Any, *, costs: Mapping[str, float] | None = None
    ) -> tuple[Measurement, ...]:
        """Return what it is worth per decision of a log to measure a column wherever it is hidden.

        The mean of `explain(decision).measurements` over the log, under the present model; the
        largest gain minus cost first. Takes as long as explaining every decision.

        Parameters
        ----------
        log : list of Decision or of ids, or `log()`
            Ids need a database.
        costs : mapping, optional
            As in `explain`, per decision.
        """
        decisions = list(dict.fromkeys(listed(log["id"]))) if hasattr(log, "columns") else list(log)
        if not decisions:
            raise InvalidInputError("the log must have at least one decision, got none")
        gains: Counter[str] = Counter()
        for decision in decisions:
            found = self.explain(decision, costs=costs).measurements
            gains.update({each.column: each.gain / len(decisions) for each in found})
        prices = checked_costs(costs, self.columns | self.context_columns)
        worth = (
            Measurement(name, gain, None, gain, prices.get(name, 0.0))
            for name, gain in gains.items()
        )
        return tuple(sorted(worth, key=lambda each: -each.net))

    # Learning

    def learn(
        self,
        decision: Decision | str | Sequence[Decision | str],
        reward: float | Sequence[float] | Mapping[Any, float],
        *,
        final: bool = True,
        key: str | None = None,
    ) -> None:
        """Learn the reward of a decision, or rewards of many; late, in any order, each once.

        The same reward again is accepted and changes nothing, so a call may be repeated. A reward
        of a decision that has expired is kept in the log and counted as late.

        Parameters
        ----------
        decision : Decision or str, or a list or column of them
            What `choose` returned, or its id.
        reward : float, or a list or column of as many, or a dict
            A dict has rewards by item, for a decision with several places; a number is for the
            first one.
        final : bool
            False for a part of the reward, such as a click before a purchase: parts add up until
            the final one, or until the decision expires.
        key : str, optional
            Names a part, which counts once.

        Raises
        ------
        InvalidRewardError
            A reward is not a finite number.
        UnknownDecisionError
            `AlreadyRewardedError` if another reward came before, `ForgottenDecisionError` if the
            agent no longer waits for it, `UnknownDecisionError` itself if this agent does not know
            it.
        StorageError
            The database cannot be used.
        """
        checks.boolean("final", final)
        if not final and key is None:
            raise InvalidInputError(
                "a reward that is not final needs a key=…, such as 'click': by it a part that is "
                "sent twice counts once"
            )
        part = "" if key is None else _checked_key("key", key)
        given = decision if isinstance(decision, Decision | str) else listed(decision)
        if not isinstance(given, list | tuple):
            rewards = [(_id_of(given), item, value) for item, value in _by_item(reward)]
        else:
            ids = [_id_of(each) for each in given]
            values = checked_rewards(reward, len(ids))
            if len(set(ids)) < len(ids):
                twice = Counter(ids).most_common(1)[0][0]
                raise InvalidInputError(f"decision {twice} is there twice: a reward counts once")
            rewards = [(id, None, value) for id, value in zip(ids, values, strict=True)]
        with self._lock:
            self._catch_up()
            self._learn(rewards, part, final)

    def _learn(
        self, rewards: Sequence[tuple[str, Item | None, float]], key: str, final: bool
    ) -> None:
        """Append and apply those rewards that are new."""
        new = [
            [id, place, key, value, final]
            for id, item, value in rewards
            for place, is_new in [self._placed(id, item, key, value, final)]
            if is_new
        ]
        if not new:
            return
        try:
            self._record([Event(LEARN, {"rewards": new})])
        except Taken:  # another process was faster
            self._catch_up()
            self._learn(rewards, key, final)

    def _placed(
        self, id: str, item: Item | None, key: str, value: float, final: bool
    ) -> tuple[int, bool]:
        """Return the place to which a reward belongs, and whether it is new."""
        waiting, gone = self._ledger.get(id), self._ledger.gone(id)
        if waiting is not None:
            items = tuple(place.item for place in waiting.places)
        elif gone is not None:
            items = gone.items
        else:
            found = None if self._storage is None else self._storage.decision(id)
            if found is None:
                raise UnknownDecisionError(
                    f"decision {id} is not known here: another agent made it, or it was closed "
                    "long ago"
                )
            items = tuple(found[0].body["items"])
        if item is not None and item not in items:
            raise InvalidInputError(
                f"decision {id} has no place for {item!r}, it chose {list(items)}: reward these"
            )
        place = 0 if item is None else items.index(item)
        known = waiting or gone
        if self._storage is not None and (known is None or (place, key) not in known.given):
            before = self._storage.reward(id, place, key)  # one that was late
            if before is not None and before != value:
                raise AlreadyRewardedError(
                    f"decision {id} was rewarded before, with {before}, got {value}: drop this one"
                )
            if before is not None:
                return place, False
        return place, known is None or not is_repeated(id, known, place, key, value)

    def expire(self, *, before: datetime.timedelta, reward: float | None = 0.0) -> int:
        """Close decisions whose reward never came; return their number.

        An agent with `expire_after` does it by itself. A place that has parts of a reward gets
        their sum.

        Parameters
        ----------
        before : timedelta
            Decisions made longer ago than this.
        reward : float, optional
            What is learned for each of them; None closes them without learning.
        """
        if not isinstance(before, datetime.timedelta):
            raise InvalidInputError(f"before must be a timedelta, got {before!r}")
        value = None if reward is None else checked_reward(reward)
        with self._lock:
            self._catch_up()
            now = time.time() if self._storage is None else self._storage.now()
            return self._expire(now - before.total_seconds(), value)

    def _expire(self, latest: float, reward: float | None) -> int:
        """Close all decisions that were made before a time."""
        n_closed = 0
        while ids := self._made_before(latest):
            rewards = [
                [id, at, EXPIRED, reward if place.total is None else place.total, True]
                for id in ids
                for at, place in enumerate(self._waiting(id).places)
                if place.is_open
            ]
            event = Event(EXPIRE, {"ids": ids, "reward": reward, "rewards": rewards})
            try:
                self._record([event], exactly=True)
                n_closed += len(ids)
            except Stale:
                self._catch_up()
        return n_closed

    def _waiting(self, id: str) -> Waiting:
        found = self._ledger.get(id)
        assert found is not None
        return found

    def _made_before(self, latest: float) -> list[str]:
        """Return the oldest decisions that were made before a time, some hundred at most."""
        found = []
        for id, each in self._ledger:
            if each.time < latest:
                found.append(id)
            if len(found) == _EXPIRED_AT_ONCE:
                break
        return found

    def observe(
        self, table: Any, rewards: Any, *, context: Any = None, key: str | None = None
    ) -> None:
        """Learn from a log of options that somebody else chose: one row and one reward for each.

        It does not matter in which parts a log comes. `context` is a table with a row for each row
        of the log. With a database, a log with a `key` is learned once: the same again changes
        nothing, another one with the key is refused.
        """
        reader = replace(self._reader, unique=False)
        rows, contexts = reader.read(table), None
        values = checked_rewards(rewards, len(rows.items))
        if context is not None:
            contexts = reader.read_contexts(context)
            if len(contexts.items) != len(values):
                raise InvalidTableError(
                    f"the context of a log must have a row for each of its {len(values)} rows, got "
                    f"{len(contexts.items)}"
                )
        if key is not None and self._storage is None:
            raise InvalidInputError("a log has a key in a database only: leave it out, or open one")
        with self._lock:
            self._catch_up()
            asked = Asked(rows, contexts)
            whole = Event(OBSERVE, {"rewards": values}, asked)
            ready = self._encoded(asked, log=True)  # refuses what cannot be read
            if self._storage is None:
                self._record([whole], ready)
                return
            events = list(_parts(whole))
            if key is not None:
                request = whole._replace(asked=asked.canonical()).request()
                events[0].body.update(key=_checked_key("key", key), whole=request.hex())
            try:
                self._record(events)
            except Taken:
                if self._storage.log_request(events[0].body["key"]) != request:
                    raise InvalidInputError(
                        f"another log was observed with the key {key!r}: give each log its own"
                    ) from None

    # What it knows

    @property
    def pending(self) -> tuple[Pending, ...]:
        """The decisions that wait for their reward, the oldest first."""
        with self._lock:
            self._catch_up()
            return tuple(
                Pending(
                    id,
                    each.places[0].item,
                    datetime.datetime.fromtimestamp(each.time, datetime.UTC),
                )
                for id, each in self._ledger
            )

    @property
    def columns(self) -> dict[str, Column]:
        """What became of each column, by name."""
        known = {} if self.id is None else {self.id: Column(self.id, "id")}
        known |= {name: Column(name, "ignored") for name in self.ignore}
        return known | self._options.counted(self._policy._implausible()[0])

    @property
    def context_columns(self) -> dict[str, Column]:
        """What became of each column of the context, by name."""
        return self._context.counted(self._policy._implausible()[1])

    def health(self) -> dict[str, Any]:
        """Return what a dashboard shows, as plain JSON types.

        Rewards and shares of seen entries are given `lately`, over the latest 500 to 1000 rewards
        or decisions, and `before` that. `lift` is the mean reward minus that of a uniform choice,
        from decisions in which every option could be chosen, with its interval of 95 %.
        """
        with self._lock:
            storage, last = self._storage, self._last
            behind = 0 if storage is None else storage.last() - last
            self._catch_up()
            policy = self._policy
            starts = policy._diagnostics().get("epoch_starts")
            oldest = next((each.time for _, each in self._ledger), None)
            return {
                "decisions": self._n_decisions,
                "pending": len(self._ledger),
                "forgotten": self._n_forgotten,
                "late": self._n_late,
                "rewards": {name: mean_of(self._rewards, name) for name in ("lately", "before")},
                "lift": self._lift.shown(),
                "seen": shares(self._seen, self._options),
                "context_seen": shares(self._context_seen, self._context),
                "features": self._options.width,
                "context_features": self._context.width,
                "rank": policy.current_rank if policy.dim is not None else None,
                "refits": None if starts is None else len(starts),
                "epochs": epochs_of(policy),
                "refit_seconds": [each.seconds for each in self._refits],
                "oldest_pending": None if oldest is None else max(0.0, time.time() - oldest),
                "warnings": self._warnings(),
                "events": self._last,
                "behind": behind,
                "storage_bytes": None if storage is None else storage.database.size(),
            }

    # Files and databases

    def save(self, path: Path) -> None:
        """Write the agent to a file, with names, levels and decisions that wait."""
        with self._lock:
            self._catch_up()
            archive.write(path, self.to_dict())

    @classmethod
    def load(cls, path: Path) -> Self:
        """Return a saved agent, which continues as the original would, without a database.

        Raises
        ------
        ArchiveError
            The file is damaged, not a saved agent, or from a newer version.
        """
        plain = archive.read(path)
        if "agent" not in plain:
            raise ArchiveError(f"{path} is no agent: halfseen.load reads a saved policy")
        return _built(cls.from_dict, plain, str(path))

    @classmethod
    def open(
        cls, url: Path, name: str = "default", durability: str = "power-loss", **settings: Any
    ) -> Self:
        """Start or continue an agent in a database, which other processes may use as well.

        Nothing that a call has returned for is lost, and no reward is learned twice.

        Parameters
        ----------
        url : str or path
            A file, for SQLite, or "postgresql://…". The file must not be on a network drive.
        name : str
            Of the agent: several may share a database.
        durability : "power-loss" or "crash"
            What a change must survive before a call returns, in SQLite. "crash" is faster: a
            process may be killed, but a machine that loses power may lose the last changes.
        **settings
            Of a new agent; those of an agent that continues must be the same.

        Raises
        ------
        StorageError
            The database cannot be used, or is something else; the message says why.
        """
        storage = Storage(opened(url, durability), _checked_key("name", name))
        agent = cls(**settings)
        if not storage.find():
            plain = agent.settings()
            storage.create(
                secrets.token_hex(8), json.dumps(plain), archive.to_bytes(agent.to_dict())
            )
        agent = _built(cls.from_dict, archive.from_bytes(storage.checkpoint().state), storage.place)
        agent._check_settings(settings)
        agent._storage = storage
        agent._continue_from(storage)
        agent._saved = agent._last
        agent._catch_up()
        return agent

    def close(self) -> None:
        """Save a checkpoint, if much has happened since the last one, and close the database."""
        if self._storage is not None:
            with self._lock:
                if self._last - self._saved > _SAVED_EVERY // 20:
                    self._save_checkpoint()
                self._storage.database.close()
                self._failure = "the agent is closed: open it anew"

    def log(self, *, backend: str = "pandas", chunk: int | None = None) -> Any:
        """Return decisions and rewards in the database as a frame; see `halfseen.read_log`."""
        return frames_of(self._stored("a log"), backend, chunk)

    def prune(self, *, keep: datetime.timedelta) -> int:
        """Delete events older than a time from the database; return their number.

        Events after the oldest checkpoint stay, and so does what waits. Ids and keys of what is
        deleted may be used again. Nothing else deletes events.
        """
        if not isinstance(keep, datetime.timedelta) or keep < datetime.timedelta(0):
            raise InvalidInputError(f"keep must be a timedelta of at least 0, got {keep!r}")
        storage = self._stored("old events")
        with self._lock:
            self._catch_up()
            if self._last > self._saved:
                self._save_checkpoint()
            waiting = {id for id, _ in self._ledger}
        return storage.prune(keep.total_seconds(), waiting)

    def _stored(self, what: str) -> Storage:
        if self._storage is None:
            raise InvalidInputError(f"only an agent in a database has {what}: use Agent.open")
        return self._storage

    def _check_settings(self, given: Mapping[str, Any]) -> None:
        """Raise an error if settings for a new agent differ from those of this one."""
        wanted, ours = type(self)(**given).settings(), self.settings()
        for name in given:
            mine, theirs = ours[name], wanted[name]
            if name == "policy" and theirs is not None:
                for dim in mine["settings"].keys() & {"dim", "context_dim"}:
                    theirs["settings"][dim] = mine["settings"][dim]  # it may have grown
            if mine != theirs and (name, theirs) != ("policy", None):
                raise InvalidSettingError(
                    f"is {mine!r} in the database, got {theirs!r}: leave it out, or give the agent "
                    "another name=…",
                    name=name,
                )

    # How a call changes the agent: append events, then apply them

    def _record(
        self, events: Sequence[Event], ready: Ready | None = None, *, exactly: bool = False
    ) -> None:
        """Append events, all or none, and apply them after those that others have appended."""
        storage = self._storage
        if storage is None:
            first, now = self._last + 1, time.time()
        else:
            first, now = storage.append(events, self._last, exactly=exactly)
            if first > self._last + 1:
                ready = None  # it was made from an earlier state
                self._catch_up(first - 1)
        for number, event in enumerate(events, first):
            self._apply_or_stop(event._replace(number=number, time=now), ready)

    def _catch_up(self, until: int | None = None) -> None:
        """Apply what other processes have appended."""
        if self._failure is not None:
            raise StorageError(self._failure)
        if self._storage is not None:
            for event in self._storage.after(self._last, until):
                self._apply_or_stop(event)

    def _apply_or_stop(self, event: Event, ready: Ready | None = None) -> None:
        """Apply an event; with a database, one that cannot be applied stops this agent."""
        if event.number <= self._last:  # a refit has led to a later checkpoint
            return
        try:
            self.apply(event, ready)
        except Exception as error:
            if self._storage is None or isinstance(error, StorageError):
                raise
            self._failure = (
                f"event {event.number} of {self._storage.place} cannot be applied, so this process "
                f"stops: {type(error).__name__}: {error}"
            )
            raise StorageError(self._failure) from error

    # What one process does for all

    def tick(self) -> None:
        """Expire, refit and save what is due, unless another process does: for a worker.

        `choose` does it as well; a worker that calls this every second spares it the time.
        """
        with self._lock:
            self._catch_up()
            self._expire_if_due()
        self.refit_if_due()
        with self._lock:
            self._save_if_due()

    def _tend(self) -> None:
        """Catch up, and do what is due and no worker has done."""
        self._catch_up()
        self._expire_if_due()
        if self._storage is None:
            return
        if self._policy._is_refit_due and time.monotonic() >= self._next_try:
            if getattr(self._policy, "refit", "") == "background" and self._refits:
                self._refit_beside()
            else:
                self.refit_if_due()
        self._save_if_due()

    def _expire_if_due(self) -> None:
        """Close decisions that have waited too long."""
        if self.expire_after is None or not len(self._ledger):
            return
        wait = self.expire_after.total_seconds()
        if self._waiting(self._ledger.oldest).time >= time.time() - wait:
            return
        with self._leased() as now:
            if now is not None:
                self._expire(now - wait, self.expire_reward)

    @contextmanager
    def _leased(self) -> Iterator[float | None]:
        """Hold the lease and give the database's time, or None if another process holds it."""
        storage = self._storage
        if storage is None:
            yield time.time()
            return
        now = storage.lease(self._owner, LEASE) if time.monotonic() >= self._next_try else None
        if now is None:
            self._next_try = max(self._next_try, time.monotonic() + _PAUSE)
            yield None
            return
        try:
            yield now
        finally:
            storage.release(self._owner)

    def refit_if_due(self) -> bool:
        """Fit the policy's models anew if they are due, for all processes; return whether it did.

        The state is that of some event. Other events may come while models are fitted: at the event
        of the refit, every process continues from the new state and applies them again.
        """
        with self._lock:
            self._catch_up()
            if self._storage is None or not self._policy._is_refit_due:
                return False
        with self._leased() as now:
            if now is None:
                return False
            with self._lock:
                policy, plain, covers = deepcopy(self._policy), self.to_dict(), self._last
            try:
                return self._refit(policy, plain, covers)
            except HalfseenError:
                raise
            except Exception:
                self._refit_failed()
                return False

    def _refit(self, policy: Policy, plain: dict[str, Any], covers: int) -> bool:
        """Fit a policy, whose agent was plain after an event; return whether all continue so."""
        started = time.perf_counter()
        policy._refit()
        plain["state"]["policy"] = policy_to_dict(policy)
        event = Event(REFIT, {"seconds": time.perf_counter() - started, "covers": covers})
        content = archive.to_bytes(plain)
        with self._lock:
            assert self._storage is not None
            try:
                self._storage.append([event], covers, owner=self._owner, checkpoint=content)
            except Stale:
                return False
            self._catch_up()
            self._saved = self._last
        return True

    def _refit_beside(self) -> None:
        """Let a thread refit, unless one does."""
        if self._worker is None or not self._worker.is_alive():
            self._worker = threading.Thread(target=self._refit_quietly, daemon=True)
            try:
                self._worker.start()
            except RuntimeError:  # there are too many threads
                self._refit_failed()

    def _refit_quietly(self) -> None:
        try:
            self.refit_if_due()
        except BaseException:  # nobody is there to catch it
            self._refit_failed()

    def _refit_failed(self) -> None:
        """Count and log the exception that is being handled, and try again later."""
        self._n_failed_refits += 1
        logger.exception("a refit failed, %d so far: the epoch goes on", self._n_failed_refits)
        self._next_try = time.monotonic() + _AFTER_FAILURE

    def _save_if_due(self) -> None:
        if self._storage is not None and self._last - self._saved >= _SAVED_EVERY:
            self._save_checkpoint()

    def _save_checkpoint(self) -> None:
        """Save the state, from which other processes start faster."""
        assert self._storage is not None
        state = archive.to_bytes(self.to_dict())
        self._storage.save(Checkpoint(self._last, self._last, state))
        self._saved = self._last

    # From tables to rows

    def _asked(self, options: Any, context: Any) -> Asked:
        """Read options and a context; an empty dict is none."""
        asked = Asked(self._reader.read(options))
        if context is not None and not (isinstance(context, Mapping) and not context):
            if not self._policy._can("_grow_context"):
                self._policy._grow_context(1, {})  # says so
            asked = Asked(asked.rows, self._reader.read_row(context))
        return asked if self._storage is None else asked.canonical()


def load(path: Path) -> Any:
    """Return whatever was saved, a policy or an agent, which continues as the original would.

    Bit for bit: every later decision is the same.

    Raises
    ------
    ArchiveError
        The file is damaged, truncated, not from halfseen, or from a newer version.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from halfseen import AmbientOful
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     AmbientOful(dim=3).save(pathlib.Path(folder) / "policy")
    ...     load(pathlib.Path(folder) / "policy")
    AmbientOful(dim=3)
    """
    plain = archive.read(path)
    is_agent = "agent" in plain
    return _built(Agent.from_dict if is_agent else policy_from_dict, plain, str(path))


def _built(build: Callable[[dict[str, Any]], T], plain: dict[str, Any], name: str) -> T:
    try:
        return build(plain)
    except ArchiveError:
        raise
    except Exception as error:  # an invalid state can raise anything
        raise ArchiveError(f"{name} does not describe a policy or an agent: {error}") from None


def _parts(whole: Event) -> Iterator[Event]:
    """Yield a log in parts that are not too large for an event."""
    asked = whole.asked
    assert asked is not None
    for start in range(0, len(whole.rewards), _LOG_ROWS):
        some = slice(start, start + _LOG_ROWS)
        context = None if asked.context is None else asked.context.some(some)
        part = Asked(asked.rows.some(some), context).canonical()
        yield Event(OBSERVE, {"rewards": whole.rewards[some]}, part)


def _probability(made: Choice) -> float:
    return 1.0 if made.probabilities is None else float(made.probabilities[made.arm])


def _weight(made: Choice, n_options: int) -> float | None:
    """Return the uniform probability of the chosen item over the true one, if all were possible."""
    law: FloatArray | None = made.probabilities
    if law is None or law.min() == 0.0:
        return None
    return 1.0 / (n_options * float(law[made.arm]))


def _by_item(reward: Any) -> list[tuple[Item | None, float]]:
    """Return rewards by item; None is the first place."""
    if not isinstance(reward, Mapping):
        return [(None, checked_reward(reward))]
    if not reward:
        raise InvalidInputError("rewards by item must have at least one item, got none")
    return [(item, checked_reward(value, f" for {item!r}")) for item, value in reward.items()]


def _checked_key(name: str, value: Any) -> str:
    """Return an id or a key that every database can hold."""
    text = checks.text(name, value)
    if len(text) > 200 or not text.isprintable():
        raise InvalidInputError(
            f"{name} must be printable and at most 200 characters long, got {text[:40]!r}"
        )
    return text


def _id_of(decision: Any) -> str:
    id = decision.id if isinstance(decision, Decision) else decision
    if not isinstance(id, str):
        raise UnknownDecisionError(
            "learn needs what choose returned, its id, or a list or column of them, got "
            f"{type(id).__name__} {id!r:.40}: pass decision or decision.id, not an item or a "
            "position"
        )
    return id
