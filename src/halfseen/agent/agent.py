"""The agent: tables in, items out, rewards by id."""

import base64
import datetime
import os
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from halfseen import archive, checks, state
from halfseen.agent.explanation import Explanation, checked_costs
from halfseen.agent.ledger import (
    EXPIRED,
    FORGOTTEN,
    REWARDED,
    WINDOW,
    Ledger,
    Pending,
    Waiting,
    Window,
)
from halfseen.agent.storage import Event, Journal, sync_folder
from halfseen.errors import (
    ArchiveError,
    HalfseenError,
    InvalidInputError,
    InvalidSettingError,
    InvalidTableError,
    JournalError,
    UnknownDecisionError,
)
from halfseen.frames import Column, Encoder, EncoderField, Reader, Rows, ids_alone
from halfseen.latent.policy import INVERSE_GAP, LatentUcb
from halfseen.log import logger
from halfseen.params import Declared, choice, custom, integer, real
from halfseen.policies.base import Policy
from halfseen.policies.imputed import EXPLORATIONS
from halfseen.policies.registry import AnyPolicy, policy_from_dict
from halfseen.values import Decision, FloatArray, Item, Note, Scores, Slate
from halfseen.values.decision import checked_reward, checked_rewards, listed

T = TypeVar("T")
Path = str | os.PathLike[str]


