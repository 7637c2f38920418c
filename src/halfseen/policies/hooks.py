"""What the author of a policy writes: parameters and hooks."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from halfseen import checks
from halfseen.core.reasons import Reasons
from halfseen.params import Declared, integer
from halfseen.policies.notes import Choice, Note
from halfseen.policies.refusals import (
    cannot_explain,
    cannot_exploit,
    cannot_grow,
    no_context,
)
from halfseen.values import FloatArray, Slate


class Hooks(Declared, ABC):
    """Parameters that every policy has, and hooks; `Policy` calls them."""

    needs: ClassVar[tuple[str, ...]] = ("dim",)
    """Parameters that a simulation gives the constructor, by the names of `Facts`."""

    takes_context: ClassVar[bool] = False
    """Whether `choose` accepts a context: then `context_dim` is a parameter."""

    context_dim: int = 0
    """Number of features of a context; 0 before the first one."""

    uses_items: ClassVar[bool] = False
    """Whether it matters who an arm is, besides its features."""

    dim: int = integer(low=1, high=checks.LARGEST_SIZE, doc="Number of features of every arm.")
    max_open: int = integer(
        default=10_000,
        low=1,
        doc="Largest number of decisions that wait for a reward; the oldest is forgotten first.",
    )

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
        """Learn a finite reward of an open decision."""

    def observe(self, slate: Slate) -> None:
        """Learn from a valid slate from which nothing is chosen; by default ignore it."""

    def appraise(self, slate: Slate) -> FloatArray:
        """Return score, estimate and width of each arm, shape (3, n_arms); changes are undone."""
        return self.decide(slate).parts

    def exploit(self, slate: Slate) -> Choice:
        """Choose from a valid slate without exploring; by default a policy cannot do that."""
        raise cannot_exploit(type(self))

    def reasons(self, slate: Slate) -> Reasons:
        """Return the parts of each arm's score under the present model; may change nothing.

        By default a policy cannot tell.
        """
        raise cannot_explain(type(self))

    def moved_by_seeing(self, slate: Slate, groups: Sequence[Sequence[int]]) -> FloatArray:
        """Return by which deviation each arm's estimate moves if groups of features are seen.

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
        level of a category (see `widen`). A policy that was made without a number of features is
        told levels in this way right after `setup`; then `dim` is `self.dim`. By default a policy
        cannot grow.
        """
        raise cannot_grow(self, dim)

    def grow_context(self, dim: int, levels: Mapping[int, int]) -> None:
        """Let contexts have `dim` features; `self.context_dim` is still the earlier number.

        As `grow`, for policies that can use a context.
        """
        raise no_context(type(self))

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Return the state: everything that differs from a fresh policy with the same parameters.

        A tree of dictionaries and lists with numbers, texts, None and arrays as leaves.
        """

    @abstractmethod
    def restore(self, state: dict[str, Any]) -> None:
        """Continue from what `state` returned, in a fresh policy."""

    @classmethod
    def can_grow(cls) -> bool:
        """Return whether arms may get more features: whether `grow` is written."""
        return cls.grow is not Hooks.grow

    @classmethod
    def can_exploit(cls) -> bool:
        """Return whether `choose` takes `explore=False`: whether `exploit` is written."""
        return cls.exploit is not Hooks.exploit

    @classmethod
    def can_explain(cls) -> bool:
        """Return whether `explain` works: whether `reasons` is written."""
        return cls.reasons is not Hooks.reasons
