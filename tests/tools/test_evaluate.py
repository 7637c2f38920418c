"""What policies would have earned on a log: the formulas, intervals that cover, warnings, forms."""

import json
from pathlib import Path

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from typer.testing import CliRunner

from halfseen import (
    Agent,
    InvalidInputError,
    InvalidTableError,
    LatentUcb,
    LinearThompson,
    Uniform,
    evaluate,
    read_dsjson,
)
from halfseen.cli import app
from halfseen.tools.evaluate import Sums, Terms

DSJSON = Path(__file__).with_name("decisions.dsjson")
ITEMS = np.array(["hat", "coat", "sock"])
TASTES = np.array([[0.5, 0.0], [-0.5, 0.3], [0.0, -0.3]])
MEANS = np.array([0.2, 0.5, 0.3])


class Known:
    """A model of rewards that does not depend on the log."""

    def fit(self, rows, rewards):
        return self

    def predict(self, rows):
        return 0.3 + np.nan_to_num(rows) @ np.linspace(-0.2, 0.4, rows.shape[1])


def softmax(scores):
    odds = np.exp(scores)
    return odds / odds.sum(axis=-1, keepdims=True)


def drawn(n, laws, seed=0):
    """Return contexts, chosen items, their propensities and rewards of a log of three items."""
    random = np.random.default_rng(seed)
    context = random.normal(size=(n, 2))
    law = np.broadcast_to(laws(context), (n, 3))
    chosen = (law.cumsum(axis=1) < random.random((n, 1))).sum(axis=1).clip(max=2)
    reward = MEANS[chosen] + (context * TASTES[chosen]).sum(axis=1) + 0.5 * random.normal(size=n)
    return context, chosen, law[np.arange(n), chosen], reward


def logged(n, laws, seed=0):
    """Return such a log as a frame."""
    context, chosen, propensity, reward = drawn(n, laws, seed)
    frame = {"item": ITEMS[chosen], "propensity": propensity, "reward": reward}
    return pd.DataFrame(frame | {"x": context[:, 0], "y": context[:, 1]})


def target(options, context):
    """Return the probabilities of a policy that likes hats if x is large."""
    odds = {"hat": 2.0 * context.get("x", 0.0), "coat": 0.5, "sock": 0.0}
    return softmax(np.array([odds[option] for option in options]))


LOGGING = {
    "uniform": lambda context: np.full(3, 1 / 3),
    "skewed": lambda context: np.array([0.7, 0.2, 0.1]),
    "by context": lambda context: 0.1 / 3 + 0.9 * softmax(context @ TASTES.T * 2.0),
}
LOG = logged(600, LOGGING["by context"])
XY = {"context": ["x", "y"]}


def values(result, policy=None):
    rows = result.rows if policy is None else [r for r in result.rows if r["policy"] == policy]
    return {row["estimator"]: row["value"] for row in rows}


def design(log):
    """Return what a regressor gets for every decision and item; shape (n, 3, 5)."""
    order = list(dict.fromkeys(log["item"]))
    ones = np.stack([np.eye(3)[order.index(item)] for item in ITEMS])
    xy = np.repeat(log[["x", "y"]].to_numpy()[:, None], 3, axis=1)
    return np.concatenate([np.broadcast_to(ones, (len(log), 3, 3)), xy], axis=2)


def inputs(log):
    """Return rewards, chosen items, propensities, and laws and values of all items."""
    chosen = np.array([ITEMS.tolist().index(item) for item in log["item"]])
    law = np.array([target(list(ITEMS), {"x": x}) for x in log["x"]])
    table = design(log)
    q = Known().predict(table.reshape(-1, 5)).reshape(len(log), 3)
    return log["reward"].to_numpy(), chosen, log["propensity"].to_numpy(), law, q


