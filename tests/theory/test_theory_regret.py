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
    limit = theory.doubling_sum_bound(horizon)
    assert sum(map(math.sqrt, lengths)) <= limit
    assert sum(n / math.sqrt(start) for n, start in zip(lengths, starts, strict=True)) <= limit


@given(st.lists(st.floats(0, 10), min_size=1, max_size=200), st.integers(1, 30))
def test_burn_in_and_epochs_share_out_the_whole_regret(regrets, burn_in):
    parts = theory.epoch_regrets(regrets, burn_in=burn_in)
    assert len(parts) == 1 + theory.n_epochs(burn_in=burn_in, horizon=len(regrets))
    assert parts[0] == pytest.approx(sum(regrets[:burn_in]))
    assert sum(parts) == pytest.approx(sum(regrets))


# One epoch


def test_the_epoch_bound_by_hand():
    # n = 8, Γ = 1, λ = 4, S = 3, R = 2, H = 3, b = .5: 2√2·3·√32, 2√2·2·√(4·8), 2·.5·8·2
    bound = theory.epoch_regret_bound(
        n_rounds=8,
        potential=1.0,
        ridge=4.0,
        theta_bound=3.0,
        noise_scale=2.0,
        confidence=3.0,
        misspecification=0.5,
    )
    assert bound.startup == 0
    assert bound.ridge == pytest.approx(48)
    assert bound.noise == pytest.approx(32)
    assert bound.representation == pytest.approx(16)
    assert bound.total == pytest.approx(96)


@given(
    st.integers(1, 1000), st.floats(0.1, 50), st.floats(0.1, 9), st.floats(0, 9), st.floats(0, 1)
)
def test_the_epoch_bound_is_twice_the_two_sums_plus_twice_the_bias(
    n_rounds, potential, ridge, noise_scale, misspecification
):
    learning = {"ridge": ridge, "theta_bound": 2.0, "noise_scale": noise_scale, "confidence": 5.0}
    here = {"n_rounds": n_rounds, "potential": potential}
    steady = theory.steady_radius_sum_bound(**here, **learning)
    growing = theory.growing_radius_sum_bound(**here, misspecification=misspecification)
    bound = theory.epoch_regret_bound(**here, **learning, misspecification=misspecification)
    expected = 2 * (steady + growing) + 2 * misspecification * n_rounds
    assert bound.total == pytest.approx(expected)


def test_the_uniform_epoch_bound_puts_the_envelopes_in():
    confidence = theory.confidence_term(0.01)
    bound = theory.uniform_epoch_regret_bound(
        EASY,
        epoch_start=100,
        n_rounds=50,
        confidence=confidence,
        representation_failure_prob=0.1,
    )
    potential = 2 * math.log(1 + 10**6 / 2)
    cost = theory.representation_cost(EASY, representation_failure_prob=0.1)
    assert bound.ridge == pytest.approx(2 * math.sqrt(2) * math.sqrt(4 * potential * 50))
    assert bound.noise == pytest.approx(
        math.sqrt(2) * math.sqrt(potential * (potential + 2 * math.log(100)) * 50)
    )
    assert bound.representation == pytest.approx(2 * cost * (math.sqrt(potential) + 1) * 50 / 10)


@given(st.integers(0, 40), small_probs)
def test_every_epoch_after_the_burn_in_stays_inside_the_envelopes(epoch, failure_prob):
    long = replace(EASY, horizon=10**18)
    level = theory.representation_level(failure_prob)
    start = (theory.theorem_burn_in(long, failure_prob=level) + 1) * 2**epoch
    bias = theory.misspecification_at(long, epoch_start=start, failure_prob=level)
    error = theory.subspace_error_at(long, round=start - 1, failure_prob=level)
    feature = theory.feature_bound(
        arm_bound=long.arm_bound, observe_prob=long.observe_prob, subspace_error=error
    )
    cost = theory.representation_cost(long, representation_failure_prob=failure_prob)
    ridge = theory.theorem_ridge(long)
    potential = theory.potential_bound(
        n_rounds=start, rank=long.rank, feature_bound=feature, ridge=ridge
    )
    assert feature**2 <= ridge
    assert bias <= cost / math.sqrt(start)
    assert start > long.horizon or potential <= theory.potential_envelope(long)


