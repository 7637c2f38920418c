"""The best estimate, always: the baseline that never explores."""

from halfseen.policies.registry import register_policy
from halfseen.policies.ridge_policy import RidgePolicy
from halfseen.values import Choice, Slate


@register_policy
class Greedy(RidgePolicy):
    """Plays the arm with the largest ridge estimate in all features; hidden entries count as zero.

    It explores only because the offered arms change from round to round. While all estimates are
    equal, as before the first reward, it plays the first arm.

    Examples
    --------
    >>> policy = Greedy(dim=2)
    >>> decision = policy.choose([[1.0, 0.0], [0.0, 1.0]])
    >>> policy.learn(decision, -1.0)
    >>> policy.choose([[1.0, 0.0], [0.0, 1.0]]).arm
    1
    """

    def decide(self, slate: Slate) -> Choice:
        """Choose the arm with the largest estimate."""
        return self.exploit(slate)
