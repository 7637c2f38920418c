"""The agent: tables in, items out, rewards by id.

A choice, step by step: `Agent.choose` reads the options (`frames`), follows the journal, and
decides on a fork of the policy; `Member.decide` appends the event and takes over the state after
it, which is what `Reducer.apply` makes of the state before. `Agent.learn` looks decisions up, and
appends an event for each reward. Without a database, the journal is in memory.
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
from halfseen.agent.database import opened
from halfseen.agent.deadline import Deadline
from halfseen.agent.events import CHOOSE, EXPIRED, FORGOTTEN, OBSERVE, Asked, Event, Made, rewarded
from halfseen.agent.explanation import Explanation, Measurement, checked_costs
from halfseen.agent.forks import AGENT, forkable_lock
from halfseen.agent.health import epochs_of, mean_of, shares
from halfseen.agent.journal import N_GONE, SAVED, Journal, MemoryJournal, Saved, Stale, Taken
from halfseen.agent.logs import frames_of
from halfseen.agent.member import Codec, Member, resumed
from halfseen.agent.settings import Settings
from halfseen.agent.sql_journal import SCHEMA, TABLES, SqlJournal
from halfseen.agent.state import Ready, Reducer, State
from halfseen.errors import (
    AlreadyRewardedError,
    ArchiveError,
    ForgottenDecisionError,
    InvalidInputError,
    InvalidSettingError,
    InvalidTableError,
    ReusedIdError,
    StorageError,
    UnknownDecisionError,
)
from halfseen.frames import Column
from halfseen.frames.parts import Parts, logs_of, parts_of
from halfseen.log import logger
from halfseen.policies.abilities import Exploits, Reports, UsesContext
from halfseen.policies.base import Policy
from halfseen.policies.registry import policy_from_dict
from halfseen.state import Sizes
from halfseen.values import Choice, Decision, FloatArray, Item, Note, Scores
from halfseen.values.decision import checked_reward, checked_rewards, listed

S = TypeVar("S")
T = TypeVar("T")
Path = str | os.PathLike[str]

_LOG_PART = 500  # rows of a log that one event has


class Pending(NamedTuple):
    """A decision without a final reward: its id, the chosen item, and when it was made.

    Examples
    --------
    >>> from halfseen import Agent
    >>> agent = Agent(id="sku")
    >>> decision = agent.choose([{"sku": "hat", "price": 3.0}])
    >>> [(each.id == decision.id, each.item) for each in agent.pending]
    [(True, 'hat')]
    >>> agent.learn(decision.id, 1.0)
    >>> agent.pending
    ()
    """

    id: str
    item: Item
    made: datetime.datetime


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


class Agent(Settings):
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

    def setup(self) -> None:
        """Begin without having learned anything, with a journal in memory."""
        self._reader = self.reader()
        self._lock = forkable_lock(AGENT)
        self._n_warned = 0  # warnings that were logged and still hold
        self._begin(self.fresh(), MemoryJournal())

    def _begin(self, state: State, journal: Journal) -> None:
        """Go on from a state of a journal."""
        reducer = Reducer(self.id is not None)
        codec = Codec(self._dumped, self._viewed, self._loaded)
        self._member = Member(journal, reducer, state, codec, self.rules(), self._lock)

    def __reduce__(self) -> tuple[Any, ...]:
        """Let `copy` and `pickle` make a separate agent; one in a database is opened again."""
        if self.journal.is_shared:
            raise TypeError(
                "an agent in a database cannot be copied or pickled: use Agent.open again, or save "
                "it to a file"
            )
        return self.from_dict, (self.to_dict(),)

    @property
    def journal(self) -> Journal:
        """Where its decisions and rewards are kept."""
        return self._member.journal

    @property
    def learner(self) -> Policy:
        """The policy in its present state, which must not be changed."""
        return self._member.state.policy

    def _do(self, work: Callable[[], T]) -> T:
        """Do something in step with other processes; again, if they were faster."""
        with self._lock:
            while True:
                try:
                    found = work()
                    break
                except Stale:
                    self._member.doubt()
                except Taken:
                    continue
            self._warn()
            return found

    def _warn(self) -> None:
        """Log warnings that are new."""
        warnings = self._warnings()
        for text in warnings[self._n_warned :]:
            logger.warning(text)
        self._n_warned = len(warnings)

    def _warnings(self) -> list[str]:
        """Return what looks wrong about rewards."""
        traffic, policy = self._member.state.traffic, self._member.state.policy
        found = traffic.signs.warnings(traffic.n_pending)
        return [*(found if self.expire_after is None else ()), *Reports.of(policy).warnings()]

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
        k = checks.integer("k, the number of places,", k, 1, len(asked.rows.items))
        name = secrets.token_hex(12) if id is None else _checked_key("id", id)
        body: dict[str, Any] = {"id": name, "arms": [0] * k, "explore": explore}
        event, is_named = Event(CHOOSE, body, asked), id is not None
        try:
            return self._do(lambda: self._choose(event, is_named, deadline))
        except StorageError as error:
            if deadline.is_committed:
                raise _unknown(name, error) from error
            raise

    def _choose(self, event: Event, is_named: bool, deadline: Deadline) -> Decision:
        deadline.check()
        member, asked = self._member, event.asked
        assert asked is not None
        state, id, items = member.follow(), event.body["id"], asked.rows.items
        if is_named and (known := self._decided_before(event)) is not None:
            return known
        ready = member.reducer.encoded(state, asked)
        member.tend()  # only now: a request that is refused changes nothing
        if member.state is not state:
            ready = member.reducer.encoded(member.state, asked)
        ready.policy.prepare(ready.slate)
        n_places, explore = len(event.body["arms"]), event.body["explore"]
        alone = not (member.journal.is_shared or is_named)
        drawn = str(ready.policy.round + 1) if alone else id
        choices, arms = decided(ready, drawn, n_places, explore)
        first = choices[0]
        body = event.body | {
            "arms": arms,
            "probabilities": [_probability(each) for each in choices],
            "weight": _weight(first, len(items)),
            "based_on": member.known,
        }
        chosen = tuple(items[arm] for arm in arms)
        made = Made(id, chosen, 0.0, (None,) * n_places, (), body["weight"])
        event = event._replace(body=body, law=first.probabilities, made=(made,))
        event = member.decide(event, ready, deadline)
        member.publish_quietly()
        return self._decision(event, ready, first.parts)

    def _decision(self, event: Event, ready: Ready, parts: FloatArray) -> Decision:
        """Return a decision; if its notes are not known yet, with one that looks like its own."""
        (made,), arms, asked, slate = event.made, event.body["arms"], event.asked, ready.slate
        assert asked is not None
        return Decision(
            type(ready.policy).__name__,
            arms[0],
            (*made.notes, Note(1, -1, slate.table[arms[0]].copy(), slate.context))[0],
            parts,
            event.law,
            id=made.id,
            items=asked.rows.items,
            request=asked,
            places=list(zip(arms, event.body["probabilities"], strict=True))[1:],
        )

    def _decided_before(self, event: Event) -> Decision | None:
        """Return the decision with the id of an event; an error if it was asked otherwise.

        Its scores are those of today: a journal has probabilities, but no scores.
        """
        id, asked = event.body["id"], event.asked
        assert asked is not None
        if not self.journal.decisions([id]):
            return None
        found = self.journal.event_of(id)
        if found is None or found.made[0].request != event.request():
            why = "for another request" if found else "and only a database can return it again"
            raise ReusedIdError(
                f"decision {id} was made before, {why}: give each request its own id"
            )
        ready = self._member.reducer.encoded(self._member.state, asked, lenient=True)
        parts = ready.policy.appraise(ready.slate)
        return self._decision(found._replace(asked=asked), ready, parts)

    def score(self, options: Any, *, context: Any = None) -> tuple[Scored, ...]:
        """Return estimate, width and share of seen columns of each option, without choosing."""
        asked = self._asked(options, context)
        with self._lock:
            ready = self._member.reducer.encoded(self._member.follow(), asked)
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
            self._member.check_usable()
            found = self.journal.event_of(decision)
            if found is None:
                raise UnknownDecisionError(
                    f"decision {decision!r:.80} is not in a database of this agent: pass what "
                    "choose returned, or options"
                )
            asked, chosen = found.asked, found.made[0].items[0]
        item = chosen if item is None else item
        asked = self._asked(decision, context) if asked is None else asked
        with self._lock:
            state = self._member.follow()
            prices = checked_costs(costs, self.columns | self.context_columns)
            # It was accepted when it was chosen from.
            ready = self._member.reducer.encoded(state, asked, lenient=chosen is not None)
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
        self._do(lambda: self._learn(rewards, part, final))

    def _learn(
        self, rewards: Sequence[tuple[str, Item | None, float]], key: str, final: bool
    ) -> None:
        """Append those rewards that are new."""
        member, events = self._member, []
        member.follow()
        made = self.journal.decisions([id for id, _, _ in rewards])
        for id, item, value in rewards:
            if id not in made:
                raise UnknownDecisionError(
                    f"decision {id} is not known here: another agent made it, or it was closed "
                    "long ago"
                )
            place = _place_of(made[id], item)
            if self._is_new(made[id], place, key, value):
                event = rewarded(made[id], place, key, value, final=final)
                made[id] = event.changes.get(id, (None, made[id]))[1]
                events.append(event)
        if events:
            member.tell(events)
            member.publish_quietly()

    def _is_new(self, made: Made, place: int, key: str, value: float) -> bool:
        """Return whether a reward is new, and may come."""
        became = made.places[place]
        if became is None:
            return True
        before = self.journal.rewards([made.id]).get(made.id, {}).get((place, key))
        if before is not None and before != value:
            raise AlreadyRewardedError(
                f"decision {made.id} was rewarded before, with {before}, got {value}: each reward "
                "counts once, so drop this one, or give further parts their own key"
            )
        if before is None and became == FORGOTTEN:
            raise ForgottenDecisionError(
                f"decision {made.id} was forgotten, because max_pending later ones were pending: "
                "set a larger max_pending, or expire_after"
            )
        if before is None and isinstance(became, str) and became != EXPIRED:
            raise AlreadyRewardedError(
                f"decision {made.id} was rewarded before, and the reward was final: drop this one, "
                "or mark parts as not final, with a key for each"
            )
        return before is None

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
        return self._do(
            lambda: self._member.expire(self.journal.now() - before.total_seconds(), value)[0]
        )

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
        if key is not None and not self.journal.is_shared:
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
        asked = Asked(rows, contexts).canonical()
        whole = Event(OBSERVE, {"rewards": values}, asked)
        own = {} if key is None else {"key": _checked_key("key", key), "log": whole.request().hex()}
        events = [
            Event(OBSERVE, {"rewards": values[at * _LOG_PART :][:_LOG_PART]}, part)
            for at, part in enumerate(asked.parts(_LOG_PART))
        ]
        events[0].body.update(own)

        def tell() -> None:
            state = self._member.follow()
            self._member.reducer.encoded(state, asked, log=True)  # refuses what cannot be read
            known = None if key is None else self.journal.log_request(key)
            if known is None:
                self._member.tell(events)
            elif known != events[0].request():
                raise InvalidInputError(
                    f"another log was observed with the key {key!r}: give each log its own"
                )

        self._do(tell)

    def _observe_parts(self, parts: Parts, reward: str, context: Any, key: str | None) -> None:
        """Learn from a log in parts; nothing is learned if one of them cannot be read."""
        reader, state = replace(self._reader, unique=False), self._member.state
        options, contexts = state.options, state.context
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
        return tuple(
            Pending(
                made.id,
                made.items[0],
                datetime.datetime.fromtimestamp(made.time, datetime.UTC),
            )
            for made in self.journal.pending()
        )

    @property
    def columns(self) -> dict[str, Column]:
        """How each column is used, by name."""
        known = {} if self.id is None else {self.id: Column(self.id, "id")}
        known |= {name: Column(name, "ignored") for name in self.ignore}
        state = self._member.state
        return known | state.options.counted(state.n_implausible[0])

    @property
    def context_columns(self) -> dict[str, Column]:
        """How each context column is used, by name."""
        state = self._member.state
        return state.context.counted(state.n_implausible[1])

    def health(self) -> dict[str, Any]:
        """Return figures for monitoring, as plain JSON types.

        `lately` covers the latest 500 to 1000 rewards or decisions, `before` all earlier ones.
        `lift` is the mean reward minus that of a uniform choice, with a 95 % interval, from
        decisions in which no option had probability 0.
        """
        with self._lock:
            self._member.check_usable()
            member, journal = self._member, self.journal
            behind = journal.n_behind(member.known)
            state = member.follow()
            policy, traffic = state.policy, state.traffic
            starts = Reports.of(policy).diagnostics().get("epoch_starts")
            oldest = next((made.time for made in journal.pending(1)), None)
            return {
                "decisions": traffic.n_decisions,
                "pending": traffic.n_pending,
                "forgotten": traffic.n_forgotten,
                "late": traffic.n_late,
                "rewards": mean_of(traffic.rewards),
                "lift": traffic.lift.shown(),
                "seen": shares(traffic.seen, state.options),
                "context_seen": shares(traffic.context_seen, state.context),
                "features": state.options.width,
                "context_features": state.context.width,
                "rank": policy.current_rank if policy.dim is not None else None,
                "refits": None if starts is None else len(starts),
                "epochs": epochs_of(policy),
                "refit_seconds": list(traffic.refit_seconds),
                "oldest_pending": None if oldest is None else max(0.0, journal.now() - oldest),
                "warnings": self._warnings(),
                "events": member.known,
                "behind": behind,
                "is_learner": member.is_learner,
                "storage_bytes": journal.size(),
            }

    # Upkeep

    def tick(self) -> None:
        """Expire, refit and save what is due, unless another process does so; for a worker.

        `choose` does this as well; a worker that calls `tick` every second saves it the time.
        """

        def tend() -> None:
            self._member.follow()
            self._member.tend(refit=False)

        self._do(tend)
        self.refit_if_due()

    def refit_if_due(self) -> bool:
        """Refit the policy's models for all processes if that is due; return whether it did.

        The state is that of some event. Other events may come while models are fitted: they are
        applied to the fitted policy as well.
        """
        return self._member.fitter.refit()

    # Files and databases

    def to_dict(self) -> dict[str, Any]:
        """Return settings, state and decisions as plain values and arrays."""
        with self._lock:
            (state, found), journal = self._member.whole(), self.journal
            made = [*journal.gone(N_GONE), *journal.pending()]
            rewards = journal.rewards([each.id for each in made])
        # Those of a reader's own have no notes in the journal yet.
        made = [
            found[each.id]._replace(places=each.places) if each.id in found else each
            for each in made
        ]
        saved = [Saved(each, rewards.get(each.id, {})) for each in made]
        return self._plain(state) | {"decisions": SAVED.dump(saved)}

    def _plain(self, state: State) -> dict[str, Any]:
        settings = self.settings()
        del settings["policy"]
        return {"agent": settings, "state": state.to_dict()}

    def _dumped(self, state: State) -> bytes:
        return archive.to_bytes(self._plain(state))

    def _viewed(self, state: State) -> bytes:
        return self._dumped(state.viewed())

    def _loaded(self, content: bytes) -> State:
        plain = archive.from_bytes(content, self.journal.place)
        return _built(self._state_of, plain, self.journal.place)

    def _state_of(self, plain: dict[str, Any]) -> State:
        limits = {"max_levels": self.max_levels, "max_columns": self.max_columns}
        return State.from_dict(plain["state"], **limits)

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        """Return the agent that `to_dict` described."""
        agent = cls(**plain["agent"])
        state = agent._state_of(plain)
        saved = SAVED.load("decisions", plain["decisions"], Sizes())
        for note in (note for each in saved for note in each.made.notes):
            state.policy.check_note(note)
        state = state.with_notes(each.made for each in saved)
        agent._go_on(state, MemoryJournal(saved, state.number))
        return agent

    def _go_on(self, state: State, journal: Journal) -> None:
        self._begin(state, journal)
        self.__dict__["policy"] = type(state.policy)(**state.policy.settings())

    def save(self, path: Path) -> None:
        """Write the agent to a file, with columns, levels and pending decisions."""
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
        journal = SqlJournal(opened(url, durability), _checked_key("name", name))
        journal.database.make(TABLES, SCHEMA)
        fresh = cls(**settings)
        if not journal.find():
            journal.create(fresh._dumped(fresh._member.state))
        plain = archive.from_bytes(journal.checkpoint()[1], journal.place)
        agent = _built(cls._opened, (plain, journal), journal.place)
        agent._check_settings(settings, fresh)
        agent._do(agent._member.follow)
        return agent

    @classmethod
    def _opened(cls, found: tuple[dict[str, Any], Journal]) -> Self:
        plain, journal = found
        agent = cls(**plain["agent"])
        agent._go_on(resumed(agent._state_of(plain), journal), journal)
        return agent

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database, after a checkpoint if there are events since the last one."""
        if self.journal.is_shared:
            with self._lock:
                self._member.close()
            self._member.fitter.close()

    def log(self, *, backend: str = "pandas", chunk: int | None = None) -> Any:
        """Return decisions and rewards in the database as a frame; see `halfseen.read_log`."""
        return frames_of(self.reading(), backend, chunk)

    def prune(self, *, keep: datetime.timedelta) -> int:
        """Delete events older than `keep` from the database; return their number.

        Events after the oldest checkpoint and pending decisions are kept. Deleted ids and keys can
        be used again. Nothing else deletes events.
        """
        if not isinstance(keep, datetime.timedelta) or keep < datetime.timedelta(0):
            raise InvalidInputError(f"keep must be a timedelta of at least 0, got {keep!r}")
        journal = self.reading()
        with self._lock:
            self._member.follow()
            self._member.publish_if_due(1)
        return journal.prune(keep.total_seconds())

    def reading(self) -> SqlJournal:
        """Return the journal over a connection of its own: what takes long delays no decision."""
        if not isinstance(self.journal, SqlJournal):
            raise InvalidInputError("only an agent in a database has a log: use Agent.open")
        return self.journal.reading()

    def _check_settings(self, given: Mapping[str, Any], fresh: "Agent") -> None:
        """Raise an error if settings for a fresh agent differ from those of this one."""
        ours, theirs = _settings(self), _settings(fresh)
        names = [*given]
        if given.get("policy") is not None:  # what grows is not compared
            names += [*fresh._member.state.policy.settings().keys() - {"dim", "context_dim"}]
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
        asked, policy = Asked(self._reader.read(options)), self._member.state.policy
        if context is not None and not (isinstance(context, Mapping) and not context):
            policy.able(UsesContext)
            asked = Asked(asked.rows, self._reader.read_row(context))
        return asked.canonical() if self.journal.is_shared else asked


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
    policy = agent.learner
    own = policy.settings()
    named = {"policy": type(policy).__name__, "explore": own.get("exploration")}
    return {**own, **agent.settings(), **named, "uniform_share": own.get("uniform_share")}


def _place_of(made: Made, item: Item | None) -> int:
    """Return the place of an item, or the first one."""
    if item is not None and item not in made.items:
        raise InvalidInputError(
            f"decision {made.id} has no place for {item!r}, it chose {list(made.items)}: reward "
            "these"
        )
    return 0 if item is None else made.items.index(item)


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
