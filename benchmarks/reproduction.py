"""`halfseen reproduce synthetic` beside the yardstick doing the same cells, two processes each.

The yardstick knows one method, TOFU with full replay, so these are the cells compared: all
probabilities and seeds of the study. Each side makes the rounds itself, as
the command does.
"""

import time
from typing import NamedTuple

from joblib import Parallel, delayed

from benchmarks.harness import Advance, Plan
from benchmarks.yardstick import Yardstick
from halfseen import LowRankWorld
from halfseen.simulation import simulate
from halfseen.studies.builtin import builtin_study

METHOD = "tofu-fh"
JOBS = 2
BURN_IN = 30


class Reproduction(NamedTuple):
    n_cells: int
    ours: float  # seconds, workers started before
    yardstick: float
    ours_alone: float  # seconds inside the policies' cells, summed over processes
    worlds_alone: float  # of it, making the rounds

    @property
    def ratio(self) -> float:
        return self.yardstick / self.ours


def measure_reproduction(plan: Plan, advance: Advance = lambda: None) -> Reproduction:
    study = builtin_study("synthetic").narrowed(
        methods=[METHOD],
        seeds=range(plan.pick(20, 4)),
        observe_probs=plan.pick(None, [0.8, 0.3]),
    )
    cells = study.cells()
    simulate.run(cells[:2], jobs=JOBS)  # starts the workers
    advance()
    started = time.perf_counter()
    tables = simulate.run(cells, jobs=JOBS)
    ours = time.perf_counter() - started
    advance()
    places = [(cell.key.p, cell.key.seed) for cell in cells]
    started = time.perf_counter()
    regrets = Parallel(n_jobs=JOBS)(delayed(_play_yardstick)(p, seed) for p, seed in places)
    yardstick = time.perf_counter() - started
    advance()
    _refuse_different(tables, dict(zip(places, regrets, strict=True)))
    started = time.perf_counter()
    for p, seed in places:
        for _ in _world(p).realize(seed).rounds():
            pass
    worlds = time.perf_counter() - started
    advance()
    return Reproduction(
        len(cells), ours, yardstick, sum(row["seconds"] for row in tables.per_seed), worlds
    )


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
        arm = policy.choose(slate.values.copy(), slate.mask)
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
