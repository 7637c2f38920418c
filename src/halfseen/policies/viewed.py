"""Policies that show a transformed slate (a view) to an inner policy."""

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from halfseen.core.confidence import LARGEST_SCALE
from halfseen.errors import UnknownDecisionError
from halfseen.params import choice, integer
from halfseen.policies.ambient import AmbientOful
from halfseen.policies.base import Policy
from halfseen.policies.greedy import Greedy
from halfseen.policies.registry import InnerPolicies
from halfseen.policies.ridge_policy import Optimism, scale_param
from halfseen.policies.thompson import LinearThompson
from halfseen.values import LARGEST, Choice, FloatArray, Note, Slate

EXPLORATIONS = ("ucb", "thompson", "greedy")


class Exploring(Optimism):
    """Parameters of a policy whose inner policy explores."""

    exploration: str = choice(
        default="ucb",
        words=EXPLORATIONS,
        doc="The inner policy: `AmbientOful`, `LinearThompson` or `Greedy`.",
    )
    radius_scale: float = scale_param(
        1.0, doc='Multiplies the radius of "ucb", and the standard deviation R of "thompson".'
    )
    seed: int = integer(default=0, low=0, doc="Names all streams of random numbers.")

    def inner_policy(self, dim: int) -> Policy:
        """Return a fresh inner policy in `dim` dimensions."""
        if self.exploration == "greedy":
            return Greedy(dim=dim, ridge=self.ridge)
        if self.exploration == "thompson":
            return LinearThompson(
                dim=dim,
                ridge=self.ridge,
                noise_scale=self.noise_scale,
                scale=min(LARGEST_SCALE, self.radius_scale * self.noise_scale),
                seed=self.seed,
            )
        return AmbientOful(
            dim=dim,
            ridge=self.ridge,
            failure_prob=self.failure_prob,
            theta_bound=self.theta_bound,
            noise_scale=self.noise_scale,
            radius_scale=self.radius_scale,
        )


class ViewedPolicy(Policy):
    """Shows a view of each slate to an inner policy and returns its choice.

    A decision contains the arm as it was offered. Its note also contains the inner policy's view of
    that arm, so that a late reward is learned with the view of its own round.

    A subclass sets `_inners`, the inner policies, in `setup`. `_turn` returns which of them chooses
    in a round. They have the dimension of the view.
    """

    STATE: ClassVar = {"_inners": InnerPolicies()}

    def setup(self) -> None:
        """Start without inner policies."""
        self._inners: tuple[Policy, ...] = ()

    @property
    def current_rank(self) -> int | None:
        """Number of dimensions in which the inner policy chooses."""
        return self._inners[self._turn(max(1, self._round))].current_rank

    def _turn(self, round: int) -> int:
        """Return which inner policy chooses in a round."""
        return 0

    @abstractmethod
    def _view(self, slate: Slate) -> FloatArray:
        """Return the view for the inner policy, shape (n_arms, its dim), without side effects.

        Entries beyond `LARGEST`, which a slate may not have, are clipped afterwards.
        """

    def decide(self, slate: Slate) -> Choice:
        """Let the inner policy choose from its view."""
        return self._pass_on(self._view(slate))

    def exploit(self, slate: Slate) -> Choice:
        """Let the inner policy choose from its view without exploring."""
        return self._pass_on(self._view(slate), explore=False)

    def appraise(self, slate: Slate) -> FloatArray:
        """Let the inner policy score its view."""
        player = self._inners[self._turn(self._round + 1)]
        view = np.clip(self._view(slate), -LARGEST, LARGEST)
        return player.appraise(Slate.of(view, player.dim))

    def _pass_on(self, view: FloatArray, *, explore: bool = True) -> Choice:
        """Let the inner policy choose from the view."""
        player = self._forked(self._turn(self._round + 1))
        shown = Slate.of(np.clip(view, -LARGEST, LARGEST), player.dim)
        choice, note = player.play(shown, explore=explore)
        return choice._replace(inner=note)

    def update(self, note: Note, reward: float) -> None:
        """Pass the reward to the inner policy that chose."""
        assert note.inner is not None
        self._forked(self._turn(note.round)).update(note.inner, reward)

    def _forked(self, turn: int) -> Policy:
        """Fork an inner policy and return the fork, which may be changed."""
        inners = list(self._inners)
        inners[turn] = inners[turn].fork()
        self._inners = tuple(inners)
        return inners[turn]

    def check_note(self, note: Note) -> None:
        """Raise an error if this policy cannot have made the decision of a note."""
        super().check_note(note)
        if note.inner is None:
            raise UnknownDecisionError(f"no inner policy made the decision of round {note.round}")
        self._inners[self._turn(note.round)].check_note(note.inner)
