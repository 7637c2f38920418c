"""`LatentUcb` in long service: how long rounds take, what it holds, how long a file takes."""

import pickle
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.budget import Row
from benchmarks.harness import Advance, Plan
from benchmarks.rotation import Size
from halfseen import LatentUcb, load

# Budgets for the small size.
MOST_INLINE = 50.0  # ms, processor time, slowest round
MOST_BACKGROUND = 5.0, 25.0  # ms, wall clock, 99.9 % of the rounds and the slowest
MOST_MEDIAN = 25.0  # µs, processor time
MOST_MEMORY = 150.0  # MB
MOST_SAVING, MOST_LOADING = 1.0, 0.5  # seconds

SMALL, LARGE = Size(30, 3, 8), Size(200, 3, 50)
_FIRST = 100  # rounds that are left out
_BLOCK = 500  # rounds whose arms are drawn at once


class Case(NamedTuple):
    size: Size
    n_rounds: int
    refit: str = "inline"
    noise: float = 0.0  # of the arms around their subspace

    @property
    def title(self) -> str:
        near = f", noise {self.noise:g}" if self.noise else ""
        return f"({self.size.dim}, {self.size.n_arms}){near}, {self.refit}"


class Service(NamedTuple):
    case: Case
    seconds: np.ndarray  # of each round: of the processor, or on the wall if in the background
    megabytes: dict[int, float]  # what the policy held after some rounds
    disk: float  # megabytes
    saving: float  # seconds
    loading: float

    @property
    def median(self) -> float:
        """Return µs of the rounds of the last tenth, in which the sample of arms is full."""
        return float(np.median(self.seconds[-len(self.seconds) // 10 :])) * 1e6

    def quantile(self, share: float) -> float:
        """Return ms."""
        return float(np.quantile(self.seconds[_FIRST:], share)) * 1e3

    def line(self) -> str:
        times = " | ".join(f"{self.quantile(share):.3g}" for share in (0.99, 0.999, 1.0))
        held = list(self.megabytes.values())[-1]
        files = f"{self.disk:.1f} | {self.saving:.2f} / {self.loading:.2f}"
        return (
            f"| {self.case.title} | {self.case.n_rounds:,} | {self.median:.1f} | {times} | "
            f"{held:.1f} | {files} |"
        )


def cases(plan: Plan) -> list[Case]:
    long, short = plan.pick(10**6, 20_000), plan.pick(20_000, 5_000)
    return [
        *(
            Case(SMALL, n_rounds, refit, noise)
            for n_rounds in (short, long)
            for noise in (0.0, 0.1)
            for refit in ("inline", "background")
        ),
        Case(LARGE, short),
        Case(LARGE, short, "background"),
        # A million of these rounds would take longer than all other measurements together.
        *([] if plan.quick else [Case(LARGE, 100_000)]),
    ]


def measure_service(plan: Plan, advance: Advance = lambda: None) -> list[Service]:
    """Play every case."""
    for noise in (0.0, 0.1):
        measure(Case(SMALL, 2000, noise=noise))  # compiles, fills caches
    found = []
    for case in cases(plan):
        found.append(measure(case))
        advance()
    return found


def measure(case: Case) -> Service:
    """Play one case from its first round."""
    clock = time.thread_time if case.refit == "inline" else time.perf_counter
    policy, seconds, held = LatentUcb(refit=case.refit), np.empty(case.n_rounds), {}
    for number, (table, rewards) in enumerate(_rounds(case)):
        started = clock()
        decision = policy.choose(table)
        policy.learn(decision, rewards[decision.arm])
        seconds[number] = clock() - started
        if number + 1 in (case.n_rounds // 10, case.n_rounds):
            held[number + 1] = len(pickle.dumps(policy)) / 1e6
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.halfseen"
        saving = _seconds(lambda: policy.save(path))
        loading = _seconds(lambda: load(path))
        disk = path.stat().st_size / 1e6
    return Service(case, seconds, held, disk, saving, loading)


def _rounds(case: Case):
    """Yield slates and rewards; never the same arm twice."""
    random, (dim, rank, n_arms) = np.random.default_rng(0), case.size
    loadings = random.normal(size=(rank, dim)) / np.sqrt(rank)
    theta = random.normal(size=rank)
    for first in range(0, case.n_rounds, _BLOCK):
        latent = random.normal(size=(min(_BLOCK, case.n_rounds - first), n_arms, rank))
        arms = latent @ loadings
        if case.noise:
            arms += case.noise * random.normal(size=arms.shape)
        arms[random.random(arms.shape) >= 0.4] = np.nan
        rewards = latent @ theta + 0.1 * random.normal(size=latent.shape[:2])
        yield from zip(arms, rewards.tolist(), strict=True)


def _seconds(call) -> float:
    started = time.thread_time()
    call()
    return time.thread_time() - started


def lines(found: list[Service]) -> list[str]:
    head = (
        "| dim, arms | rounds | median, µs | 99 %, ms | 99.9 %, ms | slowest, ms | holds, MB | "
        "file, MB | save / load, s |"
    )
    return [head, "|---|---|---|---|---|---|---|---|---|", *(each.line() for each in found), ""]


def budget_rows(found: list[Service]) -> list[Row]:
    """Return the rows for the longest run of arms in a subspace, at the small size."""
    small = [each for each in found if each.case.size == SMALL and each.case.noise == 0.0]
    inline, background = small[-2:]
    after = f"`LatentUcb()`, {inline.case.n_rounds:,} rounds at (30, 8)"
    slowest, (most_usual, most_slow) = inline.quantile(1.0), MOST_BACKGROUND
    usual, slow = background.quantile(0.999), background.quantile(1.0)
    before, held = inline.megabytes.values()
    return [
        Row(
            f"{after}: slowest round after the first hundred, inline",
            f"{slowest:.1f} ms of processor time",
            f"≤ {MOST_INLINE:.0f} ms",
            slowest <= MOST_INLINE,
        ),
        Row(
            f"{after}: refits in the background",
            f"99.9 % within {usual:.2f} ms, slowest {slow:.1f} ms on the wall",
            f"≤ {most_usual:.0f} ms, ≤ {most_slow:.0f} ms",
            usual <= most_usual and slow <= most_slow,
        ),
        Row(
            f"{after}: median round, sample of arms full",
            f"{inline.median:.1f} µs of processor time",
            f"≤ {MOST_MEDIAN:.0f} µs",
            inline.median <= MOST_MEDIAN,
        ),
        Row(
            f"{after}: memory of the policy",
            f"{held:.1f} MB, {before:.1f} MB after a tenth of the rounds",
            f"flat, ≤ {MOST_MEMORY:.0f} MB",
            held <= min(MOST_MEMORY, 1.5 * before),
        ),
        Row(
            f"{after}: save, load",
            f"{inline.saving:.2f} s, {inline.loading:.2f} s",
            f"≤ {MOST_SAVING:g} s, ≤ {MOST_LOADING:g} s",
            inline.saving <= MOST_SAVING and inline.loading <= MOST_LOADING,
        ),
    ]
