"""The regression of rewards at given prior scales, with the coefficients of items integrated out.

A reward of item i is r = φ'θ + c'δ_i + noise, the noise of variance σ², with independent prior
coefficients of deviation στ, where every column of φ and of c has its τ. Coefficients are in units
of τ here, a = θ/τ and d_i = δ_i/τ, and φ and c come times τ. With the sums over the rewards of each
item i, the posterior precision of (d_1, d_2, …, a), times σ², has the blocks

    A_i = I + Σcc',   B_i = Σcφ',   P = I + Σφφ'   (over all rewards),

and nothing between two items. So its Cholesky factor has the blocks

    L_i with L_iL_i' = A_i,   W_i = L_i⁻¹B_i,   L with LL' = V = P − Σ_i W_i'W_i,

and with the responses w_i = L_i⁻¹Σcr, w = L⁻¹(Σφr − Σ_i W_i'w_i) the posterior is

    a ~ N(L⁻ᵀw, σ²V⁻¹),   d_i given a ~ N(L_i⁻ᵀ(w_i − W_i a), σ²A_i⁻¹).

If σ²K is the covariance of the rewards with all coefficients integrated out, then

    log det K = log det V + Σ_i log det A_i,   r'K⁻¹r = Σr² − Σ_i ‖w_i‖² − ‖w‖².
"""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtri

from halfseen.latent.items import ItemStatistics
from halfseen.values import FloatArray

# Matrices of this size are inverted one by one.
_LARGE = 32
# What is below this share of a diagonal entry is rounding.
_ROUNDING = 1e-12


class SufficientStatistics(NamedTuple):
    """What the posterior depends on: products of features and rewards, without scales.

    Attributes
    ----------
    products : ndarray, shape (n_features + 1, n_features + 1)
        Σ(φ, r)(φ, r)' over the rewards, whose first feature is 1, or 0 without an intercept.
    items : ItemStatistics
        By item: the columns of Σcc', then those of Σcφ', then Σcr.
    n_rewards : float
    pure_error_squares : float
        Sum of squared rewards that `products` lack: of equal arms around their means.
    """

    products: FloatArray
    items: ItemStatistics
    n_rewards: float
    pure_error_squares: float

    @property
    def mean_square(self) -> float:
        """Mean of r² over the rewards."""
        return (float(self.products[-1, -1]) + self.pure_error_squares) / self.n_rewards

    def in_unit(self, unit: float) -> "SufficientStatistics":
        """Return the same with rewards divided by a unit."""
        products, sums = self.products.copy(), self.items.sums.copy()
        products[-1] /= unit
        products[:, -1] /= unit
        sums[:, :, -1] /= unit
        items = self.items._replace(sums=sums)
        return SufficientStatistics(
            products, items, self.n_rewards, self.pure_error_squares / unit**2
        )

    def select(self, features: Any, item_columns: Any) -> "SufficientStatistics":
        """Return the statistics of some of the columns of φ, and of c, given by their indices."""
        k, columns = self.items.n_columns, np.append(features, len(self.products) - 1)
        sums = self.items.sums[:, item_columns][:, :, np.concatenate([item_columns, k + columns])]
        return self._replace(
            products=self.products[np.ix_(columns, columns)], items=self.items._replace(sums=sums)
        )


class Posterior:
    """The posterior of all coefficients, in units of their prior scales.

    Parameters
    ----------
    statistics : SufficientStatistics
    taus, item_taus : ndarray, shapes (n_features,) and (n_item_columns,)
        τ of each column of φ, and of c.

    Attributes
    ----------
    sums : ndarray, shape (n_items, n_item_columns, n_features + 1)
        The columns of B_i, then Σcr.
    item_roots_inverse : ndarray, shape (n_items, n_item_columns, n_item_columns)
        L_i⁻¹.
    item_white : ndarray, shape (n_items, n_item_columns, n_features + 1)
        The columns of W_i, then w_i.
    root, root_inverse : ndarray, shape (n_features, n_features)
        L and L⁻¹, lower triangular.
    white : ndarray, shape (n_features,)
        w.
    log_det, item_log_det : float
        log det V, and that of all A_i.
    residual : float
        r'K⁻¹r.
    """

    def __init__(
        self, statistics: SufficientStatistics, taus: FloatArray, item_taus: FloatArray
    ) -> None:
        k, scale = statistics.items.n_columns, np.append(taus, 1.0)
        sums = item_taus[:, None] * statistics.items.sums
        item_roots = _roots(sums[:, :, :k] * item_taus)
        self.item_log_det = _log_det(item_roots)
        self.item_roots_inverse = _inverses(item_roots)
        self.sums = sums[:, :, k:] * scale
        self.item_white = self.item_roots_inverse @ self.sums
        white = self.item_white.reshape(-1, len(scale))
        rest = scale[:, None] * statistics.products * scale - white.T @ white
        (self.root,) = roots = _roots(rest[None, :-1, :-1])
        self.log_det = _log_det(roots)
        (self.root_inverse,) = _inverses(roots)
        self.white = self.root_inverse @ rest[:-1, -1]
        explained = float(self.white @ self.white)
        self.residual = max(0.0, float(rest[-1, -1]) - explained) + statistics.pure_error_squares

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
        """Return the variances of a, and the sums over items of those of d, in units of σ²."""
        own, given_a = (
            (inverse * inverse).sum(axis=-2)
            for inverse in (self.root_inverse, self.item_roots_inverse)
        )
        slopes = self.item_roots_inverse.transpose(0, 2, 1) @ self.item_white[:, :, :-1]
        by_a = slopes.reshape(-1, len(self.mean)) @ self.root_inverse.T
        by_a *= by_a
        return own, given_a.sum(axis=0) + by_a.sum(axis=1).reshape(given_a.shape).sum(axis=0)

    def products(self, a: FloatArray, d: FloatArray) -> FloatArray:
        """Return X'CX for columns X = (d, a), where C is the posterior covariance over σ².

        `a` has shape (n_features, n), `d` (n_items, n_item_columns, n). X is solved with the whole
        Cholesky factor: first L_i⁻¹d_i, then L⁻¹(a − Σ_i W_i'L_i⁻¹d_i).
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
