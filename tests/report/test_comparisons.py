"""Paired comparisons: their numbers, their file, their panel, and what the page says."""

import math

import pandas as pd
import pytest
from made_results import small_study, wobble, write_results
from scipy.stats import ttest_rel

from halfseen.errors import StudyError
from halfseen.reports.comparisons import COMPARED, compared
from halfseen.reports.data import Point
from halfseen.reports.figures import figure_of, figures_of
from halfseen.reports.page import write_report
from halfseen.reports.panels import Scene

pytestmark = pytest.mark.usefixtures("unrendered")

LEVELS = {"tofu": 5.0, "zf-oful": 9.0, "uniform": 30.0}
COMPARISON = {"name": "beside", "methods": ["tofu", "uniform"], "against": ["other", "zf-oful"]}
PANEL = {"kind": "differences", "comparison": "beside", "p": 0.2}


def regret(key):
    sign = 1 if key.method == "tofu" else -2
    return LEVELS[key.method] / key.p + sign * wobble(key)


def study_with(**changes):
    return small_study(comparisons=[{**COMPARISON, **changes}])


def found_in(folder, run=None, **changes):
    study = study_with(**changes)
    results = write_results(folder, study, regret, run=run)
    (spec,) = study.comparisons
    return compared(study, results, spec)


def test_an_interval_is_that_of_the_paired_t_test(tmp_path):
    pairs = found_in(tmp_path, methods="tofu", p=0.2)
    (pair,) = pairs
    ours, theirs = (
        [LEVELS[m] / 0.2 + s * w for w in (-0.3, 0.1, 0.3, -0.1)]
        for m, s in (("tofu", 1), ("zf-oful", -2))
    )
    expected = ttest_rel(ours, theirs).confidence_interval(0.95)
    assert (pair.low, pair.high) == pytest.approx((expected.low, expected.high), rel=1e-12)
    assert pair.difference == pytest.approx(-20.0)
    assert (pair.mean, pair.other, pair.ratio) == pytest.approx((25.0, 45.0, 25 / 45))
    assert (pair.n, pair.against, pair.point) == (4, "zf-oful", Point("default", 0.2))


def test_only_common_seeds_count_and_a_single_one_has_no_interval(tmp_path):
    def run(key):
        return key.method != "tofu" or key.seed == 2

    pair = found_in(tmp_path, run=run, p=0.8)[0]
    assert pair.n == 1
    assert math.isnan(pair.low)
    assert (pair.text, pair.decided) == ("−4.1", False)
    assert found_in(tmp_path, run=lambda key: key.method == "tofu") == []


def test_the_page_and_the_file_hold_the_comparison(tmp_path):
    study = study_with(caption="Beside each other")
    write_results(tmp_path, study, regret)
    page = write_report(study, tmp_path).read_text()
    assert "**Beside each other** ([beside.csv](beside.csv))" in page
    assert "**−20 [−21.2, −18.8]**" in page
    frame = pd.read_csv(tmp_path / "beside.csv")
    assert tuple(frame.columns) == COMPARED
    assert len(frame) == 4
    write_results(tmp_path, study, regret, run=lambda key: key.method == "tofu")
    assert "Beside each other" not in write_report(study, tmp_path).read_text()
    assert not (tmp_path / "beside.csv").exists()


def test_a_panel_has_a_dot_for_every_difference(tmp_path):
    study = small_study(comparisons=[COMPARISON], figures=[{"label": "it", "panels": [PANEL]}])
    results = write_results(tmp_path, study, regret)
    (spec,) = figures_of(study)
    figure, _ = figure_of(Scene(study, results), spec)
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_yticklabels()] == ["TOFU", "uniform"]
    dots = [box[0].get_xdata()[0] for box in axes.containers]
    assert dots == pytest.approx([-20.0, 105.0])
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["pays less", "pays more"]
    assert axes.get_title() == "p = 0.2"


def test_a_relative_panel_is_in_percent_and_names_its_places(tmp_path):
    panel = {"kind": "differences", "comparison": "beside", "relative": True}
    study = small_study(
        comparisons=[{**COMPARISON, "methods": "tofu"}],
        figures=[{"label": "it", "panels": [panel]}],
    )
    results = write_results(tmp_path, study, regret)
    (spec,) = figures_of(study)
    figure, _ = figure_of(Scene(study, results), spec)
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_yticklabels()] == ["p = 0.8", "p = 0.2"]
    assert axes.containers[1][0].get_xdata()[0] == pytest.approx(100 * (25 - 45) / 45)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "../x"}, r"comparisons\[0\]\.name must be letters"),
        ({"methods": []}, r"comparisons\[0\]\.methods must be a text or a list"),
        ({"against": 3}, r"comparisons\[0\]\.against must be a text or a list of them, got 3"),
        ({"p": 2}, r"comparisons\[0\]\.p must be a probability in"),
        ({"than": "a"}, r"comparisons\[0\]\.than is not a key here"),
    ],
)
def test_a_bad_comparison_is_reported_with_its_key(changes, message):
    with pytest.raises(StudyError, match=message):
        study_with(**changes)


def test_two_comparisons_cannot_share_a_file():
    with pytest.raises(StudyError, match=r"comparisons\[1\]\.name must differ from all before"):
        small_study(comparisons=[COMPARISON, COMPARISON])
    missing = {key: value for key, value in COMPARISON.items() if key != "against"}
    with pytest.raises(StudyError, match=r"comparisons\[0\]\.against must be given"):
        small_study(comparisons=[missing])


def test_a_panel_names_a_comparison_of_the_study():
    panel = {"kind": "differences", "comparison": "none"}
    with pytest.raises(StudyError, match=r"panels\[0\]\.comparison must be one of 'beside', got"):
        small_study(comparisons=[COMPARISON], figures=[{"label": "it", "panels": [panel]}])
