"""`TofuPov` rounds inside an epoch beside their floor, in turns on the same rotated slates."""

import time
from typing import NamedTuple

import numpy as np

from benchmarks import floors
from benchmarks.harness import Advance, Compared, Plan, Quartiles, in_turns, seconds
from benchmarks.machine import product_rate
from benchmarks.rotation import NOISE, OBSERVE_PROB, Rotation, Size, rotation_of
from halfseen import Decision, TofuPov

BURN_IN = 60
# So large that no further epoch opens while we measure.
_GROWTH = 1e4
# Arms of one second-moment product in the floor, as in the package.
_BLOCK = 1024


class Case(NamedTuple):
    """A size, how many rounds make one measurement, and the budget."""

    size: Size
    n_rounds: int
    repeats: int
    budget: float  # ours may take this many times the floor


CASES = (
    Case(Size(30, 3, 8), n_rounds=512, repeats=21, budget=6.0),
    Case(Size(30, 3, 1000), n_rounds=24, repeats=21, budget=2.0),
    Case(Size(1000, 20, 4), n_rounds=256, repeats=9, budget=2.0),
)


class FloorRate(NamedTuple):
    """What the floor's compiled part reaches, from slates beyond the cache."""

    microseconds: float  # per slate
    flops: float  # per second
    same_shape: float  # what BLAS reaches on the product that the sums are, in the cache


class Outcome(NamedTuple):
    case: Case
    mean: Compared  # µs per round, block products included
    median: Compared  # µs of a round in the middle: without the block products
    rate: FloorRate


class Floor:
    """All systems of a slate in one compiled call, a `Decision`, BLAS for the second moment."""

    def __init__(self, rotation: Rotation) -> None:
        size = self.size = rotation.size
        basis = rotation.basis
        self.latent = np.empty((size.rank, size.n_arms))
        if size.rank == 3:
            upper = [basis[:, a] * basis[:, b] for a in range(3) for b in range(a, 3)]
            self.given = np.ascontiguousarray([*upper, *basis.T])
            self.scratch = np.empty((9, size.n_arms))
            self.solve, self.solve_all = floors.solve_rank_3, floors.all_rank_3
        else:
            self.given = np.ascontiguousarray(basis.T)
            self.scratch = np.zeros(((size.rank + 3) // 3 * 3, size.dim + 4))
            self.solve, self.solve_all = floors.solve_wide, floors.all_wide
        self.parts = np.zeros((3, size.n_arms))
        slates = max(1, _BLOCK // size.n_arms)
        self.slates_per_block = slates
        self.block = np.nan_to_num(rotation.tables[:slates].reshape(-1, size.dim))
        self.product = np.empty((size.dim, size.dim))

    def marks(self, slates, n_rounds: int) -> list[float]:
        marks = [time.perf_counter()]
        for n in range(1, n_rounds + 1):
            table, _ = next(slates)
            self.solve(table, self.given, floors.IMPUTE_RIDGE, self.scratch, self.latent)
            Decision(f"floor-{n}", 0, n, 0, table[0], self.parts)
            if n % self.slates_per_block == 0:
                np.dot(self.block.T, self.block, self.product)
            marks.append(time.perf_counter())
        return marks

    def rate(self, rotation: Rotation, repeats: int) -> FloorRate:
        n = len(rotation.tables)
        arguments = (self.given, floors.IMPUTE_RIDGE, self.scratch, self.latent)
        taken = [
            seconds(lambda: self.solve_all(rotation.tables, *arguments)) for _ in range(repeats)
        ]
        each = float(np.median(taken)) / n
        return FloorRate(each * 1e6, self._operations() / each, self._same_shape())

    def _operations(self) -> float:
        """Floating-point operations that the floor does per slate."""
        size, rank = self.size, self.size.rank
        sums = rank * (rank + 1) / 2 + rank
        solve = rank**3 / 3 + 2 * rank**2
        entries = size.dim if rank == 3 else OBSERVE_PROB * size.dim
        return size.n_arms * (2 * entries * sums + solve)

    def _same_shape(self) -> float:
        size = self.size
        if size.rank == 3:
            return product_rate(np.ones((size.n_arms, size.dim)), np.ones((size.dim, 9)))
        rows = np.ones((int(OBSERVE_PROB * size.dim), size.rank))
        return product_rate(np.ascontiguousarray(rows.T), rows)


def tofu_in_epoch(size: Size, slates) -> TofuPov:
    """Return a policy that has just entered an epoch which lasts as long as we measure."""
    policy = TofuPov(
        dim=size.dim,
        rank=size.rank,
        observe_prob=OBSERVE_PROB,
        burn_in=BURN_IN,
        growth=_GROWTH,
        noise_scale=NOISE,
    )
    for _ in range(BURN_IN + 1):
        play_round(policy, slates)
    return policy


def play_round(policy, slates) -> None:
    table, rewards = next(slates)
    decision = policy.choose(table)
    policy.learn(decision, rewards[decision.arm])


def marks_of(policy, slates, n_rounds: int) -> list[float]:
    marks = [time.perf_counter()]
    for _ in range(n_rounds):
        play_round(policy, slates)
        marks.append(time.perf_counter())
    return marks


def compare_rounds(case: Case, plan: Plan, advance: Advance = lambda: None) -> Outcome:
    """Time rounds of `TofuPov` and of the floor in turns."""
    rotation = rotation_of(case.size)
    floor, slates = Floor(rotation), rotation.endless()
    policy = tofu_in_epoch(case.size, slates)
    medians: dict[str, list[float]] = {"ours": [], "floor": []}

    def microseconds(name: str, marks: list[float]) -> float:
        times = np.diff(marks) * 1e6
        medians[name].append(float(np.median(times)))
        return float(times.mean())

    runs = {
        "floor": lambda: microseconds("floor", floor.marks(slates, case.n_rounds)),
        "ours": lambda: microseconds("ours", marks_of(policy, slates, case.n_rounds)),
    }
    means = in_turns(runs, plan.pick(case.repeats, 5), advance)
    rate = floor.rate(rotation, plan.pick(7, 3))
    return Outcome(
        case,
        Compared.of(means["ours"], means["floor"]),
        Compared.of(medians["ours"], medians["floor"]),
        rate,
    )


def floor_lines(outcomes: list[Outcome], product: Quartiles) -> list[str]:
    lines = [
        "| dim, rank, arms | compiled part, µs | GFLOP/s | of a large product | "
        "of BLAS on the same shape |",
        "|---|---|---|---|---|",
    ]
    for outcome in outcomes:
        rate = outcome.rate
        lines.append(
            f"| {outcome.case.size} | {rate.microseconds:.2f} | {rate.flops / 1e9:.1f} | "
            f"{rate.flops / product.median:.0%} | {rate.flops / rate.same_shape:.0%} |"
        )
    return [*lines, ""]


def measure_lock() -> Quartiles:
    """Return the time of an empty `with` block on the lock of a policy, in microseconds."""
    lock, n_times = TofuPov(dim=2, rank=1, observe_prob=0.5)._lock, 10_000

    def take() -> None:
        for _ in range(n_times):
            with lock:
                pass

    return Quartiles.of([1e6 * seconds(take) / n_times for _ in range(21)])
