"""Settings are chosen on validation seeds, by a rule that is written down, and on no others."""

import json
import math

import pytest

from halfseen import HalfseenError, InvalidSettingError, LowRankWorld, simulate, tune
from halfseen.simulation.methods import METHODS, Method
from halfseen.simulation.tune import applied, best_of, candidates

WORLD = LowRankWorld(dim=6, rank=2, n_arms=4, horizon=40)
GRID = {"ridge": [0.1, 1.0, 10.0], "radius_scale": [0.5, 2.0]}


def tuned(grid=GRID, **settings):
    given = {"reporting": range(3), "jobs": 1} | settings
    return tune("zf-oful", grid, WORLD, range(100, 103), **given)


def test_candidates_are_all_combinations_and_the_last_setting_changes_fastest():
    pairs = [tuple(each.values()) for each in candidates(GRID)]
    assert pairs == [(0.1, 0.5), (0.1, 2.0), (1.0, 0.5), (1.0, 2.0), (10.0, 0.5), (10.0, 2.0)]


def test_the_lowest_mean_over_the_validation_seeds_wins():
    means = {}
    for candidate in candidates(GRID):
        tables = simulate({"zf-oful": candidate}, WORLD, range(100, 103), jobs=1)
        means[json.dumps(candidate)] = tables.summary[0]["mean_regret"]
    found = tuned()
    assert json.dumps(found.chosen) == min(means, key=means.get)
    assert found.method == Method(policy="AmbientOful", settings=found.chosen)
    for text, mean in means.items():
        regrets = [row["final_regret"] for row in found.rows if row["candidate"] == text]
        assert math.fsum(regrets) / 3 == pytest.approx(mean, rel=1e-12)
    selected = {row["candidate"] for row in found.rows if row["selected"]}
    assert selected == {json.dumps(found.chosen)}


@pytest.mark.parametrize(
    ("means", "winner"),
    [
        ([2.0, 1.0, 1.0, 1.0], 1),
        ([2.0, 1.0, 1.0 - 1e-12, 1.0], 1),  # rounding decides nothing
        ([2.0, 1.0, 0.999, 1.0], 2),
    ],
)
def test_of_equally_good_candidates_the_first_wins(means, winner):
    assert best_of(means) == winner


@pytest.mark.parametrize(
    ("seeds", "reporting", "both"), [([3, 4], range(4), [3]), ([7, 8], [8, 7], [7, 8])]
)
def test_a_seed_cannot_be_for_validation_and_reported_as_well(seeds, reporting, both):
    with pytest.raises(InvalidSettingError) as error:
        tune("zf-oful", GRID, WORLD, seeds, reporting=reporting, jobs=1)
    assert f"none of the seeds that are reported on, got {both} in both" in str(error.value)


def test_a_name_with_dots_reaches_into_a_table_and_leaves_the_standard_method_alone():
    before = METHODS["ra-tofu"].to_dict()["rank"].copy()
    changed = applied(METHODS["ra-tofu"], {"rank.multiplier": 0.5, "burn_in": 7})
    assert changed.settings["rank"] == before | {"multiplier": 0.5}
    assert changed.settings["burn_in"] == 7
    assert METHODS["ra-tofu"].settings["rank"] == before
    with pytest.raises(InvalidSettingError, match=r"burn_in\.x cannot be set: burn_in is 30"):
        applied(METHODS["ra-tofu"], {"burn_in.x": 1})


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({}, "grid must have at least one setting"),
        ({"ridge": []}, r"ridge must be a list of different values to try, got \[\]"),
        ({"ridge": [1, 1.0]}, "ridge must be a list of different values"),
        ({"ridge": 3}, "ridge must be a list of different values to try, got 3"),
    ],
)
def test_a_grid_that_cannot_be_searched_is_refused(grid, message):
    with pytest.raises(InvalidSettingError, match=message):
        tuned(grid)


def test_a_candidate_that_fails_stops_the_search():
    with pytest.raises(HalfseenError, match=r"zf-oful\?ridge=-1 failed on seed 100 .*ridge must"):
        tuned({"ridge": [1, -1]})


def test_a_method_of_one_s_own_is_tuned():
    method = Method(policy="AmbientOful", view="full", settings={"failure_prob": 0.1})
    found = tune(method, GRID, WORLD, [9], reporting=[1], jobs=1)
    assert found.method.view == "full"
    assert found.method.settings == {"failure_prob": 0.1, **found.chosen}
