"""All robustness suites at length, on all cores; exits 1 if anything fails.

    make soak
    PYTHONPATH=tests python -m robustness.soak --share 0.01

Each suite is a module of this folder with `run(n, seed) -> (tried, failures)`.
"""

import argparse
import importlib
import logging
import multiprocessing
import os
import resource
import sys
import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait

from rich.progress import Progress, TextColumn

SUITES = {
    "calls": 1_000_000, "agents": 40_000, "files": 12_000, "faults": 4_000, "kills": 600,
    "requests": 20_000,
}  # fmt: skip
"""How many calls of policies and of agents, damaged files, injected faults, kills and requests are
tried, by the module. Half of the kills are on PostgreSQL, if it is installed."""

# Tries per job of a suite: a few seconds of work. Cases of one job have seeds in a row.
JOBS = {
    "calls": 2000, "agents": 1000, "files": 200, "faults": 100, "kills": 40, "requests": 20_000
}  # fmt: skip
SEEDS_PER_JOB = 10_000
MINUTES = 55.0
GIGABYTES = 1.0


def limit_memory(gigabytes):
    """Let this process, and those that it starts, have so much memory and no more."""
    most = int(gigabytes * 2**30)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def work(suite, n, seed):
    """Do one job of a suite, in a process of its own."""
    logging.getLogger("halfseen").setLevel(logging.ERROR)  # forgotten decisions are on purpose
    return suite, *importlib.import_module(f"robustness.{suite}").run(n, seed)


def jobs(share, first_seed):
    """Yield all jobs, the suites in turns, so that a stop in between cuts all of them alike."""
    left = {suite: int(n * share) for suite, n in SUITES.items()}
    parts = {suite: -(-left[suite] // JOBS[suite]) for suite in SUITES}
    order = sorted((index / parts[each], each) for each in SUITES for index in range(parts[each]))
    for number, (_, suite) in enumerate(order):
        n = min(JOBS[suite], left[suite])
        left[suite] -= n
        yield suite, n, first_seed + number * SEEDS_PER_JOB


def soak(share, first_seed, minutes, n_processes, gigabytes):
    """Run all jobs or as many as fit into the time; return what was tried and what failed."""
    end, tried, failures = time.monotonic() + 60.0 * minutes, Counter(), []
    queue, running = jobs(share, first_seed), set()
    columns = [*Progress.get_default_columns(), TextColumn("{task.fields[failed]} failed")]
    spawn = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(n_processes, spawn, limit_memory, (gigabytes,))
    with pool, Progress(*columns) as progress:
        bar = progress.add_task("soak", total=sum(SUITES.values()) * share, failed=0)
        while True:
            while len(running) < 2 * n_processes and time.monotonic() < end:
                job = next(queue, None)
                if job is None:
                    break
                running.add(pool.submit(work, *job))
            if not running:
                return tried, failures, next(queue, None) is None
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                suite, n, failed = future.result()
                tried[suite] += n
                for failure in failed:
                    failures.append(failure)
                    progress.print(f"{suite}: {failure}", markup=False, soft_wrap=True)
                progress.update(bar, advance=n, failed=len(failures))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="of the full numbers")
    parser.add_argument("--seed", type=int, default=0, help="the first of all")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="no job starts later")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--gigabytes", type=float, default=GIGABYTES, help="of each process")
    given = parser.parse_args()
    start = time.monotonic()
    settings = given.share, given.seed, given.minutes, given.processes, given.gigabytes
    tried, failures, finished = soak(*settings)
    taken = time.monotonic() - start
    counts = ", ".join(f"{tried[suite]:,} {suite}" for suite in SUITES)
    print(f"tried {counts} in {taken / 60:.1f} minutes; {len(failures)} failed")
    if not finished:
        print(f"stopped after {given.minutes:g} minutes, before all of it was tried")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
