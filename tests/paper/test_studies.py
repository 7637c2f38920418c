"""The studies of the package: they run small in seconds, are tuned, and can be narrowed."""

import json

import pytest

from halfseen import LowRankWorld, Uniform, paper, params, register_policy
from halfseen.errors import StudyError
from halfseen.linear.eigen import top_eigenpairs
from halfseen.paper.published import published
from halfseen.paper.studies import ORDER, report_on, study_named
from halfseen.paper.study import Setting, Tuning, run_study
from halfseen.policies.registry import registered
from halfseen.simulation import cells
from halfseen.simulation.cells import CellKey, fingerprint
from halfseen.simulation.methods import MEASURE, Method
from halfseen.simulation.results import Results
from halfseen.simulation.store import Store
from halfseen.simulation.tune import tune
from halfseen.theory import observe_prob_condition
from halfseen.tofu import RankRule, Selection
from halfseen.worlds.base import world_from
from made_results import WORLD, setting, small_study, without_seconds
from shared import read

EACH = pytest.mark.parametrize("name", ORDER)


@EACH
@pytest.mark.parametrize("scale", ["paper", "smoke"])
def test_no_two_cells_of_a_study_have_the_same_name(name, scale):
    study = study_named(name, scale)
    keys = [cell.key for cell in study.cells()]
    assert len(set(keys)) == len(keys) == study.n_cells > 0


@EACH
@pytest.mark.usefixtures("unrendered")
def test_at_smoke_scale_a_study_runs_and_has_its_figures_and_claims(name, tmp_path):
    smoke = study_named(name, "smoke")
    study = smoke.narrowed(seeds=smoke.seeds[:1])  # another seed is more of the same
    results = run_study(study, Store(tmp_path), jobs=1)
    assert [error for _, error in results.failures] == []
    assert [row["status"] for row in results.per_seed] == ["ok"] * study.n_cells
    measures = {cell.key for cell in study.cells() if cell.method.policy == MEASURE}
    assert measures <= {tuple(row[part] for part in CellKey._fields) for row in results.diagnostics}
    report = study.report(results)
    names = [figure.name for figure in report.specs]
    assert len(set(names)) == len(names) > 0
    assert {verdict.outcome for verdict in report.verdicts} == {"too small to judge"}
    report.write()
    assert any(tmp_path.glob("*.png")) or name in ("contexts", "tables")  # one seed has none
    again = report_on(tmp_path)
    assert again.verdicts == report.verdicts
    assert [spec[:2] for spec in again.specs] == [spec[:2] for spec in report.specs]
    assert again.table == report.table
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["seeds"] == list(study.seeds)
    assert set(manifest["versions"]) >= {"halfseen", "python", "numpy"}


@EACH
def test_a_smoke_run_compares_the_methods_of_the_full_one(name):
    full, smoke = study_named(name), study_named(name, "smoke")
    assert smoke.methods == [key for key in full.methods if key in smoke.methods]
    assert set(smoke.settings) <= set(full.settings)
    assert smoke.n_cells < full.n_cells


@EACH
def test_every_published_cell_is_a_cell_of_its_study(name):
    assert published(name).keys() <= {cell.key for cell in study_named(name).cells()}


def test_of_the_worlds_for_seen_rows_the_largest_alone_satisfies_the_condition_on_p():
    settings = study_named("theory").settings
    for name, suffices in (("d=64", False), ("d=16384", True)):
        (world,) = settings[name].built().worlds.values()
        problem = world.realize(0).problem()
        names = ("dim", "rank", "n_arms", "horizon", "incoherence")
        known = {name: getattr(problem, name) for name in names}
        assert (observe_prob_condition(**known, failure_prob=0.1) <= 0.6) == suffices


def test_a_study_that_does_not_exist_is_refused_with_those_that_do():
    with pytest.raises(StudyError, match=r"there is no study 'main', there are \['synthetic'"):
        study_named("main")


# Parts of a study

SMALL = small_study(
    {
        "swept": setting(probs=(0.8, 0.5, 0.2)),
        "fixed": setting(world=WORLD | {"observe_prob": 0.5}, methods={"tofu": {}}, probs=()),
    }
)


def names(study):
    return [cell.key[1:] for cell in study.cells()]


def test_a_study_is_narrowed_to_seeds_methods_and_probabilities():
    study = SMALL.narrowed(seeds=(100, 101, 102))
    assert {key[3] for key in names(study)} == {100, 101, 102}
    assert len(names(study)) == 3 * (3 * 3 + 1)
    assert SMALL.narrowed(methods="uniform").settings.keys() == {"swept"}
    assert SMALL.narrowed(methods=["zf-oful", "tofu"]).methods == ["zf-oful", "tofu"]
    assert {key[:2] for key in names(SMALL.narrowed(observe_probs=[0.2]))} == {("swept", 0.2)}
    both = SMALL.narrowed(observe_probs=[0.5])
    assert {key[:2] for key in names(both)} == {("swept", 0.5), ("fixed", 0.5)}