def test_estimates_are_their_formulas():
    log = LOG.assign(propensity=0.1 * LOG["propensity"])
    r, chosen, p, law, q = inputs(log)
    at = np.arange(len(r))
    w, direct = law[at, chosen] / p, (law * q).sum(axis=1)
    assert w.max() > np.sqrt(len(r))  # some are clipped
    found = evaluate(log, [target], model=Known(), **XY)
    assert values(found, "target") == pytest.approx(
        {
            "IPS": (w * r).mean(),
            "self-normalised IPS": (w * r).sum() / w.sum(),
            "clipped IPS": (np.minimum(w, np.sqrt(len(r))) * r).mean(),
            "direct method": direct.mean(),
            "doubly robust": (direct + w * (r - q[at, chosen])).mean(),
        },
        abs=1e-12,
    )
    assert found.rows[1]["effective"] == pytest.approx(w.sum() ** 2 / (w * w).sum())
    assert values(found, "log") == {"as logged": pytest.approx(r.mean())}


# Intervals


def coverage(weighted, truth):
    sums = Sums.of(dict(enumerate(weighted)), np.ones(len(weighted[0][0])), seed=0)
    found = np.array(list(sums.intervals(0.95).values()))
    return ((found[:, 1] <= truth) & (truth <= found[:, 2])).mean()


@pytest.mark.parametrize("logging", LOGGING)
def test_intervals_cover_the_truth(logging):
    # 400 logs: at a coverage of .95 the standard error is .011, so 90 % to 99 % is ± 4 of them.
    def laws(x):
        return softmax(np.column_stack([2.0 * x[:, 0], np.full(len(x), 0.5), np.zeros(len(x))]))

    def means(x):
        return MEANS + x @ TASTES.T

    x = np.random.default_rng(7).normal(size=(400_000, 2))
    truth, n = (laws(x) * means(x)).sum(axis=1).mean(), 600
    found, rows, never = [], np.arange(n), np.zeros(n, dtype=bool)
    for seed in range(400):
        x, chosen, propensity, reward = drawn(n, LOGGING[logging], seed)
        law, q = laws(x), 0.7 * means(x)
        w, direct = law[rows, chosen] / propensity, (law * q).sum(axis=1)
        terms = Terms(reward, w, q[rows, chosen], direct, never)
        found.append(terms.estimators(adaptive=False))
    for name in ("doubly robust", "IPS", "self-normalised IPS"):
        assert 0.9 <= coverage([each[name] for each in found], truth) <= 0.99, name


def test_the_stabilised_estimate_covers_on_logs_of_a_policy_that_learned():
    # Greedy with a uniform share that shrinks like t^-.7: the other arms are hardly ever played.
    n, n_logs, random = 1000, 400, np.random.default_rng(3)
    sums, counts, logs = np.zeros((n_logs, 3)), np.ones((n_logs, 3)), np.arange(n_logs)
    found = {name: np.empty((n_logs, n)) for name in ("reward", "weight", "own", "direct")}
    for t in range(n):
        share = 1.0 if t < 30 else (t + 1.0) ** -0.7
        law = np.full((n_logs, 3), share / 3)
        means = sums / counts
        law[logs, means.argmax(axis=1)] += 1.0 - share
        arm = (law.cumsum(axis=1) < random.random((n_logs, 1))).sum(axis=1).clip(max=2)
        reward = random.normal(size=n_logs)  # all arms are equal
        found["weight"][:, t] = (arm == 0) / law[logs, arm]
        found["own"][:, t], found["direct"][:, t] = means[logs, arm], means[:, 0]
        found["reward"][:, t] = reward
        sums[logs, arm] += reward
        counts[logs, arm] += 1.0
    all_terms = [
        Terms(*(found[name][log] for name in found), np.zeros(n, dtype=bool)) for log in logs
    ]
    stabilised = [t.estimators(adaptive=True)["stabilised doubly robust"] for t in all_terms]
    assert 0.9 <= coverage(stabilised, 0.0) <= 0.99


# Policies


def test_items_functions_and_uniform_agree_where_they_are_the_same_policy():
    def all_equal(options, context):
        return [1 / len(options)] * len(options)

    def coat(options, context):
        return [float(option == "coat") for option in options]

    named = {"u": "uniform", "f": all_equal, "coat": "coat", "g": coat}
    found = evaluate(LOG, named, model=Known(), **XY)
    assert values(found, "u") == pytest.approx(values(found, "f"))
    assert values(found, "coat") == pytest.approx(values(found, "g"))


