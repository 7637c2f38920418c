"""Which explicit bounds say nothing at practical sizes: d = 30, m = 3, K = 8, T from 400 to 10⁶.

A regret bound is vacuous above the trivial 2·S·B_X·T. Two problems of that size: FLAT has κ = 1,
the best there is, and LOADING is the main study's world with bounded latents. δ = .05, S = 1,
R = .05, and μ = 1, also the best there is. Nothing here is random.
"""

import math
from typing import NamedTuple

import numpy as np
import pytest

from halfseen import theory
from halfseen.paper.studies import study_named
from halfseen.theory import Problem

FAILURE_PROB = 0.05
OBSERVE_PROBS = study_named("synthetic").observe_probs
LEVEL = theory.representation_level(FAILURE_PROB / 2)
HORIZONS = (400, 10**4, 10**6)
FLAT = Problem(
    dim=30,
    rank=3,
    n_arms=8,
    horizon=400,
    observe_prob=0.8,
    arm_bound=math.sqrt(3),
    top_eigenvalue=1.0,
    last_eigenvalue=1.0,
    incoherence=1.0,
    theta_bound=1.0,
    noise_scale=0.05,
)
# Loadings .75, 1 and 1.25 of uniform latents.
LOADING = FLAT.replace(arm_bound=3.75, top_eigenvalue=1.5625, last_eigenvalue=0.5625)


class Row(NamedTuple):
    """What docs/theory-in-practice.md tabulates: t_b, t_rank, ε after 400 and 10⁶ rounds, and T."""

    burn_in: float
    identification: float
    after_400: float
    after_million: float
    informative_from: float


FLAT_ROWS = {
    0.8: Row(2.05e6, 4.34e3, 1.79, 0.0440, 1.39e8),
    0.6: Row(6.47e6, 7.72e3, 2.38, 0.0587, 4.83e8),
    0.4: Row(3.27e7, 1.74e4, 3.58, 0.0881, 2.79e9),
    0.3: Row(1.03e8, 3.09e4, 4.77, 0.117, 9.56e9),
    0.2: Row(5.24e8, 6.94e4, 7.15, 0.176, 5.47e10),
}
LOADING_ROWS = {
    0.8: Row(4.74e7, 1.00e5, 8.60, 0.212, 4.14e9),
    0.6: Row(1.50e8, 1.79e5, 11.5, 0.283, 1.42e10),
    0.4: Row(7.58e8, 4.02e5, 17.2, 0.424, 8.13e10),
    0.3: Row(2.40e9, 7.14e5, 22.9, 0.565, 2.76e11),
    0.2: Row(1.21e10, 1.61e6, 34.4, 0.848, 1.55e12),
}
each_row = pytest.mark.parametrize(
    ("here", "row"),
    [
        (problem.replace(observe_prob=p), row)
        for problem, rows in ((FLAT, FLAT_ROWS), (LOADING, LOADING_ROWS))
        for p, row in rows.items()
    ],
)
each_observe_prob = pytest.mark.parametrize("observe_prob", OBSERVE_PROBS)
each_problem = pytest.mark.parametrize("problem", [FLAT, LOADING], ids=["flat", "loading"])
each_horizon = pytest.mark.parametrize("horizon", HORIZONS)


def adaptive_bound(problem):
    """Return the rank-adaptive bound with δ shared as the policy shares it."""
    return theory.rank_adaptive_regret_bound(
        problem,
        rank_failure_prob=FAILURE_PROB / 4,
        representation_failure_prob=FAILURE_PROB / 4,
        oful_failure_prob=FAILURE_PROB / 2,
    )


def best_two_phase_bound(problem, earliest=1):
    """Return the smallest two-phase bound among many splits from the earliest to the last round."""
    splits = np.unique(np.geomspace(earliest, problem.horizon, 2000).round().astype(np.int64))
    return min(
        theory.two_phase_regret_bound(problem, split=int(each), failure_prob=FAILURE_PROB).total
        for each in splits
    )


# Premises


@each_observe_prob
def test_no_p_meets_the_condition_on_masks_before_dimension_1561(observe_prob):
    # C_μ (m/d) log(mTK/δ) with μ = 1: 41.6 at d = 30, and at most p from d = 1249/p on.
    sizes = {"rank": 3, "n_arms": 8, "horizon": 400, "incoherence": 1.0, "failure_prob": LEVEL}
    needed = {0.8: 1561, 0.6: 2081, 0.4: 3121, 0.3: 4161, 0.2: 6241}[observe_prob]
    assert theory.observe_prob_condition(dim=30, **sizes) == pytest.approx(41.6, abs=0.05)
    assert theory.observe_prob_condition(dim=needed, **sizes) <= observe_prob
    assert theory.observe_prob_condition(dim=needed - 1, **sizes) > observe_prob


@each_row
def test_the_burn_in_of_the_theory_grows_like_the_fourth_power_of_missingness(here, row):
    burn_in = theory.burn_in_length(here, failure_prob=LEVEL)
    assert burn_in == pytest.approx(row.burn_in, rel=0.01)


