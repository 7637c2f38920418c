"""A study with tuning: two stages, settings per probability, and how mistakes are told."""

import csv
import json
import re

import pytest
from typer.testing import CliRunner

from halfseen.cli import app
from halfseen.errors import HalfseenError, StudyError
from halfseen.policies.ambient import AmbientOful
from halfseen.simulation.store import Store
from halfseen.simulation.tune import tune
from halfseen.studies.reading import study_from
from halfseen.studies.running import run_study
from halfseen.worlds.base import world_from

pytestmark = pytest.mark.usefixtures("unrendered")

GRID = {"ridge": [0.1, 10.0], "radius_scale": [0.25, 2.0]}
WORLD = {"kind": "low-rank", "dim": 6, "rank": 2, "n_arms": 4, "horizon": 40}
RULE = {"rule": "ConstantThreshold", "value": 0.5, "cap": 4}


def plain(**changes):
    return {
        "name": "tuned",
        "seeds": "0:2",
        "observe_prob": [0.8, 0.4],
        "world": WORLD,
        "methods": {
            "tofu": {"burn_in": 5},
            "zf-oful": {},
            "plain-oful": {"method": "zf-oful"},
            "oracle-masked": {},
            "ra-tofu": {"burn_in": 5, "rank": RULE},
        },
        "tuning": {
            "seeds": "50:52",
            "methods": {
                "zf-oful": {**GRID, "ties": "nearest-one"},
                "oracle-masked": {"shared_with": "zf-oful"},
                "ra-tofu": {"rank": {"value": [0.2, 0.6]}},
            },
        },
    } | changes


def tuning(**methods):
    return plain(tuning={"seeds": "50:52", "methods": methods})


def test_every_probability_is_tuned_for_itself_and_shared_settings_arrive(tmp_path):
    study = study_from(plain())
    tables = run_study(study, Store(tmp_path), jobs=1, manifest={"study": study.to_dict()})
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    chosen = {(row["p"], row["method"]): row["settings"] for row in manifest["tuned"]["chosen"]}
    assert set(chosen) == {(p, key) for p in (0.8, 0.4) for key in ("zf-oful", "ra-tofu")}
    places = {("default", p, key): settings for (p, key), settings in chosen.items()}
    for p in (0.8, 0.4):
        world = world_from({**WORLD, "observe_prob": p})
        alone = tune("zf-oful", GRID, world, [50, 51], reporting=[0], ties="nearest-one", jobs=1)
        assert chosen[p, "zf-oful"] == alone.chosen
    for cell in study.cells(places):
        if cell.key.method in ("zf-oful", "oracle-masked"):
            assert dict(cell.method.settings) == chosen[cell.key.p, "zf-oful"]
        if cell.key.method == "plain-oful":
            assert not cell.method.settings
        if cell.key.method == "ra-tofu":
            value = chosen[cell.key.p, "ra-tofu"]["rank.value"]
            assert cell.method.settings["rank"] == RULE | {"value": value}
    assert [row["status"] for row in tables.per_seed] == ["ok"] * len(study.cells())
    assert {row["seed"] for row in tables.per_seed} == {0, 1}
    assert study_from(manifest["study"]) == study


