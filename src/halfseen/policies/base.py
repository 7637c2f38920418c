"""The base class of all policies: what callers use, and the hooks that an author writes."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from operator import gt
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from halfseen import archive, checks, state
from halfseen.errors import InvalidSettingError, InvalidSlateError, UnknownDecisionError
from halfseen.params import Declared, size
from halfseen.seeding import stream
from halfseen.values import Choice, Decision, FloatArray, Note, Scores, Slate
from halfseen.values.decision import checked_reward, checked_rewards
from halfseen.values.reasons import Gains, Groups, Reasons, checked_groups

T = TypeVar("T")
Levels = Mapping[int, int]


class Policy(Declared, ABC):
    """Chooses one of the offered arms per round and learns from its reward.

    A policy is mathematics: it keeps no list of decisions, and one thread at a time may use it. A
    `Decision` carries what `learn` needs. A policy cannot detect that a decision was made by
    another policy of its class, or that it learns a reward twice: an `Agent` detects both.

    A subclass declares its parameters (`halfseen.params`) and its state (`STATE`, see
    `halfseen.state`) and writes three hooks: `setup`, `decide` and `update`. Optional hooks begin
    with an underscore. `halfseen.testing.check_policy` tests their contracts.

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
    """

    STATE: ClassVar[Mapping[str, state.Field]] = {}
    """Attributes that are saved: everything that differs from a fresh policy."""

    needs: ClassVar[tuple[str, ...]] = ("dim",)
    """Parameters that a simulation gives the constructor, by the names of `Facts`."""

    dim: int = size(doc="Number of features of every arm.")

    context_dim: int = 0  # a parameter of policies that can use a context; 0 before the first one
    _uses_items: ClassVar[bool] = False  # whether item ids matter, besides the features
    _round = 0
    _key = ""  # names the random streams of a choice, if the round does not
    _refits_itself = True  # whether `_prepare` does it, and not an agent by `_refit`

    @abstractmethod
    def setup(self) -> None:
        """Create the state of a fresh policy from its parameters; refuse those that contradict."""

    @abstractmethod
    def decide(self, slate: Slate) -> Choice:
        """Choose from a valid slate; what a round changes besides is for `_prepare`."""

    @abstractmethod
    def update(self, note: Note, reward: float) -> None:
        """Learn a finite reward of a decision."""

    # Optional hooks

    def _prepare(self, slate: Slate) -> None:
        """Change what a round changes, whatever will be chosen; `decide` follows.

        It must not draw random numbers: every process that repeats the round does the same.
        """

    def _advance(self, slate: Slate, arm: int, inner: Note | None = None) -> Note:
        """Count a round in which an arm was chosen; return what `update` needs.

        `inner` is the note of an inner policy; one that contains others makes it if it is missing.
        """
        self._round += 1
        chosen = slate.table[arm].copy()  # a decision does not keep its slate alive
        item = None if slate.items is None else int(slate.items[arm])
        return Note(self._round, self._latest_epoch, chosen, slate.context, item, inner)

    @property
    def _is_refit_due(self) -> bool:
        """Whether `_refit` should be called, of a policy with `_refits_itself` set to False."""
        return False

    def _refit(self) -> None:
        """Fit what is fitted now and then, on a copy."""

    def _observe(self, slate: Slate) -> None:
        """Learn from a valid slate from which nothing is chosen; by default ignore it."""

    def _expect(self, note: Note) -> None:
        """Count a decision whose reward will come; by default ignore it. `update` replaces it."""

    def _forget(self, *notes: Note) -> None:
        """Take back `_expect` of some decisions, where it was called."""

    def _diagnostics(self) -> dict[str, Any]:
        """Return facts about the run so far, for the results of a simulation; plain JSON types."""
        return {}

    def _warnings(self) -> tuple[str, ...]:
        """Return what looks wrong, each with a remedy."""
        return ()

    def _appraise(self, slate: Slate) -> FloatArray:
        """Return score, estimate and width of each arm, shape (3, n_arms); changes are undone."""
        self._prepare(slate)
        return self.decide(slate).parts

    def _exploit(self, slate: Slate) -> Choice:
        """Choose from a valid slate without exploring."""
        raise self._cannot("choose without exploring: leave out explore=False")

    def _reasons(self, slate: Slate) -> Reasons:
        """Return the parts of each arm's score under the present model; may change nothing."""
        raise self._cannot("explain its scores")

    def _moves(
        self, slate: Slate, groups: Groups, context_groups: Groups
    ) -> tuple[FloatArray, list[FloatArray]]:
        """Return how estimates move if hidden features are seen; by default not at all.

        First the deviation of each estimate for each group of features, shape (n_arms, n_groups).
        Then for each group of the context's features a matrix (n_arms, n), whose product with n
        standard normals is the move.
        """
        n = slate.n_arms
        return np.zeros((n, len(groups))), [np.zeros((n, 0)) for _ in context_groups]

    def _implausible(self) -> tuple[FloatArray, FloatArray]:
        """Return how many of the kept values of each feature count as hidden; by default none."""
        return np.zeros(self.dim or 0), np.zeros(self.context_dim)

    def _grow(self, dim: int, levels: Levels) -> None:
        """Let arms have `dim` features as if they always had; `self.dim` is the earlier number."""
        raise self._cannot(f"grow from {self.dim} to {dim} features: make it with more")

    def _grow_context(self, dim: int, levels: Levels) -> None:
        """Let contexts have `dim` features; `self.context_dim` is still the earlier number."""
        raise self._cannot("use a context: leave it out")

    @property
    def _latest_epoch(self) -> int:
        """Index of the latest epoch; −1 if there is none."""
        return -1

    # What callers use

    @property
    def round(self) -> int:
        """Number of choices made so far."""
        return self._round

    @property
    def current_rank(self) -> int | None:
        """Number of dimensions in which the next choice is made; None if that has no meaning."""
        return None

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
        choice, note = self._attempt(
            lambda: self._play(self._checked(options, context, items), explore=explore)
        )
        return Decision(type(self).__name__, choice.arm, note, choice.parts, choice.probabilities)

    def learn(self, decision: Decision, reward: float) -> None:
        """Learn from the reward of a decision; rewards may come late and in any order.

        The decision may have gone through `to_dict` and `from_dict`, and this policy may have been
        saved and loaded, or widened, since. Raises `InvalidRewardError` unless the reward is a
        finite number, `UnknownDecisionError` if this policy cannot have made the decision.
        """
        reward = checked_reward(reward)
        note = self._noted(decision, "learn")
        self._attempt(lambda: self.update(note, reward))

    def expect(self, decision: Decision) -> None:
        """Say that the reward of a decision will come: until then it counts in widths alone.

        So a policy that adds widths does not repeat one arm while rewards are late. Other policies
        ignore it. An agent calls this for every decision. Exceptions are those of `learn`.
        """
        note = self._noted(decision, "expect")
        self._attempt(lambda: self._expect(note))

    def forget(self, decision: Decision) -> None:
        """Say that the reward of a decision will not come: `expect` is taken back."""
        note = self._noted(decision, "forget")
        self._attempt(lambda: self._forget(note))

    def absorb(self, options: Any, *, context: Any = None, items: Any = None) -> None:
        """Learn from offered arms without choosing: a catalogue, an old log.

        Arguments and exceptions are those of `choose`.
        """
        self._attempt(lambda: self._observe(self._checked(options, context, items)))

    def learn_logged(
        self, options: Any, rewards: Any, *, contexts: Any = None, items: Any = None
    ) -> None:
        """Learn rewards of arms that this policy did not choose: an old log.

        Each arm counts as a round in which it was the only one offered. It does not matter in which
        parts a log is learned. `rewards` has one entry per arm, `contexts` shape (n, context_dim).
        Exceptions are those of `choose` and `learn`.
        """
        trial = deepcopy(self)  # a fork can take back one step only, and this is a step per arm
        slate = trial._checked(options, None, items)
        given, table = checked_rewards(rewards, slate.n_arms), slate.contexts(contexts)
        if table is not None:
            trial._check_context(table.shape[1])
        trial._play_logged(slate, given, table)
        self.__dict__ = trial.__dict__

    def score(self, options: Any, *, context: Any = None, items: Any = None) -> Scores:
        """Return what the policy expects of arms, without choosing one and without any change.

        Arguments and exceptions are those of `choose`.
        """
        _, estimates, widths = self._ask(self._appraise, options, context, items)
        return Scores(estimates, widths)

    def explain(self, options: Any, *, context: Any = None, items: Any = None) -> Reasons:
        """Return the parts of which the score of each arm is the sum.

        Arguments and exceptions are those of `choose`; a policy that cannot explain its scores
        raises `InvalidSettingError`. Of the models as they are: what is due to be fitted is fitted
        by the next choice.
        """
        return self._ask(self._reasons, options, context, items)

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
            own = checked_groups(groups, slate.dim)
            moves = self._moves(slate, own, checked_groups(context_groups, self.context_dim))
            return Gains.of(self._reasons(slate).estimates, *moves)

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
            for name, grow, number, further in (
                ("dim", self._grow, dim, levels or {}),
                ("context_dim", self._grow_context, context_dim, context_levels or {}),
            ):
                known = getattr(self, name) or 0
                new = known if number is None else checks.size(name, number, max(1, known))
                checks.levels(further, known, new)
                if new and name == "dim" and not known:  # it waits for its first slate
                    self.__dict__["dim"] = known = new
                    self.setup()
                if new > known or further:
                    grow(new, further)
                    self.__dict__[name] = new

        self._attempt(step)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to a file; `halfseen.load` returns a policy that decides the same."""
        from halfseen.policies.registry import policy_to_dict  # it imports this class

        archive.write(path, policy_to_dict(self))

    # For agents, and for policies that contain other policies

    def _play(self, slate: Slate, *, explore: bool = True) -> tuple[Choice, Note]:
        """Choose from a valid slate; also return what `update` needs to learn the reward."""
        self._prepare(slate)
        choice = self.decide(slate) if explore else self._exploit(slate)
        return choice, self._advance(slate, choice.arm, choice.inner)

    def _stream(self, name: str) -> np.random.Generator:
        """Return a random stream of the present choice."""
        seed: int = self.seed  # type: ignore[attr-defined]  # whoever draws has one
        return stream(seed, name, self._key or str(self._round + 1))

    def _play_logged(
        self, slate: Slate, rewards: list[float], contexts: FloatArray | None = None
    ) -> None:
        """Learn from valid logged arms, with the context of each; call it on a copy."""
        for row, reward in enumerate(rewards):
            arm = Slate(
                slate.table[row : row + 1],
                context=None if contexts is None else contexts[row],
                items=None if slate.items is None else slate.items[row : row + 1],
            )
            self.update(self._play(arm)[1], reward)

    def _noted(self, decision: Decision, verb: str) -> Note:
        """Return the note of a decision that this policy can have made."""
        if not isinstance(decision, Decision) or decision._policy != type(self).__name__:
            got = f"one of {decision._policy}" if isinstance(decision, Decision) else repr(decision)
            raise UnknownDecisionError(
                f"{type(self).__name__}.{verb} needs one of its own decisions, got {got:.60}"
            )
        self._check_note(decision._note)
        return decision._note.widened(self.dim, self.context_dim)

    def _check_note(self, note: Note) -> None:
        """Raise an error if this policy cannot have made the decision of a note."""
        n_context = 0 if note.context is None else len(note.context)
        made = note.round, note.epoch, len(note.arm), n_context
        known = self._round, self._latest_epoch, self.dim or 0, self.context_dim
        if any(map(gt, made, known)):
            raise UnknownDecisionError(
                f"this {type(self).__name__} cannot have made the decision: round, epoch, features "
                f"and context features are {made}, and {known} are the largest so far"
            )

    def _fork(self) -> Self:
        """Return a shallow copy that continues in place of this policy: an outer one changes it."""
        fork = object.__new__(type(self))
        fork.__dict__.update(self.__dict__)
        return fork

    def __copy__(self) -> Self:
        return deepcopy(self)  # of two shallow copies each would change the other

    def _attempt(self, step: Callable[[], T], *, keep: bool = True) -> T:
        """Do a step that changes the policy; if it fails, or unless changes are kept, undo them."""
        before, is_kept = self.__dict__.copy(), False
        try:
            result = step()
            is_kept = keep
            return result
        finally:
            if not is_kept:
                self.__dict__ = before

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

    @classmethod
    def _can(cls, hook: str) -> bool:
        """Return whether a class writes an optional hook."""
        return getattr(cls, hook) is not getattr(Policy, hook)

    def _cannot(self, what: str) -> InvalidSettingError:
        """Return the error for something that takes an optional hook."""
        name = type(self).__name__
        return InvalidSettingError(f"{name} cannot {what}, or use LatentUcb, which can")
