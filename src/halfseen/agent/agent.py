"""The agent: tables in, items out, rewards by id.

A choice, step by step: `Agent.choose` reads the options (`frames`), catches up with other processes
and decides on a fork of the policy; `Replica._record` appends the event to the database
(`Storage.append`) and lets `apply` change the state. `Agent.learn` finds the places of the
rewards, and does the same with its event. Without a database only `apply` is left.
"""

import datetime
import os
import secrets
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from halfseen import archive, checks
from halfseen.agent import clock
from halfseen.agent.database import opened
from halfseen.agent.deadline import Deadline
from halfseen.agent.events import CHOOSE, LEARN, OBSERVE, Asked, Event
from halfseen.agent.explanation import Explanation, Measurement, checked_costs
from halfseen.agent.health import epochs_of, mean_of, shares
from halfseen.agent.ledger import Pending, check_open
from halfseen.agent.logs import frames_of
from halfseen.agent.replica import Ready, Replica
from halfseen.agent.storage import SCHEMA, TABLES, Storage, Taken
from halfseen.errors import (
    AlreadyRewardedError,
    ArchiveError,
    InvalidInputError,
    InvalidSettingError,
    InvalidTableError,
    ReusedIdError,
    StorageError,
    UnknownDecisionError,
)
from halfseen.frames import Column
from halfseen.frames.parts import Parts, logs_of, parts_of
from halfseen.policies.abilities import Exploits, Reports, UsesContext
from halfseen.policies.registry import policy_from_dict
from halfseen.values import Choice, Decision, FloatArray, Item, Note, Scores
from halfseen.values.decision import checked_reward, checked_rewards, listed

S = TypeVar("S")
T = TypeVar("T")
Path = str | os.PathLike[str]


