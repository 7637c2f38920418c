"""The base class of policies that regress rewards on arms, and the parameters of optimism."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from halfseen import checks
from halfseen.core.confidence import LARGEST_SCALE, Confidence
from halfseen.core.reasons import Reasons
from halfseen.core.ridge import SMALLEST_RIDGE, Ridge
from halfseen.params import Declared, custom, real
from halfseen.policies.base import Policy
from halfseen.state import Part
from halfseen.values import LARGEST, Choice, FloatArray, Note, Slate


def ridge_param(doc: str = "λ > 0, the penalty.") -> Any:
    """Declare λ."""
    return real(default=1.0, low=SMALLEST_RIDGE, high=LARGEST, doc=doc)


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
        return Confidence(
            ridge=self.ridge,
            theta_bound=self.theta_bound,
            noise_scale=self.noise_scale,
            failure_prob=self.failure_prob,
            radius_scale=self.radius_scale,
        )


class RidgePolicy(Policy):
    """Regresses rewards on arms in which hidden entries count as zero.

    Subclasses define how to choose.
    """

    STATE: ClassVar = {"_model": Part()}

    ridge: float = ridge_param()

    def setup(self) -> None:
        """Start with an empty regression."""
        self._model = Ridge(self.dim, ridge=self.ridge)

    @property
    def current_rank(self) -> int:
        """Number of features."""
        return self.dim

    def exploit(self, slate: Slate) -> Choice:
        """Choose the arm with the largest estimate."""
        return Choice(*self._model.score(slate._table, lambda log_det, n_samples: 0.0))

    def reasons(self, slate: Slate) -> Reasons:
        """Return what each feature adds, hidden ones nothing, and the width as the bonus."""
        none = Reasons.none(slate.n_arms, self.dim)
        parts = slate.values * self._model.estimate
        return none._replace(features=parts, bonus=self.appraise(slate)[2])

    def update(self, note: Note, reward: float) -> None:
        """Add the arm to the regression."""
        model = self._model.fork()
        model.update(note.arm, reward)
        self._model = model

    def grow(self, dim: int, levels: Mapping[int, int]) -> None:
        """Widen the regression; zero and hidden are the same here, so levels do not matter."""
        self._model = self._model.widened(dim)

    def refitted(self, points: FloatArray, rewards: FloatArray) -> Self:
        """Return a fork that has learned rewards (n,) of points (n, dim), and nothing else."""
        fork = self.fork()
        fork._model = Ridge(self.dim, ridge=self.ridge)
        for point, reward in zip(points, rewards.tolist(), strict=True):
            fork._model.update(point, reward)
        return fork
