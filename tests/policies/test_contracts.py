"""What holds for every policy: all of this applies to a new one as soon as it is registered."""

import math
from functools import partial

import numpy as np
import pytest

from halfseen import (
    ConstantThreshold,
    Imputed,
    InvalidSettingError,
    LatentUcb,
    Oracle,
    Standardized,
    TofuPov,
    TwoPhase,
)
from halfseen.paper import Pslb
from halfseen.policies.registry import all_policies
from halfseen.testing import policy_checks
from halfseen.worlds.base import _KINDS
from halfseen.worlds.masking import _LAWS
from policy_runs import few_arms, offers, twin_of, walk

BASICS = {"dim": 6, "rank": 2, "observe_prob": 0.7, "burn_in": 5, "noise_scale": 0.1}
WITHOUT_RANK = {name: value for name, value in BASICS.items() if name != "rank"}
WITHOUT_BURN_IN = {name: value for name, value in BASICS.items() if name != "burn_in"}
NESTED = {"dim": 6, "rank": 1, "observe_prob": 0.7, "burn_in": 2, "noise_scale": 0.1}


def nested():
    inner = TofuPov(**NESTED, replay="none")
    return TofuPov(**BASICS | {"burn_in": 20, "replay": "none"}, burn_in_policy=inner)


CASES = {
    "practical": partial(TofuPov.practical, **BASICS, horizon=100),
    "full replay": partial(TofuPov.full_history, **BASICS, horizon=100),
    "no replay": partial(TofuPov, **BASICS, replay="none"),
    "rank-adaptive": partial(TofuPov.rank_adaptive_full_history, **WITHOUT_RANK),
    "unknown probability": partial(TofuPov, **BASICS | {"observe_prob": None}),
    "imputation without ridge": partial(TofuPov, **BASICS, impute_ridge=0.0),
    "algorithm 1": partial(
        TofuPov.algorithm_1, **BASICS, arm_bound=4.0, last_eigenvalue=0.5, impute_ridge=1e-3
    ),
    "algorithm 1 that never finds a rank": partial(
        TofuPov.rank_adaptive_algorithm_1,
        **WITHOUT_RANK,
        arm_bound=4.0,
        last_eigenvalue=0.5,
        impute_ridge=1e-3,
    ),
    "TOFU as burn-in of TOFU": nested,
    "PSLB": partial(Pslb, **BASICS),
    "rank-adaptive PSLB": partial(
        Pslb, **WITHOUT_RANK, rank=ConstantThreshold(value=0.1, floor=0, cap=4)
    ),
    "oracle": partial(Oracle, basis=np.eye(6)[:, :2]),
    "iteratively imputed by Thompson sampling": partial(
        Imputed, dim=6, imputer="iterative", exploration="thompson", first_fit=3, max_rows=30
    ),
    "imputed by a Gaussian": partial(Imputed, dim=6, imputer="gaussian", first_fit=1),
    "standardised with indicators by Thompson sampling": partial(
        Standardized, dim=6, indicators=True, exploration="thompson", first_fit=3
    ),
    "counted probability": partial(TofuPov, **BASICS | {"observe_prob": "counted"}),
    "latent-ucb": partial(LatentUcb, dim=6),
    "latent-ucb without arguments": LatentUcb,
    "latent-ucb of few arms by Thompson sampling": partial(
        LatentUcb, dim=6, exploration="thompson", memory_bytes=480
    ),
    "two-phase": partial(TwoPhase, **WITHOUT_BURN_IN, split=5, horizon=100),
}
SHIPPED = [each for each in all_policies().values() if each.__module__.startswith("halfseen.")]
FACTS = BASICS | {"seed": 0, "horizon": 100}
NAMED = {type(make()) for make in CASES.values()}
CASES |= {
    each.__name__: partial(each, **{name: FACTS[name] for name in each.needs})
    for each in SHIPPED
    if each not in NAMED
}
# Replay of the whole history needs the whole history.
KEEPS_PLAYED = [
    "full replay",
    "rank-adaptive",
    "unknown probability",
    "imputation without ridge",
    "standardised with indicators by Thompson sampling",
    "PerArmRidge",
    "EpsilonGreedy",
    "counted probability",
    "latent-ucb",
    "latent-ucb without arguments",
    "latent-ucb of few arms by Thompson sampling",
]
DRAWS_PARAMETERS = [
    "LinearThompson",
    "iteratively imputed by Thompson sampling",
    "standardised with indicators by Thompson sampling",
    "latent-ucb of few arms by Thompson sampling",
]
SKIPPED = {(name, "memory_is_bounded") for name in KEEPS_PLAYED} | {
    ("imputation without ridge", "an_arm_with_nothing_seen_is_legal"),
}
CONTRACTS = [
    pytest.param(CASES[name], check, id=f"{name}-{check}")
    for name in CASES
    for check in policy_checks()
    if (name, str(check)) not in SKIPPED
]