def test_an_agent_trained_on_earlier_blocks_earns_more_than_the_log_and_any_item():
    log = logged(1500, LOGGING["skewed"])
    result = evaluate(log, ["coat", Agent()], **XY)
    _, coat, agent = result.shown
    x = np.random.default_rng(7).normal(size=(200_000, 2))
    best = (MEANS + x @ TASTES.T).max(axis=1).mean()
    assert agent["low"] > max(coat["value"], log["reward"].mean())
    assert agent["low"] < best < agent["high"] + 0.05
    assert "'Agent' is trained on earlier decisions and evaluated on the last 1,200" in str(result)


def test_replay_of_a_learner_is_unbiased_and_leaves_it_as_it_was():
    log = logged(2000, LOGGING["skewed"])
    learner = LatentUcb()
    policies = {"uniform": Uniform(dim=3), "learner": learner, "linear": LinearThompson(dim=3)}
    result = evaluate(log, policies, model=Known(), **XY)
    uniform, learned, linear = result.shown[1:]
    assert uniform["low"] < MEANS.mean() < uniform["high"]
    assert learned["value"] > linear["value"] > uniform["value"]  # linear has no context
    assert learned["estimator"] == "rejection replay"
    assert learned["effective"] == pytest.approx(200, abs=50)  # a tenth, the least propensity
    assert learner.round == 0


# Warnings


def test_thin_overlap_is_said_and_nothing_is_claimed_without_any():
    log = logged(300, lambda context: np.array([0.96, 0.03, 0.01]), seed=2)
    log = log[log["item"] != "sock"].assign(offered=[list(ITEMS)] * (log["item"] != "sock").sum())
    result = evaluate(log, ["coat", "sock"], offered="offered", model=Known(), **XY)
    assert sum("too thin to evaluate" in note for note in result.notes) == 2
    assert np.isnan(values(result, "sock")["doubly robust"])
    _, _, coat, sock, *_ = map(str.split, str(result).splitlines())
    assert (coat[2], sock[1:3]) == ("–", ["–", "–"])
    assert coat[-2:] == sock[-2:] == ["thin", "overlap"]
    assert [text.get_text() for text in result.plot().get_yticklabels()][1] == "sock (thin overlap)"


@pytest.mark.parametrize(("factor", "alarm"), [(1.0, False), (0.8, True)])
def test_wrong_propensities_are_found(factor, alarm):
    log = logged(2000, LOGGING["skewed"])
    result = evaluate(log.assign(propensity=factor * log["propensity"]), ["uniform"], model=Known())
    assert any("Propensities look wrong" in note for note in result.notes) == alarm
    log_row, row = result.shown
    assert log_row["warning"] is None
    assert row["warning"] == ("propensities wrong" if alarm else None)
    assert ("–" in str(result).splitlines()[2]) == alarm


def test_where_an_item_is_not_offered_the_decision_stays_as_logged():
    offered = [["hat", "coat", "sock"] if item == "hat" else [item] for item in LOG["item"]]
    log = LOG.assign(offered=offered, propensity=1.0)
    result = evaluate(log, ["hat"], offered="offered", model=Known(), **XY)
    share = (LOG["item"] != "hat").mean()
    assert values(result, "hat")["IPS"] == pytest.approx(LOG["reward"].mean())
    assert f"'hat' is not offered in {share:.0%} of the decisions" in str(result)


# Forms


def as_parquet(log, folder):
    pl.from_pandas(log).write_parquet(folder / "log.parquet")
    return folder / "log.parquet"


def as_csv(log, folder):
    plain = log.assign(offered=log["offered"].map(json.dumps))
    plain.to_csv(folder / "log.txt", index=False, sep=";")
    return str(folder / "log.txt")


FORMS = {
    "polars": lambda log, folder: pl.from_pandas(log),
    "pyarrow": lambda log, folder: pa.Table.from_pandas(log),
    "columns": lambda log, folder: {name: log[name].tolist() for name in log},
    "parquet": as_parquet,
    "csv": as_csv,
}


@pytest.mark.parametrize("form", FORMS)
def test_a_log_may_come_in_any_form(form, tmp_path):
    log = LOG[:100].assign(place=["DE", None] * 50, offered=[["sock", "coat", "hat"]] * 100)
    log.loc[3, "x"] = np.nan
    log.loc[7, "reward"] = np.nan
    given = {"context": ["x", "place"], "offered": "offered", "model": Known()}
    ours, theirs = (
        evaluate(each, ["uniform"], **given) for each in (log, FORMS[form](log, tmp_path))
    )
    assert theirs.notes[0] == "Decisions without a reward are left out: 1."
    assert values(theirs, "uniform") == pytest.approx(values(ours, "uniform"))


