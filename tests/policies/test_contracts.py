"""What holds for every policy: a new one joins `CASES` and all of this applies to it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from policy_runs import SIZES, copy_of, few_arms, looks, offers, state_bytes, state_size, walk

from halfseen import (
    AmbientOful,
    ConstantThreshold,
    Decision,
    Greedy,
    HeldOutRank,
    Imputed,
    InvalidRewardError,
    InvalidSlateError,
    LatentUcb,
    LinearThompson,
    Oracle,
    Policy,
    Slate,
    TofuPov,
    TwoPhase,
    Uniform,
    UnknownDecisionError,
    archive,
)
from halfseen.policies import registry
from halfseen.policies.pslb import Pslb
from halfseen.policies.registry import policy_from_tree


@dataclass(frozen=True, kw_only=True)
class Case:
    """One way to build a policy, and which contracts need to know more about it."""

    make: Callable[..., Policy]
    dim: int = 6
    sizes: tuple[int, ...] = SIZES
    compares_from: int | None = 1
    """First round in which the best score wins; None where scores do not matter at all."""
    takes_blind_arms: bool = True
    """Whether an arm with nothing seen can always be offered."""
    keeps_played: bool = True
    """Whether memory grows with the number of played arms."""
    is_optimistic: bool = True
    """Whether scores are never below estimates."""
    fills_in: bool = False
    """Whether an arm with nothing seen is scored by what it is filled in with."""
    knows_dim: bool = True
    """Whether slates of another dimension are refused from the start."""
    restored_every: int = 1
    """Rounds between those from which all later ones are played again; more where that is slow."""

    def offers(self, n_rounds, **others):
        return offers(n_rounds, dim=self.dim, sizes=self.sizes, **others)


BASICS = {"dim": 6, "rank": 2, "observe_prob": 0.7, "burn_in": 5, "noise_scale": 0.1}
WITHOUT_RANK = {name: value for name, value in BASICS.items() if name != "rank"}
WITHOUT_BURN_IN = {name: value for name, value in BASICS.items() if name != "burn_in"}
NESTED = {"dim": 6, "rank": 1, "observe_prob": 0.7, "burn_in": 2, "noise_scale": 0.1}


def nested(**settings):
    inner = TofuPov(**NESTED, replay="none", max_open=settings.get("max_open", 10_000))
    outer = BASICS | {"burn_in": 20, "replay": "none"} | settings
    return TofuPov(**outer, burn_in_policy=inner)


CASES = {
    "practical": Case(make=partial(TofuPov.practical, **BASICS, horizon=100), keeps_played=False),
    "full replay": Case(make=partial(TofuPov.full_history, **BASICS, horizon=100)),
    "no replay": Case(make=partial(TofuPov, **BASICS, replay="none"), keeps_played=False),
    "burn-in replay": Case(make=partial(TofuPov, **BASICS, replay="burn-in"), keeps_played=False),
    "rank-adaptive": Case(
        make=partial(TofuPov.rank_adaptive_full_history, **WITHOUT_RANK, max_rank=4)
    ),
    "unknown probability": Case(make=partial(TofuPov, **BASICS | {"observe_prob": None})),
    "probability per feature": Case(
        make=partial(TofuPov, **BASICS | {"observe_prob": np.linspace(0.6, 0.8, 6)})
    ),
    "epochs growing slowly": Case(make=partial(TofuPov, **BASICS, growth=1.3)),
    "uniform burn-in": Case(
        make=partial(TofuPov, **BASICS, burn_in_policy="uniform", seed=7), compares_from=6
    ),
    "imputation without ridge": Case(
        make=partial(TofuPov, **BASICS, impute_ridge=0.0), takes_blind_arms=False
    ),
    "algorithm 1": Case(
        make=partial(
            TofuPov.algorithm_1, **BASICS, arm_bound=4.0, last_eigenvalue=0.5, impute_ridge=1e-3
        ),
        keeps_played=False,
    ),
    "algorithm 1 that never finds a rank": Case(
        make=partial(
            TofuPov.rank_adaptive_algorithm_1,
            **WITHOUT_RANK,
            arm_bound=4.0,
            last_eigenvalue=0.5,
            impute_ridge=1e-3,
        ),
        keeps_played=False,
    ),
    "TOFU as burn-in of TOFU": Case(make=nested, keeps_played=False),
    "ambient": Case(make=partial(AmbientOful, dim=6, noise_scale=0.1), keeps_played=False),
    "ambient in 150 dimensions": Case(
        make=partial(AmbientOful, dim=150, noise_scale=0.1),
        dim=150,
        sizes=(4, 1, 7, 3, 17, 2),
        keeps_played=False,
    ),
    "PSLB": Case(make=partial(Pslb, **BASICS), keeps_played=False),
    "sampled PSLB": Case(make=partial(Pslb, **BASICS, search="sampled"), keeps_played=False),
    "PSLB every round": Case(
        make=partial(
            Pslb,
            **BASICS,
            refresh="every-round",
            top_eigenvalue=1.0,
            last_eigenvalue=0.5,
            alpha=0.1,
            nuisance_variance=0.01,
        ),
        keeps_played=False,
    ),
    "rank-adaptive PSLB": Case(
        make=partial(
            Pslb,
            **WITHOUT_RANK,
            rank=ConstantThreshold(value=0.1, floor=0, cap=4),
            refresh="every-round",
            search="sampled",
        ),
        keeps_played=False,
    ),
    "Thompson": Case(
        make=partial(LinearThompson, dim=6, noise_scale=0.1),
        keeps_played=False,
        is_optimistic=False,
    ),
    "greedy": Case(make=partial(Greedy, dim=6), compares_from=2, keeps_played=False),
    "oracle": Case(make=partial(Oracle, basis=np.eye(6)[:, :2]), keeps_played=False),
    "oracle by least squares, told of changes": Case(
        make=partial(
            Oracle,
            basis=np.eye(6)[:, :2],
            basis_changes=((9, np.eye(6)[:, 1:4]), (30, np.eye(6)[:, 3:])),
            features="least-squares",
            exploration="thompson",
        ),
        keeps_played=False,
        is_optimistic=False,
    ),
    "imputed by the mean": Case(
        make=partial(Imputed, dim=6, imputer="mean", first_fit=3, max_rows=60),
        keeps_played=False,
        fills_in=True,
    ),
    "likelihood subspace": Case(
        make=partial(TofuPov, **BASICS, subspace="likelihood"), restored_every=11
    ),
    "likelihood subspace of few arms": Case(
        make=partial(TofuPov, **BASICS, subspace="likelihood", memory_bytes=48_000, replay="none"),
        keeps_played=False,
        restored_every=11,
    ),
    "posterior coordinates": Case(
        make=partial(TofuPov, **BASICS, features="posterior-mean"), restored_every=11
    ),
    "held-out rank": Case(
        make=partial(TofuPov, **WITHOUT_RANK, rank=HeldOutRank()), restored_every=11
    ),
    "counted probability": Case(
        make=partial(TofuPov, **BASICS | {"observe_prob": "counted"}), restored_every=11
    ),
    "estimated scales": Case(
        make=partial(
            TofuPov,
            **BASICS | {"noise_scale": "estimated"},
            theta_bound="estimated",
            ridge="estimated",
        ),
        restored_every=11,
    ),
    "TOFU by Thompson sampling": Case(
        make=partial(TofuPov, **BASICS, exploration="thompson"),
        is_optimistic=False,
        restored_every=11,
    ),
    "greedy TOFU": Case(make=partial(TofuPov, **BASICS, exploration="greedy"), restored_every=11),
    "TOFU that may fall back": Case(
        make=partial(TofuPov, **BASICS, fallback=True), restored_every=11
    ),
    "latent-ucb": Case(make=partial(LatentUcb, dim=6), restored_every=11),
    "latent-ucb without arguments": Case(make=LatentUcb, knows_dim=False, restored_every=11),
    "latent-ucb told rank and probability": Case(
        make=partial(LatentUcb, dim=6, rank=2, observe_prob=0.7), restored_every=11
    ),
    "latent-ucb of few arms by Thompson sampling": Case(
        make=partial(LatentUcb, dim=6, exploration="thompson", memory_bytes=4800),
        is_optimistic=False,
        restored_every=11,
    ),
    "greedy latent-ucb of few arms": Case(
        make=partial(LatentUcb, dim=6, exploration="greedy", memory_bytes=4800), restored_every=11
    ),
    "two-phase": Case(
        make=partial(TwoPhase, **WITHOUT_BURN_IN, split=5, horizon=100), keeps_played=False
    ),
    "two-phase from a uniform start": Case(
        make=partial(
            TwoPhase, **WITHOUT_BURN_IN, split=5, first_phase="uniform", replay="burn-in", seed=7
        ),
        compares_from=6,
        keeps_played=False,
    ),
    "uniform": Case(make=partial(Uniform, dim=6, seed=3), compares_from=None, keeps_played=False),
}
COMPARING = {name: case for name, case in CASES.items() if case.compares_from is not None}


def over(cases):
    return pytest.mark.parametrize("case", cases.values(), ids=list(cases))


def test_every_policy_of_the_package_is_under_contract():
    shipped = {
        policy for policy in registry._CLASSES.values() if policy.__module__.startswith("halfseen.")
    }
    assert {type(case.make()) for case in CASES.values()} == shipped


# Hidden values and inputs


@over(CASES)
def test_hidden_values_never_change_a_decision(case):
    random = np.random.default_rng(0)
    policy = case.make()
    other = copy_of(policy)
    for table, rewards in case.offers(30):
        mask = ~np.isnan(table)
        poison = random.choice([np.nan, np.inf, -np.inf, 1e300, -1e300], table.shape)
        expected = policy.choose(table)
        decision = other.choose(Slate(np.where(mask, table, poison), mask))
        assert looks(decision) == looks(expected)
        policy.learn(expected, rewards[expected.arm])
        other.learn(decision, rewards[decision.arm])
    assert state_bytes(other) == state_bytes(policy)


@over(CASES)
def test_inputs_stay_untouched(case):
    policy = case.make()
    for table, rewards in case.offers(20):
        before = table.tobytes()
        policy.absorb(table)
        decision = policy.choose(table)
        policy.learn(decision, rewards[decision.arm])
        assert table.tobytes() == before
        assert table.flags.writeable


@over(CASES)
def test_what_happens_to_an_array_after_it_was_offered_does_not_matter(case):
    policy = case.make()
    for table, rewards in few_arms(14, dim=case.dim):
        scratch = table.copy()
        decision = policy.choose(scratch)
        before, shown = state_bytes(policy), looks(decision)
        scratch[:] = 7.0
        assert state_bytes(policy) == before
        assert looks(decision) == shown
        policy.learn(decision, rewards[decision.arm])


def strided(table):
    wide = np.full((table.shape[0], 2 * table.shape[1]), 1e300)
    wide[:, ::2] = table
    return wide[:, ::2]


def unaligned(table):
    buffer = b"\0" + table.tobytes()
    array = np.frombuffer(buffer, np.float64, table.size, offset=1).reshape(table.shape)
    assert not array.flags.aligned
    return array


def read_only(table):
    table = table.copy()
    table.setflags(write=False)
    return table


FORMS = {
    "slate": Slate,
    "values and mask": lambda table: Slate(np.where(np.isnan(table), 5.0, table), ~np.isnan(table)),
    "values and mask in Fortran order": lambda table: Slate(
        np.asfortranarray(table), np.asfortranarray(~np.isnan(table))
    ),
    "masked array": lambda table: np.ma.array(np.nan_to_num(table), mask=np.isnan(table)),
    "Fortran order": np.asfortranarray,
    "every second column": strided,
    "rows backwards": lambda table: np.ascontiguousarray(table[::-1])[::-1],
    "lists": lambda table: table.tolist(),
    "objects": lambda table: np.where(np.isnan(table), None, table.astype(object)),
    "other byte order": lambda table: table.astype(">f8"),
    "unaligned": unaligned,
    "read-only": read_only,
}


@over(CASES)
@pytest.mark.parametrize("form", FORMS.values(), ids=list(FORMS))
def test_the_form_in_which_a_slate_comes_makes_no_difference(case, form):
    policy = case.make()
    other = copy_of(policy)
    for table, rewards in case.offers(13):
        expected, decision = policy.choose(table), other.choose(form(table))
        assert looks(decision) == looks(expected)
        policy.learn(expected, rewards[expected.arm])
        other.learn(decision, rewards[decision.arm])
    assert state_bytes(other) == state_bytes(policy)


@over(CASES)
def test_the_form_makes_no_difference_when_slates_just_fill_the_block(case):
    sizes = (8, 8, 1000, 8, 8, 1, 1024, 1, 1023, 1, 4, 1025, 4, 1016, 8)
    policy = case.make()
    other = copy_of(policy)
    for table, rewards in offers(30, dim=case.dim, sizes=sizes):
        expected, decision = policy.choose(table), other.choose(Slate(table))
        assert looks(decision) == looks(expected)
        policy.learn(expected, rewards[expected.arm])
        other.learn(decision, rewards[decision.arm])
    assert state_bytes(other) == state_bytes(policy)


# Choices


@over(CASES)
def test_scores_are_estimates_plus_widths(case):
    for decision in walk(case.make(), case.offers(40)):
        assert np.array_equal(decision.scores, decision.estimates + decision.widths)
        assert (decision.widths >= 0.0).all() or not case.is_optimistic


@over(COMPARING)
def test_the_arm_of_the_best_score_is_chosen(case):
    for decision in walk(case.make(), case.offers(40)):
        assert decision.round < case.compares_from or decision.arm == decision.scores.argmax()


@over(COMPARING)
def test_permuting_the_arms_permutes_the_choice(case):
    random = np.random.default_rng(5)
    policy = case.make()
    for table, rewards in case.offers(30):
        order = random.permutation(len(table))
        permuted = copy_of(policy).choose(table[order])
        decision = policy.choose(table)
        if decision.round >= case.compares_from:
            assert order[permuted.arm] == decision.arm
            assert permuted.scores == pytest.approx(decision.scores[order], rel=1e-9, abs=1e-12)
        policy.learn(decision, rewards[decision.arm])


@over(COMPARING)
@pytest.mark.parametrize("n_rounds", [0, 4, 8, 45])
def test_among_equal_arms_the_first_is_chosen(case, n_rounds):
    if n_rounds + 1 < case.compares_from:
        n_rounds = case.compares_from
    policy = case.make()
    walk(policy, case.offers(n_rounds))
    arm = case.offers(1, seed=1)[0].table[0]
    for n_arms in (2, 3, 5, 8, 9, 16, 17, 33):
        assert copy_of(policy).choose(np.tile(arm, (n_arms, 1))).arm == 0


@over(COMPARING)
@pytest.mark.parametrize("n_rounds", [4, 8, 45])
def test_among_equally_good_arms_the_first_is_chosen(case, n_rounds):
    if n_rounds + 1 < case.compares_from:
        n_rounds = case.compares_from
    policy = case.make()
    walk(policy, case.offers(n_rounds))
    table = few_arms(1, dim=case.dim, seed=1)[0].table
    best = copy_of(policy).choose(table).arm
    others = [arm for arm in range(len(table)) if arm != best]
    for first in range(1, 12):
        order = [others[index % len(others)] for index in range(first)] + [best, *others, best]
        assert copy_of(policy).choose(table[order]).arm == first


@over(CASES)
def test_the_number_of_arms_may_change_from_round_to_round(case):
    sizes = (1, 2, 1, 9, 1023, 3, 1, 1024, 1, 1025, 2, 2500, 1)
    policy = case.make()
    rounds = offers(40, dim=case.dim, sizes=sizes)
    for (table, _), decision in zip(rounds, walk(policy, rounds), strict=True):
        assert decision.scores.shape == (len(table),)
        assert np.array_equal(decision.values, np.nan_to_num(table[decision.arm]))
        assert np.array_equal(decision.mask, ~np.isnan(table[decision.arm]))


@over({name: case for name, case in CASES.items() if case.takes_blind_arms})
def test_an_arm_with_nothing_seen_is_legal(case):
    policy = case.make()
    for table, rewards in case.offers(40):
        table[0] = np.nan
        decision = policy.choose(table)
        assert case.fills_in or (decision.estimates[0], decision.widths[0]) == (0.0, 0.0)
        policy.learn(decision, rewards[decision.arm])


@over(CASES)
def test_rounds_are_counted_from_one(case):
    policy = case.make()
    assert policy.round == 0
    assert [decision.round for decision in walk(policy, case.offers(20))] == list(range(1, 21))
    assert policy.round == 20


@over(CASES)
def test_same_seed_same_trace(case):
    first, second = (walk(case.make(), case.offers(60)) for _ in range(2))
    assert [looks(decision) for decision in first] == [looks(decision) for decision in second]


@pytest.mark.parametrize(
    "name",
    [
        "uniform",
        "uniform burn-in",
        "Thompson",
        "TOFU by Thompson sampling",
    ],
)
def test_another_seed_is_another_trace(name):
    case = CASES[name]
    first, second = (walk(case.make(seed=seed), case.offers(60)) for seed in (1, 2))
    assert [decision.arm for decision in first] != [decision.arm for decision in second]


@over(CASES)
@pytest.mark.parametrize("scale", [1e-100, 1e99], ids=["tiny", "huge"])
def test_scores_stay_finite_at_the_limits_of_what_is_allowed(case, scale):
    """Entries and rewards of up to 1e100, now and then, among ordinary ones."""
    policy = case.make()
    for table, rewards in few_arms(40, dim=case.dim):
        factor = scale if policy.round % 3 == 1 else 1.0
        decision = policy.choose(np.clip(factor * table, -1e100, 1e100))
        assert np.isfinite([decision.scores, decision.estimates, decision.widths]).all()
        policy.learn(decision, np.clip(factor * rewards[decision.arm], -1e100, 1e100))
    assert Decision.from_json(decision.to_json()) == decision
    assert state_bytes(copy_of(policy)) == state_bytes(policy)


# Rewards


@over(CASES)
def test_late_and_out_of_order_rewards_are_accepted_once_each(case):
    rounds = case.offers(50)
    policy = case.make()
    decisions = [policy.choose(table) for table, _ in rounds]
    assert policy.n_open == 50
    for index in np.random.default_rng(0).permutation(50):
        decision = decisions[index]
        policy.learn(decision, rounds[index].rewards[decision.arm])
        with pytest.raises(UnknownDecisionError, match="learned before"):
            policy.learn(decision, 1.0)
    assert policy.n_open == 0
    policy.choose(rounds[0].table)


@over(CASES)
def test_a_decision_may_travel_as_json_before_it_is_learned(case):
    policy = case.make()
    other = copy_of(policy)
    for table, rewards in case.offers(30):
        decision = policy.choose(table)
        travelled = Decision.from_json(other.choose(table).to_json())
        policy.learn(decision, rewards[decision.arm])
        other.learn(travelled, rewards[decision.arm])
    assert state_bytes(other) == state_bytes(policy)


@over(CASES)
def test_what_the_policy_remembers_decides_and_not_what_comes_back(case):
    """An edited decision counts by its id, and so does the id alone."""
    policy = case.make()
    edited, by_id = copy_of(policy), copy_of(policy)
    for table, rewards in case.offers(30):
        decision = policy.choose(table)
        plain = edited.choose(table).to_dict()
        plain |= {"round": 2**63, "epoch": 7, "values": [9.0, *plain["values"]]}
        reward = rewards[decision.arm]
        policy.learn(decision, reward)
        edited.learn(Decision.from_dict(plain), reward)
        by_id.learn(by_id.choose(table).id, reward)
    assert state_bytes(edited) == state_bytes(policy)
    assert state_bytes(by_id) == state_bytes(policy)


@over(CASES)
def test_beyond_max_open_the_oldest_decision_is_forgotten(case):
    policy = case.make(max_open=3)
    decisions = [policy.choose(table) for table, _ in case.offers(40)]
    assert policy.n_open == 3
    before = state_bytes(policy)
    for decision in decisions[:-3]:
        with pytest.raises(UnknownDecisionError, match="forgotten because more than max_open = 3"):
            policy.learn(decision, 0.5)
    assert state_bytes(policy) == before
    for decision in decisions[-3:]:
        policy.learn(decision, 0.5)
    assert policy.n_open == 0


# A failed call changes nothing


class Broken:
    """Fails inside of numpy's conversion to an array."""

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("broken inside")


