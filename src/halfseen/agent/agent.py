"""The front door: tables in, items out, rewards by id."""

import datetime
import os
import secrets
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple, Self

from halfseen import archive, checks
from halfseen.agent.core import Core, Scored
from halfseen.agent.decision import AgentDecision
from halfseen.agent.journal import Event, Journal, packed, sync_folder, unpacked
from halfseen.agent.settings import AgentSettings, Path
from halfseen.errors import (
    ArchiveError,
    HalfseenError,
    InvalidInputError,
    InvalidSettingError,
    JournalError,
)
from halfseen.policies.latent_ucb import LatentUcb
from halfseen.policies.refusals import checked_reward, checked_rewards, no_context
from halfseen.policies.upgrades import upgraded
from halfseen.tables import Column, Encoder, Item, Reader, Rows

# Settings of an agent that are those of its policy, by another name.
_OF_POLICY = {"explore": "exploration", "uniform_share": "uniform_share"}
_LOG_PART = 1000  # rows of a log in one event of the journal


class Pending(NamedTuple):
    """A decision that waits for its reward: its id, the chosen item, and when it was made."""

    id: str
    item: Item
    made: datetime.datetime


class Agent(AgentSettings):
    """Chooses among the rows of a table, and learns rewards by id.

    Tables are data frames (pandas, polars, pyarrow), lists of dicts, dicts of columns, or arrays.
    What is missing is hidden. Names of columns decide, not their order. Numbers are features,
    texts are categories; a column or level that was not there before enters.

    Any exception leaves the agent exactly as it was. All methods may be called from several
    threads. Memory is bounded.

    Examples
    --------
    >>> agent = Agent(id="sku")
    >>> offers = [{"sku": "a", "price": 3.0, "colour": "red"}, {"sku": "b", "price": 4.0}]
    >>> decision = agent.choose(offers)
    >>> decision.item in ("a", "b")
    True
    >>> agent.learn(decision.id, 1.0)
    >>> [str(column) for column in agent.columns.values()]
    ['sku: id', 'price: number', 'colour: category of 1 levels']
    """

    def setup(self) -> None:
        """Create the state of a fresh agent; its parameters are already set as attributes."""
        for name in ("explore", "uniform_share"):
            if self.policy is not None and getattr(self, name) is not None:
                raise InvalidSettingError(
                    "is for the agent's own policy: leave it out, or set it in the policy given, "
                    f"as LatentUcb({_OF_POLICY[name]}=…)",
                    name=name,
                )
        if both := set(self.ignore) & {*self.categorical, self.id}:
            raise InvalidSettingError(
                f"must not have columns that are used, got {sorted(both)}", name="ignore"
            )
        self._reader = Reader(self.id, frozenset(self.ignore), frozenset(self.categorical))
        encoder = Encoder(max_levels=self.max_levels, max_columns=self.max_columns)
        policy = self._fresh_policy() if self.policy is None else self.policy.copied()
        self._core = Core(policy, encoder, self.max_pending)
        self._lock = threading.RLock()
        # Makes the ids of this agent differ from those of every other, and of copies from a file.
        self._token = secrets.token_hex(6)
        self._journal: Journal | None = None
        self._n_events = 0  # in the journal, that this agent has seen
        if self.journal is not None:
            self._start_journal(Journal(self.journal))

    # Choosing and learning

    def choose(self, options: Any, *, context: Any = None, explore: bool = True) -> AgentDecision:
        """Choose one of the options.

        Parameters
        ----------
        options : table
            One row per option.
        context : optional
            A row that all options share, for policies that can use it.
        explore : bool
            False for the option with the largest estimate, in this request.

        Raises
        ------
        InvalidTableError
            Names the column or the row, the value got, and the remedy.
        """
        self._check_context(context)
        checks.boolean("explore", explore)
        rows = self._reader.read(options)
        with self._change() as events:
            core = self._core
            id, now = f"{self._token}-{core.n_decisions + 1}", time.time()
            decision, arm = core.choose(rows, id, now, explore=explore)
            if self._journal is not None:
                shown = rows if self.journal_options else rows.part(arm, arm + 1)
                event = {"event": "choose", "id": id, "time": now, "rows": shown.to_plain()}
                event |= {"probability": decision.probability}
                if self.journal_options:
                    law = decision.probabilities.tolist()
                    event |= {"arm": arm, "probabilities": law, "explore": explore}
                events.append(event)
        return decision

    def learn(
        self,
        decision: AgentDecision | str | Sequence[AgentDecision | str],
        reward: float | Sequence[float],
    ) -> None:
        """Learn the reward of a decision, or rewards of many; late, in any order, each once.

        Parameters
        ----------
        decision : AgentDecision or str, or a list of them
            What `choose` returned, or its id.
        reward : float, or as many of them

        Raises
        ------
        InvalidRewardError
            A reward is not a finite number.
        UnknownDecisionError
            `AlreadyRewardedError` if the reward came before, `ForgottenDecisionError` if the agent
            no longer waits for it, `UnknownDecisionError` itself if this agent does not know it.
        """
        if isinstance(decision, list | tuple):
            ids = [_id_of(each) for each in decision]
            pairs = list(zip(ids, checked_rewards(reward, len(ids)), strict=True))
        else:
            pairs = [(_id_of(decision), checked_reward(reward))]
        self._learn(pairs)

    def _learn(self, pairs: list[tuple[Any, float]]) -> None:
        with self._change() as events:
            self._core.learn(pairs)
            events += [{"event": "learn", "id": id, "reward": reward} for id, reward in pairs]

    @property
    def pending(self) -> tuple[Pending, ...]:
        """The decisions that wait for their reward, the oldest first."""
        with self._lock:
            return tuple(
                Pending(id, each.item, datetime.datetime.fromtimestamp(each.time, datetime.UTC))
                for id, each in self._core.waiting
            )

    def expire(
        self, *, before: datetime.datetime | datetime.timedelta, reward: float | None = 0.0
    ) -> int:
        """Close decisions whose reward never came; return their number.

        Parameters
        ----------
        before : datetime or timedelta
            Decisions made before a time (with its time zone), or longer ago than a span.
        reward : float, optional
            What is learned for each of them; None closes them without learning.
        """
        latest = _seconds(before)
        value = None if reward is None else checked_reward(reward)
        with self._lock:
            ids = [id for id, each in self._core.waiting if each.time < latest]
            if value is not None and ids:
                self._learn([(id, value) for id in ids])
            elif ids:
                with self._change() as events:
                    self._core.close(ids)
                    events += [{"event": "close", "id": id} for id in ids]
        return len(ids)

    def observe(self, table: Any, rewards: Any, *, context: Any = None) -> None:
        """Learn from a log of options that somebody else chose: one row and one reward for each.

        It does not matter in which parts a log comes. A bar shows progress after two seconds, if
        rich is installed.
        """
        self._check_context(context)
        rows = replace(self._reader, unique=False).read(table)
        values = checked_rewards(rewards, len(rows.items))
        with self._change() as events:
            self._core.observe(rows, values)
            if self._journal is not None:
                for start in range(0, len(values), _LOG_PART):
                    part, stop = rows.part(start, start + _LOG_PART), start + _LOG_PART
                    plain = {"rows": part.to_plain(), "rewards": values[start:stop]}
                    events.append({"event": "observe"} | plain)

    def score(self, options: Any, *, context: Any = None) -> tuple[Scored, ...]:
        """Return estimate, width and share of seen columns of each option, without choosing."""
        self._check_context(context)
        rows = self._reader.read(options)
        with self._lock:
            return self._core.score(rows)

    # What it knows

    @property
    def columns(self) -> dict[str, Column]:
        """What became of each column, by name."""
        known = {} if self.id is None else {self.id: Column(self.id, "id")}
        known |= {name: Column(name, "ignored") for name in self.ignore}
        return known | dict(self._core.encoder.columns)

    def health(self) -> dict[str, Any]:
        """Return what a dashboard shows, as plain JSON types.

        Rewards and shares of seen entries are given `lately`, over the latest 500 to 1000 rewards
        or decisions, and `before` that.
        """
        with self._lock:
            core, journal = self._core, self._journal
            oldest = next((each.time for _, each in core.waiting), None)
            return core.health() | {
                "oldest_pending": None if oldest is None else max(0.0, time.time() - oldest),
                "journal_bytes": None if journal is None else journal.size,
            }

    # Files

    def save(self, path: Path) -> None:
        """Write the agent to a file, with names, levels and decisions that wait.

        If it has a journal, this is a checkpoint: the journal starts anew.
        """
        with self._lock:
            archive.write(path, self._tree())
            if self._journal is not None:
                sync_folder(path)
                self._journal.rotate()

    @classmethod
    def load(cls, path: Path) -> Self:
        """Return a saved agent, which continues as the original would.

        Raises
        ------
        ArchiveError
            The file is damaged, not a saved agent, or from a newer version.
        """
        return cls._from_tree(*archive.read(path), str(path))

    @classmethod
    def open(cls, checkpoint: Path, journal: Path, **settings: Any) -> Self:
        """Continue from a checkpoint and a journal, or start if there is neither.

        Nothing that a call has returned for is lost, and no reward is learned twice.

        Parameters
        ----------
        checkpoint : path
            What `save` wrote last, if it did.
        journal : path
        **settings
            Of a new agent; those of an agent that continues must be the same.

        Raises
        ------
        ArchiveError, JournalError
            A file is damaged or incomplete.
        """
        book = Journal(journal)
        try:
            agent = cls.load(checkpoint) if os.path.exists(checkpoint) else None
            for event in book.events(0 if agent is None else agent._n_events):
                agent = cls._replayed(agent, event, str(journal))
            if agent is None:
                agent = cls(**settings)
                agent._start_journal(book)
            else:
                agent._check_settings(settings)
                agent._journal = book
                agent._n_events = book.n_events
        except BaseException:
            book.close()
            raise
        agent.__dict__["journal"] = os.fspath(journal)
        return agent

    def close(self) -> None:
        """Close the journal, if there is one; calls that would write to it fail from now on."""
        with self._lock:
            if self._journal is not None:
                self._journal.close()

    def _start_journal(self, journal: Journal) -> None:
        if journal.size:
            journal.close()
            raise JournalError(
                f"the journal {journal.path} has events: continue from it with "
                "Agent.open(checkpoint, journal), or name another file"
            )
        self._journal = journal
        # The first event holds the agent as it starts, so that no checkpoint is needed.
        with self._change() as events:
            events.append({"event": "start", "agent": packed(archive.to_bytes(self._tree()))})

    @contextmanager
    def _change(self) -> Iterator[list[Event]]:
        """Make one change, or none: write its events to the journal, undo everything on failure."""
        with self._lock, self._core.change():
            events: list[Event] = []
            journal = self._journal
            if journal is None:
                yield events
                return
            size, n_events = journal.size, journal.n_events
            try:
                yield events
                journal.append(events)
                self._n_events = journal.n_events
            except BaseException:
                if journal.size != size:
                    journal.cut(size, n_events)
                raise

    @classmethod
    def _replayed(cls, agent: Self | None, event: Event, name: str) -> Self:
        """Return an agent after one more event."""
        if agent is None:
            if event["event"] != "start":
                raise JournalError(f"{name} continues a checkpoint, which is missing: restore it")
            agent = cls._from_tree(*archive.from_bytes(unpacked(event["agent"]), name), name)
        else:
            try:
                agent._replay(event)
            except (KeyError, TypeError, HalfseenError) as error:
                raise JournalError(f"event {event['n']} of {name} is wrong: {error}") from None
        agent._n_events = event["n"]
        return agent

    def _replay(self, event: Event) -> None:
        core, kind = self._core, event["event"]
        if kind == "choose":
            rows = Rows.from_plain(event["rows"])
            arm, explore = event.get("arm"), event.get("explore", True)
            core.choose_again(rows, event["id"], event["time"], arm, explore=explore)
        elif kind == "learn":
            core.learn([(event["id"], event["reward"])])
        elif kind == "close":
            core.close([event["id"]])
        elif kind == "observe":
            core.observe(Rows.from_plain(event["rows"]), event["rewards"])
        else:
            raise JournalError(f"it is a {kind!r}, which is not known")

    def _tree(self) -> dict[str, Any]:
        settings = self.settings()
        del settings["policy"], settings["journal"]
        return {"agent": settings, "core": self._core.state(), "n_events": self._n_events}

    @classmethod
    def _from_tree(cls, tree: dict[str, Any], version: int, name: str) -> Self:
        if "agent" not in tree:
            raise ArchiveError(f"{name} is no agent: halfseen.load reads a saved policy")
        try:
            agent = cls(**tree["agent"])
            core = tree["core"]
            agent._core.restore(core | {"policy": upgraded(core["policy"], version, name)})
            agent._n_events = checks.integer("n_events", tree["n_events"], 0)
        except ArchiveError:
            raise
        except Exception as error:  # an invalid state can raise anything
            raise ArchiveError(f"{name} does not describe an agent: {error}") from None
        agent.__dict__["policy"] = agent._core.policy
        return agent

    def _check_settings(self, given: Mapping[str, Any]) -> None:
        """Raise an error if settings for a new agent differ from those of this one."""
        wanted, ours = type(self)(**given).settings(), self.settings()
        for name in given:
            mine, theirs = ours[name], wanted[name]
            if name == "policy" and theirs is not None:
                theirs["settings"]["dim"] = mine["settings"]["dim"]  # it may have grown
            if mine != theirs:
                raise InvalidSettingError(
                    f"is {mine!r} in the checkpoint or journal, got {theirs!r}: leave it out, or "
                    "start with other files",
                    name=name,
                )

    def _fresh_policy(self) -> LatentUcb:
        given = {theirs: getattr(self, ours) for ours, theirs in _OF_POLICY.items()}
        return LatentUcb(**{name: value for name, value in given.items() if value is not None})

    def _check_context(self, context: Any) -> None:
        if context is not None and not self._core.policy.takes_context:
            raise no_context(type(self._core.policy))


def _id_of(decision: Any) -> Any:
    return decision.id if isinstance(decision, AgentDecision) else decision


def _seconds(before: Any) -> float:
    """Return a time, or how long ago it was, in seconds since 1970."""
    if isinstance(before, datetime.timedelta):
        return time.time() - before.total_seconds()
    if isinstance(before, datetime.datetime) and before.tzinfo is not None:
        return before.timestamp()
    raise InvalidInputError(
        f"before must be a datetime with a time zone, or a timedelta, got {before!r}: for example "
        "datetime.now(UTC) - timedelta(hours=1)"
    )
