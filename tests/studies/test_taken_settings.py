"""Settings that are taken from another study, or have seeds and tuning of their own."""

import json

import pytest

from halfseen.errors import StudyError
from halfseen.simulation.store import Store
from halfseen.studies.builtin import builtin_study
from halfseen.studies.reading import SCALES, study_from
from halfseen.studies.running import run_study

WORLD = {"kind": "low-rank", "dim": 6, "rank": 1, "horizon": 20}
OWN = {"seeds": "5:7", "tuning": {"seeds": "50:52", "methods": {"zf-oful": {"ridge": [0.1, 1.0]}}}}


def plain(**changes):
    shared = {"name": "mine", "seeds": "0:4", "world": WORLD, "methods": ["zf-oful", "uniform"]}
    return {**shared, "observe_prob": 0.5, **changes}


def taken(name, **more):
    return plain(settings={"theirs": {"study": name, **more}, "ours": {}})


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", ["synthetic", "digits", "mnist"])
def test_the_cells_of_a_taken_setting_are_those_of_the_study(name, scale):
    keys = ["tofu-fh", "zf-oful", "full-oful"]
    source = builtin_study(name, scale).narrowed(methods=keys)
    study = study_from(taken(name, methods=keys), scale)
    cells = [cell for cell in study.cells() if cell.key.setting == "theirs"]
    assert [c.fingerprint for c in cells] == [c.fingerprint for c in source.cells()]
    assert {c.key.study for c in cells} == {"mine"}
    tried = [[c.fingerprint for c in task.cells()] for task in study.tasks()]
    assert tried == [[c.fingerprint for c in task.cells()] for task in source.tasks()]
    again = study_from(json.loads(json.dumps(study.to_dict())))
    assert again == study
    assert [c.fingerprint for c in again.cells()] == [c.fingerprint for c in study.cells()]


def test_a_taken_setting_has_all_methods_unless_it_says_which():
    study = study_from(taken("synthetic"))
    assert tuple(study.settings["theirs"].methods) == builtin_study("synthetic").methods
    assert study.methods[-1] == "uniform"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"study": "main"}, "settings.theirs.study: there is no study 'main'"),
        ({"study": 3}, "settings.theirs.study must be a text, got 3"),
        ({"study": "masks"}, "settings.theirs.study must have one setting, got 'masks' with"),
        (
            {"study": "synthetic", "methods": ["tofu", "mine"]},
            "settings.theirs.methods must be among those of synthetic, .* got 'mine'",
        ),
        (
            {"study": "synthetic", "methods": "tofu"},
            "settings.theirs.methods must be a list of texts",
        ),
        ({"study": "synthetic", "world": {}}, "settings.theirs.world is not a key"),
    ],
)
def test_a_mistake_in_a_taken_setting_is_reported_with_its_key(changes, message):
    with pytest.raises(StudyError, match=message):
        study_from(plain(settings={"theirs": changes}))


def test_a_setting_may_have_seeds_and_tuning_of_its_own(tmp_path):
    study = study_from(plain(settings={"shared": {}, "own": OWN}))
    assert study_from(json.loads(json.dumps(study.to_dict()))) == study
    seeds = {(cell.key.setting, cell.key.seed) for cell in study.cells()}
    assert seeds == {*(("shared", s) for s in range(4)), ("own", 5), ("own", 6)}
    assert [task.place[:2] for task in study.tasks()] == [("mine", "own")]
    tables = run_study(study, Store(tmp_path), jobs=1)
    assert [row["status"] for row in tables.per_seed] == ["ok"] * 12
    assert "own" in (tmp_path / "calibration.csv").read_text()


def test_asking_for_seeds_asks_all_settings():
    study = study_from(plain(settings={"shared": {}, "own": OWN})).narrowed(seeds=[8])
    assert {cell.key.seed for cell in study.cells()} == {8}
    part = study_from(plain(settings={"shared": {}, "own": OWN})).narrowed(methods=["uniform"])
    assert part.tasks() == []


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"seeds": []}, "settings.own.seeds must be different integers"),
        ({**OWN, "seeds": "51:53"}, r"settings.own.tuning.seeds must have none .* got \[51\]"),
        ({"tuning": 3}, "settings.own.tuning must be a table, got 3"),
        (
            {"tuning": {"seeds": 9, "methods": {"tofu": {"rank": [1, 2]}}}},
            "tuning.methods.tofu is not a method of this study",
        ),
    ],
)
def test_a_mistake_in_seeds_or_tuning_of_a_setting_is_reported_with_its_key(own, message):
    with pytest.raises(StudyError, match=message):
        study_from(plain(settings={"own": own}))


def test_small_seeds_are_those_of_the_small_form():
    study = study_from(plain(settings={"own": OWN}, smoke={"seeds": "0:1"}), "smoke")
    assert {cell.key.seed for cell in study.cells()} == {0}
