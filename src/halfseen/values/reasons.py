"""Why arms have their estimates, and what it would be worth to see more of them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from halfseen import checks
from halfseen.errors import HalfseenError, InvalidInputError
from halfseen.lazy import LazyModule
from halfseen.values.slate import BoolArray, FloatArray

_special = LazyModule("scipy.special")

# E[max] of several arms is integrated over this many steps, so many deviations to both sides.
_STEPS, _REACH = 4000, 8.0

# Pairs of opposite draws over which a gain in several dimensions is averaged.
_PAIRS = 2048


_NOTHING: FloatArray = np.zeros((1, 0))


class Reasons(NamedTuple):
    """The parts that add up to the score of each arm.

    Attributes
    ----------
    intercept : float
        The estimate for an average arm.
    features : ndarray, shape (n_arms, dim)
        Contribution of each feature's value, seen or inferred.
    missing : ndarray, shape (n_arms, dim)
        Contribution of whether the feature is seen or hidden, whatever its value.
    item : ndarray, shape (n_arms,)
        Contribution of the item's own rewards, if the arm has returned.
    bonus : ndarray, shape (n_arms,)
        The width.
    context : ndarray, shape (n_arms, context_dim), optional
        Contribution of each feature of the context, seen or hidden: the same for all arms.
    crossed : ndarray, shape (n_arms, context_dim), optional
        Its additional contribution for this arm.
    implausible : ndarray of bool, shape (n_arms, dim), or None
        Seen values that count as hidden, because they are far from all others.
    context_implausible : ndarray of bool, shape (1, context_dim), or None
        Those of the context.

    Examples
    --------
    >>> from halfseen import AmbientOful
    >>> policy = AmbientOful(dim=2)
    >>> policy.learn_logged([[1.0, 0.0], [0.0, 1.0]], [1.0, 0.0])
    >>> why = policy.explain([[1.0, 1.0], [np.nan, 1.0]])
    >>> why.features.round(2).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    >>> bool(np.allclose(why.scores, why.estimates + why.bonus))
    True
    """

    intercept: float
    features: FloatArray
    missing: FloatArray
    item: FloatArray
    bonus: FloatArray
    context: FloatArray = _NOTHING
    crossed: FloatArray = _NOTHING
    implausible: BoolArray | None = None
    context_implausible: BoolArray | None = None

    @classmethod
    def none(cls, n_arms: int, dim: int, context_dim: int = 0) -> "Reasons":
        """Return parts that are all zero."""
        tables, rows = np.zeros((2, n_arms, dim)), np.zeros((2, n_arms))
        return cls(0.0, *tables, *rows, *np.zeros((2, n_arms, context_dim)))

    @property
    def estimates(self) -> FloatArray:
        """Estimate of each arm, shape (n_arms,)."""
        tables = (self.features, self.missing, self.context, self.crossed)
        total: FloatArray = sum((table.sum(axis=1) for table in tables), self.item)
        return self.intercept + total

    @property
    def scores(self) -> FloatArray:
        """Score of each arm, shape (n_arms,)."""
        return self.estimates + self.bonus


Groups = Sequence[Sequence[int]]
"""Features that are seen together."""


def checked_groups(groups: Any, dim: int) -> Groups:
    """Return groups of features after checking that they exist; by default each one alone."""
    if groups is None:
        return [[feature] for feature in range(dim)]
    if dim == 0:
        raise InvalidInputError(f"groups must be left out: there are no features, got {groups!r}")
    try:
        return [[checks.integer("feature", each, 0, dim - 1) for each in one] for one in groups]
    except (TypeError, HalfseenError):
        raise InvalidInputError(
            f"groups must be lists of features from 0 to {dim - 1}, got {groups!r}"
        ) from None


class Gains(NamedTuple):
    """Expected increase of the best estimate if a hidden entry is measured before choosing.

    Attributes
    ----------
    single : ndarray, shape (n_arms, n_groups)
        If a group of features is seen for one arm.
    all_arms : ndarray, shape (n_groups,)
        If it is seen for all arms.
    context : ndarray, shape (n_context_groups,)
        If a group of the context's features is seen.

    Examples
    --------
    >>> gains = Gains.of(np.array([0.0, 0.0]), np.array([[1.0], [0.0]]))
    >>> gains.all_arms.round(2).tolist()
    [0.4]
    """

    single: FloatArray
    all_arms: FloatArray
    context: FloatArray

    @classmethod
    def of(
        cls, estimates: FloatArray, deviations: FloatArray, moves: Sequence[FloatArray] = ()
    ) -> "Gains":
        """Return the gains if seeing a group moves each estimate by a normal law.

        Parameters
        ----------
        estimates : ndarray, shape (n_arms,)
        deviations : ndarray, shape (n_arms, n_groups)
            Of each law, independent between arms.
        moves : sequence of ndarray, shape (n_arms, n)
            For each group of the context's features: seeing it moves the estimates by this matrix
            times n standard normals.

        Examples
        --------
        >>> gains = Gains.of(np.array([0.0, 0.0]), np.array([[1.0], [0.0]]))
        >>> gains.single.round(4).tolist(), gains.all_arms.round(4).tolist()
        ([[0.3989], [0.0]], [0.3989])
        """
        single = np.zeros(deviations.shape)
        for arm in range(len(estimates) if len(estimates) > 1 else 0):
            gap = abs(estimates[arm] - np.delete(estimates, arm).max())
            single[arm] = _expected_excess(gap, deviations[arm])
        together = [_joint_gain(estimates, each) for each in deviations.T]
        of_context = [_context_gain(estimates, move) for move in moves]
        return cls(single, np.array(together), np.array(of_context))


def _expected_excess(gap: float, deviations: FloatArray) -> FloatArray:
    """Return E[max(0, deviation·g − gap)] for a standard normal g: closed form."""
    units = np.divide(gap, deviations, out=np.full(len(deviations), np.inf), where=deviations > 0.0)
    density = np.exp(-0.5 * np.minimum(units, 1e100) ** 2) / np.sqrt(2.0 * np.pi)
    excess: FloatArray = deviations * density - gap * _special.ndtr(-units)
    return np.maximum(excess, 0.0)


def _joint_gain(estimates: FloatArray, deviations: FloatArray) -> float:
    """Return E[max] of independent normal laws minus the largest mean, by numerical integration."""
    if not deviations.any() or len(estimates) == 1:
        return 0.0
    # Below `low` some arm almost surely exceeds the value, above `high` none does.
    low = float((estimates - _REACH * deviations).max())
    high = float((estimates + _REACH * deviations).max())
    values = np.linspace(low, high, _STEPS + 1)
    moves = deviations > 0.0
    rests = (values - estimates[moves, None]) / deviations[moves, None]
    exceeded = 1.0 - _special.ndtr(rests).prod(axis=0)  # no arm that stays is above `low`
    return max(0.0, low + float(np.trapezoid(exceeded, values)) - float(estimates.max()))


def _context_gain(estimates: FloatArray, move: FloatArray) -> float:
    """Return the gain by numerical integration, or over pairs of opposite draws."""
    different = move - move.mean(axis=0)  # what moves all arms alike changes no choice
    if not np.abs(different).max(initial=0.0) > 0.0:
        return 0.0
    if move.shape[1] == 1:
        normals = np.linspace(-_REACH, _REACH, _STEPS + 1)[None]
        weights = np.exp(-0.5 * normals[0] ** 2)
        weights /= weights.sum()
    else:
        draws = np.random.default_rng(0).standard_normal((move.shape[1], _PAIRS))
        normals, weights = np.hstack([draws, -draws]), np.full(2 * _PAIRS, 0.5 / _PAIRS)
    best = (estimates[:, None] + different @ normals).max(axis=0)
    return max(0.0, float(weights @ best) - float(estimates.max()))
