"""The radius of the confidence ellipsoid, with its three parts apart."""

import math
from typing import NamedTuple


class Radius(NamedTuple):
    """β of the paper as a sum of three.

    Attributes
    ----------
    regularization : float
        √λ·S: what the ridge penalty may hide.
    noise : float
        R·sqrt(2 log(det(V)^½ / (det(λI)^½ δ))): what reward noise may have done.
    misspecification : float
        b·sqrt(n): what n samples with a bias of at most b each may have done.
    """

    regularization: float
    noise: float
    misspecification: float

    @property
    def total(self) -> float:
        """Sum of the three parts."""
        return self.regularization + self.noise + self.misspecification


def radius(
    *,
    ridge: float,
    theta_bound: float,
    noise_scale: float,
    log_det: float,
    failure_prob: float,
    misspecification: float = 0.0,
    n_samples: int = 0,
    radius_scale: float = 1.0,
) -> Radius:
    """Return the radius for which the ellipsoid covers the parameter with high probability.

    Parameters
    ----------
    ridge, theta_bound, noise_scale, failure_prob : float
        λ, S, R, δ.
    log_det : float
        log(det V / λ^dim).
    misspecification : float
        b: the largest bias of one sample.
    n_samples : int
        Samples in V: the paper's t − τ_e where nothing is replayed.
    radius_scale : float
        Multiplies all three parts; 1 is the paper's.

    Examples
    --------
    >>> parts = radius(
    ...     ridge=4.0, theta_bound=1.0, noise_scale=1.0, log_det=0.0, failure_prob=math.exp(-2),
    ...     misspecification=0.5, n_samples=9,
    ... )
    >>> parts, parts.total
    (Radius(regularization=2.0, noise=2.0, misspecification=1.5), 5.5)

    Notes
    -----
    Paper: thm:confidence_set_m_t_main
    """
    log_ratio = 0.5 * log_det - math.log(failure_prob)
    return Radius(
        radius_scale * math.sqrt(ridge) * theta_bound,
        radius_scale * noise_scale * math.sqrt(2.0 * max(0.0, log_ratio)),
        radius_scale * misspecification * math.sqrt(n_samples),
    )
