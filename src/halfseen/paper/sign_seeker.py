"""A policy for the hard family of the lower bound that knows everything but the hidden sign."""

from typing import Any, ClassVar

import numpy as np

from halfseen import checks
from halfseen.errors import InvalidSettingError
from halfseen.params import custom
from halfseen.policies.base import Policy
from halfseen.policies.registry import register_policy
from halfseen.state import Whole
from halfseen.values import Choice, FloatArray, Note, Slate


@register_policy
class SignSeeker(Policy):
    """Waits for the hidden sign σ of `HardInstanceWorld`, which a side arm betrays.

    It knows the family: features 0 and 1 label decision arms, of mean aνγ + bσΔ with Δ ≥ γ, and
    the signs of features 2 and 3 of a side arm agree if σ = 1. It is told ν and ignores rewards.
    So its regret is the cost of discovering σ from slates (`halfseen.theory.discovery_cost`).

    Examples
    --------
    >>> policy = SignSeeker(dim=4)
    >>> nan = float("nan")
    >>> policy.choose([[0.5, -0.5, 0, 0], [nan, nan, 0.35, nan]]).arm, policy.hidden_sign
    (0, 0)
    >>> policy.choose([[0.5, -0.5, 0, 0], [nan, nan, 0.35, -0.35]]).arm, policy.hidden_sign
    (0, -1)
    """

    STATE: ClassVar = {"hidden_sign": Whole(-1, 1), "_wait": Whole()}

    reward_sign: int = custom(
        default=1,
        check=lambda name, value: _checked_sign(name, value),
        kind="1 or -1",
        doc="ν.",
    )

    def setup(self) -> None:
        """Start without the hidden sign."""
        if self.dim < 4:
            raise InvalidSettingError(f"dim must be at least 4, got {self.dim}")
        self.hidden_sign, self._wait = 0, 0

    @property
    def current_rank(self) -> int:
        """The rank of the family."""
        return 3

    def _diagnostics(self) -> dict[str, Any]:
        """Return how many rounds were played without the hidden sign."""
        return {"wait": [self._wait]}

    def decide(self, slate: Slate) -> Choice:
        """Play the best decision arm as far as the signs are known; a side arm counts as 0."""
        self._observe(slate)
        self._wait += self.hidden_sign == 0
        labels = np.sign(np.nan_to_num(slate._table[:, :2]))
        decisive = (labels != 0).all(axis=1)
        # Δ ≥ γ, so σ counts first.
        scores = self.reward_sign * labels[:, 0] + 2 * self.hidden_sign * labels[:, 1]
        return Choice.best(np.where(decisive, scores, 0.0))

    def _observe(self, slate: Slate) -> None:
        """Look for a side arm with both entries."""
        if not self.hidden_sign:
            self.hidden_sign = _betrayed(slate._table)

    def update(self, note: Note, reward: float) -> None:
        """Learn nothing from rewards."""


def _betrayed(arms: FloatArray) -> int:
    """Return the sign that side arms with both entries betray; 0 if there is none.

    In the family all of them agree; elsewhere the majority counts.
    """
    signs = np.sign(np.nan_to_num(arms[:, 2])) * np.sign(np.nan_to_num(arms[:, 3]))
    return int(np.sign(signs.sum()))


def _checked_sign(name: str, value: Any) -> int:
    if checks.integer(name, value, -1, 1) == 0:
        raise InvalidSettingError("must be 1 or -1, got 0", name=name)
    return int(value)
