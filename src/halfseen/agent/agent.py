"""The front door: tables in, items out, rewards by id."""

import datetime
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from halfseen import checks
from halfseen.agent.asked import Asked
from halfseen.agent.core import Scored
from halfseen.agent.explanation import Explanation, checked_costs
from halfseen.agent.files import AgentFiles
from halfseen.agent.waiting import checked_id
from halfseen.errors import InvalidInputError, InvalidTableError
from halfseen.frames import Column, Item
from halfseen.values import Decision, Scores
from halfseen.values.rewards import checked_reward, checked_rewards, listed

_LOG_PART = 1000  # rows of a log in one event of the journal


class Pending(NamedTuple):
    """A decision that waits for its reward: its id, the chosen item, and when it was made.

    Examples
    --------
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


class Agent(AgentFiles):
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
    ['sku: id', 'price: number', 'colour: category of 1 level']
    """

    # Choosing and learning

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
        with self._change() as events:
            core = self._core
            id, now = f"{self._token}-{core.n_decisions + 1}", time.time()
            decision = core.choose(asked, id, now, explore=explore)
            arm = decision.arm
            if self._journal is not None:
                shown = asked if self.journal_options else asked.part(arm, arm + 1)
                event = {"event": "choose", "id": id, "time": now} | shown.to_plain()
                event |= {"probability": decision.probability}
                if self.journal_options:
                    law = decision.probabilities.tolist()
                    event |= {"arm": arm, "probabilities": law, "explore": explore}
                events.append(event)
        return decision

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
        given = listed(decision)
        if isinstance(given, list | tuple):
            ids = [_id_of(each) for each in given]
            pairs = list(zip(ids, checked_rewards(reward, len(ids)), strict=True))
        else:
            pairs = [(_id_of(given), checked_reward(reward))]
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
        rich is installed. `context` is a table with a row for each row of the log.
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
        asked = Asked(rows, contexts)
        with self._change() as events:
            self._core.observe(asked, values)
            if self._journal is not None:
                for start in range(0, len(values), _LOG_PART):
                    part, stop = asked.part(start, start + _LOG_PART), start + _LOG_PART
                    events.append({"event": "observe", "rewards": values[start:stop]})
                    events[-1] |= part.to_plain()

    def score(self, options: Any, *, context: Any = None) -> tuple[Scored, ...]:
        """Return estimate, width and share of seen columns of each option, without choosing."""
        asked = self._asked(options, context)
        with self._lock:
            return self._core.score(asked)

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
        known = self.columns | self.context_columns
        with self._lock:
            return self._core.explain(asked, item, checked_costs(costs, known), made)

    # What it knows

    @property
    def columns(self) -> dict[str, Column]:
        """What became of each column, by name."""
        known = {} if self.id is None else {self.id: Column(self.id, "id")}
        known |= {name: Column(name, "ignored") for name in self.ignore}
        return known | dict(self._core.encoders.options.columns)

    @property
    def context_columns(self) -> dict[str, Column]:
        """What became of each column of the context, by name."""
        return dict(self._core.encoders.context.columns)

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

    def _asked(self, options: Any, context: Any) -> Asked:
        """Read options and a context; an empty dict is none."""
        if context is None or (isinstance(context, Mapping) and not context):
            return Asked(self._reader.read(options))
        if not self._core.policy.takes_context:
            self._core.policy.grow_context(1, {})  # says so
        return Asked(self._reader.read(options), self._reader.read_row(context))


def _id_of(decision: Any) -> str:
    return checked_id(decision.id if isinstance(decision, Decision) else decision)


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
