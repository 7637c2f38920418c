"""`make bench-check`: ratios to the floor beside stored ones; a loss of more than 25 % fails.

Ratios to something measured in the same minute depend little on the machine and its load, but not
on nothing: `halfseen bench --check --store` stores those of this machine as the new baselines.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks import dense, rounds
from benchmarks.harness import Plan, Watch

BASELINES = Path(__file__).parent / "baselines.json"
ALLOWED_LOSS = 0.25
_QUICK = Plan(quick=True)
# The median of some tries counts: a busy moment may hit either side of a ratio.
_TRIES = 5


class Verdict(NamedTuple):
    name: str
    baseline: float
    measured: float

    @property
    def loss(self) -> float:
        return self.measured / self.baseline - 1

    @property
    def holds(self) -> bool:
        return self.loss <= ALLOWED_LOSS


def subset() -> dict[str, Callable[[], float]]:
    """Return per name how to measure its ratio to the floor."""
    small, many, wide = rounds.CASES
    return {
        "TofuPov round, (30, 3, 8)": lambda: _round_ratio(small),
        "TofuPov round, (30, 3, 1000)": lambda: _round_ratio(many),
        "TofuPov round, (1000, 20, 4)": lambda: _round_ratio(wide),
        "ambient OFUL round, dim 1000": lambda: dense.compare_ambient(_QUICK)[0].ratio.median,
        "absorbing, dim 1000": lambda: dense.compare_absorbing(_QUICK).ratio.median,
        "opening an epoch, dim 1000": lambda: dense.compare_opening(_QUICK)[0].ratio.median,
    }


def _round_ratio(case: rounds.Case) -> float:
    return rounds.compare_rounds(case, _QUICK).median.ratio.median


def measure(watch: Watch, runs: Mapping[str, Callable[[], float]]) -> dict[str, float]:
    measured = {}
    with watch.part("ratios to the floor", len(runs)) as advance:
        for name, run in runs.items():
            measured[name] = median(run() for _ in range(_TRIES))
            advance()
    return measured


def judge(measured: Mapping[str, float], baselines: Mapping[str, float]) -> list[Verdict]:
    """Compare; every baseline must have been measured."""
    missing = sorted(set(baselines) - set(measured))
    if missing:
        raise RuntimeError(f"nothing was measured for the baselines {missing}")
    return [Verdict(name, ratio, measured[name]) for name, ratio in baselines.items()]


def stored(path: Path = BASELINES) -> dict[str, float]:
    return json.loads(path.read_text())


def store(measured: Mapping[str, float], path: Path = BASELINES) -> None:
    path.write_text(
        json.dumps({name: round(ratio, 3) for name, ratio in measured.items()}, indent=2) + "\n"
    )


def shown(verdicts: list[Verdict]) -> Table:
    table = Table(title=f"Ratio to the floor; a loss of more than {ALLOWED_LOSS:.0%} fails")
    for head in ("what", "stored", "now", "loss"):
        table.add_column(head, justify="left" if head == "what" else "right")
    for verdict in verdicts:
        style = "" if verdict.holds else "bold red"
        numbers = f"{verdict.baseline:.2f}", f"{verdict.measured:.2f}", f"{verdict.loss:+.0%}"
        table.add_row(verdict.name, *numbers, style=style)
    return table


def check(console: Console, *, keep: bool = False, path: Path = BASELINES, runs=None) -> bool:
    """Measure and say whether all ratios hold; with `keep`, store them as baselines instead."""
    watch = Watch(console)
    with watch.progress:
        measured = measure(watch, subset() if runs is None else runs)
    if keep:
        store(measured, path)
        console.print(f"stored as baselines: {path.name}")
        return True
    verdicts = judge(measured, stored(path))
    console.print(shown(verdicts))
    return all(verdict.holds for verdict in verdicts)