def test_a_context_of_dicts_may_be_missing_in_some_rows_or_in_all():
    dicts = [None, *({"x": x} for x in LOG["x"][1:])]
    texts = [json.dumps(each) for each in dicts]
    found = [
        values(evaluate(LOG.assign(about=about), ["hat"], context="about", model=Known()), "hat")
        for about in (
            dicts,
            texts,
            [np.nan, *texts[1:]],
            LOG["x"].where(LOG.index > 0),
            None,
            "null",
        )
    ]
    assert found[0] == found[1] == found[2] == pytest.approx(found[3])
    assert found[4] == found[5] == values(evaluate(LOG, ["hat"], model=Known()), "hat")


@pytest.mark.parametrize("items", [("1_11", "11_1"), ("9007199254740993", "9007199254740992")])
def test_items_in_a_file_keep_their_names(items, tmp_path):
    log = pd.DataFrame({"item": items * 50, "propensity": 0.5, "reward": [0, 1] * 50})
    log.to_csv(tmp_path / "log.csv")
    assert values(evaluate(tmp_path / "log.csv", [items[1]]), items[1])["IPS"] == 1.0


def test_features_of_offered_options_help_the_model():
    random = np.random.default_rng(0)
    sizes = random.normal(size=(2000, 3))
    chosen = random.integers(3, size=2000)
    offered = [
        [{"item": f"{row}-{at}", "size": size} for at, size in enumerate(each)]
        for row, each in enumerate(sizes.tolist())
    ]
    reward = sizes[np.arange(2000), chosen] + 0.1 * random.normal(size=2000)
    item = [f"{row}-{at}" for row, at in enumerate(chosen)]
    log = {"item": item, "propensity": [1 / 3] * 2000, "reward": reward, "offered": offered}

    def largest(options, context):
        return np.eye(3)[np.argmax([option["size"] for option in options])]

    _, robust, trained = evaluate(log, [largest, Agent()], offered="offered").shown
    assert robust["value"] == pytest.approx(sizes.max(axis=1).mean(), abs=0.02)
    assert trained["value"] == pytest.approx(robust["value"], abs=0.03)


def test_the_log_of_an_agent_is_read_as_it_is():
    context = [json.dumps({"x": x}) for x in LOG["x"]]
    log = LOG[["item", "reward"]].assign(place=0, context=context, items=[list(ITEMS)] * len(LOG))
    log["probability"] = LOG["propensity"]
    more = log.assign(place=1, reward=9.0)  # of further places nothing is used
    ours = evaluate(pd.concat([log, more]), [target], model=Known())
    same = {"context": ["x"], "offered": "items", "adaptive": True, "model": Known()}
    assert ours.rows == evaluate(LOG.assign(items=log["items"]), [target], **same).rows
    assert "learned from them" in ours.notes[0]
    assert ours.shown[1]["estimator"] == "stabilised doubly robust"


def test_dsjson_of_vowpal_wabbit_is_read_into_evaluate_and_observe():
    result = evaluate(DSJSON, ["uniform", "hat"], item="A.id")
    # What Vowpal Wabbit says of this file: see make_dsjson.py. It computes with 32 bits.
    assert values(result, "uniform")["IPS"] == pytest.approx(0.443566183, abs=1e-6)
    log, agent = read_dsjson(DSJSON, item="A.id"), Agent(id="A.id")
    agent.observe(log["option"], log["reward"], context=log["context"])
    assert set(agent.columns) == {"A.id", "A.price"}
    assert set(agent.context_columns) == {"U.time", "U.visits"}
    given = {"item": "A.id", "context": "context", "offered": "offered"}
    framed = evaluate(pl.DataFrame(log), ["uniform", "hat"], **given)  # lists of structs
    assert framed.rows == result.rows


