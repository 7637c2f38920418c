"""`LatentUcb`: whole runs of the main study's size, and a million rounds in service."""

import pickle
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.measuring import Quartiles, Row, in_turns, seconds
from benchmarks.problems import near_subspace
from halfseen import LatentUcb, LowRankWorld, TofuPov, load

# Budgets.
MOST_WHOLE_RUN = 110.0  # µs per round, processor time
MOST_SLOWEST = 50.0  # ms, processor time, slowest round
MOST_MEDIAN = 25.0  # µs, processor time
MOST_MEMORY = 150.0  # MB
MOST_SAVING, MOST_LOADING = 1.0, 0.5  # seconds

WORLD = LowRankWorld(dim=30, rank=3, n_arms=8, horizon=400, observe_prob=0.3, noise_scale=0.05)
_FIRST = 100  # rounds that are left out


def whole_run_row(quick: bool) -> Row:
    """Return the time per round over the first 400 rounds, in which models are fitted often."""
    rounds = list(WORLD.realize(0).rounds())
    tofu = {"dim": WORLD.dim, "rank": WORLD.rank, "observe_prob": WORLD.observe_prob}

    def play(policy) -> float:
        started = time.process_time()
        for round in rounds:
            decision = policy.choose(round.slate)
            policy.learn(decision, round.reward(decision.arm))
        return (time.process_time() - started) / len(rounds) * 1e6

    play(LatentUcb())  # compiles, fills caches
    runs = {
        "latent": lambda: play(LatentUcb()),
        "tofu": lambda: play(TofuPov.full_history(**tofu, noise_scale=WORLD.noise_scale)),
    }
    found = {
        name: Quartiles.of(taken) for name, taken in in_turns(runs, 3 if quick else 15).items()
    }
    return Row(
        "`LatentUcb()`, whole run at (30, 3, 8), 400 rounds",
        f"{found['latent']} µs of processor time per round (`TofuPov` with full history: "
        f"{found['tofu']} µs)",
        f"≤ {MOST_WHOLE_RUN:.0f} µs",
        found["latent"].median <= MOST_WHOLE_RUN,
    )


class Service(NamedTuple):
    """A long run of arms with 30 features, 8 in a round, that never come back."""

    n_rounds: int
    noise: float  # of the arms around their subspace
    seconds: np.ndarray  # of each round, of the processor
    megabytes: tuple[float, float]  # the policy's after a tenth of the rounds and after all
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

    def __str__(self) -> str:
        times = " | ".join(f"{self.quantile(share):.3g}" for share in (0.99, 0.999, 1.0))
        near = f", noise {self.noise:g}" if self.noise else ""
        return (
            f"| (30, 8){near} | {self.n_rounds:,} | {self.median:.1f} | {times} | "
            f"{self.megabytes[-1]:.1f} | {self.disk:.1f} | {self.saving:.2f} / {self.loading:.2f} |"
        )


def measure_service(quick: bool) -> list[Service]:
    """Serve near a subspace and in it."""
    for noise in (0.0, 0.1):
        serve(2000, noise)  # compiles, fills caches
    return [serve(5000 if quick else 10**6, noise) for noise in (0.0, 0.1)]


def serve(n_rounds: int, noise: float) -> Service:
    """Play from the first round on."""
    clock, policy, taken, held = time.thread_time, LatentUcb(), np.empty(n_rounds), []
    for number, (table, rewards) in enumerate(near_subspace(n_rounds, noise)):
        started = clock()
        decision = policy.choose(table)
        policy.learn(decision, rewards[decision.arm])
        taken[number] = clock() - started
        if number + 1 in (n_rounds // 10, n_rounds):
            held.append(len(pickle.dumps(policy)) / 1e6)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.halfseen"
        saving = seconds(lambda: policy.save(path), time.thread_time)
        loading = seconds(lambda: load(path), time.thread_time)
        disk = path.stat().st_size / 1e6
    return Service(n_rounds, noise, taken, tuple(held), disk, saving, loading)


def service_rows(found: list[Service]) -> list[Row]:
    """Return the budget of runs whose arms are in a subspace."""
    (served,) = (each for each in found if each.noise == 0.0)
    after = f"`LatentUcb()`, {served.n_rounds:,} rounds at (30, 8)"
    slowest, (before, held) = served.quantile(1.0), served.megabytes
    return [
        Row(
            f"{after}: slowest round after the first hundred",
            f"{slowest:.1f} ms of processor time",
            f"≤ {MOST_SLOWEST:.0f} ms",
            slowest <= MOST_SLOWEST,
        ),
        Row(
            f"{after}: median round, sample of arms full",
            f"{served.median:.1f} µs of processor time",
            f"≤ {MOST_MEDIAN:.0f} µs",
            served.median <= MOST_MEDIAN,
        ),
        Row(
            f"{after}: memory of the policy",
            f"{held:.1f} MB, {before:.1f} MB after a tenth of the rounds",
            f"flat, ≤ {MOST_MEMORY:.0f} MB",
            held <= min(MOST_MEMORY, 1.5 * before),
        ),
        Row(
            f"{after}: save, load",
            f"{served.saving:.2f} s, {served.loading:.2f} s",
            f"≤ {MOST_SAVING:g} s, ≤ {MOST_LOADING:g} s",
            served.saving <= MOST_SAVING and served.loading <= MOST_LOADING,
        ),
    ]
