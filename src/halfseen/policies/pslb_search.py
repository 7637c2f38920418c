"""The two confidence sets of PSLB, and the search for optimistic values by random candidates."""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtri

from halfseen import _kernels
from halfseen.core.confidence import Confidence
from halfseen.core.ellipsoids import Ellipsoid
from halfseen.core.ridge import Ridge
from halfseen.values import FloatArray

# How far outside of a set a candidate may lie: rounding puts those on its border there.
_TOLERANCE = 1e-8


class Sets(NamedTuple):
    """Where the parameter's coordinates in a subspace lie, by two arguments.

    Attributes
    ----------
    projected : Ellipsoid
        From the regression on projected samples.
    mapped : Ellipsoid
        The shadow of the ellipsoid of the regression in all features.
    """

    projected: Ellipsoid
    mapped: Ellipsoid


def confidence_sets(
    model: Ridge, basis: FloatArray, confidence: Confidence, bonus: float
) -> Sets | None:
    """Return both confidence sets, or None where rounding leaves one of them without a size.

    No sample is looked at again: U'VU is the design of the projected samples, for the same ridge.
    `bonus` is added to the radius of the projected set.
    """
    rank = basis.shape[1]
    precision, spread = np.empty((rank, rank)), np.empty((rank, rank))
    white, spread_white = np.empty(rank), np.empty(rank)
    _kernels.project_model(model.factor, model.white, basis, precision, white, spread, spread_white)
    if not (_is_sound(precision) and _is_sound(spread)):
        return None
    log_det = 2.0 * float(np.log(precision.diagonal()).sum()) - rank * math.log(model.ridge)
    with np.errstate(all="ignore"):  # a set beyond all numbers meets nothing
        root, whitener = dtrtri(precision)[0], dtrtri(spread)[0].T
        projected = Ellipsoid(
            root @ white, precision, root, confidence.total(log_det, model.n_samples) + bonus
        )
        mapped = Ellipsoid(
            spread.T @ spread_white,
            whitener,
            spread.T,
            confidence.total(model.log_det, model.n_samples),
        )
    return Sets(projected, mapped)


def sampled_parts(
    points: FloatArray, sets: Sets, n_samples: int, random: np.random.Generator
) -> FloatArray | None:
    """Return per point the largest value over candidates that lie in both sets, and its parts.

    Candidates are both centres, where each set is largest for each point, and `n_samples` random
    places, half of them uniform in each set.

    Returns
    -------
    parts : ndarray, shape (3, n), or None
        Score, estimate and width; the estimate is the mean over the candidates. None if no
        candidate lies in both sets.
    """
    rank, n_own = points.shape[1], 1 + len(points)
    directions = random.standard_normal((n_samples, rank))
    reaches = random.random(n_samples) ** (1.0 / rank)  # uniform in a ball
    candidates, half = np.empty((2 * n_own + n_samples, rank)), n_samples // 2
    for one, rows, at in (
        (sets.projected, slice(n_own + half), slice(half)),
        (sets.mapped, slice(n_own + half, None), slice(half, None)),
    ):
        _kernels.candidates_in(
            points,
            one.centre,
            one.root,
            one.radius,
            directions[at],
            reaches[at],
            candidates[rows],
        )
    n_kept = len(candidates)
    for one in sets:
        n_kept = _kernels.keep_inside(
            candidates, n_kept, one.centre, one.whitener, one.limit(_TOLERANCE)
        )
    if n_kept == 0:
        return None
    parts = np.empty((3, len(points)))
    _kernels.candidate_parts(points, candidates[:n_kept], parts)
    return parts if np.isfinite(parts).all() else None


def _is_sound(factor: FloatArray) -> bool:
    return bool(np.isfinite(factor).all()) and bool((factor.diagonal() > 0.0).all())
