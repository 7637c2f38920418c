"""Rewards that are expected: they narrow widths, change no estimate, and leave no trace."""

from datetime import timedelta

import numpy as np
import pytest

from halfseen import Agent, InvalidRewardError, LatentUcb, UnknownDecisionError, load
from halfseen.latent.reward_model import RewardModel
from halfseen.testing.policies import copy_of, state_bytes

N_ITEMS = 12


def catalogue(seed=0):
    """Return half-seen items of rank 2, and what each of them pays on average."""
    random = np.random.default_rng(seed)
    latent = random.normal(size=(N_ITEMS, 2))
    table = latent @ random.normal(size=(2, 6))
    means = latent @ [1.0, -1.0] + 0.5 * random.normal(size=N_ITEMS)
    return np.where(random.random(table.shape) < 0.6, table, np.nan), means


def trained(n_rounds=40, **settings):
    """Return a policy that has learned all of its rewards, and what it chooses from."""
    policy, (table, means) = LatentUcb(**settings), catalogue()
    for at in range(n_rounds):
        decision = policy.choose(table, items=np.arange(N_ITEMS))
        policy.learn(decision, means[decision.arm] + np.random.default_rng(at).normal())
    return policy, table


def chosen(policy, table):
    return policy.choose(table, items=np.arange(N_ITEMS))


def scores(policy, table):
    return policy.score(table, items=np.arange(N_ITEMS))


def test_an_expected_decision_narrows_its_own_width_and_changes_no_estimate():
    policy, table = trained()
    decision = chosen(policy, table)
    before = scores(policy, table)
    policy.expect(decision)
    after = scores(policy, table)
    assert after.estimates.tolist() == before.estimates.tolist()
    assert after.widths[decision.arm] < 0.99 * before.widths[decision.arm]
    assert (after.widths <= before.widths * (1 + 1e-12)).all()
    policy.expect(decision)  # a second time nothing happens
    assert scores(policy, table).widths.tolist() == after.widths.tolist()


def test_questions_after_forgetting_do_not_make_the_widths_anew(monkeypatch):
    policy, table = trained()
    decisions = [chosen(policy, table) for _ in range(20)]
    for decision in decisions:
        policy.expect(decision)
    chosen(policy, table)
    for decision in decisions[:10]:
        policy.forget(decision)
    before = scores(policy, table)
    with monkeypatch.context() as patch:
        patch.setattr(RewardModel, "expecting", None)  # which adds rows to the widths
        assert scores(policy, table).widths.tolist() == before.widths.tolist()


def test_widths_do_not_depend_on_the_order_in_which_rewards_are_expected():
    policy, table = trained()
    decisions = [chosen(policy, table) for _ in range(6)]
    other = copy_of(policy)
    for decision, theirs in zip(decisions, reversed(decisions), strict=True):
        policy.expect(decision)
        other.expect(theirs)
    assert scores(policy, table).widths.tolist() == scores(other, table).widths.tolist()
    assert state_bytes(policy) == state_bytes(other)


def test_scores_and_their_explanation_have_the_same_widths():
    policy, table = trained()
    policy.expect(chosen(policy, table))
    reasons = policy.explain(table, items=np.arange(N_ITEMS))
    assert reasons.bonus.tolist() == scores(policy, table).widths.tolist()


@pytest.mark.parametrize("n_waiting", [3, 41])
def test_a_reward_that_was_expected_is_learned_as_any_other(n_waiting):
    """Bit for bit, also if epochs open while rewards are expected."""
    (policy, table), (plain, _) = trained(), trained()
    random, waiting = np.random.default_rng(0), []
    for arm in random.integers(N_ITEMS, size=n_waiting):
        offered = {"options": table[arm][None], "items": np.array([arm])}
        waiting.append((policy.choose(**offered), plain.choose(**offered), random.normal()))
        policy.expect(waiting[-1][0])
    for expected, unexpected, reward in waiting:
        policy.learn(expected, reward)
        plain.learn(unexpected, reward)
    assert state_bytes(policy) == state_bytes(plain)


