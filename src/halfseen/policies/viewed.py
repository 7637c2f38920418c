"""Policies that show another view of each slate to an inner policy."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from halfseen import checks
from halfseen.core.confidence import LARGEST_SCALE
from halfseen.core.ridge import SMALLEST_RIDGE
from halfseen.errors import ArchiveError, InvalidSettingError
from halfseen.policies.ambient import AmbientOful
from halfseen.policies.base import Note, Policy
from halfseen.policies.greedy import Greedy
from halfseen.policies.registry import policy_from_tree
from halfseen.policies.thompson import LinearThompson
from halfseen.values import LARGEST, Decision, FloatArray, Slate

EXPLORATIONS = ("ucb", "thompson", "greedy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exploration:
    """How an inner policy explores: all settings that do not depend on what it is shown.

    Attributes
    ----------
    exploration : "ucb", "thompson" or "greedy"
        `AmbientOful`, `LinearThompson` or `Greedy`.
    ridge, failure_prob, theta_bound, noise_scale : float
        λ, δ, S, R; "thompson" uses λ and R, "greedy" λ alone.
    radius_scale : float
        Multiplies the radius of "ucb", and the standard deviation R of "thompson".
    seed : int
        Of "thompson".
    max_open : int
    """

    exploration: str
    ridge: float
    failure_prob: float
    theta_bound: float
    noise_scale: float
    radius_scale: float
    seed: int
    max_open: int

    def __post_init__(self) -> None:
        checked = {
            "exploration": checks.one_of("exploration", self.exploration, EXPLORATIONS),
            "ridge": checks.real("ridge", self.ridge, SMALLEST_RIDGE, LARGEST),
            "failure_prob": checks.failure_prob("failure_prob", self.failure_prob),
            "seed": checks.integer("seed", self.seed, 0),
            "max_open": checks.integer("max_open", self.max_open, 1),
        }
        for name in ("theta_bound", "noise_scale", "radius_scale"):
            checked[name] = checks.real(name, getattr(self, name), 0.0, LARGEST_SCALE)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def policy(self, dim: int) -> Policy:
        """Return a fresh inner policy in `dim` dimensions."""
        if self.exploration == "greedy":
            return Greedy(dim=dim, ridge=self.ridge, max_open=self.max_open)
        if self.exploration == "thompson":
            return LinearThompson(
                dim=dim,
                ridge=self.ridge,
                noise_scale=self.noise_scale,
                scale=min(LARGEST_SCALE, self.radius_scale * self.noise_scale),
                seed=self.seed,
                max_open=self.max_open,
            )
        return AmbientOful(
            dim=dim,
            ridge=self.ridge,
            failure_prob=self.failure_prob,
            theta_bound=self.theta_bound,
            noise_scale=self.noise_scale,
            radius_scale=self.radius_scale,
            max_open=self.max_open,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain JSON types."""
        return asdict(self)


class ViewedPolicy(Policy):
    """Shows another view of each slate to an inner policy and passes its choice on.

    A decision carries the arm as it was offered. The inner policy remembers what it was shown of
    that arm, so that a late reward meets the features of its choice, whatever view is the current
    one by then.

    Parameters
    ----------
    dim : int
        Number of features of every arm as offered.
    inners : sequence of Policy
        Who chooses; `_turn` says who in which round. Their dimension is that of the view, and
        their `max_open` must be this policy's.
    """

    def __init__(self, *, dim: int, inners: Sequence[Policy], max_open: int) -> None:
        super().__init__(dim=dim, max_open=max_open)
        for inner in inners:
            if inner.max_open != self.max_open:
                raise InvalidSettingError(
                    f"an inner policy must have max_open = {self.max_open}, got {inner.max_open}"
                )
        self._inners = tuple(inners)

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

    def _choose(self, slate: Slate) -> Decision:
        return self._pass_on(slate, self._view(slate))

    def _pass_on(self, slate: Slate, view: FloatArray) -> Decision:
        """Let the inner policy choose from the view; from there on the decision stands."""
        player = self._inners[self._turn(self._round + 1)]
        inner = player.choose(np.clip(view, -LARGEST, LARGEST))
        return self._answer(slate, inner._arm, inner._parts, epoch=inner._epoch, inner=inner._id)

    def _learn(self, note: Note, reward: float) -> None:
        assert note.inner is not None
        self._inners[self._turn(note.round)].learn(note.inner, reward)

    def _state(self) -> dict[str, Any]:
        return {"inners": [inner.to_tree() for inner in self._inners]}

    def _restore(self, state: dict[str, Any]) -> None:
        inners = tuple(policy_from_tree(tree) for tree in state["inners"])
        for fresh, restored in zip(self._inners, inners, strict=True):
            if type(fresh) is not type(restored) or fresh.settings() != restored.settings():
                raise ArchiveError("an inner policy does not fit the settings of the outer one")
        for id, note in self._open.items():
            if note.inner is None:
                raise ArchiveError(f"no inner policy knows the open decision {id}")
        self._inners = inners
