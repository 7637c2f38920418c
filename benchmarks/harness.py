"""How things are measured: in turns, summed up by quartiles, with a progress bar."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

Advance = Callable[[], None]


class Quartiles(NamedTuple):
    low: float
    median: float
    high: float

    @classmethod
    def of(cls, values) -> "Quartiles":
        return cls(*(float(value) for value in np.quantile(values, (0.25, 0.5, 0.75))))

    def __str__(self) -> str:
        low, median, high = (_digits(value) for value in self)
        return f"{median} ({low}–{high})"


def _digits(value: float) -> str:
    return (
        f"{value:.2f}"
        if abs(value) < 10
        else f"{value:.1f}"
        if abs(value) < 100
        else f"{value:.0f}"
    )


class Plan(NamedTuple):
    """How much is measured."""

    quick: bool = False
    peers: bool = True

    def pick(self, usual, quick):
        return quick if self.quick else usual


class Compared(NamedTuple):
    """Ours beside what it is measured against; both in the same unit."""

    ours: Quartiles
    other: Quartiles
    ratio: Quartiles  # ours / other, repeat by repeat

    @classmethod
    def of(cls, ours, other) -> "Compared":
        ours, other = np.asarray(ours), np.asarray(other)
        return cls(Quartiles.of(ours), Quartiles.of(other), Quartiles.of(ours / other))


def in_turns(
    runs: Mapping[str, Callable[[], float]], repeats: int, advance: Advance = lambda: None
):
    """Return per name the results of all repeats; noise of the machine hits every name alike.

    The order turns round with every repeat, so that nobody always comes after the same neighbour.
    """
    results: dict[str, list[float]] = {name: [] for name in runs}
    for repeat in range(repeats):
        names = list(runs) if repeat % 2 == 0 else list(runs)[::-1]
        for name in names:
            results[name].append(runs[name]())
        advance()
    return results


def seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


class Watch:
    """Progress bars, one for each part of the run."""

    def __init__(self, console: Console | None = None) -> None:
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
        )

    @contextmanager
    def part(self, name: str, total: int) -> Iterator[Advance]:
        task = self.progress.add_task(name, total=total)
        yield lambda: self.progress.advance(task)
        self.progress.update(task, completed=total)
        self.progress.stop_task(task)