def test_calibration_has_every_candidate_on_every_validation_seed(tmp_path):
    run_study(study_from(plain()), Store(tmp_path), jobs=1)
    with (tmp_path / "calibration.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 2 * (4 + 2)
    assert {row["seed"] for row in rows} == {"50", "51"}
    assert sum(int(row["selected"]) for row in rows) == 2 * 2 * 2
    part = study_from(plain()).narrowed(methods=["tofu"])
    run_study(part, Store(tmp_path), jobs=1)  # the tables of a part without tuning have none
    assert not (tmp_path / "calibration.csv").exists()


def test_a_second_run_plays_nothing_and_gives_the_same_tables(tmp_path, monkeypatch):
    first = run_study(study_from(plain()), Store(tmp_path), jobs=1)
    before = (tmp_path / "calibration.csv").read_bytes()
    monkeypatch.setattr(AmbientOful, "decide", None)
    assert run_study(study_from(plain()), Store(tmp_path), jobs=1) == first
    assert (tmp_path / "calibration.csv").read_bytes() == before


def test_a_part_is_tuned_like_the_whole_even_if_what_it_shares_is_left_out():
    whole = study_from(plain())
    part = whole.narrowed(methods=["oracle-masked"], observe_probs=[0.4])
    assert part.methods == ("oracle-masked",)
    assert [task.place[2:4] for task in part.tasks()] == [(0.4, "zf-oful")]
    assert study_from(json.loads(json.dumps(part.to_dict()))) == part
    expected = run_study(whole, jobs=1, timing=False).per_seed
    found = run_study(part, jobs=1, timing=False).per_seed
    assert found == [
        row for row in expected if row["method"] == "oracle-masked" and row["p"] == 0.4
    ]


def test_a_skipped_method_can_still_be_shared():
    methods = plain()["methods"] | {"zf-oful": {"skip": True}}
    study = study_from(plain(methods=methods))
    assert "zf-oful" not in study.methods
    assert [task.place.method for task in study.tasks()] == ["ra-tofu", "zf-oful"] * 2
    assert study_from(study.to_dict()) == study


def test_without_tuned_methods_any_seeds_may_be_reported():
    study = study_from(plain())
    with pytest.raises(StudyError, match=r"tuning\.seeds must have none .* got \[50\] in both"):
        study.narrowed(seeds=[49, 50])
    assert study.narrowed(seeds=[50], methods=["tofu"]).tuning is None


def test_the_small_form_may_have_other_validation_seeds():
    study = study_from(plain(smoke={"tuning": {"seeds": 77}, "seeds": 1}), "smoke")
    assert study.tuning.seeds == (77,)


def test_a_candidate_that_fails_while_playing_stops_the_study(monkeypatch):
    monkeypatch.setattr(AmbientOful, "decide", None)
    with pytest.raises(HalfseenError, match=r"tuning stopped, because zf-oful\?ridge=0\.1"):
        run_study(study_from(plain()), jobs=1)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (plain(tuning=3), "tuning must be a table, got 3"),
        (plain(tuning={"seed": 3}), "tuning.seed is not a key here: did you mean 'seeds'?"),
        (
            plain(tuning={"methods": {"zf-oful": GRID}}),
            "tuning.seeds must be given",
        ),
        (
            plain(tuning={"seeds": "1:3", "methods": {"zf-oful": GRID}}),
            "tuning.seeds must have none of the seeds that are reported on, got [1] in both",
        ),
        (tuning(), "tuning.methods must have at least one entry, got {}"),
        (tuning(tofoo=GRID), "tuning.methods.tofoo is not a method of this study: ['tofu', 'zf"),
        (tuning(tofu=3), "tuning.methods.tofu must be a table of settings to try, got 3"),
        (tuning(tofu={}), "tuning.methods.tofu.grid must have at least one setting"),
        (
            tuning(tofu={"burn_in": 3}),
            "tuning.methods.tofu.burn_in must be a list of different values to try, got 3",
        ),
        (
            tuning(tofu={"rank": {"cap": []}}),
            "tuning.methods.tofu.rank.cap must be a list of different values to try, got []",
        ),
        (
            tuning(tofu={"burn_in": [3], "ties": "best"}),
            "tuning.methods.tofu.ties must be one of 'first', 'nearest-one', got 'best'",
        ),
        (
            tuning(tofu={"shared_with": "zf-oful"}),
            "tuning.methods.tofu.shared_with must be one of the tuned methods [], got 'zf-oful'",
        ),
        (
            tuning(tofu={"shared_with": 3}),
            "tuning.methods.tofu.shared_with must be a text, got 3",
        ),
        (
            tuning(tofu={"shared_with": "zf-oful", "ridge": [1]}),
            "tuning.methods.tofu.ridge cannot be tried: what 'zf-oful' is given is taken",
        ),
        (
            plain(
                settings={"a": {}, "b": {"methods": {"zf-greedy": {}}}},
                tuning={
                    "seeds": 50,
                    "methods": {"zf-greedy": GRID, "tofu": {"shared_with": "zf-greedy"}},
                },
            ),
            "tuning.methods.tofu.shared_with must name a method of settings.a, ['tofu', 'zf-oful'",
        ),
    ],
)
def test_a_mistake_in_a_tuning_table_is_reported_with_its_key(data, message):
    with pytest.raises(StudyError, match=re.escape(message)):
        study_from(data)


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ({"zf-oful": {"rigde": [1]}}, "tuning.methods.zf-oful.rigde is not a setting of Ambient"),
        ({"zf-oful": {"ridge": [1, -1]}}, "tuning.methods.zf-oful.ridge must be in"),
        (
            {"zf-oful": {"ridge": [1]}, "tofu": {"shared_with": "zf-oful"}},
            None,
        ),
        (
            {"ra-tofu": {"rank.value": [1]}, "zf-oful": {"shared_with": "ra-tofu"}},
            "tuning.methods.zf-oful.rank is not a setting of AmbientOful",
        ),
        (
            {"tofu": {"burn_in.x": [1]}},
            "tuning.methods.tofu.burn_in.x cannot be set: burn_in is 5",
        ),
    ],
)
def test_every_candidate_is_built_before_anything_runs(methods, message):
    study = study_from(tuning(**methods))
    if message is None:
        study.check()
    else:
        with pytest.raises(StudyError, match=re.escape(message)):
            study.check()


