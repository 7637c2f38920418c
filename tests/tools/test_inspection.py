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
from halfseen.tools.inspection import Inspector, Source


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


RANDOM, INFERRED = "Hidden at random?", "Inferred from the rest?"


@pytest.mark.parametrize(
    ("topic", "before", "change", "after"),
    [
        ("Rows", " 31 % of the entries of 7 columns", full, " 0 % of the entries of 7 columns"),
        ("Rows", "; 8 % of the rows have no missing", full, "; 100 % of the rows have no missing"),
        ("Hidden together?", "No two columns", hidden_together, "In the same rows: a and b."),
        ("Hidden together?", "No two columns", full, "Fewer than two columns have missing values"),
        ("Low-rank?", "Yes: 2 hidden numbers", shuffled, "No: the columns hardly predict"),
        ("Low-rank?", "2 hidden numbers describe", lambda _: offers(rank=1), "one hidden number "),
        ("Low-rank?", "Yes: ", lambda _: offers(5000, noise=2.0, rank=1), "A little: one hidden"),
        (RANDOM, "No sign of the contrary", hidden_by_reward, "No: c is hidden in 67 % of the rows "
                 "where reward is above -0.119, and in 35 % of the others."),
        (RANDOM, "No sign of the contrary", hidden_by_colour, "No: d is hidden in 30 % of the rows "
                 "where colour is blue, and in 100 % of the others."),
        (RANDOM, "No sign of the contrary", full, "Nothing is hidden."),
        (INFERRED, "7 of 7 columns", lambda _: offers(noise=1.0), "3 of 7 columns"),
        (INFERRED, "Best: ", full, "There is nothing to infer"),
        ("Worth measuring?", "Most of all b (", lambda frame: frame.assign(b=0.5), "of all d ("),
        ("Worth measuring?", "Most of all", shuffled, "No hidden column would change"),
        ("Advice", "Take LatentUcb()", full, "Nothing is hidden: AmbientOful(dim=7) is enough"),
        ("Advice", "Take LatentUcb()", shuffled, "LatentUcb() will do about as well as Imputed"),
        ("Advice", "means. Expect", hidden_by_reward, "means. Missingness carries information"),
        ("Advice", "Expect the columns to explain", shuffled, "Expect little"),
        ("Advice", "; without missing values it would be about", full, "of the reward's variance."),
    ],
)  # fmt: skip
def test_a_change_of_the_table_changes_the_sentence(topic, before, change, after):
    frame = offers()
    assert before in inspect(frame, reward="reward").findings[topic]
    found = inspect(change(frame), reward="reward").findings[topic]
    assert after in found
    assert before not in found


def test_without_a_reward_the_advice_asks_for_it():
    findings = inspect(offers().drop(columns="reward")).findings
    assert "Name the column of rewards" in findings["Advice"]
    assert "Worth measuring?" not in findings


def test_what_a_column_is_taken_for_and_how_much_is_seen():
    frame = offers(100).assign(
        sku=[f"item {n}" for n in range(100)],
        when=pd.Timestamp("2026-01-01"),
        same=[3.0, *[None] * 99],
        never=np.nan,
        digits=[str(n % 7) for n in range(100)],
    )
    for table in (frame, pl.from_pandas(frame), frame.to_dict("list")):
        columns = {each.name: each for each in inspect(table, reward="reward").columns}
        assert columns["a"].kind == columns["reward"].kind == columns["digits"].kind == "number"
        assert columns["a"].seen == pytest.approx(frame["a"].notna().mean())
        assert columns["colour"].kind == "category of 2 levels"
        assert columns["sku"].kind == "left out: an id"
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
        alarms += bool(Inspector(Source.of(table), None).dependent())
    assert alarms <= 1.5 + 5 * 1.2


def test_holes_that_depend_on_another_column_are_found():
    found = [
        bool(Inspector(Source.of(hidden_by_reward(offers(seed=seed))), "reward").dependent())
        for seed in range(10)
    ]
    assert all(found)


def test_a_cost_divides_what_measuring_is_worth():
    cheap, dear = (
        {each.name: each.worth for each in inspect(offers(), "reward", costs=costs).columns}
        for costs in ({}, {"a": 4.0})
    )
    assert dear["a"] == pytest.approx(cheap["a"] / 4.0)
    assert dear["b"] == cheap["b"]


@pytest.mark.parametrize("seed", range(3))
def test_what_the_columns_would_explain_without_holes_is_foreseen(seed):
    def shares(hidden):
        found = inspect(offers(3000, hidden=hidden, noise=1.0, seed=seed), reward="reward")
        return [int(n) for n in re.findall(r"(?:explain|about) (\d+) %", found.findings["Advice"])]

    (now, foreseen), (real,) = shares(0.3), shares(0.0)
    assert now + 5 < real
    assert abs(foreseen - real) <= 3


def test_a_large_table_is_sampled_uniformly_and_says_so(monkeypatch):
    monkeypatch.setattr(inspection, "MOST_ROWS", 500)
    frame = offers(5000).assign(place=np.arange(5000.0))
    lines = frame.to_csv(index=False).splitlines(keepends=True)
    for source in (Source.of(frame), Source.of(frame.to_numpy()), Source.read(lines)):
        places = np.array(list(source.columns.values())[-1], dtype=float)
        assert len(places) == 500
        assert abs(places.mean() - 2500.0) < 5 * 5000 / np.sqrt(12 * 500)
    found = Inspector(source, "reward").inspection()
    assert found.findings["Rows"].startswith("5,000 rows, of which 500 at random were looked at.")


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
    assert "Take LatentUcb()" in html


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"reward": "rewrd"}, "must have the column 'rewrd', got none.*did you mean 'reward'"),
        ({"reward": "colour"}, "must be numbers that vary, got category of 2 levels"),
        ({"costs": {"a": 0.0}}, r"the cost of 'a' must be .*\(0, .* got 0"),
    ],
)
def test_what_cannot_be_inspected_is_refused(asked, message):
    with pytest.raises(InvalidInputError, match=message):
        inspect(offers(50), **asked)


def test_a_table_without_variation_or_with_ragged_lines_is_refused():
    with pytest.raises(InvalidInputError, match="a column that varies"):
        inspect({"a": [1.0, 1.0], "b": [None, None]})
    with pytest.raises(InvalidInputError, match=r"every line must have 2 cells.*got 3 in row 1"):
        Source.read(["a,b\n", "1,2\n", "1,2,3\n"])
    with pytest.raises(InvalidInputError, match="names of columns must differ"):
        Source.read(["a,a\n", "1,2\n"])
