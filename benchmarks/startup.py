"""How long it takes until one can start."""

import os
import statistics
import subprocess
import sys
import tempfile

_FIRST_CHOICE = """
import time
started = time.perf_counter()
from halfseen import TofuPov
policy = TofuPov(dim=4, rank=2, observe_prob=1.0, burn_in=1)
for _ in range(3):
    policy.learn(policy.choose([[1.0, 2.0, 0.0, 1.0], [0.0, 1.0, 1.0, 3.0]]), 0.5)
print(time.perf_counter() - started)
"""
_IMPORT = """
import time
started = time.perf_counter()
import halfseen
print(time.perf_counter() - started)
"""


def _seconds(program: str, **environment: str) -> float:
    command = [sys.executable, "-c", program]
    env = {**os.environ, **environment}
    return float(
        subprocess.run(command, capture_output=True, text=True, check=True, env=env).stdout
    )


def import_seconds(repeats: int = 5) -> float:
    """Return the median time of `import halfseen` in fresh processes."""
    return statistics.median(_seconds(_IMPORT) for _ in range(repeats))


def compile_seconds() -> float:
    """Return the time to the first choices where nothing has been compiled before."""
    with tempfile.TemporaryDirectory() as cache:
        return _seconds(_FIRST_CHOICE, NUMBA_CACHE_DIR=cache)


def lines(imported: float, compiled: float) -> list[str]:
    return [
        "| start | seconds | goal |",
        "|---|---|---|",
        f"| `import halfseen` | {imported:.3f} | < 0.3 |",
        f"| first choice in a fresh process with an empty cache | {compiled:.1f} | < 10 |",
        "",
    ]
