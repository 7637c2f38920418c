"""Estimators of the arms' covariance, whose top eigenvectors span the subspace of an epoch."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Protocol

import numpy as np

from halfseen import params
from halfseen.factors.model import HalfSeenRows, choose_rank, fit_rank
from halfseen.linear.covariance import Moments, check_dense
from halfseen.linear.eigen import Directions
from halfseen.linear.history import Reservoir
from halfseen.tofu.ingredient import Ingredient
from halfseen.values import FloatArray

COUNTED = "counted"
UNKNOWN = "unknown"

Prob = float | FloatArray | str
"""What a policy knows of p: a number, one per feature, "unknown" or "counted"."""


class Offered(Protocol):
    """What is kept of the offered arms: sums over them, a uniform sample, or a running estimate."""

    STATE: ClassVar[Any]
    n_arms: int

    def add(self, table: FloatArray, /) -> None:
        """Add the arms of a round, NaN where hidden, shape (n, dim)."""

    def fork(self) -> Any:
        """Return a copy to which arms can be added."""


class SubspaceEstimator(Ingredient, ABC):
    """Estimates E[xx'] of the full arms at the start of an epoch; a rank rule keeps its top.

    An estimator of your own writes `covariance` and gets a uniform sample of all arms offered so
    far. One that follows the arms in their order is a `SequentialEstimator`.

    Examples
    --------
    >>> from halfseen import TofuPov
    >>> class ZeroFilled(SubspaceEstimator):
    ...     '''The second moment of arms whose hidden entries count as zero.'''
    ...     def covariance(self, rows):
    ...         filled = np.nan_to_num(rows)
    ...         return filled.T @ filled / max(1, len(rows))
    >>> TofuPov(dim=4, rank=1, observe_prob=0.5, subspace=ZeroFilled()).subspace
    ZeroFilled()
    """

    has_eigenvalues: ClassVar[bool] = True
    """Whether variances along the directions are estimated, and not the subspace alone."""

    max_arms: int = params.integer(default=50_000, low=1, doc="Size of the sample.")

    def uses(self, round: int) -> bool:
        """Return whether the arms of a round are used; by default all are."""
        return True

    def check(self, dim: int) -> None:
        """Raise InvalidSettingError if a dim × dim matrix does not fit in memory."""
        check_dense(dim)

    def no_arms(
        self, dim: int, *, seed: int, observe_prob: Prob, rank: int | None = None
    ) -> Offered:
        """Return an empty collection of offered arms.

        `rank` is that of the policy, None if a rule chooses it.
        """
        return Reservoir(dim, max_rows=self.max_arms, seed=seed)

    def estimate(self, offered: Any, observe_prob: Any) -> tuple[FloatArray | Directions, float]:
        """Return E[xx'], shape (dim, dim), or its top directions, from all arms.

        `offered` is what `no_arms` returned, with all arms added.

        Also return the smallest probability of all features that an entry is seen.
        `observe_prob` is that of the policy: a number, one per feature, "unknown" or "counted".
        """
        rows: FloatArray = offered.rows
        if isinstance(observe_prob, str):
            counts = np.count_nonzero(rows == rows, axis=0)
            observe_prob = counts[counts > 0].min(initial=len(rows)) / max(1, len(rows)) or 1.0
        return self.covariance(rows), float(np.min(observe_prob))

    @abstractmethod
    def covariance(self, rows: FloatArray) -> FloatArray:
        """Return E[xx'], shape (dim, dim), from a sample of arms (n, dim), NaN where hidden."""


class CorrectedCovariance(SubspaceEstimator):
    """The paper's estimator: masked second moments divided by the probabilities of seeing them.

    It keeps sums over arms, not the arms themselves.

    Examples
    --------
    >>> rows = np.array([[1.0, np.nan], [1.0, 2.0]])
    >>> CorrectedCovariance().covariance(rows).tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """

    max_arms: ClassVar[int] = 0  # type: ignore[misc]

    def no_arms(
        self, dim: int, *, seed: int, observe_prob: Prob, rank: int | None = None
    ) -> Offered:
        """Return empty sums."""
        return Moments(dim, count_pairs=isinstance(observe_prob, str))

    def estimate(self, offered: Any, observe_prob: Any) -> tuple[FloatArray, float]:
        """Return the corrected covariance, and the smallest probability."""
        sums = offered.sums()
        if isinstance(observe_prob, str):
            observe_prob = sums.shares() if observe_prob == COUNTED else None
        return sums.covariance(observe_prob), sums.smallest_prob(observe_prob)

    def covariance(self, rows: FloatArray) -> FloatArray:
        """Return the covariance of a sample, corrected by each feature's share of seen entries."""
        moments = self.no_arms(rows.shape[1], seed=0, observe_prob=COUNTED)
        moments.add(rows)
        return self.estimate(moments, COUNTED)[0]


class LikelihoodFit(SubspaceEstimator):
    """The covariance of a factor model through the origin, fitted to a sample of arms.

    For arms that are nearly of low rank the fit converges like the solution of a system of
    equations, far faster than the corrected covariance. An opening takes up to seconds.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> rows = random.normal(size=(60, 1)) * np.array([1.0, 2.0, -1.0])
    >>> rows[random.random(rows.shape) < 0.3] = np.nan
    >>> covariance = LikelihoodFit(rank=1).covariance(rows)
    >>> (covariance / covariance[0, 0]).round(2).tolist()
    [[1.0, 2.0, -1.0], [2.0, 4.0, -2.0], [-1.0, -2.0, 1.0]]
    """

    rank: int | None = params.integer(
        default=None, low=1, doc="Number of factors; by default chosen by evidence."
    )
    max_arms: int = params.integer(default=2000, low=1, doc="Size of the sample.")

    def covariance(self, rows: FloatArray) -> FloatArray:
        """Return the covariance that the factors explain."""
        shown = HalfSeenRows(rows, through_origin=True)
        fit = choose_rank(shown) if self.rank is None else fit_rank(shown, self.rank)
        loadings = fit.model.loadings * fit.model.scale
        covariance: FloatArray = loadings.T @ loadings
        return covariance