def with_entry(value, dim):
    table = np.ones((3, dim))
    table[1, 2] = value
    return table


BAD_SLATES = {
    "nothing": lambda dim: None,
    "a number": lambda dim: 1.0,
    "a word": lambda dim: "slate",
    "a mapping": lambda dim: {"values": [[1.0] * dim]},
    "one arm without its slate": lambda dim: np.ones(dim),
    "three dimensions": lambda dim: np.ones((2, 2, dim)),
    "no arms": lambda dim: np.empty((0, dim)),
    "no features": lambda dim: np.empty((3, 0)),
    "one feature too few": lambda dim: np.ones((3, dim - 1)),
    "one feature too many": lambda dim: np.ones((3, dim + 1)),
    "transposed": lambda dim: np.ones((dim, 3)),
    "a slate of another dimension": lambda dim: Slate(np.ones((3, dim + 1))),
    "ragged": lambda dim: [[1.0] * dim, [1.0] * (dim - 1)],
    "words inside": lambda dim: [["x"] * dim],
    "complex": lambda dim: np.full((3, dim), 1.0 + 2.0j),
    "a whole number beyond all floats": lambda dim: [[10**400] + [1] * (dim - 1)],
    "infinite entry": lambda dim: with_entry(np.inf, dim),
    "minus infinite entry": lambda dim: with_entry(-np.inf, dim),
    "huge entry": lambda dim: with_entry(1.1e100, dim),
    "huge entry in Fortran order": lambda dim: np.asfortranarray(with_entry(-1e300, dim)),
    "a decision": lambda dim: AmbientOful(dim=dim).choose(np.ones((2, dim))),
}
BAD_REWARDS = {
    "NaN": np.nan,
    "infinite": np.inf,
    "minus infinite": -np.inf,
    "None": None,
    "text": "1.0",
    "complex": 1.0 + 0.0j,
    "huge": 1.1e100,
    "minus huge": -1e300,
    "a whole number beyond all floats": 10**400,
    "a list": [0.5],
    "an array": np.array([0.5]),
}
# Nothing happened yet; in burn-in; an epoch opens with the next choice; inside an epoch.
MOMENTS = (0, 3, 5, 8)


