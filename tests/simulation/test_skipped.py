"""What a study cannot afford is not run, and the tables say why."""

import csv
import json

import pytest
from typer.testing import CliRunner

from halfseen import InvalidSettingError, LowRankWorld, simulate
from halfseen.cli import app
from halfseen.errors import StudyError
from halfseen.policies.uniform import Uniform
from halfseen.simulation.methods import METHODS, Method, method_from
from halfseen.studies.reading import study_from

WORLD = LowRankWorld(dim=5, rank=1, n_arms=3, horizon=40)
PLAIN = {"kind": "low-rank", "dim": 5, "rank": 1, "n_arms": 3, "horizon": 40}
REASON = "a run takes an hour"
SLOW = method_from("zf-oful", {"skip": REASON})


def rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def study(**tables):
    return study_from({"name": "s", "seeds": "0:2", "world": PLAIN, **tables})


def test_skipped_cells_have_rows_with_a_reason_and_are_never_run(tmp_path, monkeypatch):
    monkeypatch.setattr(Method, "build", lambda self, facts: Uniform(dim=5) if not self.skip else 0)
    for run_now in (2, 0):
        tables = simulate({"uniform": {}, "slow": SLOW}, WORLD, range(2), jobs=1, out=tmp_path)
        assert not tables.failures
        manifest = json.loads((tmp_path / "manifest.json").read_text())
        assert (manifest["cells_run_now"], manifest["cells_failed"]) == (run_now, 0)
        assert manifest["cells_skipped"] == 2
    per_seed = rows(tmp_path / "per_seed.csv")
    assert [(row["method"], row["status"]) for row in per_seed] == [
        *[("uniform", "ok")] * 2,
        *[("slow", "skipped")] * 2,
    ]
    assert [bool(row["seconds"]) for row in per_seed] == [True, True, False, False]
    assert [row["n"] for row in tables.summary] == [2, 0]
    assert [row["note"] for row in rows(tmp_path / "skipped.csv")] == [REASON] * 2
    assert len((tmp_path / "cells.jsonl").read_text().splitlines()) == 2


def test_nothing_is_left_of_skipped_cells_once_none_is_skipped(tmp_path):
    simulate({"slow": SLOW}, WORLD, [0], jobs=1, out=tmp_path)
    assert (tmp_path / "skipped.csv").exists()
    tables = simulate({"slow": SLOW.changed({"skip": ""})}, WORLD, [0], jobs=1, out=tmp_path)
    assert [row["status"] for row in tables.per_seed] == ["ok"]
    assert not (tmp_path / "skipped.csv").exists()


def test_a_study_says_why_a_method_is_skipped(tmp_path):
    plain = study(methods={"uniform": {}, "tofu": {"skip": REASON}}).to_dict()
    (tmp_path / "s.json").write_text(json.dumps(plain))
    options = ["--no-timing", "--jobs", "1", "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, ["run", str(tmp_path / "s.json"), *options])
    assert result.exit_code == 0, result.output
    assert "(4 cells, 2 of them skipped)" in result.output
    report = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert f"TOFU, p = 0.3, seeds 0–1 ({REASON})" in report


def test_the_small_form_of_a_study_may_run_what_the_large_one_skips():
    tables = {
        "methods": {"tofu": {"skip": REASON}},
        "smoke": {"methods": {"tofu": {"skip": False}}},
    }
    plain = {"name": "s", "seeds": 0, "world": PLAIN, **tables}
    small, large = study_from(plain, "smoke"), study_from(plain)
    assert [cell.method.skip for cell in (*small.cells(), *large.cells())] == ["", REASON]


def test_a_reason_is_part_of_the_plain_form():
    assert SLOW.to_dict() == {"policy": "AmbientOful", "view": "masked", "skip": REASON}
    assert method_from("another", SLOW.to_dict()) == SLOW
    assert SLOW.changed({"view": "full"}).skip == REASON
    assert SLOW.changed({"skip": ""}) == METHODS["zf-oful"]
    again = study(methods={"slow": SLOW.to_dict(), "uniform": {}})
    assert study_from(again.to_dict()) == again


@pytest.mark.parametrize("skip", [True, 5, None])
def test_a_reason_is_a_string(skip):
    with pytest.raises(InvalidSettingError, match=f"skip must be a string that says why .*{skip}"):
        method_from("tofu", {"skip": skip})


def test_what_is_tuned_is_not_skipped():
    tuning = {"seeds": [9], "methods": {"zf-oful": {"ridge": [0.1, 1.0]}}}
    with pytest.raises(StudyError, match=r"^methods\.zf-oful\.skip must be true, or left out, for"):
        study(methods={"zf-oful": {"skip": REASON}}, tuning=tuning)
