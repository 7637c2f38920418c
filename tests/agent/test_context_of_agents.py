"""Agents with a context, and with options that are ids alone."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

from agent.tables import looks
from halfseen import Agent, AmbientOful, InvalidTableError
from halfseen.values.rows import NO_ITEM

DOSES = ["low", "medium", "high"]


def patients(n, *, seed=0):
    """Return patients with holes and what each dose does: it depends on the kidney and the sex."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        kidney, age, sex = float(random.normal()), float(random.normal(50, 10)), random.random()
        patient = {"kidney": kidney, "age": age, "sex": "f" if sex < 0.5 else "m"}
        shown = {name: cell if random.random() < 0.8 else None for name, cell in patient.items()}
        wanted = kidney + (0.5 if sex < 0.5 else -0.5)
        found.append(
            (shown, {dose: at * wanted - 0.3 * at**2 for at, dose in enumerate(DOSES, -1)})
        )
    return found


def treat(agent, cases):
    """Choose and learn for every patient; return decisions and what was lost."""
    decisions, lost = [], []
    for patient, effects in cases:
        decision = agent.choose(DOSES, context=patient)
        agent.learn(decision.id, effects[decision.item])
        decisions.append(decision)
        lost.append(max(effects.values()) - effects[decision.item])
    return decisions, np.array(lost)


def test_options_that_are_ids_alone_are_learned_in_their_context():
    agent, blind = Agent(), Agent()
    _, lost = treat(agent, patients(300))
    _, in_the_dark = treat(blind, [({}, effects) for _, effects in patients(300)])
    assert lost[150:].mean() < 0.5 * in_the_dark[150:].mean()
    assert agent.columns == {}
    assert str(agent.context_columns["sex"]) == "sex: category of 2 levels"


def test_the_form_and_the_order_of_a_context_do_not_matter():
    row = {"kidney": -1.0, "age": 40.0, "sex": "f"}
    forms = [
        row,
        dict(reversed(row.items())),
        row | {"unknown": None},
        pd.Series(row),
        pd.DataFrame([row]),
        pl.DataFrame([row]),
        [row],
        {name: [cell] for name, cell in row.items()},
    ]
    agent = Agent()
    treat(agent, patients(30))
    scores = [agent.score(DOSES, context=form) for form in forms]
    assert all(each == scores[0] for each in scores)
    assert agent.score(DOSES, context=row | {"kidney": 1.0}) != scores[0]


def test_an_array_is_a_context_whose_columns_are_numbered():
    agent = Agent()
    agent.choose(DOSES, context=np.array([1.0, np.nan]))
    agent.choose(DOSES, context=np.array([np.nan, 2.0]))
    assert list(agent.context_columns) == ["0", "1"]


def test_columns_of_options_and_context_may_have_the_same_name():
    agent = Agent(id="sku")
    offers = [{"sku": "a", "size": 1.0}, {"sku": "b", "size": 2.0}]
    agent.learn(agent.choose(offers, context={"size": "large"}), 1.0)
    assert agent.columns["size"].kind == "number"
    assert agent.context_columns["size"].kind == "category"


def test_a_saved_agent_knows_contexts_and_waits_with_them(tmp_path):
    agent, cases = Agent(), patients(40)
    treat(agent, cases[:20])
    waiting = agent.choose(DOSES, context=cases[20][0])
    agent.choose(DOSES, context={"city": "Bonn"})  # a column that is new since
    agent.save(tmp_path / "agent")
    loaded = Agent.load(tmp_path / "agent")
    assert loaded.context_columns == agent.context_columns
    for each in (agent, loaded):
        each.learn(waiting.id, 0.3)
    ours, theirs = treat(loaded, cases[21:])[0], treat(agent, cases[21:])[0]
    assert [looks(each) for each in ours] == [looks(each) for each in theirs]


def test_a_log_with_contexts_may_come_in_any_parts():
    cases = patients(60)
    doses = [DOSES[at % 3] for at in range(60)]
    rewards = [effects[dose] for (_, effects), dose in zip(cases, doses, strict=True)]
    contexts = [patient for patient, _ in cases]
    whole, parts = Agent(), Agent()
    whole.observe(doses, rewards, context=contexts)
    for some in (slice(0, 1), slice(1, 30), slice(30, 60)):
        parts.observe(doses[some], rewards[some], context=contexts[some])
    assert whole.score(DOSES, context=contexts[3]) == parts.score(DOSES, context=contexts[3])
    by_dose = {each.item: each.estimate for each in whole.score(DOSES, context={"kidney": 2.0})}
    assert by_dose["high"] > by_dose["low"]


