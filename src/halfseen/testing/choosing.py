"""Contracts of a policy: how it is made and saved, what it sees, and how it chooses."""

import json

import numpy as np

from halfseen.errors import InvalidSettingError
from halfseen.testing.check import Check, expect
from halfseen.testing.rounds import (
    FEW,
    Factory,
    copy_of,
    expect_same,
    expect_scores,
    looks,
    offers,
    state_bytes,
    twin_of,
    walk,
)
from halfseen.values import LARGEST, Decision, FloatArray, Slate

# Policies may collect arms in blocks, of 1024 say: one slate fills such a block, one overflows it.
_WIDE = (*FEW, 988, *FEW, 1100, *FEW, *FEW)


# Construction, saving and loading: the later checks rely on these


@Check
def same_seed_same_trace(factory: Factory) -> None:
    """Two fresh policies that see the same rounds make the same decisions, bit by bit."""
    policy, other = factory(), factory()
    rounds = offers(50, policy)
    for decision, expected in zip(walk(other, rounds), walk(policy, rounds), strict=True):
        expect_same(decision, expected, "in the second policy")


@Check
def settings_build_an_equal_policy(factory: Factory) -> None:
    """`settings()` are plain JSON types, and the constructor builds an equal policy from them."""
    policy = factory()
    settings = policy.settings()
    plain = json.loads(json.dumps(settings, allow_nan=False))
    expect(plain == settings, f"JSON makes {plain} of {settings}")
    again = type(policy)(**plain)
    expect(again.settings() == settings, f"the other policy has the settings {again.settings()}")
    rounds = offers(20, policy)
    for decision, expected in zip(walk(again, rounds), walk(policy, rounds), strict=True):
        expect_same(decision, expected, "in the policy built from its settings")


@Check
def repr_shows_what_is_not_default(factory: Factory) -> None:
    """`repr` has the name of the class and every parameter that is not at its default."""
    policy = factory()
    settings, shown = policy.settings(), repr(policy)
    expect(shown.startswith(f"{type(policy).__name__}("), f"got {shown}")
    for name in settings:
        try:
            others = {key: value for key, value in settings.items() if key != name}
            is_default = type(policy)(**others).settings() == settings
        except (TypeError, InvalidSettingError):
            is_default = False
        expect(is_default or f"{name}=" in shown, f"{name} is missing in {shown}")


@Check
def a_saved_policy_goes_on_bit_by_bit(factory: Factory) -> None:
    """Saving and loading a policy at any time, with rewards to come, changes no later decision."""
    policy = factory()
    every = {"every 2 rounds": 2, "every 9 rounds": 9}
    copies = {when: copy_of(policy) for when in every}
    waiting: list[tuple[list[Decision], float]] = []
    sizes = (*_WIDE[:9], *FEW, *FEW, *FEW)
    for index, (table, rewards) in enumerate(offers(33, policy, sizes=sizes)):
        copies |= {when: copy_of(copies[when]) for when in every if index % every[when] == 0}
        decision = policy.choose(table)
        theirs = {when: other.choose(table) for when, other in copies.items()}
        for when, other_decision in theirs.items():
            expect_same(other_decision, decision, f"saved {when}")
        waiting.append(([decision, *theirs.values()], float(rewards[decision.arm])))
        if len(waiting) > 4:
            decisions, reward = waiting.pop(index % 4)
            for each, late in zip((policy, *copies.values()), decisions, strict=True):
                each.learn(late, reward)
    for when, other in copies.items():
        same = state_bytes(other) == state_bytes(policy)
        expect(same, f"saved {when}: the end has other bytes")


# Hidden values and inputs


@Check
def hidden_values_are_irrelevant(factory: Factory) -> None:
    """The value of a hidden entry never changes a decision."""
    policy = factory()
    others = {poison: twin_of(policy) for poison in (np.nan, np.inf, 1e300, -1e300)}
    for table, rewards in offers(14, policy):
        expected = policy.choose(table)
        mask = ~np.isnan(table)
        policy.learn(expected, rewards[expected.arm])
        for poison, other in others.items():
            decision = other.choose(Slate(np.where(mask, table, poison), mask))
            expect_same(decision, expected, f"with {poison} where hidden")
            other.learn(decision, rewards[decision.arm])


