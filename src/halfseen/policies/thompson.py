"""Linear Thompson sampling in all features, on the slate as it is seen."""

from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from halfseen import checks
from halfseen.core.confidence import LARGEST_SCALE
from halfseen.core.ridge import Ridge
from halfseen.policies.registry import register
from halfseen.policies.ridge_policy import RidgePolicy
from halfseen.seeding import stream
from halfseen.values import Decision, FloatArray, Slate


@register
class LinearThompson(RidgePolicy):
    """Plays the best arm for a parameter drawn anew each round; what is hidden counts as zero.

    θ ~ N(V⁻¹Σzr, scale²·V⁻¹) with V = λI + Σzz'. One parameter is drawn per round, not one per arm.
    Of a decision the estimate is the value under the mean, the score that under the draw, and the
    width their difference, which here may be negative.

    Parameters
    ----------
    dim : int
    ridge : float
        λ > 0.
    noise_scale : float
        R, the standard deviation of the rewards' noise.
    scale : float, optional
        By default R: with Gaussian noise and the prior θ ~ N(0, R²/λ·I) the law above is then the
        exact posterior. Guarantees for every θ ask for a scale larger by about the square root of
        `dim`, which explores far more.
    seed : int
        Names the stream of random numbers.
    max_open : int
        How many decisions wait for their reward at most; the oldest is forgotten first.

    Examples
    --------
    >>> policy = LinearThompson(dim=2, noise_scale=0.1)
    >>> decision = policy.choose([[1.0, 0.0], [0.0, float("nan")]])
    >>> decision.estimates.tolist(), decision.arm == decision.scores.argmax()
    ([0.0, 0.0], np.True_)
    """

    told = ("dim", "noise_scale", "seed")

    def __init__(
        self,
        *,
        dim: int,
        ridge: float = 1.0,
        noise_scale: float = 0.5,
        scale: float | None = None,
        seed: int = 0,
        max_open: int = 10_000,
    ) -> None:
        super().__init__(dim=dim, max_open=max_open)
        self.noise_scale = checks.real("noise_scale", noise_scale, 0.0, LARGEST_SCALE)
        self.scale = self.noise_scale
        if scale is not None:
            self.scale = checks.real("scale", scale, 0.0, LARGEST_SCALE)
        self.seed = checks.integer("seed", seed, 0)
        self._random = stream(self.seed, "thompson")
        # The plain regression: outside of the span of the samples the draw is as random as inside.
        self._model: Ridge = Ridge(self.dim, ridge=ridge)

    def settings(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain JSON types."""
        return {
            "dim": self.dim,
            "ridge": self._model.ridge,
            "noise_scale": self.noise_scale,
            "scale": self.scale,
            "seed": self.seed,
            "max_open": self.max_open,
        }

    def _choose(self, slate: Slate) -> Decision:
        before = self._random.bit_generator.state
        try:
            parts = self._parts(slate.values)
        except BaseException:
            self._random.bit_generator.state = before
            raise
        return self._answer(slate, int(parts[0].argmax()), parts)

    def _parts(self, points: FloatArray) -> FloatArray:
        """Draw a parameter and return scores, estimates and differences, shape (3, n_arms)."""
        model = self._model
        # With V = R'R and g standard normal, R⁻¹g has covariance V⁻¹.
        draw = self._random.standard_normal(self.dim)
        offset = self.scale * solve_triangular(model.factor, draw, check_finite=False)
        # Row by row, unlike a product by BLAS: equal arms get equal bits, and ties go to the first.
        estimates = np.einsum("ij,j->i", points, model.estimate)
        differences = np.einsum("ij,j->i", points, offset)
        return np.stack([estimates + differences, estimates, differences])

    def _state(self) -> dict[str, Any]:
        return {"random": self._random.bit_generator.state, "model": super()._state()}

    def _restore(self, state: dict[str, Any]) -> None:
        self._random.bit_generator.state = state["random"]
        super()._restore(state["model"])
