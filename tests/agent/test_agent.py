"""What an agent does with tables, ids and rewards."""

import copy
import datetime
import json
import logging
import pickle
import time
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import chi2

from agent.tables import looks, offers, walk
from halfseen import (
    Agent,
    AlreadyRewardedError,
    AmbientOful,
    ArchiveError,
    ForgottenDecisionError,
    InvalidInputError,
    InvalidSettingError,
    InvalidTableError,
    LatentUcb,
    TofuPov,
    UnknownDecisionError,
    load,
)
from halfseen.agent import journal
from halfseen.agent.agent import decided


def ambient(**settings):
    return Agent(policy=AmbientOful(dim=1), **{"id": "sku"} | settings)


MAKERS = {
    "latent": lambda **settings: Agent(**{"id": "sku"} | settings),
    "ambient": ambient,
}
# Rows in which every column and level is there, so that policies that cannot grow know them.
ALL = [
    {"sku": name, "price": 1.0, "weight": 1.0, "colour": name} for name in ("red", "green", "blue")
]


def started(make, **settings):
    agent = make(**settings)
    agent.learn(agent.choose(ALL), 0.5)
    return agent


def test_an_agent_earns_more_than_chance():
    """Standard error of the mean of 100 rewards about 0.12, the gap to chance about 1: 5 sigma."""
    agent, earned, chance = started(MAKERS["latent"]), [], []
    for rows, rewards in offers(200):
        decision = agent.choose(rows)
        reward = rewards[decision.items.index(decision.item)]
        agent.learn(decision, reward)
        earned.append(reward)
        chance.append(np.mean(rewards))
    assert np.mean(earned[100:]) > np.mean(chance[100:]) + 0.4


def test_a_decision_names_the_chosen_item_and_ranks_all():
    agent = started(ambient)
    walk(agent, offers(20))
    decision = agent.choose(offers(1)[0][0])
    assert sorted(decision.ranking) == sorted(decision.items)
    order = [decision.items.index(item) for item in decision.ranking]
    assert (np.diff(decision.scores[order]) <= 0.0).all()
    assert json.loads(json.dumps(decision.to_dict()))["item"] == decision.item
    with pytest.raises(ValueError, match="read-only"):
        decision.scores[0] = 1.0


def test_a_policy_that_cannot_grow_refuses_a_new_column_by_name_and_goes_on():
    agent = Agent(policy=TofuPov(dim=2, rank=1, observe_prob=0.5))
    agent.choose([{"price": 1.0}])
    agent.choose([{"price": 1.0, "weight": 2.0}])  # it has room
    with pytest.raises(InvalidTableError, match=r"column 'size' .*TofuPov.*cannot grow.*ignore"):
        agent.choose([{"price": 1.0, "size": 2.0}])
    assert list(agent.columns) == ["price", "weight"]
    assert agent.choose([{"price": 1.0}]).round == 3


def test_columns_say_what_became_of_each():
    agent = ambient(ignore=["url"], categorical=["zip"], max_levels=1)
    agent.choose([{"sku": "a", "price": 1.0, "url": "x", "zip": 3}, {"sku": "b", "zip": 4}])
    assert [str(column) for column in agent.columns.values()] == [
        "sku: id",
        "url: ignored",
        "price: number",
        "zip: category of 1 level, all others share 16 features",
    ]


def test_strings_are_numbers_where_the_setting_numeric_says_so():
    agent = ambient(id=None, numeric=["price"])
    agent.choose([{"price": "3.5", "code": "19"}, {"price": None, "code": "20"}])
    assert [str(column) for column in agent.columns.values()] == [
        "price: number",
        "code: category of 2 levels",
    ]
    agent.choose([{"price": 4.0, "code": "21;22"}])
    with pytest.raises(InvalidSettingError, match=r"numeric must not .* categorical, got \['x'\]"):
        Agent(numeric=["x"], categorical=["x", "y"])
    with pytest.raises(InvalidSettingError, match=r"ignore must not .* are used, got \['x'\]"):
        Agent(numeric=["x"], ignore=["x"])


# Rewards