@pytest.mark.parametrize(
    "part",
    [{"observe_probs": [0.5]}, {"observe_probs": [0.5, 0.5]}, {"methods": ["tofu", "tofu"]}],
    ids=str,
)
def test_the_cells_of_a_part_are_cells_of_the_whole(part):
    whole = {(cell.key, cell.fingerprint) for cell in SMALL.cells()}
    found = [(cell.key, cell.fingerprint) for cell in SMALL.narrowed(**part).cells()]
    assert set(found) <= whole
    assert len(set(found)) == len(found)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"methods": ["zf-ofull"]}, r"method must be .*got 'zf-ofull': did you mean 'zf-oful'"),
        ({"methods": {"tofu": {"burn_in": 3}}}, r"'tofu' is a method of small"),
        ({"observe_probs": [0.3]}, r"p must be among .*0\.8, 0\.5, 0\.2\], got 0\.3"),
        ({"methods": []}, "nothing is left of small"),
        ({"observe_probs": []}, "nothing is left of small"),
        ({"seeds": []}, "nothing is left of small"),
    ],
)
def test_what_a_study_does_not_have_is_refused(part, message):
    with pytest.raises(StudyError, match=message):
        SMALL.narrowed(**part)


def test_other_methods_and_registered_policies_join_every_setting(monkeypatch):
    known = {name: registered(name) for name in ("Uniform", "Greedy")}
    monkeypatch.setattr("halfseen.policies.registry._CLASSES", known)

    @register_policy
    class MyOwn(Uniform):
        pass

    study = SMALL.narrowed(methods=["tofu", "my-own", "zf-greedy"])
    assert study.methods == ["tofu", "my-own", "zf-greedy"]
    assert list(study.settings) == ["swept", "fixed"]
    assert study.settings["fixed"].method("my-own").policy == "MyOwn"
    with pytest.raises(
        StudyError, match=r"got 'MyOwnn': did you mean 'MyOwn'\?.*methods of small are"
    ):
        SMALL.narrowed(methods=["MyOwnn"])


class HalfTheTop(RankRule):
    """Directions with at least half of the largest eigenvalue."""

    share: float = params.real(default=0.5)

    def select(self, covariance, known):
        values, vectors = top_eigenpairs(covariance, 4)
        rank = int((values >= self.share * values[0]).sum())
        return Selection(vectors[:, :rank], values, None)


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_ingredient_of_ones_own_joins_a_study_whose_results_are_kept(tmp_path, jobs):
    methods = {"tofu": None, "mine": {"method": "tofu", "rank": HalfTheTop(share=0.4)}}
    asked = {"methods": methods, "scale": "smoke", "seeds": [0], "out": tmp_path, "jobs": jobs}
    results = paper.run("synthetic", **asked)
    assert [row["n"] for row in results.summary] == [1] * 4
    assert results.table()["p"].is_monotonic_increasing
    again = paper.run("synthetic", **asked)
    assert again.manifest["cells_run_now"] == 0
    assert again.summary == results.summary
    saved = Results.load(tmp_path).settings["default"].methods["mine"].settings["rank"]
    assert saved == {"rule": "HalfTheTop", "share": 0.4}


def test_results_of_an_ingredient_are_run_again_when_its_file_changes(monkeypatch):
    world, methods = LowRankWorld(), ({"rank": HalfTheTop()}, {"rank": {"rule": "HalfTheTop"}}, {})
    found = []
    for content in ("before", "after"):
        monkeypatch.setattr(cells, "_contents", lambda files, content=content: content * len(files))
        made = [Method(policy="TofuPov", settings=settings) for settings in methods]
        found.append([fingerprint(world, each, seed=0, points=9) for each in made])
    is_new = [before != after for before, after in zip(*found, strict=True)]
    assert is_new == [True, True, False]


def test_a_study_says_how_many_cells_failed(caplog):
    methods = {"uniform": None, "broken": {"method": "tofu", "burn_in_policy": Uniform(dim=1)}}
    results = paper.run("synthetic", methods=methods, scale="smoke", seeds=[0], jobs=1)
    assert [row["n"] for row in results.summary] == [1, 0] * 2
    assert "2 of 4 cells failed, the first because of " in caplog.text
    assert "; see results.failures" in caplog.text


# Tuning

