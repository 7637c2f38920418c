"""Rules for how many directions of the estimated covariance an epoch keeps.

From the corrected covariance and the quantities known when an epoch opens, a rule computes the
basis to freeze. Rank 0 is legal: then the burn-in policy plays that epoch.
"""

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

from halfseen import checks, params, theory
from halfseen.linear.eigen import Directions, eigenpairs_above, top_eigenpairs
from halfseen.linear.ridge import LARGEST_SCALE
from halfseen.tofu.ingredient import Ingredient, ingredient
from halfseen.values import FloatArray


class Known(NamedTuple):
    """Quantities known when an epoch opens.

    Attributes
    ----------
    n_arms : int
        Arms absorbed before the epoch: tK in the paper's formulas.
    round : int
        Rounds before the epoch: t, used only without a horizon.
    horizon : int or None
    observe_prob : float
        The smallest if features differ.
    failure_prob, epoch_failure_prob : float
        δ and δ_e.
    arm_bound, top_eigenvalue : float
        B_X and λ̄.

    Examples
    --------
    >>> Known(300, 30, 400, 0.5, 0.05, 0.01, 1.0, 1.0).observe_prob
    0.5
    """

    n_arms: int
    round: int
    horizon: int | None
    observe_prob: float
    failure_prob: float
    epoch_failure_prob: float
    arm_bound: float
    top_eigenvalue: float

    def log_term(self, dim: int, failure_prob: float) -> float:
        """Return log(2dT/δ), or its equivalent without a horizon."""
        return theory.log_term(
            dim=dim, failure_prob=failure_prob, horizon=self.horizon, round=self.round
        )


class Selection(NamedTuple):
    """The subspace that a rule selects.

    Attributes
    ----------
    basis : ndarray, shape (dim, rank)
    eigenvalues : ndarray
        Descending; at least those of the basis. Empty if they are not known.
    threshold : float or None
        Smallest eigenvalue that is kept; None for a fixed rank.

    Examples
    --------
    >>> import numpy as np
    >>> Selection(np.eye(4)[:, :1], np.array([2.0, 0.3]), threshold=0.5).basis.shape
    (4, 1)
    """

    basis: FloatArray
    eigenvalues: FloatArray
    threshold: float | None


class RankRule(Ingredient, ABC):
    """Chooses how many directions of an estimated covariance an epoch keeps.

    Examples
    --------
    >>> import numpy as np
    >>> from halfseen import TofuPov
    >>> class HalfOfTheVariance(RankRule):
    ...     '''The fewest directions that have half of the variance.'''
    ...     def select(self, covariance, known):
    ...         values, vectors = top_eigenpairs(covariance, len(covariance))
    ...         rank = int(np.searchsorted(np.cumsum(values), values.sum() / 2)) + 1
    ...         return Selection(vectors[:, :rank], values, None)
    >>> TofuPov(dim=4, rank=HalfOfTheVariance(), observe_prob=0.5).rank
    HalfOfTheVariance()
    """

    needs_eigenvalues: ClassVar[bool] = True
    """Whether it cannot choose among directions without the variances along them."""

    @abstractmethod
    def select(self, covariance: FloatArray | Directions, known: Known) -> Selection:
        """Return the subspace to freeze.

        Parameters
        ----------
        covariance : ndarray of shape (dim, dim), or Directions
            `halfseen.linear.eigen.top_eigenpairs` takes both.
        known : Known
        """


class FixedRank(RankRule):
    """Keep the same number of directions in every epoch, the paper's known m.

    >>> FixedRank(rank=3).to_dict()
    {'rule': 'FixedRank', 'rank': 3}
    """

    needs_eigenvalues = False

    rank: int = params.integer(low=1)

    def check(self, dim: int) -> None:
        """Raise InvalidSettingError if the rank exceeds `dim`."""
        checks.integer("rank", self.rank, 1, dim)

    def select(self, covariance: FloatArray | Directions, known: Known) -> Selection:
        """Return the top eigenvectors."""
        values, vectors = top_eigenpairs(covariance, self.rank)
        return Selection(vectors, values, None)


