"""How long a choice takes when it opens an epoch, and on average; `TofuPov` with many features.

Processor time of one thread, once compiled, the first opening included.
"""

import time
import tracemalloc
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.measuring import Row
from halfseen import LatentUcb, LowRankWorld, TofuPov
from halfseen.tofu import Grouse, Oja, Petrels, SequentialEstimator


class Round(NamedTuple):
    """What is offered in a round, and what each arm pays."""

    arms: Any
    rewards: np.ndarray
    context: np.ndarray | None = None
    items: np.ndarray | None = None


def holes(random: np.random.Generator, rows: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return rows with hidden entries; `shares` says how many in each column."""
    return np.where(random.random(rows.shape) < shares, np.nan, rows)


def shop(n_rounds: int = 1500) -> Iterator[Round]:
    """200 items with three numbers and two categories, a context of 3 columns, 9 % clicks."""
    random = np.random.default_rng(0)
    n, sizes = 200, (8, 20)
    levels = [np.eye(size)[random.integers(size, size=n)] for size in sizes]
    shares = np.array([0.08, 0.2, 0.52, 0.3, 0.1])
    items = np.hstack([random.normal(size=(n, 3)), *levels])
    for column, share in enumerate(shares):  # a category is hidden as a whole
        first = [0, 1, 2, 3, 3 + sizes[0]][column]
        width = [1, 1, 1, *sizes][column]
        items[random.random(n) < share, first : first + width] = np.nan
    full = np.nan_to_num(items)
    taste, quality = random.normal(size=(3, items.shape[1])), random.normal(size=n)
    for _ in range(n_rounds):
        context = random.normal(size=3)
        logits = -2.9 + 0.5 * full @ (taste.T @ context) / 2.0 + 0.4 * quality
        clicks = random.random(n) < 1.0 / (1.0 + np.exp(-logits))
        seen = holes(random, context, np.array([0.1, 0.2, 0.4]))
        yield Round(items, clicks.astype(float), seen, np.arange(n))


def wide_context(n_rounds: int = 3000) -> Iterator[Round]:
    """64 half-seen context columns of rank 10, ten options by name."""
    random = np.random.default_rng(1)
    loadings, theta = random.normal(size=(10, 64)), random.normal(size=(10, 10)) / 3.0
    arms = np.full((10, 1), np.nan)
    for _ in range(n_rounds):
        latent = random.normal(size=10)
        context = latent @ loadings + 0.3 * random.normal(size=64)
        rewards = theta @ latent + 0.3 * random.normal(size=10)
        yield Round(arms, rewards, holes(random, context, np.full(64, 0.4)), np.arange(10))


def wide_arms(n_rounds: int = 1000) -> Iterator[Round]:
    """107 columns, ten options, no context."""
    world = LowRankWorld(
        dim=107, rank=107, n_arms=10, horizon=n_rounds, observe_prob=0.7, noise_scale=0.3, decay=1.0
    )
    for each in world.realize(0).rounds():
        yield Round(each.slate, each.means + each.noise)


WORKLOADS = {
    "a shop: 200 items with categories, a context of 3 columns, rewards 50 rounds late": (
        shop, 50, 100.0, 2.0,
    ),
    "64 half-seen context columns, 10 options by name": (wide_context, 0, 100.0, 3.0),
    "107 columns, 10 options, no context": (wide_arms, 0, 100.0, 0.5),
}  # fmt: skip
"""Rounds, by how many of them rewards are late, and the budgets: ms of the slowest choice, and of
a round on average."""


def rows(quick: bool) -> list[Row]:
    """Return the slowest choice and the mean round of every workload, refits included."""
    found = [_row(name, *given, quick) for name, given in WORKLOADS.items()]
    return [*found, *(_many_features(rule, quick) for rule in (Grouse(), Oja(), Petrels()))]


def _many_features(rule: SequentialEstimator, quick: bool) -> Row:
    """Return time and memory with more features than a matrix of all pairs may have."""
    dim, rank, n_rounds = 20_000, 5, 30 if quick else 200
    world = LowRankWorld(dim=dim, rank=rank, n_arms=8, horizon=n_rounds, observe_prob=0.3)
    policy = TofuPov(
        dim=dim, rank=rank, observe_prob=0.3, burn_in=10, burn_in_policy="uniform",
        subspace=rule, replay="none",
    )  # fmt: skip
    seconds = 0.0
    tracemalloc.start()
    for each in world.realize(0).rounds():
        start = time.process_time()
        policy.learn(policy.choose(each.slate), float(each.means[0]))
        seconds += time.process_time() - start
    megabytes = 1e-6 * tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    per_round = 1e3 * seconds / n_rounds
    return Row(
        f"`TofuPov` with {rule!r}, {dim:,} features of rank {rank}, 8 options, {n_rounds} rounds",
        f"mean round {per_round:.0f} ms of processor time, at most {megabytes:.0f} MB",
        "≤ 50 ms, ≤ 50 MB",
        per_round <= 50 and megabytes <= 50,
    )


def _row(name: str, rounds: Any, delay: int, slowest: float, mean: float, quick: bool) -> Row:
    play(list(rounds(100)), delay)  # compiles
    choices, total = play(list(rounds(100) if quick else rounds()), delay)
    longest, per_round = 1e3 * max(choices), 1e3 * total / len(choices)
    return Row(
        f"`LatentUcb()`, {name}, {len(choices):,} rounds",
        f"slowest choice {longest:.0f} ms, mean round {per_round:.2f} ms of processor time",
        f"≤ {slowest:g} ms, ≤ {mean:g} ms",
        longest <= slowest and per_round <= mean,
    )


def play(rounds: list[Round], delay: int) -> tuple[list[float], float]:
    """Return the seconds of each choice, and of all rounds; rewards come some rounds late."""
    policy, choices, total = LatentUcb(), [], 0.0
    waiting: deque[tuple[Any, float]] = deque()
    for each in rounds:
        start = time.process_time()
        decision = policy.choose(each.arms, context=each.context, items=each.items)
        choices.append(time.process_time() - start)
        waiting.append((decision, float(each.rewards[decision.arm])))
        if len(waiting) > delay:
            policy.learn(*waiting.popleft())
        total += time.process_time() - start
    return choices, total
