"""Contracts of a policy: which rewards it takes, what a failed call leaves, what it keeps."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from halfseen.errors import InvalidRewardError, InvalidSlateError, UnknownDecisionError
from halfseen.policies.base import Policy
from halfseen.testing.check import Check, expect, expect_refusal
from halfseen.testing.rounds import (
    Factory,
    expect_scores,
    offers,
    state_bytes,
    state_size,
    twin_of,
    walk,
)
from halfseen.values import Decision, Slate

# Before the first round, early, and later.
_MOMENTS = (0, 3, 5, 8)


# Rewards


@Check
def late_rewards_are_accepted(factory: Factory) -> None:
    """Rewards may come late and in any order."""
    policy = factory()
    rounds = offers(40, policy)
    decisions = [policy.choose(table) for table, _ in rounds]
    expect(policy.n_open == 40, f"{policy.n_open} of 40 decisions are open")
    for index in np.random.default_rng(0).permutation(40):
        policy.learn(decisions[index], rounds[index].rewards[decisions[index].arm])
    expect(policy.n_open == 0, f"{policy.n_open} decisions are open after all rewards came")
    expect_scores(policy.choose(rounds[0].table), len(rounds[0].table))


@Check
def a_reward_counts_once(factory: Factory) -> None:
    """The second reward of a decision is refused and changes nothing."""
    policy = factory()
    decisions = walk(policy, offers(14, policy))
    before = state_bytes(policy)
    for decision in decisions:
        for name in (decision, decision.id):
            expect_refusal(
                policy.learn, name, 0.5, error=UnknownDecisionError, what="a second reward"
            )
    expect(state_bytes(policy) == before, "a second reward changed the policy")


@Check
def what_the_policy_remembers_decides(factory: Factory) -> None:
    """A decision counts by its id: as it is, from JSON, edited, or the id alone."""
    policy = factory()
    by_id, by_json, edited = twin_of(policy), twin_of(policy), twin_of(policy)
    for table, rewards in offers(30, policy):
        decision = policy.choose(table)
        reward = float(rewards[decision.arm])
        policy.learn(decision, reward)
        by_id.learn(by_id.choose(table).id, reward)
        by_json.learn(Decision.from_json(by_json.choose(table).to_json()), reward)
        plain = edited.choose(table).to_dict()
        plain |= {"round": 2**63, "epoch": 7, "values": [9.0, *plain["values"]]}
        edited.learn(Decision.from_dict(plain), reward)
    expected = state_bytes(policy)
    for other, what in ((by_id, "an id"), (by_json, "JSON"), (edited, "an edited decision")):
        expect(state_bytes(other) == expected, f"{what} taught something else than the decision")


@Check
def beyond_max_open_the_oldest_is_forgotten(factory: Factory) -> None:
    """At most `max_open` decisions wait for their rewards, the latest ones."""
    made = factory()
    policy = type(made)(**made.settings() | {"max_open": 3})
    decisions = [policy.choose(table) for table, _ in offers(20, policy)]
    expect(policy.n_open == 3, f"{policy.n_open} decisions are open with max_open = 3")
    before = state_bytes(policy)
    for decision in decisions[:-3]:
        expect_refusal(
            policy.learn, decision, 0.5, error=UnknownDecisionError, what="a forgotten decision"
        )
    expect(state_bytes(policy) == before, "a forgotten decision changed the policy")
    for decision in decisions[-3:]:
        policy.learn(decision, 0.5)
    expect(policy.n_open == 0, f"{policy.n_open} decisions are open after all rewards came")


# A failed call changes nothing


@Check
def bad_slates_change_nothing(factory: Factory) -> None:
    """Options that are not a slate are refused by `choose` and `absorb`, and change nothing."""
    for policy, _, before in _moments(factory):
        for what, options in _bad_slates(policy.dim):
            for call in (policy.choose, policy.absorb):
                expect_refusal(call, options, error=InvalidSlateError, what=what)
            expect(state_bytes(policy) == before, f"{what} changed the policy")


@Check
def bad_rewards_change_nothing(factory: Factory) -> None:
    """A reward that is not a finite number is refused and changes nothing."""
    bad: tuple[Any, ...] = (np.nan, np.inf, -1e300, 10**400, None, "1.0", 1.0 + 0.0j, [0.5])
    for policy, decisions, before in _moments(factory):
        for reward in bad:
            for decision in decisions:
                what = f"the reward {reward!r:.9}"
                expect_refusal(policy.learn, decision, reward, error=InvalidRewardError, what=what)
            expect(state_bytes(policy) == before, f"the reward {reward!r:.9} changed the policy")


@Check
def unknown_decisions_change_nothing(factory: Factory) -> None:
    """A decision of another policy, or something else, is refused and changes nothing."""
    for policy, _, before in _moments(factory):
        twin = factory()
        theirs = [twin.choose(table) for table, _ in offers(policy.round + 1, twin, sizes=(4,))]
        nonsense: tuple[Any, ...] = ("id", None, 0, {})
        for unknown in (*theirs[-2:], theirs[-1].id, *nonsense):
            expect_refusal(
                policy.learn, unknown, 0.5, error=UnknownDecisionError, what=repr(unknown)
            )
            expect(state_bytes(policy) == before, f"{unknown!r} changed the policy")


@Check
def hooks_replace_and_do_not_edit(factory: Factory) -> None:
    """A hook that fails at its end leaves no trace: it replaces what attributes hold."""
    for policy, decisions, before in _moments(factory):
        table = offers(1, policy, sizes=(4,))[0].table
        calls: dict[str, Callable[[], object]] = {
            "decide": partial(policy.choose, table),
            "observe": partial(policy.absorb, table),
        }
        if decisions:
            calls["update"] = partial(policy.learn, decisions[-1], 0.5)
        for hook, call in calls.items():
            with _failing_at_its_end(policy, hook):
                expect_refusal(call, error=_AtItsEndError, what=f"a call whose {hook} fails")
            expect(
                state_bytes(policy) == before,
                f"{hook} changes in place what an attribute holds: replace it instead",
            )


# Memory


@Check
def memory_is_bounded(factory: Factory) -> None:
    """The state does not grow with the number of rounds, once some were played."""
    policy = factory()
    rounds = offers(4, policy, sizes=(256,))

    def largest(n_rounds: int) -> int:
        sizes = []
        for index in range(n_rounds):
            walk(policy, [rounds[index % 4]])
            sizes.append(state_size(policy.to_tree()))
        return max(sizes[-8:])

    early, late = largest(32), largest(64)
    # Less than one number per round; a record per epoch is allowed.
    room = max(8 * 64, early // 20)
    expect(late < early + room, f"{early} bytes after 32 rounds, {late} after 96")


# Tools


class _AtItsEndError(Exception):
    """What a hook raises after it has done its work."""


@contextmanager
def _failing_at_its_end(policy: Policy, hook: str) -> Iterator[None]:
    done = getattr(policy, hook)

    def fails(*given: Any) -> None:
        done(*given)
        raise _AtItsEndError

    policy.__dict__[hook] = fails
    try:
        yield
    finally:
        del policy.__dict__[hook]


def _moments(factory: Factory) -> Iterator[tuple[Policy, list[Decision], bytes]]:
    """Yield a policy at several times, its open decisions (two after any round) and its bytes."""
    for n_rounds in _MOMENTS:
        policy = factory()
        rounds = offers(n_rounds, policy, sizes=(4,))
        walk(policy, rounds[:-2])
        decisions = [policy.choose(table) for table, _ in rounds[-2:]]
        yield policy, decisions, state_bytes(policy)


def _bad_slates(dim: int | None) -> Iterator[tuple[str, Any]]:
    n_features = dim or 6
    table = np.ones((3, n_features))
    yield "no options", None
    yield "one arm without its slate", table[0]
    yield "a slate without arms", table[:0]
    yield "a table of texts", [["x"] * n_features]
    yield "an infinite entry", np.where(np.arange(n_features) == 0, np.inf, table)
    yield "a huge entry", np.where(np.arange(n_features) == 0, -1e300, table)
    if dim is not None:
        yield "one feature too many", np.ones((3, n_features + 1))
        yield "a slate of another dimension", Slate(np.ones((3, n_features + 1)))
