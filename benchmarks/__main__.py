"""`make bench`: measure everything in one run, and write the report."""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import argparse

from rich.console import Console

from benchmarks import report


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repeats, shorter horizons")
    parser.add_argument("--no-peers", action="store_true", help="leave other libraries out")
    asked = parser.parse_args()
    console = Console()
    rows = report.write(asked.quick, not asked.no_peers, console)
    missed = [row for row in rows if row.met is False]
    for row in missed:
        console.print(f"missed: {row.workload}: {row.measured}", highlight=False)
    console.print(
        f"{len(rows) - len(missed)} of {len(rows)} budgets; {report.REPORT.name} is written"
    )


if __name__ == "__main__":
    main()
