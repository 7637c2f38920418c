"""Whether chosen arms excite all directions that offered arms excite."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from halfseen import seeding
from halfseen.measures.tools import log_spaced, low_rank
from halfseen.policies.ambient import AmbientOful
from halfseen.policies.base import Policy
from halfseen.policies.same_arm import SameArm
from halfseen.values import FloatArray
from halfseen.worlds.base import Realization
from halfseen.worlds.lowrank import LowRankRealization


class Offer(NamedTuple):
    """Arms of one round, shape (n_arms, dim), and their rewards, shape (n_arms,)."""

    arms: FloatArray
    rewards: FloatArray


def excitation(realization: Realization, *, points: int = 15) -> dict[str, list[float]]:
    """Return the smallest eigenvalues of the second moments of offered and of chosen arms.

    `world_`: OFUL given the subspace plays the realization. `example_`: every slate is {e₁, e₂} and
    e₁ pays 1, e₂ nothing; `example_fixed` always chooses e₁, `example_oful` is OFUL with the noise
    of the realization. Moments are averages over the rounds so far, and over all arms of a slate
    for `offered`; so a value that does not fall is an eigenvalue that grows linearly. Positions are
    `points` rounds, evenly spaced in their logarithm.
    """
    truth = low_rank(realization)
    noise_scale, horizon = truth.world.noise_scale, truth.world.horizon
    rounds = log_spaced(horizon, points)
    rank = truth.world.rank
    oful = AmbientOful(dim=rank, noise_scale=noise_scale)
    world_offered, world_chosen = smallest_eigenvalues(oful, _known_subspace(truth), rounds)
    noise = noise_scale * seeding.stream(truth.seed, "measure", "excitation").normal(size=horizon)
    example = [Offer(np.eye(2), np.array([1.0, 0.0]) + each) for each in noise]
    _, always = smallest_eigenvalues(SameArm(dim=2), example, rounds)
    two = AmbientOful(dim=2, noise_scale=noise_scale)
    offered, chosen = smallest_eigenvalues(two, example, rounds)
    return {
        "round": [float(round) for round in rounds],
        "world_offered": world_offered,
        "world_chosen": world_chosen,
        "example_offered": offered,
        "example_oful": chosen,
        "example_fixed": always,
    }


def smallest_eigenvalues(
    policy: Policy, offers: Iterable[Offer], rounds: list[int]
) -> tuple[list[float], list[float]]:
    """Let a policy play, and return the smallest eigenvalues of both second moments at `rounds`."""
    offered, chosen = np.zeros((policy.dim, policy.dim)), np.zeros((policy.dim, policy.dim))
    of_offered, of_chosen = [], []
    for round, (arms, rewards) in enumerate(offers, start=1):
        decision = policy.choose(arms)
        policy.learn(decision, rewards[decision.arm])
        offered += arms.T @ arms / len(arms)
        chosen += np.outer(arms[decision.arm], arms[decision.arm])
        if round in rounds:
            of_offered.append(float(np.linalg.eigvalsh(offered / round)[0]))
            of_chosen.append(float(np.linalg.eigvalsh(chosen / round)[0]))
    return of_offered, of_chosen


def _known_subspace(truth: LowRankRealization) -> Iterator[Offer]:
    """Yield the rounds in the coordinates of the true subspace."""
    for round in truth.rounds():
        rewards = np.array([round.reward(arm) for arm in range(len(round.means))])
        yield Offer(round.arms @ truth.basis, rewards)