@pytest.mark.parametrize("column", [np.array, pd.Series, pl.Series, pa.array])
def test_rewards_may_come_as_columns(column):
    agent = ambient()
    ids = [agent.choose(rows).id for rows, _ in offers(3)]
    agent.learn(column(ids), column([1.0, 0.0, 0.5]))
    assert agent.pending == ()
    assert agent.health()["rewards"]["lately"]["mean"] == pytest.approx(0.5)


@pytest.mark.parametrize("options", [[{"x": None}] * 2, np.full((2, 3), np.nan)])
def test_everything_may_be_hidden_in_the_first_request(options):
    agent = Agent()
    agent.learn(agent.choose(options), 1.0)
    assert agent.choose([{"x": 1.0}, {"x": None}]).item in (0, 1)


def test_each_kind_of_id_that_does_not_wait_has_its_own_error():
    agent = started(ambient, max_pending=3)
    rows = offers(1)[0][0]
    first, _, third = (agent.choose(rows) for _ in range(3))
    agent.learn(first, 1.0)
    agent.expire(before=datetime.timedelta(0), reward=None)
    later = [agent.choose(rows) for _ in range(4)]
    agent.learn(first.id, 1.0)  # again
    with pytest.raises(AlreadyRewardedError, match=rf"{first.id} was rewarded before, with 1\.0"):
        agent.learn(first.id, 0.5)
    agent.learn(third, 1.0)
    assert agent.health()["late"] == 1
    with pytest.raises(ForgottenDecisionError, match=f"{later[0].id} was forgotten.*max_pending"):
        agent.learn(later[0], 1.0)
    with pytest.raises(UnknownDecisionError, match="decision abc is not known here: another agent"):
        agent.learn("abc", 1.0)
    assert [each.id for each in agent.pending] == [each.id for each in later[1:]]


def test_what_never_came_is_closed_with_a_reward(monkeypatch):
    agent, other = started(ambient), started(ambient)
    rows = offers(1)[0][0]
    old, same = agent.choose(rows), other.choose(rows)
    later = time.time() + 60.0
    monkeypatch.setattr(time, "time", lambda: later)
    new = agent.choose(rows)
    other.choose(rows)
    assert agent.expire(before=datetime.timedelta(seconds=30), reward=-1.0) == 1
    other.learn(same, -1.0)
    assert [each.id for each in agent.pending] == [new.id]
    assert agent.pending[0].item == new.item
    assert agent.score(rows) == other.score(rows)
    agent.learn(old, 1.0)  # too late
    assert agent.score(rows) == other.score(rows)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_levels_and_columns_may_enter_in_any_part_of_a_log(make):
    rows = [row for rows, _ in offers(30, seed=3) for row in rows]
    rewards = [reward for _, rewards in offers(30, seed=3) for reward in rewards]
    for at, row in enumerate(rows):
        row["weight"] = row["weight"] if at > 40 else None
        row["colour"] = row["colour"] if row["colour"] == "red" or at > 20 else None
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    whole, parts = make(), make()
    whole.observe(columns, rewards)
    for start, stop in ((0, 1), (1, 30), (30, len(rows))):
        some = {name: cells[start:stop] for name, cells in columns.items()}
        parts.observe(some, rewards[start:stop])
    assert parts.columns == whole.columns
    found, expected = (walk(agent, offers(10, seed=1)) for agent in (parts, whole))
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.item == theirs.item
        np.testing.assert_allclose(ours.scores, theirs.scores, rtol=1e-9, atol=1e-9)
    scored = [[each[1:] for each in agent.score(rows[:4])] for agent in (parts, whole)]
    np.testing.assert_allclose(*scored, rtol=1e-9, atol=1e-9)


def test_a_fresh_agent_can_score():
    assert Agent().score([{"price": 1.0}]) == ((0, 0.0, 0.0, 1.0),)
    whole, part = started(ambient).score([ALL[0], {"sku": "b", "price": 2}])
    assert (whole.share_seen, part.share_seen) == (1.0, pytest.approx(1 / 3))


