"""The two confidence sets of PSLB, and the search for optimistic values by random candidates."""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtri

from halfseen.core.confidence import Confidence
from halfseen.core.ellipsoids import Ellipsoid
from halfseen.core.ridge import Ridge
from halfseen.lazy import LazyModule
from halfseen.state import Array, Basis, Sizes
from halfseen.values import FloatArray

_kernels = LazyModule("halfseen.kernels.ellipsoids")

# How far outside a set a candidate may lie: rounding moves points on its boundary outside.
_TOLERANCE = 1e-8
# From this size on LAPACK triangularizes faster than a compiled loop (measured at rank 10).
_LAPACK_DIM = 256


class Sets(NamedTuple):
    """Two confidence sets for the parameter's coordinates in a subspace.

    Attributes
    ----------
    projected : Ellipsoid
        From the regression on projected samples.
    mapped : Ellipsoid
        The projection of the ellipsoid of the regression in all features.
    """

    projected: Ellipsoid
    mapped: Ellipsoid


class Projection:
    """A regression in all features, projected on a subspace and updated sample by sample.

    Parameters
    ----------
    model : Ridge
        The regression in all features.
    basis : ndarray, shape (dim, rank)
        The rank may be 0.
    """

    __slots__ = ("basis", "inside", "shadow")

    def __init__(self, model: Ridge, basis: FloatArray) -> None:
        self.basis = basis
        self.shadow, rank = np.empty(basis.shape), basis.shape[1]
        # The regression on projected samples has the Gram matrix U'VU, with the same ridge, so the
        # samples themselves are not needed.
        self.inside = Ridge(max(1, rank), ridge=model.ridge)
        if rank == 0:
            return
        precision, white = np.empty((rank, rank)), np.empty(rank)
        _kernels.project_model(model.factor, model.white, basis, precision, white)
        pivots = precision.ravel()[:: rank + 1]
        np.maximum(pivots, math.sqrt(model.ridge), out=pivots)  # smaller is rounding
        log_det = 2.0 * float(np.log(pivots).sum()) - rank * math.log(model.ridge)
        self.inside.set_root(precision, white, log_det, model.n_samples)
        # The shadow of the regression in all features is R'⁻¹U, with norm at most 1/√λ.
        limit = 2.0 / math.sqrt(model.ridge)
        _kernels.cast_shadow(model.factor, basis, limit, self.shadow)

    def fork(self) -> "Projection":
        """Return an independent copy."""
        fork = object.__new__(Projection)
        fork.basis, fork.shadow, fork.inside = self.basis, self.shadow.copy(), self.inside.copied()
        return fork

    def learn(self, model: Ridge, arm: FloatArray, reward: float) -> None:
        """Add a sample to the regression in all features and to its projection."""
        point = np.empty((1, self.basis.shape[1]))
        _kernels.project(arm[None, :], self.basis, point)
        _kernels.turn(self.shadow, model.update_recorded(arm, reward))
        if point.size:
            self.inside.update(point[0], reward)

    def sets(self, model: Ridge, confidence: Confidence, bonus: float) -> Sets | None:
        """Return both confidence sets, or None if rounding makes one of them degenerate.

        `bonus` is added to the radius of the projected set.
        """
        inside = self.inside
        precision = inside.factor
        spread, spread_white = _squared(self.shadow, model.white)
        if not (_is_sound(precision) and _is_sound(spread)):
            return None
        with np.errstate(all="ignore"):
            root, whitener = dtrtri(precision)[0], dtrtri(spread)[0].T
            projected = Ellipsoid(
                root @ inside.white,
                precision,
                root,
                confidence.total(inside.log_det, inside.n_samples) + bonus,
            )
            mapped = Ellipsoid(
                spread.T @ spread_white,
                whitener,
                spread.T,
                confidence.total(model.log_det, model.n_samples),
            )
        return Sets(projected, mapped)

    def state(self) -> dict[str, Any]:
        """Return the whole state of this projection."""
        return {"basis": self.basis, "inside": self.inside.state(), "shadow": self.shadow}

    @classmethod
    def restored(cls, model: Ridge, saved: dict[str, Any]) -> "Projection":
        """Return the projection that `state` described."""
        sizes = Sizes(model)
        projection = cls(model, Basis(("dim", None)).load("basis", saved["basis"], sizes))
        projection.inside.restore(saved["inside"])
        shadow = Array(projection.basis.shape)
        projection.shadow = shadow.load("shadow", saved["shadow"], sizes)
        return projection


def _squared(shadow: FloatArray, white: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the triangular S and s with S'S = U'V⁻¹U and S's = U'V⁻¹Σzr."""
    dim, rank = shadow.shape
    if dim >= _LAPACK_DIM:
        turned = np.asarray(np.linalg.qr(np.column_stack([shadow, white]), mode="r"))[:rank]
        turned *= np.where(turned.diagonal() < 0.0, -1.0, 1.0)[:, None]
        return np.ascontiguousarray(turned[:, :-1]), np.ascontiguousarray(turned[:, -1])
    spread, spread_white = np.empty((rank, rank)), np.empty(rank)
    _kernels.square_shadow(shadow, white, spread, spread_white)
    return spread, spread_white


def sampled_parts(
    points: FloatArray, sets: Sets, n_samples: int, random: np.random.Generator
) -> FloatArray | None:
    """Return each point's largest value over candidates that lie in both sets, and its parts.

    Candidates are both centres, the maximiser of each point in each set, and `n_samples` random
    points, half of them uniform in each set.

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
