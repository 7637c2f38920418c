"""Versions of arrays, columns and entries stay right, in whatever order they are used."""

from copy import deepcopy

import numpy as np
import pytest

from halfseen.linear.versions import Entries, Growing, Version


class Plain:
    """What a version does, with a copy per step."""

    def __init__(self, value):
        self.value = value

    def written(self, place, number):
        value = self.value.copy()
        value[place] = number
        return Plain(value)


def twins(random, versions, n_steps, step):
    """Continue randomly chosen versions; return all of them, each with its plain twin."""
    for _ in range(n_steps):
        at = int(random.integers(len(versions)))
        versions.append(step(*versions[at]))
        if random.random() < 0.2:
            del versions[int(random.integers(len(versions)))]
    return versions


@pytest.mark.parametrize("seed", range(20))
def test_any_version_can_be_continued_and_read(seed):
    random = np.random.default_rng(seed)

    def step(version, plain):
        places, values = random.integers(0, 6, 3), random.random(3)
        return version.written(places, (values,)), plain.written(places, values)

    for version, plain in twins(random, [(Version(np.zeros(6)), Plain(np.zeros(6)))], 40, step):
        assert version.columns[0].tolist() == plain.value.tolist()
        assert deepcopy(version).columns[0].tolist() == plain.value.tolist()


@pytest.mark.parametrize("seed", range(20))
def test_entries_of_any_version_can_be_continued_and_read(seed):
    random = np.random.default_rng(seed)

    def step(entries, plain):
        key, value = int(random.integers(6)), float(random.random())
        if key in plain and random.random() < 0.5:
            return entries.without(key), {at: each for at, each in plain.items() if at != key}
        return entries.plus(key, value), {**plain, key: value}

    for entries, plain in twins(random, [(Entries(), {})], 40, step):
        assert entries.now == deepcopy(entries).now == plain


def test_rows_of_any_version_can_be_continued_and_read():
    random = np.random.default_rng(0)

    def step(rows, plain):
        value = float(random.random())
        return rows.plus((value, [value, 1.0])), [*plain, value]

    start = Growing([np.zeros(0), np.zeros((0, 2))]), []
    for rows, plain in twins(random, [start], 400, step):
        values, pairs = rows.columns
        assert values.tolist() == pairs[:, 0].tolist() == plain
        assert len(rows) == len(plain)


def test_the_newest_version_is_written_without_a_copy():
    array = np.zeros(3)
    version = Version(array).written([0], ([1.0],)).written([1], ([2.0],))
    assert version.columns[0] is array


def test_one_cause_makes_one_version():
    cause, old = object(), Version(np.zeros(2))
    new = old.written([0], ([1.0],), cause=cause)
    assert old.written([0], ([1.0],), cause=cause) is new
    assert old.written([0], ([1.0],), cause=object()) is not new
