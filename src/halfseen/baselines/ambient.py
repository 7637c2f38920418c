"""Policies that regress rewards on all features; hidden entries count as zero."""

from collections.abc import Mapping
from typing import ClassVar, Self

import numpy as np

from halfseen.linear.drawing import win_shares
from halfseen.linear.ridge import LARGEST_SCALE, Ridge
from halfseen.params import real
from halfseen.policies.abilities import Draws, Explains, Exploits, Grows
from halfseen.policies.base import Policy
from halfseen.policies.optimism import Optimism, ridge_param, scale_param
from halfseen.policies.registry import register_policy
from halfseen.state import Part
from halfseen.values import Choice, FloatArray, Note, Slate
from halfseen.values.reasons import Reasons
from halfseen.values.rows import row_keys


class RidgePolicy(Explains, Exploits, Grows, Policy):
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
        return Choice(*self._model.score(slate.table, lambda log_det, n_samples: 0.0))

    def reasons(self, slate: Slate) -> Reasons:
        """Return what each feature adds, hidden ones nothing, and the width as the bonus."""
        none = Reasons.none(slate.n_arms, self.dim)
        parts = slate.values * self._model.estimate
        return none._replace(features=parts, bonus=self.appraise(slate)[2])

    def update(self, note: Note, reward: float) -> None:
        """Add the arm to the regression."""
        self._model = self._model.fork()
        self._model.update(note.arm, reward)

    def grow(self, dim: int, levels: Mapping[int, int]) -> None:
        """Widen the regression; zero and hidden are the same here, so levels do not matter."""
        self._model = self._model.widened(dim)

    def refitted(self, points: FloatArray, rewards: FloatArray) -> Self:
        """Return a fork that has learned rewards (n,) of points (n, dim), and nothing else."""
        fork = self.fork()
        fork._model = Ridge(self.dim, ridge=self.ridge)
        fork._model.insert(points, rewards)
        return fork


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
        return Choice(*self._model.score(slate.table, self._confidence.total))


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


@register_policy
class LinearThompson(Draws, RidgePolicy):
    """Plays the best arm for a parameter drawn anew each round; hidden entries count as zero.

    θ ~ N(V⁻¹Σzr, scale²·V⁻¹) with V = λI + Σzz'. One parameter is drawn per round, not one per arm.
    In a decision, the estimate is the value under the mean and the score the value under the draw.
    The width is their difference, which may be negative here. The probabilities are the frequencies
    with which each arm is best in 1000 draws, of which the played one is one.

    Examples
    --------
    >>> policy = LinearThompson(dim=2, noise_scale=0.1)
    >>> decision = policy.choose([[1.0, 0.0], [0.0, float("nan")]])
    >>> decision.estimates.tolist(), decision.arm == decision.scores.argmax()
    ([0.0, 0.0], np.True_)
    """

    needs = ("dim", "noise_scale", "seed")

    noise_scale: float = scale_param(0.5, doc="R, the standard deviation of the rewards' noise.")
    scale: float | None = real(
        default=None,
        low=0.0,
        high=LARGEST_SCALE,
        doc="""By default R: with Gaussian noise and the prior θ ~ N(0, R²/λ·I) this is the exact
    posterior. Regret bounds for every θ need a scale larger by about the square root of `dim`,
    which explores far more.""",
    )

    def decide(self, slate: Slate) -> Choice:
        """Choose the best arm under a parameter drawn anew."""
        parts = self._parts(slate.values, self.stream(slate, "thompson"))
        arm = int(parts[0].argmax())
        return Choice(arm, parts, probabilities=self._shares(slate, parts[1], arm))

    def appraise(self, slate: Slate) -> FloatArray:
        """Return estimates with the posterior deviation as width, not with a draw."""
        scale = self._deviation
        return self._model.score(slate.table, lambda log_det, n_samples: scale)[1]

    def _shares(self, slate: Slate, estimates: FloatArray, arm: int) -> FloatArray:
        """Return the frequencies with which arms are best, in further draws of another stream."""
        random = self.stream(slate, "shares")
        white = self._deviation * self._model.whitened(slate.values)
        return win_shares(row_keys(slate.table), estimates, white, arm, random)

    @property
    def _deviation(self) -> float:
        return self.noise_scale if self.scale is None else self.scale

    def _parts(self, points: FloatArray, random: np.random.Generator) -> FloatArray:
        """Draw a parameter and return scores, estimates and differences, shape (3, n_arms)."""
        model = self._model
        # With V = R'R and g standard normal, R⁻¹g has covariance V⁻¹.
        draw = random.standard_normal(self.dim)
        offset = self._deviation * model.solved(draw)
        # Row by row, not by BLAS: equal arms get exactly equal scores, and ties go to the first.
        estimates = np.einsum("ij,j->i", points, model.estimate)
        differences = np.einsum("ij,j->i", points, offset)
        return np.stack([estimates + differences, estimates, differences])
