"""The contracts of a policy, one function per claim."""

import json
from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np

from halfseen.errors import (
    InvalidRewardError,
    InvalidSettingError,
    InvalidSlateError,
    UnknownDecisionError,
)
from halfseen.policies.base import Policy
from halfseen.testing.check import Check, expect, expect_refusal, run_checks
from halfseen.testing.rounds import FEW, copy_of, looks, offers, state_bytes, state_size, walk
from halfseen.values import LARGEST, Decision, FloatArray, Slate

Factory = Callable[[], Policy]

# Policies may collect arms in blocks, of 1024 say: once such a block fills up, once it overflows.
_WIDE = (*FEW, 988, *FEW, 1100, *FEW, *FEW)
# Nothing happened yet; early; later, with whatever a policy does in between.
_MOMENTS = (0, 3, 5, 8)


def check_policy(factory: Factory, *, skip: Collection[str] = ()) -> None:
    """Check that policies keep their contracts.

    Parameters
    ----------
    factory : callable
        Called without arguments, returns a fresh policy, always with the same parameters. Where
        the policy takes a horizon, 100 rounds are enough.
    skip : names of checks
        Claims that the policy does not make, such as `memory_is_bounded`.

    Raises
    ------
    AssertionError
        A claim does not hold; the message says which one, and how it failed.

    Examples
    --------
    >>> from halfseen import AmbientOful
    >>> check_policy(lambda: AmbientOful(dim=4))
    """
    run_checks(policy_checks(), factory, skip)


def policy_checks() -> tuple[Check, ...]:
    """Return the single checks, each to be called with a factory."""
    return tuple(value for value in globals().values() if isinstance(value, Check))


# Made, saved and loaded: the later checks build on these


@Check
def same_seed_same_trace(factory: Factory) -> None:
    """Two fresh policies that are offered the same decide the same, bit by bit."""
    policy, other = factory(), factory()
    rounds = offers(50, policy)
    for decision, expected in zip(walk(other, rounds), walk(policy, rounds), strict=True):
        _expect_same(decision, expected, "in the second policy")


@Check
def settings_build_an_equal_policy(factory: Factory) -> None:
    """`settings()` are plain JSON types, and the constructor makes an equal policy of them."""
    policy = factory()
    settings = policy.settings()
    plain = json.loads(json.dumps(settings, allow_nan=False))
    expect(plain == settings, f"JSON makes {plain} of {settings}")
    again = type(policy)(**plain)
    expect(again.settings() == settings, f"the other policy has the settings {again.settings()}")
    rounds = offers(20, policy)
    for decision, expected in zip(walk(again, rounds), walk(policy, rounds), strict=True):
        _expect_same(decision, expected, "in the policy made of the settings")


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
    every = {"every round": 1, "every 10 rounds": 10}
    copies = {when: copy_of(policy) for when in every}
    waiting: list[tuple[Decision, float]] = []
    sizes = (*_WIDE[:9], *FEW, *FEW, *FEW, *FEW, *FEW)
    for index, (table, rewards) in enumerate(offers(49, policy, sizes=sizes)):
        copies |= {when: copy_of(copies[when]) for when in every if index % every[when] == 0}
        decision = policy.choose(table)
        for when, other in copies.items():
            _expect_same(other.choose(table), decision, f"saved {when}")
        waiting.append((decision, float(rewards[decision.arm])))
        if len(waiting) > 4:
            late = waiting.pop(index % 4)
            for each in (policy, *copies.values()):
                each.learn(*late)
    for when, other in copies.items():
        same = state_bytes(other) == state_bytes(policy)
        expect(same, f"saved {when}: the end has other bytes")


# Hidden values and inputs


@Check
def hidden_values_are_irrelevant(factory: Factory) -> None:
    """What stands at a hidden entry never changes a decision."""
    policy = factory()
    others = {poison: copy_of(policy) for poison in (np.nan, np.inf, 1e300, -1e300)}
    for table, rewards in offers(14, policy):
        expected = policy.choose(table)
        mask = ~np.isnan(table)
        policy.learn(expected, rewards[expected.arm])
        for poison, other in others.items():
            decision = other.choose(Slate(np.where(mask, table, poison), mask))
            _expect_same(decision, expected, f"with {poison} where hidden")
            other.learn(decision, rewards[decision.arm])


@Check
def inputs_are_neither_changed_nor_kept(factory: Factory) -> None:
    """Offered arrays stay as they are, and what happens to them afterwards does not matter."""
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
        _expect_scores(decision, len(table))
        policy.learn(decision, rewards[decision.arm])


