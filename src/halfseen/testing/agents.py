"""Contracts of an agent around any policy."""

import tempfile
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np

from halfseen.agent import Agent
from halfseen.errors import AlreadyRewardedError, HalfseenError, UnknownDecisionError
from halfseen.testing.check import Check, expect, expect_refusal, run_checks
from halfseen.values import Decision

AgentFactory = Callable[[], Agent]

Row = dict[str, Any]


def check_agent(factory: AgentFactory, *, skip: Collection[str] = ()) -> None:
    """Check that agents keep their contracts, whatever their policy.

    Parameters
    ----------
    factory : callable
        Called without arguments, returns a fresh agent without a journal, always with the same
        parameters.
    skip : names of checks

    Raises
    ------
    AssertionError
        A claim does not hold; the message says which one, and how it failed.

    Examples
    --------
    >>> from halfseen import Agent, AmbientOful
    >>> check_agent(lambda: Agent(policy=AmbientOful(dim=4)))
    """
    run_checks(agent_checks(), factory, skip)


def agent_checks() -> tuple[Check, ...]:
    """Return the single checks, each to be called with a factory.

    Examples
    --------
    >>> agent_checks()[0].claim
    'The order of columns does not matter, nor whether a hidden value is None or absent.'
    """
    return tuple(value for value in globals().values() if isinstance(value, Check))


@Check
def names_decide_and_not_positions(factory: AgentFactory) -> None:
    """The order of columns does not matter, nor whether a hidden value is None or absent."""
    agent, other = factory(), factory()
    for at, (rows, rewards) in enumerate(_rounds(agent, 20)):
        sparse = [
            {name: row[name] for name in reversed(row) if row[name] is not None} for row in rows
        ]
        ours, theirs = agent.choose(rows), other.choose(sparse if at else rows)
        expect(_looks(ours) == _looks(theirs), f"round {ours.round}: another decision")
        agent.learn(ours, rewards[0])
        other.learn(theirs, rewards[0])


@Check
def a_reward_is_learned_once_by_id(factory: AgentFactory) -> None:
    """Rewards come late and in any order; a second one and an unknown one are refused."""
    agent = factory()
    decisions = [agent.choose(rows) for rows, _ in _rounds(agent, 12)]
    expect(len(agent.pending) == 12, f"{len(agent.pending)} of 12 decisions wait")
    for index in np.random.default_rng(0).permutation(12):
        agent.learn(decisions[index].id, 0.5)
    expect(not agent.pending, "decisions wait after all rewards came")
    for id, error in ((decisions[0].id, AlreadyRewardedError), ("?", UnknownDecisionError)):
        expect_refusal(agent.learn, id, 0.5, error=error, what=f"a reward of {id}")


@Check
def a_refused_table_changes_nothing(factory: AgentFactory) -> None:
    """A table that is refused, by the agent or by its policy, changes nothing."""
    agent, other = factory(), factory()
    rounds = _rounds(agent, 12)
    for rows, rewards in rounds:
        bad: tuple[list[Row], ...] = [rows[0] | {"number 0": np.inf}], [rows[0] | {"new": [1]}], []
        for options in bad:
            expect_refusal(agent.choose, options, error=HalfseenError, what=repr(options))
        ours, theirs = agent.choose(rows), other.choose(rows)
        expect(_looks(ours) == _looks(theirs), f"round {ours.round}: another decision")
        agent.learn(ours, rewards[0])
        other.learn(theirs, rewards[0])
    expect(agent.columns == other.columns, "a refused table left columns")


@Check
def scores_change_nothing(factory: AgentFactory) -> None:
    """`score` gives finite figures for each option and changes nothing."""
    agent, other = factory(), factory()
    for rows, rewards in _rounds(agent, 12):
        for scored in agent.score(rows):
            expect(np.isfinite(scored[1:]).all(), f"a score is not finite: {scored}")
        ours, theirs = agent.choose(rows), other.choose(rows)
        expect(_looks(ours) == _looks(theirs), f"round {ours.round}: another decision")
        agent.learn(ours, rewards[0])
        other.learn(theirs, rewards[0])


@Check
def a_log_may_come_in_any_parts(factory: AgentFactory) -> None:
    """After a log, decisions are the same in whatever parts it came."""
    whole, parts = factory(), factory()
    rounds = _rounds(whole, 10)
    rows = [row for rows, _ in rounds for row in rows]
    rewards = [reward for _, rewards in rounds for reward in rewards]
    whole.observe(rows, rewards)
    parts.observe(rows[:3], rewards[:3])
    parts.observe(rows[3:], rewards[3:])
    for options, _ in rounds[:5]:
        same = _looks(parts.choose(options)) == _looks(whole.choose(options))
        expect(same, "another decision after a log that came in parts")


@Check
def a_saved_agent_goes_on(factory: AgentFactory) -> None:
    """A loaded agent knows names, levels and what waits, and decides the same."""
    agent = factory()
    rounds = _rounds(agent, 16)
    for rows, rewards in rounds:
        agent.learn(agent.choose(rows), rewards[0])
    waiting = agent.choose(rounds[0][0])
    with tempfile.TemporaryDirectory() as folder:
        agent.save(Path(folder) / "agent")
        loaded = type(agent).load(Path(folder) / "agent")
    expect(loaded.columns == agent.columns, "columns differ")
    expect(loaded.pending == agent.pending, "what waits differs")
    for each in (agent, loaded):
        each.learn(waiting, 0.5)
    for rows, _ in rounds[:5]:
        expect(_looks(loaded.choose(rows)) == _looks(agent.choose(rows)), "another decision")


def _looks(decision: Decision) -> dict[str, Any]:
    return {name: value for name, value in decision.to_dict().items() if name != "id"}


def _rounds(agent: Agent, n_rounds: int) -> list[tuple[list[Row], list[float]]]:
    """Return rows that fit the policy's number of features, and a reward for each row."""
    random = np.random.default_rng(0)
    policy = agent.policy
    can_grow = policy is None or policy.dim is None or policy.can("grow")
    room = 6 if policy is None or can_grow else policy.dim
    n_numbers = max(1, min(4, room - 2))
    levels = ("red", "blue") if room >= n_numbers + 2 else ()
    rounds: list[tuple[list[Row], list[float]]] = []
    for _ in range(n_rounds):
        rows, rewards = [], []
        for at in range(4):
            numbers = random.standard_normal(n_numbers).round(3).tolist()
            row: Row = {f"number {index}": value for index, value in enumerate(numbers)}
            if levels:
                row["colour"] = levels[at % 2]
            hidden = random.random(len(row)) < 0.3 * (len(rounds) > 0)  # all is seen once
            rows.append(
                {name: None if hide else row[name] for name, hide in zip(row, hidden, strict=True)}
            )
            rewards.append(numbers[0] + 0.1 * float(random.standard_normal()))
        rounds.append((rows, rewards))
    return rounds
