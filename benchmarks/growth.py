"""Time over the number of rounds: the total, and a round inside an epoch."""

import time
from typing import NamedTuple

import numpy as np

from benchmarks.harness import Advance, Plan
from benchmarks.rotation import NOISE, OBSERVE_PROB, Size, rotation_of
from benchmarks.rounds import marks_of, play_round
from halfseen import TofuPov

SIZE = Size(30, 3, 8)
# The last rounds of a run, up to this many, of which the lower quartile is the time of a round
# there: what disturbs it makes it longer, never shorter.
_WINDOW = 5000


class Growth(NamedTuple):
    rounds: list[int]
    seconds: list[float]  # of a whole run of that many rounds
    microseconds: list[float]  # of a round in an epoch, near its end

    @property
    def slope(self) -> float:
        """Of log seconds over log rounds: 1 is linear."""
        return float(np.polyfit(np.log(self.rounds), np.log(self.seconds), 1)[0])

    @property
    def flatness(self) -> float:
        """The dearest round in an epoch against the cheapest, over all horizons."""
        return max(self.microseconds) / min(self.microseconds)

    def lines(self) -> list[str]:
        lines = [
            "| rounds | whole run, s | per round, µs | a round in an epoch, µs |",
            "|---|---|---|---|",
        ]
        for n, total, each in zip(*self, strict=True):
            lines.append(f"| {n:,} | {total:.3g} | {total / n * 1e6:.1f} | {each:.1f} |")
        return [*lines, ""]


def horizons(plan: Plan) -> list[int]:
    return [10**k for k in range(3, plan.pick(7, 6))]


def measure_growth(plan: Plan, advance: Advance = lambda: None) -> Growth:
    """Run the default policy, all rewards replayed, over longer and longer horizons."""
    rotation = rotation_of(SIZE)
    _run(rotation, 1000)
    counts, totals, rounds = [], [], []
    for n_rounds in horizons(plan):
        repeats = max(1, min(5, 50_000 // n_rounds))
        taken = [_run(rotation, n_rounds) for _ in range(repeats)]
        counts.append(n_rounds)
        totals.append(float(np.median([total for total, _ in taken])))
        rounds.append(float(np.median([each for _, each in taken])))
        advance()
    return Growth(counts, totals, rounds)


def _run(rotation, n_rounds: int) -> tuple[float, float]:
    slates = rotation.endless()
    policy = TofuPov(dim=SIZE.dim, rank=SIZE.rank, observe_prob=OBSERVE_PROB, noise_scale=NOISE)
    started = time.perf_counter()
    watched = min(_WINDOW, n_rounds // 2)
    for _ in range(n_rounds - watched):
        play_round(policy, slates)
    marks = marks_of(policy, slates, watched)
    return marks[-1] - started, float(np.quantile(np.diff(marks), 0.25)) * 1e6
