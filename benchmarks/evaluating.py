"""`halfseen.evaluate` on a long log: processor time and peak memory, in a process of its own."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measuring import Row

MOST_SECONDS, MOST_MEGABYTES = 60.0, 1000.0

_CHILD = """
import json, resource, sys, time
from halfseen import Agent, evaluate
context, policies = ["country", "a", "b", "c", "d"], ["uniform", "item 3", Agent()]
evaluate(sys.argv[1], policies, context=context, offered="offered")
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
print(json.dumps([time.process_time(), peak]))
"""


def row(quick):
    """Return the row of the budget."""
    n = 10**5 if quick else 10**6
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.parquet"
        pq.write_table(pa.table(_log(n)), path)
        command = [sys.executable, "-c", _CHILD, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, megabytes = json.loads(done.stdout)
    return Row(
        f"`evaluate`, {n:,} decisions with ten items and a context, three policies",
        f"{seconds:.0f} s, {megabytes:.0f} MB",
        f"≤ {MOST_SECONDS:.0f} s, ≤ {MOST_MEGABYTES:.0f} MB",
        seconds <= MOST_SECONDS and megabytes <= MOST_MEGABYTES,
    )


def _log(n):
    random = np.random.default_rng(0)
    names = np.array([f"item {at}" for at in range(10)])
    liked, is_liked = random.integers(10, size=n), random.random(n) < 0.8
    item = np.where(is_liked, liked, random.integers(10, size=n))
    context = random.normal(size=(n, 4))
    chance = 0.3 + 0.1 * np.tanh((context * random.normal(size=(10, 4))[item]).sum(axis=1))
    sets = [random.permutation(names).tolist() for _ in range(1000)]
    return {
        "item": names[item],
        "propensity": np.where(item == liked, 0.82, 0.02),
        "reward": (random.random(n) < chance).astype(float),
        "country": random.choice(["DE", "FR", "US", "JP"], size=n),
        "offered": [sets[at] for at in random.integers(1000, size=n)],
        **dict(zip("abcd", context.T, strict=True)),
    }
