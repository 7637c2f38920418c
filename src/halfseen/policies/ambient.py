"""OFUL in all features, on the slate as it is seen: the zero-filled baseline and burn-in policy."""

from halfseen.policies.registry import register_policy
from halfseen.policies.ridge_policy import Optimism, RidgePolicy
from halfseen.values import Choice, Slate


@register_policy
class AmbientOful(Optimism, RidgePolicy):
    """OFUL in all features; hidden entries count as zero.

    If nothing is hidden, this is OFUL itself.

    Examples
    --------
    >>> policy = AmbientOful(dim=2)
    >>> decision = policy.choose([[1.0, 0.0], [0.0, float("nan")]])
    >>> decision.arm
    0
    >>> policy.learn(decision, 0.3)
    """

    needs = ("dim", "noise_scale")

    def setup(self) -> None:
        """Start with an empty regression."""
        super().setup()
        self._confidence = self.confidence()

    def decide(self, slate: Slate) -> Choice:
        """Choose the most optimistic arm."""
        return Choice(*self._model.score(slate._table, self._confidence.total))