@cache
def at_moment(name, n_rounds):
    """Return a policy with two open decisions (after any round), and its bytes."""
    case = CASES[name]
    policy = case.make()
    rounds = few_arms(n_rounds, dim=case.dim)
    walk(policy, rounds[:-2])
    decisions = [policy.choose(table) for table, _ in rounds[-2:]]
    return policy, decisions, state_bytes(policy)


def over_names(names):
    return pytest.mark.parametrize("name", list(names))


@over_names(CASES)
@pytest.mark.parametrize("bad", BAD_SLATES.values(), ids=list(BAD_SLATES))
def test_a_bad_slate_is_refused_and_changes_nothing(name, bad):
    case = CASES[name]
    options = bad(case.dim)
    for n_rounds in MOMENTS if case.knows_dim else MOMENTS[1:]:
        policy, _, before = at_moment(name, n_rounds)
        for call in (policy.choose, policy.absorb):
            with pytest.raises(InvalidSlateError):
                call(options)
        assert state_bytes(policy) == before


@over_names(CASES)
def test_an_error_from_inside_the_offered_object_changes_nothing(name):
    for n_rounds in MOMENTS:
        policy, _, before = at_moment(name, n_rounds)
        for call in (policy.choose, policy.absorb):
            with pytest.raises(RuntimeError, match="broken inside"):
                call(Broken())
        assert state_bytes(policy) == before


