"""The base class of all policies: what callers use, and the hooks that an author writes."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from halfseen import archive, checks, state
from halfseen.errors import (
    HalfseenError,
    InvalidInputError,
    InvalidSettingError,
    InvalidSlateError,
    UnknownDecisionError,
)
from halfseen.params import Declared, integer
from halfseen.values import LARGEST, Choice, Decision, FloatArray, Note, Scores, Slate
from halfseen.values.decision import checked_reward, checked_rewards
from halfseen.values.reasons import Gains, Reasons

T = TypeVar("T")


class Policy(Declared, ABC):
    """Chooses one of the offered arms per round and learns from its reward.

    A policy is mathematics: it keeps no list of decisions, and one thread at a time may use it. A
    `Decision` carries what `learn` needs. A policy cannot tell the decision of another one of its
    kind from its own, nor that it learns a reward twice: an `Agent` does both.

    A subclass declares its parameters (`halfseen.params`) and its state (`STATE`, see
    `halfseen.state`) and writes three hooks: `setup`, `decide` and `update`. `observe` is a fourth,
    for policies that learn from arms that were only offered. `halfseen.testing.check_policy` tests
    their contracts.

    Any exception, an interrupt included, leaves the policy exactly as it was: when a call fails,
    every attribute is set back to the object that it held before. So a hook assigns a new object
    to an attribute and never changes the old one in place: `self._sum = self._sum + reward`, not
    `self._sums.append(reward)`. A part that is too large to copy in every round has a `fork`, a
    copy that shares memory with the original and continues in its place.

    Examples
    --------
    >>> from halfseen import AmbientOful
    >>> policy = AmbientOful(dim=2)
    >>> decision = policy.choose([[1.0, float("nan")], [0.5, 0.5]])
    >>> policy.learn(decision, 1.0)
    >>> policy.round
    1
    """

    STATE: ClassVar[Mapping[str, state.Field]] = {}
    """Attributes that are saved: everything that differs from a fresh policy."""

    needs: ClassVar[tuple[str, ...]] = ("dim",)
    """Parameters that a simulation gives the constructor, by the names of `Facts`."""

    takes_context: ClassVar[bool] = False
    """Whether `choose` accepts a context: then `context_dim` is a parameter."""

    context_dim: int = 0
    """Number of features of a context; 0 before the first one."""

    uses_items: ClassVar[bool] = False
    """Whether item ids matter, besides the features."""

    dim: int = integer(low=1, high=checks.LARGEST_SIZE, doc="Number of features of every arm.")

    _round = 0

    # Hooks

    @abstractmethod
    def setup(self) -> None:
        """Create the state of a fresh policy; its parameters are already set as attributes.

        Raises `InvalidSettingError` if parameters contradict each other.
        """

    @abstractmethod
    def decide(self, slate: Slate) -> Choice:
        """Choose from a valid slate."""

    @abstractmethod
    def update(self, note: Note, reward: float) -> None:
        """Learn a finite reward of a decision."""

    def observe(self, slate: Slate) -> None:
        """Learn from a valid slate from which nothing is chosen; by default ignore it."""

    def appraise(self, slate: Slate) -> FloatArray:
        """Return score, estimate and width of each arm, shape (3, n_arms); changes are undone."""
        return self.decide(slate).parts

    def exploit(self, slate: Slate) -> Choice:
        """Choose from a valid slate without exploring; by default a policy cannot do that."""
        raise self._cannot("exploit", "choose without exploring: leave out explore=False")

    def reasons(self, slate: Slate) -> Reasons:
        """Return the parts of each arm's score under the present model; may change nothing."""
        raise self._cannot("reasons", "explain its scores")

    def moved_by_seeing(self, slate: Slate, groups: Sequence[Sequence[int]]) -> FloatArray:
        """Return the standard deviation of each arm's estimate before groups of features are seen.

        Shape (n_arms, n_groups). By default hidden entries count as zero, and nothing is expected
        of them.
        """
        return np.zeros((slate.n_arms, len(groups)))

    def moved_by_context(self, slate: Slate, groups: Sequence[Sequence[int]]) -> list[FloatArray]:
        """Return how each arm's estimate moves if groups of the context's features are seen.

        For each group a matrix (n_arms, n): the estimates move by it times n standard normals. By
        default nothing moves.
        """
        return [np.zeros((slate.n_arms, 0)) for _ in groups]

    def grow(self, dim: int, levels: Mapping[int, int]) -> None:
        """Let arms have `dim` features; `self.dim` is still the earlier number.

        The result must be as if all features had been known from the start: hidden, or 0 for a
        level of a category (see `widen`). By default a policy cannot grow.
        """
        error = self._cannot("grow", f"grow from {self.dim} to {dim} features: make it with more")
        raise InvalidSettingError(str(error))

    def grow_context(self, dim: int, levels: Mapping[int, int]) -> None:
        """Let contexts have `dim` features; `self.context_dim` is still the earlier number."""
        raise self._cannot("grow_context", "use a context: leave it out")

    # What callers use

    @property
    def round(self) -> int:
        """Number of choices made so far."""
        return self._round

    @property
    def current_rank(self) -> int | None:
        """Number of dimensions in which the next choice is made; None if that has no meaning."""
        return None

    def diagnostics(self) -> dict[str, Any]:
        """Return facts about the run so far, as plain JSON types."""
        return {}

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

        Raises
        ------
        InvalidSlateError
            The options are not a slate with `dim` features.
        InvalidInputError
            There is a context, and this policy cannot use one; or it cannot help exploring.
        """
        choice, note = self._attempt(
            lambda: self.play(self._checked(options, context, items), explore=explore)
        )
        name = type(self).__name__
        return Decision(name, choice.arm, note, choice.parts, choice.probabilities)

    def learn(self, decision: Decision, reward: float) -> None:
        """Learn from the reward of a decision; rewards may come late and in any order.

        Parameters
        ----------
        decision : Decision
            What `choose` returned, or `Decision.from_dict` of its plain form: before or after this
            policy was saved and loaded, or widened.
        reward : float

        Raises
        ------
        InvalidRewardError
            The reward is not a finite number.
        UnknownDecisionError
            This policy cannot have made the decision.
        """
        if type(reward) is not float or not -LARGEST <= reward <= LARGEST:
            reward = checked_reward(reward)
        if not isinstance(decision, Decision) or decision._policy != type(self).__name__:
            got = f"one of {decision._policy}" if isinstance(decision, Decision) else repr(decision)
            raise UnknownDecisionError(
                f"{type(self).__name__}.learn needs a Decision of its own, got {got:.60}"
            )
        self.check_note(decision._note)
        note = decision._note.widened(self.dim, self.context_dim)
        self._attempt(lambda: self.update(note, reward))

    def absorb(self, options: Any, *, context: Any = None, items: Any = None) -> None:
        """Learn from offered arms without choosing: a catalogue, an old log.

        Arguments and exceptions are those of `choose`.
        """
        self._attempt(lambda: self.observe(self._checked(options, context, items)))

    def learn_logged(
        self, options: Any, rewards: Any, *, contexts: Any = None, items: Any = None
    ) -> None:
        """Learn rewards of arms that this policy did not choose: an old log.

        Each arm counts as a round in which it was the only one offered. It does not matter in which
        parts a log is learned.

        Parameters
        ----------
        options : Slate or array_like, shape (n, dim)
            The arms that were played, NaN where hidden.
        rewards : array_like, shape (n,)
        contexts : array_like, shape (n, context_dim), optional
            The context of each arm, for policies that can use it.
        items : array of int, shape (n,), optional
            Item ids, as in `Slate`.

        Raises
        ------
        InvalidSlateError
            The options are not a slate with `dim` features, or contexts do not fit.
        InvalidRewardError
            There is not one finite reward for each arm.
        """
        trial = deepcopy(self)  # a fork can take back one step only, and this is a step per arm
        slate = trial._checked(options, None, items)
        given = checked_rewards(rewards, slate.n_arms)
        if contexts is None and slate._context is not None:
            contexts = np.tile(slate._context, (slate.n_arms, 1))
        if contexts is not None:
            contexts = Slate.of(contexts)._table
            if len(contexts) != slate.n_arms:
                raise InvalidSlateError(
                    f"there must be a context for each of {slate.n_arms} arms, got {len(contexts)}"
                )
            trial._check_context(contexts.shape[1])
        trial.play_logged(slate, given, contexts)
        self.__dict__ = trial.__dict__

    def score(self, options: Any, *, context: Any = None, items: Any = None) -> Scores:
        """Return what the policy expects of arms, without choosing one and without any change.

        Arguments and exceptions are those of `choose`.
        """
        _, estimates, widths = self._ask(self.appraise, options, context, items)
        return Scores(estimates, widths)

    def explain(self, options: Any, *, context: Any = None, items: Any = None) -> Reasons:
        """Return the parts of which the score of each arm is the sum.

        Arguments and exceptions are those of `choose`; a policy that cannot explain its scores
        raises `InvalidInputError`. Of the models as they are: what is due to be fitted is fitted
        by the next choice.
        """
        return self._ask(self.reasons, options, context, items)

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

        def gains(slate: Slate) -> Gains:
            own = _checked_groups(groups, slate.dim)
            of_context = _checked_groups(context_groups, self.context_dim)
            return Gains.of(
                self.reasons(slate).estimates,
                self.moved_by_seeing(slate, own),
                self.moved_by_context(slate, of_context),
            )

        return self._ask(gains, options, context, items)

    def widen(
        self,
        dim: int | None = None,
        *,
        levels: Mapping[int, int] | None = None,
        context_dim: int | None = None,
        context_levels: Mapping[int, int] | None = None,
    ) -> None:
        """Let arms or contexts have more features, as if these had always been there, hidden.

        Parameters
        ----------
        dim, context_dim : int, optional
            The new number of features of arms, or of contexts; new ones come last.
        levels, context_levels : mapping, optional
            For each new feature that is a further level of a category, the category's first
            feature. Both are hidden in the same arms. In the past the new level was 0 where that
            feature was seen.

        Raises
        ------
        InvalidSettingError
            The number of features would shrink, or the policy cannot grow.
        InvalidInputError
            The policy cannot use a context.
        """
        if dim is not None:
            dim = checks.integer("dim", dim, self.dim or 1, checks.LARGEST_SIZE)
        new = _checked_levels(levels, self.dim or 0, dim or 0)
        if context_dim is not None:
            least = max(1, self.context_dim)
            context_dim = checks.integer("context_dim", context_dim, least, checks.LARGEST_SIZE)
        more = _checked_levels(context_levels, self.context_dim, context_dim or 0)
        self._attempt(lambda: self._widen(dim, new, context_dim, more))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to a file; `halfseen.load` returns a policy that decides the same."""
        archive.write(path, self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return parameters and state as plain values and arrays."""
        return {
            "policy": type(self).__name__,
            "settings": self.settings(),
            "round": self._round,
            "state": state.dump(self),
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        """Return the policy that `to_dict` described."""
        policy = cls(**plain["settings"])
        policy._round = checks.integer("round", plain["round"], 0, checks.LARGEST_HORIZON)
        state.restore(policy, plain["state"])
        return policy

    # For agents, and for policies that contain other policies

    def play(self, slate: Slate, *, explore: bool = True) -> tuple[Choice, Note]:
        """Choose from a valid slate; also return what `update` needs to learn the reward."""
        choice = self.decide(slate) if explore else self.exploit(slate)
        self._round += 1
        # A copy: a decision does not keep its whole slate alive.
        chosen = slate._table[choice.arm].copy()
        item = None if slate._items is None else int(slate._items[choice.arm])
        return choice, Note(self._round, choice.epoch, chosen, slate._context, item, choice.inner)

    def play_logged(
        self, slate: Slate, rewards: list[float], contexts: FloatArray | None = None
    ) -> None:
        """Learn from valid logged arms, with the context of each; call it on a copy."""
        for row, reward in enumerate(rewards):
            arm = Slate(slate._table[row : row + 1])
            arm._items = None if slate._items is None else slate._items[row : row + 1]
            arm._context = None if contexts is None else contexts[row]
            self.update(self.play(arm)[1], reward)

    def check_note(self, note: Note) -> None:
        """Raise an error if this policy cannot have made the decision of a note."""
        n_context = 0 if note.context is None else len(note.context)
        made = note.round, note.epoch, len(note.arm), n_context
        known = self._round, self._latest_epoch, self.dim or 0, self.context_dim
        if made[0] > known[0] or made[1] > known[1] or made[2] > known[2] or made[3] > known[3]:
            raise UnknownDecisionError(
                f"this {type(self).__name__} cannot have made the decision: round, epoch, features "
                f"and context features are {made}, and {known} are the largest so far"
            )

    @property
    def _latest_epoch(self) -> int:
        """Index of the latest epoch; −1 if there is none."""
        return -1

    def fork(self) -> Self:
        """Return a shallow copy that continues in place of this policy, which must not be used on.

        An outer policy forks its inner policy before it changes it.
        """
        fork = object.__new__(type(self))
        fork.__dict__.update(self.__dict__)
        return fork

    def __copy__(self) -> Self:
        return deepcopy(self)  # of two shallow copies each would change the other

    def _attempt(self, step: Callable[[], T]) -> T:
        """Do a step that changes the policy, or nothing if it fails."""
        before = self.__dict__.copy()
        try:
            return step()
        except BaseException:
            self.__dict__ = before
            raise

    def _ask(self, answer: Callable[[Slate], T], options: Any, context: Any, items: Any) -> T:
        """Return an answer about options, without any change."""
        before = self.__dict__.copy()
        try:
            return answer(self._checked(options, context, items))
        finally:
            self.__dict__ = before

    def _checked(self, options: Any, context: Any = None, items: Any = None) -> Slate:
        slate = Slate.of(options, self.dim, context=context, items=items)
        if slate._context is not None:
            self._check_context(len(slate._context))
        return slate

    def _check_context(self, dim: int) -> None:
        if not self.context_dim:  # the first context determines it
            self._widen(None, {}, dim, {})
        elif dim != self.context_dim:
            raise InvalidSlateError(f"a context must have {self.context_dim} features, got {dim}")

    def _widen(
        self, dim: int | None, levels: dict[int, int], context_dim: int | None, more: dict[int, int]
    ) -> None:
        if dim is not None and self.dim is None:  # of a policy that waits for its first slate
            self.__dict__["dim"] = dim
            self.setup()
            if levels:
                self.grow(dim, levels)
        elif dim is not None and dim > self.dim:
            self.grow(dim, levels)
            self.__dict__["dim"] = dim
        if context_dim is not None and context_dim > self.context_dim:
            self.grow_context(context_dim, more)
            self.__dict__["context_dim"] = context_dim

    @classmethod
    def can(cls, hook: str) -> bool:
        """Return whether a class writes an optional hook: "grow", "exploit", "reasons", …."""
        return getattr(cls, hook) is not getattr(Policy, hook)

    def _cannot(self, hook: str, what: str) -> InvalidInputError:
        """Return the error for something that takes an optional hook."""
        from halfseen.policies.registry import all_policies  # it imports this class

        able = [name for name, policy in all_policies().items() if policy.can(hook)]
        return InvalidInputError(
            f"{type(self).__name__} cannot {what}, or use a policy that can "
            f"({', '.join(able) or 'there is none yet'})"
        )


def _checked_groups(groups: Any, dim: int) -> list[list[int]]:
    """Return groups of features after checking that they exist; by default each one alone."""
    if groups is None:
        return [[feature] for feature in range(dim)]
    if dim == 0:
        raise InvalidInputError(f"groups must be left out: there are no features, got {groups!r}")
    try:
        return [[checks.integer("feature", each, 0, dim - 1) for each in one] for one in groups]
    except (TypeError, HalfseenError):
        raise InvalidInputError(
            f"groups must be lists of features from 0 to {dim - 1}, got {groups!r}"
        ) from None


def _checked_levels(levels: Mapping[int, int] | None, known: int, dim: int) -> dict[int, int]:
    """Return new levels of categories after checking that their features are new."""
    levels = dict(levels or {})
    for level, first in levels.items():
        checks.integer("a further level", level, known, dim - 1)
        checks.integer("the first feature of a category", first, 0, level - 1)
    return levels
