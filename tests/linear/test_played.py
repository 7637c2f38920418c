"""Played arms are kept in the order of their rounds, however late their rewards came."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfseen import state
from halfseen.errors import ArchiveError
from halfseen.linear.history import Played


def arm_of(round, dim=3):
    """Return an arm that tells its round, partly hidden."""
    arm = round + np.arange(dim) / 10.0
    arm[round % dim] = np.nan
    return arm


def played(rounds, dim=3):
    kept = Played(dim)
    for round in rounds:
        kept.append(round, arm_of(round, dim), -float(round))
    return kept


def assert_holds(kept, rounds):
    """Check that exactly these rounds are there, in this order."""
    arms, rewards, numbers = kept.samples()
    assert len(kept) == len(rounds)
    assert arms.shape == (len(rounds), kept.dim)
    np.testing.assert_array_equal(rewards, -np.array(rounds, dtype=float))
    assert numbers.tolist() == list(rounds)
    for arm, round in zip(arms, rounds, strict=True):
        np.testing.assert_array_equal(arm, arm_of(round, kept.dim))


@given(st.permutations(range(1, 25)))
def test_samples_come_in_the_order_of_rounds_however_late_they_were_learned(rounds):
    assert_holds(played(rounds), sorted(rounds))


@pytest.mark.parametrize("n_played", [64, 65, 300])
def test_room_grows_with_what_is_played(n_played):
    assert_holds(played(range(1, n_played + 1)), range(1, n_played + 1))
    assert_holds(played(range(n_played, 0, -1)), range(1, n_played + 1))


def test_the_state_holds_what_was_played_and_no_spare_room():
    columns = state.dump(played(range(1, 20)))["columns"]
    assert {name: len(column) for name, column in columns.items()} == {
        "arms": 19, "rewards": 19, "rounds": 19
    }  # fmt: skip
    columns["rewards"] = columns["rewards"][1:]
    with pytest.raises(ArchiveError, match="'rewards' must have shape"):
        state.restore(Played(3), {"columns": columns})


@pytest.mark.parametrize("n_played", [0, 63, 64])
def test_a_change_of_a_fork_does_not_show_in_the_original(n_played):
    kept = played(range(1, n_played + 1))
    fork = kept.fork()
    for round in range(n_played + 1, n_played + 10):
        fork.append(round, arm_of(round), -float(round))
    assert_holds(kept, range(1, n_played + 1))
    assert_holds(fork, range(1, n_played + 10))
