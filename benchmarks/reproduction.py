"""`halfseen reproduce synthetic` beside the yardstick doing the same cells, two processes each.

The yardstick knows one method, TOFU with full replay, so these are the cells compared: all
probabilities and seeds of the study. Each side makes the rounds itself, as the command does, in
workers that have been started and have loaded everything before.
"""

from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed

from benchmarks.harness import Advance, Plan, in_turns, seconds
from benchmarks.yardstick import Yardstick
from halfseen import LowRankWorld
from halfseen.simulation import simulate
from halfseen.studies.builtin import builtin_study

METHOD = "tofu-fh"
JOBS = 2
BURN_IN = 30
_WARM_UP = 8  # cells


class Reproduction(NamedTuple):
    n_cells: int
    ours: float  # seconds, the median
    yardstick: float
    ratio: float  # the median of repeats, each of which is one run of either
    ours_alone: float  # seconds inside the policies' cells, summed over processes
    worlds_alone: float  # of it, making the rounds


def measure_reproduction(plan: Plan, advance: Advance = lambda: None) -> Reproduction:
    study = builtin_study("synthetic").narrowed(
        methods=[METHOD],
        seeds=range(plan.pick(20, 4)),
        observe_probs=plan.pick(None, [0.8, 0.3]),
    )
    cells = study.cells()
    places = [(cell.key.p, cell.key.seed) for cell in cells]
    found = {}

    def ours() -> None:
        found["tables"] = _play_ours(cells)

    def yardstick() -> None:
        found["regrets"] = _play_yardsticks(places)

    # Each side has workers of its own, which are started anew when it is its turn.
    def warm_ours() -> float:
        _play_ours(cells[:_WARM_UP])
        return seconds(ours)

    def warm_yardstick() -> float:
        _play_yardsticks(places[:_WARM_UP])
        return seconds(yardstick)

    runs = {"ours": warm_ours, "yardstick": warm_yardstick}
    times = in_turns(runs, plan.pick(3, 1), advance)
    _refuse_different(found["tables"], found["regrets"])
    worlds = seconds(lambda: _make_rounds(places))
    advance()
    return Reproduction(
        n_cells=len(cells),
        ours=float(np.median(times["ours"])),
        yardstick=float(np.median(times["yardstick"])),
        ratio=float(np.median(np.divide(times["yardstick"], times["ours"]))),
        ours_alone=sum(row["seconds"] for row in found["tables"].per_seed),
        worlds_alone=worlds,
    )


def _play_ours(cells):
    return simulate.run(cells, jobs=JOBS)


def _play_yardsticks(places) -> dict[tuple[float, int], float]:
    regrets = Parallel(n_jobs=JOBS)(delayed(_play_yardstick)(p, seed) for p, seed in places)
    return dict(zip(places, regrets, strict=True))


def _make_rounds(places) -> None:
    for p, seed in places:
        for _ in _world(p).realize(seed).rounds():
            pass


def play_some_cells() -> None:
    """Play a few of these cells in this process, for a profile."""
    study = builtin_study("synthetic").narrowed(methods=[METHOD], seeds=range(2))
    simulate.run(study.cells(), jobs=1)


def _world(p: float) -> LowRankWorld:
    return LowRankWorld(observe_prob=p)


def _play_yardstick(p: float, seed: int) -> float:
    world = _world(p)
    policy = Yardstick(
        dim=world.dim,
        rank=world.rank,
        observe_prob=p,
        horizon=world.horizon,
        burn_in=BURN_IN,
        noise_scale=world.noise_scale,
    )
    regret = 0.0
    for slate, means, noise, _ in world.realize(seed).rounds():
        arm = policy.choose(slate.values, slate.mask)
        policy.learn(float(means[arm] + noise))
        regret += float(means.max() - means[arm])
    return regret


def _refuse_different(tables, regrets: dict[tuple[float, int], float]) -> None:
    """Times compare only where both sides did the same."""
    for row in tables.per_seed:
        ours, theirs = row["final_regret"], regrets[row["p"], row["seed"]]
        if abs(ours - theirs) > 1e-6 * (1 + theirs):
            place = f"p = {row['p']}, seed {row['seed']}"
            raise RuntimeError(f"yardstick and study differ at {place}: {theirs} and {ours}")