def test_a_part_of_the_rewards_leaves_the_widths_that_they_would_have_given():
    """Widths do not depend on rewards: with 5 of 9 learned they are those of all 9, to rounding."""
    policy, table = trained(200)
    decisions = []
    for _ in range(9):
        decisions.append(chosen(policy, table))
        policy.expect(decisions[-1])
    before = scores(policy, table)
    for decision in decisions[:5]:
        policy.learn(decision, 1.0)
    np.testing.assert_allclose(scores(policy, table).widths, before.widths, rtol=1e-9)
    for decision in decisions[5:]:
        policy.learn(decision, 1.0)
    np.testing.assert_allclose(scores(policy, table).widths, before.widths, rtol=1e-9)


def test_forgetting_restores():
    policy, table = trained()
    first, second = chosen(policy, table), chosen(policy, table)
    plain, one = copy_of(policy), copy_of(policy)
    one.expect(first)
    policy.expect(first)
    policy.expect(second)
    for each in (policy, one, plain):  # the widths of a choice are kept for the next one
        each.choose(table[:1], items=np.array([0]))
    policy.forget(second)
    np.testing.assert_allclose(scores(policy, table).widths, scores(one, table).widths, rtol=1e-9)
    policy.forget(first)
    policy.forget(first)
    assert state_bytes(policy) == state_bytes(plain)


def test_expected_decisions_are_saved():
    policy, table = trained()
    decisions = []
    for _ in range(30):  # an epoch opens meanwhile
        decisions.append(chosen(policy, table))
        policy.expect(decisions[-1])
    copy = copy_of(policy)
    for decision in decisions[:20]:
        for each in (policy, copy):
            each.learn(decision, 1.0 + decision.arm)
        ours, theirs = chosen(policy, table), chosen(copy, table)
        assert ours.scores.tolist() == theirs.scores.tolist()


def test_expected_decisions_grow_with_the_policy():
    policy, table = trained()
    decision = chosen(policy, table)
    policy.expect(decision)
    policy.widen(7, context_dim=2)
    wider = np.column_stack([table, np.full(N_ITEMS, np.nan)])
    before = scores(policy, wider)
    policy.forget(decision)
    assert before.widths[decision.arm] < 0.99 * scores(policy, wider).widths[decision.arm]


def test_only_an_own_decision_is_expected_or_forgotten():
    policy, table = trained()
    later = trained(80)[0]
    for verb in (policy.expect, policy.forget):
        for other in (chosen(later, table), "a-1"):
            with pytest.raises(UnknownDecisionError):
                verb(other)


@pytest.mark.parametrize(("expects", "n_arms"), [(False, 1), (True, 5)])
def test_between_two_deliveries_of_rewards_several_arms_are_chosen(expects, n_arms):
    """Ten arms by name. Without `expect` the second day has one arm."""
    policy, arms, random = LatentUcb(), np.full((10, 1), np.nan), np.random.default_rng(0)
    for _ in range(2):
        day = []
        for _ in range(50):
            day.append(policy.choose(arms, items=np.arange(10)))
            if expects:
                policy.expect(day[-1])
        for decision in day:
            policy.learn(decision, float(random.random() < 0.3 + 0.03 * decision.arm))
    found = len({decision.arm for decision in day})
    assert found >= n_arms if expects else found == n_arms


def test_an_agent_expects_what_waits_and_forgets_what_expires(tmp_path):
    agent = Agent(id="sku", max_pending=3)
    offers = [{"sku": f"s{k}", "price": float(k)} for k in range(4)]
    for k in range(12):
        agent.learn(agent.choose(offers).id, float(k % 3))
    decisions = [agent.choose(offers) for _ in range(5)]
    assert sorted(agent.learner._pending.notes.now) == [
        decision.round for decision in decisions[2:]
    ]
    narrow = [each.width for each in agent.score(offers)]
    with pytest.raises(InvalidRewardError):
        agent.learn(decisions[-1].id, float("nan"))
    agent.save(tmp_path / "agent")
    assert [each.width for each in load(tmp_path / "agent").score(offers)] == narrow
    agent.learn(decisions[-1].id, 1.0)
    assert agent.expire(before=timedelta(0), reward=None) == 2
    assert not agent.learner._pending.n
