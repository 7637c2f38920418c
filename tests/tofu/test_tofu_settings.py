"""TOFU-POV: what can be set, what the named constructors set, and what is refused."""

import math
import re
from fractions import Fraction

import numpy as np
import pytest

from halfseen import (
    AmbientOful,
    InvalidSettingError,
    PaperThreshold,
    PracticalThreshold,
    Replay,
    TofuPov,
    Uniform,
)
from policy_runs import copy_of, few_arms, looks, walk

BASICS = {"dim": 6, "rank": 2, "observe_prob": 0.7, "burn_in": 5}
THEORY = {"arm_bound": 2.0, "last_eigenvalue": 0.5, "n_arms": 4, "horizon": 100}


def only(policy, *names):
    settings = policy.settings()
    return {name: settings[name] for name in names}


# Defaults and named constructors


def test_by_default_it_is_the_full_history_of_the_paper():
    study = BASICS | {"horizon": 400, "noise_scale": 0.05}
    assert TofuPov(**study).settings() == TofuPov.full_history(**study).settings()


@pytest.mark.parametrize(
    ("make", "replay"),
    [(TofuPov.rank_adaptive, "burn-in-once"), (TofuPov.rank_adaptive_full_history, "full")],
)
def test_rank_adaptive_forms_have_the_published_threshold(make, replay):
    policy = make(dim=6, observe_prob=0.7)
    rule = PracticalThreshold(constant=0.22, scale=1.5, floor=1, cap=None)
    assert only(policy, "rank", "replay") == {"rank": rule.to_dict(), "replay": replay}


def test_algorithm_1_has_the_settings_of_the_theorem():
    policy = TofuPov.algorithm_1(dim=6, rank=2, observe_prob=0.7, **THEORY)
    names = ("ridge", "bonus_scale", "impute_ridge", "replay", "growth", "radius_scale")
    assert only(policy, *names) == {
        "ridge": 16.0,
        "bonus_scale": 1.0,
        "impute_ridge": 0.0,
        "replay": "none",
        "growth": 2.0,
        "radius_scale": 1.0,
    }


@pytest.mark.parametrize(
    ("make", "rank", "burn_in", "divisor"),
    [
        (TofuPov.algorithm_1, 2, 30, 8),  # epochs start at 31, 62, 124 and 248
        (TofuPov.algorithm_1, 2, 400, 2),  # no epoch starts
        (TofuPov.rank_adaptive_algorithm_1, PaperThreshold(), 30, 20),  # ⌈log₂ 400⌉ + 1 = 10
        (TofuPov.practical, 2, 30, 22),  # ⌈log₂ 400⌉ + 2 = 11, as in the published runs
        (TofuPov.full_history, 2, 30, 22),
    ],
)
def test_algorithm_1_divides_delta_as_its_bound_does_and_published_forms_as_published(
    make, rank, burn_in, divisor
):
    settings = {"arm_bound": 2.0, "last_eigenvalue": 0.5, "burn_in": burn_in, "horizon": 400}
    policy = make(dim=6, rank=rank, observe_prob=0.7, **settings)
    assert {policy.epoch_failure_prob(epoch) for epoch in range(4)} == {0.05 / divisor}


@pytest.mark.parametrize(("horizon", "growth"), [(None, 2.0), (400, 1.5)])
def test_without_a_horizon_or_with_another_growth_delta_is_divided_as_published(horizon, growth):
    settings = {"arm_bound": 2.0, "last_eigenvalue": 0.5, "burn_in": 30, "growth": growth}
    policy = TofuPov.algorithm_1(dim=6, rank=2, observe_prob=0.7, horizon=horizon, **settings)
    other = TofuPov(dim=6, rank=2, observe_prob=0.7, horizon=horizon, **settings)
    assert [policy.epoch_failure_prob(epoch) for epoch in range(3)] == [
        other.epoch_failure_prob(epoch) for epoch in range(3)
    ]


@pytest.mark.parametrize(
    "make",
    [
        TofuPov.practical,
        TofuPov.full_history,
        TofuPov.rank_adaptive,
        TofuPov.rank_adaptive_full_history,
        TofuPov.algorithm_1,
        TofuPov.rank_adaptive_algorithm_1,
    ],
)
def test_settings_of_a_named_constructor_can_be_overridden(make):
    policy = make(**BASICS, arm_bound=2.0, ridge=3.0, replay="burn-in", last_eigenvalue=0.5)
    assert only(policy, "ridge", "replay", "rank", "burn_in") == {
        "ridge": 3.0,
        "replay": "burn-in",
        "rank": {"rule": "FixedRank", "rank": 2},
        "burn_in": 5,
    }


# Burn-in


@pytest.mark.parametrize(
    ("rank", "observe_prob", "share"),
    [(2, np.linspace(0.6, 0.9, 6), 8), (PaperThreshold(), 0.7, 16)],
)
def test_the_theorys_burn_in_is_its_formula_at_the_smallest_probability(rank, observe_prob, share):
    """The lemmas are invoked at δ_rep/4, and δ_rep is δ/2; with a chosen rank it is δ/4."""
    policy = TofuPov(
        dim=6,
        rank=rank,
        observe_prob=observe_prob,
        burn_in="theory",
        **THEORY,
        top_eigenvalue=1.5,
        failure_prob=0.1,
    )
    # C_b = 384², κ²m = B_X²λ̄/λ_m² = 24, K = 4.
    least, log_term = float(np.min(observe_prob)), math.log(2 * 6 * 100 / (0.1 / share))
    expected = math.ceil(384**2 * 24 / (least**4 * 4) * log_term)
    assert policy.schedule.burn_in == expected
    assert copy_of(policy).schedule.burn_in == expected