class Asked(NamedTuple):
    """What an agent is asked about: the options, and one row that they share.

    For a log: its rows, and a context for each.
    """

    rows: Rows
    context: Rows | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return rows and context as plain JSON types."""
        plain = {"rows": self.rows.to_dict()}
        return plain if self.context is None else plain | {"context": self.context.to_dict()}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Asked":
        """Return what `to_dict` made plain."""
        context = plain.get("context")
        rows = Rows.from_dict(plain["rows"])
        return cls(rows, None if context is None else Rows.from_dict(context))


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


class _Ready(NamedTuple):
    """What was asked, for a policy: a fork that knows all columns, and encoders that do."""

    policy: Policy
    options: Encoder
    context: Encoder
    slate: Slate
    contexts: FloatArray | None  # shape (n, context_dim)


class Agent(Declared):
    """Chooses among the rows of a table, and learns rewards by id.

    Tables are data frames (pandas, polars, pyarrow), lists of dicts, dicts of columns, or arrays.
    What is missing is hidden. Names of columns decide, not their order. Numbers are features,
    strings are categories; a column or level that was not there before enters.

    All methods may be called from several threads. Memory is bounded. Any exception leaves the
    agent exactly as it was: a call first prepares everything that it changes, on a fork of the
    policy and in new objects; then it appends to the journal, which has all of it or nothing; then
    it assigns what it prepared, by one method that may run twice. An interrupt during the
    assignment comes after the journal has the change, so the assignment is finished and the
    interrupt raised.

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

    policy: Policy | None = custom(
        default=None,
        check=lambda name, value: _checked_policy(name, value),
        plain=lambda policy: {"policy": type(policy).__name__, "settings": policy.settings()},
        kind="Policy",
        doc="Who chooses; by default `LatentUcb()`. The agent uses a copy.",
    )
    explore: str | None = choice(
        default=None,
        words=(*EXPLORATIONS, INVERSE_GAP),
        doc='How the agent explores, if no policy is given; by default "ucb".',
    )
    uniform_share: float | None = real(
        default=None,
        low=0.0,
        high=1.0,
        doc="""Share of the decisions in which all options are equally likely, without a policy;
    by default 0.""",
    )
    id: str | None = custom(
        default=None,
        check=checks.text,
        kind="str",
        doc="""The column that names the options. By default the index of a frame does, or the
    position.""",
    )
    ignore: Sequence[str] = custom(
        default=(),
        check=lambda name, value: _checked_names(name, value),
        plain=list,
        kind="list of str",
        doc="Columns that are no features.",
    )
    categorical: Sequence[str] = custom(
        default=(),
        check=lambda name, value: _checked_names(name, value),
        plain=list,
        kind="list of str",
        doc="Columns whose numbers are categories.",
    )
    max_levels: int = integer(
        default=50, low=1, doc="Levels of a category with features of their own; others share 16."
    )
    max_columns: int = integer(default=1000, low=1, doc="Largest number of columns.")
    max_pending: int = integer(
        default=10_000,
        low=1,
        doc="Largest number of decisions that wait for a reward; the oldest is forgotten first.",
    )
    STATE: ClassVar[Mapping[str, state.Field]] = {
        "_policy": AnyPolicy(),
        "_options": EncoderField(),
        "_context": EncoderField(),
        "_ledger": state.Part(),
        "_n_decisions": state.Whole(),
        "_n_forgotten": state.Whole(),
        "_seen": WINDOW,
        "_context_seen": WINDOW,
        "_rewards": WINDOW,
        "_n_events": state.Whole(),
    }

    def setup(self) -> None:
        """Create the state of a fresh agent; its parameters are already set as attributes."""
        if both := set(self.ignore) & {*self.categorical, self.id}:
            raise InvalidSettingError(
                f"must not have columns that are used, got {sorted(both)}", name="ignore"
            )
        self._reader = Reader(self.id, frozenset(self.ignore), frozenset(self.categorical))
        self._policy = self._fresh_policy()
        encoder = Encoder(max_levels=self.max_levels, max_columns=self.max_columns)
        self._options, self._context = encoder, encoder
        self._ledger = Ledger(self.max_pending)
        self._n_decisions, self._n_forgotten = 0, 0
        # Entries seen of each feature, per option and per context, and rewards.
        self._seen, self._context_seen, self._rewards = (Window(), Window(), Window())
        self._n_events = 0  # of the journal, that this state includes
        self._lock = threading.RLock()
        # Makes the ids of this agent differ from those of every other, and of copies from a file.
        self._token = secrets.token_hex(6)
        self._journal: Journal | None = None  # `open` sets it

    def _fresh_policy(self) -> Policy:
        """Return a copy of the policy given, or the agent's own with its exploration."""
        both = {"exploration": self.explore, "uniform_share": self.uniform_share}
        given: dict[str, Any] = {name: value for name, value in both.items() if value is not None}
        if self.policy is None:
            return LatentUcb(**given)
        for name in given:
            raise InvalidSettingError(
                "is for the agent's own policy: leave it out, or set it in the policy given, as "
                f"LatentUcb({name}=…)",
                name={"exploration": "explore"}.get(name, name),
            )
        return deepcopy(self.policy)

    # Choosing

    def choose(self, options: Any, *, context: Any = None, explore: bool = True) -> Decision:
        """Choose one of the options.

        Parameters
        ----------
        options : table, or list of ids
            One row per option. Ids alone are enough for a policy that learns about items.
        context : row, optional
            What all options share, such as the visitor: a dict, a series, or a table of one row.
            Its columns have nothing to do with those of the options.
        explore : bool
            False for the option with the largest estimate, in this request.

        Raises
        ------
        InvalidTableError
            Names the column or the row, the value got, and the remedy.
        InvalidInputError
            There is a context, and the policy cannot use one; or it cannot help exploring.
        """
        checks.boolean("explore", explore)
        asked = self._asked(options, context)
        items = asked.rows.items
        with self._lock:
            ready = self._encoded(asked)
            made, note = ready.policy._play(ready.slate, explore=explore)
            id, now = f"{self._token}-{self._n_decisions + 1}", time.time()
            name, law = type(ready.policy).__name__, made.probabilities
            decision = Decision(
                name, made.arm, note, made.parts, law, id=id, items=items, rows=asked
            )
            events: list[Event] = []
            if self._journal is not None:
                event = {"event": "choose", "id": id, "time": now, "arm": made.arm}
                event |= {"explore": explore, "probabilities": decision.probabilities.tolist()}
                events.append(event | asked.to_dict())
            self._wait(ready, id, Waiting(items[made.arm], now, note), events)
        return decision

    def score(self, options: Any, *, context: Any = None) -> tuple[Scored, ...]:
        """Return estimate, width and share of seen columns of each option, without choosing."""
        asked = self._asked(options, context)
        with self._lock:
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
        decision : Decision or table
            What `choose` returned, or options.
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
            raise InvalidInputError(
                f"explain needs what choose returned, or options, got the id {decision!r}: keep "
                "the decision, as an agent does not keep options"
            )
        asked = self._asked(decision, context) if asked is None else asked
        prices = checked_costs(costs, self.columns | self.context_columns)
        with self._lock:
            ready = self._encoded(asked)
            columns, context_columns = (
                {name: list(each.features) for name, each in encoder.columns.items()}
                for encoder in (ready.options, ready.context)
            )
            given = ready.policy, ready.slate, asked.rows.items, columns, context_columns
            return Explanation.of(*given, item=item, costs=prices, made=made)

    # Learning

    def learn(
        self,
        decision: Decision | str | Sequence[Decision | str],
        reward: float | Sequence[float],
    ) -> None:
        """Learn the reward of a decision, or rewards of many; late, in any order, each once.

        Parameters
        ----------
        decision : Decision or str, or a list or column of them
            What `choose` returned, or its id.
        reward : float, or a list or column of as many

        Raises
        ------
        InvalidRewardError
            A reward is not a finite number.
        UnknownDecisionError
            `AlreadyRewardedError` if the reward came before, `ForgottenDecisionError` if the agent
            no longer waits for it, `UnknownDecisionError` itself if this agent does not know it.
        """
        given = decision if isinstance(decision, Decision | str) else listed(decision)
        if not isinstance(given, list | tuple):
            self._learn({_id_of(given): checked_reward(reward)})
            return
        ids = [_id_of(each) for each in given]
        rewards = dict(zip(ids, checked_rewards(reward, len(ids)), strict=True))
        if len(rewards) < len(ids):
            twice = Counter(ids).most_common(1)[0][0]
            raise InvalidInputError(f"decision {twice} is there twice: a reward counts once")
        self._learn(rewards)

    def expire(self, *, before: datetime.timedelta, reward: float | None = 0.0) -> int:
        """Close decisions whose reward never came; return their number.

        Parameters
        ----------
        before : timedelta
            Decisions made longer ago than this.
        reward : float, optional
            What is learned for each of them; None closes them without learning.
        """
        if not isinstance(before, datetime.timedelta):
            raise InvalidInputError(f"before must be a timedelta, got {before!r}")
        latest = time.time() - before.total_seconds()
        value = None if reward is None else checked_reward(reward)
        with self._lock:
            ids = [id for id, each in self._ledger if each.time < latest]
            if ids and value is None:
                self._expire(ids)
            elif ids and value is not None:
                self._learn(dict.fromkeys(ids, value))
        return len(ids)

    def observe(self, table: Any, rewards: Any, *, context: Any = None) -> None:
        """Learn from a log of options that somebody else chose: one row and one reward for each.

        It does not matter in which parts a log comes. `context` is a table with a row for each row
        of the log.
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
        self._observe(Asked(rows, contexts), values)

    # What it knows

    @property
    def pending(self) -> tuple[Pending, ...]:
        """The decisions that wait for their reward, the oldest first."""
        with self._lock:
            return tuple(
                Pending(id, each.item, datetime.datetime.fromtimestamp(each.time, datetime.UTC))
                for id, each in self._ledger
            )

    @property
    def columns(self) -> dict[str, Column]:
        """What became of each column, by name."""
        known = {} if self.id is None else {self.id: Column(self.id, "id")}
        known |= {name: Column(name, "ignored") for name in self.ignore}
        return known | dict(self._options.columns)

    @property
    def context_columns(self) -> dict[str, Column]:
        """What became of each column of the context, by name."""
        return dict(self._context.columns)

    def health(self) -> dict[str, Any]:
        """Return what a dashboard shows, as plain JSON types.

        Rewards and shares of seen entries are given `lately`, over the latest 500 to 1000 rewards
        or decisions, and `before` that.
        """
        with self._lock:
            policy, journal = self._policy, self._journal
            starts = policy._diagnostics().get("epoch_starts")
            oldest = next((each.time for _, each in self._ledger), None)
            return {
                "decisions": self._n_decisions,
                "pending": len(self._ledger),
                "forgotten": self._n_forgotten,
                "rewards": {name: _mean_of(self._rewards, name) for name in ("lately", "before")},
                "seen": _shares(self._seen, self._options),
                "context_seen": _shares(self._context_seen, self._context),
                "features": self._options.width,
                "context_features": self._context.width,
                "rank": policy.current_rank if policy.dim is not None else None,
                "refits": None if starts is None else len(starts),
                "oldest_pending": None if oldest is None else max(0.0, time.time() - oldest),
                "journal_bytes": None if journal is None else journal.size,
            }

    # Files

    def save(self, path: Path) -> None:
        """Write the agent to a file, with names, levels and decisions that wait.

        If it has a journal, this is a checkpoint: the journal starts anew.

        Raises
        ------
        JournalError
            The journal was closed, or belongs to the process from which this one was forked.
        """
        with self._lock:
            if self._journal is not None:
                self._journal.check_usable()
            archive.write(path, self.to_dict())
            if self._journal is not None:
                sync_folder(path)
                self._journal.clear()
                self._commit({}, [{"event": "saved"}])  # shows that the checkpoint belongs to it

    @classmethod
    def load(cls, path: Path) -> Self:
        """Return a saved agent, which continues as the original would.

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
            A file is damaged or incomplete, or is something else.
        """
        book = Journal(journal)
        try:
            agent = cls.load(checkpoint) if os.path.exists(checkpoint) else None
            after = 0 if agent is None else agent._n_events
            for event in book.events(after):
                agent = cls._replayed(agent, event, str(journal))
            if agent is None:
                agent = cls(**settings)
                agent._journal = book
                # The first event holds the agent as it starts: no checkpoint is needed.
                content = base64.b64encode(archive.to_bytes(agent.to_dict())).decode()
                agent._commit({}, [{"event": "start", "agent": content}])
            else:
                agent._check_settings(settings)
                agent._journal = book
        except BaseException:
            book.close()
            raise
        return agent

    def close(self) -> None:
        """Close the journal, if there is one; calls that would write to it fail from now on."""
        with self._lock:
            if self._journal is not None:
                self._journal.close()

    def to_dict(self) -> dict[str, Any]:
        """Return settings and state as plain values and arrays."""
        settings = self.settings()
        del settings["policy"]
        return {"agent": settings, "state": state.dump(self)}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        """Return the agent that `to_dict` described."""
        agent = cls(**plain["agent"])
        state.restore(agent, plain["state"])
        policy = agent._policy
        for encoder, dim in ((agent._options, policy.dim), (agent._context, policy.context_dim)):
            if encoder.width > (dim or 0):
                raise ArchiveError(f"{encoder.width} features are too many for a policy with {dim}")
        for _, waiting in agent._ledger:
            policy._check_note(waiting.note)
        agent.__dict__["policy"] = type(policy)(**policy.settings())
        return agent

    # How a call changes the agent: prepare, then `_commit`

    def _commit(
        self,
        changed: dict[str, Any],
        events: Sequence[Event] = (),
        *,
        made: Mapping[str, Waiting] | None = None,
        closed: Mapping[str, str] | None = None,
    ) -> None:
        """Append events to the journal, then assign attributes and update the ledger."""
        journal = self._journal
        try:
            if journal is not None:
                journal.append(events)
            self._assign(changed, made or {}, closed or {})
        except BaseException:
            if journal is None or journal.n_events > self._n_events:  # an interrupt: finish
                self._assign(changed, made or {}, closed or {})
            raise

    def _assign(
        self, changed: dict[str, Any], made: Mapping[str, Waiting], closed: Mapping[str, str]
    ) -> None:
        self._ledger.apply(made, closed)
        if self._journal is not None:
            changed["_n_events"] = self._journal.n_events
        self.__dict__.update(changed)

    def _wait(self, ready: _Ready, id: str, waiting: Waiting, events: Sequence[Event] = ()) -> None:
        """Commit a decision; if too many wait, the oldest is forgotten."""
        table, contexts = ready.slate._table, ready.contexts
        if waiting.note.round:  # the policy chose it, see `_choose_again`
            ready.policy._expect(waiting.note)
        changed = {
            "_policy": ready.policy,
            "_options": ready.options,
            "_context": ready.context,
            "_n_decisions": self._n_decisions + 1,
            "_seen": self._seen.added(_n_seen(table), len(table)),
        }
        if contexts is not None:
            changed["_context_seen"] = self._context_seen.added(_n_seen(contexts), len(contexts))
        if len(self._ledger) < self.max_pending:
            self._commit(changed, events, made={id: waiting})
            return
        oldest, n = self._ledger.oldest or "", self._n_forgotten + 1
        ready.policy._forget(self._ledger.get(oldest).note)
        changed["_n_forgotten"] = n
        self._commit(changed, events, made={id: waiting}, closed={oldest: FORGOTTEN})
        if n & (n - 1) == 0:  # the 1st, 2nd, 4th, 8th, …
            message = "decision %s was forgotten, %d so far: more than max_pending = %d wait"
            logger.warning(message, oldest, n, self.max_pending)

    def _learn(self, rewards: Mapping[str, float]) -> None:
        with self._lock:
            found = [(self._ledger.get(id), reward) for id, reward in rewards.items()]
            # Forks can take back one step only.
            policy = self._policy._fork() if len(found) == 1 else deepcopy(self._policy)
            window = self._rewards
            for waiting, reward in found:
                note = waiting.note.widened(policy.dim, policy.context_dim)
                if not note.round:  # it was not chosen by the policy, see `_choose_again`
                    items = None if note.item is None else [note.item]
                    contexts = None if note.context is None else note.context[None]
                    policy._play_logged(Slate(note.arm[None], items=items), [reward], contexts)
                else:
                    policy.update(note, reward)
                window = window.added([reward], 1)
            events: list[Event] = []
            if self._journal is not None:
                pairs = rewards.items()
                events = [{"event": "learn", "id": id, "reward": value} for id, value in pairs]
            closed = dict.fromkeys(rewards, REWARDED)
            self._commit({"_policy": policy, "_rewards": window}, events, closed=closed)

    def _expire(self, ids: Sequence[str]) -> None:
        policy = self._policy._fork()
        policy._forget(*(self._ledger.get(id).note for id in ids))
        events = [{"event": "close", "id": id} for id in ids]
        self._commit({"_policy": policy}, events, closed=dict.fromkeys(ids, EXPIRED))

    def _observe(self, asked: Asked, rewards: list[float]) -> None:
        with self._lock:
            ready = self._encoded(asked, log=True)
            table, contexts = ready.slate._table, ready.contexts
            policy = deepcopy(ready.policy)
            policy._play_logged(ready.slate, rewards, contexts)
            seen, context_seen, window = self._seen, self._context_seen, self._rewards
            for row, reward in enumerate(rewards):
                seen = seen.added(table[row] == table[row], 1)
                if contexts is not None:
                    context_seen = context_seen.added(contexts[row] == contexts[row], 1)
                window = window.added([reward], 1)
            events: list[Event] = []
            if self._journal is not None:
                events.append({"event": "observe", "rewards": rewards} | asked.to_dict())
            changed = {"_policy": policy, "_options": ready.options, "_context": ready.context}
            changed |= {"_seen": seen, "_context_seen": context_seen, "_rewards": window}
            self._commit(changed, events)

    # From tables to slates

    def _asked(self, options: Any, context: Any) -> Asked:
        """Read options and a context; an empty dict is none."""
        if context is None or (isinstance(context, Mapping) and not context):
            return Asked(self._reader.read(options))
        if not self._policy._can("_grow_context"):
            self._policy._grow_context(1, {})  # says so
        return Asked(self._reader.read(options), self._reader.read_row(context))

    def _encoded(self, asked: Asked, *, log: bool = False) -> _Ready:
        """Return what was asked, for a policy that knows its columns.

        Raises
        ------
        InvalidTableError
            Also if a column or level is new and the policy cannot grow.
        """
        policy, rows = self._policy._fork(), asked.rows
        has_ids = self.id is not None or not rows.names or rows.is_named
        if not rows.names and not policy._uses_items:
            raise ids_alone()
        known = policy.dim or 0
        # Items may have no columns, or none that was ever seen.
        dim = max(1, known) if policy._uses_items else known
        slate, options, levels = self._options.encode(rows, dim=dim)
        if slate.dim > known:
            try:
                policy.widen(slate.dim, levels=_new(levels, known))
            except InvalidSettingError as error:
                raise _refused(options, known, error) from None
        context, contexts, row = self._context, None, None
        if asked.context is not None:
            known = policy.context_dim
            shown, context, levels = context.encode(asked.context, dim=max(1, known))
            policy.widen(context_dim=shown.dim, context_levels=_new(levels, known))
            contexts, row = shown._table, None if log else shown._table[0]
        numbers = rows.numbers() if policy._uses_items and has_ids else None
        slate = Slate.of(slate, context=row, items=numbers)
        return _Ready(policy, options, context, slate, contexts)

    # The journal

    @classmethod
    def _replayed(cls, agent: Self | None, event: Event, name: str) -> Self:
        """Return an agent after one more event."""
        if agent is None:
            if event["event"] != "start":
                raise JournalError(f"{name} continues a checkpoint, which is missing: restore it")
            plain = archive.from_bytes(base64.b64decode(event["agent"], validate=True), name)
            agent = _built(cls.from_dict, plain, name)
        else:
            try:
                agent._replay(event)
            except (LookupError, TypeError, HalfseenError) as error:
                raise JournalError(f"event {event['n']} of {name} is wrong: {error}") from None
        agent._n_events = event["n"]
        return agent

    def _replay(self, event: Event) -> None:
        kind = event["event"]
        if kind == "choose":
            self._choose_again(event)
        elif kind == "learn":
            self._learn({event["id"]: event["reward"]})
        elif kind == "close":
            self._expire([event["id"]])
        elif kind == "observe":
            self._observe(Asked.from_dict(event), event["rewards"])
        elif kind != "saved":
            raise JournalError(f"it is a {kind!r}, which is not known")

    def _choose_again(self, event: Event) -> None:
        """Repeat a recorded choice; if it comes out differently, the chosen row is a logged one."""
        asked, arm = Asked.from_dict(event), event["arm"]
        ready = self._encoded(asked)
        slate = ready.slate
        made, note = ready.policy._play(slate, explore=event["explore"])
        if made.arm != arm:
            item = None if slate._items is None else int(slate._items[arm])
            note = Note(0, -1, slate._table[arm].copy(), slate._context, item)
        self._wait(ready, event["id"], Waiting(asked.rows.items[arm], event["time"], note))

    def _check_settings(self, given: Mapping[str, Any]) -> None:
        """Raise an error if settings for a new agent differ from those of this one."""
        wanted, ours = type(self)(**given).settings(), self.settings()
        for name in given:
            mine, theirs = ours[name], wanted[name]
            if name == "policy" and theirs is not None:
                for dim in mine["settings"].keys() & {"dim", "context_dim"}:
                    theirs["settings"][dim] = mine["settings"][dim]  # it may have grown
            if mine != theirs:
                raise InvalidSettingError(
                    f"is {mine!r} in the checkpoint or journal, got {theirs!r}: leave it out, or "
                    "start with other files",
                    name=name,
                )


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


def _checked_policy(name: str, value: Any) -> Policy:
    if not isinstance(value, Policy):
        kind = value.__name__ if isinstance(value, type) else type(value).__name__
        raise InvalidSettingError(f"must be a policy such as LatentUcb(), got {kind}", name=name)
    return value


def _checked_names(name: str, value: Any) -> tuple[str, ...]:
    names = value if isinstance(value, list | tuple | set | frozenset) else None
    if names is None or not all(isinstance(each, str) for each in names):
        raise InvalidSettingError(f"must be a list of column names, got {value!r}", name=name)
    return tuple(sorted(set(names)))


def _id_of(decision: Any) -> str:
    id = decision.id if isinstance(decision, Decision) else decision
    if not isinstance(id, str):
        raise UnknownDecisionError(
            "learn needs what choose returned, its id, or a list or column of them, got "
            f"{type(id).__name__} {id!r:.40}: pass decision or decision.id, not an item or a "
            "position"
        )
    return id


def _refused(encoder: Encoder, known: int, error: Exception) -> InvalidTableError:
    entered = [name for name, each in encoder.columns.items() if each.features[-1] >= known]
    names = ", ".join(repr(name) for name in entered[:5])
    return InvalidTableError(
        f"column {names} has values that are new, and {error}, or list the column in ignore=[…]"
    )


def _new(levels: Mapping[int, int], known: int) -> dict[int, int]:
    """Return the levels whose features are not among the known ones."""
    return {level: first for level, first in levels.items() if level >= known}


def _n_seen(table: FloatArray) -> NDArray[np.intp]:
    """Return how many entries of each feature are seen."""
    n_seen: NDArray[np.intp] = np.add.reduce(table == table, axis=0)
    return n_seen


def _mean_of(rewards: Window, when: str) -> dict[str, Any]:
    lately = when == "lately"
    n = int(rewards.total(lately=lately))
    return {"n": n, "mean": float(rewards.means(lately=lately)[0]) if n else None}


def _shares(seen: Window, encoder: Encoder) -> dict[str, dict[str, float | None]]:
    """Return the share of entries seen of each column, lately and before."""
    found = {}
    for when in ("lately", "before"):
        means: FloatArray = seen.means(lately=when == "lately")
        shares = np.pad(means, (0, max(0, encoder.width - len(means))))
        has_any = seen.total(lately=when == "lately") > 0
        found[when] = {
            name: float(shares[column.features[0]]) if has_any else None
            for name, column in encoder.columns.items()
        }
    return found
