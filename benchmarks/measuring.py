"""How things are measured: in turns, summed up by quartiles, judged by a budget."""

import os
import platform
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np


class Quartiles(NamedTuple):
    low: float
    median: float
    high: float

    @classmethod
    def of(cls, values) -> "Quartiles":
        return cls(*(float(value) for value in np.quantile(values, (0.25, 0.5, 0.75))))

    def __str__(self) -> str:
        low, median, high = (f"{value:.{_decimals(value)}f}" for value in self)
        return f"{median} ({low}–{high})"


def _decimals(value: float) -> int:
    return 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0


class Row(NamedTuple):
    """A row of the budget."""

    workload: str
    measured: str
    required: str
    met: bool | None  # None: could not be measured

    def __str__(self) -> str:
        verdict = "–" if self.met is None else "yes" if self.met else "**no**"
        return f"| {self.workload} | {self.measured} | {self.required} | {verdict} |"


def in_turns(runs: Mapping[str, Callable[[], float]], repeats: int) -> dict[str, list[float]]:
    """Return the results of all repeats by name; the machine's noise hits every name alike.

    The order is reversed in every other repeat, so that nobody always follows the same neighbour.
    """
    results: dict[str, list[float]] = {name: [] for name in runs}
    for repeat in range(repeats):
        names = list(runs) if repeat % 2 == 0 else list(runs)[::-1]
        for name in names:
            results[name].append(runs[name]())
    return results


def seconds(call: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    started = clock()
    call()
    return clock() - started


def machine() -> str:
    """Return what this machine is, in one line."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    processor = models[0] if models else platform.processor() or "unknown processor"
    return (
        f"{processor}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}, numpy {np.__version__}"
    )
