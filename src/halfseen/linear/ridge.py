"""Online ridge regression with widths, and the radius of its confidence ellipsoid."""

import math
from collections.abc import Callable
from functools import lru_cache
from math import sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from halfseen import checks
from halfseen.errors import ArchiveError, InvalidInputError, InvalidSettingError
from halfseen.kernels import ridge as _kernels
from halfseen.linear.covariance import check_dense
from halfseen.state import Array
from halfseen.values import LARGEST, LARGEST_POINT, FloatArray

LARGEST_SCALE = 1e30
"""Largest S, R and radius scale: products with values up to 1e100 stay finite."""


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
    >>> confidence.total(log_det=0.0, n_samples=9)  # 2 + 2 + 1.5
    5.5

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
        """Return the paper's β = √λ·S + R·sqrt(2 log(det(V)^½ / (det(λI)^½ δ))) + b·sqrt(n).

        The parts are those of the penalty, of reward noise, and of a bias of at most b in each of n
        samples.

        Parameters
        ----------
        log_det : float
            log(det V / λ^dim).
        n_samples : float
            Samples in V; without replay, the paper's t − τ_e.
        """
        log_ratio = max(0.0, 0.5 * log_det - self._log_failure)
        noise = self._noise * sqrt(2.0 * log_ratio)
        return self._regularization + noise + self._bias * sqrt(n_samples)


RadiusOf = Callable[[float, float], float]

_NOTHING = np.empty(0)

SMALLEST_RIDGE = 1e-50
"""Smallest λ: widths of points up to `LARGEST` stay finite."""

_LARGEST_LOG_DET = 1e9


