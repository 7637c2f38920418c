"""Rounds to play, and ways to look at a policy from outside, shared by the tests of policies."""

from typing import NamedTuple

import numpy as np

from halfseen import archive
from halfseen.policies.registry import policy_from_tree

# Few arms in most rounds; now and then so many that the block in which arms wait for one matrix
# product (1024 of them) fills up or is too small.
SIZES = (4, 1, 7, 3, 5, 2, 300, 6, 4, 1100, 3, 8, 1, 5, 700, 4)


class Offer(NamedTuple):
    """One round: arms with NaN where hidden, and what each would pay."""

    table: np.ndarray
    rewards: np.ndarray


def offers(n_rounds, *, dim=6, sizes=SIZES, seed=0):
    """Return rounds of arms of rank 2, each with at least 3 seen entries."""
    random = np.random.default_rng(seed)
    basis = np.linalg.qr(random.standard_normal((dim, 2)))[0]
    theta = basis @ np.array([0.8, -0.6])
    rounds = []
    for index in range(n_rounds):
        arms = random.standard_normal((sizes[index % len(sizes)], 2)) @ basis.T
        seen = random.random(arms.shape) < 0.7
        seen[seen.sum(axis=1) < 3, :3] = True
        noise = 0.1 * random.standard_normal()
        rounds.append(Offer(np.where(seen, arms, np.nan), arms @ theta + noise))
    return rounds


def few_arms(n_rounds, **others):
    """Return rounds with 4 arms each."""
    return offers(n_rounds, sizes=(4,), **others)


def walk(policy, rounds):
    """Choose and learn in every round and return the decisions."""
    decisions = []
    for table, rewards in rounds:
        decision = policy.choose(table)
        policy.learn(decision, rewards[decision.arm])
        decisions.append(decision)
    return decisions


def state_bytes(policy):
    """Return everything a policy is, as bytes."""
    return archive.to_bytes(policy.to_tree())


def state_size(node):
    """Return the memory that a state takes, in bytes: arrays and everything else as text."""
    if isinstance(node, np.ndarray):
        return node.nbytes
    if isinstance(node, dict):
        return sum(len(name) + state_size(child) for name, child in node.items())
    if isinstance(node, list | tuple):
        return sum(state_size(child) for child in node)
    return len(str(node))


def copy_of(policy):
    """Return the policy that a saved copy gives; its decisions carry the same names."""
    return policy_from_tree(archive.from_bytes(state_bytes(policy))[0])


def looks(decision):
    """Return all of a decision but its name, comparable bit by bit."""
    return (
        decision.arm,
        decision.round,
        decision.epoch,
        decision.values.tobytes(),
        decision.mask.tobytes(),
        decision.scores.tobytes(),
        decision.estimates.tobytes(),
        decision.widths.tobytes(),
    )


def regret_in(policy, world, seed):
    """Let a policy play a whole realization and return its regret and its choices."""
    total, arms = 0.0, []
    for round in world.realize(seed).rounds():
        decision = policy.choose(round.slate)
        arms.append(decision.arm)
        total += float(round.means.max() - round.means[decision.arm])
        policy.learn(decision, float(round.means[decision.arm]) + round.noise)
    return total, arms
