"""Shards of a study, and folders that are joined."""

import json
from collections import Counter

import pytest
from typer.testing import CliRunner

from halfseen.cli import app
from halfseen.errors import StudyError
from halfseen.paper.studies import ORDER, study_named
from halfseen.simulation.store import Store, _checksum, missing_shards
from made_results import written_tables

STUDY = ("synthetic", "--scale", "smoke", "--methods", "zf-oful,uniform")


def call(*arguments):
    return CliRunner().invoke(app, [*arguments], env={"COLUMNS": "150"})


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """Return a folder with the shards of a study and, in `whole`, all of it."""
    home = tmp_path_factory.mktemp("shards")
    for place in (1, 2, 3):
        done = call("reproduce", *STUDY, "--jobs", "1", "--shard", f"{place}/3", "--out", str(home))
        assert done.exit_code == 0, done.output
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("halfseen.cli._show_report", lambda *_: True)
        done = call("reproduce", *STUDY, "--jobs", "1", "--out", str(home / "whole"))
    assert done.exit_code == 0, done.output
    return home


@pytest.fixture
def parts(shards, tmp_path):
    """Return copies of the three shards, which a test may damage."""
    for path in shards.glob("shard-*"):
        (tmp_path / path.name).mkdir()
        for name in ("cells.jsonl", "manifest.json"):
            (tmp_path / path.name / name).write_bytes((path / name).read_bytes())
    return sorted(map(str, tmp_path.glob("shard-*")))


def lines_of(folder):
    return [json.loads(line) for line in (folder / "cells.jsonl").read_text().splitlines()]


def test_merged_shards_are_the_whole_study_byte_by_byte(parts, shards, tmp_path, monkeypatch):
    merged = tmp_path / "merged"
    done = call("merge", str(merged), *parts)
    assert done.exit_code == 0, done.output
    assert "8 new cells in" in done.output
    assert "0 new cells in" in call("merge", str(merged), *parts).output
    monkeypatch.setattr("halfseen.cli._show_report", lambda *_: True)
    done = call("reproduce", *STUDY, "--jobs", "1", "--out", str(merged))
    assert done.exit_code == 0, done.output
    assert json.loads((merged / "manifest.json").read_text())["cells_run_now"] == 0
    assert written_tables(merged) == written_tables(shards / "whole")


@pytest.mark.parametrize("name", ORDER)
def test_every_cell_is_in_one_shard_and_stays_with_what_is_tuned_for_it(name):
    study = study_named(name)
    shards = [study.shard(place, 4) for place in (1, 2, 3, 4)]
    units = {study.unit(cell.key) for cell in study.cells()}
    assert {study.unit(task.place) for task in study.tasks()} <= units
    assert set.union(*shards) == units
    assert sum(map(len, shards)) == len(units)
    rounds = Counter()
    for cell in (*study.cells(), *(cell for task in study.tasks() for cell in task.cells())):
        key = cell.key._replace(method=cell.key.method.partition("?")[0])
        rounds[study.unit(key)] += cell.horizon
    sizes = [sum(rounds[unit] for unit in each) for each in shards]
    assert max(sizes) - min(sizes) <= max(rounds.values())


def test_shards_of_a_tuned_study_tune_what_they_need_and_are_the_whole(tmp_path, monkeypatch):
    part = ("digits", "--scale", "smoke", "--seeds", "0", "--p", ".3", "--jobs", "1")
    part += ("--methods", "zf-oful,oracle-full,uniform")
    monkeypatch.setattr("halfseen.cli._show_report", lambda *_: True)
    monkeypatch.setattr("halfseen.cli._show_failures", lambda *_: True)
    for options in (["--shard", "1/2"], ["--shard", "2/2"], []):
        done = call("reproduce", *part, *options, "--out", str(tmp_path))
        assert done.exit_code == 0, done.output
    first, second, whole = (
        {line["fingerprint"] for line in lines_of(folder)}
        for folder in (tmp_path / "shard-1-of-2", tmp_path / "shard-2-of-2", tmp_path)
    )
    assert first.isdisjoint(second)
    assert first | second == whole


def test_missing_shards_are_listed_with_exit_code_1(parts, tmp_path):
    done = call("merge", str(tmp_path / "merged"), parts[1])
    assert done.exit_code == 1
    assert "missing shards of synthetic: 1, 3 of 3" in done.output
    assert len(lines_of(tmp_path / "merged")) == 3
    assert missing_shards(parts) == []


def changed(folder, **result):
    """Change the result of the first cell of a folder, with its checksum; return the cell."""
    store = Store(folder)
    line = json.loads(store.path.read_text().splitlines()[0])
    line["result"] |= result
    line["checksum"] = _checksum(line["result"])
    with store.path.open("a") as file:
        file.write(json.dumps(line) + "\n")
    return line


def test_two_results_of_one_cell_are_refused_and_nothing_is_merged(parts, tmp_path):
    again = tmp_path / "again"
    Store(again).merge([parts[0]])
    changed(again, final_regret=1.0)
    merged = Store(tmp_path / "merged")
    with pytest.raises(StudyError, match=r"have different results of \('synthetic', 'default', "):
        merged.merge([parts[0], again])
    assert not merged.path.exists()
    slower = tmp_path / "slower"
    Store(slower).merge([parts[0]])
    changed(slower, seconds=1e6)
    assert merged.merge([parts[0], slower]) == (3, 0)


def test_a_cell_that_failed_somewhere_is_taken_from_where_it_succeeded(parts, tmp_path):
    failed = tmp_path / "failed"
    failed.mkdir()
    (failed / "cells.jsonl").write_bytes((tmp_path / "shard-1-of-3" / "cells.jsonl").read_bytes())
    line = changed(failed, status="failed", error="no memory")
    for name, folders in (("a", [failed, parts[0]]), ("b", [parts[0], failed])):
        merged = Store(tmp_path / name)
        merged.merge(folders)
        assert Store(merged.folder)._results[line["fingerprint"]].status == "ok"


def test_damaged_lines_are_left_out_and_counted_and_a_folder_without_cells_is_named(
    parts, tmp_path
):
    path = tmp_path / "shard-1-of-3" / "cells.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"ok"', b'"OK"', 1))
    assert "damaged: 1 lines" in call("merge", str(tmp_path / "merged"), *parts).output
    with pytest.raises(StudyError, match=r"empty has no finished cells: there is no cells\.jsonl"):
        Store(tmp_path / "merged").merge([tmp_path / "empty"])


@pytest.mark.parametrize("shard", ["0/3", "4/3", "3", "a/b", "1/", "-1/3"])
def test_a_shard_that_is_no_part_is_refused(here, shard):
    done = call("reproduce", *STUDY, f"--shard={shard}")
    assert done.exit_code == 2
    assert "--shard must be a part of all, from 1/20 to 20/20, got" in done.output
