"""Recorded arms: files, holes, what is told, and errors that say where and what."""

import math

import numpy as np
import pytest

from halfseen import InvalidInputError, InvalidSettingError, Slate, TableWorld

NAN = math.nan
CSV = """round,arm,mean,price,rating
1,a,0.5,1.0,2.0
1,b,0.25,,3.0
2,a,0.0,4.0,NA

2,c,1.0,5.0,NaN
2,d,-1.0,6.0,7.5
"""
ARMS = [[[1.0, 2.0], [NAN, 3.0]], [[4.0, NAN], [5.0, NAN], [6.0, 7.5]]]
MEANS = [[0.5, 0.25], [0.0, 1.0, -1.0]]


def written(folder, text, name="log.csv"):
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return str(file)


def walked(world, seed=0):
    return list(world.realize(seed).rounds())


def random_arrays(rounds=40, n_arms=5, dim=6, holes=0.3, seed=0):
    rng = np.random.default_rng(seed)
    arms = rng.standard_normal((rounds, n_arms, dim))
    arms[rng.random(arms.shape) < holes] = NAN
    return arms.round(3), rng.standard_normal((rounds, n_arms)).round(3)


def table_of(folder, arms, pays, kind="mean", **settings):
    """Return the world of a file with these arms."""
    dim = len(arms[0][0])
    lines = [",".join(["round", kind, *(f"x{feature}" for feature in range(dim))])]
    for number, (table, row) in enumerate(zip(arms, pays, strict=True)):
        for arm, pay in zip(table, row, strict=True):
            cells = ["" if np.isnan(value) else str(value) for value in arm]
            lines.append(",".join([str(number), str(pay), *cells]))
    return TableWorld(path=written(folder, "\n".join(lines)), **settings)


# Sources


def test_a_csv_has_one_line_per_arm_and_holes_where_cells_are_empty(tmp_path):
    world = TableWorld(path=written(tmp_path, CSV))
    assert world.table().names == ("price", "rating")
    for round, arms, means in zip(walked(world), ARMS, MEANS, strict=True):
        assert np.array_equal(round.arms, arms, equal_nan=True)
        assert np.array_equal(round.slate.mask, ~np.isnan(arms))
        assert round.means.tolist() == means


def test_lines_of_a_round_may_stand_anywhere_and_keep_their_order(tmp_path):
    text = "round,mean,x\n9,1,1\n-3,2,2\n9,3,3\n-3,4,4\n"
    means = [round.means.tolist() for round in walked(TableWorld(path=written(tmp_path, text)))]
    assert means == [[2, 4], [1, 3]]


def test_columns_may_have_other_names(tmp_path):
    text = "day,item,ctr,x,y\n1,a,0.5,1,2\n1,b,0.25,3,4\n"
    path = written(tmp_path, text)
    world = TableWorld(path=path, round_column="day", id_column="item", mean_column="ctr")
    (round,) = walked(world)
    assert (round.arms.tolist(), round.means.tolist()) == ([[1, 2], [3, 4]], [0.5, 0.25])


VISITS = """round,sku,reward,price,age,country
2,b,1.0,4.0,,FR
1,a,0.5,1.0,30,DE
1,b,0.25,,30,DE
2,c,0.0,5.0,,FR
"""


def visits(folder, text=VISITS, context=("age", "country")):
    path = written(folder, text)
    return TableWorld(path=path, id_column="sku", context_columns=context)


def test_policies_see_the_context_and_the_ids_that_are_named(tmp_path):
    world = visits(tmp_path)
    first, second = (round.slate for round in walked(world))
    assert np.array_equal(first.context, [30.0, 0.0, 1.0])  # age, FR, DE
    assert np.array_equal(second.context, [NAN, 1.0, 0.0], equal_nan=True)
    assert first.items.tolist() == [1, 0]  # in the order in which ids appear in the file
    assert second.items.tolist() == [0, 2]
    assert world.shares() == {"price": 0.75}


@pytest.mark.parametrize(
    ("change", "context", "says"),
    [
        (("30,DE", "31,DE"), ["age"], "'age' must have one value per round.*several in round 1"),
        (("2,c,", "2,,"), ["age"], "'sku' is empty in row 3"),
        (("price", "price"), ["town"], "there is no column 'town'"),
    ],
)
def test_a_context_or_an_id_that_makes_no_sense_is_refused(tmp_path, change, context, says):
    with pytest.raises(InvalidInputError, match=says):
        visits(tmp_path, VISITS.replace(*change, 1), context).realize(0)


def test_a_changed_file_is_read_again(tmp_path):
    path = written(tmp_path, "round,mean,x\n1,1,1\n1,0,2\n")
    assert walked(TableWorld(path=path))[0].means.tolist() == [1, 0]
    assert TableWorld(path=path).table() is TableWorld(path=path).table()
    written(tmp_path, "round,mean,x\n1,2.5,1\n1,0,2\n")
    assert walked(TableWorld(path=path))[0].means.tolist() == [2.5, 0]


# Settings


def test_entries_that_are_there_are_hidden_further_by_the_mask_law(tmp_path):
    """1200 · .7 entries, independent: the share seen is within 5 standard errors (6e-7)."""
    arms, means = random_arrays(rounds=400)
    world = table_of(tmp_path, arms, means, observe_prob=0.4)
    masks = np.array([round.slate.mask for round in walked(world)])
    there = ~np.isnan(arms)
    assert not (masks & ~there).any()
    assert abs(masks[there].mean() - 0.4) < 5 * math.sqrt(0.24 / there.sum())
    for round, recorded in zip(walked(world), arms, strict=True):
        assert np.array_equal(round.arms, recorded, equal_nan=True)