@pytest.mark.parametrize(("make", "check"), CONTRACTS)
def test_contract(make, check):
    check(make)


@pytest.mark.parametrize("kind", [*SHIPPED, *_KINDS.values(), *_LAWS.values()], ids=repr)
def test_every_setting_refuses_what_is_no_value_of_it_by_name(kind):
    """Settings of worlds and of masks as well."""
    for name, param in kind.parameters.items():
        bad = [object()]
        bad += [math.nan, -math.inf, True] if param.kind == "float" else []
        bad += [-1, 1.5, True] if param.kind == "int" else []
        for value in bad:
            with pytest.raises(InvalidSettingError, match=name):
                param.checked(value)


# What only our own policies promise


def dim_of(name):
    return CASES[name]().dim or 6


@pytest.mark.parametrize("name", [name for name in CASES if name not in DRAWS_PARAMETERS])
def test_scores_are_never_below_estimates(name):
    for decision in walk(CASES[name](), few_arms(40, dim=dim_of(name))):
        assert (decision.widths >= 0.0).all()


@pytest.mark.parametrize(
    "name",
    [name for name in CASES if name not in ("Uniform", "SameArm", "PerArmRidge", "EpsilonGreedy")],
)
def test_among_equally_good_arms_the_first_is_chosen(name):
    policy = CASES[name]()
    walk(policy, few_arms(20, dim=dim_of(name)))
    table = few_arms(1, dim=dim_of(name), seed=1)[0].table
    for n_arms in (2, 9, 33):
        assert twin_of(policy).choose(np.tile(table[0], (n_arms, 1))).arm == 0
    best = twin_of(policy).choose(table).arm
    others = [arm for arm in range(len(table)) if arm != best]
    for first in (1, 7, 8, 11):
        order = [others[index % len(others)] for index in range(first)] + [best, *others, best]
        assert twin_of(policy).choose(table[order]).arm == first


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in CASES
        if name not in ("imputation without ridge", "PerArmRidge", "EpsilonGreedy")
        and "imputed" not in name
        and "standardised" not in name
        and "latent-ucb" not in name
    ],
)
def test_an_arm_with_nothing_seen_scores_nothing(name):
    policy = CASES[name]()
    for table, rewards in few_arms(30, dim=dim_of(name)):
        table[0] = np.nan
        decision = policy.choose(table)
        assert (decision.estimates[0], decision.widths[0]) == (0.0, 0.0)
        policy.learn(decision, rewards[decision.arm])


@pytest.mark.parametrize(
    "name",
    ["Uniform", "LinearThompson", "latent-ucb of few arms by Thompson sampling"],
)
def test_another_seed_is_another_trace(name):
    first, second = (walk(CASES[name](seed=seed), offers(60)) for seed in (1, 2))
    assert [decision.arm for decision in first] != [decision.arm for decision in second]
