"""Defaults are chosen where no study looks."""

import csv
from dataclasses import replace

from benchmarks import choose_defaults, development
from halfseen import LatentUcb
from halfseen.paper.studies import ORDER, study_named
from halfseen.worlds.base import world_from


def studies():
    return [study_named(name, scale) for name in ORDER for scale in ("paper", "smoke")]


def test_no_study_reports_or_tunes_on_a_seed_of_the_choice():
    used = set()
    for study in studies():
        for setting in study.settings.values():
            used |= set(setting.seeds or study.seeds)
            used |= set() if setting.tuning is None else set(setting.tuning.seeds)
    assert used
    assert not used & set(choose_defaults.SEEDS)
    assert min(choose_defaults.SEEDS) >= 1000


def test_no_study_has_a_world_of_the_choice():
    """Sizes, probabilities aside, are enough to tell them apart."""
    sizes = ("dim", "rank", "n_arms", "horizon", "noise_scale")
    chosen = {tuple(world[name] for name in sizes) for world in choose_defaults.WORLDS.values()}
    seen = {
        tuple(getattr(world_from(setting.world), name, None) for name in sizes)
        for study in studies()
        for setting in study.settings.values()
    }
    assert seen
    assert not chosen & seen


def test_the_defaults_are_the_ones_that_the_table_chooses():
    with choose_defaults.TABLE.open() as file:
        rows = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
    chosen = choose_defaults.chosen(rows)
    policy = LatentUcb()
    shares = {"item_share": policy._item_share}
    assert {name: shares.get(name) or getattr(policy, name) for name in chosen} == chosen
    assert list(rows[0])[5:] == [*choose_defaults.WORLDS, *choose_defaults.TABLES]


def test_no_study_has_a_problem_of_the_choice():
    """Tables are shared, as they are few: horizons, and with them problems, are not."""
    horizons = {table["horizon"] for table in choose_defaults.TABLES.values()}
    seen = {
        setting.world.get("horizon")
        for study in studies()
        for setting in study.settings.values()
        if setting.world.get("kind") == "real-table"
    }
    assert seen
    assert not horizons & seen


def test_development_problems_are_played_on_seeds_that_no_study_reports():
    assert development.FIRST_SEED >= 1000
    problem = replace(development.PROBLEMS["context, useless categories"], horizon=3, delay=1)
    policy = development.our_policy(problem, 1000, {})
    assert 0.0 <= development.mean_reward(policy, problem, 1000) <= 1.0
    assert policy.round == 3


def test_a_development_problem_is_won_only_beyond_two_errors_and_two_percent_of_the_lead():
    def word(ours):
        return development.verdict(
            [{"ours": each, "uniform": 0.0, "a": 1.0, "b": 0.5} for each in ours]
        ).split()[-2]

    assert [word(ours) for ours in ([1.03, 1.04], [1.01, 1.01], [1.5, 0.9], [0.5, 0.6])] == [
        "won", "tied", "tied", "LOST",
    ]  # fmt: skip
