"""What a policy holds, and the peak of its process, for more rounds and for more arms."""

import json
import subprocess
import sys
from typing import NamedTuple

from benchmarks.harness import Advance
from benchmarks.peak import ROOT


class Case(NamedTuple):
    horizon: int
    n_arms: int
    replay: str = "none"


ALL_REPLAYED = "10 T, all rewards replayed"
MEMORY_CASES = {
    "T = 400, K = 8": Case(400, 8),
    "10 T": Case(4000, 8),
    "10 K": Case(400, 80),
    ALL_REPLAYED: Case(4000, 8, "full"),
}
DIM = 30

_CHILD = """
import gc, json, sys, tracemalloc
import numpy as np
from benchmarks.peak import peak_bytes
from halfseen import TofuPov
horizon, n_arms, replay = json.loads(sys.argv[1])
random = np.random.default_rng(0)
lift = np.linalg.qr(random.standard_normal((30, 3)))[0].T
def table():
    arms = random.standard_normal((n_arms, 3)) @ lift
    arms[random.random(arms.shape) >= 0.3] = np.nan
    return arms
def run(policy, rounds):
    for _ in range(rounds):
        policy.learn(policy.choose(table()), 0.1)
settings = dict(dim=30, rank=3, observe_prob=0.3, replay=replay)
run(TofuPov(**settings), 100)
gc.collect()
tracemalloc.start()
policy = TofuPov(**settings)
run(policy, horizon)
gc.collect()
held = tracemalloc.get_traced_memory()[0]
tracemalloc.stop()
peak = peak_bytes()
print(json.dumps([held, peak]))
"""


def held_and_peak(case: Case) -> tuple[int, int]:
    """Return bytes that the policy holds after a run, and the peak of the process."""
    command = [sys.executable, "-c", _CHILD, json.dumps(case)]
    output = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    held, peak = json.loads(output)
    return held, peak


def measure_memory(advance: Advance = lambda: None) -> dict[str, tuple[int, int]]:
    """Return per case the bytes that are held and the peak."""
    found = {}
    for name, case in MEMORY_CASES.items():
        found[name] = held_and_peak(case)
        advance()
    return found


def lines(found: dict[str, tuple[int, int]]) -> list[str]:
    table = [
        "| case | held, KiB | against the first | peak, MiB | against the first |",
        "|---|---|---|---|---|",
    ]
    first_held, first_peak = next(iter(found.values()))
    for name, (held, peak) in found.items():
        table.append(
            f"| {name} | {held / 1024:.1f} | {held / first_held:.3f} | {peak / 2**20:.1f} | "
            f"{peak / first_peak:.3f} |"
        )
    return [*table, ""]


def bytes_per_played_arm(found: dict[str, tuple[int, int]]) -> float:
    """Return what a played arm costs where all rewards are replayed."""
    more = found[ALL_REPLAYED][0] - found["10 T"][0]
    return more / MEMORY_CASES[ALL_REPLAYED].horizon
