"""`make bench-against REV=…`: what the working tree made slower since a commit, and what faster.

Both versions of the package run in turns, each in a process of its own, with the same Python and
libraries: a block of a path in one, then in the other. What counts is the ratio of two such blocks.
Processes of the same code differ, for as long as they live, so new ones are started several times,
and what is said of a path is a test of their median ratios.

Processor time decides, as other work on the machine stretches the wall clock far more. Where a path
waits for a disk, the wall clock decides as well. Both are shown.

The paths are most of this, and asv or pytest-benchmark would need them too. asv installs a commit
anew for each turn, which loses compiled code (two paths of 70 ms took 90 s), knows no uncommitted
code, and has no ratios of blocks in turns. pytest-benchmark knows one version in a run.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from io import BytesIO
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import Progress
from scipy.stats import t

from benchmarks.hot_paths import COLD, PATHS, Seconds
from benchmarks.measuring import Quartiles, in_turns

ROOT = Path(__file__).parents[1]
THEN, NOW = "then", "now"

MARGIN = 0.03
"""How much slower is not called slower."""
ERROR = 0.01
"""Probability to call a path slower that is slower by just this margin; less if it is not."""
LEAST_STARTS = 6
_PATIENCE = 300  # seconds for a block, with its preparation and with compiling


class Plan(NamedTuple):
    """How often everything is repeated."""

    starts: int  # of new processes
    pairs: int  # of blocks in each
    cold: int  # starts with an empty cache
    seconds: float  # after which there are no more than LEAST_STARTS starts


FULL, QUICK = Plan(8, 2, 3, 240.0), Plan(LEAST_STARTS, 1, 0, 0.0)


# One version


class Version:
    """A process that runs blocks of paths with the package of one folder."""

    def __init__(self, source: Path, cache: Path) -> None:
        self._given = source, cache
        self._start()

    def _start(self) -> None:
        context = get_context("spawn")  # it must not have imported the package before
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, *self._given), daemon=True)
        self._process.start()
        theirs.close()

    def run(self, path: str) -> dict[str, Seconds] | str:
        """Return the seconds of a block by what was measured, or why there are none."""
        error = "its process ended"
        try:
            self._connection.send(path)
            if self._connection.poll(_PATIENCE):
                return self._connection.recv()
            error = f"not within {_PATIENCE} s"
        except (EOFError, OSError):
            pass
        self.close()
        self._start()
        return error

    def close(self) -> None:
        self._process.kill()
        self._process.join()
        self._connection.close()


def _serve(connection: Connection, source: Path, cache: Path) -> None:
    os.environ["NUMBA_CACHE_DIR"] = str(cache)
    sys.path.insert(0, str(source))
    running: dict[str, Iterator[dict[str, Seconds]]] = {}
    with suppress(EOFError):  # nobody asks any more
        while True:
            connection.send(_answer(connection.recv(), running))


def _answer(path: str, running: dict[str, Iterator[dict[str, Seconds]]]) -> Any:
    try:
        if path not in running:
            running[path] = PATHS[path].blocks()
        return next(running[path])
    except Exception as error:
        return f"{type(error).__name__}: {error}"


# Both versions

Blocks = dict[str, list[dict[str, Seconds] | str]]
"""By version, of each block the seconds by what was measured, or an error."""


class Measured(NamedTuple):
    """Blocks of one path, then and now, by start."""

    name: str
    waits: bool
    starts: list[list[tuple[Seconds, Seconds]]]

    def ratios(self, clock: str) -> list[list[float]]:
        return [
            [getattr(now, clock) / getattr(then, clock) for then, now in pairs]
            for pairs in self.starts
        ]

    def quartiles(self, clock: str) -> Quartiles:
        return Quartiles.of([ratio for pairs in self.ratios(clock) for ratio in pairs])

    def milliseconds(self) -> list[float]:
        """Return the median processor time of a block, then and now."""
        pairs = [pair for start in self.starts for pair in start]
        return [
            1e3 * Quartiles.of([each.processor for each in blocks]).median
            for blocks in zip(*pairs, strict=True)
        ]

    def slower(self) -> dict[str, Quartiles]:
        """Return the ratios of each clock by which this path is slower."""
        clocks = ("processor", "wall") if self.waits else ("processor",)
        return {each: self.quartiles(each) for each in clocks if is_slower(self.ratios(each))}

    def is_faster(self) -> bool:
        ratios = self.ratios("processor")
        return is_slower([[1.0 / ratio for ratio in pairs] for pairs in ratios])


def is_slower(ratios: list[list[float]]) -> bool:
    """Return whether the ratio is above the margin: a t-test of the median ratios of the starts."""
    logs = np.log([Quartiles.of(pairs).median for pairs in ratios])
    spread, excess = logs.std(ddof=1) / len(logs) ** 0.5, logs.mean() - np.log1p(MARGIN)
    return bool(excess > t.isf(ERROR, len(logs) - 1) * spread)


class Comparison:
    """What was measured, and what could not be, with the errors by version."""

    def __init__(self) -> None:
        self.measured: dict[tuple[str, str], Measured] = {}
        self.failed: dict[str, dict[str, str]] = {}

    def add(self, path: str, blocks: Blocks, first: int = 0) -> None:
        """Add the blocks of one start from the given one on; an error of any block counts."""
        for version, found in blocks.items():
            for error in found:
                if isinstance(error, str):
                    self.failed.setdefault(path, {}).setdefault(version, error)
        if path in self.failed:
            self.measured = {key: each for key, each in self.measured.items() if key[0] != path}
            return
        pairs = list(zip(blocks[THEN], blocks[NOW], strict=True))[first:]
        for measure in pairs[0][0] if pairs else ():
            empty = Measured(f"{path}: {measure}", PATHS[path].waits, [])
            known = self.measured.setdefault((path, measure), empty)
            known.starts.append([(then[measure], now[measure]) for then, now in pairs])

    def went_back(self, rev: str) -> list[str]:
        """Return a line for each path that went back, or one that says that there is none."""
        lines = [
            f"slower: {each.name}, {found} × of {clock} time"
            for each in self.measured.values()
            for clock, found in each.slower().items()
        ]
        lines += [f"does not run any more: {path}, {self.failed[path][NOW]}" for path in self._lost]
        return lines or [f"nothing is slower than at {rev}"]

    def exceeds(self, factor: float) -> bool:
        """Return whether a path is slower by more than a factor, or does not run any more."""
        found = [each.slower().values() for each in self.measured.values()]
        medians = [quartiles.median for each in found for quartiles in each]
        return bool(self._lost) or max(medians, default=0.0) > factor

    @property
    def _lost(self) -> list[str]:
        return [path for path, errors in self.failed.items() if list(errors) == [NOW]]

    def table(self) -> list[str]:
        """Return a line for each path."""
        lines = [f"{'':50}{'then, ms':>9}{'now, ms':>9}   {'processor time':19}{'wall time':19}"]
        for each in self.measured.values():
            verdict = "slower" if each.slower() else "faster" if each.is_faster() else ""
            processor, wall = (str(each.quartiles(clock)) for clock in ("processor", "wall"))
            then, now = each.milliseconds()
            lines.append(f"{each.name:50}{then:9.3g}{now:9.3g}   {processor:19}{wall:19}{verdict}")
        for path, errors in self.failed.items():
            lines += [f"{path}, {version}: {error}" for version, error in errors.items()]
        return lines


def compare(
    sources: dict[str, Path], paths: list[str], plan: Plan, folder: Path, advance: Callable[[], Any]
) -> Comparison:
    """Measure the paths; `folder` is for compiled code."""
    found, warm = Comparison(), [path for path in paths if path != COLD]
    for start in range(plan.cold if COLD in paths else 0):
        with _started(sources, folder / str(start), start) as versions:
            found.add(COLD, _in_turns(versions, COLD, 1))
        advance()
    deadline = time.monotonic() + plan.seconds
    for start in range(1 + plan.starts if warm else 0):
        if start > LEAST_STARTS and time.monotonic() > deadline:
            break
        with _started(sources, folder / "0", start) as versions:
            for path in warm:
                if path not in found.failed:
                    # The first start compiles, and the first block of each loads what is compiled.
                    blocks = _in_turns(versions, path, 1 + plan.pairs if start else 1)
                    found.add(path, blocks, first=1)
                advance()
    return found


@contextmanager
def _started(sources: dict[str, Path], cache: Path, start: int) -> Iterator[dict[str, Version]]:
    """Start a process of each version, in the other order every other time."""
    with ExitStack() as stack:
        names = list(sources) if start % 2 == 0 else list(sources)[::-1]
        yield {
            name: stack.enter_context(closing(Version(sources[name], cache / name)))
            for name in names
        }


def _in_turns(versions: dict[str, Version], path: str, n_blocks: int) -> Blocks:
    return in_turns({name: partial(each.run, path) for name, each in versions.items()}, n_blocks)


# The command


def sources(rev: str, folder: Path) -> dict[str, Path]:
    """Copy both versions of the package: the working tree may change while it is measured."""
    command = ["git", "archive", rev, "src"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True)
    if done.returncode != 0:
        raise SystemExit(done.stderr.decode().strip())
    with tarfile.open(fileobj=BytesIO(done.stdout)) as archive:
        archive.extractall(folder / THEN, filter="data")
    compiled = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src", folder / NOW / "src", ignore=compiled)
    return {version: folder / version / "src" for version in (THEN, NOW)}


def main() -> None:
    """Compare, and say what went back."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.against")
    parser.add_argument("rev", help="a commit, branch or tag")
    parser.add_argument(
        "--quick", action="store_true", help="fewer repeats, nothing in an empty cache"
    )
    parser.add_argument("--only", default="", help="a part of the names of paths")
    parser.add_argument(
        "--fail-above", type=float, default=float("inf"), metavar="RATIO",
        help="exit with 1 if a path is slower by more than this, or does not run any more",
    )  # fmt: skip
    asked = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # of new processes
    paths = [path for path in PATHS if asked.only in path]
    if not paths:
        parser.error(f"no path contains {asked.only!r}; they are: {', '.join(PATHS)}")
    plan, console = QUICK if asked.quick else FULL, Console(highlight=False)
    with tempfile.TemporaryDirectory() as name, Progress(console=console, transient=True) as bar:
        task = bar.add_task("measuring", total=plan.cold + len(paths) * (1 + plan.starts))
        given = sources(asked.rev, Path(name)), paths, plan, Path(name)
        found = compare(*given, lambda: bar.advance(task))
    for line in (*found.table(), "", *found.went_back(asked.rev)):
        console.print(line, soft_wrap=True, markup=False)
    sys.exit(found.exceeds(asked.fail_above))


if __name__ == "__main__":
    main()
