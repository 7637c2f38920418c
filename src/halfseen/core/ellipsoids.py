"""The maximum of a linear function over the intersection of two ellipsoids.

Mixing the two inequalities with shares 1 − s and s gives an ellipsoid that contains the
intersection. Its support ⟨x, c(s)⟩ + sqrt(1 − k(s))·‖x‖_{M(s)⁻¹} is an upper bound for every s. By
strong duality the smallest bound equals the maximum. As a function of s the bound has no other
local minimum, so a search over one number is exact in every dimension.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from halfseen import checks
from halfseen.errors import InvalidInputError
from halfseen.lazy import LazyModule
from halfseen.values import BoolArray, FloatArray

_kernels = LazyModule("halfseen.kernels.ellipsoids")

# Tolerance for two ellipsoids that touch in one point.
_TOUCHING = 1e-10
# An axis of the second ellipsoid this long, in radii of the first, never binds.
_SMALLEST_WEIGHT = 1e-300
# Width of the search for log(s / (1 − s)) around its balance: e^-50 is rounding.
_MARGIN = 50.0


@dataclass(frozen=True, slots=True, eq=False)
class Ellipsoid:
    """All θ with ‖W(θ − c)‖ ≤ radius.

    Attributes
    ----------
    centre : ndarray, shape (rank,)
        c.
    whitener, root : ndarray, shape (rank, rank)
        W and its inverse; both are kept because computing one from the other loses digits.
    radius : float
        With 0 the set is the centre alone.
    """

    centre: FloatArray
    whitener: FloatArray
    root: FloatArray
    radius: float

    @classmethod
    def from_shape(cls, centre: FloatArray, shape: FloatArray, radius: float) -> "Ellipsoid":
        """Return {θ : (θ − c)'A(θ − c) ≤ radius²} for a symmetric positive definite A.

        Raises
        ------
        InvalidInputError
            A is not positive definite, or its shape does not match the centre.
        """
        centre, shape = np.array(centre, dtype=np.float64), np.array(shape, dtype=np.float64)
        if centre.ndim != 1 or shape.shape != (len(centre), len(centre)):
            raise InvalidInputError(
                f"an ellipsoid needs a centre (rank,) and a shape (rank, rank), got {centre.shape} "
                f"and {shape.shape}"
            )
        try:
            whitener: FloatArray = np.asarray(np.linalg.cholesky(shape).T, dtype=np.float64)
        except np.linalg.LinAlgError:
            raise InvalidInputError("an ellipsoid's shape must be positive definite") from None
        root = solve_triangular(whitener, np.eye(len(centre)))
        return cls(centre, whitener, root, checks.real("radius", radius, 0.0))

    def contains(self, points: FloatArray, tolerance: float = 1e-8) -> BoolArray:
        """Return which points, shape (n, rank), lie inside, up to `tolerance` · (1 + radius)."""
        with np.errstate(over="ignore", invalid="ignore"):
            distance = np.linalg.norm((points - self.centre) @ self.whitener.T, axis=1)
        inside: BoolArray = distance <= self.limit(tolerance)
        return inside

    def limit(self, tolerance: float) -> float:
        """Return the largest distance that counts as inside."""
        return self.radius + tolerance * (1.0 + self.radius)

    def maximisers(self, points: FloatArray) -> FloatArray:
        """Return the maximiser of each linear function ⟨x, ·⟩ in the ellipsoid, shape (n, rank)."""
        slopes = points @ self.root
        sizes = np.linalg.norm(slopes, axis=1, keepdims=True)
        units = np.divide(slopes, sizes, out=np.zeros_like(slopes), where=sizes > 0.0)
        return self.at(units)

    def at(self, units: FloatArray) -> FloatArray:
        """Return the images of points of the unit ball in the ellipsoid, shape (n, rank)."""
        places: FloatArray = self.centre + self.radius * (units @ self.root.T)
        return places


def optimistic_parts(points: FloatArray, first: Ellipsoid, second: Ellipsoid) -> FloatArray | None:
    """Return each point's largest value over the intersection of two ellipsoids, and its parts.

    Parameters
    ----------
    points : ndarray, shape (n, rank)

    Returns
    -------
    parts : ndarray, shape (3, n), or None
        Score, estimate and width, with score = estimate + width. The estimate is the value at the
        deepest point of the intersection, which minimises the larger of the two distances from the
        centres, each relative to its radius. None if the ellipsoids do not intersect or their
        numbers overflow.

    Raises
    ------
    InvalidInputError
        The ranks differ.
    """
    points, rank = np.ascontiguousarray(points, dtype=np.float64), len(first.centre)
    if points.shape != (len(points), rank) or len(second.centre) != rank:
        raise InvalidInputError(
            f"points (n, rank) and two ellipsoids must be of one rank, got {points.shape}, {rank} "
            f"and {len(second.centre)}"
        )
    for one, other in ((first, second), (second, first)):
        if one.radius == 0.0:
            meets = other.contains(one.centre[None, :], _TOUCHING)[0]
            return _values_at(points, one.centre) if meets else None
    with np.errstate(all="ignore"):  # overflow is checked below
        mixed = (first.radius / second.radius) * (second.whitener @ first.root)
        apart = first.whitener @ (second.centre - first.centre) / first.radius
        if not (np.isfinite(mixed).all() and np.isfinite(apart).all()):
            return None
        _, scales, turn = np.linalg.svd(mixed)
        weights = np.maximum(scales**2, _SMALLEST_WEIGHT)
        if weights[0] == math.inf:
            return None
        # θ = a + axes·v, where the first is |v| ≤ 1 and the second Σ w(v − b)² ≤ 1.
        axes = first.radius * (first.root @ turn.T)
        offset, deep = turn @ apart, np.empty(len(weights))
        reach = _MARGIN + max(abs(math.log(weights[0])), abs(math.log(weights[-1])))
        depth = _kernels.deepest(offset, weights, reach, deep)
        if not depth <= 1.0 + _TOUCHING:  # also true for NaN
            return None
        centre = first.centre + axes @ deep
        parts = np.empty((3, len(points)))
        turned = np.ascontiguousarray(axes.T)
        _kernels.support_parts(points, centre, turned, offset, weights, reach, deep, parts)
    return parts if np.isfinite(parts).all() else None


def optimistic_values(points: FloatArray, first: Ellipsoid, second: Ellipsoid) -> FloatArray | None:
    """Return max ⟨x, θ⟩ over the θ in both ellipsoids, or None if there is no such θ.

    Parameters
    ----------
    points : ndarray, shape (n, rank)

    Examples
    --------
    The intersection of two unit discs whose centres are 1 apart is a lens of half height √¾:

    >>> left = Ellipsoid.from_shape(np.zeros(2), np.eye(2), 1.0)
    >>> right = Ellipsoid.from_shape(np.array([1.0, 0.0]), np.eye(2), 1.0)
    >>> optimistic_values(np.array([[0.0, 2.0], [1.0, 0.0], [-1.0, 0.0]]), left, right).round(9) + 0
    array([1.73205081, 1.        , 0.        ])
    """
    parts = optimistic_parts(points, first, second)
    return None if parts is None else parts[0]


def _values_at(points: FloatArray, centre: FloatArray) -> FloatArray:
    parts = np.empty((3, len(points)))
    _kernels.candidate_parts(points, np.ascontiguousarray(centre[None, :]), parts)
    return parts
