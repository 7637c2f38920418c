"""`make bench`: speed and memory of TofuPov beside the yardstick, in one run on one thread.

Prints what it measures and writes it to `benchmarks/results.md`.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import platform
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from benchmarks.memory import MEMORY_CASES, held_and_peak
from benchmarks.speed import SIZES, Size, measure
from benchmarks.startup import compile_seconds, import_seconds

RESULTS = Path(__file__).parent / "results.md"


def main() -> None:
    console = Console()
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench`: single thread, TofuPov with full replay through its public API "
        "(`choose` + `learn`, arrays with NaN, validation included) and the yardstick "
        "(`benchmarks/yardstick.py`) in turns in one run; p = .3, T = 400; median (quartiles) over "
        "repeats of the time per round, burn-in and epoch openings included.",
        "",
        f"Machine: {platform.machine()}, {os.cpu_count()} cores, Python "
        f"{platform.python_version()}.",
        "",
    ]
    total = sum(size.repeats for size in SIZES) + len(MEMORY_CASES) + 2
    with Progress(console=console) as progress:
        task = progress.add_task("measuring", total=total)
        advance = lambda: progress.advance(task)  # noqa: E731
        lines += speed_table(SIZES, advance) + memory_table(advance) + startup_table(advance)
    text = "\n".join(lines) + "\n"
    RESULTS.write_text(text)
    print(text)
    print(f"written to {RESULTS.relative_to(Path.cwd())}")


def speed_table(sizes: tuple[Size, ...], advance) -> list[str]:
    lines = [
        "| dim, rank, arms | yardstick, µs | TofuPov, µs | in an epoch, µs | ratio | goal |",
        "|---|---|---|---|---|---|",
    ]
    for size in sizes:
        result = measure(size, advance)
        goal = "–" if size.goal is None else f"≥ {size.goal}"
        lines.append(
            f"| {size.dim}, {size.rank}, {size.n_arms} | {result.yardstick} | {result.ours} | "
            f"{result.ours_in_epoch} | {result.ratio} | {goal} |"
        )
    return [*lines, ""]


def memory_table(advance) -> list[str]:
    lines = [
        "Memory of a run at (30, 3, 8), nothing replayed (so no played arms are kept): what the "
        "policy holds at the end, and the peak of the whole process.",
        "",
        "| case | held, KiB | against the first | peak, MiB | against the first |",
        "|---|---|---|---|---|",
    ]
    first = None
    for name, case in MEMORY_CASES.items():
        held, peak = held_and_peak(case)
        first = first or (held, peak)
        lines.append(
            f"| {name} | {held / 1024:.1f} | {held / first[0]:.3f} | {peak / 2**20:.1f} | "
            f"{peak / first[1]:.3f} |"
        )
        advance()
    return [*lines, ""]


def startup_table(advance) -> list[str]:
    imported = import_seconds()
    advance()
    compiled = compile_seconds()
    advance()
    return [
        "| start | seconds | goal |",
        "|---|---|---|",
        f"| `import halfseen` | {imported:.3f} | < 0.3 |",
        f"| first choice in a fresh process with an empty cache | {compiled:.1f} | < 10 |",
        "",
    ]


if __name__ == "__main__":
    main()
