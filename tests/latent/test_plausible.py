"""An absurd value is a hidden value."""

import numpy as np
import pytest

from halfseen import Agent, LatentUcb, load
from halfseen.latent.plausible import limits_of, no_limits, plausible


def offers(n_rounds, *, absurd=None, share=0.03, seed=0, contexts=False):
    """Yield options and what they pay: rows of rank 2, some of whose cells are absurd."""
    random, directions = np.random.default_rng(seed), np.random.default_rng(9).normal(size=(2, 8))
    for _ in range(n_rounds):
        latent = random.normal(size=(5, 2))
        rows, wrong = 3.0 + latent @ directions, random.random((5, 8)) < share
        yield np.where(wrong, np.nan if absurd is None else absurd, rows), latent[:, 0]


def played(policy, rounds, unit=1.0, offset=0.0):
    chosen = []
    for rows, rewards in rounds:
        decision = policy.choose(offset + unit * rows)
        policy.learn(decision, float(rewards[decision.arm]))
        chosen.append(decision.arm)
    return chosen


def test_limits_are_twenty_interquartile_ranges_beyond_the_quartiles():
    column = np.append(np.arange(101.0), np.full(50, np.nan))[:, None]
    assert limits_of(column).ravel().tolist() == [25.0 - 20 * 50.0, 75.0 + 20 * 50.0]


@pytest.mark.parametrize(
    "column",
    [np.arange(100) < 3, np.repeat([0.0, 1.0], [98, 2]), np.arange(19.0), np.full(100, 7.0)],
    ids=["rare level", "rarer than 5 %", "few values", "constant"],
)
def test_columns_without_a_scale_are_left_alone(column):
    assert (limits_of(np.asarray(column, float)[:, None]) == no_limits(1)).all()


@pytest.mark.parametrize("n", [20, 21, 40, 100, 499, 500, 2000])
def test_two_values_are_never_implausible_however_many_there_are_of_each(n):
    ones = (np.arange(n)[:, None] < np.linspace(0, n, min(n, 500) + 1).round()).astype(float)
    for low, high in ((0.0, 1.0), (1.0, 0.0), (-999.0, 40.0)):
        columns = np.where(ones, high, low)
        limits = limits_of(columns)
        assert np.array_equal(plausible(columns, limits), columns)


def test_small_counts_are_never_implausible_however_rare_they_are():
    counts = 1.0 * (np.arange(500)[:, None] < np.arange(501))
    counts[:3] = 20.0
    assert np.array_equal(plausible(counts, limits_of(counts)), counts)


def test_no_level_of_a_category_is_implausible():
    for seed in range(20):
        levels = np.eye(20)[np.random.default_rng(seed).integers(0, 20, 2000)]
        assert (limits_of(levels)[1] >= 1.0).all()


def test_counts_that_are_mostly_zero_have_the_scale_of_their_outer_quantiles():
    counts = np.repeat([0.0, 2.0], [80, 20])[:, None]
    assert limits_of(counts).ravel().tolist() == [-40.0, 40.0]


@pytest.mark.parametrize("share", [0.3, 0.45, 0.7, 0.74, 0.76, 0.9])
def test_amounts_that_are_mostly_zero_have_the_scale_of_the_others(share):
    random = np.random.default_rng(0)
    amounts = np.exp(random.normal(size=500)) * (np.arange(500) >= share * 500)
    low, high = limits_of(amounts[:, None]).ravel()
    assert low < 0.0
    assert amounts.max() < high < 60.0


@pytest.mark.parametrize(
    ("share", "is_hidden"), [(0.1, True), (0.3, True), (0.45, True), (0.6, False)]
)
def test_a_common_code_is_hidden_unless_most_entries_have_it(share, is_hidden):
    ages = np.where(np.arange(500) < share * 500, -999.0, 40.0 + np.arange(500) % 37)
    low, high = limits_of(ages[:, None]).ravel()
    assert (low > -999.0) == is_hidden
    assert high > 76.0


def test_what_is_hidden_is_what_is_outside():
    limits = np.array([[-1.0, -1.0], [1.0, 1.0]])
    shown = plausible(np.array([[-1.0, 1.5], [np.nan, -9.0]]), limits)
    assert np.array_equal(shown, [[-1.0, np.nan], [np.nan, np.nan]], equal_nan=True)


@pytest.mark.parametrize("absurd", [-999.0, 1e6])
def test_absurd_values_cost_no_more_than_hidden_ones(absurd):
    """From the round on in which limits are known, scores are those of hidden values."""
    hidden, wrong = LatentUcb(), LatentUcb()
    played(hidden, offers(60)), played(wrong, offers(60, absurd=absurd))
    rows = next(offers(1, seed=5))[0]
    rows[0, :3] = np.nan
    expected = hidden.score(rows).estimates
    rows[0, :3] = absurd
    spread = np.ptp(expected)
    assert np.abs(wrong.score(rows).estimates - expected).max() < 0.05 * spread


def test_units_and_offsets_do_not_change_what_is_absurd():
    plain = played(LatentUcb(), offers(40, absurd=-999.0))
    assert played(LatentUcb(), offers(40, absurd=-999.0), unit=-64.0, offset=128.0) == plain


def test_limits_are_saved_and_new_features_have_none(tmp_path):
    policy = LatentUcb()
    played(policy, offers(30, absurd=1e6))
    policy.save(tmp_path / "policy.npz")
    twin, rows = load(tmp_path / "policy.npz"), next(offers(1, absurd=1e6, share=0.3, seed=1))[0]
    assert (twin.score(rows).estimates == policy.score(rows).estimates).all()
    policy.widen(9)
    wider = np.column_stack([rows, np.full(len(rows), 1e99)])
    assert (policy.score(wider).estimates == twin.score(rows).estimates).all()
    assert not policy.explain(wider).implausible[:, 8].any()


def test_an_agent_says_which_values_it_treats_as_missing():
    agent, random = Agent(), np.random.default_rng(0)
    for round in range(40):
        rows = [{"price": price, "size": 1.0 + round % 7} for price in random.normal(size=4)]
        if round % 10 == 9:
            rows[0]["price"] = -999.0
        decision = agent.choose(rows, context={"age": 1e9 if round == 20 else float(round)})
        agent.learn(decision.id, rows[decision.arm]["price"] if rows[0]["price"] > -9 else 0.0)
    assert str(agent.columns["price"]) == "price: number, 4 implausible"
    assert agent.context_columns["age"].n_implausible == 1
    why = agent.explain([{"price": -999.0}, {"price": 0.5}], context={"age": 1e9}, item=0)
    for name in ("price", "age (context)"):
        assert f"{name}, implausible, treated as missing" in dict(why.parts)
    assert "price is missing" in dict(why.parts)
    assert "price" in [each.column for each in why.measurements]
