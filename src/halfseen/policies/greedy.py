"""The best estimate, always: the baseline that never explores."""

from halfseen.policies.base import Choice
from halfseen.policies.registry import register_policy
from halfseen.policies.ridge_policy import RidgePolicy
from halfseen.values import Slate


@register_policy
class Greedy(RidgePolicy):
    """Plays the arm of the largest ridge estimate in dimension `dim`; what is hidden is zero.

    Whatever exploration there is comes from the arms themselves changing from round to round. While
    all estimates are equal, as before the first reward, the first arm is played.

    Examples
    --------
    >>> policy = Greedy(dim=2)
    >>> decision = policy.choose([[1.0, 0.0], [0.0, 1.0]])
    >>> policy.learn(decision, -1.0)
    >>> policy.choose([[1.0, 0.0], [0.0, 1.0]]).arm
    1
    """

    def decide(self, slate: Slate) -> Choice:
        """Choose the arm of the largest estimate."""
        return Choice(*self._model.score(slate._table, lambda log_det, n_samples: 0.0))
