"""One epoch of a run: what its lemmas speak of, worked out from features, radii and rewards.

The features z_t of the played arms, shape (n, rank), are in the order of the rounds. V_t is
λI + Σ z_s z_s' over the rounds before t, and q_t the length of z_t in V_t⁻¹.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.theory.regret import potential_sums
from halfseen.theory.representation import Problem, imputation_error
from halfseen.values import FloatArray


def grams_before(features: FloatArray, *, ridge: float) -> FloatArray:
    """Return V_t before each round, and at last V after all, shape (n + 1, rank, rank).

    >>> grams_before(np.array([[1.0], [2.0]]), ridge=3.0).ravel().tolist()
    [3.0, 4.0, 8.0]
    """
    n, rank = features.shape
    grams = np.zeros((n + 1, rank, rank))
    np.cumsum(features[:, :, None] * features[:, None, :], axis=0, out=grams[1:])
    return grams + ridge * np.eye(rank)


def widths_in(points: FloatArray, grams: FloatArray) -> FloatArray:
    """Return the length of points, shape (n, …, rank), each in the inverse of its gram.

    >>> widths_in(np.array([[2.0]]), np.array([[[16.0]]])).tolist()
    [0.5]
    """
    squares = np.einsum("t...i,tij,t...j->t...", points, np.linalg.inv(grams), points)
    return np.asarray(np.sqrt(squares))


def epoch_potential(features: FloatArray, *, ridge: float) -> float:
    """Return Γ_e = log(det V / det λI) after all rounds of an epoch.

    Paper: lem:epoch_potential

    >>> round(epoch_potential(np.array([[1.0], [2.0]]), ridge=1.0), 4) == round(math.log(6), 4)
    True
    """
    rank = features.shape[1]
    gram = features.T @ features / ridge + np.eye(rank)
    return float(np.linalg.slogdet(gram)[1])


def feature_bound(*, arm_bound: float, observe_prob: float, subspace_error: float) -> float:
    """Return B_e = B_X + (1 + 2/p) B_X ε_e, which bounds the length of features.

    Paper: lem:epoch_potential

    >>> feature_bound(arm_bound=2.0, observe_prob=0.5, subspace_error=0.1)
    3.0
    """
    return arm_bound + imputation_error(
        arm_bound=arm_bound, observe_prob=observe_prob, subspace_error=subspace_error
    )


def potential_bound(*, n_rounds: int, rank: int, feature_bound: float, ridge: float) -> float:
    """Return m log(1 + n B_e²/(m λ)), which bounds Γ_e.

    Paper: lem:epoch_potential

    >>> potential_bound(n_rounds=2, rank=2, feature_bound=1.0, ridge=1.0) == 2 * math.log(2)
    True
    """
    return rank * math.log1p(n_rounds * feature_bound**2 / (rank * ridge))


class RidgeError(NamedTuple):
    """V(ϑ̂ − ϑ*) in three parts, each of shape (rank,).

    Attributes
    ----------
    shrinkage, misspecification, noise : ndarray
        −λϑ*, Σ z ξ and Σ z η.
    """

    shrinkage: FloatArray
    misspecification: FloatArray
    noise: FloatArray

    @property
    def total(self) -> FloatArray:
        """The sum of the parts."""
        return self.shrinkage + self.misspecification + self.noise


def ridge_error(
    features: FloatArray, target: FloatArray, biases: FloatArray, noise: FloatArray, *, ridge: float
) -> RidgeError:
    """Return the error of the ridge estimate of ϑ* from rewards ⟨z, ϑ*⟩ + ξ + η, times V.

    Paper: eq:error-decomp

    >>> one = np.array([[1.0]])
    >>> ridge_error(one, np.array([2.0]), np.array([0.5]), np.array([0.25]), ridge=1.0).total
    array([-1.25])
    """
    return RidgeError(-ridge * target, biases @ features, noise @ features)


def surrogate_regret_bound(*, radius: FloatArray, width: FloatArray) -> FloatArray:
    """Return 2βq, which bounds what the optimistic arm loses in the surrogate model.

    Paper: lemma:surrogate_optimism

    >>> surrogate_regret_bound(radius=2.0, width=0.25)
    1.0
    """
    return 2 * radius * width


def instant_regret_bound(
    *, radius: FloatArray, width: FloatArray, misspecification: float
) -> FloatArray:
    """Return 2βq + 2b_e, which bounds what the optimistic arm loses.

    Paper: lemma:true_vs_surrogate

    >>> instant_regret_bound(radius=2.0, width=0.25, misspecification=0.5)
    2.0
    """
    return surrogate_regret_bound(radius=radius, width=width) + 2 * misspecification


def epoch_regret(means: FloatArray, arms: NDArray[np.int64]) -> float:
    """Return R_e of the arms that were played, from all means, shape (n, n_arms).

    Paper: eq:app-epoch-regret

    >>> epoch_regret(np.array([[1.0, 0.5], [0.0, 2.0]]), np.array([1, 1]))
    0.5
    """
    played = np.take_along_axis(means, np.asarray(arms)[:, None], axis=1)[:, 0]
    return float((means.max(axis=1) - played).sum())


def raw_epoch_regret_bound(
    radii: FloatArray, widths: FloatArray, *, misspecification: float
) -> float:
    """Return Σ 2βq + 2 b_e n, which bounds R_e.

    Paper: eq:epoch_regret_raw

    >>> raw_epoch_regret_bound(np.array([2.0, 2.0]), np.array([0.5, 0.25]), misspecification=0.5)
    5.0
    """
    bounds = instant_regret_bound(radius=radii, width=widths, misspecification=misspecification)
    return float(bounds.sum())


def radius_sums(
    radii: FloatArray, widths: FloatArray, *, misspecification: float
) -> tuple[float, float]:
    """Return Σβq in two parts: of the radius without bias, and of the bias b_e·sqrt(samples).

    Paper: eq:beta_split

    >>> radius_sums(np.array([2.0, 2.5]), np.array([0.5, 0.5]), misspecification=0.5)
    (2.0, 0.25)
    """
    growing = misspecification * np.sqrt(np.arange(len(radii)))
    return float((radii - growing) @ widths), float(growing @ widths)


def steady_sum_bound(
    problem: Problem, *, n_rounds: int, potential: float, ridge: float, confidence: float
) -> float:
    """Return (sqrt(λ) S + R sqrt(Γ_e + H_e)) sqrt(2nΓ_e), which bounds the first of these parts.

    Paper: eq:first_sum_bound
    """
    radius = math.sqrt(ridge) * problem.theta_bound
    radius += problem.noise_scale * math.sqrt(potential + confidence)
    return radius * potential_sums(n_rounds=n_rounds, potential=potential)[1]


def growing_sum_bound(*, n_rounds: int, potential: float, misspecification: float) -> float:
    """Return b_e n sqrt(Γ_e), which bounds the second of these parts.

    Paper: eq:second_sum_bound

    >>> growing_sum_bound(n_rounds=3, potential=4.0, misspecification=0.5)
    3.0
    """
    return misspecification * n_rounds * math.sqrt(potential)
