"""Time per round of whole runs, TofuPov and yardstick in turns on the same rounds."""

import time
from typing import NamedTuple

import numpy as np

from benchmarks.harness import Advance, Plan, Quartiles
from benchmarks.rotation import NOISE, OBSERVE_PROB, Size
from benchmarks.yardstick import Yardstick
from halfseen import LowRankWorld, TofuPov

HORIZON = 400


class Run(NamedTuple):
    size: Size
    burn_in: int
    repeats: int
    goal: int | None


RUNS = (
    Run(Size(30, 3, 8), burn_in=30, repeats=31, goal=25),
    Run(Size(100, 4, 10), burn_in=40, repeats=11, goal=None),
    Run(Size(1000, 20, 4), burn_in=40, repeats=5, goal=15),
)


class Result(NamedTuple):
    run: Run
    yardstick: Quartiles
    ours: Quartiles
    ratio: Quartiles
    regret: float  # of both: they choose the same arms

    def line(self) -> str:
        goal = "–" if self.run.goal is None else f"≥ {self.run.goal}"
        times = f"{self.yardstick} | {self.ours} | {self.ratio}"
        return f"| {self.run.size} | {times} | {goal} | {self.regret:.1f} |"


def rounds_of(run: Run):
    """Return all rounds in memory, so that only policies are timed."""
    world = LowRankWorld(
        **run.size._asdict(), horizon=HORIZON, observe_prob=OBSERVE_PROB, noise_scale=NOISE
    )
    rounds = []
    for slate, means, noise, _ in world.realize(0).rounds():
        values, mask = slate.values.copy(), slate.mask.copy()
        options = np.where(mask, values, np.nan)
        rounds.append((options, values, mask, (means + noise).tolist(), means.max() - means))
    return rounds


def settings_of(run: Run):
    return {
        "dim": run.size.dim,
        "rank": run.size.rank,
        "observe_prob": OBSERVE_PROB,
        "horizon": HORIZON,
        "burn_in": run.burn_in,
        "noise_scale": NOISE,
    }


def time_ours(run: Run, rounds):
    policy = TofuPov(**settings_of(run))
    started = time.perf_counter()
    arms = []
    for options, _, _, rewards, _ in rounds:
        decision = policy.choose(options)
        policy.learn(decision, rewards[decision.arm])
        arms.append(decision.arm)
    return (time.perf_counter() - started) / HORIZON * 1e6, arms


def time_yardstick(run: Run, rounds):
    policy = Yardstick(**settings_of(run))
    started = time.perf_counter()
    arms = []
    for _, values, mask, rewards, _ in rounds:
        arm = policy.choose(values, mask)
        policy.learn(rewards[arm])
        arms.append(arm)
    return (time.perf_counter() - started) / HORIZON * 1e6, arms


def measure_run(run: Run, plan: Plan, advance: Advance = lambda: None) -> Result:
    """Return time per round of both; refuses to compare policies that choose differently."""
    rounds = rounds_of(run)
    time_ours(run, rounds)  # compiles, fills caches
    yardstick, ours = [], []
    for _ in range(plan.pick(run.repeats, 3)):
        plain, plain_arms = time_yardstick(run, rounds)
        quick, arms = time_ours(run, rounds)
        if arms != plain_arms:
            raise RuntimeError(f"yardstick and TofuPov chose differently at {run.size}")
        yardstick.append(plain)
        ours.append(quick)
        advance()
    ratios = np.array(yardstick) / np.array(ours)
    regret = sum(float(losses[arm]) for arm, (*_, losses) in zip(arms, rounds, strict=True))
    return Result(run, *(Quartiles.of(values) for values in (yardstick, ours, ratios)), regret)


def lines(results: list[Result]) -> list[str]:
    head = "| dim, rank, arms | yardstick, µs | TofuPov, µs | ratio | goal | regret of both |"
    return [head, "|---|---|---|---|---|---|", *(result.line() for result in results), ""]
