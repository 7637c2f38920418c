"""Time over the number of rounds: the total, and a round inside an epoch."""

import time
from functools import partial
from typing import NamedTuple

import numpy as np

from benchmarks.harness import Advance, Plan, in_turns
from benchmarks.rotation import NOISE, OBSERVE_PROB, Size, rotation_of
from benchmarks.rounds import marks_of, play_round
from halfseen import TofuPov

SIZE = Size(30, 3, 8)
# Rounds of a policy in a row, of which the lower quartile counts: what disturbs a round makes it
# longer, never shorter. So short that no epoch opens in all repeats after 1000 rounds.
_ROUNDS, _REPEATS = 60, 11


class Growth(NamedTuple):
    rounds: list[int]
    seconds: list[float]  # of a whole run of that many rounds
    microseconds: list[float]  # of a round in the epoch that the run ended in

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
    """Run the default policy, all rewards replayed, over longer and longer horizons.

    The policies at the ends of these runs then play some more rounds, in turns.
    """
    rotation = rotation_of(SIZE)
    slates = rotation.endless()
    _run(slates, 1000)
    counts, totals, policies = horizons(plan), [], {}
    for n_rounds in counts:
        repeats = max(1, min(5, 50_000 // n_rounds))
        taken = []
        for _ in range(repeats):
            seconds, policies[str(n_rounds)] = _run(slates, n_rounds)
            taken.append(seconds)
        totals.append(float(np.median(taken)))
        advance()
    taken = in_turns(
        {name: partial(_round_microseconds, policy, slates) for name, policy in policies.items()},
        _REPEATS,
    )
    return Growth(counts, totals, [float(np.median(taken[str(n)])) for n in counts])


def _round_microseconds(policy: TofuPov, slates) -> float:
    times = np.diff(marks_of(policy, slates, _ROUNDS))
    return float(np.quantile(times, 0.25)) * 1e6


def _run(slates, n_rounds: int) -> tuple[float, TofuPov]:
    policy = TofuPov(dim=SIZE.dim, rank=SIZE.rank, observe_prob=OBSERVE_PROB, noise_scale=NOISE)
    started = time.perf_counter()
    for _ in range(n_rounds):
        play_round(policy, slates)
    return time.perf_counter() - started, policy
