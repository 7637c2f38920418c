"""Excess over the irreducible regret, and what was skipped, on the page."""

import pandas as pd
import pytest
from made_results import small_study, wobble, write_results

from halfseen.reports import published
from halfseen.reports.context import EXCESS, excess_table, irreducible_at
from halfseen.reports.data import Point
from halfseen.reports.page import write_report
from halfseen.reports.published import compare_means
from halfseen.simulation.cells import Result
from halfseen.simulation.tables import Tables, mean_of
from halfseen.studies.builtin import builtin_study
from halfseen.studies.published_summary import Summary

pytestmark = pytest.mark.usefixtures("unrendered")

LEVELS = {"tofu": 5.0, "zf-oful": 9.0, "uniform": 30.0}
IRREDUCIBLE = (10.0, 60.0, 30.0, 20.0)


def irreducible(key):
    return {"irreducible": IRREDUCIBLE[key.seed]}


def regret(key):
    return IRREDUCIBLE[key.seed] + LEVELS[key.method] + wobble(key)


@pytest.fixture
def study():
    return small_study()


def test_the_excess_is_paired_seed_by_seed(tmp_path, study):
    results = write_results(tmp_path, study, regret, diagnostics=irreducible)
    table = excess_table(study, results)
    assert tuple(table.columns) == EXCESS
    first = table.iloc[0]
    assert (first["setting"], first["p"], first["method"], first["n"]) == (
        "default",
        0.8,
        "tofu",
        4,
    )
    assert (first["mean_irreducible"], first["mean_excess"]) == pytest.approx((30.0, 5.0))
    # The irreducible part differs by far more from seed to seed.
    assert first["se_irreducible"] == mean_of(IRREDUCIBLE).standard_error
    wobbles = mean_of([-0.3, 0.1, 0.3, -0.1]).standard_error
    assert first["se_excess"] == pytest.approx(wobbles)


def test_seeds_that_failed_are_left_out_of_both_parts(tmp_path, study):
    results = write_results(
        tmp_path, study, lambda key: None if key.seed == 1 else regret(key), diagnostics=irreducible
    )
    first = excess_table(study, results).iloc[0]
    assert (first["n"], first["mean_irreducible"]) == (3, 20.0)


def test_the_page_shows_it_and_the_table_is_written(tmp_path, study):
    results = write_results(tmp_path, study, regret, diagnostics=irreducible)
    text = write_report(study, tmp_path).read_text(encoding="utf-8")
    section = text.split("## Excess over the irreducible regret")[1].split("##")[0]
    assert "| p | seeds | irreducible part |" in section
    assert "| 0.8 | 4 | 30.0 ± 10.8 |" in section
    assert "| TOFU | **5.0 ± 0.1** |" in section
    assert "[excess.csv](excess.csv)" in text
    written = pd.read_csv(tmp_path / "excess.csv")
    pd.testing.assert_frame_equal(written, excess_table(study, results))


def test_a_world_without_irreducible_regret_has_no_such_section(tmp_path, study):
    (tmp_path / "excess.csv").write_text("of an earlier run")
    results = write_results(tmp_path, study, regret)
    assert irreducible_at(results, Point("default", 0.8)).empty
    assert excess_table(study, results).empty
    assert "irreducible" not in write_report(study, tmp_path).read_text(encoding="utf-8")
    assert not (tmp_path / "excess.csv").exists()


def test_skipped_cells_are_told_apart_from_failed_ones(tmp_path, study):
    note = "a run takes more than a minute"
    cells = study.cells()
    finished = [
        (cell, Result(status="skipped", seconds=0.0, note=note))
        if cell.key.method == "uniform"
        else (cell, Result(status="failed", seconds=1.0, error="Traceback\nValueError: no"))
        for cell in cells
    ]
    Tables.of(finished).write(tmp_path, {})
    text = write_report(study, tmp_path).read_text(encoding="utf-8")
    assert "- cells: 24, failed: 16, skipped: 8" in text
    failed = text.split("## Failed cells")[1].split("##")[0]
    assert "uniform" not in failed
    skipped = text.split("## Skipped cells")[1].split("##")[0]
    assert f"- uniform, p = 0.8, seeds 0–3 ({note})\n" in skipped
    assert "TOFU" not in skipped


MEANS = [
    Summary(0.8, "tofu", 4, 1000.0, 10.0, 4.0, 995.0),
    Summary(0.8, "zf-oful", 4, 1004.0, 10.0, None, 995.0),
]


@pytest.fixture
def means(monkeypatch):
    """Publish means for every study."""
    found = list(MEANS)
    monkeypatch.setattr(published, "published_summary", lambda name: found)
    monkeypatch.setattr(published, "repeats", lambda study, setting, method: True)
    return found


def section_of(study, folder, **more):
    write_results(folder, study, regret, diagnostics=irreducible, **more)
    text = write_report(study, folder).read_text(encoding="utf-8")
    return text.partition("## Published results and ours")[2].split("\n##")[0]


def test_published_means_are_shown_next_to_ours(tmp_path, study, means):
    section = section_of(study, tmp_path)
    assert "| 0.8 | TOFU | 5.0 | 5.0 ± 0.1 | 4.2 | agrees |\n" in section
    assert "Of 1 pairs of methods, 1 have a published gap" in section
    assert "1 of these 1 pairs have the same order here.\n" in section


def test_differences_from_published_means_are_reported(tmp_path, study, means):
    means[0] = MEANS[0]._replace(mean_regret=1010.0)
    section = section_of(study, tmp_path)
    assert "| 0.8 | TOFU | 15.0 | 5.0 ± 0.1 | 4.2 | **differs** |" in section
    assert (
        "- **differs** at p = 0.8: zero-filled OFUL below TOFU by 6.0 as published, "
        "by −4.0 ± 0.0 here" in section
    )


def test_means_without_all_published_seeds_are_not_shown(tmp_path, study, means):
    assert section_of(study, tmp_path, run=lambda key: key.seed < 3) == ""


def test_only_a_study_at_full_size_repeats_what_was_published(tmp_path, monkeypatch):
    monkeypatch.setattr(published, "published_summary", lambda name: MEANS)
    full = builtin_study("synthetic").narrowed(seeds=range(4), methods=["tofu", "zf-oful"])
    small = builtin_study("synthetic", "smoke").narrowed(seeds=range(4))
    for study, compared in ((small_study(), False), (full, True), (small, False)):
        results = write_results(
            tmp_path, study, lambda key: 5.0 + wobble(key), diagnostics=irreducible
        )
        assert (compare_means(study, results) is not None) == compared
