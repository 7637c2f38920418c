"""Regret split into parts, levels that are claimed, and methods that are not from the paper."""

import pytest
from made_results import small_study, wobble, write_results

from halfseen.errors import StudyError
from halfseen.reports.claims import verdicts_on
from halfseen.reports.figures import figure_of, figures_of
from halfseen.reports.page import write_report
from halfseen.reports.panels import Scene
from halfseen.reports.panels_split import splits_of
from halfseen.studies.builtin import builtin_study

pytestmark = pytest.mark.usefixtures("unrendered")

LEVELS = {"tofu": 5.0, "zf-oful": 9.0, "uniform": 30.0}
PARTS = [
    {"label": "learning", "plus": ["zf-oful"]},
    {"label": "gain", "plus": ["tofu"], "minus": ["zf-oful"]},
]


def regret(key):
    return LEVELS[key.method] / key.p + wobble(key) * (1 if key.method == "tofu" else -1)


def split_study(**changes):
    panel = {"kind": "split", "total": "tofu", "parts": PARTS, **changes}
    return small_study(figures=[{"label": "it", "panels": [panel]}])


def test_the_parts_of_a_split_sum_up_to_the_whole_and_have_paired_errors(tmp_path):
    study = split_study()
    scene = Scene(study, write_results(tmp_path, study, regret))
    (spec,) = figures_of(study)
    found = splits_of(scene, spec.panels[0])
    assert [split.p for split in found] == [0.8, 0.2]
    for split in found:
        learning, gain = split.parts
        assert learning.mean + gain.mean == pytest.approx(split.total.mean)
        assert gain.mean < 0
        assert gain.standard_error == pytest.approx(2 * split.total.standard_error)


def test_negative_parts_hang_below_zero(tmp_path):
    study = split_study()
    scene = Scene(study, write_results(tmp_path, study, regret))
    figure, _ = figure_of(scene, figures_of(study)[0])
    (axes,) = figure.axes
    gains = [bar for bar in axes.patches if bar.get_height() < 0]
    assert [bar.get_y() for bar in gains] == [0.0, 0.0]
    assert axes.get_title() == "TOFU"
    assert {text.get_text() for text in axes.texts} == {"11.2", "−5.0", "45.0", "−20.0"}


def test_a_split_of_which_a_part_was_not_run_is_left_out(tmp_path):
    study = split_study()
    results = write_results(
        tmp_path, study, regret, run=lambda key: key.method == "tofu" or key.p == 0.8
    )
    (spec,) = figures_of(study)
    assert [split.p for split in splits_of(Scene(study, results), spec.panels[0])] == [0.8]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parts": PARTS[:1]}, r"parts must sum up to 'tofu'.*got \{'tofu': -1"),
        ({"total": "uniform"}, r"parts must sum up to 'uniform'"),
        ({"parts": [{"plus": ["tofu"]}]}, r"parts\[0\]\.label must be given"),
        ({"parts": []}, r"parts must have at least one entry"),
        ({"p": 0.2}, r"panels\[0\]\.p is not a key here"),
    ],
)
def test_a_bad_split_is_reported_with_its_key(changes, message):
    with pytest.raises(StudyError, match=message):
        split_study(**changes)


def outcome(folder, **claim):
    study = small_study(claims=[{"text": "so it is said", **claim}])
    (found,) = verdicts_on(study, write_results(folder, study, regret))
    return found.outcome


def test_at_most_flips_with_the_levels(tmp_path):
    claim = {"kind": "regret", "method": "tofu", "p": [0.8, 0.2]}
    assert outcome(tmp_path, **claim, at_most=[6.3, 25.0]) == "holds"
    assert outcome(tmp_path, **claim, at_most=[6.3, 24.9]) == "fails"
    assert outcome(tmp_path, **claim, at_most=30) == "holds"
    assert outcome(tmp_path, **claim, at_most=[1, 2, 3]) == "not run"
    assert outcome(tmp_path, **{**claim, "p": [0.8, 0.5]}, at_most=[6.3, 1]) == "holds"  # at 0.8


def test_at_most_times_flips_with_the_factor(tmp_path):
    claim = {"kind": "regret", "method": "tofu", "relative_to": "zf-oful"}
    assert outcome(tmp_path, **claim, at_most=0.56) == "holds"
    assert outcome(tmp_path, **claim, at_most=0.55) == "fails"
    assert outcome(tmp_path, **claim, at_most=1, p=0.5) == "not run"


def test_the_page_says_which_methods_are_not_from_the_paper(tmp_path):
    study = builtin_study("synthetic").narrowed(
        seeds=range(4), methods=["tofu", "latent-ucb", "impute-mean"]
    )
    write_results(tmp_path, study, lambda key: 1.0 + wobble(key))
    page = write_report(study, tmp_path).read_text()
    assert "- not from the paper: latent UCB; mean-filled OFUL\n" in page