def test_the_naive_regret_bound_loses_the_root_of_the_rank():
    # Flat spectra and T/m fixed: G_T is m log(1 + T/m), and both share every other factor.
    losses = []
    for rank in (16, 64, 256):
        flat = replace(EASY, rank=rank, dim=512, last_eigenvalue=0.5 / rank, horizon=1000 * rank)
        naive = theory.naive_regret_bound(flat, failure_prob=0.1)
        contracted = theory.main_regret_bound(flat, failure_prob=0.1)
        losses.append(naive.representation / contracted.representation)
        assert naive.total - naive.representation == pytest.approx(
            contracted.total - contracted.representation
        )
    assert losses[1] / losses[0] == pytest.approx(2, rel=0.05)
    assert losses[2] / losses[1] == pytest.approx(2, rel=0.03)


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
    confidence = theory.known_rank_confidence_term(n_epochs=count, failure_prob=0.1)
    starts = [(burn_in + 1) * 2**epoch for epoch in range(count)]
    epochs = [
        theory.uniform_epoch_regret_bound(
            EASY,
            epoch_start=start,
            n_rounds=min(start, EASY.horizon - start + 1),
            confidence=confidence,
            representation_failure_prob=0.05,
        ).total
        for start in starts
    ]
    assert sum(epochs) <= bound.total - bound.startup


# Unknown rank


@given(st.floats(0.05, 1.0), st.integers(1, 50), st.floats(0.05, 0.5), small_probs)
def test_the_rank_is_separated_from_its_identification_time_on(
    observe_prob, n_arms, last, failure_prob
):
    problem = replace(EASY, observe_prob=observe_prob, n_arms=n_arms, last_eigenvalue=last)
    length = theory.rank_identification_length(problem, failure_prob=failure_prob)
    error = theory.covariance_error_at(problem, round=length, failure_prob=failure_prob)
    assert error <= last / 4
    assert theory.rank_is_separated(covariance_error=error, last_eigenvalue=last)


def test_the_identification_time_by_hand():
    # 512 · 2 / 200 · log(2·10·10⁶/.1) = 5.12 · 19.114
    assert theory.rank_identification_length(EASY, failure_prob=0.1) == 98


def test_waiting_for_stable_imputation_is_waiting_for_the_rank():
    waiting = theory.identification_length(
        EASY, rank_failure_prob=0.1, representation_failure_prob=0.1
    )
    assert waiting == theory.theorem_burn_in(EASY, failure_prob=0.025)


@given(burn_ins, st.integers(0, 10**7))
def test_the_first_ranked_epoch_starts_within_twice_the_identification_time(burn_in, later):
    waiting = burn_in + later
    start = theory.first_ranked_epoch_start(burn_in=burn_in, identification=waiting)
    assert waiting <= start - 1
    assert start <= 2 * (waiting + 1)


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
        n_rounds=10**6 - 1000,
        potential=theory.potential_envelope(EASY),
        ridge=4.0,
        theta_bound=1.0,
        noise_scale=0.5,
        confidence=2 * math.log(2 / 0.1),
        misspecification=4 * theory.subspace_error_at(EASY, round=1000, failure_prob=0.1 / 8),
    )
    assert bound.startup == 2000
    assert replace(bound, startup=0.0).total == pytest.approx(epoch.total)


@pytest.mark.parametrize("horizon", [1, 2, 3, 10, 3000])
@pytest.mark.parametrize("n_arms", [1, 10**3, 10**6, 10**9])
@pytest.mark.parametrize("earliest", [1, 3])
@pytest.mark.parametrize("noise_scale", [0.0, 20.0])
def test_no_other_split_has_a_smaller_bound(horizon, n_arms, earliest, noise_scale):
    if earliest > horizon:
        return
    problem = replace(EASY, horizon=horizon, n_arms=n_arms, noise_scale=noise_scale)
    totals = {
        split: theory.two_phase_regret_bound(problem, split=split, failure_prob=0.1).total
        for split in range(earliest, horizon + 1)
    }
    best = theory.best_split(problem, failure_prob=0.1, earliest=earliest)
    assert totals[best] == min(totals.values())


def test_learning_the_subspace_once_costs_two_thirds_of_a_power():
    splits, totals = [], []
    for horizon in (10**12, 10**15):
        problem = replace(EASY, horizon=horizon)
        splits.append(theory.best_split(problem, failure_prob=0.1))
        totals.append(
            theory.two_phase_regret_bound(problem, split=splits[-1], failure_prob=0.1).total
        )
    # Three decades of T: two of the split and of the regret, and logarithms.
    assert 100 < splits[1] / splits[0] < 150
    assert 100 < totals[1] / totals[0] < 150


@given(horizons)
def test_the_balanced_split_is_the_least_whole_number_above_two_thirds(horizon):
    split = theory.balanced_split(horizon)
    assert (split - 1) ** 3 < horizon**2 <= split**3
