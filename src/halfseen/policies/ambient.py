"""OFUL in all features, on the slate as it is seen: the zero-filled baseline and burn-in policy."""

from typing import Any

from halfseen import checks
from halfseen.core.confidence import LARGEST_SCALE, Confidence
from halfseen.core.span_ridge import SpanRidge
from halfseen.policies.registry import register
from halfseen.policies.ridge_policy import RidgePolicy
from halfseen.values import Decision, Slate


@register
class AmbientOful(RidgePolicy):
    """Optimism in dimension `dim`; what is hidden counts as zero.

    On a slate with nothing hidden this is OFUL itself.

    Parameters
    ----------
    dim : int
    ridge : float
        λ > 0.
    failure_prob : float
        δ.
    theta_bound, noise_scale : float
        S and R. A reward in [0, 1] has R = 0.5.
    radius_scale : float
        Multiplies the radius; 1 is the theory's.

    Examples
    --------
    >>> policy = AmbientOful(dim=2)
    >>> decision = policy.choose([[1.0, 0.0], [0.0, float("nan")]])
    >>> decision.arm
    0
    >>> policy.learn(decision, 0.3)
    """

    told = ("dim", "noise_scale")

    def __init__(
        self,
        *,
        dim: int,
        ridge: float = 1.0,
        failure_prob: float = 0.05,
        theta_bound: float = 1.0,
        noise_scale: float = 0.5,
        radius_scale: float = 1.0,
        max_open: int = 10_000,
    ) -> None:
        super().__init__(dim=dim, max_open=max_open)
        self.failure_prob = checks.failure_prob("failure_prob", failure_prob)
        self.theta_bound = checks.real("theta_bound", theta_bound, 0.0, LARGEST_SCALE)
        self.noise_scale = checks.real("noise_scale", noise_scale, 0.0, LARGEST_SCALE)
        self.radius_scale = checks.real("radius_scale", radius_scale, 0.0, LARGEST_SCALE)
        self._model: SpanRidge = SpanRidge(self.dim, ridge=ridge)
        self._confidence = Confidence(
            ridge=self._model.ridge,
            theta_bound=self.theta_bound,
            noise_scale=self.noise_scale,
            failure_prob=self.failure_prob,
            radius_scale=self.radius_scale,
        )

    def settings(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain JSON types."""
        return {
            "dim": self.dim,
            "ridge": self._model.ridge,
            "failure_prob": self.failure_prob,
            "theta_bound": self.theta_bound,
            "noise_scale": self.noise_scale,
            "radius_scale": self.radius_scale,
            "max_open": self.max_open,
        }

    def _choose(self, slate: Slate) -> Decision:
        arm, parts = self._model.score(slate._table, self._confidence.total)
        return self._answer(slate, arm, parts)
