"""Ridge regression in many dimensions that works in few dimensions while samples are few."""

import math
from typing import Any

import numpy as np

from halfseen import archive
from halfseen.core.operators import check_dense
from halfseen.core.ridge import Radius, Ridge, fitting, triangular
from halfseen.errors import ArchiveError
from halfseen.kernels import tables
from halfseen.values import FloatArray

# Measured on one core: with few samples the span form is 2.5 times as fast at 256 dimensions and 8
# times at 1000; at 128 it is about 20 µs per round slower.
_PLAIN_DIM = 128
# Projecting on the span stops paying off at 0.3 of all dimensions for 256, at 0.4 for 1000.
_DENSE_SHARE = 0.25
# A sample this close to the span of earlier ones adds no direction to it.
_TOLERANCE = 1e-12


class SpanRidge:
    """The same regression as `Ridge`, in the span of the samples while that is small.

    With an orthonormal basis Q of the span of all samples, V is λ outside the span and, inside it,
    the Gram matrix of a small regression in the coordinates Qz. So the first samples cost
    O(dim · n_samples) instead of O(dim²). When the span reaches a quarter of all dimensions, a
    plain `Ridge` takes over.

    Parameters
    ----------
    dim : int
    ridge : float
        λ > 0.

    Examples
    --------
    >>> model = SpanRidge(200, ridge=1.0)
    >>> point = np.zeros(200)
    >>> point[3] = 1.0
    >>> model.update(point, 2.0)
    >>> best, parts = model.score(np.eye(200)[2:5], lambda log_det, n_samples: 1.0)
    >>> best, (parts[2] ** 2).round(6).tolist()
    (1, [1.0, 0.5, 1.0])
    """

    __slots__ = ("_directions", "_inner", "_n_directions", "dim", "ridge")

    def __init__(self, dim: int, *, ridge: float) -> None:
        check_dense(dim)
        self.dim = dim
        self._n_directions = 0
        # None once the inner regression works in all dimensions.
        self._directions: FloatArray | None = None
        if dim >= _PLAIN_DIM:
            self._directions = np.zeros((int(_DENSE_SHARE * dim), dim))
        self._inner = Ridge(dim if self._directions is None else 1, ridge=ridge)
        self.ridge = self._inner.ridge

    def fork(self) -> "SpanRidge":
        """Return a copy that continues in place of this one, which must not be changed any more."""
        fork = object.__new__(SpanRidge)
        fork.dim, fork.ridge, fork._inner = self.dim, self.ridge, self._inner.fork()
        fork._directions, fork._n_directions = self._directions, self._n_directions
        return fork

    def widened(self, dim: int) -> "SpanRidge":
        """Return the same regression with more dimensions, which no sample has used."""
        wider = self.fork()
        wider.dim = dim
        if self._directions is None:
            wider._inner = self._inner.widened(dim)
        else:
            wider._directions = np.zeros((int(_DENSE_SHARE * dim), dim))
            wider._directions[: len(self._directions), : self.dim] = self._directions
        return wider

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self._inner.n_samples

    @property
    def log_det(self) -> float:
        """log(det V / λ^dim); directions outside the span contribute nothing."""
        return self._inner.log_det

    @property
    def estimate(self) -> FloatArray:
        """Estimated parameter, as `Ridge.estimate`."""
        if self._directions is None:
            return self._inner.estimate
        n = self._n_directions
        inside: FloatArray = self._inner.estimate[:n] @ self._directions[:n]
        return inside

    def update(self, point: FloatArray, reward: float) -> None:
        """Add one sample, as `Ridge.update`; `point` has shape (dim,), NaN counts as zero."""
        if self._directions is None:
            self._inner.update(point, reward)
            return
        if self._n_directions == len(self._directions):
            plain = self._plain(self._directions)
            plain.update(point, reward)
            self._inner, self._directions = plain, None
            return
        inside, rest = self._split(_zero_filled(fitting(point, (self.dim,))[None, :]))
        size = math.sqrt(float(rest[0] @ rest[0]))
        if size <= _TOLERANCE * (size + float(np.abs(inside).max(initial=0.0))):
            # Before the first direction, the inner regression has one unused dimension.
            self._inner.update(inside[0] if self._n_directions else np.zeros(1), reward)
            return
        n = self._n_directions
        wider = self._inner.widened(n + 1) if n else self._inner
        wider.update(np.append(inside, size), reward)
        self._directions[n] = rest[0] / size
        self._inner, self._n_directions = wider, n + 1

    def score(self, points: FloatArray, radius: Radius) -> tuple[int, FloatArray]:
        """Return the optimistic point and all scores with their parts, as `Ridge.score`."""
        inner = self._inner
        if self._directions is None:
            return inner.score(points, radius)
        inside, rest = self._split(_zero_filled(points))
        parts = np.zeros((3, len(points)))
        if self._n_directions:
            parts[1:] = inner.predict(inside)
        size = radius(inner.log_det, inner.n_samples)
        outside = np.einsum("ij,ij->i", rest, rest) / self.ridge
        parts[2] = size * np.sqrt(parts[2] ** 2 + outside)
        parts[0] = parts[1] + parts[2]
        return int(parts[0].argmax()), parts

    def state(self) -> dict[str, Any]:
        """Return the whole state of this model."""
        directions = None
        if self._directions is not None:
            directions = self._directions[: self._n_directions]
        return {"directions": directions, "inner": self._inner.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from what `state` returned."""
        if state["directions"] is None:
            self._directions, self._n_directions = None, 0
            width = self.dim
        elif self._directions is None:
            raise ArchiveError(f"a regression in {self.dim} dimensions has no directions")
        else:
            rows = archive.array(state, "directions", (None, self.dim))
            directions = archive.orthonormal({"directions": rows.T}, "directions", (self.dim, None))
            self._n_directions = len(rows)
            if self._n_directions > len(self._directions):
                raise ArchiveError(f"{self._n_directions} directions are too many")
            self._directions[: self._n_directions] = directions.T
            width = max(1, self._n_directions)
        self._inner = Ridge(width, ridge=self.ridge)
        self._inner.restore(state["inner"])

    def _split(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return coordinates in the span and the remainder, orthogonalised twice."""
        assert self._directions is not None
        basis = self._directions[: self._n_directions]
        inside = points @ basis.T
        rest = points - inside @ basis
        again = rest @ basis.T
        rest -= again @ basis
        return inside + again, rest

    def _plain(self, directions: FloatArray) -> Ridge:
        """Return the same regression in all dimensions, by one QR factorisation."""
        inner, basis = self._inner, directions[: self._n_directions]
        plain = Ridge(self.dim, ridge=self.ridge)
        outside = math.sqrt(self.ridge) * (np.eye(self.dim) - basis.T @ basis)
        rows = np.vstack([inner.factor @ basis, outside])
        factor, white = triangular(rows, np.append(inner.white, np.zeros(self.dim)), self.ridge)
        plain.set_root(factor, white, inner.log_det, inner.n_samples)
        return plain


def _zero_filled(points: FloatArray) -> FloatArray:
    filled = np.empty(points.shape)
    tables.copy_filled(points, filled)
    return filled
