"""Every sentence of an inspection follows the table."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from typer.testing import CliRunner

from halfseen import inspect
from halfseen.cli import app
from halfseen.errors import InvalidInputError
from halfseen.tools import inspection
from halfseen.tools.inspection import Inspector


def offers(n=600, *, rank=2, noise=0.3, hidden=0.3, seed=0):
    """Return a frame of six numbers and a category that share few latents, and a reward."""
    random = np.random.default_rng(seed)
    latent = random.normal(size=(n, rank))
    table = latent @ random.normal(size=(rank, 6)) + noise * random.normal(size=(n, 6))
    frame = pd.DataFrame(table, columns=list("abcdef"))
    frame["colour"] = np.where(latent[:, 0] > 0.0, "red", "blue")
    reward = latent.sum(axis=1) + 0.5 * random.normal(size=n)
    frame = frame.mask(random.random(frame.shape) < hidden)
    return frame.assign(reward=reward)


def shuffled(frame):
    """Return the columns in orders of their own: nothing depends on anything."""
    random = np.random.default_rng(1)
    return frame.apply(lambda column: random.permutation(column.to_numpy()))


def full(frame):
    return offers(hidden=0.0)


def hidden_together(frame):
    return frame.assign(b=frame["b"].where(frame["a"].notna()), a=frame["a"].where(frame["b"] < 9))


def hidden_by_reward(frame):
    return frame.assign(c=frame["c"].where(frame["reward"] < 1.0))


def hidden_by_colour(frame):
    return frame.assign(d=frame["d"].where(frame["colour"] != "red"))


RANDOM = "Missing completely at random?"


@pytest.mark.parametrize(
    ("topic", "before", "change", "after"),
    [
        ("Rows", " 31 % of the entries of 7 columns", full, " 0 % of the entries of 7 columns"),
        ("Rows", "; 8 % of the rows are complete", full, "; 100 % of the rows are complete"),
        ("Missing together?", "No two columns", hidden_together, "Yes: a and b."),
        ("Missing together?", "No two columns", full, "Fewer than two columns have missing values"),
        ("Low-rank?", "Yes: 2 factors", shuffled, "No: the columns hardly predict"),
        ("Low-rank?", "2 factors describe", lambda _: offers(rank=1), "one factor "),
        ("Low-rank?", "Yes: ", lambda _: offers(5000, noise=2.0, rank=1), "A little: one factor"),
        (RANDOM, "Possibly: ", hidden_by_reward, "No: c is missing in 67 % of the rows "
                 "where reward is above -0.119, and in 35 % of the others."),
        (RANDOM, "Possibly: ", hidden_by_colour, "No: d is missing in 30 % of the rows "
                 "where colour is blue, and in 100 % of the others."),
        (RANDOM, "Possibly: ", full, "Nothing is missing."),
        ("Worth measuring?", "Most of all b", lambda frame: frame.assign(b=0.5), "Most of all d"),
        ("Worth measuring?", "Most of all", shuffled, "No: a missing entry"),
        ("Advice", "Use LatentUcb()", full, "Nothing is missing: AmbientOful(dim=7) is enough"),
        ("Advice", "Use LatentUcb()", shuffled, "LatentUcb() will do about as well as Imputed"),
        ("Advice", "means. The columns", hidden_by_reward, "means. Missingness is informative"),
        ("Advice", "The columns explain ", shuffled, "The columns do not explain"),
    ],
)  # fmt: skip
def test_a_change_of_the_table_changes_the_sentence(topic, before, change, after):
    frame = offers()
    assert before in inspect(frame, reward="reward").findings[topic]
    found = inspect(change(frame), reward="reward").findings[topic]
    assert after in found
    assert before not in found


def test_a_code_for_missing_is_counted_and_does_not_hide_what_columns_share():
    clean = offers(noise=0.1)
    coded = clean.copy()
    coded.loc[np.random.default_rng(3).random(len(clean)) < 0.02, "b"] = -999.0
    n = int((coded["b"] == -999.0).sum())
    before, after = inspect(clean, "reward"), inspect(coded, "reward")
    assert "Implausible values?" not in before.findings
    assert after.findings["Implausible values?"].startswith(f"Yes: {n} in b are so far")
    assert after.rank == before.rank
    (b,) = (each for each in after.columns if each.name == "b")
    assert b.inferred > 0.8


def test_without_a_reward_the_advice_asks_for_it():
    findings = inspect(offers().drop(columns="reward")).findings
    assert "Name the reward column" in findings["Advice"]
    assert "Worth measuring?" not in findings


def test_what_a_column_is_taken_for_and_how_much_is_seen():
    frame = offers(100).assign(
        sku=[f"item {n}" for n in range(100)],
        when=pd.Timestamp("2026-01-01"),
        same=[3.0, *[None] * 99],
        never=np.nan,
        digits=[str(n % 7) for n in range(100)],
        zip=pd.Categorical([str(n % 3) for n in range(100)]),
        huge=[np.inf, *range(99)],
        mixed=["a", 1] * 50,
    )
    for table in (frame, pl.from_pandas(frame.drop(columns="mixed")), dict(frame)):
        columns = {each.name: each for each in inspect(table, reward="reward").columns}
        assert columns["a"].kind == columns["reward"].kind == "number"
        assert columns["a"].seen == pytest.approx(frame["a"].notna().mean())
        assert columns["colour"].kind == "category of 2 levels"
        assert columns["zip"].kind == "category of 3 levels"
        assert columns["huge"].kind == "left out: must be at most 1e+100 in size"
        assert columns["digits"].kind == "category of 7 levels"
        assert columns["sku"].kind == "left out: looks like an id"
        assert columns["when"].kind == "left out: must not be dates or times"
        assert (columns["same"].kind, columns["same"].seen) == ("constant", 0.01)
        assert (columns["never"].kind, columns["never"].seen) == ("empty", 0.0)


def test_holes_at_random_raise_a_false_alarm_in_1_percent_of_tables():
    # Heavy tails, a rare level, columns hidden together: 1.5 ± 1.2 alarms in 150 tables.
    alarms = 0
    for seed in range(150):
        random = np.random.default_rng(seed)
        latent = random.standard_t(2, size=(120, 1))
        table = latent * random.normal(size=6) + random.standard_t(2, size=(120, 6))
        table[:, 5] = table[:, 5] > np.quantile(table[:, 5], 0.95)
        table[random.random(table.shape) < 0.2] = np.nan
        table[random.random(120) < 0.2, :2] = np.nan
        alarms += bool(Inspector(table).dependent())
    assert alarms <= 1.5 + 5 * 1.2


def test_levels_beyond_the_first_50_are_called_rare():
    random = np.random.default_rng(0)
    city = np.array([f"city {n}" for n in random.integers(60, size=3000)])
    last = list(dict.fromkeys(city))[-1]
    hidden = np.where(city == last, np.nan, random.normal(size=3000))
    (found,) = Inspector({"city": city, "a": hidden, "b": random.normal(size=3000)}).dependent()
    assert found.startswith("a is missing in ")
    assert "where city is a rare level" in found


def test_a_cost_divides_what_measuring_is_worth():
    cheap, dear = (
        {each.name: each.worth for each in inspect(offers(), "reward", costs=costs).columns}
        for costs in ({}, {"a": 4.0})
    )
    assert dear["a"] == pytest.approx(cheap["a"] / 4.0)
    assert dear["b"] == cheap["b"]


def test_a_large_table_is_sampled_uniformly_and_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(inspection, "MOST_ROWS", 500)
    frame = offers(5000).drop(columns="colour").assign(place=np.arange(5000.0))
    frame.to_csv(tmp_path / "offers.csv", index=False)
    for table in (frame, frame.to_numpy(), tmp_path / "offers.csv"):
        found = Inspector(table)
        places = found.table[:, -1]
        assert len(places) == 500
        assert abs(places.mean() - 2500.0) < 5 * 5000 / np.sqrt(12 * 500)
    text = found.inspection().findings["Rows"]
    assert text.startswith("5,000 rows, of which a random sample of 500 was used.")


def test_a_notebook_shows_columns_and_findings():
    found = inspect(offers().rename(columns={"a": "<a>"}))
    shown = found._repr_html_()
    assert "<td>&lt;a&gt;</td><td>number</td>" in shown
    assert f"<b>Rows</b> {found.findings['Rows']}" in shown


def test_the_command_prints_and_writes_the_page(tmp_path):
    file, page = tmp_path / "offers.csv", tmp_path / "page.html"
    offers().rename(columns={"a": "<a>"}).to_csv(file, index=False, sep=";")
    asked = ["inspect", str(file), "--reward", "reward", "--out", str(page)]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    printed, html = " ".join(done.output.split()), page.read_text("utf-8")
    for text in inspect(file, "reward").findings.values():
        assert text in printed
    assert "<a>" in printed
    assert "&lt;a&gt;" in html
    assert "<a>" not in html
    assert "Use LatentUcb()" in html


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"reward": "rewrd"}, "has no column 'rewrd': did you mean 'reward'"),
        ({"reward": "colour"}, "must be numbers that vary, got category of 2 levels"),
        ({"costs": {"a": 0.0}}, r"the cost of 'a' must be .*\(0, .* got 0"),
    ],
)
def test_what_cannot_be_inspected_is_refused(asked, message):
    with pytest.raises(InvalidInputError, match=message):
        inspect(offers(50), **asked)


def test_a_sentence_writes_a_year_as_people_do():
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"year": random.integers(1990, 2030, 400), "x": random.normal(size=400)})
    frame["y"] = frame["x"] + random.normal(size=400)
    frame["x"] = frame["x"].mask((frame["year"] > 2010) & (random.random(400) < 0.8))
    (sentence,) = (each for each in inspect(frame).findings.values() if "where year is" in each)
    assert re.search(r"above 20\d\d, and in", sentence)


def test_the_unit_of_rewards_does_not_matter_however_small():
    plain, tiny = (
        inspect(offers().eval(f"reward = {unit} * reward"), "reward") for unit in (1, 1e-200)
    )
    assert tiny.findings["Advice"] == plain.findings["Advice"]


def test_too_few_rows_rewards_or_values_are_refused():
    with pytest.raises(InvalidInputError, match="at least 20 rows, got 19"):
        inspect(offers(19))
    with pytest.raises(InvalidInputError, match="known in at least 20 rows, got 2"):
        inspect(offers(60).assign(reward=[1.0, 2.0, *[None] * 58]), reward="reward")
    with pytest.raises(InvalidInputError, match="a column that varies"):
        inspect({"a": [1.0] * 20, "b": [None] * 20})


def test_columns_may_have_numbers_as_names():
    frame = offers(60).drop(columns="colour").set_axis(range(7), axis=1)
    assert "3" in str(inspect(frame, reward=6, costs={3: 2.0}))
    names = [each.name for each in inspect(frame.to_numpy(), reward=6).columns]
    assert names == [str(at) for at in range(7)]


def test_the_error_of_one_more_rank_than_the_chosen_one_is_shown():
    found = inspect(offers(), reward="reward")
    assert (found.rank, [*found.errors]) == (2, [0, 1, 2, 3])
    assert [*inspect({"a": [1.0, 2.0, None, 4.0] * 9}).errors] == [0]


def test_the_rest_of_a_row_tells_less_of_noisy_columns():
    clean, noisy = (
        {each.name: each.inferred for each in inspect(offers(noise=noise)).columns}
        for noise in (0.3, 1.0)
    )
    assert all(noisy[name] < clean[name] <= 1.0 for name in "abcdef")
