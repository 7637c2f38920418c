"""The base class of all policies: choose, learn, absorb, save."""

import os
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, Self, TypeVar

import numpy as np

from halfseen import archive, checks
from halfseen.core.reasons import Gains, Reasons, context_gains
from halfseen.errors import (
    ArchiveError,
    HalfseenError,
    InvalidInputError,
    InvalidSlateError,
    UnknownDecisionError,
)
from halfseen.policies.hooks import Hooks
from halfseen.policies.notes import (
    Choice,
    Note,
    Scores,
    plain_note,
    restored_note,
    widened,
    with_arm,
)
from halfseen.policies.refusals import (
    checked_reward,
    checked_rewards,
    log_forgotten,
    no_context,
    unknown_decision,
)
from halfseen.values import LARGEST, Decision, FloatArray, Slate

T = TypeVar("T")


class Policy(Hooks):
    """Chooses one of the offered arms per round and learns from its reward.

    Any exception, an interrupt included, leaves the policy exactly as it was. All methods may be
    called from several threads.

    A subclass declares its parameters (`halfseen.params`) and writes five hooks: `setup`, `decide`,
    `update`, `state` and `restore`. `observe` is a sixth, for policies that learn from arms that
    were only offered. `halfseen.testing.check_policy` tests their contracts.

    The attributes of a policy are its state. When a call fails, every attribute is set back to the
    object it held before. So a hook assigns a new object to an attribute and never changes the old
    one in place: `self._sum = self._sum + reward`, not `self._sums.append(reward)`.

    Examples
    --------
    >>> from halfseen import AmbientOful
    >>> policy = AmbientOful(dim=2)
    >>> decision = policy.choose([[1.0, float("nan")], [0.5, 0.5]])
    >>> policy.learn(decision, 1.0)
    >>> policy.round, policy.n_open
    (1, 0)
    """

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._round = 0
        # Decisions that wait for a reward, oldest first. The random token makes this policy's ids
        # differ from those of every other policy, even with equal settings.
        self._token = secrets.token_hex(8)
        self._open: OrderedDict[str, Note] = OrderedDict()
        self._n_forgotten = 0
        self._lock = threading.RLock()
        self.setup()

    # What callers use.

    @property
    def round(self) -> int:
        """Number of choices made so far."""
        return self._round

    @property
    def current_rank(self) -> int | None:
        """Number of dimensions in which the next choice is made; None if that has no meaning."""
        return None

    @property
    def n_open(self) -> int:
        """Number of decisions that wait for their reward."""
        return len(self._open)

    @property
    def n_forgotten(self) -> int:
        """Number of decisions whose reward did not come before `max_open` others were made."""
        return self._n_forgotten

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
            Who each arm is, as in `Slate`.
        explore : bool
            False for the arm with the largest estimate, in this round.

        Raises
        ------
        InvalidSlateError
            The options are not a slate with `dim` features.
        InvalidInputError
            There is a context, and this policy cannot use one; or it cannot help exploring.
        """
        with self._lock:
            before, id = self.__dict__.copy(), f"{self._token}-{self._round + 1}"
            oldest = None
            try:
                choice, note = self.play(self._checked(options, context, items), explore=explore)
                given = choice.parts, choice.probabilities
                made = Decision(id, choice.arm, note.round, note.epoch, note.arm, *given)
                self._open[id] = note
                if len(self._open) > self.max_open:
                    self._n_forgotten += 1
                    oldest = next(iter(self._open.items()))
                    del self._open[oldest[0]]
            except BaseException:
                self.__dict__ = before
                self._open.pop(id, None)
                if oldest is not None:
                    self._open[oldest[0]] = oldest[1]
                    self._open.move_to_end(oldest[0], last=False)
                raise
            if oldest is not None:
                log_forgotten(oldest[0], self._n_forgotten, f"max_open = {self.max_open}")
            return made

    def learn(self, decision: Decision | str, reward: float) -> None:
        """Learn from the reward of a decision; rewards may come late and in any order.

        Parameters
        ----------
        decision : Decision or str
            What `choose` returned, or its id.
        reward : float

        Raises
        ------
        InvalidRewardError
            The reward is not a finite number.
        UnknownDecisionError
            This policy did not make the decision, has already learned it, or has forgotten it.
        """
        if type(reward) is not float or not -LARGEST <= reward <= LARGEST:
            reward = checked_reward(reward)
        id = decision._id if isinstance(decision, Decision) else decision
        with self._lock:
            opened = self._open.get(id) if isinstance(id, str) else None
            if opened is None:
                raise unknown_decision(id, self._token, self.max_open)
            note = opened if opened.arm.size else self._recalled(opened, decision)
            before = self.__dict__.copy()
            try:
                self.update(note, reward)
                del self._open[id]
            except BaseException:
                self.__dict__ = before
                self._open[id] = opened
                raise

    def absorb(self, options: Any, *, context: Any = None, items: Any = None) -> None:
        """Learn from offered arms without choosing: a catalogue, an old log.

        Arguments are those of `choose`.

        Raises
        ------
        InvalidSlateError
            The options are not a slate with `dim` features.
        """
        with self._lock:
            before = self.__dict__.copy()
            try:
                self.observe(self._checked(options, context, items))
            except BaseException:
                self.__dict__ = before
                raise

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
            Who each arm is, as in `Slate`.

        Raises
        ------
        InvalidSlateError
            The options are not a slate with `dim` features, or contexts do not fit.
        InvalidRewardError
            There is not one finite reward for each arm.
        """
        with self._lock:
            # A copy, because forks can take back one step only, and this is a step per arm.
            trial = self.copied()
            slate = trial._checked(options, None, items)
            given = checked_rewards(rewards, slate.n_arms)
            if contexts is None and slate._context is not None:
                contexts = np.tile(slate._context, (slate.n_arms, 1))
            if contexts is None:
                trial.play_logged(slate, given)
            else:
                trial.play_logged(slate, given, trial._checked_contexts(contexts, slate.n_arms))
            self.__dict__ = trial.__dict__ | {"_lock": self._lock, "_token": self._token}

    def score(self, options: Any, *, context: Any = None, items: Any = None) -> Scores:
        """Return what the policy expects of arms, without choosing one and without any change.

        Arguments are those of `choose`.

        Raises
        ------
        InvalidSlateError
            The options are not a slate with `dim` features.
        """
        _, estimates, widths = self._asked((options, context, items), self.appraise)
        return Scores(estimates, widths)

    def explain(self, options: Any, *, context: Any = None, items: Any = None) -> Reasons:
        """Return the parts of which the score of each arm is the sum.

        Arguments are those of `choose`.

        Of the models as they are: what is due to be fitted is fitted by the next choice.

        Raises
        ------
        InvalidSlateError
            The options are not a slate with `dim` features.
        InvalidInputError
            This policy cannot explain its scores.
        """
        return self._asked((options, context, items), self.reasons)

    def value_of_seeing(
        self,
        options: Any,
        groups: Sequence[Sequence[int]] | None = None,
        *,
        context: Any = None,
        items: Any = None,
    ) -> Gains:
        """Return by how much the best estimate should rise if hidden features are seen first.

        Under the policy's model of hidden entries, with its present estimate of the parameters.

        Parameters
        ----------
        options : Slate or array_like, shape (n_arms, dim)
        groups : sequence of features, optional
            Those that are seen together; by default each feature alone.
        context, items
            As in `choose`.

        Raises
        ------
        InvalidSlateError, InvalidInputError
            As `explain`.
        """

        def gains(slate: Slate) -> Gains:
            each = _checked_groups(groups, slate.dim)
            estimates = self.reasons(slate).estimates
            return Gains.of(estimates, self.moved_by_seeing(slate, each))

        return self._asked((options, context, items), gains)

    def value_of_seeing_context(
        self,
        options: Any,
        groups: Sequence[Sequence[int]] | None = None,
        *,
        context: Any = None,
        items: Any = None,
    ) -> FloatArray:
        """Return the same for hidden features of the context, shape (n_groups,).

        Arguments are those of `value_of_seeing`; groups are of the context's features.
        """

        def gains(slate: Slate) -> FloatArray:
            each = _checked_groups(groups, self.context_dim)
            return context_gains(self.reasons(slate).estimates, self.moved_by_context(slate, each))

        return self._asked((options, context, items), gains)

    def _asked(self, given: tuple[Any, Any, Any], answer: Callable[[Slate], T]) -> T:
        """Return an answer about options, a context and items, without any change."""
        with self._lock:
            before = self.__dict__.copy()
            try:
                return answer(self._checked(*given))
            finally:
                self.__dict__ = before

    def widen(self, dim: int, *, levels: Mapping[int, int] | None = None) -> None:
        """Let arms have more features, as if they had been there from the start, hidden.

        Parameters
        ----------
        dim : int
            The new number of features; new ones come last.
        levels : mapping, optional
            For each new feature that is a further level of a category, the category's first
            feature. Both are hidden in the same arms. In the past the new level was 0 where that
            feature was seen.

        Raises
        ------
        InvalidSettingError
            The number of features would shrink, or the policy cannot grow.
        """
        dim = checks.integer("dim", dim, self.dim or 1, checks.LARGEST_SIZE)
        self._grown(self._widen, dim, _checked_levels(levels, self.dim or 0, dim))

    def widen_context(self, dim: int, *, levels: Mapping[int, int] | None = None) -> None:
        """Let contexts have more features, as if they had been there from the start, hidden.

        Arguments are those of `widen`. A policy that can use contexts starts with 0 features.

        Raises
        ------
        InvalidInputError
            The policy cannot use a context.
        InvalidSettingError
            The number of features would shrink.
        """
        if not self.takes_context:
            raise no_context(type(self))
        dim = checks.integer("context_dim", dim, max(1, self.context_dim), checks.LARGEST_SIZE)
        self._grown(self._widen_context, dim, _checked_levels(levels, self.context_dim, dim))

    def _grown(self, grow: Callable[[int, dict[int, int]], None], dim: int, levels: Any) -> None:
        with self._lock:
            before = self.__dict__.copy()
            try:
                grow(dim, levels)
            except BaseException:
                self.__dict__ = before
                raise

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to a file; `halfseen.load` returns a policy that decides the same."""
        archive.write(path, self.to_tree())

    def diagnostics(self) -> dict[str, Any]:
        """Return facts about the run so far, as plain JSON types."""
        return {}

    def to_tree(self) -> dict[str, Any]:
        """Return settings and state as a tree of plain values and arrays."""
        with self._lock:
            return {
                "policy": type(self).__name__,
                "settings": self.settings(),
                "round": self._round,
                "open": [[id, plain_note(note)] for id, note in self._open.items()],
                "n_forgotten": self._n_forgotten,
                "state": self.state(),
            }

    @classmethod
    def from_tree(cls, tree: dict[str, Any]) -> Self:
        """Return the policy that `to_tree` described.

        Its new decisions have ids that differ from those of the original and of other copies.
        """
        policy = cls(**tree["settings"])
        policy._round = checks.integer("round", tree["round"], 0, checks.LARGEST_HORIZON)
        policy._n_forgotten = checks.integer("n_forgotten", tree["n_forgotten"], 0, policy._round)
        for id, plain in tree["open"]:
            policy._open[checks.text("id", id)] = restored_note(plain)
        checks.integer("the number of open decisions", len(policy._open), 0, policy.max_open)
        policy.restore(tree["state"])
        for note in policy._open.values():
            policy.check_note(note)
        return policy

    # For policies that contain other policies.

    def play(self, slate: Slate, *, explore: bool = True) -> tuple[Choice, Note]:
        """Choose from a valid slate; also return what `update` needs to learn the reward.

        Like `choose`, but without ids and open decisions, which the outer policy handles.
        """
        choice = self.decide(slate) if explore else self.exploit(slate)
        self._round += 1
        # A copy: an open decision does not keep its whole slate alive.
        chosen = slate._table[choice.arm].copy()
        item = None if slate._items is None else int(slate._items[choice.arm])
        given = choice.point, choice.inner, slate._context, item
        return choice, Note(self._round, choice.epoch, chosen, *given)

    def play_logged(
        self, slate: Slate, rewards: list[float], contexts: FloatArray | None = None
    ) -> None:
        """Learn from valid logged arms; if it fails, only a copy made before is as it was.

        `contexts`, shape (n, context_dim), has the context of each arm.
        """
        for row, reward in enumerate(rewards):
            arm = Slate(slate._table[row : row + 1])
            arm._items = None if slate._items is None else slate._items[row : row + 1]
            arm._context = None if contexts is None else contexts[row]
            _, note = self.play(arm)
            self.update(note, reward)

    def check_note(self, note: Note) -> None:
        """Raise an ArchiveError if this policy cannot have written a restored note."""
        checks.integer("round", note.round, 1, self._round)
        checks.integer("epoch", note.epoch, -1, self._round)
        if note.arm.size not in (0, self.dim):
            raise ArchiveError(
                f"an open decision must have {self.dim} features, got {note.arm.size}"
            )
        if note.inner is not None and note.arm.size and not note.inner.arm.size:
            raise ArchiveError(f"the inner policy has no arm of the open round {note.round}")
        if note.context is not None and len(note.context) != self.context_dim:
            raise ArchiveError(
                f"an open decision must have a context of {self.context_dim} features, got "
                f"{len(note.context)}"
            )

    def fork(self) -> Self:
        """Return a shallow copy that continues in place of this policy, which must not be used on.

        An outer policy forks its inner policy before it changes it.
        """
        fork = object.__new__(type(self))
        fork.__dict__.update(self.__dict__)
        return fork

    def copied(self) -> Self:
        """Return an independent copy; its decisions have other ids."""
        copy = object.__new__(type(self))
        copy.__setstate__(self.__getstate__())
        return copy

    # Python's own copies, all of them deep: of two shallow ones each would change the other. A lock
    # cannot be copied, and a copy gives other ids than the original.

    def __copy__(self) -> Self:
        return deepcopy(self)

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            state = {name: value for name, value in self.__dict__.items() if name != "_lock"}
            return deepcopy(state, {id(self): self})  # parts may refer to their policy

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()
        self._token = secrets.token_hex(8)

    def _checked(self, options: Any, context: Any = None, items: Any = None) -> Slate:
        slate = Slate.of(options, self.dim, context=context, items=items)
        if slate._context is not None:
            self._check_context(len(slate._context))
        return slate

    def _check_context(self, dim: int) -> None:
        if not self.takes_context:
            raise no_context(type(self))
        if not self.context_dim:  # the first context determines it
            self._widen_context(dim, {})
        elif dim != self.context_dim:
            raise InvalidSlateError(f"a context must have {self.context_dim} features, got {dim}")

    def _checked_contexts(self, contexts: Any, n: int) -> FloatArray:
        table = Slate.of(contexts)._table
        if len(table) != n:
            raise InvalidSlateError(
                f"there must be a context for each of {n} arms, got {len(table)}"
            )
        self._check_context(table.shape[1])
        return table

    def _widen(self, dim: int, levels: dict[int, int]) -> None:
        if self.dim is None:  # of a policy that waits for its first slate
            self.__dict__["dim"] = dim
            self.setup()
            if levels and self.can_grow():
                self.grow(dim, levels)
        elif dim > self.dim:
            self.grow(dim, levels)
            self.__dict__["dim"] = dim
            self._widen_notes(dim, self.context_dim)

    def _widen_context(self, dim: int, levels: dict[int, int]) -> None:
        if dim > self.context_dim:
            self.grow_context(dim, levels)
            self.__dict__["context_dim"] = dim
            self._widen_notes(self.dim, dim)

    def _widen_notes(self, dim: int, context_dim: int) -> None:
        self._open = OrderedDict(
            (id, widened(note, dim, context_dim)) for id, note in self._open.items()
        )

    def _recalled(self, note: Note, decision: Decision | str) -> Note:
        """Complete the note of a decision that was open in a file of format 2."""
        if not isinstance(decision, Decision):
            raise UnknownDecisionError(
                f"decision {decision} was open in a file of an earlier version, which did not "
                "store its arm: pass the Decision instead of its id"
            )
        arm = decision._chosen
        if arm.shape != (self.dim,):
            raise InvalidInputError(
                f"the decision's arm must have {self.dim} features, got {len(arm)}"
            )
        return with_arm(note, arm)._replace(epoch=decision._epoch)


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
