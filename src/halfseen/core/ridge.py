"""Online ridge regression: exact sums, a factor kept by rotations, widths for many points."""

import math
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from halfseen import _kernels, archive, checks
from halfseen.core.latent import Lift
from halfseen.core.operators import check_dense
from halfseen.errors import InvalidInputError
from halfseen.values import LARGEST, FloatArray

_FLOAT = np.dtype(np.float64)

SMALLEST_RIDGE = 1e-50
"""Widths of points up to `LARGEST` stay finite."""


class Ridge:
    """Regression of rewards on points with penalty λ.

    The natural parameters, V = λI + Σzz' and Σzr, are kept as plain sums. What is derived from
    them, the triangular factor R with R'R = V and the whitened response R'⁻¹Σzr, follows each
    sample by Givens rotations. Unlike an inverse kept by rank-one updates, which for λ = 1e-8 has
    entries of 1e8 whose rounding drowns widths of 1e-3, rotations do not cancel: after a million
    updates widths agree with a fresh factorisation to 2e-12.

    An entry of a point that is NaN counts as zero: zero-filling is done where points are read.

    Parameters
    ----------
    dim : int
    ridge : float
        λ, at least 1e-50.

    Attributes
    ----------
    n_samples : int
    log_det : float
        log(det V / λ^dim), grown by log(1 + z'V⁻¹z) per sample.

    Examples
    --------
    >>> model = Ridge(2, ridge=1.0)
    >>> model.update(np.array([1.0, 0.0]), 2.0)
    >>> model.estimate.round(6).tolist(), model.gram.tolist()
    ([1.0, 0.0], [[2.0, 0.0], [0.0, 1.0]])
    >>> estimates, widths = model.predict(np.eye(2))
    >>> estimates.round(6).tolist(), (widths**2).round(6).tolist()
    ([1.0, 0.0], [0.5, 1.0])
    """

    __slots__ = ("_gram", "dim", "factor", "log_det", "n_samples", "response", "ridge", "white")

    def __init__(self, dim: int, *, ridge: float) -> None:
        self.dim = checks.integer("dim", dim, 1)
        check_dense(self.dim)
        self.ridge = checks.real("ridge", ridge, SMALLEST_RIDGE, LARGEST)
        self.n_samples = 0
        self.log_det = 0.0
        self._gram = _scaled_identity(dim, self.ridge)
        self.response = np.zeros(dim)
        self.factor = _scaled_identity(dim, math.sqrt(self.ridge))
        self.white = np.zeros(dim)

    @classmethod
    def fitted(cls, points: FloatArray, rewards: FloatArray, *, ridge: float) -> "Ridge":
        """Return the regression of many samples, by matrix products: for many dimensions."""
        model = cls(points.shape[1], ridge=ridge)
        model._gram += points.T @ points
        model.response = points.T @ rewards
        model.factor = np.ascontiguousarray(np.linalg.cholesky(model._gram).T)
        model.white = solve_triangular(model.factor, model.response, trans=1, check_finite=False)
        pivots = np.log(model.factor.diagonal()).sum()
        model.log_det = 2.0 * float(pivots) - model.dim * math.log(model.ridge)
        model.n_samples = len(points)
        return model

    @property
    def gram(self) -> FloatArray:
        """V, shape (dim, dim)."""
        upper = np.triu(self._gram)
        return upper + np.triu(upper, 1).T

    @property
    def estimate(self) -> FloatArray:
        """Estimated parameter V⁻¹Σzr, shape (dim,)."""
        solution: FloatArray = solve_triangular(self.factor, self.white, check_finite=False)
        return solution

    def update(self, point: FloatArray, reward: float, shadow: FloatArray | None = None) -> None:
        """Add one sample; `point` has shape (dim,).

        A `shadow` R'⁻¹U, shape (dim, n), of any columns U is turned along in place.
        """
        point = _fitting(point, (self.dim,))
        if shadow is None:
            shadow = np.empty((self.dim, 0))
        self.log_det += _kernels.update_with_shadow(
            self._gram, self.response, self.factor, self.white, shadow, point, reward
        )
        self.n_samples += 1

    def learn_arm(self, lift: Lift, arm: FloatArray, reward: float) -> bool:
        """Add a half-seen arm in its latent coordinates, in one compiled call.

        Parameters
        ----------
        lift : Lift
            To `dim` coordinates.
        arm : ndarray, shape (n_features,)
            NaN where hidden. Not checked: it comes from a decision.

        Returns
        -------
        learned : bool
            False, and nothing changed, if its seen entries do not identify it.
        """
        growth = _kernels.learn_arm(
            lift.basis,
            arm,
            lift.ridge,
            lift.scales,
            self._gram,
            self.response,
            self.factor,
            self.white,
            reward,
        )
        if growth < 0.0:
            return False
        self.log_det += growth
        self.n_samples += 1
        return True

    def copied(self) -> "Ridge":
        """Return an independent copy."""
        copy = Ridge(self.dim, ridge=self.ridge)
        copy.restore(self.state())
        return copy

    def extended(self) -> "Ridge":
        """Return the same regression with one more dimension, in which nothing was seen yet."""
        wider, n = Ridge(self.dim + 1, ridge=self.ridge), self.dim
        wider._gram[:n, :n], wider.response[:n] = self._gram, self.response
        wider.factor[:n, :n], wider.white[:n] = self.factor, self.white
        wider.log_det, wider.n_samples = self.log_det, self.n_samples
        return wider

    def insert(self, points: FloatArray, rewards: FloatArray) -> None:
        """Add many samples at once; `points` has shape (n, dim), `rewards` (n,).

        The same arithmetic as one `update` per sample, so the result is the same bit by bit.
        """
        points = _fitting(points, (len(points), self.dim))
        rewards = _fitting(rewards, (len(points),))
        self.log_det += _kernels.insert(
            self._gram, self.response, self.factor, self.white, points, rewards
        )
        self.n_samples += len(points)

    def predict(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return ⟨z, estimate⟩ and ‖z‖_{V⁻¹} of many points, shape (n, dim)."""
        _, parts = self.score(points, 1.0)
        return parts[1], parts[2]

    def score(self, points: FloatArray, radius: float) -> tuple[int, FloatArray]:
        """Return the optimistic point and all scores with their parts, shape (3, n)."""
        points = _fitting(points, (len(points), self.dim))
        parts = np.empty((3, len(points)))
        return _kernels.score(self.factor, self.white, points, radius, parts), parts

    def state(self) -> dict[str, Any]:
        """Return everything that tells this model from a fresh one."""
        return {
            "n_samples": self.n_samples,
            "log_det": self.log_det,
            "gram": self._gram,
            "response": self.response,
            "factor": self.factor,
            "white": self.white,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from what `state` returned."""
        vector, square = (self.dim,), (self.dim, self.dim)
        self.n_samples = checks.integer("n_samples", state["n_samples"], 0)
        self.log_det = checks.real("log_det", state["log_det"])
        self._gram = archive.array(state, "gram", square)
        self.response = archive.array(state, "response", vector)
        self.factor = archive.array(state, "factor", square)
        self.white = archive.array(state, "white", vector)


def _fitting(values: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """Return values as compiled loops need them, which do not look at shapes."""
    array = values
    if (
        type(values) is not np.ndarray
        or values.dtype is not _FLOAT
        or not values.flags.c_contiguous
    ):
        array = np.ascontiguousarray(values, dtype=np.float64)
    if array.shape != shape:
        raise InvalidInputError(f"expected an array of shape {shape}, got {array.shape}")
    return array


def _scaled_identity(dim: int, scale: float) -> FloatArray:
    matrix = np.zeros((dim, dim))
    matrix.ravel()[:: dim + 1] = scale
    return matrix
