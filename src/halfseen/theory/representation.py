"""Error bounds for the covariance, the subspace and the hidden entries, from masked arms.

Plain functions of numbers: a policy calls them during a run, `rounds` calls them with a whole
`Problem`. For the paper's tK we use `n_arms`, the number of arms absorbed, which is the same for
slates of equal size.
"""

import math

from halfseen import checks
from halfseen.errors import InvalidSettingError

C_SUB = 12.0
"""C_sub of the subspace bound; at least 8·sqrt(2), so that it also covers the aligned basis."""

C_BURN_IN = (32 * C_SUB) ** 2
"""C_b of the burn-in: solves ε_t ≤ p/32 for t."""

_MOST_ROUNDS = 1e100


def log_term(*, dim: int, failure_prob: float, horizon: int | None, round: int) -> float:
    """Return the logarithm in a bound that holds over all rounds.

    With a horizon, log(2dT/δ): each of T rounds may fail with probability δ/T. Without one,
    log(2d·t(t+1)/δ): round t may fail with probability δ/(t(t+1)), and these sum to δ.
    The second form is not in the paper, in which T is always known.

    >>> round(log_term(dim=5, failure_prob=0.1, horizon=10, round=3), 4) == round(math.log(1000), 4)
    True
    """
    checks.real("failure_prob", failure_prob, 0.0, 1.0, low_open=True, high_open=True)
    n_events = round * (round + 1) if horizon is None else horizon
    return math.log(2 * dim * n_events / failure_prob)


def covariance_error(
    *,
    n_arms: int,
    arm_bound: float,
    top_eigenvalue: float,
    observe_prob: float,
    log_term: float,
) -> float:
    """Return a high-probability bound on the spectral error of the corrected covariance.

    With n arms and ℓ the log term, 2 B_X sqrt(λ̄ℓ/n)/p + 2 B_X² ℓ/(n p²). It is ρ_t, the radius
    of the rank rule, if the log term is taken at δ_rank; infinite before the first arm.

    Paper: eq:corrected_cov_rate
    Paper: eq:rho_unknown_rank
    Paper: lemma:covariance_estimation_error

    >>> covariance_error(n_arms=4, arm_bound=1, top_eigenvalue=1, observe_prob=0.5, log_term=1)
    4.0
    """
    if n_arms == 0:
        return math.inf
    slow = 2 * arm_bound * math.sqrt(top_eigenvalue * log_term / n_arms) / observe_prob
    fast = 2 * arm_bound**2 * log_term / (n_arms * observe_prob**2)
    return slow + fast


def subspace_error(
    *,
    n_arms: int,
    arm_bound: float,
    top_eigenvalue: float,
    last_eigenvalue: float,
    observe_prob: float,
    log_term: float,
    constant: float = C_SUB,
) -> float:
    """Return ε_t, a high-probability bound on the distance of estimated and true subspace.

    C_sub (κ/p) sqrt(m ℓ/n); since κ sqrt(m) = B_X sqrt(λ̄)/λ_m the rank itself is not needed.
    The same number bounds the distance of the best-aligned bases. Above 1 the bound is vacuous.

    Paper: eq:epsilon
    Paper: lemma:sub_space_lemma
    Paper: cor:aligned_basis

    >>> subspace_error(
    ...     n_arms=144, arm_bound=1, top_eigenvalue=1, last_eigenvalue=0.5, observe_prob=0.5,
    ...     log_term=1,
    ... )
    4.0
    """
    if n_arms == 0:
        return math.inf
    spread = arm_bound * math.sqrt(top_eigenvalue) / last_eigenvalue
    return constant * spread / observe_prob * math.sqrt(log_term / n_arms)


def imputation_error(*, arm_bound: float, observe_prob: float, subspace_error: float) -> float:
    """Return (1 + 2/p) B_X ε_e, a bound on the distance of a filled arm from the arm.

    The basis is off by ε, which moves the hidden entries by B_X ε; the coefficients were solved
    from seen rows whose Gram matrix is at least p/2, which adds (2/p) B_X ε.

    Paper: lemma: imputation_error

    >>> imputation_error(arm_bound=2.0, observe_prob=0.5, subspace_error=0.1)
    1.0
    """
    return (1 + 2 / observe_prob) * arm_bound * subspace_error


def feature_bound(*, arm_bound: float, observe_prob: float, subspace_error: float) -> float:
    """Return B_e = B_X (1 + (1 + 2/p) ε_e), the largest norm of a reduced feature.

    Paper: lem:epoch_potential

    >>> feature_bound(arm_bound=2.0, observe_prob=0.5, subspace_error=0.1)
    3.0
    """
    error = imputation_error(
        arm_bound=arm_bound, observe_prob=observe_prob, subspace_error=subspace_error
    )
    return arm_bound + error


def misspecification(
    *, theta_bound: float, arm_bound: float, observe_prob: float, subspace_error: float
) -> float:
    """Return b_e = S B_X (2 + 2/p) ε_e, a bound on the error of a surrogate mean.

    One B_X ε is due to projecting on the wrong subspace, the rest is the imputation error.

    Paper: lemma:surrogate-model

    >>> misspecification(theta_bound=3.0, arm_bound=1.0, observe_prob=0.5, subspace_error=0.5)
    9.0
    """
    return theta_bound * arm_bound * (2 + 2 / observe_prob) * subspace_error


def burn_in_length(
    *,
    dim: int,
    n_arms: int,
    arm_bound: float,
    top_eigenvalue: float,
    last_eigenvalue: float,
    observe_prob: float,
    failure_prob: float,
    horizon: int | None,
    constant: float = C_BURN_IN,
) -> int:
    """Return t_b, the number of rounds after which ε_t ≤ p/32.

    ⌈C_b κ²m/(p⁴K) log(2dT/δ)⌉ with K = `n_arms` arms per slate. Without a horizon, the smallest
    t with C_b κ²m/(p⁴K) log(2d·t(t+1)/δ) ≤ t; every later t satisfies it too, because t outgrows
    the logarithm from its first crossing on.

    Paper: eq:t_b

    Raises
    ------
    InvalidSettingError
        The burn-in would have more than 1e100 rounds.

    Examples
    --------
    >>> burn_in_length(
    ...     dim=5, n_arms=2, arm_bound=1, top_eigenvalue=1, last_eigenvalue=1, observe_prob=1,
    ...     failure_prob=0.1, horizon=10, constant=1.0,
    ... )
    4
    """
    spread = arm_bound / last_eigenvalue
    scale = constant * (spread * spread) * top_eigenvalue
    scale /= observe_prob**4 * n_arms
    if not scale <= _MOST_ROUNDS:
        raise InvalidSettingError(
            f"the theorem's burn-in has more than {_MOST_ROUNDS:g} rounds for arm_bound "
            f"{arm_bound!r}, top_eigenvalue {top_eigenvalue!r} and last_eigenvalue "
            f"{last_eigenvalue!r}: set burn_in yourself"
        )

    def needed(round: int) -> float:
        term = log_term(dim=dim, failure_prob=failure_prob, horizon=horizon, round=round)
        return scale * term

    if horizon is not None:
        return max(1, math.ceil(needed(1)))
    enough = 1
    while needed(enough) > enough:
        enough *= 2
    too_few = enough // 2
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if needed(middle) > middle:
            too_few = middle
        else:
            enough = middle
    return enough
