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
    units = _in_unit_ball(random, n_samples, points.shape[1])
    halves = units[: n_samples // 2], units[n_samples // 2 :]
    with np.errstate(all="ignore"):  # candidates beyond all numbers are inside of nothing
        candidates = np.concatenate(
            [
                part
                for one, half in zip(sets, halves, strict=True)
                for part in (one.centre[None, :], one.maximisers(points), one.at(half))
            ]
        )
        kept = candidates[sets.projected.contains(candidates) & sets.mapped.contains(candidates)]
    if len(kept) == 0:
        return None
    parts = np.empty((3, len(points)))
    _kernels.candidate_parts(points, kept, parts)
    return parts if np.isfinite(parts).all() else None


def _in_unit_ball(random: np.random.Generator, n: int, rank: int) -> FloatArray:
    """Return uniform points of the unit ball: a direction each, at radius u^(1/rank)."""
    directions = random.standard_normal((n, rank))
    sizes = np.linalg.norm(directions, axis=1)
    reach: FloatArray = random.random(n) ** (1.0 / rank)
    units: FloatArray = directions * (reach / sizes)[:, None]
    return units


def _is_sound(factor: FloatArray) -> bool:
    return bool(np.isfinite(factor).all()) and bool((factor.diagonal() > 0.0).all())
