"""Regret bounds: one epoch, all epochs, unknown rank, one estimate only."""

import itertools
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfseen import theory
from halfseen.theory import Problem

# Few dimensions, many arms, nothing hidden: here the bounds bite within 10⁶ rounds.
EASY = Problem(
    dim=10,
    rank=2,
    n_arms=200,
    horizon=10**6,
    observe_prob=1.0,
    arm_bound=1.0,
    top_eigenvalue=0.5,
    last_eigenvalue=0.5,
    incoherence=1.0,
    theta_bound=1.0,
    noise_scale=0.5,
)
horizons = st.integers(1, 10**9)
burn_ins = st.integers(1, 10**6)
small_probs = st.floats(1e-6, 0.5)


# The epochs


@given(burn_ins, horizons)
def test_the_number_of_epochs_counts_the_starts_within_the_horizon(burn_in, horizon):
    starts = itertools.takewhile(
        lambda start: start <= horizon, ((burn_in + 1) * 2**epoch for epoch in itertools.count())
    )
    count = theory.n_epochs(burn_in=burn_in, horizon=horizon)
    assert count == sum(1 for _ in starts)
    assert count <= theory.n_epochs_bound(horizon)


@given(st.integers(1, 50), st.integers(1, 2000))
def test_doubling_sums_stay_below_four_roots(burn_in, horizon):
    starts = [
        (burn_in + 1) * 2**epoch
        for epoch in range(theory.n_epochs(burn_in=burn_in, horizon=horizon))
    ]
    lengths = [min(2 * start - 1, horizon) - start + 1 for start in starts]
    limit = 4 * math.sqrt(horizon)
    assert sum(map(math.sqrt, lengths)) <= limit
    assert sum(n / math.sqrt(start) for n, start in zip(lengths, starts, strict=True)) <= limit


# One epoch


def test_the_epoch_bound_by_hand():
    # n = 8, Γ = 1, λ = 4, S = 3, R = 2, H = 3, b = .5: 2√2·3·√32, 2√2·2·√(4·8), 2·.5·8·2
    problem = EASY.replace(theta_bound=3.0, noise_scale=2.0)
    epoch = {"n_rounds": 8, "potential": 1.0, "ridge": 4.0}
    bound = theory.epoch_regret_bound(problem, **epoch, confidence=3.0, misspecification=0.5)
    assert bound.startup == 0
    assert bound.ridge == pytest.approx(48)
    assert bound.noise == pytest.approx(32)
    assert bound.representation == pytest.approx(16)
    assert bound.total == pytest.approx(96)


@given(st.integers(0, 40), small_probs)
def test_every_epoch_after_the_burn_in_stays_inside_the_envelopes(epoch, failure_prob):
    long = EASY.replace(horizon=10**18)
    level = theory.representation_level(failure_prob)
    start = (theory.burn_in_length(long, failure_prob=level) + 1) * 2**epoch
    bias = theory.misspecification_at(long, epoch_start=start, failure_prob=level)
    error = theory.subspace_error_at(long, round=start - 1, failure_prob=level)
    feature = long.arm_bound + theory.imputation_error(
        arm_bound=long.arm_bound, observe_prob=long.observe_prob, subspace_error=error
    )
    cost = theory.representation_cost(long, representation_failure_prob=failure_prob)
    ridge = theory.theorem_ridge(long)
    potential = long.rank * math.log1p(start * feature**2 / (long.rank * ridge))
    assert feature**2 <= ridge
    assert bias <= cost / math.sqrt(start)
    assert start > long.horizon or potential <= theory.potential_envelope(long)


# All epochs