def test_the_command_line_tunes_first_and_goes_on_where_it_stopped(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tuned.json").write_text(json.dumps(plain()))
    arguments = ["run", "tuned.json", "--jobs", "1", "--no-timing"]
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "120"})
    assert result.exit_code == 0, result.output
    assert "settings are chosen on other seeds first (24 cells)" in result.output
    assert "tuned (20 cells)" in result.output
    folder = tmp_path / "results" / "tuned"
    before = {name: (folder / name).read_bytes() for name in ("per_seed.csv", "calibration.csv")}
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "120"})
    assert "first (24 cells, 24 of them finished before)" in result.output
    assert "tuned (20 cells, 20 of them finished before)" in result.output
    assert {name: (folder / name).read_bytes() for name in before} == before


BY_P = {"0.8": {"rank": {"value": 0.3}}, "0.4": {"rank": {"value": 0.9}}}


def test_settings_that_were_chosen_elsewhere_count_at_their_probability():
    study = study_from(tuning(**{"ra-tofu": {"by_p": BY_P}}))
    assert study.tasks() == []
    for part in (study, study_from(study.to_dict()), study.narrowed(methods=["ra-tofu"])):
        cells = [cell for cell in part.cells() if cell.key.method == "ra-tofu"]
        values = {cell.key.p: cell.method.settings["rank"]["value"] for cell in cells}
        assert values == {0.8: 0.3, 0.4: 0.9}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"by_p": BY_P, "ridge": [1.0]}, "ra-tofu.ridge cannot be tried beside by_p"),
        ({"by_p": {"half": {"ridge": 1.0}}}, "by_p must be tables of settings by probability"),
        ({"by_p": {}}, "by_p must be tables of settings by probability"),
    ],
)
def test_settings_by_probability_are_checked(given, says):
    with pytest.raises(StudyError, match=says):
        study_from(tuning(**{"ra-tofu": given}))


def test_a_setting_that_was_chosen_elsewhere_must_suit_its_method():
    study = study_from(tuning(**{"ra-tofu": {"by_p": {"0.4": {"ridge": -1.0}}}}))
    with pytest.raises(StudyError, match=r"tuning\.methods\.ra-tofu\.ridge must be in"):
        study.check()