@pytest.mark.parametrize(
    ("change", "policies", "message"),
    [
        ({"propensity": 0.0}, ["hat"], r"'propensity' must be in \(0, 1\], got 0.0 in row 0"),
        ({"propensity": np.nan}, ["hat"], r"got nan in row 0"),
        (
            {"reward": np.inf},
            ["hat"],
            "'reward' must be .* at most 1e.100, got inf in row 0",
        ),
        ({"reward": "much"}, ["hat"], "'reward' must be numbers .* got much in row 0"),
        ({"offered": [["coat"]] * 600}, ["hat"], "row [0-9]+ chose .* not among the offered"),
        ({"offered": None}, ["hat"], "row 0 must list what was offered"),
        ({"offered": [[{"item": "hat", "x": [1]}]] * 600}, ["hat"], "numbers or strings, got"),
        ({}, [LatentUcb], "a policy must be an item of the log"),
        ({}, ["cap"], "a policy must be an item of the log.*got 'cap'"),
        ({}, "hat", "policies must be a list"),
        ({}, ["hat", "hat"], "two policies are called 'hat'"),
        ({}, [lambda options, context: "hat"], "must return 3 probabilities .* got 'hat'"),
        ({}, [Agent(policy=Uniform(dim=1))], "must have the policy LatentUcb"),
    ],
)
def test_mistakes_are_named(change, policies, message):
    offered = "offered" if "offered" in change else None
    with pytest.raises(InvalidInputError, match=message):
        evaluate(LOG.assign(**change), policies, offered=offered, model=Known())


def test_a_column_that_is_not_there_is_named():
    with pytest.raises(InvalidInputError, match="no column 'propensty': did you mean 'propensity'"):
        evaluate(LOG, propensity="propensty")
    message = (
        "no column 'propensity': it has 'item'; evaluation needs the probability of each choice: "
        r"name its column with propensity=… \(see docs/evaluate.md\)"
    )
    with pytest.raises(InvalidInputError, match=message):
        evaluate({"item": ["hat"] * 20})
    with pytest.raises(InvalidInputError, match="at least 10 decisions, got 9"):
        evaluate(LOG[:9])
    for model in ("ridge", Known):
        with pytest.raises(InvalidInputError, match=r"model must have fit and predict.*got "):
            evaluate(LOG, [], model=model)


@pytest.mark.parametrize("rewards", [[0.0, 1.0], [2.0, 5.0]])
def test_a_classifier_ranks_by_the_expected_reward_not_by_labels(rewards):
    """No item is rewarded in most decisions, so all labels are the same; a coat pays most often."""
    random = np.random.default_rng(0)
    chosen = random.integers(3, size=900)
    is_hit = random.random(900) < np.array([0.1, 0.3, 0.05])[chosen]
    log = pd.DataFrame({"item": ITEMS[chosen], "propensity": 1 / 3})
    log["reward"] = np.where(is_hit, rewards[1], rewards[0])
    trained = evaluate(log, {"trained": LogisticRegression()}, model=LogisticRegression())
    coat = evaluate(log[180:], {"coat": "coat"}, model=LogisticRegression())  # the last four fifths
    ours, known = values(trained, "trained")["IPS"], values(coat, "coat")["IPS"]
    assert ours == pytest.approx(known, rel=1e-9)
    assert ours > log["reward"].mean() + 0.1 * (rewards[1] - rewards[0])
    with pytest.raises(InvalidInputError, match=r"must have predict_proba, .*got Ridge"):
        evaluate(log, [RidgeClassifier()])
    with pytest.raises(InvalidInputError, match="use one that has it, or a regressor"):
        evaluate(log, ["coat"], model=RidgeClassifier())


# What people see


def test_the_figure_has_an_interval_for_each_policy_and_a_line_for_the_log():
    axes = evaluate(LOG, ["hat", "coat"], model=Known()).plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["hat", "coat"]
    assert axes.lines[0].get_xdata()[0] == pytest.approx(LOG["reward"].mean())
    assert len(axes.containers) == 2
    html = evaluate(LOG, {"<b>": "hat"}, model=Known())._repr_html_()
    assert html.count("<tr>") == 3
    assert "&lt;b&gt;" in html