def test_the_main_bound_by_hand():
    # δ = .1: δ_rep = .05, lemmas at .0125. κ²m = 1·.5/.25 = 2 and K = 200, p = 1.
    bound = theory.main_regret_bound(EASY, failure_prob=0.1)
    burn_in = math.ceil(147456 * 2 / 200 * math.log(2 * 10 * 10**6 / 0.0125))
    epochs = theory.n_epochs(burn_in=burn_in, horizon=10**6)
    potential = 2 * math.log(1 + 500_000)
    confidence = 2 * math.log(2 * epochs / 0.1)
    cost = 4 * math.sqrt(2) * 12 * math.sqrt(2 / 200 * math.log(8 * 10 * 10**6 / 0.05))
    assert epochs == 5
    assert bound.startup == 2 * burn_in
    assert bound.ridge == pytest.approx(8 * math.sqrt(2) * math.sqrt(4 * potential * 10**6))
    assert bound.noise == pytest.approx(
        8 * math.sqrt(2) * 0.5 * math.sqrt(potential * (potential + confidence) * 10**6)
    )
    assert bound.representation == pytest.approx(8 * cost * (math.sqrt(potential) + 1) * 1000)


def test_the_main_bound_covers_the_sum_of_its_epochs():
    bound = theory.main_regret_bound(EASY, failure_prob=0.1)
    burn_in = round(bound.startup / 2)
    count = theory.n_epochs(burn_in=burn_in, horizon=EASY.horizon)
    confidence = theory.confidence_term(0.1 / (2 * count))
    cost = theory.representation_cost(EASY, representation_failure_prob=0.05)
    epochs = [
        theory.uniform_epoch_regret_bound(
            EASY,
            n_rounds=min(start, EASY.horizon - start + 1),
            confidence=confidence,
            misspecification=cost / math.sqrt(start),
        ).total
        for start in ((burn_in + 1) * 2**epoch for epoch in range(count))
    ]
    assert sum(epochs) <= bound.total - bound.startup


# Unknown rank


@given(st.floats(0.05, 1.0), st.integers(1, 50), st.floats(0.05, 0.5), small_probs)
def test_the_rank_is_separated_from_its_identification_time_on(
    observe_prob, n_arms, last, failure_prob
):
    problem = EASY.replace(observe_prob=observe_prob, n_arms=n_arms, last_eigenvalue=last)
    length = theory.rank_identification_length(problem, failure_prob=failure_prob)
    error = theory.covariance_error_at(problem, round=length, failure_prob=failure_prob)
    assert error <= last / 4


def test_waiting_for_stable_imputation_is_waiting_for_the_rank():
    waiting = theory.identification_length(
        EASY, rank_failure_prob=0.1, representation_failure_prob=0.1
    )
    assert waiting == theory.burn_in_length(EASY, failure_prob=0.025)


def test_the_rank_adaptive_bound_by_hand():
    bound = theory.rank_adaptive_regret_bound(
        EASY, rank_failure_prob=0.1, representation_failure_prob=0.05, oful_failure_prob=0.05
    )
    known = theory.main_regret_bound(EASY, failure_prob=0.1)
    potential = theory.potential_envelope(EASY)
    confidence = 2 * math.log(21 / 0.05)  # ⌈log2 10⁶⌉ + 1 = 21
    assert bound.startup == pytest.approx(4 * (known.startup / 2 + 1))
    assert (bound.ridge, bound.representation) == (known.ridge, known.representation)
    assert bound.noise == pytest.approx(
        8 * math.sqrt(2) * 0.5 * math.sqrt(potential * (potential + confidence) * 10**6)
    )


# One estimate only


def test_the_two_phase_bound_is_one_epoch_after_the_split():
    bound = theory.two_phase_regret_bound(EASY, split=1000, failure_prob=0.1)
    epoch = theory.epoch_regret_bound(
        EASY,
        n_rounds=10**6 - 1000,
        potential=theory.potential_envelope(EASY),
        ridge=4.0,
        confidence=2 * math.log(2 / 0.1),
        misspecification=4 * theory.subspace_error_at(EASY, round=1000, failure_prob=0.1 / 8),
    )
    assert bound.startup == 2000
    assert replace(bound, startup=0.0).total == pytest.approx(epoch.total)


@given(st.integers(1, 10**5))
def test_the_balanced_split_is_the_least_whole_number_above_two_thirds(horizon):
    split = theory.power_split(horizon, 2 / 3)
    assert (split - 1) ** 3 < horizon**2 <= split**3
