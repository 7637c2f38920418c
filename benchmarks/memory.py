"""What a policy holds, and the peak of its process, for more rounds and for more arms."""

import json
import subprocess
import sys
from typing import NamedTuple


class Case(NamedTuple):
    horizon: int
    n_arms: int


MEMORY_CASES = {
    "T = 400, K = 8": Case(400, 8),
    "10 T": Case(4000, 8),
    "10 K": Case(400, 80),
}

_CHILD = """
import gc, json, resource, sys, tracemalloc
import numpy as np
from halfseen import TofuPov
horizon, n_arms = json.loads(sys.argv[1])
random = np.random.default_rng(0)
lift = np.linalg.qr(random.standard_normal((30, 3)))[0].T
def table():
    arms = random.standard_normal((n_arms, 3)) @ lift
    arms[random.random(arms.shape) >= 0.3] = np.nan
    return arms
def run(policy, rounds):
    for _ in range(rounds):
        policy.learn(policy.choose(table()), 0.1)
settings = dict(dim=30, rank=3, observe_prob=0.3, replay="none")
run(TofuPov(**settings), 100)
gc.collect()
tracemalloc.start()
policy = TofuPov(**settings)
run(policy, horizon)
gc.collect()
held = tracemalloc.get_traced_memory()[0]
tracemalloc.stop()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps([held, peak]))
"""


def held_and_peak(case: Case) -> tuple[int, int]:
    """Return bytes that the policy holds after a run, and the peak of the process."""
    command = [sys.executable, "-c", _CHILD, json.dumps(case)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    held, peak = json.loads(output)
    return held, peak
