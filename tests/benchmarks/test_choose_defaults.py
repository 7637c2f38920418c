"""Defaults are chosen where no study looks."""

from dataclasses import replace

from benchmarks import choose_defaults, development
from halfseen import LatentUcb
from halfseen.paper.studies import ORDER, study_named
from halfseen.worlds.base import world_from
from shared import read


def test_no_study_looks_where_defaults_are_chosen():
    """Sizes are enough to tell worlds apart. Tables are few and shared, their horizons are not."""
    sizes = ("dim", "rank", "n_arms", "horizon", "noise_scale")
    seeds, worlds, horizons = set(), set(), set()
    for study in (study_named(name, scale) for name in ORDER for scale in ("paper", "smoke")):
        for setting in study.settings.values():
            seeds |= {*(setting.seeds or study.seeds)}
            seeds |= set() if setting.tuning is None else {*setting.tuning.seeds}
            world = world_from(setting.world)
            worlds.add(tuple(getattr(world, name, None) for name in sizes))
            if setting.world.get("kind") == "real-table":
                horizons.add(setting.world.get("horizon"))
    chosen, tables = choose_defaults.WORLDS.values(), choose_defaults.TABLES.values()
    assert min(map(len, (seeds, worlds, horizons))) > 0
    assert seeds.isdisjoint(choose_defaults.SEEDS)
    assert worlds.isdisjoint(tuple(world[name] for name in sizes) for world in chosen)
    assert horizons.isdisjoint(table["horizon"] for table in tables)
    assert min(choose_defaults.SEEDS) >= 1000


def test_the_defaults_are_the_ones_that_the_table_chooses():
    found = read(choose_defaults.TABLE)
    rows = [{name: float(value) for name, value in row.items()} for row in found]
    chosen = choose_defaults.chosen(rows)
    policy = LatentUcb()
    shares = {"item_share": policy._item_share}
    assert {name: shares.get(name) or getattr(policy, name) for name in chosen} == chosen
    assert list(rows[0])[5:] == [*choose_defaults.WORLDS, *choose_defaults.TABLES]


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
