"""The best estimate, always: the baseline that never explores."""

from typing import Any

from halfseen.core.span_ridge import SpanRidge
from halfseen.policies.registry import register
from halfseen.policies.ridge_policy import RidgePolicy
from halfseen.values import Decision, Slate


@register
class Greedy(RidgePolicy):
    """Plays the arm of the largest ridge estimate in dimension `dim`; what is hidden is zero.

    Whatever exploration there is comes from the arms themselves changing from round to round. While
    all estimates are equal, as before the first reward, the first arm is played.

    Parameters
    ----------
    dim : int
    ridge : float
        λ > 0.
    max_open : int
        How many decisions wait for their reward at most; the oldest is forgotten first.

    Examples
    --------
    >>> policy = Greedy(dim=2)
    >>> decision = policy.choose([[1.0, 0.0], [0.0, 1.0]])
    >>> policy.learn(decision, -1.0)
    >>> policy.choose([[1.0, 0.0], [0.0, 1.0]]).arm
    1
    """

    told = ("dim",)

    def __init__(self, *, dim: int, ridge: float = 1.0, max_open: int = 10_000) -> None:
        super().__init__(dim=dim, max_open=max_open)
        self._model: SpanRidge = SpanRidge(self.dim, ridge=ridge)

    def settings(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain JSON types."""
        return {"dim": self.dim, "ridge": self._model.ridge, "max_open": self.max_open}

    def _choose(self, slate: Slate) -> Decision:
        arm, parts = self._model.score(slate._table, lambda log_det, n_samples: 0.0)
        return self._answer(slate, arm, parts)
