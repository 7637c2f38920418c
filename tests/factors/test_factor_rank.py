"""The evidence finds the rank of the arms."""

import numpy as np
import pytest

from halfseen import LowRankWorld
from halfseen.factors.model import HalfSeenRows, choose_rank, fit_rank


def offered(seed, *, rounds, offset=0.0, **settings):
    basics = {"dim": 30, "rank": 3, "n_arms": 8, "horizon": rounds, "noise_scale": 0.1}
    world = LowRankWorld(**basics | settings)
    return offset + np.vstack([round.slate.table for round in world.realize(seed).rounds()])


@pytest.mark.parametrize(
    ("observe_prob", "rounds", "settings"),
    [
        (0.8, 3, {}),
        (0.4, 4, {}),
        (0.2, 12, {}),
        (0.5, 30, {"perturbation": 0.1}),
        (0.5, 30, {"latent": "student"}),
        (0.6, 40, {"rank": 8}),
        (0.6, 100, {"rank": 15}),
        (0.6, 100, {"rank": 30}),
    ],
)
def test_the_rank_is_found(observe_prob, rounds, settings):
    # A full rank with a flat spectrum is rank 0: no entry predicts another one.
    rank = settings.get("rank", 3)
    for seed in range(2000, 2005):
        table = offered(seed, rounds=rounds, observe_prob=observe_prob, offset=4.0, **settings)
        assert choose_rank(HalfSeenRows(table)).model.rank == (rank if rank < 30 else 0), seed


def test_entries_that_do_not_determine_the_rank_give_a_smaller_one():
    rows = HalfSeenRows(offered(2000, rounds=3, observe_prob=0.2))
    assert rows.largest_rank >= 3
    assert choose_rank(rows).model.rank <= 1


def test_a_search_goes_down_from_the_last_rank():
    table = offered(2001, rounds=80, observe_prob=0.5, perturbation=0.1)
    rows = HalfSeenRows(table)
    assert choose_rank(rows, fit_rank(rows, 8).model).model.rank == 3


def test_a_given_rank_is_lowered_if_there_are_too_few_entries():
    rows = HalfSeenRows(offered(2000, rounds=1, observe_prob=0.2))
    assert rows.largest_rank == 1
    assert fit_rank(rows, 3).model.rank == 1
