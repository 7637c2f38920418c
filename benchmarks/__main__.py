"""`make bench` and `make bench-check`: measure everything, or a subset against stored ratios."""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import argparse
import sys

from rich.console import Console
from rich.markdown import Markdown

from benchmarks import check, report
from benchmarks.budget import table
from benchmarks.findings import measure_all
from benchmarks.harness import Plan, Watch


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repeats, shorter horizons")
    parser.add_argument("--no-peers", action="store_true", help="leave other libraries out")
    parser.add_argument("--check", action="store_true", help="a subset against stored ratios")
    parser.add_argument("--store", action="store_true", help="with --check: store the ratios")
    asked = parser.parse_args(arguments)
    console = Console()
    if asked.check:
        return 0 if check.check(console, keep=asked.store) else 1
    plan = Plan(quick=asked.quick, peers=not asked.no_peers)
    watch = Watch(console)
    with watch.progress:
        found = measure_all(plan, watch)
    rows = report.write(found, plan)
    console.print(Markdown("\n".join(table(rows))))
    console.print(f"report: {os.path.relpath(report.REPORT)}", highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
