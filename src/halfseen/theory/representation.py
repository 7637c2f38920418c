"""The constants of a problem, what masks do to one arm, and errors of what is estimated.

Functions of plain numbers are what a policy calls during a run; for the paper's tK they take
`n_arms`, the number of arms absorbed. Functions of a whole `Problem` evaluate the same bounds after
a number of rounds. There `failure_prob` is the δ of the lemma; the theorems use the lemmas at a
smaller δ: see `representation_level`.
"""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from halfseen import checks
from halfseen.errors import InvalidSettingError
from halfseen.params import Value, custom, integer, probability, real
from halfseen.values import FloatArray

_ROUNDING = 1e-9


def _positive_or_infinite(name: str, value: Any) -> float:
    return math.inf if value == math.inf else checks.real(name, value, 0, low_open=True)


class Problem(Value):
    """The constants of a bandit problem, which all bounds depend on.

    Parameters
    ----------
    dim, rank : int
        d and m: length of an arm, dimension of the subspace that the arms span.
    n_arms, horizon : int
        K arms per slate, T rounds.
    observe_prob : float
        p in (0, 1], the probability that an entry is seen.
    arm_bound : float
        B_X, the largest norm of an arm. Infinite for Gaussian arms: then every error bound is
        infinite, and functions that return a number of rounds raise an error.
    top_eigenvalue : float, optional
        λ̄, an upper bound on the largest eigenvalue of E[xx']; by default `arm_bound**2`, which is
        always valid.
    last_eigenvalue : float
        λ_m, the smallest nonzero eigenvalue of E[xx'].
    incoherence : float
        μ in [1, sqrt(d / m)]: 1 when the subspace is spread evenly over the coordinates.
    theta_bound, noise_scale : float
        S bounds the norm of the reward parameter; rewards are R-sub-Gaussian.

    Raises
    ------
    InvalidSettingError
        A value is out of range, or the spectrum is impossible: m·λ_m is at most the trace of
        E[xx'] and so at most B_X².

    Notes
    -----
    Paper: ass:bounded_actions
    Paper: ass:spectrum

    Examples
    --------
    >>> problem = Problem(
    ...     dim=4, rank=2, n_arms=5, horizon=100, observe_prob=0.5, arm_bound=2.0,
    ...     last_eigenvalue=1.0, incoherence=1.0, theta_bound=1.0, noise_scale=0.1,
    ... )
    >>> problem.top_eigenvalue
    4.0
    >>> round(problem.conditioning ** 2, 12)
    8.0
    """

    dim: int = integer(low=1)
    rank: int = integer(low=1)
    n_arms: int = integer(low=1)
    horizon: int = integer(low=1)
    observe_prob: float = probability()
    arm_bound: float = custom(check=_positive_or_infinite, kind="float")
    top_eigenvalue: float = custom(default=None, check=_positive_or_infinite, kind="float")
    last_eigenvalue: float = real(low=0.0, low_open=True)
    incoherence: float = real()
    theta_bound: float = real(low=0.0, low_open=True)
    noise_scale: float = real(low=0.0)

    def setup(self) -> None:
        """Raise InvalidSettingError unless rank, incoherence and spectrum fit the rest."""
        checks.integer("rank", self.rank, 1, self.dim)
        if self.top_eigenvalue is None:
            self.__dict__["top_eigenvalue"] = self.arm_bound**2
        widest = math.sqrt(self.dim / self.rank)
        checks.real("incoherence", self.incoherence, 1 - _ROUNDING, widest * (1 + _ROUNDING))
        ceiling = min(self.top_eigenvalue, self.arm_bound**2 / self.rank)
        if self.last_eigenvalue > ceiling * (1 + _ROUNDING):
            raise InvalidSettingError(
                "last_eigenvalue must be at most top_eigenvalue and arm_bound**2 / rank, "
                f"here {ceiling:g}, got {self.last_eigenvalue!r}"
            )

    @property
    def conditioning(self) -> float:
        """κ = B_X sqrt(λ̄) / (λ_m sqrt(m)): at least 1, and 1 for a flat spectrum with tight B_X."""
        spread = self.arm_bound * math.sqrt(self.top_eigenvalue)
        return spread / (self.last_eigenvalue * math.sqrt(self.rank))


C_SUB = 12.0
"""C_sub of the subspace bound; at least 8·sqrt(2), so that it also covers the aligned basis."""

C_BURN_IN = (32 * C_SUB) ** 2
"""C_b of the burn-in: solves ε_t ≤ p/32 for t."""

_MOST_ROUNDS = 1e100


