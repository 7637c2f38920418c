"""Policies that show another view of each slate to an inner policy."""

from abc import abstractmethod
from typing import Any

import numpy as np

from halfseen.core.confidence import LARGEST_SCALE
from halfseen.errors import ArchiveError
from halfseen.params import choice, integer
from halfseen.policies.ambient import AmbientOful
from halfseen.policies.base import Choice, Note, Policy
from halfseen.policies.greedy import Greedy
from halfseen.policies.registry import restored_inner
from halfseen.policies.ridge_policy import Optimism, scale_param
from halfseen.policies.thompson import LinearThompson
from halfseen.values import LARGEST, FloatArray, Slate

EXPLORATIONS = ("ucb", "thompson", "greedy")


class Exploring(Optimism):
    """Parameters of a policy that explores by way of an inner one."""

    exploration: str = choice(
        default="ucb",
        words=EXPLORATIONS,
        doc="`AmbientOful`, `LinearThompson` or `Greedy` on what the inner policy is shown.",
    )
    radius_scale: float = scale_param(
        1.0, doc='Multiplies the radius of "ucb", and the standard deviation R of "thompson".'
    )
    seed: int = integer(default=0, low=0, doc="Names all streams of random numbers.")

    def inner_policy(self, dim: int, max_open: int) -> Policy:
        """Return a fresh inner policy in `dim` dimensions."""
        if self.exploration == "greedy":
            return Greedy(dim=dim, ridge=self.ridge, max_open=max_open)
        if self.exploration == "thompson":
            return LinearThompson(
                dim=dim,
                ridge=self.ridge,
                noise_scale=self.noise_scale,
                scale=min(LARGEST_SCALE, self.radius_scale * self.noise_scale),
                seed=self.seed,
                max_open=max_open,
            )
        return AmbientOful(
            dim=dim,
            ridge=self.ridge,
            failure_prob=self.failure_prob,
            theta_bound=self.theta_bound,
            noise_scale=self.noise_scale,
            radius_scale=self.radius_scale,
            max_open=max_open,
        )


class ViewedPolicy(Policy):
    """Shows another view of each slate to an inner policy and passes its choice on.

    A decision carries the arm as it was offered, and its note also what the inner policy was shown
    of that arm, so that a late reward meets the features of its choice, whatever view is the
    current one by then.

    A subclass sets `_inners` in `setup`: who chooses. `_turn` says who in which round. Their
    dimension is that of the view, and their `max_open` this policy's.
    """

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
        """Return what the inner policy is shown, shape (n_arms, its dim), and change nothing.

        Entries beyond `LARGEST`, which no slate may have, are cut off there afterwards.
        """

    def decide(self, slate: Slate) -> Choice:
        """Let the inner policy choose from its view."""
        return self._pass_on(self._view(slate))

    def _pass_on(self, view: FloatArray) -> Choice:
        """Let the inner policy choose from the view."""
        player = self._forked(self._turn(self._round + 1))
        choice, note = player.play(Slate.of(np.clip(view, -LARGEST, LARGEST), player.dim))
        return Choice(choice.arm, choice.parts, epoch=choice.epoch, inner=note)

    def update(self, note: Note, reward: float) -> None:
        """Hand the reward to the inner policy that chose."""
        assert note.inner is not None
        self._forked(self._turn(note.round)).update(note.inner, reward)

    def _forked(self, turn: int) -> Policy:
        """Return an inner policy that may be changed."""
        inners = list(self._inners)
        inners[turn] = inners[turn].fork()
        self._inners = tuple(inners)
        return inners[turn]

    def state(self) -> dict[str, Any]:
        """Return the inner policies."""
        return {"inners": [inner.to_tree() for inner in self._inners]}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue with the inner policies."""
        pairs = zip(self._inners, state["inners"], strict=True)
        self._inners = tuple(restored_inner(fresh, tree) for fresh, tree in pairs)

    def check_note(self, note: Note) -> None:
        """Raise an ArchiveError unless a restored note may be one of this policy's."""
        super().check_note(note)
        if note.inner is None:
            raise ArchiveError(f"no inner policy knows the open decision of round {note.round}")
        self._inners[self._turn(note.round)].check_note(note.inner)