@Check
def the_best_score_is_chosen(factory: Factory) -> None:
    """No arm has a better score than the chosen one."""
    policy = factory()
    for decision in walk(policy, offers(30, policy)):
        best = int(decision.scores.argmax())
        expect(
            decision.scores[decision.arm] == decision.scores[best],
            f"round {decision.round}: arm {decision.arm} was chosen, arm {best} has a better score",
        )


@Check
def permuting_arms_permutes_the_choice(factory: Factory) -> None:
    """The order of the arms does not matter, unless the best scores are equal."""
    policy = factory()
    random = np.random.default_rng(5)
    for table, rewards in offers(30, policy):
        order = random.permutation(len(table))
        permuted = copy_of(policy).choose(table[order])
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
        _expect_scores(decision, len(table))
        policy.learn(decision, rewards[decision.arm])


@Check
def scores_stay_finite_at_the_limits(factory: Factory) -> None:
    """Entries and rewards of sizes from 1e-100 to 1e100, now and then, give finite scores."""
    for scale in (1e-100, 1e99):
        policy = factory()
        for table, rewards in offers(40, policy, sizes=(4,)):
            factor = scale if policy.round % 3 == 1 else 1.0
            decision = policy.choose(np.clip(factor * table, -LARGEST, LARGEST))
            _expect_scores(decision, len(table))
            policy.learn(decision, np.clip(factor * rewards[decision.arm], -LARGEST, LARGEST))
        expect(state_bytes(copy_of(policy)) == state_bytes(policy), "a saved copy differs")


# Rewards


@Check
def late_rewards_are_accepted(factory: Factory) -> None:
    """Rewards come late and in any order."""
    policy = factory()
    rounds = offers(40, policy)
    decisions = [policy.choose(table) for table, _ in rounds]
    expect(policy.n_open == 40, f"{policy.n_open} of 40 decisions are open")
    for index in np.random.default_rng(0).permutation(40):
        policy.learn(decisions[index], rounds[index].rewards[decisions[index].arm])
    expect(policy.n_open == 0, f"{policy.n_open} decisions are open after all rewards came")
    _expect_scores(policy.choose(rounds[0].table), len(rounds[0].table))


@Check
def a_reward_counts_once(factory: Factory) -> None:
    """The second reward of a decision is refused and changes nothing."""
    policy = factory()
    decisions = walk(policy, offers(14, policy))
    before = state_bytes(policy)
    for decision in decisions:
        for name in (decision, decision.id):
            expect_refusal(
                policy.learn, name, 0.5, error=UnknownDecisionError, what="a second reward"
            )
    expect(state_bytes(policy) == before, "a second reward changed the policy")


@Check
def what_the_policy_remembers_decides(factory: Factory) -> None:
    """A decision counts by its id: as it is, from JSON, edited, or the id alone."""
    policy = factory()
    by_id, by_json, edited = copy_of(policy), copy_of(policy), copy_of(policy)
    for table, rewards in offers(30, policy):
        decision = policy.choose(table)
        reward = float(rewards[decision.arm])
        policy.learn(decision, reward)
        by_id.learn(by_id.choose(table).id, reward)
        by_json.learn(Decision.from_json(by_json.choose(table).to_json()), reward)
        plain = edited.choose(table).to_dict()
        plain |= {"round": 2**63, "epoch": 7, "values": [9.0, *plain["values"]]}
        edited.learn(Decision.from_dict(plain), reward)
    expected = state_bytes(policy)
    for other, what in ((by_id, "an id"), (by_json, "JSON"), (edited, "an edited decision")):
        expect(state_bytes(other) == expected, f"{what} taught something else than the decision")


@Check
def beyond_max_open_the_oldest_is_forgotten(factory: Factory) -> None:
    """At most `max_open` decisions wait for their rewards, the latest ones."""
    made = factory()
    policy = type(made)(**made.settings() | {"max_open": 3})
    decisions = [policy.choose(table) for table, _ in offers(20, policy)]
    expect(policy.n_open == 3, f"{policy.n_open} decisions are open with max_open = 3")
    before = state_bytes(policy)
    for decision in decisions[:-3]:
        expect_refusal(
            policy.learn, decision, 0.5, error=UnknownDecisionError, what="a forgotten decision"
        )
    expect(state_bytes(policy) == before, "a forgotten decision changed the policy")
    for decision in decisions[-3:]:
        policy.learn(decision, 0.5)
    expect(policy.n_open == 0, f"{policy.n_open} decisions are open after all rewards came")


# A failed call changes nothing


