"""Noise, size of the parameter and penalty of a reward regression, from the rewards themselves."""

import math
from typing import NamedTuple

import numpy as np

from halfseen.values import FloatArray

# Penalties that are tried, for coordinates of mean square about 1.
_PENALTIES = 10.0 ** np.arange(-4.0, 2.25, 0.5)
# Smaller shares of the largest eigenvalue are rounding.
_ROUNDING = 1e-12
# Before there are many rewards the noise counts as if these many had been seen with residuals of
# this share of the mean squared reward: one reward alone does not prove that there is no noise.
_PRIOR_REWARDS = 2.0
_PRIOR_SHARE = 0.05


class Scales(NamedTuple):
    """What a confidence radius needs to know about rewards.

    Attributes
    ----------
    ridge : float
        λ: noise variance over the parameter's prior variance, by maximal evidence.
    noise_scale : float
        Standard deviation of a reward around its estimate, what hidden entries leave open aside.
    theta_bound : float
        Norm of the estimate.
    residual_scale : float
        Standard deviation of a reward around its estimate, all in all.
    """

    ridge: float
    noise_scale: float
    theta_bound: float
    residual_scale: float


UNKNOWN = Scales(1.0, 1.0, 1.0, 1.0)
"""Before any reward other than 0: every choice of these gives the same order of arms, that of their
widths."""


class Evidence:
    """The samples of a regression in the eigenvectors of their Gram matrix.

    Parameters
    ----------
    points : ndarray, shape (n, rank)
    rewards : ndarray, shape (n,)
    """

    def __init__(self, points: FloatArray, rewards: FloatArray) -> None:
        self.n = len(rewards)
        self.reward_squares = float(rewards @ rewards)
        if points.shape[1] <= self.n:
            values, vectors = np.linalg.eigh(points.T @ points)
        else:
            # With more dimensions than samples the same numbers come from the small matrix.
            values, vectors = np.linalg.eigh(points @ points.T)
            real = values > _ROUNDING * values[-1]
            values, vectors = values[real], vectors[:, real]
            vectors = (points.T @ vectors) / np.sqrt(values)
        self._response = vectors.T @ (points.T @ rewards)
        self._vectors, self._values = vectors, np.maximum(values, 0.0)
        # Where points are so large that a penalty is below rounding, rounding is the penalty.
        self._least = _ROUNDING * float(self._values.max(initial=0.0))

    def estimate(self, ridge: float) -> FloatArray:
        """Return the parameter (Z'Z + λI)⁻¹Z'r, shape (rank,)."""
        penalty = max(ridge, self._least)
        solution: FloatArray = self._vectors @ (self._response / (self._values + penalty))
        return solution

    def best_ridge(self) -> tuple[float, float]:
        """Return the penalty of largest evidence, and the noise variance that goes with it.

        With r = Zθ + noise of variance R² and θ ~ N(0, R²/λ·I), the rewards are normal with
        covariance R²(I + ZZ'/λ); for each λ the best R² has a closed form.
        """
        if self.reward_squares == 0.0:
            return 1.0, 0.0
        penalties = np.maximum(_PENALTIES, self._least)[:, None]
        left = self.reward_squares - (self._response**2 / (self._values + penalties)).sum(axis=1)
        n = self.n + _PRIOR_REWARDS
        prior = _PRIOR_REWARDS * _PRIOR_SHARE * self.reward_squares / max(1, self.n)
        variances = (np.maximum(left, 0.0) + prior) / n
        evidence = -n * np.log(variances) - np.log1p(self._values / penalties).sum(axis=1)
        best = int(evidence.argmax())
        return float(_PENALTIES[best]), float(variances[best])


def estimate_scales(points: FloatArray, rewards: FloatArray) -> tuple[Scales, FloatArray]:
    """Return scales and parameter of a regression in coordinates of mean square about 1.

    Parameters
    ----------
    points : ndarray, shape (n, rank)
    rewards : ndarray, shape (n,)

    Returns
    -------
    scales : Scales
    theta : ndarray, shape (rank,)

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> points = random.normal(size=(400, 2))
    >>> rewards = points @ [3.0, 4.0] + 0.5 * random.normal(size=400)
    >>> scales, theta = estimate_scales(points, rewards)
    >>> round(scales.theta_bound, 1), round(scales.residual_scale, 1)
    (5.0, 0.5)
    """
    if not rewards.any():
        return UNKNOWN, np.zeros(points.shape[1])
    largest = float(np.abs(rewards).max())  # squares of rewards of 1e-200 would vanish
    evidence = Evidence(points, rewards / largest)
    ridge, variance = evidence.best_ridge()
    theta = largest * evidence.estimate(ridge)
    residual = largest * math.sqrt(variance)
    return Scales(ridge, residual, float(np.linalg.norm(theta)), residual), theta


def without_hidden(scales: Scales, hidden: FloatArray) -> Scales:
    """Return scales whose noise leaves out what hidden entries add to the residuals.

    Parameters
    ----------
    scales : Scales
    hidden : ndarray, shape (n,)
        Variance of every sample's θ'z that its hidden entries leave open.
    """
    variance = scales.residual_scale**2
    rest = max(variance - float(hidden.mean()), 1e-4 * variance)
    return scales._replace(noise_scale=math.sqrt(rest))