GRID = {"ridge": [0.1, 10.0], "radius_scale": [0.25, 2.0]}
RULE = {"rule": "ConstantThreshold", "value": 0.5, "cap": 4}
TUNED_WORLD = {"kind": "low-rank", "dim": 6, "rank": 2, "n_arms": 4, "horizon": 40}


def tuned_study(**tuning):
    given = {
        "seeds": (50, 51),
        "searches": {"zf-oful": GRID, "ra-tofu": {"rank.value": [0.2, 0.6]}},
        "shared": {"oracle-masked": "zf-oful"},
    }
    each = Setting(
        world=TUNED_WORLD,
        methods={
            "tofu": {"burn_in": 5},
            "zf-oful": {},
            "plain-oful": {"method": "zf-oful"},
            "oracle-masked": {},
            "ra-tofu": {"burn_in": 5, "rank": RULE},
        },
        observe_probs=(0.8, 0.4),
        tuning=Tuning(**given | tuning),
    )
    return small_study({"default": each}, seeds=range(2))


def test_every_probability_is_tuned_for_itself_and_shared_settings_arrive(tmp_path):
    study = tuned_study()
    results = run_study(study, Store(tmp_path), jobs=1)
    rows = results.manifest["tuned"]["chosen"]
    chosen = {(row["p"], row["method"]): row["settings"] for row in rows}
    assert set(chosen) == {(p, key) for p in (0.8, 0.4) for key in ("zf-oful", "ra-tofu")}
    for p in (0.8, 0.4):
        world = world_from({**TUNED_WORLD, "observe_prob": p})
        alone = tune("zf-oful", GRID, world, [50, 51], reporting=[0], jobs=1)
        assert chosen[p, "zf-oful"] == alone.chosen
    reported = study.cells({("default", *place): settings for place, settings in chosen.items()})
    assert Store(tmp_path).missing(reported) == []
    for cell in reported:
        if cell.key.method in ("zf-oful", "oracle-masked"):
            assert dict(cell.method.settings) == chosen[cell.key.p, "zf-oful"]
        if cell.key.method == "plain-oful":
            assert not cell.method.settings
        if cell.key.method == "ra-tofu":
            value = chosen[cell.key.p, "ra-tofu"]["rank.value"]
            assert cell.method.settings["rank"] == RULE | {"value": value}
    assert [row["status"] for row in results.per_seed] == ["ok"] * study.n_cells
    tried = read(tmp_path / "calibration.csv")
    assert len(tried) == 2 * 2 * (4 + 2)
    assert {row["seed"] for row in tried} == {"50", "51"}
    assert sum(int(row["selected"]) for row in tried) == 2 * 2 * 2
    # A second run plays nothing; the tables of a part without tuning have no candidates.
    before = (tmp_path / "calibration.csv").read_bytes()
    again = run_study(study, Store(tmp_path), jobs=1)
    assert again.manifest["cells_run_now"] == 0
    assert again.per_seed == results.per_seed
    assert (tmp_path / "calibration.csv").read_bytes() == before
    run_study(study.narrowed(methods=["tofu"]), Store(tmp_path), jobs=1)
    assert not (tmp_path / "calibration.csv").exists()


def test_a_part_is_tuned_like_the_whole_even_if_what_it_shares_is_left_out():
    whole = tuned_study()
    part = whole.narrowed(methods=["oracle-masked"], observe_probs=[0.4])
    assert part.methods == ["oracle-masked"]
    assert [task.place[2:4] for task in part.tasks()] == [(0.4, "zf-oful")]
    expected = without_seconds(run_study(whole, jobs=1))
    found = without_seconds(run_study(part, jobs=1))
    assert found == [
        row for row in expected if row["method"] == "oracle-masked" and row["p"] == 0.4
    ]


def test_validation_seeds_are_not_reported_on():
    with pytest.raises(StudyError, match=r"seeds must have none .* got \[50\]: a method looks"):
        tuned_study().narrowed(seeds=[49, 50])
    assert tuned_study().narrowed(seeds=[50], methods=["tofu"]).tasks() == []


def test_settings_that_were_chosen_elsewhere_count_at_their_probability():
    given = {"ra-tofu": {0.8: {"rank.value": 0.3}, 0.4: {"rank.value": 0.9}}}
    study = tuned_study(searches={}, shared={}, given=given)
    assert study.tasks() == []
    for part in (study, study.narrowed(methods=["ra-tofu"])):
        cells = [cell for cell in part.cells() if cell.key.method == "ra-tofu"]
        values = {cell.key.p: cell.method.settings["rank"]["value"] for cell in cells}
        assert values == {0.8: 0.3, 0.4: 0.9}