@pytest.mark.parametrize("missing", ["last_eigenvalue", "n_arms", "horizon", "observe_prob"])
def test_the_theorys_burn_in_needs_to_know_the_problem(missing):
    settings = {"dim": 6, "rank": 2, "observe_prob": 0.7, "burn_in": "theory"} | THEORY
    with pytest.raises(
        InvalidSettingError, match=rf"burn_in='theory' needs.*{missing}.*(None|unknown)"
    ):
        TofuPov(**settings | {missing: None})


def test_the_burn_in_policy_is_ambient_oful_with_the_same_constants():
    given = {"ridge": 2.0, "failure_prob": 0.1, "theta_bound": 3.0, "noise_scale": 0.2}
    policy = TofuPov(**BASICS, **given, radius_scale=0.5)
    alone = AmbientOful(dim=6, **given)
    assert policy._burner.settings() == alone.settings()
    rounds = few_arms(5)
    ours, theirs = walk(policy, rounds), walk(alone, rounds)
    assert [looks(decision) for decision in ours] == [looks(decision) for decision in theirs]


def test_the_uniform_burn_in_is_the_uniform_policy_of_the_seed():
    rounds = few_arms(5)
    ours = walk(TofuPov(**BASICS, burn_in_policy="uniform", seed=9), rounds)
    theirs = walk(Uniform(dim=6, seed=9), rounds)
    assert [looks(decision) for decision in ours] == [looks(decision) for decision in theirs]


def test_the_radius_scale_scales_the_widths_of_epochs_only():
    rounds = few_arms(6)
    plain, scaled = (walk(TofuPov(**BASICS, radius_scale=s), rounds) for s in (1.0, 0.25))
    assert [d.widths.tobytes() for d in scaled[:5]] == [d.widths.tobytes() for d in plain[:5]]
    assert scaled[5].widths == pytest.approx(0.25 * plain[5].widths, rel=1e-12)
    assert np.array_equal(scaled[5].estimates, plain[5].estimates)


# Numbers of other types


@pytest.mark.parametrize(
    "setting",
    [
        {"dim": np.int64(6), "rank": np.int64(2), "burn_in": np.int64(5)},
        {"rank": PracticalThreshold(cap=np.int32(3), floor=np.int8(1))},
        {"observe_prob": np.float32(0.5), "ridge": Fraction(1, 2), "theta_bound": 2},
        {"observe_prob": np.full(6, 0.7, dtype=np.float32)},
        {"replay": Replay.BURN_IN},
    ],
    ids=str,
)
def test_numbers_of_other_types_are_accepted_and_can_be_saved(setting):
    policy = TofuPov(**BASICS | setting)
    walk(policy, few_arms(8))
    assert copy_of(policy).settings() == policy.settings()


# What is refused


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ({"rank": 0}, "rank .* got 0"),
        ({"rank": 7}, r"rank .*\[1, 6\], got 7"),
        ({"rank": 2.0}, r"rank .* got 2\.0"),
        ({"rank": "paper"}, "rank .* got 'paper'"),
        ({"rank": {"rule": ["FixedRank"]}}, "rank .* got"),
        ({"rank": {"rule": "FixedRank"}}, "rank"),
        ({"rank": {"rule": "FixedRank", "rank": 3, "colour": 1}}, "colour"),
        ({"rank": {"rule": "PracticalThreshold", "cap": 0}}, "cap .* got 0"),
        ({"rank": PracticalThreshold(floor=7)}, "floor .* got 7"),
        ({"rank": {"rule": "PaperThreshold", "floor": 3, "cap": 2}}, "cap .* got 2"),
        ({"observe_prob": 1.4}, r"observe_prob .* got 1\.4"),
        ({"observe_prob": "half"}, "observe_prob .* got 'half'"),
        (
            {"observe_prob": "counted", "burn_in": "theory", "last_eigenvalue": 0.5, "n_arms": 4},
            "burn_in='theory' needs .* counted",
        ),
        ({"observe_prob": [0.5] * 5}, r"observe_prob .*\(6,\), got shape \(5,\)"),
        ({"observe_prob": [0.5] * 5 + [np.nan]}, r"observe_prob\[5\] .* got nan"),
        ({"observe_prob": [[0.5], [0.5, 0.5]]}, "observe_prob .* got"),
        ({"burn_in": "long"}, "burn_in .* got 'long'"),
        ({"burn_in_policy": "greedy"}, "burn_in_policy .* got 'greedy'"),
        ({"burn_in_policy": AmbientOful}, "burn_in_policy .* got .*AmbientOful"),
        ({"burn_in_policy": AmbientOful(dim=5)}, "burn_in_policy .* dim 6, got 5"),
        ({"arm_bound": 1e200}, r"(arm_bound|top_eigenvalue) .* got (1e\+200|inf)"),
        ({"last_eigenvalue": 1.5}, r"last_eigenvalue .*1\], got 1\.5"),
        ({"bonus_scale": 1.0}, "bonus_scale > 0 needs last_eigenvalue .* got None"),
        ({"replay": "all"}, "replay .*'none', 'burn-in-once', 'burn-in', 'full', got 'all'"),
    ],
    ids=lambda part: str(part)[:50] if isinstance(part, dict) else "",
)
def test_a_bad_setting_is_refused_by_name_and_value(setting, says):
    with pytest.raises(InvalidSettingError) as caught:
        TofuPov(**BASICS | setting)
    assert re.search(says, str(caught.value))


def test_probabilities_are_copied_from_the_callers_array():
    probs = np.full(6, 0.7)
    policy = TofuPov(**BASICS | {"observe_prob": probs})
    probs[:] = 0.1
    assert policy.settings()["observe_prob"] == [0.7] * 6
