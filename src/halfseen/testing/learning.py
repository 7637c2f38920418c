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
    copy_of,
    expect_scores,
    offers,
    state_bytes,
    state_size,
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
    for index in np.random.default_rng(0).permutation(40):
        policy.learn(decisions[index], rounds[index].rewards[decisions[index].arm])
    expect_scores(policy.choose(rounds[0].table), len(rounds[0].table))


@Check
def a_decision_is_learned_from_json_and_after_loading(factory: Factory) -> None:
    """What `learn` needs survives JSON, saving and later epochs, bit by bit."""
    policy, other = factory(), factory()
    rounds = offers(40, policy)
    kept: list[tuple[Decision, str, float]] = []
    for index, (table, rewards) in enumerate(rounds):
        decision, theirs = policy.choose(table), other.choose(table)
        kept.append((decision, theirs.to_json(), float(rewards[decision.arm])))
        if index % 9 == 8:  # all but every third reward comes late
            other = copy_of(other)
        if index % 3 == 0:
            decision, plain, reward = kept.pop(len(kept) // 2)
            policy.learn(decision, reward)
            other.learn(Decision.from_json(plain), reward)
    for decision, plain, reward in kept:
        policy.learn(decision, reward)
        other.learn(Decision.from_json(plain), reward)
    expect(state_bytes(other) == state_bytes(policy), "JSON taught something else")


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
def decisions_that_it_cannot_have_made_change_nothing(factory: Factory) -> None:
    """A decision of a later round or epoch, with more features, or of another class is refused."""
    for policy, decisions, before in _moments(factory):
        unknown: list[Any] = ["id", None, 0, {}]
        for decision in decisions[-1:]:
            plain = decision.to_dict()
            edits: tuple[dict[str, Any], ...] = (
                {"policy": "Another"},
                {"round": policy.round + 1},
                {"epoch": policy.round + 1},
                {"values": [*plain["values"], 1.0]},
            )
            unknown += [Decision.from_dict(plain | edit) for edit in edits]
        for each in unknown:
            expect_refusal(policy.learn, each, 0.5, error=UnknownDecisionError, what=repr(each))
            expect(state_bytes(policy) == before, f"{each!r} changed the policy")


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
            sizes.append(state_size(policy.to_dict()))
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
    """Yield a policy at several times, its last two decisions, not yet learned, and its bytes."""
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
