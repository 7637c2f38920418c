"""The peak of a process's memory; imports nothing that would add to it."""

import resource
from pathlib import Path

# Where a process finds the package `benchmarks`.
ROOT = Path(__file__).parents[1]
_STATUS = Path("/proc/self/status")


def peak_bytes() -> int:
    """Return the most memory that this process has had since its program started.

    On Linux `ru_maxrss` will not do: a child starts with that of its parent.
    """
    if _STATUS.exists():
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
