"""Estimates noise, size of the parameter and penalty of a reward regression from the rewards."""

import math
from typing import NamedTuple

import numpy as np

from halfseen.values import FloatArray

# Penalties to try, for coordinates of mean square about 1.
_PENALTIES = 10.0 ** np.arange(-4.0, 2.25, 0.5)
# Eigenvalues below this share of the largest are rounding.
_ROUNDING = 1e-12
# The noise estimate includes this many pseudo-rewards whose squared residual is this share of the
# mean squared reward: a single reward does not prove that there is no noise.
_PRIOR_REWARDS = 2.0
_PRIOR_SHARE = 0.05


class Scales(NamedTuple):
    """Parameters of a confidence radius, estimated from rewards.

    Attributes
    ----------
    ridge : float
        λ: noise variance over the parameter's prior variance, by maximum evidence.
    noise_scale : float
        Standard deviation of a reward around its estimate, without the part due to hidden entries.
    theta_bound : float
        Norm of the estimate.
    residual_scale : float
        Standard deviation of a reward around its estimate, in total.
    """

    ridge: float
    noise_scale: float
    theta_bound: float
    residual_scale: float


UNKNOWN = Scales(1.0, 1.0, 1.0, 1.0)
"""Used while all rewards are 0: any scales rank the arms the same way, by their widths."""


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
            # With more dimensions than samples, the smaller matrix gives the same numbers.
            values, vectors = np.linalg.eigh(points @ points.T)
            real = values > _ROUNDING * values[-1]
            values, vectors = values[real], vectors[:, real]
            vectors = (points.T @ vectors) / np.sqrt(values)
        self._response = vectors.T @ (points.T @ rewards)
        self._vectors, self._values = vectors, np.maximum(values, 0.0)
        # If points are so large that a penalty is below rounding, rounding acts as the penalty.
        self._least = _ROUNDING * float(self._values.max(initial=0.0))

    def estimate(self, ridge: float) -> FloatArray:
        """Return the parameter (Z'Z + λI)⁻¹Z'r, shape (rank,)."""
        penalty = max(ridge, self._least)
        solution: FloatArray = self._vectors @ (self._response / (self._values + penalty))
        return solution

    def best_ridge(self) -> tuple[float, float]:
        """Return the penalty with the largest evidence, and its noise variance.

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
    largest = float(np.abs(rewards).max())  # squares of tiny rewards would underflow
    evidence = Evidence(points, rewards / largest)
    ridge, variance = evidence.best_ridge()
    theta = largest * evidence.estimate(ridge)
    residual = largest * math.sqrt(variance)
    return Scales(ridge, residual, float(np.linalg.norm(theta)), residual), theta


def without_hidden(scales: Scales, hidden: FloatArray) -> Scales:
    """Return scales whose noise excludes the part of the residuals due to hidden entries.

    Parameters
    ----------
    scales : Scales
    hidden : ndarray, shape (n,)
        Posterior variance of every sample's θ'z given its seen entries.
    """
    variance = scales.residual_scale**2
    rest = max(variance - float(hidden.mean()), 1e-4 * variance)
    return scales._replace(noise_scale=math.sqrt(rest))
