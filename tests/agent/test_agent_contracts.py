"""What holds for an agent around every policy; and each check finds the fault it is there for."""

from functools import partial

import numpy as np
import pytest

from halfseen import (
    Agent,
    AmbientOful,
    Greedy,
    Imputed,
    LatentUcb,
    LinearThompson,
    Oracle,
    PerArmRidge,
    Pslb,
    SameArm,
    SignSeeker,
    Standardized,
    TofuPov,
    TwoPhase,
    Uniform,
)
from halfseen.policies import registry
from halfseen.testing import agent_checks, check_agent

BASICS = {"dim": 6, "rank": 2, "observe_prob": 0.7, "noise_scale": 0.1}
POLICIES = [
    AmbientOful(dim=2),
    Greedy(dim=1),
    Imputed(dim=6, first_fit=3),
    LatentUcb(),
    LinearThompson(dim=6),
    Oracle(basis=np.eye(6)[:, :2]),
    PerArmRidge(dim=6),
    Pslb(**BASICS, burn_in=5),
    SameArm(dim=3),
    SignSeeker(dim=4),
    Standardized(dim=6, indicators=True, first_fit=3),
    TofuPov(**BASICS, burn_in=5),
    TwoPhase(**BASICS, split=5, horizon=100),
    Uniform(dim=6),
]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_an_agent_keeps_its_contracts_around(policy):
    check_agent(partial(Agent, policy=policy))


def test_every_policy_of_the_package_is_tried():
    shipped = [
        each for each in registry.all_policies().values() if each.__module__.startswith("halfseen.")
    ]
    assert {type(policy) for policy in POLICIES} == set(shipped)


class TakesPositions(Agent):
    def choose(self, options, *, context=None):
        return super().choose([list(row.values()) for row in options])


class LearnsTwice(Agent):
    def learn(self, decision, reward):
        waiting = {each.id for each in self.pending}
        super().learn(decision if decision in waiting else next(iter(waiting)), reward)


class KeepsWhatItRefused(Agent):
    def choose(self, options, *, context=None):
        if options:
            self.observe([{"number 0": 9.0}], [9.0])
        return super().choose(options)


class CountsItsScores(Agent):
    def score(self, options, *, context=None):
        scored = super().score(options)
        super().observe(options, [each.estimate + 1.0 for each in scored])
        return scored


class LearnsTheStartOfALog(Agent):
    def observe(self, table, rewards, *, context=None):
        super().observe(table[:1], rewards[:1])


class ForgetsWhatWaits(Agent):
    def save(self, path):
        self._core.waiting._waiting.clear()
        super().save(path)


FAULTY = {
    "names_decide_and_not_positions": TakesPositions,
    "a_reward_is_learned_once_by_id": LearnsTwice,
    "a_refused_table_changes_nothing": KeepsWhatItRefused,
    "scores_change_nothing": CountsItsScores,
    "a_log_may_come_in_any_parts": LearnsTheStartOfALog,
    "a_saved_agent_goes_on": ForgetsWhatWaits,
}


def test_every_check_has_a_fault_to_find():
    assert {str(check) for check in agent_checks()} == FAULTY.keys()


@pytest.mark.parametrize("name", FAULTY)
def test_the_check_finds_a_faulty_agent(name):
    (check,) = (check for check in agent_checks() if check.name == name)
    with pytest.raises(AssertionError, match=name):
        check(lambda: FAULTY[name](policy=AmbientOful(dim=1)))
