"""Figures and reports from Python: as from the commands, without a study file."""

import sys

import numpy as np
import pytest

from halfseen import InvalidInputError, LowRankWorld, MissingExtraError, report, simulate
from halfseen.errors import StoreError
from halfseen.reports.look import look_of

WORLD = LowRankWorld(dim=6, rank=1, horizon=30)
METHODS = ["zf-oful", "uniform"]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    return simulate(METHODS, WORLD, range(3), jobs=1, out=tmp_path_factory.mktemp("results"))


def test_a_plot_has_the_regret_of_every_method_with_a_band(tables):
    (axes,) = tables.plot().axes
    assert axes.get_title() == "p = 0.3"
    for method, line in zip(METHODS, axes.get_lines(), strict=True):
        rows = [row for row in tables.trajectories if row["method"] == method]
        np.testing.assert_array_equal(line.get_ydata(), [row["mean_regret"] for row in rows])
        assert line.get_color() == look_of(method).color
    assert len(axes.collections) == len(METHODS)


def test_the_legend_has_labels_and_takes_dollars_literally():
    named = simulate({"uniform": {}, "$x$": {"method": "zf-greedy"}}, WORLD, [0], jobs=1)
    (legend,) = named.plot().legends
    assert [text.get_text() for text in legend.get_texts()] == ["uniform", "$x$"]
    assert not any(text.get_parse_math() for text in legend.get_texts())


def test_every_setting_and_probability_has_its_panel(tables):
    other = [row | {"p": 0.8} for row in tables.trajectories]
    figure = tables._replace(trajectories=tables.trajectories + other).plot()
    assert [axes.get_title() for axes in figure.axes] == ["p = 0.3", "p = 0.8"]


def test_tables_without_regret_cannot_be_drawn(tables):
    with pytest.raises(InvalidInputError, match="nothing to draw"):
        tables._replace(trajectories=[]).plot()


def test_a_report_on_tables_is_the_one_on_their_folder(tables):
    page = report(tables)
    assert page == tables.folder / "report.md"
    text = page.read_text()
    assert look_of("zf-oful").label in text
    assert report(str(tables.folder)).read_text() == text


def test_a_report_needs_results_in_a_folder(tmp_path):
    with pytest.raises(InvalidInputError, match=r"simulate\(\.\.\., out=folder\) writes one"):
        report(simulate(["uniform"], WORLD, [0], jobs=1))
    with pytest.raises(StoreError, match=r"per_seed\.csv"):
        report(tmp_path)


def test_without_matplotlib_the_extra_is_named(tables, monkeypatch):
    monkeypatch.delitem(sys.modules, "halfseen.reports.figures", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'halfseen\[paper\]'"):
        tables.plot()