class Ridge:
    """Regression of rewards on points with penalty λ.

    The state is the triangular factor R with R'R = V = λI + Σzz' and the whitened response R'⁻¹Σzr.
    Givens rotations update both with each sample. An inverse kept by rank-one updates has entries
    of 1e8 for λ = 1e-8, and their rounding errors exceed widths of 1e-3. Rotations do not cancel:
    after a million updates widths agree with a fresh factorisation to 2e-12.

    A NaN entry of a point counts as zero: points are zero-filled when they are read.

    Forks share the root, which is replaced and never changed.

    Parameters
    ----------
    dim : int
    ridge : float
        λ, at least 1e-50.

    Attributes
    ----------
    root : ndarray, shape (dim (dim + 3) / 2 + 2,)
        Factor and whitened response, row after row of [R | w] from the diagonal on; then `log_det`
        and `n_samples`.

    Examples
    --------
    >>> model = Ridge(2, ridge=1.0)
    >>> model.update(np.array([1.0, 0.0]), 2.0)
    >>> model.estimate.round(6).tolist(), model.gram.round(6).tolist()
    ([1.0, 0.0], [[2.0, 0.0], [0.0, 1.0]])
    >>> estimates, widths = model.predict(np.eye(2))
    >>> estimates.round(6).tolist(), (widths**2).round(6).tolist()
    ([1.0, 0.0], [0.5, 1.0])
    """

    STATE: ClassVar = {"root": Array((None,), low=-LARGEST_POINT, high=LARGEST_POINT)}

    __slots__ = ("_limit", "dim", "ridge", "root")

    def __init__(self, dim: int, *, ridge: float) -> None:
        self.dim = checks.integer("dim", dim, 1)
        check_dense(self.dim)
        self.ridge = checks.real("ridge", ridge, SMALLEST_RIDGE, LARGEST)
        # ‖R'⁻¹z‖ is at most ‖z‖/√λ: more than twice that is rounding.
        self._limit = 2.0 * LARGEST * math.sqrt(dim / self.ridge)
        self.root: FloatArray = np.zeros(dim * (dim + 3) // 2 + 2)
        self.root[_row_starts(dim)] = math.sqrt(self.ridge)

    @property
    def log_det(self) -> float:
        """log(det V / λ^dim), grown by log(1 + z'V⁻¹z) per sample."""
        return self.root.item(-2)

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return int(self.root.item(-1))

    @property
    def factor(self) -> FloatArray:
        """R, upper triangular, in a new array of shape (dim, dim)."""
        return self._factor_and_white()[0]

    @property
    def white(self) -> FloatArray:
        """R'⁻¹Σzr, in a new array of shape (dim,)."""
        white: FloatArray = self.root[_row_starts(self.dim) + np.arange(self.dim, 0, -1)]
        return white

    @property
    def gram(self) -> FloatArray:
        """V, shape (dim, dim)."""
        factor = self.factor
        return factor.T @ factor

    @property
    def response(self) -> FloatArray:
        """Σzr, shape (dim,)."""
        factor, white = self._factor_and_white()
        return white @ factor

    @property
    def estimate(self) -> FloatArray:
        """Estimated parameter V⁻¹Σzr, shape (dim,)."""
        return self.solved(self.white)

    def solved(self, white: FloatArray) -> FloatArray:
        """Return R⁻¹w, shape (dim,), for some w."""
        factor = self.factor
        solution: FloatArray = solve_triangular(factor, white, check_finite=False)
        if np.abs(solution).max() <= self._limit * math.sqrt(1 + self.n_samples):
            return solution
        # Rounding made the result too large or NaN: no singular value of R is below √λ.
        left, values, right = np.linalg.svd(factor)
        values = np.maximum(values, math.sqrt(self.ridge))
        bounded: FloatArray = right.T @ ((left.T @ white) / values)
        return bounded

    def whitened(self, points: FloatArray) -> FloatArray:
        """Return R'⁻¹z for points z (n, dim), shape (n, dim): their products are z'V⁻¹z."""
        white = np.array(points, dtype=np.float64, order="C")
        _kernels.whiten(self.root, white)  # LAPACK would start threads, also for 3 × 3
        return white

    def _factor_and_white(self) -> tuple[FloatArray, FloatArray]:
        factor, white = np.zeros((self.dim, self.dim)), np.empty(self.dim)
        _kernels.unpack(self.root, factor, white)
        return factor, white

    def set_root(
        self, factor: FloatArray, white: FloatArray, log_det: float, n_samples: int
    ) -> None:
        """Continue from another factor, shape (dim, dim), and whitened response, shape (dim,)."""
        factor, root = checked_array(factor, (self.dim, self.dim)), np.empty(len(self.root))
        _kernels.pack(factor, checked_array(white, (self.dim,)), root)
        root[-2:] = log_det, n_samples
        self.root = root

    def update(self, point: FloatArray, reward: float) -> None:
        """Add one sample; `point` has shape (dim,)."""
        point, root = checked_array(point, (self.dim,)), self.root.copy()
        _kernels.update(root, point, reward, _NOTHING)
        self.root = root

    def update_recorded(self, point: FloatArray, reward: float) -> FloatArray:
        """Add one sample; return cosine and sine of each row's rotation, shape (dim, 2)."""
        point, root = checked_array(point, (self.dim,)), self.root.copy()
        turns = np.empty((self.dim, 2))
        _kernels.update(root, point, reward, turns.ravel())
        self.root = root
        return turns

    def fork(self) -> "Ridge":
        """Return an independent copy."""
        fork = object.__new__(Ridge)
        fork.dim, fork.ridge, fork._limit, fork.root = self.dim, self.ridge, self._limit, self.root
        return fork

    def widened(self, dim: int) -> "Ridge":
        """Return the same regression with more dimensions, which no sample has used."""
        wider = Ridge(dim, ridge=self.ridge)
        factor, white = wider._factor_and_white()
        factor[: self.dim, : self.dim], white[: self.dim] = self._factor_and_white()
        wider.set_root(factor, white, self.log_det, self.n_samples)
        return wider

    def insert(self, points: FloatArray, rewards: FloatArray) -> None:
        """Add many samples at once; `points` has shape (n, dim), `rewards` (n,).

        The arithmetic is the same as one `update` per sample, so the result is the same bit for
        bit.
        """
        points = checked_array(points, (len(points), self.dim))
        rewards, root = checked_array(rewards, (len(points),)), self.root.copy()
        _kernels.insert(root, points, rewards)
        self.root = root

    def predict(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return ⟨z, estimate⟩ and ‖z‖_{V⁻¹} of many points, shape (n, dim)."""
        parts = self._measured(points)
        return parts[1], np.sqrt(parts[2])

    def score(self, points: FloatArray, radius: RadiusOf) -> tuple[int, FloatArray]:
        """Return the optimistic point and all scores with their parts, shape (3, n).

        `radius` returns the factor of the widths for a given `log_det` and `n_samples`.
        """
        parts, root = self._measured(points), self.root
        factor = radius(root.item(-2), root.item(-1))
        if not 0.0 <= factor < math.inf:
            raise InvalidSettingError(f"a radius must be finite and not negative, got {factor}")
        return _kernels.best(parts, factor), parts

    def _measured(self, points: FloatArray) -> FloatArray:
        """Return an array (3, n) with estimates and squared widths in its last rows."""
        points = checked_array(points, (len(points), self.dim))
        parts = np.empty((3, len(points)))
        _kernels.measure(self.root, points, self._limit, parts)
        return parts

    def after_loading(self) -> None:
        """Raise ArchiveError unless a saved root gives finite scores for every slate."""
        root, pivots = self.root, _row_starts(self.dim)
        if len(root) != pivots[-1] + 4:
            raise ArchiveError(f"a root in {self.dim} dimensions cannot have {len(root)} entries")
        checks.integer("n_samples", int(root[-1]), 0, checks.LARGEST_HORIZON)
        checks.real("log_det", float(root[-2]), -1.0, _LARGEST_LOG_DET)
        signs = np.random.default_rng(0).choice([-LARGEST, LARGEST], (4, self.dim))
        # The root contains the penalty, so no pivot is below √λ.
        is_full = (root[pivots] >= 0.99 * math.sqrt(self.ridge)).all()
        if not is_full or not np.isfinite(self.predict(signs)).all():
            raise ArchiveError("the root of a regression must be positive and of full rank")


@lru_cache(maxsize=16)
def _row_starts(dim: int) -> NDArray[np.int64]:
    """Return the positions at which the rows of a root begin."""
    widths = np.arange(dim + 1, 1, -1)
    return np.cumsum(widths) - widths


def checked_array(values: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """Return values as a contiguous array after checking the shape, as compiled loops do not."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.shape != shape:
        raise InvalidInputError(f"expected an array of shape {shape}, got {array.shape}")
    return array
