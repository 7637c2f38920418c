"""Worlds whose rounds have a context: what it shows, and what rewards depend on."""

import numpy as np
import pytest

from halfseen import (
    BilinearWorld,
    DisjointArmsWorld,
    InvalidSettingError,
    LabelsWorld,
    LowRankWorld,
)
from halfseen.simulation.cells import _full
from halfseen.worlds.public_tables import read_table


def test_the_label_of_the_row_that_is_shown_pays():
    table = read_table("breast-cancer")
    world = LabelsWorld(table="breast-cancer", horizon=50)
    for slate, means, noise, _ in world.realize(4).rounds():
        (row,) = np.flatnonzero((table.values == slate.context).all(axis=1))
        assert means.tolist() == [float(label == table.labels[row]) for label in slate.items]
        assert noise == 0.0
        assert not slate.mask.any()


def test_holes_of_the_table_stay_and_a_column_is_hidden_as_a_whole():
    table = read_table("bone-marrow")
    rounds = list(
        LabelsWorld(table="bone-marrow", horizon=300, observe_prob=0.5).realize(0).rounds()
    )
    seen = np.array([~np.isnan(round.slate.context) for round in rounds])
    for origin in range(table.origins[-1] + 1):
        columns = seen[:, table.origins == origin]
        assert (columns == columns[:, :1]).all()
    # 300 rounds times 36 columns: the standard error is below .005.
    firsts = np.unique(table.origins, return_index=True)[1]
    recorded = (~np.isnan(table.values[:, firsts])).mean()
    assert seen[:, firsts].mean() == pytest.approx(0.5 * recorded, abs=0.025)


def test_bilinear_rewards_depend_on_both_sides():
    world = BilinearWorld(horizon=400, main_effect=0.0)
    realization = world.realize(1)
    means = np.array([round.means for round in realization.rounds()])
    # E(z'Mw)² = ‖M‖² = 1; the mean of 400 dependent rows has a standard error of about .1.
    assert (means**2).mean() == pytest.approx(1.0, abs=0.5)
    assert np.linalg.norm(realization.interaction) == pytest.approx(1.0)
    assert abs(means.mean()) < 0.25


def test_a_catalogue_keeps_features_and_holes_of_its_items():
    shown = {}
    for slate, _, _, _ in BilinearWorld(horizon=30, n_items=12).realize(0).rounds():
        assert len(set(slate.items.tolist())) == 8
        for item, row in zip(slate.items.tolist(), slate.table, strict=True):
            assert np.array_equal(shown.setdefault(item, row), row, equal_nan=True)
    assert len(shown) == 12
    with pytest.raises(InvalidSettingError, match="n_items must be at least 8"):
        BilinearWorld(n_items=7)


def test_means_of_disjoint_arms_are_linear_in_the_latents_of_the_context():
    world = DisjointArmsWorld(context_dim=4, context_rank=2, horizon=50, observe_prob=1.0)
    realization = world.realize(2)
    for slate, means, _, _ in realization.rounds():
        latents = np.linalg.lstsq(realization.contexts, slate.context, rcond=None)[0]
        assert means == pytest.approx(realization.intercepts + realization.thetas @ latents)


def test_an_irrelevant_context_changes_nothing_of_the_main_study():
    world = LowRankWorld(horizon=20, observe_prob=0.4, context_dim=10)
    plain = LowRankWorld(horizon=20, observe_prob=0.4).realize(3)
    for ours, theirs in zip(world.realize(3).rounds(), plain.rounds(), strict=True):
        assert ours.slate.without_context() == theirs.slate
        assert ours.slate != theirs.slate
        assert np.array_equal(ours.means, theirs.means)
        assert ours.noise == theirs.noise
    assert world.realize(3).facts.rank == plain.facts.rank


def test_the_full_view_has_the_context_and_the_items():
    round = next(BilinearWorld(horizon=2, n_items=10).realize(0).rounds())
    full = _full(round)
    assert full.mask.all()
    assert np.array_equal(full.context, round.slate.context, equal_nan=True)
    assert np.array_equal(full.items, round.slate.items)
