"""Rounds to play, and what can be compared of policies and decisions."""

from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any, NamedTuple, TypeVar

import numpy as np

from halfseen import archive
from halfseen.policies.base import Policy
from halfseen.testing.check import expect
from halfseen.values import Decision, FloatArray

P = TypeVar("P", bound=Policy)
Factory = Callable[[], Policy]

FEW = (4, 1, 7, 3, 5, 2, 6, 8)
"""Numbers of arms in successive rounds."""

_DIM = 6  # for a policy that takes its dimension from the first slate


class Offer(NamedTuple):
    """One round: arms with NaN where hidden, and what each would pay."""

    table: FloatArray
    rewards: FloatArray


def offers(
    n_rounds: int, policy: Policy, *, sizes: tuple[int, ...] = FEW, seed: int = 0
) -> list[Offer]:
    """Return rounds for a policy."""
    return offers_in(policy.dim or _DIM, n_rounds, sizes, seed)


def offers_in(dim: int, n_rounds: int, sizes: tuple[int, ...], seed: int) -> list[Offer]:
    """Return rounds of arms of rank 2, each arm with at least 3 seen entries."""
    random = np.random.default_rng(seed)
    basis = np.linalg.qr(random.standard_normal((dim, min(dim, 2))))[0]
    theta = basis @ np.array([0.8, -0.6])[:dim]
    rounds = []
    for index in range(n_rounds):
        arms = random.standard_normal((sizes[index % len(sizes)], basis.shape[1])) @ basis.T
        seen = random.random(arms.shape) < 0.7
        seen[seen.sum(axis=1) < 3, :3] = True
        noise = 0.1 * random.standard_normal()
        rounds.append(Offer(np.where(seen, arms, np.nan), arms @ theta + noise))
    return rounds


def walk(policy: Policy, rounds: Iterable[Offer]) -> list[Decision]:
    """Choose and learn in every round and return the decisions."""
    decisions = []
    for table, rewards in rounds:
        decision = policy.choose(table)
        policy.learn(decision, float(rewards[decision.arm]))
        decisions.append(decision)
    return decisions


def state_bytes(policy: Policy) -> bytes:
    """Return all that a file of a policy would contain."""
    return archive.to_bytes(policy.to_dict())


def state_size(node: Any) -> int:
    """Return the memory that a state takes, in bytes: arrays and everything else as text."""
    if isinstance(node, np.ndarray):
        return node.nbytes
    if isinstance(node, dict):
        return sum(len(name) + state_size(child) for name, child in node.items())
    if isinstance(node, list | tuple):
        return sum(state_size(child) for child in node)
    return len(str(node))


def copy_of(policy: P) -> P:
    """Return a saved and loaded copy of a policy."""
    return type(policy).from_dict(archive.from_bytes(state_bytes(policy)))


def twin_of(policy: P) -> P:
    """Return a copy of a policy that was never in a file, which is faster than `copy_of`."""
    return type(policy).from_dict(deepcopy(policy.to_dict()))


def looks(decision: Decision) -> tuple[Any, ...]:
    """Return everything of a decision, comparable bit by bit."""
    return (
        decision.arm,
        decision.round,
        decision.epoch,
        decision.values.tobytes(),
        decision.mask.tobytes(),
        decision.scores.tobytes(),
        decision.estimates.tobytes(),
        decision.widths.tobytes(),
        decision.probabilities.tobytes(),
    )


def expect_same(decision: Decision, expected: Decision, where: str) -> None:
    """Raise an AssertionError unless two decisions are the same."""
    arms = f"arm {decision.arm} instead of {expected.arm}"
    how = arms if decision.arm != expected.arm else "the same arm, but other scores"
    expect(looks(decision) == looks(expected), f"round {expected.round}, {where}: {how}")


def expect_scores(decision: Decision, n_arms: int) -> None:
    """Raise an AssertionError unless every arm has a finite score, estimate + width."""
    scores, estimates, widths = parts = decision.scores, decision.estimates, decision.widths
    where = f"round {decision.round}"
    for part in parts:
        expect(part.shape == (n_arms,), f"{where}: {part.shape[0]} scores for {n_arms} arms")
        if not np.isfinite(part).all():  # the message takes longer than the check
            raise AssertionError(f"{where}: a score is not finite: {part}")
    expect(np.array_equal(scores, estimates + widths), f"{where}: score ≠ estimate + width")