@Check
def inputs_are_neither_changed_nor_kept(factory: Factory) -> None:
    """A policy does not change the arrays that it is offered, and later changes do not matter."""
    policy = factory()
    for table, rewards in offers(14, policy):
        offered = table.copy()
        policy.absorb(offered)
        decision = policy.choose(offered)
        expect(offered.tobytes() == table.tobytes(), f"round {decision.round} changed its options")
        expect(offered.flags.writeable, "the options were made read-only")
        before, shown = state_bytes(policy), looks(decision)
        offered[:] = 7.0
        expect(state_bytes(policy) == before, "the policy kept the caller's array")
        expect(looks(decision) == shown, "the decision kept the caller's array")
        policy.learn(decision, rewards[decision.arm])


# Choices


@Check
def decisions_show_what_was_chosen(factory: Factory) -> None:
    """A decision has its round, counted from 1, its arm as it was seen, and a score per arm."""
    policy = factory()
    expect(policy.round == 0, f"a fresh policy is in round {policy.round}")
    for number, (table, rewards) in enumerate(offers(34, policy, sizes=_WIDE), start=1):
        decision = policy.choose(table)
        expect((decision.round, policy.round) == (number, number), f"round {number} has another")
        expect(0 <= decision.arm < len(table), f"arm {decision.arm} of {len(table)} was chosen")
        arm = table[decision.arm]
        expect(np.array_equal(decision.values, np.nan_to_num(arm)), "values of another arm")
        expect(np.array_equal(decision.mask, ~np.isnan(arm)), "the mask of another arm")
        expect_scores(decision, len(table))
        policy.learn(decision, rewards[decision.arm])


@Check
def the_best_score_is_chosen(factory: Factory) -> None:
    """No arm has a better score than the chosen one, unless the choice was drawn."""
    policy = factory()
    for decision in walk(policy, offers(30, policy)):
        best = int(decision.scores.argmax())
        expect(
            decision.scores[decision.arm] == decision.scores[best] or decision.probability < 1.0,
            f"round {decision.round}: arm {decision.arm} was chosen, arm {best} has a better score",
        )


@Check
def probabilities_add_up(factory: Factory) -> None:
    """Each decision has a probability per arm; they add up, and the chosen one's is not 0."""
    policy = factory()
    for decision in walk(policy, offers(30, policy)):
        law, n_arms = decision.probabilities, len(decision.scores)
        expect(law.shape == (n_arms,), f"probabilities have shape {law.shape} for {n_arms} arms")
        adds_up = bool((law >= 0.0).all()) and abs(law.sum() - 1.0) <= 1e-9
        expect(adds_up, f"round {decision.round}: probabilities {law} do not add up to 1")
        expect(decision.probability == law[decision.arm] > 0.0, "the chosen arm was impossible")


@Check
def permuting_arms_permutes_the_choice(factory: Factory) -> None:
    """The order of the arms does not matter, unless the best scores are equal."""
    policy = factory()
    random = np.random.default_rng(5)
    for table, rewards in offers(18, policy):
        order = random.permutation(len(table))
        permuted = twin_of(policy).choose(table[order])
        decision = policy.choose(table)
        near = np.allclose(permuted.scores, decision.scores[order], rtol=1e-9, atol=1e-12)
        expect(near, f"round {decision.round}: scores depend on the order of the arms")
        chosen = int(order[permuted.arm])
        expect(
            chosen == decision.arm or _has_ties(decision.scores),
            f"round {decision.round}: arm {chosen} instead of {decision.arm} in another order",
        )
        policy.learn(decision, rewards[decision.arm])


@Check
def an_arm_with_nothing_seen_is_legal(factory: Factory) -> None:
    """An arm of which nothing is seen can be offered, also alone."""
    policy = factory()
    for table, rewards in offers(30, policy):
        table[0] = np.nan
        decision = policy.choose(table)
        expect_scores(decision, len(table))
        policy.learn(decision, rewards[decision.arm])


@Check
def scores_stay_finite_at_the_limits(factory: Factory) -> None:
    """Entries and rewards of sizes from 1e-100 to 1e100, now and then, give finite scores."""
    for scale in (1e-100, 1e99):
        policy = factory()
        for table, rewards in offers(40, policy, sizes=(4,)):
            factor = scale if policy.round % 3 == 1 else 1.0
            decision = policy.choose(np.clip(factor * table, -LARGEST, LARGEST))
            expect_scores(decision, len(table))
            policy.learn(decision, np.clip(factor * rewards[decision.arm], -LARGEST, LARGEST))
        expect(state_bytes(copy_of(policy)) == state_bytes(policy), "a saved copy differs")


def _has_ties(scores: FloatArray) -> bool:
    near = np.isclose(scores, scores.max(), rtol=1e-9, atol=1e-12)
    return int(near.sum()) > 1
