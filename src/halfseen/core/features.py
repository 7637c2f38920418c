"""Features of the reward model: an intercept, latent coordinates, filled arms, and masks."""

import math
from collections.abc import Sequence

import numpy as np

from halfseen.core.factors import Factors
from halfseen.core.group_scales import Scales
from halfseen.lazy import LazyModule
from halfseen.values import FloatArray

_kernels = LazyModule("halfseen.kernels.arm_features")

LATENT, FILLED, MASK = "latent", "filled", "mask"
GROUPS = (LATENT, FILLED, MASK)

INTERCEPT = 1000.0
"""The intercept's feature: with coefficients of deviation 1 its prior is practically flat, as
rewards are centred."""


class Features:
    """Maps half-seen arms to the features of the reward model, group after group.

    - The intercept; 0 if there is none.
    - "latent": the posterior means of the latent coordinates.
    - "filled": the arm in deviations from the mean, hidden entries filled in.
    - "mask": 1 or 0 for a seen or hidden entry, minus the share of arms that show it.

    Each group is scaled so that its norm is about 1, and then multiplied by its scale.

    Parameters
    ----------
    model : Factors
    shares : ndarray, shape (dim,)
        Share of the arms that show each feature.
    groups : sequence of str
    scales : Scales, optional
        By default all are 1.
    intercept : bool

    Attributes
    ----------
    n_features : int
    columns : dict
        For each group the slice of its columns.
    """

    __slots__ = (
        "_lift", "_model", "_roots", "_shares", "_sizes", "columns", "intercept", "n_features",
    )  # fmt: skip

    def __init__(
        self,
        model: Factors,
        shares: FloatArray,
        groups: Sequence[str],
        scales: Scales | None = None,
        *,
        intercept: bool = True,
    ) -> None:
        self._model, self._shares, self.intercept = model, shares, intercept
        self._roots = np.sqrt(model.noise)
        self._lift = model.lift() if model.rank else None
        spread = float((shares * (1.0 - shares)).sum())
        norms = {
            LATENT: math.sqrt(max(1, model.rank)),
            FILLED: math.sqrt(model.dim),
            MASK: math.sqrt(spread) if spread > 0.0 else 1.0,
        }
        self._sizes = {
            group: (1.0 if scales is None else scales.of(group)) / norms[group] for group in groups
        }
        self.columns: dict[str, slice] = {}
        first = 1
        for group in groups:
            end = first + (model.rank if group == LATENT else model.dim)
            self.columns[group] = slice(first, end)
            first = end
        self.n_features = first

    def points(self, table: FloatArray) -> FloatArray:
        """Return the features of arms (n, dim), NaN where hidden, shape (n, n_features)."""
        model, columns, sizes = self._model, self.columns, self._sizes
        points = np.empty((len(table), self.n_features))
        points[:, 0] = INTERCEPT if self.intercept else 0.0
        rest = np.empty(table.shape)
        _kernels.subtract(table, model.location, model.scale, self._roots, rest)
        latent = np.empty((len(table), 0))
        if self._lift is not None:
            latent = self._lift.coordinates(rest)
            if LATENT in columns:
                points[:, columns[LATENT]] = sizes[LATENT] * latent
        if FILLED in columns:
            first = columns[FILLED].start
            _kernels.write_filled(
                rest, latent, self._roots, model.loadings, sizes[FILLED], first, points
            )
        if MASK in columns:
            _kernels.write_mask(table, self._shares, sizes[MASK], columns[MASK].start, points)
        return points
