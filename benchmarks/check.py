"""`make bench-check`: ratios to the floor beside stored ones; a loss of more than 25 % fails.

Ratios to something measured in the same minute depend little on the machine and its load, but a
little: `python -m benchmarks --check --store` stores those of this machine as the new baselines.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from benchmarks.tofu import CASES

BASELINES = Path(__file__).parent / "baselines.json"
ALLOWED_LOSS = 0.25
_REPEATS = 5
# The median of some tries counts: a busy moment may hit either side of a ratio.
_TRIES = 5


def ratios() -> dict[str, Callable[[], float]]:
    """Return how to measure each ratio to the floor, by name."""
    return {case.workload: lambda case=case: case.compare(_REPEATS).ratio.median for case in CASES}


def losses(measured: Mapping[str, float], baselines: Mapping[str, float]) -> dict[str, float]:
    """Return by which share each ratio has grown; every baseline must have been measured."""
    missing = sorted(set(baselines) - set(measured))
    if missing:
        raise RuntimeError(f"nothing was measured for the baselines {missing}")
    return {name: measured[name] / ratio - 1 for name, ratio in baselines.items()}


def check(console: Console, *, store: bool = False, path: Path = BASELINES, runs=None) -> bool:
    """Measure and return whether all ratios hold; with `store`, make them the baselines instead."""
    measured = {}
    for name, run in (runs or ratios()).items():
        measured[name] = median(run() for _ in range(_TRIES))
        console.print(f"{name}: {measured[name]:.2f} × floor", highlight=False)
    if store:
        rounded = {name: round(ratio, 3) for name, ratio in measured.items()}
        path.write_text(json.dumps(rounded, indent=2) + "\n")
        console.print(f"stored as baselines: {path.name}")
        return True
    baselines = json.loads(path.read_text())
    found = losses(measured, baselines)
    table = Table(title=f"Ratio to the floor; a loss of more than {ALLOWED_LOSS:.0%} fails")
    for head in ("what", "stored", "now", "loss"):
        table.add_column(head, justify="left" if head == "what" else "right")
    for name, loss in found.items():
        numbers = f"{baselines[name]:.2f}", f"{measured[name]:.2f}", f"{loss:+.0%}"
        table.add_row(name, *numbers, style="bold red" if loss > ALLOWED_LOSS else "")
    console.print(table)
    return max(found.values()) <= ALLOWED_LOSS
