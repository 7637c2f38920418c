"""The effect of Bernoulli masks on one arm and on the rows of a basis."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def corrected_sample(masked_arm: ArrayLike, observe_prob: float) -> Array:
    """Return Y, one arm's unbiased contribution to the covariance.

    ẋẋ'/p² off the diagonal and ẋ_j²/p on it: an off-diagonal product is seen with probability
    p², a square with probability p, so E[Y | x] = xx'.

    Paper: lemma:unbiased_covariance_missing

    Parameters
    ----------
    masked_arm : array, (dim,)
        The arm with zeros where it is hidden.
    observe_prob : float
        p.

    Returns
    -------
    array, (dim, dim)

    Examples
    --------
    >>> corrected_sample([1.0, 2.0, 0.0], 0.5)
    array([[2., 8., 0.],
           [8., 8., 0.],
           [0., 0., 0.]])
    """
    arm = np.asarray(masked_arm, dtype=np.float64)
    sample = np.outer(arm, arm) / observe_prob**2
    np.fill_diagonal(sample, arm**2 / observe_prob)
    return sample


def corrected_sample_second_moment(arm: ArrayLike, observe_prob: float) -> Array:
    """Return E[Y² | x] for the corrected sample Y of a fixed arm x.

    ‖x‖² xx'/p + (1/p² - 1/p) diag(x_j² (‖x‖² - x_j²)), exactly.

    Paper: lemma:masked_second_moment

    Parameters
    ----------
    arm : array, (dim,)
        The whole arm, without hidden entries.
    observe_prob : float
        p.

    Returns
    -------
    array, (dim, dim)

    Examples
    --------
    >>> corrected_sample_second_moment([1.0, 1.0], 0.5)
    array([[6., 4.],
           [4., 6.]])
    """
    full = np.asarray(arm, dtype=np.float64)
    energy = float(full @ full)
    moment = energy / observe_prob * np.outer(full, full)
    spread = (1 / observe_prob**2 - 1 / observe_prob) * full**2 * (energy - full**2)
    moment[np.diag_indices_from(moment)] += spread
    return np.asarray(moment, dtype=np.float64)


def spectral_norm_bound(*, arm_bound: float, observe_prob: float) -> float:
    """Return L_Q = 3 B_X²/p², the largest spectral norm of Y - E[xx'].

    Paper: lemma:covariance_estimation_error

    >>> spectral_norm_bound(arm_bound=1.0, observe_prob=0.5)
    12.0
    """
    return 3 * arm_bound**2 / observe_prob**2


def variance_proxy(*, arm_bound: float, top_eigenvalue: float, observe_prob: float) -> float:
    """Return v = 2 B_X² λ̄/p², an upper bound on the spectral norm of the variance of Y.

    Paper: lemma:covariance_estimation_error

    >>> variance_proxy(arm_bound=1.0, top_eigenvalue=0.5, observe_prob=0.5)
    4.0
    """
    return 2 * arm_bound**2 * top_eigenvalue / observe_prob**2


def gram_floor_true(observe_prob: float) -> float:
    """Return 3p/4, a lower bound on the eigenvalues of U_Ω'U_Ω if p satisfies its condition.

    Paper: lemma:true_observed_gram_conditioning
    """
    return 0.75 * observe_prob


def gram_floor_estimated(observe_prob: float) -> float:
    """Return p/2, the same lower bound for an estimated basis with ε ≤ p/32.

    Restricting two projectors to the seen coordinates moves no eigenvalue by more than ε, and
    3p/4 - p/32 is above p/2.

    Paper: lemma:min_eigenvalue_uu
    """
    return 0.5 * observe_prob


def incoherence_constant() -> float:
    """Return C_μ of the condition on p, about 29.2.

    U_Ω'U_Ω is a sum of independent positive semidefinite terms, each at most L = μ²m/d, with mean
    pI. The matrix Chernoff bound for its smallest eigenvalue is, for 0 < ε < 1,

        P(λ_min ≤ (1-ε)p) ≤ m (exp(-ε) / (1-ε)^(1-ε))^(p/L) = m exp(-p/(L C)),

    where 1/C = ε + (1-ε) log(1-ε). The floor 3p/4 is ε = 1/4. Over all TK masks this is at most δ
    if p ≥ C L log(mTK/δ), so C is the constant that the paper does not specify.

    Paper: lemma:true_observed_gram_conditioning

    >>> round(incoherence_constant(), 1)
    29.2
    """
    lost = 0.25
    return 1 / (lost + (1 - lost) * math.log1p(-lost))


def observe_prob_condition(
    *,
    dim: int,
    rank: int,
    n_arms: int,
    horizon: int,
    incoherence: float,
    failure_prob: float,
) -> float:
    """Return the smallest p for which the lemma makes the seen rows well conditioned.

    C_μ (μ²m/d) log(mTK/δ). If it is above 1, no p suffices: the dimension is too small for the
    rank.

    Paper: eq:p_condition_imputation

    >>> round(observe_prob_condition(
    ...     dim=10_000, rank=1, n_arms=1, horizon=1, incoherence=1.0, failure_prob=math.exp(-10),
    ... ), 4)
    0.0292
    """
    n_masks = horizon * n_arms
    log_masks = math.log(rank * n_masks / failure_prob)
    return incoherence_constant() * incoherence**2 * rank / dim * log_masks