# Life


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_columns_and_levels_enter_while_an_agent_serves(make, tmp_path):
    agent, rounds = make(), offers(40)
    for at, (rows, rewards) in enumerate(rounds):
        names = ["sku", "price", "weight", "colour"][: 2 + at // 10]
        few = [{name: row[name] for name in names if name in row} for row in rows]
        few[0]["price"] = 1.0
        if at > 30:
            few[0]["colour"] = f"shade {at}"
        agent.learn(agent.choose(few), rewards[0])
    assert len(agent.columns["colour"].levels) == 3 + 9
    agent.save(tmp_path / "agent")
    found, expected = (walk(each, rounds) for each in (Agent.load(tmp_path / "agent"), agent))
    assert [looks(decision) for decision in found] == [looks(decision) for decision in expected]


@pytest.mark.parametrize(
    "make", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_a_copy_is_an_agent_of_its_own(make):
    agent = Agent()
    decision = agent.choose(["a", "b"])
    twin = make(agent)
    twin.learn(decision, 1.0)
    assert (len(twin.pending), len(agent.pending)) == (0, 1)


def test_load_returns_whatever_was_saved(tmp_path):
    started(ambient).save(tmp_path / "agent")
    AmbientOful(dim=2).save(tmp_path / "policy")
    assert isinstance(load(tmp_path / "agent"), Agent)
    assert isinstance(load(tmp_path / "policy"), AmbientOful)
    with pytest.raises(ArchiveError, match=r"is not an agent: halfseen\.load"):
        Agent.load(tmp_path / "policy")


def test_memory_is_bounded(caplog, monkeypatch):
    monkeypatch.setattr(journal, "N_GONE", 7)
    agent = started(ambient, max_pending=5)
    rows = offers(1)[0][0]
    with caplog.at_level(logging.WARNING, logger="halfseen"):
        for _ in range(40):
            agent.choose(rows)
    assert len(agent.pending) == 5
    assert agent.health()["forgotten"] == 35
    assert "was forgotten, 8 so far: more than max_pending = 5" in caplog.text
    assert len(agent.to_dict()["decisions"]) == 5 + 7


def test_health_shows_what_changed_lately():
    agent = started(ambient)
    for at in range(1200):
        rows = [{"sku": "a", "price": 1.0, "weight": 2.0 if at < 500 else None}]
        agent.learn(agent.choose(rows), 0.0 if at < 500 else 1.0)
    health = agent.health()
    json.dumps(health, allow_nan=False)
    assert health["rewards"]["lately"]["mean"] > 0.9 > 0.1 > health["rewards"]["before"]["mean"]
    assert health["seen"]["lately"]["weight"] < 0.2 < 0.8 < health["seen"]["before"]["weight"]
    assert health["seen"]["lately"]["price"] == 1.0
    assert health["decisions"] == 1201


def test_an_agent_hands_its_exploration_to_the_policy_and_states_probabilities():
    way = {"exploration": "inverse-gap", "uniform_share": 0.2}
    ours = Agent(id="sku", explore="inverse-gap", uniform_share=0.2)
    theirs = Agent(id="sku", policy=LatentUcb(**way))
    for one, other in zip(walk(ours, offers(20)), walk(theirs, offers(20)), strict=True):
        assert looks(one) == looks(other)
        assert one.ranking[0] == one.item
        plain = one.to_dict()
        assert plain["probability"] == one.probabilities[one.arm]
        assert plain["probabilities"] == one.probabilities.tolist()


def test_the_policy_that_is_given_is_not_touched():
    policy = LatentUcb()
    walk(Agent(policy=policy, id="sku"), [(ALL, [1.0, 2.0, 3.0])] * 3)
    assert (policy.round, policy.dim) == (0, None)


# Several places, rewards in parts, and what looks wrong

WAYS = {
    "thompson": {"explore": "thompson"},
    "inverse gaps": {"explore": "inverse-gap"},
    "a uniform share": {"explore": "ucb", "uniform_share": 0.5},
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_each_place_has_its_exact_probability_given_the_places_before(way, tmp_path):
    """Pearson's statistic of the pairs of the first two places, with the stated probabilities.

    Ids alone key the draws, so one state is asked again and again. False alarms: 1 in 10,000.
    """
    agent = Agent.open(tmp_path / "shop.db", durability="crash", id="sku", **way)
    rows = [{"sku": name, "x": float(at)} for at, name in enumerate("abcd")]
    random = np.random.default_rng(0)
    for _ in range(12):
        agent.learn(agent.choose(rows), float(random.normal()))
    member = agent._member
    ready = member.reducer.encoded(member.follow(), agent._asked(rows, None))
    counts, laws = Counter(), []
    for number in range(1000):
        choices, arms = decided(ready, f"id {number}", 2, True)
        counts[tuple(arms)] += 1
        first, second = (each.probabilities for each in choices)
        rest = [arm for arm in range(4) if arm != arms[0]]
        laws.append((first, arms[0], dict(zip(rest, second, strict=True))))
    first = np.mean([law for law, _, _ in laws], axis=0)
    expected = {}
    for one in range(4):
        seconds = [second for _, arm, second in laws if arm == one]
        for two in set(range(4)) - {one}:
            share = np.mean([second[two] for second in seconds]) if seconds else 0.0
            expected[one, two] = 1000 * first[one] * share
    common = {pair: value for pair, value in expected.items() if value >= 5.0}
    assert len(common) >= 2
    statistic = sum((counts[pair] - value) ** 2 / value for pair, value in common.items())
    assert statistic < chi2.isf(1e-4, len(common))
    agent.close()


def test_each_place_is_learned_for_itself():
    agent = started(ambient)
    rows, _ = offers(1)[0]
    decision = agent.choose(rows, k=3)
    assert len(set(decision.chosen)) == 3
    assert decision.ranking[:3] == decision.chosen
    _, second, third = decision.chosen
    agent.learn(decision.id, 1.0)
    agent.learn(decision.id, {third: 0.5})
    assert len(agent.pending) == 1
    with pytest.raises(InvalidInputError, match="has no place for 'x'"):
        agent.learn(decision.id, {"x": 1.0})
    with pytest.raises(AlreadyRewardedError):
        agent.learn(decision.id, {second: 0.0, third: 1.0})
    assert agent.expire(before=datetime.timedelta(0), reward=-1.0) == 1
    assert agent.health()["rewards"]["lately"] == {"n": 4, "mean": 0.25}  # 0.5 came before


def test_rewards_in_parts_add_up_until_the_final_one():
    agent, other = started(ambient), started(ambient)
    rows, _ = offers(1)[0]
    one, two = agent.choose(rows), other.choose(rows)
    for _ in range(2):
        agent.learn(one.id, 0.25, final=False, key="click")
    with pytest.raises(AlreadyRewardedError, match=r"with 0\.25, got 1\.0"):
        agent.learn(one.id, 1.0, final=False, key="click")
    assert len(agent.pending) == 1
    agent.learn(one.id, 2.0)
    with pytest.raises(AlreadyRewardedError, match="the reward was final"):
        agent.learn(one.id, 1.0, key="more")
    other.learn(two.id, 2.25)
    assert agent.score(rows) == other.score(rows)


def test_equal_rewards_and_what_only_grows_are_warned_of_once(caplog):
    agent = ambient()
    for _ in range(1010):
        decision = agent.choose([{"sku": "a", "x": 1.0}])
        if agent.health()["decisions"] % 8 == 0:
            agent.learn(decision, 1.0)
    equal, grows = agent.health()["warnings"]
    assert "rewards were all 1, and" in equal
    assert "the number of pending decisions keeps growing, 884 now" in grows
    assert "expire_after" in equal
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 2


def test_equal_rewards_that_come_at_once_are_not_warned_of(caplog):
    agent = ambient()
    for _ in range(150):
        agent.learn(agent.choose([{"sku": "a", "x": 1.0}]), 0.0)
    assert not caplog.records


def test_the_lift_is_what_a_uniform_choice_would_have_missed():
    """Item b pays 1, five others 0: a uniform choice earns 1/6, within three standard errors."""
    agent = Agent(uniform_share=0.4)
    for at in range(600):
        decision = agent.choose(list("abcdef"))
        agent.learn(decision, float(decision.item == "b"))
        assert (agent.health()["lift"]["interval"] is None) == (at == 0)
    lift = agent.health()["lift"]
    low, high = lift["interval"]
    assert abs(lift["uniform"] - 1 / 6) < 3.0 * (high - low) / (2.0 * 1.96)
    assert 0.2 < low < high < low + 0.3
    assert 50 < lift["effective_n"] < 600