class ThresholdRule(RankRule):
    """Keep the directions whose eigenvalues reach a threshold, between a floor and a cap.

    Notes
    -----
    Paper: eq:unknown_rank_selector
    """

    floor: int = params.integer(default=1, low=0)
    cap: int | None = params.integer(default=None, low=1)

    @abstractmethod
    def threshold(self, dim: int, known: Known) -> float:
        """Return the smallest eigenvalue that is kept."""

    def check(self, dim: int) -> None:
        """Raise InvalidSettingError if the floor exceeds `dim`."""
        checks.integer("floor", self.floor, 0, dim)

    def setup(self) -> None:
        """Raise InvalidSettingError if the cap is below the floor."""
        if self.cap is not None:
            checks.integer("cap", self.cap, max(1, self.floor))

    def select(self, covariance: FloatArray | Directions, known: Known) -> Selection:
        """Return the eigenvectors above the threshold."""
        threshold = self.threshold(covariance.shape[0], known)
        values, vectors = eigenpairs_above(covariance, threshold, floor=self.floor, cap=self.cap)
        return Selection(vectors, values, threshold)


class PaperThreshold(ThresholdRule):
    """The paper's rule: keep eigenvalues of at least 2ρ, twice the bound on the covariance error.

    Parameters
    ----------
    floor, cap : int
        The paper has neither.

    Examples
    --------
    >>> PaperThreshold().to_dict()
    {'rule': 'PaperThreshold', 'floor': 0, 'cap': None}

    Notes
    -----
    Paper: eq:rho_unknown_rank
    """

    floor: int = params.integer(default=0, low=0)

    def threshold(self, dim: int, known: Known) -> float:
        """Return 2ρ for δ_rank = δ/4."""
        return 2.0 * theory.covariance_error(
            n_arms=known.n_arms,
            arm_bound=known.arm_bound,
            top_eigenvalue=known.top_eigenvalue,
            observe_prob=known.observe_prob,
            log_term=known.log_term(dim, known.failure_prob / 4),
        )


class PracticalThreshold(ThresholdRule):
    """The published practical rule: (constant · scale / p) · sqrt(log(2dT/δ) / n).

    Parameters
    ----------
    constant : float
        0.22 in the main synthetic study, 0.12 for digits, 0.08 for MNIST and newsgroups.
    scale : float
        λ₁·M in the published code: 1.5 in the main synthetic study, otherwise 1.
    multiplier : float
        Calibrated for digits, MNIST and newsgroups.
    failure_prob : float, optional
        δ of the logarithm; by default the epoch's δ_e.
    floor, cap : int
        The published studies have a floor of 1 and a cap.

    Examples
    --------
    >>> from halfseen import TofuPov
    >>> policy = TofuPov(dim=4, rank=PracticalThreshold(cap=2), observe_prob=0.5)
    >>> policy.rank.cap
    2
    """

    constant: float = params.real(default=0.22, low=0.0, high=LARGEST_SCALE, low_open=True)
    scale: float = params.real(default=1.5, low=0.0, high=LARGEST_SCALE, low_open=True)
    multiplier: float = params.real(default=1.0, low=0.0, high=LARGEST_SCALE, low_open=True)
    failure_prob: float | None = params.custom(
        default=None, check=checks.failure_prob, kind="float"
    )

    def threshold(self, dim: int, known: Known) -> float:
        """Return the threshold, infinite before anything was absorbed."""
        failure_prob = known.epoch_failure_prob if self.failure_prob is None else self.failure_prob
        if known.n_arms == 0:
            return math.inf
        root = math.sqrt(known.log_term(dim, failure_prob) / known.n_arms)
        return self.multiplier * self.constant * self.scale / known.observe_prob * root


class ConstantThreshold(ThresholdRule):
    """A constant threshold, set by hand (published rank study).

    Examples
    --------
    >>> ConstantThreshold(value=0.1, cap=8)
    ConstantThreshold(cap=8, value=0.1)
    """

    value: float = params.real(low=0.0, low_open=True)

    def threshold(self, dim: int, known: Known) -> float:
        """Return the constant."""
        return self.value


def rank_param(doc: str) -> Any:
    """Declare a parameter that is a rank rule, or a number for a fixed rank."""
    return ingredient(
        RankRule, shorthand=lambda name, rank: FixedRank(rank=rank), words="int", doc=doc
    )
