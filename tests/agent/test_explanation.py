"""An agent's reasons have names, add up, and say what is worth measuring."""

import json

import numpy as np
import pytest
from scipy.stats import norm

from agent.tables import offers, walk
from halfseen import Agent, AmbientOful


def taught(n_rounds=60, **settings):
    agent = Agent(id="sku", **settings)
    walk(agent, offers(n_rounds))
    return agent


@pytest.mark.parametrize(
    "settings",
    [{}, {"explore": "thompson"}, {"explore": "inverse-gap"}, {"policy": AmbientOful(dim=1)}],
    ids=str,
)
def test_parts_of_every_option_add_up_to_its_score(settings):
    agent = taught(**settings)
    for rows, _ in offers(8, seed=5):
        decision = agent.choose(rows)
        for item, score in zip(decision.items, decision.scores, strict=True):
            explanation = agent.explain(decision, item=item)
            assert explanation.is_current
            assert explanation.score == pytest.approx(score, rel=1e-9)
        assert agent.explain(decision).item == decision.item


def test_columns_have_their_names_and_categories_one_part():
    agent = taught()
    row = {"sku": "a", "price": -2.0, "colour": None}
    parts = dict(agent.explain([row, {"sku": "b", "price": 2.0}], item="a").parts)
    assert set(parts) == {
        *("intercept", "price", "colour (inferred)", "weight (inferred)"),
        *("price is seen", "colour is missing", "weight is missing"),
        *("the item's own rewards", "bonus"),
    }
    assert parts["price"] == pytest.approx(2.0, rel=0.15)  # rewards fall with the price


def test_after_a_reward_an_explanation_says_that_the_model_is_another_one():
    agent = taught()
    rows = offers(1, seed=5)[0][0]
    decision = agent.choose(rows)
    agent.learn(decision, 5.0)
    explanation = agent.explain(decision)
    assert not explanation.is_current
    assert "has learned since" in str(explanation)


def test_an_explanation_changes_nothing():
    agent, other = taught(), taught()
    rows = offers(1, seed=5)[0][0]
    agent.explain([row | {"new": 1.0} for row in rows])
    assert agent.columns == other.columns
    assert agent.score(rows) == other.score(rows)


def known_world():
    """Return an agent that knows: reward = 2·a + b/2 + worth of c; a, b and c are independent."""
    random, agent = np.random.default_rng(0), Agent()
    table = {name: random.normal(size=600).tolist() for name in "ab"}
    table["c"] = random.choice(["x", "y"], size=600).tolist()
    worth = {"x": 0.6, "y": -0.6}
    rows = zip(*table.values(), strict=True)
    agent.observe(table, [2 * a + b / 2 + worth[c] + 0.1 * random.normal() for a, b, c in rows])
    agent.choose([{"a": 0.0}])
    return agent


def test_the_column_that_can_change_the_choice_most_is_named_and_costs_count():
    agent = known_world()
    options = [{"a": 0.25, "b": 0.0, "c": "x"}, {"c": "x"}]
    explanation = agent.explain(options)
    assert [each.column for each in explanation.measurements] == ["a", "b"]
    best = explanation.best_measurement
    assert (best.column, best.item) == ("a", 1)
    assert best.gain == pytest.approx(best.item_gain, rel=1e-3)
    # The gap is 0.5 up to what 600 rows say about a where c is x; the deviation of 2·a is 2.
    first, second = (scored.estimate for scored in agent.score(options))
    gap = first - second
    assert gap == pytest.approx(0.5, abs=0.25)
    expected = 2.0 * norm.pdf(gap / 2.0) - gap * norm.sf(gap / 2.0)
    assert best.gain == pytest.approx(expected, rel=0.1)
    assert "a is worth measuring, most of all for 1" in str(explanation)
    dear = agent.explain(options, costs={"a": 1.0})
    assert dear.best_measurement.column == "b"
    assert [each.cost for each in dear.measurements] == [0.0, 1.0]
    assert agent.explain(options, costs={"a": 1.0, "b": 1.0}).best_measurement is None
    # All levels of a category are seen together: of two they tell as much as one.
    worth = agent.explain([{"a": 0.0, "b": 0.0, "c": "y"}, {"a": -0.3, "b": 0.0}])
    assert [each.column for each in worth.measurements] == ["c"]


def test_an_explanation_is_plain_json_and_a_plot():
    agent = taught()
    explanation = agent.explain(offers(1, seed=5)[0][0])
    plain = explanation.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    axes = explanation.plot()
    assert len(axes.patches) == len(axes.get_yticks())
    total = sum(bar.get_width() for bar in axes.patches)
    assert total == pytest.approx(explanation.score, rel=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"item": "nobody"}, r"'nobody' is not among the options: name one of \['item 0'"),
        ({"costs": {"prize": 1.0}}, r"'prize', which is unknown: name one of \['sku', "),
        ({"costs": {"price": -1.0}}, r"the cost of 'price' must be"),
        ({"costs": 3.0}, r"costs must be a dict of column names, got 3.0"),
    ],
)
def test_what_is_not_known_is_named(arguments, message):
    agent = taught(10)
    with pytest.raises(ValueError, match=message):
        agent.explain(offers(1)[0][0], **arguments)


def test_while_rewards_are_equal_an_explanation_says_that_the_choice_was_random():
    agent = Agent()
    decision = agent.choose(["low", "high"])
    text = "chosen at random: all rewards so far are equal"
    assert str(agent.explain(decision)) == f"{decision.item}: {text}"
    assert text in agent.explain(decision)._repr_html_()


def test_a_notebook_shows_decisions_and_explanations_as_escaped_tables():
    agent = Agent(id="sku")
    offers = [{"sku": "<hat>", "price": 1.0}, {"sku": "coat", "price": 2.0}]
    agent.observe(offers * 10, [1.0, 2.0] * 10)
    decision = agent.choose(offers)
    for shown in (decision, agent.explain(decision, item="<hat>")):
        page = shown._repr_html_()
        assert page.count("<tr>") > 2
        assert "&lt;hat&gt;" in page
        assert "<hat>" not in page


def test_over_a_log_the_worth_of_a_column_is_its_mean_gain(tmp_path):
    agent = Agent.open(tmp_path / "shop.db", id="sku")
    table = [{"sku": f"{row}", "price": row % 7, "size": row % 3} for row in range(60)]
    agent.observe(table, [float(row["price"]) + 0.1 * row["size"] for row in table])
    hidden = [{"sku": "a", "price": None, "size": 1}, {"sku": "b", "price": 3, "size": None}]
    decisions = [agent.choose(hidden), agent.choose(table[:5]), agent.choose(hidden[::-1])]
    first, *_ = agent.worth_measuring(decisions)
    gains = [
        {each.column: each.gain for each in agent.explain(one).measurements} for one in decisions
    ]
    assert first.column == "price"
    assert first.gain == pytest.approx(sum(each.get("price", 0.0) for each in gains) / 3)
    assert agent.worth_measuring(agent.log()) == agent.worth_measuring(decisions)
    costly = agent.worth_measuring(decisions, costs={"price": 100.0})
    assert costly[-1].column == "price"
    assert costly[-1].net < 0.0
