"""A uniform sample of rows that keep coming: every subset is equally likely, nothing is random."""

import numpy as np
import pytest
from scipy.stats import chi2

from halfseen import archive, state
from halfseen.errors import HalfseenError
from halfseen.linear import history
from halfseen.linear.history import _DRAWS, Reservoir


def numbered(n_rows):
    """Return rows that carry their number."""
    return np.arange(float(n_rows))[:, None]


def add_in_slates(reservoir, rows, sizes):
    """Add rows in slates of these sizes, over and over."""
    first, turn = 0, 0
    while first < len(rows):
        size = sizes[turn % len(sizes)]
        reservoir.add(rows[first : first + size])
        first, turn = first + size, turn + 1


def test_every_pair_of_rows_is_kept_with_the_same_probability():
    """Chi-square over the 15 pairs of 6 rows, 1500 seeds: a false alarm has rate 1e-6."""
    n_seeds, counts = 1500, np.zeros((6, 6))
    for seed in range(n_seeds):
        reservoir = Reservoir(1, max_rows=2, seed=seed)
        add_in_slates(reservoir, numbered(6), (1, 3))
        first, second = sorted(reservoir.rows[:, 0].astype(int))
        counts[first, second] += 1
    pairs = counts[np.triu_indices(6, 1)]
    assert pairs.sum() == n_seeds
    assert ((pairs - n_seeds / 15) ** 2).sum() / (n_seeds / 15) < chi2.isf(1e-6, 14)


@pytest.mark.parametrize("max_rows", [30, 31, 1000])
def test_while_all_fit_all_are_kept_in_order(max_rows):
    rng = np.random.default_rng(0)
    rows = np.where(rng.random((30, 4)) < 0.5, rng.normal(size=(30, 4)), np.nan)
    for sizes in ((30,), (1,), (4, 7)):
        reservoir = Reservoir(4, max_rows=max_rows)
        add_in_slates(reservoir, rows, sizes)
        assert np.array_equal(reservoir.rows, rows, equal_nan=True)
        assert (reservoir.n_arms, len(reservoir.rows)) == (30, 30)


@pytest.mark.parametrize("sizes", [(1,), (7, 2), (4095, 2), (4096,)])
def test_how_rows_are_split_into_slates_makes_no_difference(sizes):
    """Places are drawn in blocks, whose borders slates may cross, once or twice."""
    n_rows = 9500
    assert 2 * _DRAWS < n_rows < 3 * _DRAWS
    expected = Reservoir(1, max_rows=60, seed=5)
    expected.add(numbered(n_rows))
    reservoir = Reservoir(1, max_rows=60, seed=5)
    add_in_slates(reservoir, numbered(n_rows), sizes)
    assert np.array_equal(reservoir.rows, expected.rows)
    for each in (reservoir, expected):
        each.add(-numbered(5000))
    assert np.array_equal(reservoir.rows, expected.rows)


def test_a_full_reservoir_larger_than_a_block_of_draws_keeps_whole_rows():
    reservoir = Reservoir(1, max_rows=_DRAWS + 100)
    add_in_slates(reservoir, numbered(3 * _DRAWS), (777,))
    assert len(np.unique(reservoir.rows)) == _DRAWS + 100
    # Two thirds came among the first two thirds, at 5 sigma of a binomial, which varies more.
    n_first = np.count_nonzero(reservoir.rows < 2 * _DRAWS)
    expected = (_DRAWS + 100) * 2 / 3
    assert abs(n_first - expected) < 5 * np.sqrt(expected / 3)


def test_of_many_reservoirs_each_draws_the_places_of_a_block_once(monkeypatch):
    drawn, stream = [], history.stream
    monkeypatch.setattr(history, "stream", lambda *key: drawn.append(key) or stream(*key))
    reservoirs = [Reservoir(1, max_rows=3, seed=seed) for seed in range(40)]
    for _ in range(3):
        for reservoir in reservoirs:
            reservoir.fork().add(numbered(4))
            reservoir.add(numbered(4))
            assert len(reservoir.rows) == 3
    assert len(drawn) == len(reservoirs)


@pytest.mark.parametrize("n_before", [0, 4, 20])
def test_a_change_of_a_fork_does_not_show_in_the_original(n_before):
    """Also where a fork is given up and the next one gets other rows."""
    reservoir, plain = Reservoir(1, max_rows=5), Reservoir(1, max_rows=5)
    for each in (reservoir, plain):
        add_in_slates(each, numbered(n_before), (2,))
    before = archive.to_bytes(state.dump(reservoir))
    given_up = reservoir.fork()
    given_up.add(-numbered(3))
    assert archive.to_bytes(state.dump(reservoir)) == before
    fork = reservoir.fork()
    for each in (fork, plain):
        add_in_slates(each, 100.0 + numbered(30), (4, 1))
    assert archive.to_bytes(state.dump(fork)) == archive.to_bytes(state.dump(plain))


@pytest.mark.parametrize("n_before", [0, 20, 4096, 5000])
def test_a_restored_reservoir_continues_as_if_nothing_had_happened(n_before):
    rng = np.random.default_rng(3)
    rows = np.where(rng.random((6000, 2)) < 0.7, rng.normal(size=(6000, 2)), np.nan)
    reservoir = Reservoir(2, max_rows=20, seed=4)
    add_in_slates(reservoir, rows[:n_before], (11,))
    saved = archive.from_bytes(archive.to_bytes({"reservoir": state.dump(reservoir)}))["reservoir"]
    restored = Reservoir(2, max_rows=20, seed=4)
    state.restore(restored, saved)
    for each in (reservoir, restored):
        add_in_slates(each, rows[n_before:], (13,))
    assert restored.n_arms == reservoir.n_arms == 6000
    assert np.array_equal(restored.rows, reservoir.rows, equal_nan=True)
    assert np.array_equal(restored.numbers, reservoir.numbers)


@pytest.mark.parametrize(
    ("n_arms", "shape", "numbers"),
    [
        (3, (2, 2), None),
        (2, (2, 3), None),
        (-1, (0, 2), None),
        (30, (30, 2), None),
        (2, (2, 2), np.arange(2)),
        (30, (20, 2), np.arange(19, 39)),
        (30, (20, 2), np.arange(19)),
    ],
    ids=["too few rows", "too wide", "negative", "more rows than allowed", "too early", "not yet",
         "too few numbers"],
)  # fmt: skip
def test_a_state_that_does_not_fit_is_refused(n_arms, shape, numbers):
    saved = {"n_arms": n_arms, "rows": np.ones(shape), "numbers": numbers}
    with pytest.raises(HalfseenError):
        state.restore(Reservoir(2, max_rows=20), saved)
