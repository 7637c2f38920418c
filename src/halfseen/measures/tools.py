"""What several measures share: which realization they need, and at which rounds they look."""

import math

import numpy as np

from halfseen import checks
from halfseen.core.moments import Moments
from halfseen.core.subspace import top_eigenpairs
from halfseen.errors import InvalidSettingError
from halfseen.values import FloatArray
from halfseen.worlds.base import Realization
from halfseen.worlds.lowrank import LowRankRealization


def low_rank(realization: Realization) -> LowRankRealization:
    """Return the realization if it is that of a low-rank world, whose subspace is known."""
    if not isinstance(realization, LowRankRealization):
        raise InvalidSettingError(
            f"the theory is measured in a low-rank world, got {type(realization).__name__}"
        )
    return realization


def bounded_low_rank(realization: Realization) -> LowRankRealization:
    """Return the realization if it is that of a low-rank world with bounded arms."""
    truth = low_rank(realization)
    if not math.isfinite(truth.problem().arm_bound):
        raise InvalidSettingError(
            'latent must be "uniform" where bounds are measured, because other arms are unbounded, '
            f"got {truth.world.latent!r}"
        )
    return truth


def log_spaced(last: int, points: int) -> list[int]:
    """Return at most `points` whole numbers from 1 to `last`, evenly spaced in their logarithm.

    >>> log_spaced(100, 5)
    [1, 3, 10, 32, 100]
    """
    checks.integer("points", points, 2)
    spread = np.geomspace(1, checks.integer("last", last, 1), points)
    return [int(number) for number in np.unique(np.round(spread))]


def leading_basis(moments: Moments, realization: LowRankRealization) -> FloatArray:
    """Return the estimated basis of known rank, as an epoch would freeze it now."""
    world = realization.world
    return top_eigenpairs(moments.covariance(world.observe_prob), world.rank)[1]
