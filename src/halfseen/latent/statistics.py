"""What the regression needs of rewards: products of features and rewards, over all and by item.

Σ(φ, r)(φ, r)'   and, for each item,   Σc(c, φ, r)'.
"""

from typing import Any, NamedTuple

import numpy as np

from halfseen.latent.items import items_kept
from halfseen.values import FloatArray
from halfseen.values.rows import Keys


class Statistics(NamedTuple):
    """What the posterior depends on: products of features and rewards, without scales.

    Attributes
    ----------
    products : ndarray, shape (n_features + 1, n_features + 1)
        Σ(φ, r − shift)(φ, r − shift)'. The first feature is 1, or 0 without an intercept.
    keys : ndarray of uint64, shape (n_items,)
        Of the items, ascending; empty if c has no columns.
    item_products : ndarray, shape (n_items, n_item_columns, n_item_columns + n_features + 1)
        For each item the columns of Σcc', then those of Σcφ', then Σc(r − shift). The first entry
        of c is 1.
    shift : float
        0 without an intercept.
    n_rewards : float
    """

    products: FloatArray
    keys: Keys
    item_products: FloatArray
    shift: float
    n_rewards: float

    @property
    def mean_square(self) -> float:
        """Mean of (r − shift)²."""
        return float(self.products[-1, -1]) / self.n_rewards

    def mean_square_around(self, value: float) -> float:
        """Return the mean of (r − value)²."""
        more, products = self.shift - value, self.products
        squares = products[-1, -1] + 2.0 * more * products[0, -1] + more * more * products[0, 0]
        return float(squares) / self.n_rewards

    @property
    def mean(self) -> float:
        """Mean of the rewards, if there is an intercept."""
        return self.shift + float(self.products[0, -1]) / self.n_rewards

    @property
    def n_features(self) -> int:
        """Number of columns of φ."""
        return len(self.products) - 1

    @property
    def n_item_columns(self) -> int:
        """Number of columns of c."""
        return int(self.item_products.shape[1])

    def shifted(self, shift: float) -> "Statistics":
        """Return the same with rewards measured from another shift."""
        products, sums, more = self.products.copy(), self.item_products.copy(), self.shift - shift
        products[:, -1] += more * products[:, 0]
        products[-1] += more * products[0]
        sums[:, :, -1] += more * sums[:, :, 0]
        return self._replace(products=products, item_products=sums, shift=shift)

    def select(self, features: Any, item_columns: Any) -> "Statistics":
        """Return the statistics of some of the columns of φ, and of c, given by their indices."""
        columns = np.append(features, self.n_features)
        own = np.concatenate([item_columns, self.n_item_columns + columns])
        return self._replace(
            products=self.products[np.ix_(columns, columns)],
            item_products=self.item_products[:, item_columns][:, :, own],
        )

    def plus(self, other: "Statistics") -> "Statistics":
        """Return the statistics of the rewards of both, with this shift."""
        other = other.shifted(self.shift)
        keys, places = np.unique(np.append(self.keys, other.keys), return_inverse=True)
        sums = np.zeros((len(keys), *self.item_products.shape[1:]))
        sums[places[: len(self.keys)]] += self.item_products
        sums[places[len(self.keys) :]] += other.item_products
        n_rewards = self.n_rewards + other.n_rewards
        products = self.products + other.products
        return Statistics(products, keys, sums, self.shift, n_rewards).with_most_played()

    def mapped(self, matrix: FloatArray, item_matrix: FloatArray) -> "Statistics":
        """Return the statistics for other features, which are φ and c times matrices.

        Shapes (n_features, new n_features) and (n_item_columns, new n_item_columns).
        """
        k, sums = self.n_item_columns, self.item_products
        features = np.pad(matrix, ((0, 1), (0, 1)))
        features[-1, -1] = 1.0  # the reward stays
        columns = [sums[:, :, :k] @ item_matrix, sums[:, :, k:] @ features]
        mapped = item_matrix.T @ np.concatenate(columns, axis=2)
        kept = slice(None) if mapped.shape[1] else slice(0)
        found = self._replace(
            products=features.T @ self.products @ features,
            keys=self.keys[kept],
            item_products=mapped[kept],
        )
        return found.with_most_played()

    def with_most_played(self) -> "Statistics":
        """Return the statistics with the sums of as many items as are kept, those played most."""
        most = items_kept(self.n_item_columns, self.n_features)
        if len(self.keys) <= most:
            return self
        played = np.argsort(-self.item_products[:, 0, 0], kind="stable")
        kept = np.sort(played[:most])
        return self._replace(keys=self.keys[kept], item_products=self.item_products[kept])


def sums_by_item(keys: Keys, c: FloatArray, rows: FloatArray) -> tuple[Keys, FloatArray]:
    """Return the different keys, ascending, and Σcx' over the rows x of each item."""
    order = np.argsort(keys, kind="stable")
    different, starts = np.unique(keys[order], return_index=True)
    c, rows, ends = c[order].T, rows[order], [*starts[1:].tolist(), len(keys)]
    sums = np.empty((len(different), len(c), rows.shape[1]))
    for place, (start, end) in enumerate(zip(starts.tolist(), ends, strict=True)):
        sums[place] = c[:, start:end] @ rows[start:end]
    return different, sums
