"""A comparison of two versions names what is slower, and nothing else."""

from multiprocessing import Pipe
from threading import Thread

import numpy as np
import pytest

from benchmarks import against, hot_paths
from benchmarks.against import FULL, NOW, THEN, Comparison, Plan, compare
from benchmarks.hot_paths import COLD, PATHS, HotPath, Seconds

PATH, STORED = "LatentUcb, long run", "Agent on SQLite, 8 × 30"


def compared(seed, factor=1.0, wall=1.0, path=PATH):
    """Return a comparison of invented blocks: processes differ by 3 %, blocks in them by 5 %."""
    random, found = np.random.default_rng(seed), Comparison()
    for _ in range(FULL.starts):
        blocks = {}
        for version, power in ((THEN, 0), (NOW, 1)):
            process = 0.01 * factor**power * np.exp(0.03 * random.normal())
            times = process * np.exp(0.05 * random.normal(size=FULL.pairs))
            blocks[version] = [{"choose": Seconds(each, each * wall**power)} for each in times]
        found.add(path, blocks)
    return found


def test_a_path_that_is_slower_by_a_fifth_is_named_and_noise_is_not():
    """Of 300 comparisons each; the bounds are at 5 sigma of 99.7 % and 0.1 %."""
    slower = [compared(seed, factor=1.2).exceeds(1.1) for seed in range(300)]
    noise = [compared(seed).exceeds(1.0) for seed in range(300)]
    assert np.mean(slower) > 0.98
    assert np.mean(noise) < 0.011
    (line,) = compared(0, factor=1.2).went_back("v1")
    assert line.startswith("slower: LatentUcb, long run: choose, 1.")
    assert line.endswith("× of processor time")
    assert compared(0).went_back("v1") == ["nothing is slower than at v1"]
    assert not compared(0, factor=1.2).exceeds(1.5)


def test_a_faster_path_is_not_slower():
    found = compared(0, factor=0.8)
    assert found.went_back("v1") == ["nothing is slower than at v1"]
    assert found.table()[1].endswith("faster")


def test_the_wall_clock_decides_only_where_a_path_waits():
    (line,) = compared(0, wall=1.5, path=STORED).went_back("v1")
    assert line.endswith("× of wall time")
    assert compared(0, wall=1.5).went_back("v1") == ["nothing is slower than at v1"]


class Invented:
    """A version that lacks a path."""

    def __init__(self, source, cache):
        self.lacks = source

    def run(self, path):
        if path == self.lacks:
            return "AttributeError: it has none"
        return {"choose": Seconds(1.0, 1.0)}

    def close(self):
        pass


def test_a_path_that_one_version_cannot_run_is_reported_and_the_others_are_measured(monkeypatch):
    monkeypatch.setattr(against, "Version", Invented)
    paths, plan, steps = [PATH, STORED, COLD], Plan(3, 2, 2, 0.0), []
    sources = {THEN: STORED, NOW: COLD}
    found = compare(sources, paths, plan, against.ROOT, lambda: steps.append(1))
    assert found.failed == {
        STORED: {THEN: "AttributeError: it has none"},
        COLD: {NOW: "AttributeError: it has none"},
    }
    (measured,) = found.measured.values()
    assert [len(pairs) for pairs in measured.starts] == [2, 2, 2]
    (line,) = found.went_back("v1")
    assert line == f"does not run any more: {COLD}, AttributeError: it has none"
    assert found.exceeds(100.0)
    assert sum("it has none" in line for line in found.table()) == 2
    assert len(steps) == 2 + 4 * 2


def test_an_error_of_a_path_is_told_and_the_next_path_runs(monkeypatch):
    def fails():
        yield {"choose": Seconds(1.0, 1.0)}
        raise ValueError("no more")

    monkeypatch.setitem(PATHS, PATH, HotPath(fails))
    monkeypatch.setenv("NUMBA_CACHE_DIR", "unchanged")
    monkeypatch.syspath_prepend("before")
    ours, theirs = Pipe()
    Thread(target=against._serve, args=(theirs, against.ROOT, against.ROOT), daemon=True).start()
    answers = []
    for path in (PATH, PATH, "none of them", PATH):
        ours.send(path)
        answers.append(ours.recv())
    ours.close()
    assert answers[0] == {"choose": (1.0, 1.0)}
    assert answers[1:3] == ["ValueError: no more", "KeyError: 'none of them'"]
    assert answers[3].startswith("StopIteration")


@pytest.mark.parametrize("path", PATHS)
def test_the_present_version_runs_every_path(path, monkeypatch):
    for name, size in {"_WHOLE_RUN": 40, "_LONG_AGO": 20, "_BLOCK": 10, "_CALLS": 2}.items():
        monkeypatch.setattr(hot_paths, name, size)
    monkeypatch.setattr(hot_paths, "_LATE", 1)
    found = next(PATHS[path].blocks())
    assert found
    assert min(min(each) for each in found.values()) > 0.0
