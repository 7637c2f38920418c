"""Decisions carry what `learn` needs; copies of a policy go their own way."""

import copy
import json
import pickle

import numpy as np
import pytest

from halfseen import (
    AmbientOful,
    Decision,
    InvalidRewardError,
    InvalidSlateError,
    LatentUcb,
    TofuPov,
    UnknownDecisionError,
    archive,
    load,
)
from halfseen.policies.registry import policy_to_dict
from policy_runs import few_arms, looks, state_bytes, tofu, walk


def test_decisions_kept_as_json_are_learned_after_loading_widening_and_in_later_epochs(tmp_path):
    policy, rounds = LatentUcb(), few_arms(30)
    kept = [(each.table, policy.choose(each.table, context=[1.0], items=range(len(each.table))))
            for each in rounds[:3]]  # fmt: skip
    walk(policy, rounds[3:])
    texts = [json.dumps(decision.to_dict()) for _, decision in kept]
    policy.save(tmp_path / "policy")
    loaded = load(tmp_path / "policy")
    for each in (policy, loaded):
        each.widen(9, levels={8: 0}, context_dim=3)
    for (table, decision), text in zip(kept, texts, strict=True):
        policy.learn(decision, float(np.nansum(table[decision.arm])))
        loaded.learn(Decision.from_dict(json.loads(text)), float(np.nansum(table[decision.arm])))
    assert state_bytes(loaded) == state_bytes(policy)
    later = np.pad(rounds[0].table, ((0, 0), (0, 3)), constant_values=np.nan)
    assert looks(loaded.choose(later)) == looks(policy.choose(later))


def test_a_decision_without_the_note_of_its_inner_policy_is_refused():
    policy = tofu()
    plain = policy.choose(few_arms(1)[0].table).to_dict()
    plain["inner"]["round"] = 9
    with pytest.raises(UnknownDecisionError, match=r"cannot have made the decision: .* are \(9, "):
        policy.learn(Decision.from_dict(plain), 1.0)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
@pytest.mark.parametrize("policy", [tofu(), LatentUcb()], ids=["tofu", "latent-ucb"])
def test_pythons_own_copies_go_their_own_way(copied, policy):
    rounds = few_arms(20)
    walk(policy, rounds[:9])
    other = copied(policy)
    before = state_bytes(policy)
    ours = walk(other, rounds[9:])
    assert state_bytes(policy) == before
    assert [looks(each) for each in walk(policy, rounds[9:])] == [looks(each) for each in ours]


def test_a_given_burn_in_policy_is_shared_with_nobody():
    given = AmbientOful(dim=4)
    first, second = (
        TofuPov(dim=4, rank=1, observe_prob=0.5, burn_in=50, burn_in_policy=given) for _ in range(2)
    )
    for _ in range(5):
        ours, theirs = first.choose(np.eye(4)[:1]), second.choose(np.eye(4)[1:2])
        first.learn(ours, 1.0)
        second.learn(theirs, -1.0)
    assert first.score(np.eye(4)).estimates.round(3).tolist() == [0.833, 0.0, 0.0, 0.0]
    assert second.score(np.eye(4)).estimates.round(3).tolist() == [0.0, -0.833, 0.0, 0.0]
    assert given.round == 0


def test_the_plain_form_does_not_change_with_the_policy():
    policy, rounds = LatentUcb(memory_bytes=2000), few_arms(12)
    walk(policy, rounds[:10])
    plain = policy_to_dict(policy)
    before = archive.to_bytes(plain)
    walk(policy, rounds[10:])
    assert archive.to_bytes(plain) == before


BAD_REWARDS = (np.nan, np.inf, -1e300, 10**400, None, "1.0", 1.0 + 0.0j, [0.5])


def test_what_is_no_reward_context_or_decision_is_refused_for_every_policy():
    """By `Policy` itself, before any hook; slates have their own tests."""
    policy, table = LatentUcb(), few_arms(1)[0].table
    decision = policy.choose(table, context=[1.0, 2.0])
    before = state_bytes(policy)
    for reward in BAD_REWARDS:
        with pytest.raises(InvalidRewardError):
            policy.learn(decision, reward)
    for context in ([1.0] * 3, [np.inf, 1.0], ["a", "b"], np.ones((2, 2)), 3.0):
        for call in (policy.choose, policy.absorb, policy.score):
            with pytest.raises(InvalidSlateError):
                call(table, context=context)
    plain = decision.to_dict()
    edits = ({"policy": "Another"}, {"round": 2}, {"epoch": 2}, {"values": [1.0] * 7})
    for unknown in ("id", None, *(Decision.from_dict(plain | edit) for edit in edits)):
        with pytest.raises(UnknownDecisionError):
            policy.learn(unknown, 0.5)
    assert state_bytes(policy) == before


class Late(AmbientOful):
    """Makes an attribute in its hook, and then fails."""

    def decide(self, slate):
        self.made = True
        raise RuntimeError("late")


def test_an_attribute_that_a_failed_hook_made_is_gone():
    policy = Late(dim=6)
    with pytest.raises(RuntimeError, match="late"):
        policy.choose(few_arms(1)[0].table)
    assert not hasattr(policy, "made")
