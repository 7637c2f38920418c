"""How long a choice of `LatentUcb` takes when it opens an epoch, and on average.

Processor time of one thread, once compiled, the first opening included. Run it with
`OPENBLAS_NUM_THREADS=1 python -m benchmarks.openings [name ...]`.
"""

import sys
import time
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from halfseen import LatentUcb, LowRankWorld


class Round(NamedTuple):
    """What is offered in a round, and what each arm pays."""

    arms: Any
    rewards: np.ndarray
    context: np.ndarray | None = None
    items: np.ndarray | None = None


class Times(NamedTuple):
    """Seconds of one run."""

    slowest: float  # choice
    median: float  # choice
    mean: float  # per round, with learning


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
    yield from _of(world)


def small(n_rounds: int = 400) -> Iterator[Round]:
    """The paper's main world: 30 columns of rank 3, 8 arms."""
    yield from _of(
        LowRankWorld(dim=30, rank=3, n_arms=8, horizon=n_rounds, observe_prob=0.3, noise_scale=0.05)
    )


def _of(world: LowRankWorld) -> Iterator[Round]:
    for each in world.realize(0).rounds():
        yield Round(each.slate, each.means + each.noise)


WORKLOADS = {"shop": (shop, 50), "wide-context": (wide_context, 0), "wide-arms": (wide_arms, 0)}
WORKLOADS["small"] = (small, 0)


def _times(rounds: list[Round], delay: int) -> Times:
    """Play rounds whose rewards come some rounds late."""
    policy, choices, total = LatentUcb(), [], 0.0
    waiting: deque[tuple[object, float]] = deque()
    for each in rounds:
        start = time.process_time()
        decision = policy.choose(each.arms, context=each.context, items=each.items)
        chosen = time.process_time()
        waiting.append((decision, float(each.rewards[decision.arm])))
        if len(waiting) > delay:
            policy.learn(*waiting.popleft())
        choices.append(chosen - start)
        total += time.process_time() - start
    return Times(max(choices), float(np.median(choices)), total / len(choices))


def main() -> None:
    """Print the times of the named workloads, by default of all."""
    for rounds, _ in WORKLOADS.values():  # compile
        _times(list(rounds(12)), 0)
    for name in sys.argv[1:] or WORKLOADS:
        rounds, delay = WORKLOADS[name]
        slowest, median, mean = _times(list(rounds()), delay)
        print(
            f"{name:14} slowest {slowest * 1e3:7.1f} ms   median {median * 1e3:7.3f} ms   "
            f"mean {mean * 1e3:7.3f} ms",
            flush=True,
        )


if __name__ == "__main__":
    main()
