"""The radius of the confidence ellipsoid, as a sum of three parts."""

import math
from math import sqrt
from typing import NamedTuple

from halfseen import checks

LARGEST_SCALE = 1e30
"""Largest S, R and radius scale: products with values up to 1e100 stay finite."""


class Radius(NamedTuple):
    """The paper's β as a sum of three parts.

    Attributes
    ----------
    regularization : float
        √λ·S, the effect of the ridge penalty.
    noise : float
        R·sqrt(2 log(det(V)^½ / (det(λI)^½ δ))), the effect of reward noise.
    misspecification : float
        b·sqrt(n), the effect of n samples with a bias of at most b each.
    """

    regularization: float
    noise: float
    misspecification: float

    @property
    def total(self) -> float:
        """Sum of the three parts."""
        return self.regularization + self.noise + self.misspecification


class Confidence:
    """The radius for which the ellipsoid covers the parameter with high probability.

    Parameters
    ----------
    ridge, theta_bound, noise_scale, failure_prob : float
        λ, S, R, δ.
    misspecification : float
        b: the largest bias of one sample.
    radius_scale : float
        Multiplies all three parts; 1 as in the paper.

    Examples
    --------
    >>> confidence = Confidence(
    ...     ridge=4.0, theta_bound=1.0, noise_scale=1.0, failure_prob=math.exp(-2),
    ...     misspecification=0.5,
    ... )
    >>> confidence.radius(log_det=0.0, n_samples=9)
    Radius(regularization=2.0, noise=2.0, misspecification=1.5)

    Notes
    -----
    Paper: thm:confidence_set_m_t_main
    """

    __slots__ = ("_bias", "_log_failure", "_noise", "_regularization")

    def __init__(
        self,
        *,
        ridge: float,
        theta_bound: float,
        noise_scale: float,
        failure_prob: float,
        misspecification: float = 0.0,
        radius_scale: float = 1.0,
    ) -> None:
        self._regularization = radius_scale * math.sqrt(ridge) * theta_bound
        self._noise = radius_scale * noise_scale
        self._bias = radius_scale * misspecification
        # No `checks.failure_prob`: an epoch's share of δ may be smaller than any policy's δ.
        share = checks.real("failure_prob", failure_prob, 0.0, 1.0, low_open=True, high_open=True)
        self._log_failure = math.log(share)

    def total(self, log_det: float, n_samples: float) -> float:
        """Return β, the sum of the parts that `radius` returns."""
        regularization, noise, misspecification = self._parts(log_det, n_samples)
        return regularization + noise + misspecification

    def radius(self, log_det: float, n_samples: float) -> Radius:
        """Return the three parts of β.

        Parameters
        ----------
        log_det : float
            log(det V / λ^dim).
        n_samples : float
            Samples in V; without replay, the paper's t − τ_e.
        """
        return Radius(*self._parts(log_det, n_samples))

    def _parts(self, log_det: float, n_samples: float) -> tuple[float, float, float]:
        log_ratio = max(0.0, 0.5 * log_det - self._log_failure)
        noise = self._noise * sqrt(2.0 * log_ratio)
        return self._regularization, noise, self._bias * sqrt(n_samples)
