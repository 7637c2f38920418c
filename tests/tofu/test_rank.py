"""How many directions an epoch keeps: fixed, by the paper's threshold, by the published ones."""

import json
import math

import numpy as np
import pytest

from halfseen import TofuPov
from halfseen.tofu.rank import (
    ConstantThreshold,
    FixedRank,
    Known,
    PaperThreshold,
    PracticalThreshold,
)


def known(**changes):
    settings = {
        "n_arms": 240,
        "round": 30,
        "horizon": 400,
        "observe_prob": 0.8,
        "failure_prob": 0.05,
        "epoch_failure_prob": 0.05 / 22,
        "arm_bound": 1.0,
        "top_eigenvalue": 1.0,
    }
    return Known(**(settings | changes))


SPECTRUM = np.diag([0.1, 3.0, -9.0, 1.0, 2.0])


# -- fixed -----------------------------------------------------------------------------------------


def test_a_fixed_rank_keeps_the_top_directions_whatever_is_known():
    basis, eigenvalues, threshold = FixedRank(rank=2).select(SPECTRUM, known(n_arms=0))
    assert basis.T.tolist() == [[0, 1, 0, 0, 0], [0, 0, 0, 0, 1]]
    assert eigenvalues.tolist() == [3.0, 2.0]
    assert threshold is None


# -- the paper's 2ρ --------------------------------------------------------------------------------


def test_the_papers_threshold_is_twice_rho_by_hand():
    # log(2dT/δ) = 4; ρ = 2·1·sqrt(4/16)/.5 + 2·4/(16·.25) = 2 + 2.
    delta = 4 * 40 * math.exp(-4.0)  # a quarter of it is spent
    small = known(n_arms=16, horizon=10, observe_prob=0.5, failure_prob=delta)
    assert PaperThreshold().threshold(2, small) == pytest.approx(8.0)
    # With B_X = 3 and λ̄ = 4: ρ = 2·3·sqrt(4·4/16)/.5 + 2·9·4/(16·.25) = 12 + 18.
    larger = small._replace(arm_bound=3.0, top_eigenvalue=4.0)
    assert PaperThreshold().threshold(2, larger) == pytest.approx(60.0)


@pytest.mark.parametrize(
    ("observe_prob", "t", "printed"),
    [(0.8, 400, 9.3), (0.2, 400, 45), (0.8, 100_000, 0.54), (0.2, 100_000, 2.2)],
)
def test_the_papers_threshold_at_the_size_of_the_main_study_is_the_published_one(
    observe_prob, t, printed
):
    # Protocols 9.7: B_X = 5.18, λ̄ = B_X², the logarithm of T = 400 and δ = .05; printed to two
    # digits from a B_X that is itself rounded.
    bounds = {"arm_bound": 5.18, "top_eigenvalue": 5.18**2, "failure_prob": 4 * 0.05}
    threshold = PaperThreshold().threshold(
        30, known(n_arms=8 * t, observe_prob=observe_prob, **bounds)
    )
    assert threshold == pytest.approx(printed, rel=0.012)


# -- the published practical thresholds ------------------------------------------------------------

MAIN_STUDY = {
    0.8: (0.107, 0.075, 0.053, 0.037),
    0.6: (0.143, 0.100, 0.071, 0.050),
    0.4: (0.214, 0.150, 0.106, 0.075),
    0.3: (0.286, 0.200, 0.141, 0.100),
    0.2: (0.428, 0.300, 0.212, 0.149),
}


@pytest.mark.parametrize("observe_prob", MAIN_STUDY)
@pytest.mark.parametrize("epoch", range(4))
def test_thresholds_of_the_main_study_are_the_published_ones(observe_prob, epoch):
    start = (31, 62, 124, 248)[epoch]
    at_start = known(
        n_arms=8 * (start - 1),
        round=start - 1,
        observe_prob=observe_prob,
        epoch_failure_prob=0.05 / 22,
    )
    threshold = PracticalThreshold().threshold(30, at_start)
    assert round(threshold, 3) == MAIN_STUDY[observe_prob][epoch]


