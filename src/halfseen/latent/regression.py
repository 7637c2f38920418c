"""The regression of rewards at given prior scales, with the coefficients of items integrated out.

A reward of item i is r = φ'θ + c'δ_i + noise, the noise of variance σ², with independent prior
coefficients of deviation στ, where every column of φ and of c has its τ. Coefficients are in units
of τ, a = θ/τ and d_i = δ_i/τ, and φ and c come times τ. With the sums over the rewards of each item
i, the posterior precision of (d_1, d_2, …, a), times σ², has the blocks

    A_i = I + Σcc',   B_i = Σcφ',   P = I + Σφφ'   (over all rewards),

and nothing between two items. So its Cholesky factor has the blocks

    L_i with L_iL_i' = A_i,   U_i' with U_i = L_i⁻¹B_i,   L with LL' = V = P − Σ_i U_i'U_i,

and with w_i = L_i⁻¹Σcr, u = Σφr − Σ_i U_i'w_i and w = L⁻¹u the posterior is

    a ~ N(V⁻¹u, σ²V⁻¹),   d_i given a ~ N(L_i⁻ᵀ(w_i − U_i a), σ²A_i⁻¹).

If σ²K is the covariance of the rewards with all coefficients integrated out, then

    log det K = log det V + Σ_i log det A_i,   r'K⁻¹r = Σr² − Σ_i ‖w_i‖² − ‖w‖².
"""

from functools import cached_property

import numpy as np
from scipy.linalg.lapack import dtrtri

from halfseen.latent.statistics import Statistics
from halfseen.values import FloatArray

# Matrices of this size are inverted one by one.
_LARGE = 32
# What is below this share of a diagonal entry is rounding.
_ROUNDING = 1e-12


class Posterior:
    """The posterior of all coefficients, in units of their prior scales.

    Parameters
    ----------
    statistics : Statistics
    taus, item_taus : ndarray, shapes (n_features,) and (n_item_columns,)
        τ of each column of φ, and of c.

    Attributes
    ----------
    item_sums : ndarray, shape (n_items, n_item_columns, n_features + 1)
        The columns of B_i, then Σcr.
    item_roots_inverse : ndarray, shape (n_items, n_item_columns, n_item_columns)
        L_i⁻¹.
    item_white : ndarray, shape (n_items, n_item_columns, n_features + 1)
        The columns of U_i, then w_i.
    root, root_inverse : ndarray, shape (n_features, n_features)
        L and L⁻¹, lower triangular.
    white : ndarray, shape (n_features,)
        w.
    log_det : float
        log det K.
    residual : float
        r'K⁻¹r.
    """

    def __init__(self, statistics: Statistics, taus: FloatArray, item_taus: FloatArray) -> None:
        k, scale = statistics.n_item_columns, np.append(taus, 1.0)
        sums = item_taus[:, None] * statistics.item_products
        item_roots = _roots(sums[:, :, :k] * item_taus)
        self.item_roots_inverse = _inverses(item_roots)
        self.item_sums = sums[:, :, k:] * scale
        self.item_white = self.item_roots_inverse @ self.item_sums
        white = self.item_white.reshape(-1, len(scale))
        rest = scale[:, None] * statistics.products * scale - white.T @ white
        (self.root,) = roots = _roots(rest[None, :-1, :-1])
        self.log_det = _log_det(roots) + _log_det(item_roots)
        (self.root_inverse,) = _inverses(roots)
        self.white = self.root_inverse @ rest[:-1, -1]
        explained = float(self.white @ self.white)
        self.residual = max(0.0, float(rest[-1, -1]) - explained)

    @cached_property
    def mean(self) -> FloatArray:
        """E[a], shape (n_features,)."""
        return np.asarray(self.white @ self.root_inverse)

    @cached_property
    def item_means(self) -> FloatArray:
        """E[d], shape (n_items, n_item_columns)."""
        rest = self.item_white[:, :, -1] - self.item_white[:, :, :-1] @ self.mean
        return np.asarray((rest[:, None, :] @ self.item_roots_inverse)[:, 0])

    @property
    def item_covariances(self) -> FloatArray:
        """A_i⁻¹, shape (n_items, n_item_columns, n_item_columns)."""
        return np.asarray(self.item_roots_inverse.transpose(0, 2, 1) @ self.item_roots_inverse)

    def variances(self) -> tuple[FloatArray, FloatArray]:
        """Return the variances of a, and the sums over items of those of d, in units of σ².

        diag V⁻¹, and the diagonals of A_i⁻¹ + S_iV⁻¹S_i' with S_i = A_i⁻¹B_i.
        """
        variances, item_variances = (
            (inverse * inverse).sum(axis=-2)
            for inverse in (self.root_inverse, self.item_roots_inverse)
        )
        slopes = self.item_roots_inverse.transpose(0, 2, 1) @ self.item_white[:, :, :-1]
        by_a = slopes.reshape(-1, len(self.mean)) @ self.root_inverse.T
        item_variances += (by_a * by_a).sum(axis=1).reshape(item_variances.shape)
        return variances, item_variances.sum(axis=0)

    def covariance_of(self, a: FloatArray, d: FloatArray) -> FloatArray:
        """Return X'CX for columns X = (a, d), where C is the posterior covariance over σ².

        `a` has shape (n_features, n), `d` (n_items, n_item_columns, n). X is solved with the whole
        Cholesky factor: first L_i⁻¹d_i, then L⁻¹(a − Σ_i U_i'L_i⁻¹d_i).
        """
        n_items, k, n = d.shape
        items = (self.item_roots_inverse @ d).reshape(n_items * k, n)
        item_white = self.item_white[:, :, :-1].reshape(-1, len(a))
        rest = self.root_inverse @ (a - item_white.T @ items)
        found: FloatArray = items.T @ items + rest.T @ rest
        return found


def _roots(blocks: FloatArray) -> FloatArray:
    """Return the Cholesky factors of I plus positive matrices (n, k, k)."""
    blocks, places = blocks.copy(), np.arange(blocks.shape[1])
    diagonal = blocks[:, places, places]  # where 1 would be lost to rounding, more is added
    blocks[:, places, places] = diagonal + np.maximum(1.0, _ROUNDING * diagonal)
    try:
        return np.asarray(np.linalg.cholesky(blocks))
    except np.linalg.LinAlgError:  # the rest is lost to rounding: no eigenvalue is below 1
        values, vectors = np.linalg.eigh(0.5 * (blocks + blocks.transpose(0, 2, 1)))
        rows = np.sqrt(np.maximum(values, 1.0))[:, :, None] * vectors.transpose(0, 2, 1)
        roots = np.asarray(np.linalg.qr(rows, mode="r")).transpose(0, 2, 1)
        return roots * np.where(np.diagonal(roots, axis1=1, axis2=2) < 0.0, -1.0, 1.0)[:, None]


def _log_det(roots: FloatArray) -> float:
    """Return the sum of log det LL' over matrices L (n, k, k)."""
    return 2.0 * float(np.log(np.diagonal(roots, axis1=1, axis2=2)).sum())


def _inverses(roots: FloatArray) -> FloatArray:
    """Return the inverses of lower triangular matrices (n, k, k)."""
    if len(roots) > 1 and roots.shape[1] < _LARGE:  # numpy is faster for many small ones
        return np.asarray(np.linalg.inv(roots))
    inverses = np.empty(roots.shape)
    if roots.size:
        for inverse, root in zip(inverses, roots, strict=True):
            inverse[:] = dtrtri(root.T, lower=0)[0].T
    return inverses
