"""Probabilities with which arms are chosen, and draws from them."""

import math

import numpy as np
from numpy.typing import NDArray

from halfseen.values import FloatArray

N_DRAWS = 1000
"""Draws of Thompson sampling whose frequencies are its probabilities; the played one is of them."""


def inverse_gap(estimates: FloatArray, gamma: float) -> FloatArray:
    """Return SquareCB's probabilities: 1/(n_arms + γ·gap), and what remains for the best arm.

    Best arms with equal estimates share what remains.

    Foster & Rakhlin, Beyond UCB: Optimal and Efficient Contextual Bandits with Regression Oracles,
    2020; the weights are those of Abe & Long, 1999.

    >>> inverse_gap(np.array([1.0, 0.5]), 4.0).tolist()
    [0.75, 0.25]
    """
    gaps = estimates.max() - estimates
    weights: FloatArray = 1.0 / (len(estimates) + gamma * gaps)
    best = gaps == 0.0
    weights[best] = (1.0 - weights[~best].sum()) / np.count_nonzero(best)
    return weights


def inverse_gap_rate(n_arms: int, n_rounds: int, n_effective: float) -> float:
    """Return SquareCB's γ = (n_arms/d)·√(16·d / error of the regression), in 1/noise deviations.

    The mean squared error of a regression after t rewards is about n_effective/t, in units of the
    noise, with the effective number of coefficients. Arms differ in d directions only, at most as
    many as there are arms, and at most n_effective. Exploring costs d/γ per round then, not
    n_arms/γ: with hundreds of similar arms that would be all but uniform. This is a heuristic: the
    theory for d directions explores by an optimal design. The factor of 16 was found by experiment;
    the bound is smallest with 4.

    Simchi-Levi & Xu, Bypassing the Monster, 2020 (γ by the error of the present estimate); Foster,
    Gentile, Mohri & Zimmert, Adapting to Misspecification in Contextual Bandits, 2020 (directions).
    """
    n_effective = max(1.0, n_effective)
    n_directions = min(n_arms, n_effective)
    return 4.0 * n_arms * math.sqrt(n_rounds / (n_directions * n_effective))


def win_shares(
    keys: NDArray[np.uint64],
    estimates: FloatArray,
    white: FloatArray,
    played: int,
    random: np.random.Generator,
    own: FloatArray | None = None,
) -> FloatArray:
    """Return how often each arm is best in `N_DRAWS` draws from a normal law.

    Draws are exchangeable, so given all of them the played one is any of them with the same
    probability. These frequencies are exactly the probabilities of its best arm.

    Parameters
    ----------
    keys : ndarray, shape (n_arms,)
        Equal for equal arms, of which the first one wins.
    estimates : ndarray, shape (n_arms,)
        Means.
    white : ndarray, shape (n_arms, n)
        The covariance is white·white'.
    played : int
        The best arm of the draw that is played, which counts as one of the draws.
    random : Generator
    own : ndarray, shape (n_arms,), optional
        Further deviations, independent between different arms.
    """
    if len(keys) == 1:
        return np.ones(1)
    # In the order of keys, so that the order of arms does not matter.
    _, first = np.unique(keys, return_index=True)
    root = np.linalg.qr(white[first].T, mode="r")
    draws = random.standard_normal((N_DRAWS - 1, len(root))) @ root
    if own is not None:
        draws += random.standard_normal(draws.shape) * own[first]
    by_place = np.sort(first)
    best = (draws + estimates[first])[:, np.argsort(first)].argmax(axis=1)
    counts = np.bincount(by_place[best], minlength=len(keys))
    counts[played] += 1
    return counts / N_DRAWS


def drawn(
    probabilities: FloatArray,
    estimates: FloatArray,
    keys: NDArray[np.uint64],
    random: np.random.Generator,
) -> int:
    """Return an arm drawn with some probabilities; the order of arms does not matter."""
    order = np.lexsort((keys, -estimates))
    ends = np.cumsum(probabilities[order])
    place = int(np.searchsorted(ends, random.random() * ends[-1], side="right"))
    return int(order[min(place, len(order) - 1)])
