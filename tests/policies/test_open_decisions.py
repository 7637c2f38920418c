"""Ids and open decisions: copies of a file, edited decisions, what is forgotten."""

import copy
import logging
import pickle

import numpy as np
import pytest
from policy_runs import few_arms, looks, state_bytes, walk

from halfseen import (
    AmbientOful,
    Decision,
    LatentUcb,
    TofuPov,
    UnknownDecisionError,
    archive,
    load,
)
from robustness.faults import Interrupter


def tofu(**settings):
    basics = {"dim": 6, "rank": 2, "observe_prob": 0.7, "burn_in": 5, "noise_scale": 0.1}
    return TofuPov(**(basics | settings))


@pytest.fixture
def saved(tmp_path):
    """Return a file, and a decision that is open in it."""
    policy, rounds = tofu(), few_arms(9)
    walk(policy, rounds[:8])
    decision = policy.choose(rounds[8].table)
    policy.save(tmp_path / "policy")
    return tmp_path / "policy", decision


def test_two_loaders_of_one_file_never_give_one_id_to_two_decisions(saved):
    path, _ = saved
    rounds = few_arms(5, seed=1)
    first, second = (
        [each.choose(offer.table) for offer in rounds] for each in map(load, [path] * 2)
    )
    assert [looks(each) for each in first] == [looks(each) for each in second]
    assert not {each.id for each in first} & {each.id for each in second}


def test_a_decision_that_was_open_in_a_file_is_learned_once_by_each_loader(saved):
    path, decision = saved
    for policy in (load(path), load(path)):
        policy.learn(decision.id, 0.5)
        with pytest.raises(UnknownDecisionError, match="has been learned or forgotten since"):
            policy.learn(decision.id, 0.5)


@pytest.mark.parametrize(
    "edit", [{"round": 2**63}, {"epoch": 0}, {"epoch": 10**6}, {"values": [9.0] * 6}], ids=str
)
def test_a_decision_that_was_edited_on_its_way_counts_by_its_id_alone(saved, edit):
    path, decision = saved
    plain, edited = load(path), load(path)
    plain.learn(decision, 0.5)
    edited.learn(Decision.from_dict(decision.to_dict() | edit), 0.5)
    assert state_bytes(edited) == state_bytes(plain)


def test_forgotten_decisions_are_counted_logged_and_saved(tmp_path, caplog):
    policy = tofu(max_open=3)
    with caplog.at_level(logging.WARNING, logger="halfseen"):
        decisions = [policy.choose(offer.table) for offer in few_arms(8)]
    assert (policy.n_forgotten, policy.n_open) == (5, 3)
    for n, record in zip((1, 2, 4), caplog.records, strict=True):
        assert f"{n} so far" in record.message
    assert decisions[0].id in caplog.records[0].message
    policy.save(tmp_path / "policy")
    assert load(tmp_path / "policy").n_forgotten == 5
    with pytest.raises(UnknownDecisionError, match="max_open = 3 decisions waited"):
        policy.learn(decisions[0], 1.0)


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
    assert np.isfinite(ours[-1].scores).all()


def test_a_copy_gives_other_ids_and_knows_nothing_of_later_decisions():
    policy = tofu()
    for other in (copy.deepcopy(policy), copy.copy(policy), pickle.loads(pickle.dumps(policy))):
        table = few_arms(1)[0].table
        decision, theirs = policy.choose(table), other.choose(table)
        assert decision.id != theirs.id
        with pytest.raises(UnknownDecisionError):
            other.learn(decision, 1.0)


def test_a_given_burn_in_policy_is_shared_with_nobody():
    given = AmbientOful(dim=4)
    first, second = (
        TofuPov(dim=4, rank=1, observe_prob=0.5, burn_in=50, burn_in_policy=given) for _ in range(2)
    )
    arms = np.eye(4)
    for _ in range(5):
        ours, theirs = first.choose(arms[:1]), second.choose(arms[1:2])
        first.learn(ours, 1.0)
        second.learn(theirs, -1.0)
    assert first._burner._model._inner.gram.diagonal().round(9).tolist() == [6.0, 1.0, 1.0, 1.0]
    assert second._burner._model._inner.gram.diagonal().round(9).tolist() == [1.0, 6.0, 1.0, 1.0]
    assert given._model.n_samples == 0


def test_a_tree_does_not_change_with_the_policy():
    policy, rounds = LatentUcb(memory_bytes=2000), few_arms(12)
    walk(policy, rounds[:10])
    tree = policy.to_tree()
    before = archive.to_bytes(tree)
    walk(policy, rounds[10:])
    assert archive.to_bytes(tree) == before


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


def test_an_interrupt_while_the_oldest_is_forgotten_changes_nothing():
    """Also the earliest interrupts and the latest ones, which come after the change."""
    for at in range(1, 400):
        policy = tofu(max_open=2)
        decisions = [policy.choose(offer.table) for offer in few_arms(2)]
        before = policy.to_tree()
        try:
            with Interrupter("line", at):
                policy.choose(few_arms(1, seed=1)[0].table)
        except KeyboardInterrupt:
            pass
        done = policy.round == 3
        assert policy.n_open == 2
        assert policy.n_forgotten == done
        assert (decisions[0].id in policy._open) != done
        if not done:
            assert archive.to_bytes(policy.to_tree()) == archive.to_bytes(before)
