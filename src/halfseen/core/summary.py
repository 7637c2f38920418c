"""What is kept of rewards that are too many to be kept one by one: their products with features."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from halfseen import archive, checks
from halfseen.core.item_sums import ItemSums
from halfseen.values import LARGEST, LARGEST_POINT, FloatArray

# Directions in which features vary by less than this share of the most are rounding.
_ROUNDING = 1e-10


class Summary(NamedTuple):
    """Sufficient statistics of a regression of rewards on features φ, whose first one is 1.

    Attributes
    ----------
    rows : ndarray, shape (at most n_features + 1, n_features + 1)
        R with R'R = Σ(φ, r − shift)(φ, r − shift)': samples with the same products as all rewards.
    shift : float
        0 if there is no intercept: then the first feature is 0.
    n_rewards, n_arms : float
        Number of rewards, and of the arms that earned them.
    round : float
        Mean round of the rewards.
    items : ItemSums, optional
        The same rewards by item, if items have coefficients of their own.
    """

    rows: FloatArray
    shift: float
    n_rewards: float
    n_arms: float
    round: float
    items: ItemSums | None = None

    @classmethod
    def of(
        cls,
        points: FloatArray,
        counts: FloatArray,
        means: FloatArray,
        rounds: Any,
        *,
        intercept: bool = True,
    ) -> "Summary":
        """Sum up arms with features (n, n_features), numbers and means of rewards, and rounds.

        >>> one = Summary.of(np.ones((2, 1)), np.array([1.0, 2.0]), np.array([0.0, 3.0]), [1, 2])
        >>> one.shift, one.n_rewards, float((one.rows**2).sum())
        (2.0, 3.0, 9.0)
        """
        shift = float(counts @ means / counts.sum()) if intercept else 0.0
        samples = np.sqrt(counts)[:, None] * np.column_stack([points, means - shift])
        total = float(counts.sum())
        rounds = float(counts @ rounds / total)
        return cls(_root(samples), shift, total, float(len(counts)), rounds)

    @property
    def ones(self) -> FloatArray:
        """The feature 1 of each row of R."""
        return self.rows[:, 0]

    def targets(self, shift: float) -> FloatArray:
        """Return the rewards of the rows, measured from a shift."""
        targets: FloatArray = self.rows[:, -1] + (self.shift - shift) * self.ones
        return targets

    def mean_square(self) -> float:
        """Return the mean of ‖φ‖² over the rewards, also over the parts that differ by item."""
        total = float((self.rows[:, :-1] ** 2).sum())
        if self.items is not None:
            k = self.items.n_parts
            total = max(total, float(np.trace(self.items.sums[:, :, :k].sum(axis=0))))
        return total / self.n_rewards

    def faded(self, weight: float) -> "Summary":
        """Return the summary with every reward counting less."""
        return self._replace(
            rows=math.sqrt(weight) * self.rows,
            n_rewards=weight * self.n_rewards,
            n_arms=weight * self.n_arms,
            items=None if self.items is None else self.items.faded(weight),
        )

    def carried(self, matrix: FloatArray, parts: FloatArray | None = None) -> "Summary":
        """Return the summary for other features, which are φ times a matrix.

        `parts` is the matrix for parts that differ by item; without it they are given up.
        """
        items = None if self.items is None or parts is None else self.items.carried(parts, matrix)
        rows = np.column_stack([self.rows[:, :-1] @ matrix, self.rows[:, -1]])
        return self._replace(rows=_root(rows), items=items)

    def state(self) -> dict[str, Any]:
        """Return everything as numbers and arrays."""
        return self._asdict() | {"items": None if self.items is None else self.items.state()}

    @classmethod
    def restored(cls, state: dict[str, Any], n_features: int, n_parts: int = 1) -> "Summary":
        """Return the summary that `state` described."""
        limit = LARGEST_POINT
        rows = archive.array(state, "rows", (None, n_features + 1), low=-limit, high=limit)
        most = checks.LARGEST_HORIZON
        return cls(
            rows,
            checks.real("shift", state["shift"], -LARGEST, LARGEST),
            checks.real("n_rewards", state["n_rewards"], 0.0, most, low_open=True),
            checks.real("n_arms", state["n_arms"], 0.0, most, low_open=True),
            checks.real("round", state["round"], 0.0, most),
            None
            if state["items"] is None
            else ItemSums.restored(state["items"], n_parts, n_features),
        )


def joined(summaries: Sequence[Summary]) -> Summary:
    """Return one summary of the rewards of several, at least one."""
    total = sum(each.n_rewards for each in summaries)
    shares = [each.n_rewards / total for each in summaries]
    shift = sum(share * each.shift for share, each in zip(shares, summaries, strict=True))
    stacked = [np.column_stack([each.rows[:, :-1], each.targets(shift)]) for each in summaries]
    return Summary(
        _root(np.vstack(stacked)),
        shift,
        total,
        sum(each.n_arms for each in summaries),
        sum(share * each.round for share, each in zip(shares, summaries, strict=True)),
        _joined_items([each.items for each in summaries]),
    )


def _joined_items(found: Sequence[ItemSums | None]) -> ItemSums | None:
    some = [each for each in found if each is not None]
    total = some[0] if some else None
    for each in some[1:]:
        assert total is not None
        total = total.plus(each)
    return total


def carrying(old: FloatArray, new: FloatArray, guess: FloatArray) -> tuple[FloatArray, float]:
    """Return the matrix that carries features into those of another model, and its error.

    The features of a half-seen arm under two models are not linear in each other, because each mask
    has a map of its own. If the models are alike, a linear map comes close.

    Parameters
    ----------
    old, new : ndarray, shapes (n, n_old) and (n, n_new)
        Features of the same arms.
    guess : ndarray, shape (n_old, n_new)
        The map in directions that these arms do not show.

    Returns
    -------
    matrix : ndarray, shape (n_old, n_new)
        Minimises ‖old · matrix − new‖.
    error : float
        The root of that residual's share of Σ‖new‖², without the first feature.
    """
    rest = new - old @ guess
    sizes = np.linalg.norm(old, axis=0)
    unit = np.where(sizes > 0.0, sizes, 1.0)
    scaled = old / unit
    values, vectors = np.linalg.eigh(scaled.T @ scaled)
    real = values > _ROUNDING * values.max(initial=1.0)
    vectors = vectors[:, real]
    solution = vectors @ ((vectors.T @ (scaled.T @ rest)) / values[real][:, None])
    left, size = (rest - scaled @ solution)[:, 1:], float(np.linalg.norm(new[:, 1:]))
    error = float(np.linalg.norm(left)) / max(1e-300, size)
    return guess + solution / unit[:, None], error


def _root(samples: FloatArray) -> FloatArray:
    """Return as few rows as possible with the same products."""
    return np.asarray(np.linalg.qr(samples, mode="r"))
