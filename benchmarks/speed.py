"""Time per round, TofuPov and yardstick in turns on the same rounds."""

import time
from typing import NamedTuple

import numpy as np

from benchmarks.yardstick import Yardstick
from halfseen import LowRankWorld, TofuPov

HORIZON = 400
OBSERVE_PROB = 0.3
NOISE = 0.05


class Size(NamedTuple):
    dim: int
    rank: int
    n_arms: int
    burn_in: int
    repeats: int
    goal: int | None


SIZES = (
    Size(30, 3, 8, burn_in=30, repeats=31, goal=25),
    Size(100, 4, 10, burn_in=40, repeats=11, goal=None),
    Size(1000, 20, 4, burn_in=40, repeats=5, goal=15),
)


class Quartiles(NamedTuple):
    low: float
    median: float
    high: float

    @classmethod
    def of(cls, values) -> "Quartiles":
        return cls(*(float(value) for value in np.quantile(values, (0.25, 0.5, 0.75))))

    def __str__(self) -> str:
        return f"{self.median:.1f} ({self.low:.1f}–{self.high:.1f})"


class Result(NamedTuple):
    yardstick: Quartiles
    ours: Quartiles
    ours_in_epoch: Quartiles
    ratio: Quartiles


def rounds_of(size: Size):
    """Return all rounds in memory, so that only policies are timed."""
    world = LowRankWorld(
        dim=size.dim,
        rank=size.rank,
        n_arms=size.n_arms,
        horizon=HORIZON,
        observe_prob=OBSERVE_PROB,
        noise_scale=NOISE,
    )
    rounds = []
    for slate, means, noise, _ in world.realize(0).rounds():
        values, mask = slate.values.copy(), slate.mask.copy()
        options = np.where(mask, values, np.nan)
        rounds.append((options, values, mask, (means + noise).tolist()))
    return rounds


def settings_of(size: Size):
    return {
        "dim": size.dim,
        "rank": size.rank,
        "observe_prob": OBSERVE_PROB,
        "horizon": HORIZON,
        "burn_in": size.burn_in,
        "noise_scale": NOISE,
    }


def time_ours(size: Size, rounds):
    policy = TofuPov(**settings_of(size))
    marks = [time.perf_counter()]
    arms = []
    for options, _, _, rewards in rounds:
        decision = policy.choose(options)
        policy.learn(decision, rewards[decision.arm])
        arms.append(decision.arm)
        marks.append(time.perf_counter())
    return np.diff(marks) * 1e6, arms


def time_yardstick(size: Size, rounds):
    policy = Yardstick(**settings_of(size))
    started = time.perf_counter()
    arms = []
    for _, values, mask, rewards in rounds:
        arm = policy.choose(values, mask)
        policy.learn(rewards[arm])
        arms.append(arm)
    return (time.perf_counter() - started) / HORIZON * 1e6, arms


def measure(size: Size, advance=lambda: None) -> Result:
    """Return time per round of both; refuses to compare policies that choose differently."""
    rounds = rounds_of(size)
    time_ours(size, rounds)  # compiles, fills caches
    yardstick, ours, in_epoch = [], [], []
    for _ in range(size.repeats):
        plain, plain_arms = time_yardstick(size, rounds)
        times, arms = time_ours(size, rounds)
        if arms != plain_arms:
            raise RuntimeError(f"yardstick and TofuPov chose differently at {size}")
        yardstick.append(plain)
        ours.append(times.mean())
        in_epoch.append(np.median(times[size.burn_in :]))
        advance()
    ratios = np.array(yardstick) / np.array(ours)
    return Result(*(Quartiles.of(values) for values in (yardstick, ours, in_epoch, ratios)))
