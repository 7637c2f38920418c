"""The base class of all policies: what callers use, and the hooks that an author writes."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, TypeVar

from halfseen import archive, checks, state
from halfseen.errors import InvalidSettingError, InvalidSlateError, UnknownDecisionError
from halfseen.params import Declared, size
from halfseen.policies.abilities import (
    Ability,
    AwaitsRewards,
    Explains,
    Exploits,
    Grows,
    UsesContext,
)
from halfseen.policies.steps import Steps
from halfseen.values import Choice, Decision, FloatArray, Note, Scores, Slate
from halfseen.values.decision import checked_reward, checked_rewards
from halfseen.values.reasons import Gains, Reasons

A = TypeVar("A", bound=Ability)
T = TypeVar("T")
Levels = Mapping[int, int]


class Policy(Steps, Declared, ABC):
    """Chooses one of the offered arms per round and learns from its reward.

    A policy is mathematics: it keeps no list of decisions, and one thread at a time may use it. A
    `Decision` carries what `learn` needs. A policy cannot detect that a decision was made by
    another policy of its class, or that it learns a reward twice: an `Agent` detects both.

    A subclass declares its parameters (`halfseen.params`) and its state (`STATE`, see
    `halfseen.state`) and writes three hooks: `setup`, `decide` and `update`. Further hooks have a
    default, and those of an ability (`halfseen.policies.abilities`) come with its class. A hook
    assigns new objects and never changes old ones in place (`Steps`).
    `halfseen.testing.check_policy` tests all contracts.

    Examples
    --------
    >>> from halfseen import AmbientOful
    >>> policy = AmbientOful(dim=2)
    >>> decision = policy.choose([[1.0, float("nan")], [0.5, 0.5]])
    >>> policy.learn(decision, 1.0)
    """

    STATE: ClassVar[Mapping[str, state.Field]] = {}
    """Attributes that are saved: everything that differs from a fresh policy."""

    needs: ClassVar[tuple[str, ...]] = ("dim",)
    """Parameters that a simulation gives the constructor, by the names of `Facts`."""

    dim: int = size(doc="Number of features of every arm.")

    context_dim: int = 0  # a parameter of policies that can use a context; 0 before the first one
    round = 0
    """Number of choices made so far."""

    # Hooks, for authors, agents, and policies that contain other policies

    @abstractmethod
    def setup(self) -> None:
        """Create the state of a fresh policy from its parameters; refuse those that contradict."""

    def prepare(self, slate: Slate) -> None:
        """Change what a round changes, whatever will be chosen; `decide` follows.

        It must not draw random numbers: every process that repeats the round does the same.
        """

    @abstractmethod
    def decide(self, slate: Slate) -> Choice:
        """Choose from a valid slate; change nothing, and draw from streams of the decision only."""

    def advance(self, slate: Slate, arm: int) -> Note:
        """Count a round in which an arm was chosen; return what `update` needs."""
        self.round += 1
        chosen = slate.table[arm].copy()  # a decision does not keep its slate alive
        item = None if slate.items is None else int(slate.items[arm])
        return Note(self.round, self.latest_epoch, chosen, slate.context, item)

    @abstractmethod
    def update(self, note: Note, reward: float) -> None:
        """Learn a finite reward of a decision."""

    def collect(self, slate: Slate) -> None:
        """Learn from a valid slate from which nothing is chosen; by default ignore it."""

    def appraise(self, slate: Slate) -> FloatArray:
        """Return score, estimate and width of each arm, shape (3, n_arms); changes are undone."""
        self.prepare(slate)
        return self.decide(slate).parts

    def learn_rows(
        self, slate: Slate, rewards: Sequence[float], contexts: FloatArray | None = None
    ) -> None:
        """Learn rewards of arms, each from a round in which it was the only one offered.

        `contexts`, shape (n_arms, context_dim), has a row for each arm.
        """
        for arm, reward in zip(slate.one_by_one(contexts), rewards, strict=True):
            self.prepare(arm)
            self.update(self.advance(arm, 0), reward)

    def for_choosing(self) -> "Policy":
        """Return a policy that chooses and explains as this one; it need not learn or refit."""
        return self

    def check_note(self, note: Note) -> None:
        """Raise an error if this policy cannot have made the decision of a note."""
        note.check(self.round, self.latest_epoch, self.dim or 0, self.context_dim)

    @property
    def latest_epoch(self) -> int:
        """Index of the latest epoch; −1 if there is none."""
        return -1

    @property
    def current_rank(self) -> int | None:
        """Number of dimensions in which the next choice is made; None if that has no meaning."""
        return None

    # What callers use

    def choose(
        self, options: Any, *, context: Any = None, items: Any = None, explore: bool = True
    ) -> Decision:
        """Choose one of the offered arms.

        Parameters
        ----------
        options : Slate or array_like, shape (n_arms, dim)
            NaN where hidden.
        context : array_like, shape (context_dim,), optional
            A row that all arms of the round share, for policies that can use it. NaN where hidden.
        items : array of int, shape (n_arms,), optional
            Item ids, as in `Slate`.
        explore : bool
            False for the arm with the largest estimate, in this round.

        Raises `InvalidSlateError` unless the options are a slate with `dim` features, and
        `InvalidSettingError` if the policy cannot use a context or cannot help exploring.
        """
        choice, note = self._attempt(self._play, options, context, items, explore)
        return Decision(type(self).__name__, choice.arm, note, choice.parts, choice.probabilities)

    def learn(self, decision: Decision, reward: float) -> None:
        """Learn from the reward of a decision; rewards may come late and in any order.

        The decision may have gone through `to_dict` and `from_dict`, and this policy may have been
        saved and loaded, or widened, since. Raises `InvalidRewardError` unless the reward is a
        finite number, `UnknownDecisionError` if this policy cannot have made the decision.
        """
        reward = checked_reward(reward)
        self._attempt(self.update, self._noted(decision, "learn"), reward)

    def expect(self, decision: Decision) -> None:
        """Say that the reward of a decision will come: until then it counts in widths alone.

        So a policy that adds widths does not repeat one arm while rewards are late. Other policies
        ignore it. An agent calls this for every decision. Exceptions are those of `learn`.
        """
        note = self._noted(decision, "expect")
        if isinstance(self, AwaitsRewards):
            self._attempt(self.await_reward, note)

    def forget(self, decision: Decision) -> None:
        """Say that the reward of a decision will not come: `expect` is taken back."""
        note = self._noted(decision, "forget")
        if isinstance(self, AwaitsRewards):
            self._attempt(self.give_up, note)

    def absorb(self, options: Any, *, context: Any = None, items: Any = None) -> None:
        """Learn from offered arms without choosing: a catalogue, an old log.

        Arguments and exceptions are those of `choose`.
        """
        self._attempt(lambda: self.collect(self._checked(options, context, items)))

    def learn_logged(
        self, options: Any, rewards: Any, *, contexts: Any = None, items: Any = None
    ) -> None:
        """Learn rewards of arms that this policy did not choose: an old log.

        Each arm counts as a round in which it was the only one offered. It does not matter in which
        parts a log is learned. `rewards` has one entry per arm, `contexts` shape (n, context_dim).
        Exceptions are those of `choose` and `learn`.
        """

        def step() -> None:
            slate = self._checked(options, None, items)
            given, table = checked_rewards(rewards, slate.n_arms), slate.contexts(contexts)
            if table is not None:
                self._check_context(table.shape[1])
            self.learn_rows(slate, given, table)

        self._attempt(step)

    def score(self, options: Any, *, context: Any = None, items: Any = None) -> Scores:
        """Return what the policy expects of arms, without choosing one and without any change.

        Arguments and exceptions are those of `choose`.
        """
        _, estimates, widths = self._ask(self.appraise, options, context, items)
        return Scores(estimates, widths)

    def explain(self, options: Any, *, context: Any = None, items: Any = None) -> Reasons:
        """Return the parts of which the score of each arm is the sum.

        Arguments and exceptions are those of `choose`; a policy that cannot explain its scores
        raises `InvalidSettingError`. Of the models as they are: what is due to be fitted is fitted
        by the next choice.
        """
        return self._ask(self.able(Explains).reasons, options, context, items)

    def value_of_seeing(
        self,
        options: Any,
        groups: Sequence[Sequence[int]] | None = None,
        context_groups: Sequence[Sequence[int]] | None = None,
        *,
        context: Any = None,
        items: Any = None,
    ) -> Gains:
        """Return by how much the best estimate should rise if hidden features are seen first.

        Under the policy's model of hidden entries, with its present estimate of the parameters.
        `groups` are features that are seen together, `context_groups` those of the context; by
        default each feature alone. Other arguments and exceptions are those of `explain`.
        """
        gains = partial(self.able(Explains).gains, groups=groups, context_groups=context_groups)
        return self._ask(gains, options, context, items)

    def widen(
        self,
        dim: int | None = None,
        *,
        levels: Levels | None = None,
        context_dim: int | None = None,
        context_levels: Levels | None = None,
    ) -> None:
        """Let arms or contexts have more features, as if these had always been there, hidden.

        `dim` and `context_dim` are the new numbers of features; new ones come last. `levels` and
        `context_levels` name, for each new feature that is a further level of a category, the
        category's first feature: both are hidden in the same arms, and in the past the new level
        was 0 where that feature was seen. A policy that cannot grow or use a context, or would have
        to shrink, raises `InvalidSettingError`.
        """

        def step() -> None:
            _widen(self, "dim", dim, levels or {})
            _widen(self, "context_dim", context_dim, context_levels or {})

        self._attempt(step)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to a file; `halfseen.load` returns a policy that decides the same."""
        from halfseen.policies.registry import policy_to_dict  # it imports this class

        archive.write(path, policy_to_dict(self))

    # Tools of the verbs

    def able(self, ability: type[A], what: str = "") -> A:
        """Return this policy as one with an ability; without it, raise an error that says so."""
        if isinstance(self, ability):
            return self
        cannot = f"{type(self).__name__} cannot {what or ability.lacking}"
        raise InvalidSettingError(f"{cannot}, or use LatentUcb, which can")

    def _play(self, options: Any, context: Any, items: Any, explore: bool) -> tuple[Choice, Note]:
        """Play a round: the choice, and what `update` needs to learn its reward."""
        slate = self._checked(options, context, items)
        self.prepare(slate)
        choice = self.decide(slate) if explore else self.able(Exploits).exploit(slate)
        return choice, self.advance(slate, choice.arm)

    def _noted(self, decision: Decision, verb: str) -> Note:
        """Return the note of a decision that this policy can have made."""
        if not isinstance(decision, Decision) or decision.policy != type(self).__name__:
            got = f"one of {decision.policy}" if isinstance(decision, Decision) else repr(decision)
            raise UnknownDecisionError(
                f"{type(self).__name__}.{verb} needs one of its own decisions, got {got:.60}"
            )
        note = decision.note
        self.check_note(note)
        return note.widened(self.dim, self.context_dim)

    def _ask(self, answer: Callable[[Slate], T], options: Any, context: Any, items: Any) -> T:
        """Return an answer about options, without any change."""
        return self._attempt(lambda: answer(self._checked(options, context, items)), keep=False)

    def _checked(self, options: Any, context: Any = None, items: Any = None) -> Slate:
        slate = Slate.of(options, self.dim, context=context, items=items)
        if slate.context is not None:
            self._check_context(len(slate.context))
        return slate

    def _check_context(self, dim: int) -> None:
        if not self.context_dim:  # the first context determines it
            self.widen(context_dim=dim)
        elif dim != self.context_dim:
            raise InvalidSlateError(f"a context must have {self.context_dim} features, got {dim}")


def _widen(policy: Policy, name: str, number: int | None, levels: Levels) -> None:
    """Let arms, or contexts, have more features."""
    known = getattr(policy, name) or 0
    new = known if number is None else checks.size(name, number, max(1, known))
    checks.levels(levels, known, new)
    if new and name == "dim" and not known:  # it waits for its first slate
        policy.__dict__["dim"] = known = new
        policy.setup()
    if new == known and not levels:
        return
    if name == "dim":
        growing = f"grow from {known} to {new} features: make it with more"
        policy.able(Grows, growing).grow(new, levels)
    else:
        policy.able(UsesContext).grow_context(new, levels)
    policy.__dict__[name] = new
