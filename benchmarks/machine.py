"""What this machine is, and what it does at best: a plain product, a plain copy."""

import os
import platform
from pathlib import Path
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_info

from benchmarks.floors import repeat_product
from benchmarks.harness import Quartiles, seconds

_SIDE = 1000
_COPIED = 100_000_000  # bytes


class Rates(NamedTuple):
    product: Quartiles  # floating-point operations per second
    copy: Quartiles  # bytes read and written per second

    def lines(self) -> list[str]:
        gigaflops, gigabytes = (Quartiles(*(value / 1e9 for value in rate)) for rate in self)
        return [
            f"Plain product of two matrices of side {_SIDE}: {gigaflops} GFLOP/s. Plain copy of "
            f"{_COPIED // 1_000_000} MB, bytes read and written: {gigabytes} GB/s. One thread, "
            "median (quartiles).",
            "",
        ]


def rates(repeats: int = 9) -> Rates:
    random = np.random.default_rng(0)
    left, right = random.standard_normal((2, _SIDE, _SIDE))
    product = np.empty((_SIDE, _SIDE))
    source = random.standard_normal(_COPIED // 8)
    target = np.zeros_like(source)
    operations = 2 * _SIDE**3
    products = [operations / seconds(lambda: np.dot(left, right, product)) for _ in range(repeats)]
    copies = [2 * _COPIED / seconds(lambda: np.copyto(target, source)) for _ in range(repeats)]
    return Rates(Quartiles.of(products), Quartiles.of(copies))


def product_rate(left: np.ndarray, right: np.ndarray, repeats: int = 9) -> float:
    """Return what BLAS reaches on a product of this very shape, in operations per second."""
    product = np.empty((left.shape[0], right.shape[1]))
    operations = 2 * left.shape[0] * left.shape[1] * right.shape[1]
    times = max(1, int(5e6 / operations))
    repeat_product(left, right, product, 1)
    taken = [seconds(lambda: repeat_product(left, right, product, times)) for _ in range(repeats)]
    return operations * times / float(np.median(taken))


def description() -> str:
    parts = [
        _processor(),
        f"{os.cpu_count()} cores",
        f"{_memory_gib():.0f} GiB",
        f"{platform.system()} {platform.machine()}",
        f"Python {platform.python_version()}",
        f"numpy {np.__version__}",
        *dict.fromkeys(_blas()),
    ]
    return ", ".join(parts)


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def _blas():
    for pool in threadpool_info():
        if pool["user_api"] == "blas":
            yield f"{pool['internal_api']} {pool['version']} ({pool.get('architecture', '?')})"
