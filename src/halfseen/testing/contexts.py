"""Contracts of a policy: a context is used, or refused."""

import numpy as np

from halfseen.errors import InvalidInputError, InvalidSlateError
from halfseen.policies.base import Policy
from halfseen.testing.check import Check, expect, expect_refusal
from halfseen.testing.rounds import (
    Factory,
    Offer,
    copy_of,
    expect_same,
    expect_scores,
    offers,
    state_bytes,
    twin_of,
)
from halfseen.values import Decision, FloatArray

_DIM = 4
_TOLERANCE = 1e-6


@Check
def a_context_is_never_dropped(factory: Factory) -> None:
    """A policy that cannot use a context refuses it, and changes nothing."""
    policy = factory()
    table, _ = offers(1, policy)[0]
    if policy.takes_context:
        policy.choose(table, context=np.ones(_DIM))
        expect(policy.context_dim == _DIM, f"context_dim is {policy.context_dim}")
        return
    before = state_bytes(policy)
    for call in (policy.choose, policy.absorb, policy.score):
        with_context = lambda call=call: call(table, context=[1.0])  # noqa: E731
        expect_refusal(with_context, error=InvalidInputError, what="a context")
    expect(state_bytes(policy) == before, "a refused context changed the policy")


@Check
def bad_contexts_change_nothing(factory: Factory) -> None:
    """A context that is not a row of `context_dim` numbers is refused and changes nothing."""
    policy = factory()
    if not policy.takes_context:
        return
    rounds, contexts = offers(9, policy), _contexts(9)
    _walk(policy, rounds[:8], contexts)
    before = state_bytes(policy)
    bad = {"too long": np.ones(_DIM + 1), "infinite": np.full(_DIM, np.inf), "text": ["a"] * _DIM}
    bad |= {"a table": np.ones((2, _DIM)), "a number": 3.0}
    for what, context in bad.items():
        for call in (policy.choose, policy.absorb, policy.score):
            given = lambda call=call, row=context: call(rounds[8].table, context=row)  # noqa: E731
            expect_refusal(given, error=InvalidSlateError, what=f"a context that is {what}")
        expect(state_bytes(policy) == before, f"a context that is {what} changed the policy")


@Check
def a_context_survives_files_and_late_rewards(factory: Factory) -> None:
    """A policy from a file goes on alike, and learns rewards of decisions made in a context."""
    policy = factory()
    if not policy.takes_context:
        return
    rounds, contexts = offers(24, policy), _contexts(24)
    _walk(policy, rounds[:16], contexts)
    waiting = policy.choose(rounds[16].table, context=contexts[16])
    other = copy_of(policy)
    for each in (policy, other):
        each.learn(waiting, 0.5)
    for ours, theirs in zip(
        *(_walk(each, rounds[17:], contexts[17:]) for each in (policy, other)), strict=True
    ):
        expect_same(theirs, ours, "after loading")


@Check
def no_context_is_a_hidden_one(factory: Factory) -> None:
    """In a round without a context, it is as if every entry of it were hidden."""
    policy = factory()
    if not policy.takes_context:
        return
    rounds, contexts = offers(20, policy), _contexts(20)
    _walk(policy, rounds[:10], contexts)
    other = twin_of(policy)
    for table, rewards in rounds[10:]:
        ours, theirs = policy.choose(table), other.choose(table, context=np.full(_DIM, np.nan))
        expect_same(theirs, ours, "with a hidden context")
        for each, decision in ((policy, ours), (other, theirs)):
            each.learn(decision, float(rewards[decision.arm]))


@Check
def growing_contexts_equal_having_known_all_features(factory: Factory) -> None:
    """A policy whose context was widened scores as if its features had been hidden before."""
    policy = factory()
    if not policy.takes_context:
        return
    grown, known = policy, twin_of(policy)
    known.widen(context_dim=_DIM + 2, context_levels={_DIM + 1: 0})
    rounds, contexts = offers(36, policy), _contexts(36, _DIM + 2)
    contexts[:18, _DIM] = np.nan
    contexts[:18, _DIM + 1] = np.where(np.isnan(contexts[:18, 0]), np.nan, 0.0)
    for index, (table, rewards) in enumerate(rounds):
        if index == 18:
            grown.widen(context_dim=_DIM + 2, context_levels={_DIM + 1: 0})
        dim = _DIM if index < 18 else _DIM + 2
        given = {"contexts": np.tile(contexts[index], (len(table), 1))}
        known.learn_logged(table, rewards, **given)
        grown.learn_logged(table, rewards, contexts=given["contexts"][:, :dim])
    expect(grown.context_dim == _DIM + 2, f"context_dim is {grown.context_dim}")
    for table, _ in rounds[:6]:
        ours, theirs = (each.score(table, context=contexts[-1]) for each in (grown, known))
        for part, other in zip(ours, theirs, strict=True):
            near = np.allclose(part, other, rtol=_TOLERANCE, atol=_TOLERANCE)
            expect(near, f"{part} instead of {other}")


def _contexts(n: int, dim: int = _DIM) -> FloatArray:
    """Return contexts of rank 2, a third of their entries hidden."""
    random = np.random.default_rng(7)
    table = random.standard_normal((n, 2)) @ random.standard_normal((2, dim))
    table[random.random(table.shape) < 1 / 3] = np.nan
    return table


def _walk(policy: Policy, rounds: list[Offer], contexts: FloatArray) -> list[Decision]:
    """Play rounds in their contexts and return the decisions."""
    decisions = []
    for (table, rewards), context in zip(rounds, contexts, strict=False):
        decision = policy.choose(table, context=context)
        expect_scores(decision, len(table))
        policy.learn(decision, float(rewards[decision.arm]))
        decisions.append(decision)
    return decisions
