"""Beyond one machine, on two cores: `python -m benchmarks.cluster` writes benchmarks/cluster.md.

Cells of the main study on a Dask cluster of two workers, against two processes; a Parquet folder
that is filled and written by one process, against two Dask workers; a log of 10⁷ decisions, against
10⁶. The table takes 8 GB of disk in the folder --scratch; `--rows 2000000` takes a tenth.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measuring import Row, in_turns, seconds

N_COLUMNS, RANK, FILE_ROWS = 50, 5, 100_000
REPORT = Path(__file__).with_name("cluster.md")

_PEAK = """
import json, sys, time
def peak():
    # Of this program: what getrusage says includes the process that started it.
    lines = dict(line.split(":") for line in open("/proc/self/status") if ":" in line)
    return int(lines["VmHWM"].split()[0]) / 1e3
def report(started, *more):
    print(json.dumps([time.perf_counter() - started, max(peak(), *more, 0.0)]))
started = time.perf_counter()
"""
_FILL = """
import pyarrow.parquet as pq
from halfseen.sklearn import LatentImputer
imputer = LatentImputer(random_state=0).fit(sys.argv[1])
file = None
for part in imputer.transform(sys.argv[1]):
    file = file or pq.ParquetWriter(sys.argv[2], part.schema)
    file.write_table(part)
file.close()
report(started, 0.0)
"""
_FILL_ON_DASK = """
import dask.dataframe as dd
from distributed import Client, LocalCluster
from halfseen.sklearn import LatentImputer
def load():
    import halfseen.sklearn
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as local:
        with Client(local) as client:
            client.run(load)
            started = time.perf_counter()  # a cluster is there before
            table = dd.read_parquet(sys.argv[1])
            imputer = LatentImputer(random_state=0).fit(table)
            imputer.transform(table).to_parquet(sys.argv[2], write_index=False)
            peaks = client.run(peak).values()
            report(started, *peaks)
"""
_EVALUATE = """
from halfseen import evaluate
evaluate(sys.argv[1], ["uniform", "coat"], context=["hour", "age"])
report(started, 0.0)
"""


def child(program, *arguments):
    """Run a program in a process of its own; return its seconds and its peak memory in MB."""
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(_PEAK + program)
        file.flush()
        command = [sys.executable, file.name, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def cells(repeats):
    """Return the time on Dask as a share of that of two processes, and the row."""
    import joblib
    from distributed import Client, LocalCluster

    from halfseen import paper

    def run(**how):
        return paper.run("synthetic", seeds=range(1), **how)

    local = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**local) as cluster, Client(cluster) as client:

        def on_dask():
            with joblib.parallel_config("dask", client=client):
                return run()

        ways = {"Dask": on_dask, "processes": lambda: run(jobs=2)}
        for way in ways.values():  # processes start, compiled loops load
            way()
        times = in_turns(
            {name: lambda way=way: seconds(way) for name, way in ways.items()}, repeats
        )
    ratio = float(np.median(np.array(times["Dask"]) / times["processes"]))
    taken = np.median(times["processes"])
    what = f"70 cells of `synthetic` on two Dask workers, against two processes ({taken:.1f} s)"
    return Row(what, f"{ratio:.2f} ×", "≤ 1.2 ×", ratio <= 1.2)


def make_table(folder, n):
    """Write n rows of low rank, half of them hidden."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(0)
    basis = random.normal(size=(RANK, N_COLUMNS))
    for number, first in enumerate(range(0, n, FILE_ROWS)):
        m = min(FILE_ROWS, n - first)
        table = random.normal(size=(m, RANK)) @ basis + 0.5 * random.normal(size=(m, N_COLUMNS))
        table[random.random(table.shape, dtype=np.float32) < 0.5] = np.nan
        columns = {
            f"c{at}": pa.array(column, from_pandas=True) for at, column in enumerate(table.T)
        }
        pq.write_table(pa.table(columns), folder / f"part.{number}.parquet")


def filled(scratch, n, repeats):
    source, target = scratch / "table", scratch / "filled"
    make_table(source, n)
    peaks = {"one process": 0.0, "two Dask workers": 0.0}

    def run(name, program):
        shutil.rmtree(target, ignore_errors=True)
        target.unlink(missing_ok=True) if target.is_file() else None
        taken, peak = child(program, source, target)
        peaks[name] = max(peaks[name], peak)
        return taken

    programs = dict(zip(peaks, (_FILL, _FILL_ON_DASK), strict=True))
    runs = {name: lambda name=name: run(name, programs[name]) for name in programs}
    times = in_turns(runs, repeats)
    alone, dask = (np.array(times[name]) for name in programs)
    size = sum(file.stat().st_size for file in source.iterdir()) / 1e9
    what = f"{n:,} × {N_COLUMNS} in Parquet ({size:.1f} GB), half hidden, filled and written"
    memory = ", ".join(f"{name} {peak:.0f} MB" for name, peak in peaks.items())
    speed = float(np.median(alone / dask))
    rows = [
        Row(f"{what}: peak memory of a process", memory, "≤ 1000 MB", max(peaks.values()) <= 1000),
        Row(
            f"… two Dask workers, against one process ({np.median(alone):.0f} s)",
            f"{speed:.2f} × as fast",
            "≥ 1.6 ×",
            speed >= 1.6,
        ),
    ]
    shutil.rmtree(source)
    shutil.rmtree(target, ignore_errors=True)
    target.unlink(missing_ok=True)
    return rows


def make_log(path, n):
    """Write n decisions among five items with a context of two columns."""
    random, file = np.random.default_rng(0), None
    names = np.array(["hat", "coat", "sock", "shoe", "scarf"])
    for first in range(0, n, 1_000_000):
        m = min(1_000_000, n - first)
        item, age = random.integers(5, size=m), random.normal(size=m)
        columns = {
            "item": names[item],
            "propensity": np.full(m, 0.2),
            "reward": (random.random(m) < 0.1 + 0.05 * item).astype(float),
            "hour": random.integers(24, size=m).astype(float),
            "age": pa.array(np.where(random.random(m) < 0.3, np.nan, age), from_pandas=True),
        }
        table = pa.table(columns)
        file = file or pq.ParquetWriter(path, table.schema)
        file.write_table(table)
    file.close()


def evaluated(scratch):
    found = {}
    for n in (10**6, 10**7):
        path = scratch / "log.parquet"
        make_log(path, n)
        found[n] = child(_EVALUATE, path)
        path.unlink()
    (_, less), (taken, more) = found.values()
    return Row(
        "`evaluate`, 10⁷ decisions with a context, two policies, against 10⁶: peak memory",
        f"{more:.0f} MB, against {less:.0f} MB; {taken:.0f} s",
        "≤ 1.2 ×",
        more <= 1.2 * less,
    )


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000, help="of the table that is filled")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--scratch", type=Path, help="an empty folder with enough room")
    asked = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(dir=asked.scratch))
    try:
        rows = [
            cells(asked.repeats),
            *filled(scratch, asked.rows, asked.repeats),
            evaluated(scratch),
        ]
    finally:
        shutil.rmtree(scratch)
    head = ["| workload | measured | required | met |", "|---|---|---|---|"]
    text = "\n".join([*head, *map(str, rows)])
    REPORT.write_text(
        f"# Beyond one machine\n\n`python -m benchmarks.cluster`\n\n{text}\n", "utf-8"
    )
    print(text)


if __name__ == "__main__":
    main()