def test_the_command_prints_the_table_and_draws(tmp_path):
    LOG.to_csv(tmp_path / "log.csv")
    arguments = ["--context", "x,y", "--always", "hat", "--figure", str(tmp_path / "a.png")]
    done = CliRunner().invoke(app, ["evaluate", str(tmp_path / "log.csv"), *arguments])
    assert done.exit_code == 0, done.output
    assert [line.split()[0] for line in done.output.splitlines()[:5]] == [
        *("policy", "log", "hat", "uniform", "Agent")
    ]
    assert (tmp_path / "a.png").stat().st_size > 5000
    wrong = CliRunner().invoke(app, ["evaluate", str(tmp_path / "log.csv"), "--item", "sku"])
    assert wrong.exit_code == 2
    assert "no column 'sku'" in wrong.output


def test_the_database_of_an_agent_is_read_as_its_log_is(tmp_path):
    agent = Agent.open(tmp_path / "shop.db", uniform_share=0.5)
    for number in range(30):
        decision = agent.choose(["hat", "coat"], context={"age": number % 7})
        agent.learn(decision.id, float(decision.item == "coat"))
    log = agent.log()
    agent.close()
    assert evaluate(tmp_path / "shop.db", ["coat"]).rows == evaluate(log, ["coat"]).rows


# Logs larger than memory


def in_parts(log, folder):
    """Return a log in files, one without a reward and one without rows, and as a Dask frame."""
    folder.mkdir()
    for number, (first, end) in enumerate([(0, 30), (30, 40), (40, 40), (40, len(log))]):
        log[first:end].to_parquet(folder / f"{number}.parquet", row_group_size=50)
    with dask.config.set({"dataframe.convert-string": False}):  # of lists
        return folder, dd.from_pandas(log, npartitions=7, sort=False)


def assert_equal_rows(found, known):
    for name in ("policy", "estimator", "warning"):
        assert [row[name] for row in found.rows] == [row[name] for row in known.rows]
    for name in ("value", "low", "high", "effective"):
        ours = [row[name] for row in known.rows]
        assert [row[name] for row in found.rows] == pytest.approx(ours, rel=1e-9, nan_ok=True)


def test_a_log_in_parts_gives_the_numbers_of_the_log_in_memory(tmp_path):
    places = ["DE", None, "FR", "US"] * 150
    log = logged(600, LOGGING["skewed"]).assign(place=places, late=["x"] * 500 + [None, "y"] * 50)
    log.loc[:499, "late"] = None  # its kind is not known in the first parts
    log.loc[30:39, "reward"] = np.nan
    offers = {"offered": "offered"}, {}
    log["offered"] = [["sock", "coat", "hat"], ["hat", "coat", "sock"]] * 300

    def by_place(options, context):
        best = "coat" if context["place"] == "DE" and context["late"] != "y" else "hat"
        return [float(option == best) for option in options]

    policies = {"place": by_place, "model": Known(), "learner": LinearThompson(dim=3)}
    given = {"context": ["x", "y", "place", "late"], "adaptive": True, "model": Known()}
    for more in offers:
        known = evaluate(log, policies, **given, **more)
        for table in in_parts(log, tmp_path / str(len(more))):
            found = evaluate(table, policies, **given, **more)
            assert found.notes == known.notes
            assert_equal_rows(found, known)


def test_a_mistake_in_a_part_names_the_row_of_the_log(tmp_path):
    log = logged(100, LOGGING["skewed"])
    log.loc[70, "propensity"] = 1.5
    for table in in_parts(log, tmp_path / "a"):
        with pytest.raises(InvalidTableError, match=r"must be in \(0, 1\], got 1\.5 in row 70"):
            evaluate(table, ["uniform"])
    log = logged(100, LOGGING["skewed"])
    folder, _ = in_parts(log.assign(about="a"), tmp_path / "b")
    log.assign(about=1).to_parquet(folder / "4.parquet")
    with pytest.raises(InvalidTableError, match=r"column 'about' .* strings"):
        evaluate(folder, ["uniform"], context=["about"])


def test_rare_groups_of_a_long_log_have_the_same_intervals_whatever_the_parts_are(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("halfseen.tools.evaluate._MOST_GROUPS", 50)
    monkeypatch.setattr("halfseen.tools.logs._MOST_PAIRS", 100)
    log = logged(600, LOGGING["skewed"])
    known = evaluate(log, ["coat"], model=Known(), **XY)
    for table in in_parts(log, tmp_path / "a"):
        assert_equal_rows(evaluate(table, ["coat"], model=Known(), **XY), known)
