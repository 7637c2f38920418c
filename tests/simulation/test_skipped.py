"""What a study cannot afford is not run, and the tables say why."""

import csv
import json

import pytest

from halfseen import InvalidSettingError, LowRankWorld, simulate
from halfseen.policies.trivial import Uniform
from halfseen.simulation.methods import METHODS, Method, method_from

WORLD = LowRankWorld(dim=5, rank=1, n_arms=3, horizon=40)
REASON = "a run takes an hour"
SLOW = method_from("zf-oful", {"skip": REASON})


def rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


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


def test_a_reason_is_part_of_the_plain_form():
    assert SLOW.to_dict() == {"policy": "AmbientOful", "view": "masked", "skip": REASON}
    assert method_from("another", SLOW.to_dict()) == SLOW
    assert SLOW.changed({"view": "full"}).skip == REASON
    assert SLOW.changed({"skip": ""}) == METHODS["zf-oful"]


@pytest.mark.parametrize("skip", [True, 5, None])
def test_a_reason_is_a_string(skip):
    with pytest.raises(InvalidSettingError, match=f"skip must be a string that says why .*{skip}"):
        method_from("tofu", {"skip": skip})