def test_an_explanation_has_the_context_and_says_what_of_it_to_measure():
    """Only the kidney decides between the doses; the age says nothing."""
    agent = Agent()
    treat(agent, patients(300))
    decision = agent.choose(DOSES, context={"age": 50.0, "sex": "f", "kidney": None})
    explanation = agent.explain(decision, costs={"kidney": 0.01})
    assert explanation.is_current
    assert explanation.score == pytest.approx(max(decision.scores), rel=1e-9)
    assert explanation.best_measurement.column == "kidney"
    assert explanation.best_measurement.item is None
    assert "kidney is worth measuring, in the context" in str(explanation)
    both = (agent.explain(DOSES, context={"kidney": at}, item="high") for at in (-2.0, 2.0))
    sick, well = (dict(each.parts)["kidney (context) for this option"] for each in both)
    assert well - sick > 0.5
    assert agent.explain(decision, costs={"kidney": 100.0}).best_measurement is None


def test_health_shows_how_much_of_the_context_is_seen():
    agent = Agent()
    treat(agent, patients(50))
    health = json.loads(json.dumps(agent.health()))
    assert 0.6 < health["context_seen"]["lately"]["kidney"] < 0.95
    assert health["context_features"] == 4
    assert health["refits"] > 3
    assert isinstance(health["rank"], int)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Agent().choose(DOSES, context=[{"a": 1}, {"a": 2}]), "one row"),
        (lambda: Agent().choose(DOSES, context="f"), "names, got 'f': .*a dict"),
        (lambda: Agent().choose(DOSES, context=[30.0, 2.0]), "names.*dict"),
        (lambda: Agent().observe(DOSES, [1.0] * 3, context=["DE"] * 3), "columns with names"),
        (lambda: Agent().choose(DOSES, context=pd.Series([1, 2], ["a", "a"])), "'a' appears twice"),
        (
            lambda: Agent().observe(DOSES, [1.0] * 3, context=[{"a": 3}]),
            "each of its 3 rows, got 1",
        ),
        (lambda: Agent(policy=AmbientOful(dim=2)).choose(DOSES), r"ids alone are .*LatentUcb\(\)"),
    ],
)
def test_a_wrong_context_has_a_message_with_its_remedy(make, message):
    with pytest.raises(InvalidTableError, match=message):
        make()


def test_an_explanation_without_a_context_adds_up_where_others_had_one():
    random, agent = np.random.default_rng(0), Agent()
    for _ in range(80):
        patient = {"c": float(random.normal())} if random.random() < 0.7 else None
        decision = agent.choose(DOSES, context=patient)
        agent.learn(decision, 2.0 * (patient is not None) + 0.1 * float(random.normal()))
    scored = agent.score(DOSES)[0]
    explained = agent.explain(DOSES, item=scored.item)
    assert explained.score == pytest.approx(scored.estimate + scored.width, rel=1e-9)


def test_a_column_that_matters_only_through_the_context_is_worth_measuring():
    random = np.random.default_rng(0)
    x, sign = random.normal(size=300), random.choice([-1.0, 1.0], size=300)
    rewards = 3.0 * x * sign + 0.1 * random.normal(size=300)
    agent = Agent()
    agent.observe({"x": x, "y": random.normal(size=300)}, rewards, context={"sign": sign})
    options = [{"x": None, "y": 0.1}, {"x": 0.0, "y": 0.2}]
    agent.choose(options, context={"sign": 1.0})
    best = agent.explain(options, context={"sign": 1.0}).best_measurement
    assert best.column == "x"
    assert best.gain == pytest.approx(3.0 / np.sqrt(2.0 * np.pi), rel=0.2)


@pytest.mark.parametrize(("index", "are_ids"), [([0, 1, 2], False), ([7, 8, 9], True)])
def test_whole_numbers_in_an_index_are_ids_unless_they_count_rows(index, are_ids):
    agent = Agent()
    frame = pd.DataFrame({"price": [1.0, 2.0, 3.0]}, index=index)
    for _ in range(12):
        agent.learn(agent.choose(frame, context={"hour": 1.0}), 1.0)
    assert (agent.learner._history.rows.items != NO_ITEM).all() == are_ids


def test_ids_may_be_an_array():
    agent = Agent()
    assert agent.choose(np.array(DOSES), context={"age": 3.0}).items == tuple(DOSES)
    assert agent.choose(np.array([3, 4]), context={"age": 3.0}).items == (3, 4)