@pytest.mark.parametrize(
    ("constant", "dim", "horizon", "n_arms", "observe_prob"),
    [(0.12, 80, 600, 8 * 40, 0.3), (0.08, 1000, 5000, 10 * 500, 0.2)],
)
@pytest.mark.parametrize("multiplier", [1.0, 0.25, 0.03])
def test_thresholds_of_the_real_data_studies_have_their_own_delta_and_no_scale(
    constant, dim, horizon, n_arms, observe_prob, multiplier
):
    rule = PracticalThreshold(
        constant=constant, scale=1.0, multiplier=multiplier, failure_prob=0.05
    )
    at_start = known(n_arms=n_arms, horizon=horizon, observe_prob=observe_prob)
    root = math.sqrt(math.log(2 * dim * horizon / 0.05) / n_arms)
    expected = multiplier * constant / observe_prob * root
    assert rule.threshold(dim, at_start) == pytest.approx(expected, rel=1e-14)
    moved = at_start._replace(epoch_failure_prob=1e-9)
    assert rule.threshold(dim, moved) == rule.threshold(dim, at_start)


@pytest.mark.parametrize("rule", [PaperThreshold(), PracticalThreshold()])
def test_thresholds_are_infinite_before_anything_was_absorbed(rule):
    assert rule.threshold(30, known(n_arms=0)) == math.inf


@pytest.mark.parametrize("rule", [PaperThreshold(), PracticalThreshold()])
def test_without_a_horizon_the_logarithm_counts_rounds_so_far(rule):
    # t(t + 1) = 30·31 takes the place of T.
    unknown = rule.threshold(30, known(horizon=None, round=30))
    assert unknown == rule.threshold(30, known(horizon=930, round=7))
    assert rule.threshold(30, known(horizon=None, round=31)) > unknown
    assert rule.threshold(30, known(round=31)) == rule.threshold(30, known(round=30))


# -- selection -------------------------------------------------------------------------------------


def test_directions_that_reach_the_threshold_are_kept():
    basis, eigenvalues, threshold = ConstantThreshold(value=1.0).select(SPECTRUM, known())
    assert basis.T.tolist() == [[0, 1, 0, 0, 0], [0, 0, 0, 0, 1], [0, 0, 0, 1, 0]]
    assert eigenvalues.tolist() == pytest.approx([3.0, 2.0, 1.0, 0.1, -9.0])
    assert threshold == 1.0


@pytest.mark.parametrize(
    ("value", "settings", "rank"),
    [(1.5, {}, 2), (1.5, {"floor": 3}, 3), (1.5, {"cap": 1}, 1), (10.0, {"floor": 0}, 0)],
)
def test_the_rank_lies_between_floor_and_cap(value, settings, rank):
    rule = ConstantThreshold(value=value, **settings)
    assert rule.select(SPECTRUM, known()).basis.shape == (5, rank)


def test_the_published_rules_have_a_floor_of_one_and_that_of_the_paper_has_none():
    assert ConstantThreshold(value=10.0).select(SPECTRUM, known()).basis.shape == (5, 1)
    assert PracticalThreshold().select(SPECTRUM, known(n_arms=0)).basis.shape == (5, 1)
    assert PaperThreshold().select(SPECTRUM, known(n_arms=0)).basis.shape == (5, 0)


def test_a_rule_comes_back_from_json():
    for rule in (
        FixedRank(rank=3),
        PaperThreshold(floor=1, cap=8),
        PracticalThreshold(constant=0.08, scale=1.0, multiplier=0.25, failure_prob=0.05, floor=0),
        ConstantThreshold(value=0.16, floor=2, cap=10),
    ):
        plain = json.loads(json.dumps(rule.to_dict()))
        assert TofuPov(dim=9, rank=plain, observe_prob=0.5).rank == rule