class Scored(NamedTuple):
    """Estimate and width of an option, and the share of the known columns that it shows.

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
    Columns are matched by name, in any order, and values may be missing. Numbers are features,
    strings are categories; new columns and levels are added.

    `Agent()` keeps its state in memory. `Agent.open("shop.db")` keeps it in a database, which many
    processes can share: once a call has returned, a crash does not lose its effect.

    All methods are thread-safe, and memory is bounded. After an exception the agent is unchanged
    or, if the database already has the change, in the state of the database.

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

    def __reduce__(self) -> tuple[Any, ...]:
        """Let `copy` and `pickle` make a separate agent; one in a database is opened again."""
        if self.storage is not None:
            raise TypeError(
                "an agent in a database cannot be copied or pickled: use Agent.open again, or save "
                "it to a file"
            )
        with self._lock:
            return self.from_dict, (self.to_dict(),)

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
        """Choose one of the options, or the top `k`.

        Parameters
        ----------
        options : table, or list of ids
            One row per option. Ids alone are enough for a policy that learns item effects.
        context : row, optional
            A row that all options share, such as the visitor: a dict, a series, an array, or a
            table of one row. Its columns are separate from the columns of the options.
        k : int
            Number of items to choose, `decision.chosen`; each gets its own reward.
        id : str, optional
            Id of the decision; by default a random one. With a database, the same id with the same
            request returns the same decision.
        explore : bool
            False: choose the option with the largest estimate, for this request only.

        Raises
        ------
        InvalidTableError
            Names the column or the row, the value got, and the remedy.
        InvalidInputError
            The policy cannot use a context, or cannot choose without exploring, or the id belongs
            to another request (`ReusedIdError`).
        StorageError
            The database cannot be used. If it fails while it stores the decision, the message has
            the decision's id: choosing again with this id returns the decision, or makes it.
        """
        return self.choose_until(Deadline(), options, context, k, id, explore)

    def choose_until(
        self, deadline: Deadline, options: Any, context: Any, k: int, id: str | None, explore: bool
    ) -> Decision:
        """Choose as `choose` does, or raise `Late` at a deadline without having decided.

        For servers, whose clients do not wait longer.
        """
        checks.boolean("explore", explore)
        asked = self._asked(options, context)
        n_options = len(asked.rows.items)
        k = checks.integer("k, the number of places,", k, 1, n_options)
        name = secrets.token_hex(12) if id is None else _checked_key("id", id)
        with self._lock:
            deadline.check()
            self._catch_up()
            body: dict[str, Any] = {"id": name, "arms": [0] * k, "explore": explore}
            event = Event(CHOOSE, body, asked)
            if id is not None and (known := self._decided_before(event)) is not None:
                return known
            ready, before = self._encoded(asked), self._last
            self._tend()  # only now: a request that is refused changes nothing
            if self._last > before:
                ready = self._encoded(asked)
            ready.policy.prepare(ready.slate)
            alone = self.storage is None and id is None
            drawn = str(ready.policy.round + 1) if alone else name
            choices, arms = decided(ready, drawn, k, explore)
            first = choices[0]
            body |= {
                "arms": arms,
                "items": [asked.rows.items[arm] for arm in arms],
                "probabilities": [_probability(each) for each in choices],
                "weight": _weight(first, n_options),
                "based_on": self._last,
            }
            event = event._replace(law=first.probabilities)
            try:
                self._record(event, ready, deadline=deadline)
            except Taken:  # another process was faster
                return self.choose_until(deadline, options, context, k, id, explore)
            except StorageError as error:
                if deadline.is_committed:
                    raise _unknown(name, error) from error
                raise
            return self._decision(event, ready, first.parts)

    def _decision(self, event: Event, ready: Ready, parts: FloatArray) -> Decision:
        """Return a decision; if it no longer waits, with a note that looks like its own."""
        id, arms, asked, slate = event.body["id"], event.body["arms"], event.asked, ready.slate
        assert asked is not None
        waiting = self._ledger.waiting.get(id)
        note = Note(1, -1, slate.table[arms[0]].copy(), slate.context)
        return Decision(
            type(ready.policy).__name__,
            arms[0],
            note if waiting is None else waiting.places[0].note,
            parts,
            event.law,
            id=id,
            items=asked.rows.items,
            request=asked,
            places=list(zip(arms, event.body["probabilities"], strict=True))[1:],
        )

    def _decided_before(self, event: Event) -> Decision | None:
        """Return the decision with the id of an event; an error if it was asked otherwise.

        Its scores are those of today: a database has probabilities, but no scores.
        """
        id, asked = event.body["id"], event.asked
        assert asked is not None
        found = None if self.storage is None else self.storage.decision(id)
        if found is None and id not in self._ledger.waiting and id not in self._ledger.gone:
            return None
        if found is None or found[1] != event.request():
            why = "for another request" if found else "and only a database can return it again"
            raise ReusedIdError(
                f"decision {id} was made before, {why}: give each request its own id"
            )
        ready = self._encoded(asked, lenient=True)
        parts = ready.policy.appraise(ready.slate)
        return self._decision(found[0]._replace(asked=asked), ready, parts)

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
        """Explain the score of an option, and say which missing column is worth measuring.

        Uses the current model: if it has learned since the decision, `is_current` is False.

        Parameters
        ----------
        decision : Decision, str or table
            What `choose` returned, its id if the agent has a database, or options.
        context : row, optional
            The context of the options; a decision has its own.
        item : str or int, optional
            The option; by default the chosen one, or the one with the best score.
        costs : mapping, optional
            What it costs to measure each column, in units of the reward; columns not listed are
            free. A name that options and context share has one cost.

        Raises
        ------
        InvalidInputError
            The policy cannot explain its scores, or an item or a column is not known.
        """
        asked, made, chosen = None, None, None
        if isinstance(decision, Decision):
            asked, chosen = decision.request, decision.item
            made = Scores(decision.estimates, decision.widths)
        elif isinstance(decision, str):
            self._check_usable()
            found = None if self.storage is None else self.storage.decision(decision)
            if found is None:
                raise UnknownDecisionError(
                    f"decision {decision!r:.80} is not in a database of this agent: pass what "
                    "choose returned, or options"
                )
            asked, chosen = found[0].asked, found[0].body["items"][0]
        item = chosen if item is None else item
        asked = self._asked(decision, context) if asked is None else asked
        with self._lock:
            self._catch_up()
            prices = checked_costs(costs, self.columns | self.context_columns)
            ready = self._encoded(asked, lenient=chosen is not None)  # it was accepted then
            return Explanation.of(ready, asked.rows.items, item=item, costs=prices, made=made)

    def worth_measuring(
        self, log: Any, *, costs: Mapping[str, float] | None = None
    ) -> tuple[Measurement, ...]:
        """Return the mean value per decision of measuring each column wherever it is missing.

        Averages `explain(decision).measurements` over a log, with the current model, and sorts by
        gain minus cost, largest first. Takes as long as explaining every decision.

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
        gains: dict[str, float] = defaultdict(float)
        prices: dict[str, float] = {}
        for decision in decisions:
            for each in self.explain(decision, costs=costs).measurements:
                gains[each.column] += each.gain / len(decisions)
                prices[each.column] = each.cost
        worth = (Measurement(name, gain, None, gain, prices[name]) for name, gain in gains.items())
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
        """Learn the rewards of one or more decisions, which may arrive late and in any order.

        Sending the same reward again changes nothing, so a call can be retried. A reward for a
        decision that has expired is kept in the log and counted as late.

        Parameters
        ----------
        decision : Decision or str, or a list or column of them
            What `choose` returned, or its id.
        reward : float, or a list or column of floats, or a dict
            A dict maps items to rewards, for a decision with several places. A number is the reward
            of the first place.
        final : bool
            False if more parts of the reward may follow, such as a purchase after a click. Parts
            add up until the final one, or until the decision expires.
        key : str, optional
            Name of a part. Each part counts once.

        Raises
        ------
        InvalidRewardError
            A reward is not a finite number.
        UnknownDecisionError
            `AlreadyRewardedError` if it has a different reward, `ForgottenDecisionError` if it was
            dropped because more than `max_pending` were pending, `UnknownDecisionError` itself if
            the agent does not know the id.
        StorageError
            The database cannot be used.
        """
        checks.boolean("final", final)
        if not final and key is None:
            raise InvalidInputError(
                "a reward that is not final needs a key, such as 'click', so that a part "
                "that is sent twice counts once"
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
                raise InvalidInputError(f"decision {twice} appears twice: each reward counts once")
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
            for place, is_new in [self._placed(id, item, key, value)]
            if is_new
        ]
        if not new:
            return
        try:
            self._record(Event(LEARN, {"rewards": new}))
        except Taken:  # another process was faster
            self._catch_up()
            self._learn(rewards, key, final)

    def _placed(self, id: str, item: Item | None, key: str, value: float) -> tuple[int, bool]:
        """Return the place to which a reward belongs, and whether it is new."""
        waiting, storage = self._ledger.waiting.get(id), self.storage
        known = waiting or self._ledger.gone.get(id)
        found = storage.decision(id) if known is None and storage is not None else None
        if known is not None:
            items = known.items
        elif found is not None:
            items = tuple(found[0].body["items"])
        else:
            raise UnknownDecisionError(
                f"decision {id} is not known here: another agent made it, or it was closed long ago"
            )
        if item is not None and item not in items:
            raise InvalidInputError(
                f"decision {id} has no place for {item!r}, it chose {list(items)}: reward these"
            )
        place = 0 if item is None else items.index(item)
        before = None if known is None else known.given.get((place, key))
        if before is None and waiting is None and storage is not None:
            before = storage.reward(id, place, key)  # one that was late
        if before is None:
            if known is not None:
                check_open(id, known, place)
            return place, True
        if before != value:
            raise AlreadyRewardedError(
                f"decision {id} was rewarded before, with {before}, got {value}: each reward "
                "counts once, so drop this one, or give further parts their own key"
            )
        return place, False

    def expire(self, *, before: datetime.timedelta, reward: float | None = 0.0) -> int:
        """Close decisions whose reward never arrived; return their number.

        An agent with `expire_after` does this automatically. A place that has parts of a reward
        gets their sum instead of `reward`.

        Parameters
        ----------
        before : timedelta
            Decisions that are at least this old.
        reward : float, optional
            What is learned for each of them; None closes them without learning.
        """
        if not isinstance(before, datetime.timedelta):
            raise InvalidInputError(f"before must be a timedelta, got {before!r}")
        value = None if reward is None else checked_reward(reward)
        with self._lock:
            self._catch_up()
            return self._expire(self._now() - before.total_seconds(), value)

    def observe(
        self, table: Any, rewards: Any, *, context: Any = None, key: str | None = None
    ) -> None:
        """Learn from a log of choices made elsewhere, with one row and one reward per choice.

        A log may come in several batches. `context` is a table with a row for each row of the log.
        With a database, a log with a `key` is learned once: sending it again changes nothing, and
        a different log with the same key is refused.

        Parquet files, folders of them, and frames of Dask may be larger than memory: then `rewards`
        and `context` are names of columns. Each part is a log of its own.
        """
        if key is not None and self.storage is None:
            raise InvalidInputError("key= needs a database: leave it out, or use Agent.open")
        if (parts := parts_of(table)) is not None:
            self._observe_parts(parts, rewards, context, key)
            return
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
        with self._lock:
            self._catch_up()
            asked = Asked(rows, contexts).canonical()
            event = Event(OBSERVE, {"rewards": values}, asked)
            if key is not None:
                event.body["key"] = _checked_key("key", key)
            ready = self._encoded(asked, log=True)  # refuses what cannot be read
            try:
                self._record(event, ready)
            except Taken:
                assert self.storage is not None
                if self.storage.log_request(event.body["key"]) != event.request():
                    raise InvalidInputError(
                        f"another log was observed with the key {key!r}: give each log its own"
                    ) from None

    def _observe_parts(self, parts: Parts, reward: str, context: Any, key: str | None) -> None:
        """Learn from a log in parts; nothing is learned if one of them cannot be read."""
        reader, options, contexts = (
            replace(self._reader, unique=False),
            self._options,
            self._context,
        )
        for table, rewards, about in logs_of(parts, reward, context):
            rows = reader.read(table)
            checked_rewards(rewards, len(rows.items))
            options = options.grown(rows)
            if about is not None:
                contexts = contexts.grown(reader.read_contexts(about))
        for number, (table, rewards, about) in enumerate(logs_of(parts, reward, context)):
            part = None if key is None else f"{key}, part {number}"
            self.observe(table, rewards, context=about, key=part)

    # What it knows

    @property
    def pending(self) -> tuple[Pending, ...]:
        """Decisions without a reward yet, the oldest first."""
        with self._lock:
            self._catch_up()
            return tuple(
                Pending(
                    id,
                    each.places[0].item,
                    datetime.datetime.fromtimestamp(each.time, datetime.UTC),
                )
                for id, each in self._ledger.waiting.items()
            )

    @property
    def columns(self) -> dict[str, Column]:
        """How each column is used, by name."""
        known = {} if self.id is None else {self.id: Column(self.id, "id")}
        known |= {name: Column(name, "ignored") for name in self.ignore}
        return known | self._options.counted(Reports.of(self._policy).implausible()[0])

    @property
    def context_columns(self) -> dict[str, Column]:
        """How each context column is used, by name."""
        return self._context.counted(Reports.of(self._policy).implausible()[1])

    def health(self) -> dict[str, Any]:
        """Return figures for monitoring, as plain JSON types.

        `lately` covers the latest 500 to 1000 rewards or decisions, `before` all earlier ones.
        `lift` is the mean reward minus that of a uniform choice, with a 95 % interval, from
        decisions in which no option had probability 0.
        """
        with self._lock:
            self._check_usable()
            storage, last = self.storage, self._last
            behind = 0 if storage is None else storage.last() - last
            self._catch_up()
            policy = self._policy
            starts = Reports.of(policy).diagnostics().get("epoch_starts")
            oldest = self._ledger.oldest
            return {
                "decisions": self._n_decisions,
                "pending": len(self._ledger.waiting),
                "forgotten": self._n_forgotten,
                "late": self._n_late,
                "rewards": mean_of(self._rewards),
                "lift": self._lift.shown(),
                "seen": shares(self._seen, self._options),
                "context_seen": shares(self._context_seen, self._context),
                "features": self._options.width,
                "context_features": self._context.width,
                "rank": policy.current_rank if policy.dim is not None else None,
                "refits": None if starts is None else len(starts),
                "epochs": epochs_of(policy),
                "refit_seconds": list(self._refit_seconds),
                "oldest_pending": None
                if oldest is None
                else max(0.0, clock.now() - oldest[1].time),
                "warnings": self._warnings(),
                "events": self._last,
                "behind": behind,
                "storage_bytes": None if storage is None else storage.database.size(),
            }

    # Files and databases

    def save(self, path: Path) -> None:
        """Write the agent to a file, with columns, levels and pending decisions."""
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
            raise ArchiveError(f"{path} is not an agent: halfseen.load reads a saved policy")
        return _built(cls.from_dict, plain, str(path))

    @classmethod
    def open(
        cls, url: Path, name: str = "default", durability: str = "power-loss", **settings: Any
    ) -> Self:
        """Start or continue an agent in a database, which other processes may use as well.

        Once a call has returned, a crash does not lose its effect, and no reward is learned twice.

        Parameters
        ----------
        url : str or path
            A file, for SQLite, or "postgresql://…". The file must not be on a network drive.
        name : str
            Name of the agent: several may share a database.
        durability : "power-loss" or "crash"
            What a change survives once a call has returned, in SQLite. "crash" is faster: changes
            survive a killed process, but the last ones may be lost in a power failure.
        **settings
            Settings of a new agent; for an existing one they must be the same.

        Raises
        ------
        StorageError
            The database cannot be used, or is not a halfseen database; the message says why.
        """
        storage = Storage(opened(url, durability), _checked_key("name", name))
        storage.database.make(TABLES, SCHEMA)
        fresh = cls(**settings)
        if not storage.find():
            storage.create(archive.to_bytes(fresh.to_dict()))
        agent = _built(cls.at_checkpoint, storage, storage.place)
        agent._check_settings(settings, fresh)
        agent._saved = agent._last
        agent._catch_up()
        return agent

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database, after a checkpoint if there are many events since the last one.

        A refit that is under way is not waited for, and has no effect.
        """
        if self.storage is None:
            return
        with self._lock:
            self._failure, self._is_closed = "the agent is closed: open it anew", True
            try:
                self._save_if_due(1000)
            finally:
                self._end_lease()
                self.storage.database.close()

    def log(self, *, backend: str = "pandas", chunk: int | None = None) -> Any:
        """Return decisions and rewards in the database as a frame; see `halfseen.read_log`."""
        return frames_of(self._stored("a log"), backend, chunk)

    def prune(self, *, keep: datetime.timedelta) -> int:
        """Delete events older than `keep` from the database; return their number.

        Events after the oldest checkpoint and pending decisions are kept. Deleted ids and keys can
        be used again. Nothing else deletes events.
        """
        if not isinstance(keep, datetime.timedelta) or keep < datetime.timedelta(0):
            raise InvalidInputError(f"keep must be a timedelta of at least 0, got {keep!r}")
        storage = self._stored("old events")
        with self._lock:
            self._catch_up()
            if self._last > self._saved:
                self._save_checkpoint()
            waiting = set(self._ledger.waiting)
        return storage.prune(keep.total_seconds(), waiting)

    def _stored(self, what: str) -> Storage:
        if self.storage is None:
            raise InvalidInputError(f"only an agent in a database has {what}: use Agent.open")
        return self.storage

    def _check_settings(self, given: Mapping[str, Any], fresh: "Agent") -> None:
        """Raise an error if settings for a fresh agent differ from those of this one."""
        ours, theirs = _settings(self), _settings(fresh)
        names = [*given]
        if given.get("policy") is not None:  # what grows is not compared
            names += [*fresh._policy.settings().keys() - {"dim", "context_dim"}]
        for name in names:
            if ours.get(name) != theirs[name]:
                raise InvalidSettingError(
                    f"is {ours.get(name)!r} in the database, got {theirs[name]!r}: leave it out; "
                    "another name (name=…, or --name) starts a new agent that has learned nothing",
                    name=name,
                )

    # From tables to rows

    def _asked(self, options: Any, context: Any) -> Asked:
        """Read options and a context; an empty dict is none."""
        asked = Asked(self._reader.read(options))
        if context is not None and not (isinstance(context, Mapping) and not context):
            self._policy.able(UsesContext)
            asked = Asked(asked.rows, self._reader.read_row(context))
        return asked.canonical() if self._refits_policy else asked


def decided(ready: Ready, id: str, k: int, explore: bool) -> tuple[list[Choice], list[int]]:
    """Return the choices and the arms of all places.

    Each place is chosen among the options that are left. Random streams are keyed by the id of the
    decision, so that processes in the same round do not draw alike.
    """
    policy, slate = ready.policy, ready.slate
    rest, choices, arms = np.arange(slate.n_arms), list[Choice](), list[int]()
    for place in range(k):
        if place:
            rest = rest[rest != arms[-1]]
        offered = slate.some(rest, id=f"{id}/{place}") if place else slate.some(slice(None), id=id)
        decide = policy.decide if explore else policy.able(Exploits).exploit
        choices.append(decide(offered))
        arms.append(int(rest[choices[-1].arm]))
    return choices, arms


def load(path: Path) -> Any:
    """Return a saved policy or agent.

    It continues as the original would, bit for bit.

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


def _built(build: Callable[[S], T], source: S, name: str) -> T:
    try:
        return build(source)
    except (ArchiveError, StorageError):
        raise
    except Exception as error:  # an invalid state can raise anything
        raise ArchiveError(
            f"{name} does not describe a policy or an agent ({type(error).__name__}: {error})"
        ) from None


def _settings(agent: Agent) -> dict[str, Any]:
    """Return the settings of an agent and of its policy, which has some of them."""
    own = agent.learner.settings()
    named = {"policy": type(agent.learner).__name__, "explore": own.get("exploration")}
    return {**own, **agent.settings(), **named, "uniform_share": own.get("uniform_share")}


def _unknown(id: str, error: StorageError) -> StorageError:
    """Return an error that was raised after the database was told to store a decision."""
    return StorageError(
        f"{error.args[0]}; decision {id} may be stored: choose again with id={id!r}, which returns "
        "it if it is"
    )


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
