"""Parts of a score add up, and the value of seeing is what seeing brings."""

import numpy as np
import pytest
from scipy.stats import norm

from halfseen import AmbientOful, Greedy, InvalidInputError, LatentUcb, LinearThompson
from policy_runs import few_arms, state_bytes, walk


def worlds(kind, n_rounds=60):
    """Slates with holes that mean something, and their rewards; or a catalogue of items."""
    random = np.random.default_rng(2)
    loadings, theta = random.normal(size=(2, 7)), random.normal(size=7)
    catalogue = None
    for _ in range(n_rounds):
        table = 3.0 + random.normal(size=(5, 2)) @ loadings
        if kind != "low-rank":
            table += 0.5 * random.normal(size=table.shape)
        rewards = 100.0 + table @ theta + 0.3 * random.normal(size=5)
        mask = random.random(table.shape) < 0.6
        rewards += mask[:, 0]
        table[~mask] = np.nan
        table[:, 6] = 1.0  # constant
        if kind == "items":
            catalogue = catalogue or (table, rewards + random.normal(size=5))
            table, rewards = catalogue[0], catalogue[1] + 0.3 * random.normal(size=5)
        yield table, rewards


@pytest.mark.parametrize("kind", ["low-rank", "noisy", "items"])
@pytest.mark.parametrize("settings", [{}, {"through_origin": True}, {"rank": 0}], ids=str)
def test_parts_of_a_score_add_up(kind, settings):
    policy, n_compared = LatentUcb(**settings), 0
    for table, rewards in worlds(kind):
        decision, reasons = policy.choose(table), policy.explain(table)
        spread = np.ptp(decision.estimates) + 1e-6 * np.abs(decision.estimates).max()
        if spread > 0.0:
            np.testing.assert_allclose(reasons.estimates, decision.estimates, atol=1e-7 * spread)
            n_compared += 1
        policy.learn(decision, rewards[decision.arm])
    assert n_compared > 50
    assert reasons.features.any()
    assert reasons.item.any() == (kind == "items")
    assert (reasons.bonus > 0.0).all()


def test_each_group_of_the_model_has_its_part():
    policy = LatentUcb()
    for table, rewards in worlds("noisy", 150):
        decision = policy.choose(table)
        policy.learn(decision, rewards[decision.arm])
    reasons = policy.explain(table)
    assert reasons.intercept == pytest.approx(100, abs=15)
    assert reasons.missing[:, 0].any()
    assert not reasons.features[:, 6].any()  # it does not vary
    hidden = np.isnan(table)
    assert np.abs(reasons.features[hidden]).max() > 0.0


@pytest.mark.parametrize("policy", [AmbientOful(dim=6), Greedy(dim=6), LinearThompson(dim=6)])
def test_policies_in_all_features_explain_themselves(policy):
    rounds = few_arms(20)
    walk(policy, rounds)
    table = rounds[0].table
    reasons, scores = policy.explain(table), policy.score(table)
    np.testing.assert_allclose(reasons.estimates, scores.estimates, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(reasons.bonus, scores.widths)
    assert not reasons.features[np.isnan(table)].any()
    assert not policy.value_of_seeing(table).all_arms.any()


def test_before_rewards_tell_there_is_nothing_to_explain_and_nothing_changes():
    policy, table = LatentUcb(), few_arms(1)[0].table
    before = state_bytes(policy)
    assert not policy.explain(table).scores.any()
    assert not policy.value_of_seeing(table).single.any()
    assert state_bytes(policy) == before
    walk(policy, few_arms(12))
    before = state_bytes(policy)
    policy.explain(table)
    policy.value_of_seeing(table)
    assert state_bytes(policy) == before


@pytest.mark.parametrize("groups", [[[2]], [[-1]], [1], [["x"]], 3])
def test_groups_of_features_that_do_not_exist_are_refused(groups):
    policy, options = LatentUcb(dim=2, context_dim=2), [[1.0, np.nan]]
    for ask in ({"groups": groups}, {"context_groups": groups}):
        with pytest.raises(InvalidInputError, match="groups must be lists of features from 0 to 1"):
            policy.value_of_seeing(options, **ask, context=[1.0, np.nan])


def test_the_value_of_seeing_is_the_mean_gain_of_those_who_see():
    """The hidden entry is drawn from its law 2000 times, and the policy scores what it sees then.

    Without masks in the model, seeing has no other effect. 5 standard errors fail with 6e-7 per
    entry compared.
    """
    policy = LatentUcb(groups=["latent", "filled"])
    for table, rewards in worlds("noisy", 100):
        decision = policy.choose(table)
        policy.learn(decision, rewards[decision.arm])
    gains, latent = policy.value_of_seeing(table), policy._epoch.arms.factors
    estimates = policy.explain(table).estimates
    best, random, n_compared = estimates.max(), np.random.default_rng(0), 0
    for arm, feature in np.argwhere(np.isnan(table) & (gains.single > 1e-3 * np.ptp(estimates))):
        seen = latent.loadings / np.sqrt(latent.noise) * ~np.isnan(table[arm])
        spread = np.linalg.inv(np.eye(latent.rank) + seen @ seen.T)
        w = latent.loadings[:, feature]
        deviation = np.sqrt(w @ spread @ w + latent.noise[feature]) * latent.scale[feature]
        rows = np.repeat(table[arm : arm + 1], 2000, axis=0)
        rows[:, feature] = latent.fill(rows[:1])[0, feature] + deviation * random.normal(size=2000)
        others = np.delete(estimates, arm).max()
        found = np.maximum(policy.explain(rows).estimates, others) - best
        error = found.std() / np.sqrt(2000)
        assert abs(found.mean() - gains.single[arm, feature]) < 5 * error
        n_compared += 1
    assert n_compared >= 3


def test_the_column_that_matters_is_worth_seeing_in_a_world_where_the_answer_is_known():
    """Independent features and known weights: the gain is in closed form, within 10 %.

    The means of 2,000 rows have errors of .02, and so has the gap between the arms, which is about
    1: it is taken from the policy.
    """
    random, weights = np.random.default_rng(0), np.array([2.0, 0.5, 0.0, -1.0])
    policy = LatentUcb()
    for _ in range(400):
        table = random.normal(size=(6, 4))
        decision = policy.choose(table)
        policy.learn(decision, table[decision.arm] @ weights + 0.1 * random.normal())
    table = np.array([[0.5, 0.0, 0.0, 0.0], [np.nan, np.nan, np.nan, np.nan]])
    gains = policy.value_of_seeing(table)
    sizes = np.abs(weights[[0, 3, 1]])
    first, second = policy.score(table).estimates
    gap = first - second
    assert gap == pytest.approx(1.0, abs=0.2)
    expected = sizes * norm.pdf(gap / sizes) - gap * norm.sf(gap / sizes)
    assert gains.single[1, [0, 3, 1]] == pytest.approx(expected, rel=0.1)
    assert gains.all_arms[[0, 3, 1]] == pytest.approx(expected, rel=0.1)
    assert gains.all_arms.argmax() == 0
    assert gains.all_arms[2] < 1e-6
    assert not gains.single[0].any()  # nothing of it is hidden
    both = policy.value_of_seeing(table, [[0, 3]]).all_arms[0]
    assert both == pytest.approx(np.sqrt(5) * norm.pdf(5**-0.5) - norm.sf(5**-0.5), rel=0.1)
