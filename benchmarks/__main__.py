"""`make bench` and `make bench-check`: measure everything, or a subset against stored ratios."""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import argparse
import sys

from rich.console import Console

from benchmarks import check, report


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repeats, shorter horizons")
    parser.add_argument("--no-peers", action="store_true", help="leave other libraries out")
    parser.add_argument("--check", action="store_true", help="a subset against stored ratios")
    parser.add_argument("--store", action="store_true", help="with --check: store the ratios")
    asked = parser.parse_args(arguments)
    console = Console()
    if asked.check:
        return 0 if check.check(console, store=asked.store) else 1
    rows = report.write(asked.quick, not asked.no_peers, console)
    missed = [row for row in rows if row.met is False]
    for row in missed:
        console.print(f"missed: {row.workload}: {row.measured}", highlight=False)
    console.print(
        f"{len(rows) - len(missed)} of {len(rows)} budgets; {report.REPORT.name} is written"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