@over_names(CASES)
@pytest.mark.parametrize("reward", BAD_REWARDS.values(), ids=list(BAD_REWARDS))
def test_a_bad_reward_is_refused_and_changes_nothing(name, reward):
    for n_rounds in MOMENTS[1:]:
        policy, decisions, before = at_moment(name, n_rounds)
        with pytest.raises(InvalidRewardError):
            policy.learn(decisions[0], reward)
        assert state_bytes(policy) == before


@over_names(CASES)
def test_a_twins_decision_is_refused_and_changes_nothing(name):
    case = CASES[name]
    for n_rounds in MOMENTS[1:]:
        policy, decisions, before = at_moment(name, n_rounds)
        twin = case.make()
        theirs = walk(twin, few_arms(n_rounds, dim=case.dim))[-2:]
        assert [decision.round for decision in theirs] == [d.round for d in decisions]
        for decision in theirs:
            with pytest.raises(UnknownDecisionError, match="made by another policy"):
                policy.learn(decision, 0.5)
        assert state_bytes(policy) == before


@over_names(CASES)
def test_a_learned_decision_is_refused_and_changes_nothing(name):
    case = CASES[name]
    policy = case.make()
    decisions = walk(policy, few_arms(8, dim=case.dim))
    before = state_bytes(policy)
    for decision in decisions:
        with pytest.raises(UnknownDecisionError, match="learned before"):
            policy.learn(decision, 0.5)
    assert state_bytes(policy) == before