def gram_floor_true(observe_prob: float) -> float:
    """Return 3p/4, a lower bound on the eigenvalues of U_Ω'U_Ω if p satisfies its condition.

    Paper: lemma:true_observed_gram_conditioning
    """
    return 0.75 * observe_prob


def gram_floor(observe_prob: float) -> float:
    """Return p/2, a lower bound on the eigenvalues of Û_Ω'Û_Ω if ‖P̂ − P‖ ≤ p/32.

    It also needs the floor 3p/4 of the true basis, from which it falls by the distance at most.

    Paper: lemma:min_eigenvalue_uu

    >>> gram_floor(0.5)
    0.25
    """
    return 0.5 * observe_prob


def incoherence_constant() -> float:
    """Return C_μ of the condition on p, about 29.2, which the paper does not specify.

    U_Ω'U_Ω is a sum of independent positive semidefinite terms, each at most L = μ²m/d, with mean
    pI, so by matrix Chernoff P(λ_min ≤ (1-ε)p) ≤ m exp(-p/(L C)) for 1/C = ε + (1-ε) log(1-ε). The
    floor 3p/4 is ε = 1/4, and over all TK masks this is at most δ if p ≥ C L log(mTK/δ).

    Paper: lemma:true_observed_gram_conditioning

    >>> round(incoherence_constant(), 1)
    29.2
    """
    lost = 0.25
    return 1 / (lost + (1 - lost) * math.log1p(-lost))


def observe_prob_condition(
    *, dim: int, rank: int, n_arms: int, horizon: int, incoherence: float, failure_prob: float
) -> float:
    """Return C_μ (μ²m/d) log(mTK/δ), the smallest p for which seen rows are well conditioned.

    If it is above 1, no p suffices: the dimension is too small for the rank.

    Paper: eq:p_condition_imputation

    >>> round(observe_prob_condition(
    ...     dim=10_000, rank=1, n_arms=1, horizon=1, incoherence=1.0, failure_prob=math.exp(-10),
    ... ), 4)
    0.0292
    """
    log_masks = math.log(rank * horizon * n_arms / failure_prob)
    return incoherence_constant() * incoherence**2 * rank / dim * log_masks


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


def corrected_second_moment(arm: FloatArray, observe_prob: float) -> FloatArray:
    """Return E[Y²] of the corrected sample Y of one arm x, whose mean is xx', shape (dim, dim).

    It is ‖x‖² xx'/p + (1/p² − 1/p) diag(x_j² (‖x‖² − x_j²)).

    Paper: lemma:masked_second_moment

    >>> corrected_second_moment(np.array([1.0, 2.0]), 0.5).tolist()
    [[18.0, 20.0], [20.0, 48.0]]
    """
    energy, squares = float(arm @ arm), arm**2
    hidden = 1 / observe_prob**2 - 1 / observe_prob
    return energy / observe_prob * np.outer(arm, arm) + hidden * np.diag(
        squares * (energy - squares)
    )


