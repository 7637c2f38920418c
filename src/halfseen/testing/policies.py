"""Contracts of a policy, one function per claim, and the tools that all checks share."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from copy import deepcopy
from functools import partial
from typing import Any, NamedTuple, TypeVar
from unittest import mock

import numpy as np

from halfseen import archive
from halfseen.errors import InvalidSettingError
from halfseen.policies.abilities import AwaitsRewards, Exploits, Grows, UsesContext
from halfseen.policies.base import Policy
from halfseen.policies.registry import policy_to_dict, restored
from halfseen.values import LARGEST, Decision, FloatArray, Scores, Slate

P = TypeVar("P", bound=Policy)
Factory = Callable[[], Policy]

_DIM = 6  # for a policy that takes its dimension from the first slate
_CONTEXT_DIM = 4
_N_NEW = 2
_TOLERANCE = 1e-6

FEW = (4, 1, 7, 3, 5, 2, 6, 8)
"""Numbers of arms in successive rounds."""

# Policies may collect arms in blocks, of 1024 say: one slate fills one, one overflows it.
_WIDE = (*FEW, 988, *FEW, 1100, *FEW, *FEW)


# A check, and what it may expect


class Check:
    """One claim about what a factory makes, as a function that takes the factory.

    Any error inside becomes an AssertionError that names the check and its claim.

    Attributes
    ----------
    name : str
        As in `skip`.
    claim : str
        One sentence.

    Examples
    --------
    >>> @Check
    ... def three_is_made(factory):
    ...     '''The factory makes 3.'''
    ...     expect(factory() == 3, f"got {factory()}")
    >>> three_is_made(lambda: 3)
    >>> three_is_made(lambda: 4)
    Traceback (most recent call last):
    AssertionError: three_is_made: The factory makes 3. Failed: got 4
    """

    def __init__(self, run: Callable[[Callable[[], Any]], None]) -> None:
        self._run = run
        self.name = run.__name__
        self.claim = (run.__doc__ or "").partition("\n")[0]

    def __call__(self, factory: Callable[[], Any]) -> None:
        """Raise an AssertionError unless the claim holds."""
        try:
            self._run(factory)
        except Exception as error:
            how = str(error) if isinstance(error, AssertionError) else repr(error)
            raise AssertionError(f"{self.name}: {self.claim} Failed: {how}") from error

    def __str__(self) -> str:
        return self.name


def expect(condition: object, how: str) -> None:
    """Raise an AssertionError unless the condition holds (also where `assert` is switched off)."""
    if not condition:
        raise AssertionError(how)


def expect_refusal(
    call: Callable[..., object], *arguments: Any, error: type[Exception], what: str
) -> None:
    """Raise an AssertionError unless the call raises the error."""
    try:
        call(*arguments)
    except error:
        return
    except Exception as other:
        raise AssertionError(f"{what} must raise {error.__name__}, got {other!r}") from other
    raise AssertionError(f"{what} must raise {error.__name__}, but was accepted")


def checks_in(names: dict[str, Any]) -> tuple[Check, ...]:
    """Return the checks of a module in their order."""
    return tuple(value for value in names.values() if isinstance(value, Check))


def run_checks(checks: Iterable[Check], factory: Callable[[], Any], skip: Collection[str]) -> None:
    """Run all checks but those that are skipped by name."""
    by_name = {check.name: check for check in checks}
    for name in skip:
        if name not in by_name:
            raise ValueError(f"skip must name checks of {list(by_name)}, got {name!r}")
    for name, check in by_name.items():
        if name not in skip:
            check(factory)


# Rounds to play, and what can be compared of policies and decisions


class Offer(NamedTuple):
    """One round: arms with NaN where hidden, and what each would pay."""

    table: FloatArray
    rewards: FloatArray


def offers(n_rounds: int, policy: Policy, *, sizes: tuple[int, ...] = FEW) -> list[Offer]:
    """Return rounds for a policy."""
    return offers_in(policy.dim or _DIM, n_rounds, sizes, seed=0)


def offers_in(dim: int, n_rounds: int, sizes: tuple[int, ...], seed: int) -> list[Offer]:
    """Return rounds of arms of rank 2, each arm with at least 3 seen entries."""
    random = np.random.default_rng(seed)
    basis = np.linalg.qr(random.standard_normal((dim, min(dim, 2))))[0]
    theta = basis @ np.array([0.8, -0.6])[:dim]
    rounds = []
    for index in range(n_rounds):
        arms = random.standard_normal((sizes[index % len(sizes)], basis.shape[1])) @ basis.T
        seen = random.random(arms.shape) < 0.7
        seen[seen.sum(axis=1) < 3, :3] = True
        noise = 0.1 * random.standard_normal()
        rounds.append(Offer(np.where(seen, arms, np.nan), arms @ theta + noise))
    return rounds


def walk(policy: Policy, rounds: Iterable[Offer]) -> list[Decision]:
    """Choose and learn in every round and return the decisions."""
    decisions = []
    for table, rewards in rounds:
        decision = policy.choose(table)
        policy.learn(decision, float(rewards[decision.arm]))
        decisions.append(decision)
    return decisions


def state_bytes(policy: Policy) -> bytes:
    """Return all that a file of a policy would contain."""
    return archive.to_bytes(policy_to_dict(policy))


def copy_of(policy: P) -> P:
    """Return a saved and loaded copy of a policy."""
    return restored(type(policy), archive.from_bytes(state_bytes(policy)))


def expect_same(decision: Decision, expected: Decision, where: str) -> None:
    """Raise an AssertionError unless two decisions are the same."""
    arms = f"arm {decision.arm} instead of {expected.arm}"
    how = arms if decision.arm != expected.arm else "the same arm, but other scores"
    expect(decision == expected, f"round {expected.round}, {where}: {how}")


def expect_scores(decision: Decision, n_arms: int) -> None:
    """Raise an AssertionError unless all arms have finite scores, and a sound choice was made."""
    scores, estimates, widths = parts = decision.scores, decision.estimates, decision.widths
    where, law = f"round {decision.round}", decision.probabilities
    for part in (*parts, law):
        expect(part.shape == (n_arms,), f"{where}: {part.shape[0]} scores for {n_arms} arms")
        if not np.isfinite(part).all():  # the message takes longer than the check
            raise AssertionError(f"{where}: a score is not finite: {part}")
    expect(np.array_equal(scores, estimates + widths), f"{where}: score ≠ estimate + width")
    adds_up = law.min() >= 0.0 and abs(law.sum() - 1.0) <= 1e-9
    expect(adds_up, f"{where}: probabilities do not add up to 1")
    expect(decision.probability == law[decision.arm] > 0.0, f"{where}: an impossible choice")
    best = scores[decision.arm] == scores.max() or decision.probability < 1.0
    expect(best, f"{where}: arm {decision.arm} was chosen, another has a better score")


# All contracts together


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
    """Return the individual checks; call each with a factory.

    Examples
    --------
    >>> from halfseen import AmbientOful
    >>> first = policy_checks()[0]
    >>> print(first, first(lambda: AmbientOful(dim=4)))
    same_seed_same_trace None
    """
    return checks_in(globals())


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


@Check
def a_saved_policy_goes_on_bit_by_bit(factory: Factory) -> None:
    """A loaded policy, and decisions from JSON that it learns late, change nothing that follows."""
    policy, other = factory(), factory()
    waiting: list[tuple[Decision, str, float]] = []
    rounds = offers(33, policy, sizes=(*_WIDE[:9], *FEW, *FEW, *FEW))
    contexts = _contexts(33)
    for index, (table, rewards) in enumerate(rounds):
        given = (
            {"context": contexts[index]} if isinstance(policy, UsesContext) and index % 5 else {}
        )
        if index % 4 < 2:
            other = copy_of(other)
        ours, theirs = policy.choose(table, **given), other.choose(table, **given)
        expect_same(theirs, ours, "in the loaded policy")
        waiting.append((ours, json.dumps(theirs.to_dict()), float(rewards[ours.arm])))
        if len(waiting) > 4:
            decision, plain, reward = waiting.pop(index % 4)
            policy.learn(decision, reward)
            other.learn(Decision.from_dict(json.loads(plain)), reward)
    expect(state_bytes(other) == state_bytes(policy), "the end has other bytes")


# Choices


@Check
def every_arm_has_a_score_and_the_best_is_chosen(factory: Factory) -> None:
    """Scores are finite, probabilities add up, and what is not drawn has the best score."""
    policy = factory()
    for table, rewards in offers(34, policy, sizes=_WIDE):
        expect(np.isfinite(policy.score(table)).all(), "`score` is not finite")
        decision = policy.choose(table)
        expect(0 <= decision.arm < len(table), f"arm {decision.arm} of {len(table)} was chosen")
        expect_scores(decision, len(table))
        policy.learn(decision, rewards[decision.arm])


@Check
def deciding_changes_nothing(factory: Factory) -> None:
    """`decide` leaves every attribute as it is, and decides the same when it is asked again."""
    for policy, _, _ in _moments(factory):
        slate = Slate(offers(1, policy, sizes=(4,))[0].table, id="asked twice")
        policy.choose(slate)
        policy.prepare(slate)
        before, saved = policy.__dict__.copy(), state_bytes(policy)
        hooks = [policy.decide, *([policy.exploit] if isinstance(policy, Exploits) else [])]
        for hook in hooks:
            ours, theirs = hook(slate), hook(slate)
            same = ours.arm == theirs.arm and np.array_equal(ours.parts, theirs.parts)
            expect(same, f"{hook.__name__} decides another time otherwise")
            changed = [
                name for name, value in vars(policy).items() if value is not before.get(name)
            ]
            expect(
                not changed, f"{hook.__name__} changes {changed}: change it in prepare or advance"
            )
            expect(state_bytes(policy) == saved, f"{hook.__name__} changes what is saved")


@Check
def permuting_arms_permutes_the_choice(factory: Factory) -> None:
    """The order of the arms does not matter, unless the best scores are equal."""
    policy = factory()
    random = np.random.default_rng(5)
    for table, rewards in offers(18, policy):
        order = random.permutation(len(table))
        permuted = deepcopy(policy).choose(table[order])
        decision = policy.choose(table)
        near = np.allclose(permuted.scores, decision.scores[order], rtol=1e-9, atol=1e-12)
        expect(near, f"round {decision.round}: scores depend on the order of the arms")
        chosen = int(order[permuted.arm])
        scores = decision.scores
        n_best = np.isclose(scores, scores.max(), rtol=1e-9, atol=1e-12).sum()
        expect(
            chosen == decision.arm or n_best > 1,
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


# A failed call changes nothing


@Check
def hooks_replace_and_do_not_edit(factory: Factory) -> None:
    """A hook that fails at its end leaves no trace: it replaces what attributes hold."""
    for policy, decisions, before in _moments(factory):
        table = offers(1, policy, sizes=(4,))[0].table
        calls: dict[str, Callable[[], object]] = {
            "decide": partial(policy.choose, table),
            "collect": partial(policy.absorb, table),
            "appraise": partial(policy.score, table),
        }
        if decisions:
            calls["update"] = partial(policy.learn, decisions[-1], 0.5)
        if decisions and isinstance(policy, AwaitsRewards):
            calls["await_reward"] = partial(policy.expect, decisions[-1])
        for hook, call in calls.items():
            with _failing_at_its_end(policy, hook):
                expect_refusal(call, error=_AtItsEndError, what=f"a call whose {hook} fails")
            expect(
                state_bytes(policy) == before,
                f"{hook} changes in place what an attribute holds: replace it instead",
            )


@Check
def continuations_are_independent(factory: Factory) -> None:
    """Whatever happens to one fork of a policy, others learn and decide as if it were alone."""
    for policy, decisions, _ in _moments(factory, (2, 8, 40)):
        alone = [copy_of(policy) for _ in range(3)]
        forks = [policy.fork(), policy.fork(), policy]
        rounds = [offers_in(policy.dim, 12, (4, 40), seed=seed) for seed in range(3)]
        for policies in (forks, alone):
            for at in range(12):
                for each, offered, sign in zip(policies, rounds, (1.0, -1.0, 3.0), strict=True):
                    _continue(each, offered[at], decisions if at == 5 else (), sign)
        for one, other in zip(forks, alone, strict=True):
            expect(state_bytes(one) == state_bytes(other), "a fork has changed another one")
            table = rounds[0][0].table
            expect_same(one.choose(table), other.choose(table), "in a fork")


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
            sizes.append(len(state_bytes(policy)))
        return max(sizes[-8:])

    early, late = largest(32), largest(64)
    # Less than one number per round; a record per epoch is allowed.
    room = max(8 * 64, early // 20)
    expect(late < early + room, f"{early} bytes after 32 rounds, {late} after 96")


# Rewards that wait, logs, and features that enter later


@Check
def expecting_a_reward_changes_no_estimate(factory: Factory) -> None:
    """`expect` changes widths at most, and `forget` takes it back."""
    for policy, decisions, before in _moments(factory):
        table = offers(1, policy, sizes=(4,))[0].table
        estimates = policy.score(table).estimates.tolist()
        for decision in decisions:
            policy.expect(decision)
        expect(policy.score(table).estimates.tolist() == estimates, "expect changed an estimate")
        for decision in decisions:
            policy.forget(decision)
        expect(state_bytes(policy) == before, "forget does not take back expect")


@Check
def a_log_may_come_in_any_parts(factory: Factory) -> None:
    """Logged rewards are learned, in whatever parts the log comes."""
    policy = factory()
    table, rewards = offers(1, policy, sizes=(12,))[0]
    whole, parts = deepcopy(policy), deepcopy(policy)
    whole.learn_logged(table, rewards)
    for start, stop in ((0, 1), (1, 7), (7, 12)):
        parts.learn_logged(table[start:stop], rewards[start:stop].tolist())
    expect(state_bytes(parts) == state_bytes(whole), "parts taught something else than the whole")
    expect(whole.round == 12, f"12 logged rewards are {whole.round} rounds")


@Check
def growing_equals_having_known_all_features(factory: Factory) -> None:
    """A policy that was widened scores as if all features had been there before, hidden."""
    made = factory()
    if not isinstance(made, Grows):
        expect_refusal(made.widen, made.dim + 1, error=InvalidSettingError, what="a new feature")
        return
    narrow = made.dim or 6
    settings = made.settings() | {"dim": narrow}
    grown, known = type(made)(**settings), type(made)(**settings)
    known.widen(narrow + _N_NEW, levels={narrow + 1: 0})
    early, late = (
        offers_in(dim, 30, (12,), seed=seed) for dim, seed in ((narrow, 0), (narrow + _N_NEW, 1))
    )
    for table, rewards in early[:6]:
        grown.absorb(table)
        known.absorb(_padded(table))
        grown.learn_logged(table, rewards)
        known.learn_logged(_padded(table), rewards)
    one = early[6].table[:1]  # draws of random policies depend on the number of features
    ours, theirs = grown.choose(one), known.choose(_padded(one))
    grown.widen(narrow + _N_NEW, levels={narrow + 1: 0})
    grown.learn(ours, 0.5)
    known.learn(theirs, 0.5)
    expect(grown.dim == narrow + _N_NEW, f"it has {grown.dim} features")
    for table, rewards in late[:6]:
        grown.learn_logged(table, rewards)
        known.learn_logged(table, rewards)
    grown = copy_of(grown)
    for table, _ in late[6:12]:
        _expect_near(grown.score(table), known.score(table))


# Contexts, where a policy uses them


@Check
def no_context_is_a_hidden_one(factory: Factory) -> None:
    """In a round without a context, it is as if every entry of it were hidden."""
    policy = factory()
    if not isinstance(policy, UsesContext):
        return
    rounds, contexts = offers(20, policy), _contexts(20)
    for (table, rewards), context in zip(rounds[:10], contexts, strict=False):
        decision = policy.choose(table, context=context)
        policy.learn(decision, float(rewards[decision.arm]))
    other = deepcopy(policy)
    for table, rewards in rounds[10:]:
        hidden = np.full(_CONTEXT_DIM, np.nan)
        ours, theirs = policy.choose(table), other.choose(table, context=hidden)
        same = theirs.arm == ours.arm and np.array_equal(theirs.scores, ours.scores)
        expect(same, f"round {ours.round}: other scores with a hidden context")
        for each, decision in ((policy, ours), (other, theirs)):
            each.learn(decision, float(rewards[decision.arm]))


@Check
def growing_contexts_equal_having_known_all_features(factory: Factory) -> None:
    """A policy whose context was widened scores as if its features had been hidden before."""
    policy = factory()
    if not isinstance(policy, UsesContext):
        return
    grown, known = policy, deepcopy(policy)
    known.widen(context_dim=_CONTEXT_DIM + 2, context_levels={_CONTEXT_DIM + 1: 0})
    rounds, contexts = offers(36, policy), _contexts(36, _CONTEXT_DIM + 2)
    contexts[:18, _CONTEXT_DIM] = np.nan
    contexts[:18, _CONTEXT_DIM + 1] = np.where(np.isnan(contexts[:18, 0]), np.nan, 0.0)
    for index, (table, rewards) in enumerate(rounds):
        if index == 18:
            grown.widen(context_dim=_CONTEXT_DIM + 2, context_levels={_CONTEXT_DIM + 1: 0})
        dim = _CONTEXT_DIM if index < 18 else _CONTEXT_DIM + 2
        given = {"contexts": np.tile(contexts[index], (len(table), 1))}
        known.learn_logged(table, rewards, **given)
        grown.learn_logged(table, rewards, contexts=given["contexts"][:, :dim])
    expect(grown.context_dim == _CONTEXT_DIM + 2, f"context_dim is {grown.context_dim}")
    for table, _ in rounds[:6]:
        _expect_near(*(each.score(table, context=contexts[-1]) for each in (grown, known)))


# Tools


def _expect_near(scores: Scores, others: Scores) -> None:
    near = np.allclose(scores, others, rtol=_TOLERANCE, atol=_TOLERANCE)
    expect(near, f"{scores} instead of {others}")


class _AtItsEndError(Exception):
    """What a hook raises after it has done its work."""


def _failing_at_its_end(policy: Policy, hook: str) -> AbstractContextManager[object]:
    done = getattr(policy, hook)

    def fails(*given: Any) -> None:
        done(*given)
        raise _AtItsEndError

    return mock.patch.object(policy, hook, fails)


def _continue(policy: Policy, offer: Offer, late: Iterable[Decision], sign: float) -> None:
    """Do of everything a little; what is learned differs by sign."""
    table, rewards = offer.table, sign * offer.rewards
    decision = policy.choose(table)
    policy.expect(decision)
    policy.score(table)
    policy.absorb(table[:2])
    for each in late:
        policy.learn(each, sign)
    policy.learn_logged(table[:2], rewards[:2])
    if rewards[0] > 0.0:
        policy.learn(decision, float(rewards[decision.arm]))


def _moments(
    factory: Factory, lengths: tuple[int, ...] = (0, 3, 8)
) -> Iterator[tuple[Policy, list[Decision], bytes]]:
    """Yield a policy at several times, its last two decisions, not yet learned, and its bytes."""
    for n_rounds in lengths:
        policy = factory()
        rounds = offers(n_rounds, policy, sizes=(4,))
        walk(policy, rounds[:-2])
        decisions = [policy.choose(table) for table, _ in rounds[-2:]]
        yield policy, decisions, state_bytes(policy)


def _padded(table: FloatArray) -> FloatArray:
    """Return a table with new features: hidden, and 0 where the first feature is seen."""
    hidden = np.full(len(table), np.nan)
    return np.column_stack([table, hidden, np.where(np.isnan(table[:, 0]), np.nan, 0.0)])


def _contexts(n: int, dim: int = _CONTEXT_DIM) -> FloatArray:
    """Return contexts of rank 2, a third of their entries hidden."""
    random = np.random.default_rng(7)
    table = random.standard_normal((n, 2)) @ random.standard_normal((2, dim))
    table[random.random(table.shape) < 1 / 3] = np.nan
    return table
