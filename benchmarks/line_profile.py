"""Where the time goes, line by line of the package, and which of these lines are compiled work.

cProfile does not see compiled loops and operators such as `@`: it charges them to the function
around them. Here each line of the package is charged with its own time, including what it calls
outside of the package. Watching costs about a microsecond per line, so Python looks dearer than it
is.
"""

import linecache
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import halfseen

_HOME = str(Path(halfseen.__file__).parent)
# Calls of compiled loops, BLAS and LAPACK, as they stand in a line of source.
_COMPILED = re.compile(
    r"_kernels?\.\w|_kernel\(|_arm_features\.\w|tables\.\w|\s@=?\s|linalg|einsum|"
    r"\bdot\(|eigsh\(|dsy\w+\(|solve\w*\(|\bqr\("
)


class Line(NamedTuple):
    place: str
    source: str
    seconds: float
    compiled: bool


class Profile(NamedTuple):
    seconds: float
    lines: list[Line]  # dearest first

    @property
    def compiled_share(self) -> float:
        return sum(line.seconds for line in self.lines if line.compiled) / self.seconds

    def table(self, count: int = 6) -> list[str]:
        rows = [
            f"| {line.seconds / self.seconds:.0%} | {line.place} | "
            f"`{line.source[:80].replace('|', '∣')}` | {'yes' if line.compiled else ''} |"
            for line in self.lines[:count]
        ]
        return ["| time | place | line | compiled or BLAS |", "|---|---|---|---|", *rows, ""]


class _Watcher:
    def __init__(self) -> None:
        self.seconds: dict[tuple[str, int], float] = defaultdict(float)
        self.stack: list[tuple[str, int]] = []
        self.last = time.perf_counter()

    def charge(self) -> None:
        now = time.perf_counter()
        if self.stack:
            self.seconds[self.stack[-1]] += now - self.last
        self.last = now

    def enter(self, frame, event, _):
        if event != "call" or not frame.f_code.co_filename.startswith(_HOME):
            return None
        self.charge()
        self.stack.append((frame.f_code.co_filename, frame.f_lineno))
        self.last = time.perf_counter()
        return self.within

    def within(self, frame, event, _):
        self.charge()
        if event == "return":
            self.stack.pop()
        else:
            self.stack[-1] = frame.f_code.co_filename, frame.f_lineno
        self.last = time.perf_counter()
        return self.within


def profile(call: Callable[[], object]) -> Profile:
    """Return the profile of a call; what it does outside of the package is not counted."""
    watcher = _Watcher()
    before = sys.gettrace()
    sys.settrace(watcher.enter)
    try:
        call()
    finally:
        sys.settrace(before)
    lines = []
    for (filename, number), taken in watcher.seconds.items():
        source = linecache.getline(filename, number).strip()
        place = f"{Path(filename).relative_to(_HOME)}:{number}"
        lines.append(Line(place, source, taken, bool(_COMPILED.search(source))))
    lines.sort(key=lambda line: -line.seconds)
    return Profile(sum(watcher.seconds.values()), lines)