@Check
def bad_slates_change_nothing(factory: Factory) -> None:
    """Options that are not a slate are refused by `choose` and `absorb`, and change nothing."""
    for policy, _, before in _moments(factory):
        for what, options in _bad_slates(policy.dim):
            for call in (policy.choose, policy.absorb):
                expect_refusal(call, options, error=InvalidSlateError, what=what)
            expect(state_bytes(policy) == before, f"{what} changed the policy")


@Check
def bad_rewards_change_nothing(factory: Factory) -> None:
    """A reward that is not a finite number is refused and changes nothing."""
    bad: tuple[Any, ...] = (np.nan, np.inf, -1e300, 10**400, None, "1.0", 1.0 + 0.0j, [0.5])
    for policy, decisions, before in _moments(factory):
        for reward in bad:
            for decision in decisions:
                what = f"the reward {reward!r:.9}"
                expect_refusal(policy.learn, decision, reward, error=InvalidRewardError, what=what)
            expect(state_bytes(policy) == before, f"the reward {reward!r:.9} changed the policy")


@Check
def unknown_decisions_change_nothing(factory: Factory) -> None:
    """A decision of another policy, or what is no decision, is refused and changes nothing."""
    for policy, _, before in _moments(factory):
        twin = factory()
        theirs = [twin.choose(table) for table, _ in offers(policy.round + 1, twin, sizes=(4,))]
        nonsense: tuple[Any, ...] = ("id", None, 0, {})
        for unknown in (*theirs[-2:], theirs[-1].id, *nonsense):
            expect_refusal(
                policy.learn, unknown, 0.5, error=UnknownDecisionError, what=repr(unknown)
            )
            expect(state_bytes(policy) == before, f"{unknown!r} changed the policy")


# Memory


@Check
def memory_is_bounded(factory: Factory) -> None:
    """The state does not grow with the number of rounds, once some were played."""
    policy = factory()
    rounds = offers(4, policy, sizes=(256,))

    def largest(n_rounds: int) -> int:
        sizes = []
        for index in range(n_rounds):
            walk(policy, [rounds[index % 4]])
            sizes.append(state_size(policy.to_tree()))
        return max(sizes[-8:])

    early, late = largest(32), largest(64)
    # Less than one number per round; a record per epoch is no growth worth the name.
    room = max(8 * 64, early // 20)
    expect(late < early + room, f"{early} bytes after 32 rounds, {late} after 96")


# Tools


def _expect_same(decision: Decision, expected: Decision, where: str) -> None:
    arms = f"arm {decision.arm} instead of {expected.arm}"
    how = arms if decision.arm != expected.arm else "the same arm, but other scores"
    expect(looks(decision) == looks(expected), f"round {expected.round}, {where}: {how}")


def _expect_scores(decision: Decision, n_arms: int) -> None:
    scores, estimates, widths = parts = decision.scores, decision.estimates, decision.widths
    where = f"round {decision.round}"
    for part in parts:
        expect(part.shape == (n_arms,), f"{where}: {part.shape[0]} scores for {n_arms} arms")
        expect(np.isfinite(part).all(), f"{where}: a score is not finite: {part}")
    expect(np.array_equal(scores, estimates + widths), f"{where}: score ≠ estimate + width")


def _has_ties(scores: FloatArray) -> bool:
    near = np.isclose(scores, scores.max(), rtol=1e-9, atol=1e-12)
    return int(near.sum()) > 1


def _moments(factory: Factory) -> Iterator[tuple[Policy, list[Decision], bytes]]:
    """Yield a policy at several times, its open decisions (two after any round) and its bytes."""
    for n_rounds in _MOMENTS:
        policy = factory()
        rounds = offers(n_rounds, policy, sizes=(4,))
        walk(policy, rounds[:-2])
        decisions = [policy.choose(table) for table, _ in rounds[-2:]]
        yield policy, decisions, state_bytes(policy)


def _bad_slates(dim: int | None) -> Iterator[tuple[str, Any]]:
    n_features = dim or 6
    table = np.ones((3, n_features))
    yield "no options", None
    yield "one arm without its slate", table[0]
    yield "a slate without arms", table[:0]
    yield "a table of texts", [["x"] * n_features]
    yield "an infinite entry", np.where(np.arange(n_features) == 0, np.inf, table)
    yield "a huge entry", np.where(np.arange(n_features) == 0, -1e300, table)
    if dim is not None:
        yield "one feature too many", np.ones((3, n_features + 1))
        yield "a slate of another dimension", Slate(np.ones((3, n_features + 1)))
