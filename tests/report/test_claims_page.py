"""The table of all claims: complete, and as the results say."""

from dataclasses import replace
from pathlib import Path

import pytest
from made_results import write_results
from typer.testing import CliRunner

from halfseen.cli import app
from halfseen.reports.claims_page import PAST_PAPER, paper_claims, write_claims
from halfseen.reports.render import markdown_text
from halfseen.studies.builtin import BEYOND_PAPER, ORDER, builtin_study

PAGE = Path(__file__).parents[2] / "docs" / "claims.md"
WORSE = {"zf-oful": 30.0, "zf-pslb-sampled": 40.0}


def made(folder, *, scale="paper", of_tofu=10.0):
    study = builtin_study("synthetic")
    part = replace(study, seeds=study.seeds[:4])
    paid = lambda key: WORSE.get(key.method, of_tofu) / key.p * (1 + 0.01 * key.seed)  # noqa: E731
    write_results(folder / "synthetic", part, paid, scale=scale)


def line_of(text, words):
    (line,) = [line for line in text.splitlines() if words in line and line.startswith("|")]
    return line


def test_verdicts_are_those_of_the_results_on_disk(tmp_path):
    words = "RA-TOFU substantially outperforms zero-filled PSLB"
    for of_tofu, verdict in ((10.0, "holds"), (50.0, "fails")):
        made(tmp_path, of_tofu=of_tofu)
        counts = write_claims(tmp_path, tmp_path / "claims.md")
        line = line_of((tmp_path / "claims.md").read_text("utf-8"), words)
        assert f"**{verdict}**" in line
        listed = (tmp_path / "claims.md").read_text("utf-8").split("##")[0]
        assert (words in listed) == (verdict == "fails")
        assert "p = 0.4: " in line
        assert counts["not run"] > 20  # all other studies


def test_a_small_run_is_not_judged_and_a_missing_one_is_listed(tmp_path):
    made(tmp_path, scale="smoke")
    result = CliRunner().invoke(app, ["claims", str(tmp_path), "-o", str(tmp_path / "all.md")])
    assert result.exit_code == 0, result.output
    text = (tmp_path / "all.md").read_text("utf-8")
    assert "**too small to judge**" in line_of(
        text, "RA-TOFU substantially outperforms zero-filled PSLB"
    )
    assert "**not run**" in line_of(text, "The gap between zero-filled PSLB and TOFU-FH widens")
    assert "not run" in result.output


def test_the_committed_table_has_every_claim_of_the_paper_and_no_other():
    text = PAGE.read_text("utf-8")
    told = [
        line.split(" | **")[0].removeprefix("| ") for line in text.splitlines() if " | **" in line
    ]
    studies = [builtin_study(name) for name in ORDER if name not in BEYOND_PAPER]
    assert told == [markdown_text(claim) for study in studies for claim in paper_claims(study)]


@pytest.mark.parametrize("name", BEYOND_PAPER)
def test_studies_beyond_the_paper_have_no_figure_of_it(name):
    assert not [f for f in builtin_study(name).figures if f.label.startswith("fig:")]


def test_claims_past_the_paper_are_left_out():
    texts = [claim.text for claim in builtin_study("mnist").claims]
    assert any(text.startswith(PAST_PAPER) for text in texts)
    assert not any(text.startswith(PAST_PAPER) for text in paper_claims(builtin_study("mnist")))
