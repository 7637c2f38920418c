"""What holds for an agent around every policy."""

from functools import partial

import numpy as np
import pytest

from halfseen import (
    Agent,
    AmbientOful,
    EpsilonGreedy,
    Greedy,
    Imputed,
    LatentUcb,
    LinearThompson,
    Oracle,
    PerArmRidge,
    SameArm,
    Standardized,
    TofuPov,
    TwoPhase,
    Uniform,
)
from halfseen.paper import Pslb, SignSeeker
from halfseen.policies import registry
from halfseen.testing import check_agent

BASICS = {"dim": 6, "rank": 2, "observe_prob": 0.7, "noise_scale": 0.1}
POLICIES = [
    AmbientOful(dim=2),
    Greedy(dim=1),
    Imputed(dim=6, first_fit=3),
    LatentUcb(),
    LinearThompson(dim=6),
    Oracle(basis=np.eye(6)[:, :2]),
    PerArmRidge(dim=6),
    EpsilonGreedy(dim=6),
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