def test_a_shuffle_is_a_permutation_that_depends_on_the_seed(tmp_path):
    arms, means = random_arrays()
    world = table_of(tmp_path, arms, means, shuffle=True)
    one, other = (np.array([round.means for round in walked(world, seed)]) for seed in (0, 1))
    assert not np.array_equal(one, other)
    for walk in (one, other):
        assert np.array_equal(walk[np.argsort(walk[:, 0])], means[np.argsort(means[:, 0])])


def test_means_get_noise_and_recorded_rewards_do_not(tmp_path):
    """2000 normal numbers: the mean square is within 5 standard errors √(2/n) (6e-7)."""
    arms, pays = random_arrays(rounds=2000, n_arms=2)
    noisy = table_of(tmp_path, arms, pays, noise_scale=0.5)
    noise = np.array([round.noise for round in walked(noisy)])
    assert abs((noise**2).mean() / 0.25 - 1) < 5 * math.sqrt(2 / 2000)
    recorded = table_of(tmp_path, arms[:20], pays[:20], "reward", noise_scale=0.5)
    assert {round.noise for round in walked(recorded)} == {0.0}


# Facts


def test_a_table_with_holes_tells_the_share_of_each_feature(tmp_path):
    facts = table_of(tmp_path, ARMS, MEANS, observe_prob=0.5, rank=1).realize(2).facts
    assert facts.observe_prob == pytest.approx([0.5 * 4 / 5, 0.5 * 3 / 5])
    assert (facts.dim, facts.n_arms, facts.horizon, facts.rank) == (2, None, 2, 1)
    assert facts.basis is None
    facts = table_of(tmp_path, *random_arrays(holes=0.0)).realize(0).facts
    assert (facts.observe_prob, facts.n_arms, facts.rank) == (1.0, 5, None)


@pytest.mark.parametrize(
    ("kind", "noise_scale", "told"),
    [("mean", None, 0.0), ("mean", 0.2, 0.2), ("reward", None, None), ("reward", 0.2, 0.2)],
)
def test_the_noise_of_recorded_rewards_is_unknown_unless_it_is_given(
    tmp_path, kind, noise_scale, told
):
    arms, pays = random_arrays()
    world = table_of(tmp_path, arms, pays, kind, noise_scale=noise_scale)
    assert world.realize(0).facts.noise_scale == told


def test_a_column_of_strings_is_a_category_and_every_feature_is_reported(tmp_path):
    text = "round,arm,chosen,reward,x,colour\n1,a,1,0,,red\n1,b,0,1,2,\n2,a,1,0,3,blue\n"
    world = TableWorld(path=written(tmp_path, text))
    assert world.shares() == pytest.approx({"x": 2 / 3, "colour=red": 2 / 3, "colour=blue": 2 / 3})
    first = next(iter(world.realize(0).rounds())).slate
    assert first == Slate([[NAN, 1.0, 0.0], [2.0, NAN, NAN]])


def test_a_context_that_was_never_recorded_is_none(tmp_path):
    text = "round,mean,x,town\n1,1,1,\n1,0,2,\n"
    world = TableWorld(path=written(tmp_path, text), context_columns=["town"])
    assert next(iter(world.realize(0).rounds())).slate.context is None


# Errors

BAD_FILES = [
    ("round,mean,x\n", "must be features and rows, got none"),
    (
        "round,reward,x\n1,1,1\n2,0,2\n",
        "one row per round, so only the reward of the chosen",
    ),
    ("turn,mean,x\n1,1,1\n", r"no column 'round', only \['turn', 'mean', 'x'\]"),
    ("round,x\n1,1\n", r"one of the columns 'mean' and 'reward', got \['round', 'x'\]"),
    ("round,mean,reward,x\n1,1,1,1\n", r"got \['round', 'mean', 'reward', 'x'\]"),
    ("round,mean,chosen\n1,1,1\n", "must be features and rows, got none"),
    (
        "round,mean,x\n1,1,1\none,1,2\n",
        "log.csv: column 'round' must be whole numbers, got one in row 1: correct it",
    ),
    ("round,mean,x\n1,1,1\n1.5,1,2\n", r"'round' must be whole numbers, got 1\.5 in row 1"),
    ("round,mean,x\n1,1,1\n,1,2\n", "'round' must be whole numbers, got nan in row 1"),
    (
        "round,mean,x\n2,1,1\n1,,2\n",
        "'mean' must be finite numbers .*, got nan in row 1",
    ),
    ("round,reward,x\n1,1,1\n1,inf,2\n", "'reward' must be finite .*, got inf in row 1"),
    (
        "round,mean,x,y\n2,1,1,1\n1,1,1,-inf\n",
        "'y' must be finite .*, got -inf in row 1: leave it empty",
    ),
    ("round,mean,x\n1,1,1e200\n", r"at most 1e\+100 in size, got 1e\+200 in row 0"),
    ("round,mean,x,y\n1,1,1,\n", "column 'y' was never recorded: leave it out"),
]


@pytest.mark.parametrize(("text", "says"), BAD_FILES, ids=[says for _, says in BAD_FILES])
def test_a_bad_file_is_refused_by_place_and_value(tmp_path, text, says):
    with pytest.raises(InvalidInputError, match=says) as caught:
        TableWorld(path=written(tmp_path, text)).realize(0)
    assert "log.csv" in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InvalidSettingError, match=r"nowhere\.csv.* does not exist"):
        TableWorld(path=tmp_path / "nowhere.csv").realize(0)


def test_a_rank_that_does_not_fit_the_table_is_refused(tmp_path):
    with pytest.raises(InvalidSettingError, match=r"rank .*\[1, 6\], got 7"):
        table_of(tmp_path, *random_arrays(), rank=7).realize(0)