def covariance_error(
    *, n_arms: int, arm_bound: float, top_eigenvalue: float, observe_prob: float, log_term: float
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
    return C_SUB * spread / observe_prob * math.sqrt(log_term / n_arms)


def imputation_error(*, arm_bound: float, observe_prob: float, subspace_error: float) -> float:
    """Return (1 + 2/p) B_X ε_e, a bound on the distance of a filled arm from the arm.

    Paper: lemma: imputation_error

    >>> imputation_error(arm_bound=2.0, observe_prob=0.5, subspace_error=0.1)
    1.0
    """
    return (1 + 2 / observe_prob) * arm_bound * subspace_error


class SurrogateSteps(NamedTuple):
    """How far a surrogate mean can be off, in the steps of the proof.

    Attributes
    ----------
    outside : float
        B_X ε_e, the length of an arm outside of the estimated subspace.
    imputed : float
        (1 + 2/p) B_X ε_e, the distance of a filled arm from the arm.
    feature : float
        Their sum: the distance of the lifted feature Ûz from the arm.
    surrogate : float
        S times that: the error of the mean, b_e.
    """

    outside: float
    imputed: float
    feature: float
    surrogate: float


def surrogate_steps(
    *, theta_bound: float, arm_bound: float, observe_prob: float, subspace_error: float
) -> SurrogateSteps:
    """Return the bounds of which `misspecification` is made.

    Paper: eq:first-term
    Paper: eq:final-piece
    Paper: eq:feature-minus-projected
    Paper: eq:bias-decomp

    >>> surrogate_steps(theta_bound=3.0, arm_bound=1.0, observe_prob=0.5, subspace_error=0.5)
    SurrogateSteps(outside=0.5, imputed=2.5, feature=3.0, surrogate=9.0)
    """
    outside = arm_bound * subspace_error
    imputed = imputation_error(
        arm_bound=arm_bound, observe_prob=observe_prob, subspace_error=subspace_error
    )
    return SurrogateSteps(outside, imputed, outside + imputed, theta_bound * (outside + imputed))


def misspecification(
    *, theta_bound: float, arm_bound: float, observe_prob: float, subspace_error: float
) -> float:
    """Return b_e = S B_X (2 + 2/p) ε_e, a bound on the error of a surrogate mean.

    Paper: lemma:surrogate-model

    >>> misspecification(theta_bound=3.0, arm_bound=1.0, observe_prob=0.5, subspace_error=0.5)
    9.0
    """
    return theta_bound * arm_bound * (2 + 2 / observe_prob) * subspace_error


def burn_in_length(problem: Problem, *, failure_prob: float) -> int:
    """Return t_b, the number of rounds after which ε_t ≤ p/32: ⌈C_b κ²m/(p⁴K) log(2dT/δ)⌉.

    Paper: eq:t_b

    Raises
    ------
    InvalidSettingError
        The burn-in would have more than 1e100 rounds.
    """
    spread = problem.arm_bound / problem.last_eigenvalue
    scale = C_BURN_IN * (spread * spread) * problem.top_eigenvalue
    scale /= problem.observe_prob**4 * problem.n_arms
    if not scale <= _MOST_ROUNDS:
        raise InvalidSettingError(
            f"the theorem's burn-in has more than {_MOST_ROUNDS:g} rounds for arm_bound "
            f"{problem.arm_bound!r}, top_eigenvalue {problem.top_eigenvalue!r} and "
            f"last_eigenvalue {problem.last_eigenvalue!r}: set burn_in yourself"
        )
    return max(1, math.ceil(scale * _log_term(problem, failure_prob)))


def representation_level(representation_failure_prob: float) -> float:
    """Return δ_rep/4, the δ of the lemmas if the representation event may fail with δ_rep.

    The subspace lemma spends one quarter, the imputation lemma three.

    Paper: def:representation_event

    >>> representation_level(0.2)
    0.05
    """
    return representation_failure_prob / 4


def covariance_error_at(problem: Problem, *, round: int, failure_prob: float) -> float:
    """Return the bound on the covariance error after `round` slates (ρ_t for δ_rank)."""
    return covariance_error(**_seen(problem, round, failure_prob))


def covariance_event_holds(
    problem: Problem, errors: Iterable[float], *, failure_prob: float
) -> bool:
    """Return whether the covariance error stays below ρ_t in all rounds: the event of the ranks.

    `errors` are those after rounds 1, 2, …; the event has probability 1 − δ_rank.

    Paper: eq:cov_event_unknown_rank
    """
    return all(
        error <= covariance_error_at(problem, round=t, failure_prob=failure_prob)
        for t, error in enumerate(errors, start=1)
    )


def identified_ranks(problem: Problem, covariance_error: float) -> tuple[int, int]:
    """Return the least and the largest rank that the threshold 2ρ can choose on that event.

    No eigenvalue moves by more than ρ. So it chooses the true rank if ρ ≤ λ_m/4, rank 0 if ρ
    exceeds λ̄, and never more than the true rank.

    Paper: lemma:unknown_rank_identification
    """
    if covariance_error > problem.top_eigenvalue:
        return 0, 0
    separated = covariance_error <= problem.last_eigenvalue / 4
    return problem.rank if separated else 0, problem.rank


def subspace_error_at(problem: Problem, *, round: int, failure_prob: float) -> float:
    """Return ε_t, the bound on the subspace error after `round` slates."""
    known = _seen(problem, round, failure_prob)
    return subspace_error(**known, last_eigenvalue=problem.last_eigenvalue)


def misspecification_at(problem: Problem, *, epoch_start: int, failure_prob: float) -> float:
    """Return b_e of the epoch that starts at τ_e, after τ_e - 1 slates."""
    return misspecification(
        theta_bound=problem.theta_bound,
        arm_bound=problem.arm_bound,
        observe_prob=problem.observe_prob,
        subspace_error=subspace_error_at(problem, round=epoch_start - 1, failure_prob=failure_prob),
    )


def _seen(problem: Problem, round: int, failure_prob: float) -> dict[str, Any]:
    return {
        "n_arms": round * problem.n_arms,
        "arm_bound": problem.arm_bound,
        "top_eigenvalue": problem.top_eigenvalue,
        "observe_prob": problem.observe_prob,
        "log_term": _log_term(problem, failure_prob),
    }


def _log_term(problem: Problem, failure_prob: float) -> float:
    return log_term(dim=problem.dim, failure_prob=failure_prob, horizon=problem.horizon, round=1)
