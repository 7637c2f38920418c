"""Parameters that policies share: of a ridge regression, of a confidence radius, of exploration."""

from typing import Any

from halfseen import checks
from halfseen.linear.ridge import LARGEST_SCALE, SMALLEST_RIDGE, Confidence
from halfseen.params import Declared, custom, real
from halfseen.values import LARGEST

EXPLORATIONS = ("ucb", "thompson", "greedy")


def ridge_param() -> Any:
    """Declare λ."""
    return real(default=1.0, low=SMALLEST_RIDGE, high=LARGEST, doc="λ > 0, the penalty.")


def scale_param(default: float, *, doc: str) -> Any:
    """Declare a scale that may be zero."""
    return real(default=default, low=0.0, high=LARGEST_SCALE, doc=doc)


class Optimism(Declared):
    """Parameters of a confidence radius."""

    ridge: float = ridge_param()
    failure_prob: float = custom(default=0.05, check=checks.failure_prob, kind="float", doc="δ.")
    theta_bound: float = scale_param(1.0, doc="S, a bound on the norm of the parameter.")
    noise_scale: float = scale_param(0.5, doc="R of the reward noise; 0.5 for rewards in [0, 1].")
    radius_scale: float = scale_param(1.0, doc="Multiplies the radius; 1 as in the theory.")

    def confidence(self) -> Confidence:
        """Return the confidence radius for these parameters."""
        return Confidence(**self.optimism())

    def optimism(self) -> dict[str, Any]:
        """Return these parameters by name, for a policy or a radius that shares them."""
        return {name: getattr(self, name) for name in Optimism.parameters}
