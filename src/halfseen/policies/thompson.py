"""Linear Thompson sampling in all features; hidden entries count as zero."""

from typing import ClassVar

import numpy as np

from halfseen.core.confidence import LARGEST_SCALE
from halfseen.core.drawing import win_shares
from halfseen.core.factors import row_keys
from halfseen.params import integer, real
from halfseen.policies.registry import register_policy
from halfseen.policies.ridge_policy import RidgePolicy, scale_param
from halfseen.seeding import stream
from halfseen.state import RandomState
from halfseen.values import Choice, FloatArray, Slate


@register_policy
class LinearThompson(RidgePolicy):
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

    STATE: ClassVar = {"_random_state": RandomState()}
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
    seed: int = integer(default=0, low=0, doc="Names the stream of random numbers.")

    def setup(self) -> None:
        """Start with an empty regression and a fresh stream."""
        super().setup()
        self._random = stream(self.seed, "thompson")
        self._random_state = self._random.bit_generator.state

    def decide(self, slate: Slate) -> Choice:
        """Choose the best arm under a parameter drawn anew."""
        random = self._random.bit_generator
        random.state = self._random_state  # so that a failed choice draws nothing
        parts = self._parts(slate.values)
        self._random_state = random.state
        arm = int(parts[0].argmax())
        return Choice(arm, parts, probabilities=self._shares(slate, parts[1], arm))

    def appraise(self, slate: Slate) -> FloatArray:
        """Return estimates with the posterior deviation as width, not with a draw."""
        scale = self._deviation
        parts: FloatArray = self._model.score(slate._table, lambda log_det, n_samples: scale)[1]
        return parts

    def _shares(self, slate: Slate, estimates: FloatArray, arm: int) -> FloatArray:
        """Return the frequencies with which arms are best, in further draws of another stream."""
        random = stream(self.seed, "shares", str(self._round + 1))
        white = self._deviation * self._model.whitened(slate.values)
        return win_shares(row_keys(slate._table), estimates, white, arm, random)

    @property
    def _deviation(self) -> float:
        return self.noise_scale if self.scale is None else self.scale

    def _parts(self, points: FloatArray) -> FloatArray:
        """Draw a parameter and return scores, estimates and differences, shape (3, n_arms)."""
        model = self._model
        # With V = R'R and g standard normal, R⁻¹g has covariance V⁻¹.
        draw = self._random.standard_normal(self.dim)
        offset = self._deviation * model.solved(draw)
        # Row by row, not by BLAS: equal arms get exactly equal scores, and ties go to the first.
        estimates = np.einsum("ij,j->i", points, model.estimate)
        differences = np.einsum("ij,j->i", points, offset)
        return np.stack([estimates + differences, estimates, differences])
