"""Contracts of an agent around any policy, one function per claim."""

import tempfile
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np

from halfseen import archive
from halfseen.agent import Agent
from halfseen.errors import (
    AlreadyRewardedError,
    ForgottenDecisionError,
    HalfseenError,
    InvalidInputError,
    InvalidRewardError,
    UnknownDecisionError,
)
from halfseen.policies.abilities import Grows
from halfseen.testing.policies import (
    Check,
    checks_in,
    expect,
    expect_refusal,
    offers_in,
    run_checks,
)
from halfseen.values import Decision

AgentFactory = Callable[[], Agent]

Row = dict[str, Any]


def check_agent(factory: AgentFactory, *, skip: Collection[str] = ()) -> None:
    """Check that agents keep their contracts, whatever their policy.

    Parameters
    ----------
    factory : callable
        Called without arguments, returns a fresh agent without a database, always with the same
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
    """Return the individual checks; call each with a factory.

    Examples
    --------
    >>> agent_checks()[0].claim
    'The order of columns does not matter, nor whether a hidden value is None or absent.'
    """
    return checks_in(globals())


# Tables


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
def arrays_are_chosen_from_as_by_the_policy(factory: AgentFactory) -> None:
    """Around arrays an agent decides as its policy does; the items are positions."""
    agent = factory()
    policy = deepcopy(agent.learner)
    dim = policy.dim or 6
    for at, (table, rewards) in enumerate(offers_in(dim, 12, (4, 3), seed=0)):
        options = table if at else np.ones((4, dim))  # every column enters in its place
        ours, theirs = agent.choose(options), policy.choose(options)
        for part in ("arm", "mask", "scores", "probabilities"):
            same = np.array_equal(getattr(ours, part), getattr(theirs, part))
            expect(same, f"round {theirs.round}: another {part}")
        expect(ours.item == ours.arm, f"item {ours.item} is arm {ours.arm}")
        agent.learn(ours.id, float(rewards[0]))
        policy.learn(theirs, float(rewards[0]))


@Check
def scores_change_nothing(factory: AgentFactory) -> None:
    """`score` gives finite figures for each option and changes nothing."""
    agent = factory()
    for rows, rewards in _rounds(agent, 12):
        before = _bytes_of(agent)
        for scored in agent.score(rows):
            expect(np.isfinite(scored[1:]).all(), f"a score is not finite: {scored}")
        expect(_bytes_of(agent) == before, "score changed the agent")
        agent.learn(agent.choose(rows), rewards[0])


# Ids and rewards


@Check
def a_reward_is_learned_once_by_id(factory: AgentFactory) -> None:
    """Rewards come late and in any order; a second one changes nothing, another is refused."""
    agent = factory()
    decisions = [agent.choose(rows) for rows, _ in _rounds(agent, 12)]
    expect(len({each.id for each in decisions}) == 12, "two decisions have one id")
    expect(len(agent.pending) == 12, f"{len(agent.pending)} of 12 decisions wait")
    for index in np.random.default_rng(0).permutation(12):
        agent.learn(decisions[index].id, 0.5)
    expect(not agent.pending, "decisions wait after all rewards came")
    before = _bytes_of(agent)
    for decision in decisions:
        for name in (decision, decision.id, [decision]):
            same, other = ([0.5], [0.25]) if isinstance(name, list) else (0.5, 0.25)
            agent.learn(name, same)
            expect_refusal(agent.learn, name, other, error=AlreadyRewardedError, what="a reward")
    expect(_bytes_of(agent) == before, "a second reward changed the agent")


@Check
def a_decision_counts_by_its_id(factory: AgentFactory) -> None:
    """A decision and its id teach the same; so do many rewards at once."""
    agent = factory()
    rounds = _rounds(agent, 12)
    decisions = [agent.choose(rows) for rows, _ in rounds]
    rewards = [rewards[0] for _, rewards in rounds]
    by_id, at_once = _copy(agent), _copy(agent)
    for decision, reward in zip(decisions, rewards, strict=True):
        agent.learn(decision, reward)
        by_id.learn(decision.id, reward)
    at_once.learn([decision.id for decision in decisions], rewards)
    for other, what in ((by_id, "an id"), (at_once, "a batch")):
        same = _learned(other) == _learned(agent)
        expect(same, f"{what} taught something else than the decision")


@Check
def beyond_max_pending_the_oldest_is_forgotten(factory: AgentFactory) -> None:
    """At most `max_pending` decisions wait for their rewards, the latest ones."""
    made = factory()
    settings = {name: getattr(made, name) for name in made.parameters}
    agent = type(made)(**settings | {"max_pending": 3})
    decisions = [agent.choose(rows) for rows, _ in _rounds(agent, 12)]
    expect(len(agent.pending) == 3, f"{len(agent.pending)} decisions wait with max_pending = 3")
    expect(agent.health()["forgotten"] == 9, f"{agent.health()['forgotten']} of 9 are forgotten")
    before = _bytes_of(agent)
    for decision in decisions[:-3]:
        given = decision.id, 0.5
        expect_refusal(agent.learn, *given, error=ForgottenDecisionError, what="a forgotten one")
    expect(_bytes_of(agent) == before, "a forgotten decision changed the agent")
    agent.learn(decisions[-3:], [0.5, 0.5, 0.5])
    expect(not agent.pending, "decisions wait after all rewards came")


@Check
def refused_calls_change_nothing(factory: AgentFactory) -> None:
    """A bad table, a foreign decision or a bad reward, also among good ones, changes nothing."""
    agent, other = factory(), factory()
    rounds = _rounds(agent, 6)
    for rows, _ in rounds:
        theirs, first = other.choose(rows), agent.choose(rows)
    row = rows[0]
    calls: tuple[tuple[Callable[..., object], tuple[Any, ...], type[HalfseenError]], ...] = (
        (agent.choose, ([],), InvalidInputError),
        (agent.choose, ([row | {"number 0": np.inf}],), InvalidInputError),
        (agent.score, ([row | {"new": [1]}],), InvalidInputError),
        (agent.observe, ([row | {"number 0": np.inf}], [1.0]), InvalidInputError),
        (agent.learn, (theirs, 0.5), UnknownDecisionError),
        (agent.learn, (theirs.id, 0.5), UnknownDecisionError),
        (agent.learn, (None, 0.5), UnknownDecisionError),
        (agent.learn, (first, np.nan), InvalidRewardError),
        (agent.learn, ([first, theirs], [1.0, 1.0]), UnknownDecisionError),
        (agent.learn, ([first, first], [1.0, 1.0]), InvalidInputError),
        (agent.learn, ([first], [np.nan]), InvalidRewardError),
        (agent.learn, ([first], 1.0), InvalidRewardError),
    )
    before = _bytes_of(agent)
    for call, given, error in calls:
        what = f"{call.__name__}{given}"
        expect_refusal(call, *given, error=error, what=what)
        expect(_bytes_of(agent) == before, f"{what} changed the agent")


@Check
def threads_may_share_an_agent(factory: AgentFactory) -> None:
    """From several threads each decision is made once, and each reward learned once."""
    agent = factory()
    rounds = _rounds(agent, 10)
    agent.learn(agent.choose(rounds[0][0]), 0.5)

    def serve(_: int) -> list[str]:
        ids = []
        for rows, rewards in rounds:
            ids.append(agent.choose(rows).id)
            agent.learn(ids[-1], rewards[0])
        return ids

    with ThreadPoolExecutor(4) as pool:
        ids = {id for found in pool.map(serve, range(4)) for id in found}
    expect(len(ids) == 40, f"{len(ids)} different ids of 40 decisions")
    expect(agent.health()["decisions"] == 41, f"{agent.health()['decisions']} of 41 decisions")
    expect(not agent.pending, "decisions wait after all rewards came")


# Files


@Check
def a_saved_agent_goes_on(factory: AgentFactory) -> None:
    """A loaded agent knows names, levels, what waits and what was rewarded, and decides the same.

    Two that were loaded from one file give different ids, and each learns what waits once.
    """
    agent = factory()
    rounds = _rounds(agent, 16)
    for rows, rewards in rounds:
        rewarded = agent.choose(rows)
        agent.learn(rewarded, rewards[0])
    waiting = agent.choose(rounds[0][0])
    with tempfile.TemporaryDirectory() as folder:
        agent.save(Path(folder) / "agent")
        loaded, other = (type(agent).load(Path(folder) / "agent") for _ in range(2))
    expect(loaded.columns == agent.columns, "columns differ")
    expect(loaded.pending == agent.pending, "what waits differs")
    expect_refusal(loaded.learn, rewarded, 0.5, error=AlreadyRewardedError, what="a reward before")
    for each in (agent, loaded, other):
        each.learn(waiting.id, 0.5)
        expect_refusal(each.learn, waiting, 0.25, error=AlreadyRewardedError, what="it again")
    for rows, _ in rounds[:5]:
        ours, theirs, others = (each.choose(rows) for each in (agent, loaded, other))
        expect(_looks(ours) == _looks(theirs), "another decision")
        expect(len({ours.id, theirs.id, others.id}) == 3, "two agents give one id")


# Tools


def _looks(decision: Decision) -> dict[str, Any]:
    return {name: value for name, value in decision.to_dict().items() if name != "id"}


def _bytes_of(agent: Agent) -> bytes:
    """Return all that a file of an agent would contain."""
    return archive.to_bytes(agent.to_dict())


def _learned(agent: Agent) -> bytes:
    """Return all but the number of events."""
    plain = agent.to_dict()
    del plain["state"]["number"]
    return archive.to_bytes(plain)


def _copy(agent: Agent) -> Agent:
    return type(agent).from_dict(archive.from_bytes(_bytes_of(agent)))


def _rounds(agent: Agent, n_rounds: int) -> list[tuple[list[Row], list[float]]]:
    """Return rows that fit the policy's number of features, and a reward for each row."""
    random = np.random.default_rng(0)
    policy = agent.learner
    can_grow = policy.dim is None or isinstance(policy, Grows)
    n_numbers = 4 if can_grow else policy.dim
    rounds: list[tuple[list[Row], list[float]]] = []
    for number in range(n_rounds):
        table = random.standard_normal((4, n_numbers)).round(3)
        rows = []
        for at, values in enumerate(table.tolist()):
            row: Row = {f"number {index}": value for index, value in enumerate(values)}
            if can_grow:
                row["colour"] = ("red", "blue")[at % 2]
            if number:  # all is seen once
                row = {name: row[name] if random.random() < 0.7 else None for name in row}
            rows.append(row)
        rounds.append((rows, (table[:, 0] + 0.1 * random.standard_normal(4)).tolist()))
    return rounds
