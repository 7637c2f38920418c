"""The studies of the package: they survive JSON, run small in seconds, and can be narrowed."""

import json
from importlib.resources import files
from pathlib import Path

import pytest

from halfseen.errors import StudyError
from halfseen.simulation.cells import CellKey
from halfseen.simulation.store import Store
from halfseen.studies.builtin import ORDER, builtin_study
from halfseen.studies.fields import parse_seeds
from halfseen.studies.published import published
from halfseen.studies.reading import SCALES, read_study, study_from
from halfseen.studies.running import run_study
from halfseen.studies.setting import Setting
from halfseen.studies.spec import Study

BOTH = pytest.mark.parametrize(("name", "scale"), [(n, s) for n in ORDER for s in SCALES])
EACH = pytest.mark.parametrize("name", ORDER)


@BOTH
def test_a_study_is_equal_to_the_one_made_from_its_plain_form(name, scale):
    study = builtin_study(name, scale)
    assert study_from(study.to_dict()) == study
    assert study_from(json.loads(json.dumps(study.to_dict(), allow_nan=False))) == study


@BOTH
def test_no_two_cells_of_a_study_have_the_same_name(name, scale):
    keys = [cell.key for cell in builtin_study(name, scale).cells()]
    assert len(set(keys)) == len(keys) > 0


@EACH
def test_a_plain_study_has_the_same_cells(name):
    study = builtin_study(name, "smoke")
    again = study_from(json.loads(json.dumps(study.to_dict())))
    assert [cell.fingerprint for cell in again.cells()] == [
        cell.fingerprint for cell in study.cells()
    ]


@EACH
def test_a_study_has_no_mistake_its_policies_can_be_built_and_its_claims_name_what_it_has(name):
    file = files("halfseen.studies") / "files" / f"{name}.toml"
    assert read_study(Path(str(file)), check=True) == builtin_study(name)


@EACH
def test_at_smoke_scale_all_methods_of_a_study_work_in_all_its_settings(name, tmp_path):
    smoke = builtin_study(name, "smoke")
    study = smoke.narrowed(seeds=smoke.seeds[:1])  # another seed is more of the same
    tables = run_study(study, Store(tmp_path), jobs=1, manifest={"study": study.to_dict()})
    assert [error for _, error in tables.failures] == []
    for cell, row in zip(study.cells(), tables.per_seed, strict=True):
        assert row["status"] == ("skipped" if cell.method.skip else "ok")
    if name == "theory":  # every cell measures something
        found = {tuple(row[part] for part in CellKey._fields) for row in tables.diagnostics}
        assert found == {cell.key for cell in study.cells()}
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert study_from(manifest["study"]) == study
    assert manifest["seeds"] == list(study.seeds)
    assert manifest["seconds"] > 0.0
    assert set(manifest["versions"]) >= {"halfseen", "python", "numpy"}


@EACH
def test_a_smoke_run_compares_the_methods_of_the_full_one(name):
    full, smoke = builtin_study(name), builtin_study(name, "smoke")
    assert smoke.methods == tuple(key for key in full.methods if key in smoke.methods)
    assert set(smoke.settings) <= set(full.settings)
    assert len(smoke.cells()) < len(full.cells())


@EACH
def test_every_published_cell_is_a_cell_of_its_study(name):
    cells = {cell.key[1:] for cell in builtin_study(name).cells()}
    assert {tuple(key) for key in published(name)} <= cells


def test_a_study_that_does_not_exist_is_refused_with_those_that_do():
    with pytest.raises(StudyError, match=r"there is no study 'main', there are \['synthetic'"):
        builtin_study("main")


def small():
    methods = {"tofu": {}, "zf-oful": {}, "uniform": {}}
    world = {"kind": "low-rank", "dim": 8, "rank": 2, "horizon": 40}
    return study_from(
        {
            "name": "small",
            "seeds": "0:4",
            "world": world,
            "observe_prob": [0.8, 0.5, 0.2],
            "settings": {
                "swept": {"methods": methods},
                "fixed": {
                    "world": {"observe_prob": 0.5},
                    "observe_prob": [],
                    "methods": {"tofu": {}},
                },
            },
        }
    )


def names(study):
    return [cell.key[1:] for cell in study.cells()]


def test_a_study_is_narrowed_to_seeds_that_may_be_new():
    study = small().narrowed(seeds=parse_seeds("100:103"))
    assert {key[3] for key in names(study)} == {100, 101, 102}
    assert len(names(study)) == 3 * (3 * 3 + 1)


def test_a_study_is_narrowed_to_methods_and_settings_without_them_go():
    assert small().narrowed(methods=["uniform"]).settings.keys() == {"swept"}
    assert small().narrowed(methods=["zf-oful", "tofu"]).methods == ("zf-oful", "tofu")


def test_a_study_is_narrowed_to_probabilities_and_settings_without_them_go():
    assert {key[:2] for key in names(small().narrowed(observe_probs=[0.2]))} == {("swept", 0.2)}
    both = small().narrowed(observe_probs=[0.5])
    assert {key[:2] for key in names(both)} == {("swept", 0.5), ("fixed", 0.5)}


@pytest.mark.parametrize(
    "part",
    [{"observe_probs": [0.5]}, {"observe_probs": [0.5, 0.5]}, {"methods": ["tofu", "tofu"]}],
    ids=str,
)
def test_the_cells_of_a_part_are_cells_of_the_whole(part):
    whole = {(cell.key, cell.fingerprint) for cell in small().cells()}
    found = [(cell.key, cell.fingerprint) for cell in small().narrowed(**part).cells()]
    assert set(found) <= whole
    assert len(set(found)) == len(found)
    narrowed = small().narrowed(**part)
    assert study_from(narrowed.to_dict()) == narrowed


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"methods": ["ra-tofu"]}, r"methods must be among .*'zf-oful'.*, got 'ra-tofu'"),
        ({"observe_probs": [0.3]}, r"p must be among .*0\.8, 0\.5, 0\.2\], got 0\.3"),
        ({"methods": []}, "nothing is left of small"),
        ({"observe_probs": []}, "nothing is left of small"),
        ({"seeds": []}, "nothing is left of small"),
    ],
)
def test_methods_and_settings_that_a_study_does_not_have_are_refused(part, message):
    with pytest.raises(StudyError, match=message):
        small().narrowed(**part)


def test_a_method_and_a_probability_that_never_meet_leave_nothing():
    study = study_from(
        {
            "name": "apart",
            "world": {"kind": "low-rank", "dim": 4, "rank": 1},
            "settings": {
                "left": {"observe_prob": 0.2, "methods": ["tofu"]},
                "right": {"observe_prob": 0.4, "methods": ["uniform"]},
            },
        }
    )
    with pytest.raises(StudyError, match=r"p must be among those of apart, \[0\.2\], got 0\.4"):
        study.narrowed(methods=["tofu"], observe_probs=[0.4])


def test_a_probability_that_is_not_swept_is_the_world_s():
    setting = Setting(world={"kind": "low-rank", "observe_prob": 1}, observe_probs=(), methods={})
    assert [repr(p) for p in setting.worlds()] == ["1.0"]
    assert Study(name="a", title="a", seeds=(0,), settings={"b": setting}).observe_probs == (1.0,)