@over_names(CASES)
@pytest.mark.parametrize("wrong", [None, 0, "id", {}, ("a", 1)], ids=repr)
def test_what_is_not_a_decision_is_refused_and_changes_nothing(name, wrong):
    expected = "by another policy" if wrong == "id" else "needs a Decision or the id of one"
    for n_rounds in MOMENTS:
        policy, _, before = at_moment(name, n_rounds)
        with pytest.raises(UnknownDecisionError, match=expected):
            policy.learn(wrong, 0.5)
        assert state_bytes(policy) == before


# Save and load


@over(CASES)
def test_saved_at_any_round_all_later_decisions_are_the_same_bit_by_bit(case):
    """Rewards come up to four rounds late and out of order, so that some are always open."""
    rounds = case.offers(75 if case.dim == 6 else 60)

    def play_on(policy, waiting, start):
        for index in range(start, len(rounds)):
            yield index, policy, list(waiting)
            table, rewards = rounds[index]
            decision = policy.choose(table)
            waiting.append((decision, rewards[decision.arm]))
            if len(waiting) > 4:
                policy.learn(*waiting.pop(index % 4))
            decisions[index] = looks(decision)

    decisions, expected = {}, {}
    policy = case.make()
    saved = [
        (index, state_bytes(policy), waiting)
        for index, policy, waiting in play_on(policy, [], 0)
        if index % case.restored_every == 0
    ]
    expected, end = dict(decisions), state_bytes(policy)
    for index, content, waiting in saved:
        decisions = {}
        restored = policy_from_tree(archive.from_bytes(content)[0])
        assert restored.n_open == len(waiting)
        for _ in play_on(restored, waiting, index):
            pass
        assert decisions == {later: expected[later] for later in range(index, len(rounds))}
        assert state_bytes(restored) == end