@each_row
def test_knowing_the_rank_takes_ten_times_the_main_study_at_least(here, row):
    length = theory.rank_identification_length(here, failure_prob=FAILURE_PROB / 4)
    assert length == pytest.approx(row.identification, rel=0.01)
    assert length > 10 * here.horizon


# Lemmas at the end of a run


@each_row
def test_the_subspace_bound_is_vacuous_after_400_rounds_and_informative_after_a_million(here, row):
    for horizon, expected in ((400, row.after_400), (10**6, row.after_million)):
        longer = here.replace(horizon=horizon)
        error = theory.subspace_error_at(longer, round=horizon, failure_prob=LEVEL)
        assert error == pytest.approx(expected, rel=0.01)
    assert row.after_million < 1 < row.after_400


@each_observe_prob
@each_problem
def test_the_surrogate_bound_is_vacuous_after_400_rounds(problem, observe_prob):
    # Vacuous when b ≥ 2·S·B_X, the most that two means can differ. Here it is 4 to 200 times that.
    here = problem.replace(observe_prob=observe_prob)
    bias = theory.misspecification_at(here, epoch_start=400, failure_prob=LEVEL)
    assert 4 < bias / (2 * here.arm_bound) < 210


def test_a_million_rounds_make_the_surrogate_bound_useful_for_flat_spectra_only():
    shares = {}
    for name, problem in (("flat", FLAT), ("loading", LOADING)):
        for observe_prob in OBSERVE_PROBS:
            here = problem.replace(observe_prob=observe_prob, horizon=10**6)
            bias = theory.misspecification_at(here, epoch_start=10**6, failure_prob=LEVEL)
            shares[name, observe_prob] = bias / (2 * here.arm_bound)
    expected = [0.099, 0.157, 0.308, 0.509, 1.06, 0.477, 0.754, 1.48, 2.45, 5.09]
    assert list(shares.values()) == pytest.approx(expected, rel=0.01)


# Regret


@each_observe_prob
@each_problem
@each_horizon
def test_both_theorems_are_vacuous_up_to_a_million_rounds(problem, observe_prob, horizon):
    here = problem.replace(observe_prob=observe_prob, horizon=horizon)
    trivial = theory.trivial_regret_bound(here)
    known, adaptive = (
        theory.main_regret_bound(here, failure_prob=FAILURE_PROB),
        adaptive_bound(here),
    )
    assert 12 * trivial < known.total < adaptive.total
    # Each of two parts alone is vacuous, and both come from the representation.
    assert known.startup > trivial
    assert known.representation > trivial
    # What OFUL itself costs, known coordinates given, is not vacuous from 10⁴ rounds on.
    assert (known.ridge + known.noise < trivial) == (horizon > 400)


@each_row
def test_the_horizon_from_which_the_main_bound_says_anything(here, row):
    for factor, vacuous in ((0.97, True), (1.03, False)):
        long = here.replace(horizon=round(factor * row.informative_from))
        bound = theory.main_regret_bound(long, failure_prob=FAILURE_PROB)
        assert (bound.total >= theory.trivial_regret_bound(long)) == vacuous


@each_observe_prob
@each_problem
@each_horizon
def test_the_two_phase_bound_never_leaves_its_first_phase(problem, observe_prob, horizon):
    # The best split is the last round: no exploitation, hence exactly the trivial bound.
    here = problem.replace(observe_prob=observe_prob, horizon=horizon)
    assert best_two_phase_bound(here) == theory.trivial_regret_bound(here)


@pytest.mark.parametrize(
    ("horizon", "once_share", "often_share"),
    [(4 * 10**6, 0.977, 5.68), (10**10, 0.141, 0.136), (10**14, 0.00815, 0.00180)],
)
def test_learning_the_subspace_once_is_the_first_bound_to_say_anything(
    horizon, once_share, often_share
):
    # κ = 1, p = .8: as soon as t_b fits in, one estimate beats the trivial bound by a little; the
    # theorem takes 40 times as long, because its sums over epochs cost a factor of 4, and overtakes
    # at 10¹⁰ rounds.
    here = FLAT.replace(horizon=horizon)
    trivial = theory.trivial_regret_bound(here)
    burn_in = theory.burn_in_length(here, failure_prob=LEVEL)
    once = best_two_phase_bound(here, earliest=burn_in)
    often = theory.main_regret_bound(here, failure_prob=FAILURE_PROB)
    assert once / trivial == pytest.approx(once_share, rel=0.01)
    assert often.total / trivial == pytest.approx(often_share, rel=0.01)


@each_observe_prob
@each_problem
def test_the_lower_bound_does_not_apply_to_the_main_study(problem, observe_prob):
    # Its rewards betray what the masks hide: (S B_X / R)² is 1200 or 5625, and 1/2 is allowed.
    here = problem.replace(observe_prob=observe_prob)
    assert theory.leak_rate(here) > 1000 > theory.LEAK_RATE_LIMIT
    assert not theory.lower_bound_applies(here)