@over(CASES)
def test_a_policy_restored_from_its_bytes_has_the_same_bytes(case):
    policy = case.make()
    for table, rewards in few_arms(14, dim=case.dim):
        decision = policy.choose(table)
        assert state_bytes(copy_of(policy)) == state_bytes(policy)
        policy.learn(decision, rewards[decision.arm])
        assert state_bytes(copy_of(policy)) == state_bytes(policy)


@over(CASES)
def test_settings_build_the_same_policy_again(case):
    policy = case.make()
    again = type(policy)(**policy.settings())
    assert again.settings() == policy.settings()
    first, second = walk(policy, case.offers(30)), walk(again, case.offers(30))
    assert [looks(decision) for decision in first] == [looks(decision) for decision in second]


@over({name: case for name, case in CASES.items() if not case.keeps_played})
def test_memory_does_not_grow_with_the_rounds(case):
    """Four slates of 256 arms fill the block in which arms wait, so eight rounds show the most."""
    policy = case.make(**({"horizon": None} if isinstance(case.make(), TofuPov) else {}))
    rounds = offers(8, dim=case.dim, sizes=(256,))

    def largest():
        sizes = []
        for offer in rounds:
            walk(policy, [offer])
            sizes.append(state_size(policy.to_tree()))
        return max(sizes)

    walk(policy, offers(60, dim=case.dim, sizes=(256,), seed=1))
    early = largest()
    for _ in range(20):
        walk(policy, rounds)
    assert largest() < 1.05 * early
