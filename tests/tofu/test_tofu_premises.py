"""Algorithm 1 says when its theorem does not apply, and `premises_of` says by how much."""

import math
import warnings

import numpy as np
import pytest

from halfseen import (
    LowRankWorld,
    PremiseWarning,
    TofuPov,
)
from halfseen.paper import HardInstanceWorld
from halfseen.theory import premises_of

THEORY = {"arm_bound": 1.0, "last_eigenvalue": 1.0, "horizon": 10, "n_arms": 2}
# C_μ (m/d) log(mTK/δ) with δ = .05/8: 29.2/8192 · log(20 · 160) = .029.
WIDE = {"dim": 8192, "rank": 1, "observe_prob": 0.5, **THEORY}


def warnings_of(make, **settings):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        policy = make(**settings)
    assert all(each.category is PremiseWarning for each in caught)
    return policy, [str(each.message) for each in caught]


def test_where_all_premises_hold_nothing_is_said():
    assert warnings_of(TofuPov.algorithm_1, **WIDE)[1] == []


@pytest.mark.parametrize("make", [TofuPov.algorithm_1, TofuPov.rank_adaptive_algorithm_1])
def test_one_warning_names_every_setting_that_does_not_meet_the_theorem(make):
    settings = {"dim": 30, "rank": 3, "observe_prob": 0.8, **THEORY, "last_eigenvalue": 0.25}
    (message,) = warnings_of(make, **settings, burn_in=30)[1]
    assert "needs p of at least 26" in message  # 29.2 · (3/30) · log(3·20·160) = 26.8
    assert "and p is 0.8" in message
    assert "and it has 30" in message


def test_a_p_that_is_counted_is_taken_as_favourable_as_can_be():
    settings = {"rank": 1, "observe_prob": "counted", **THEORY, "burn_in": 30}
    (message,) = warnings_of(TofuPov.algorithm_1, dim=30, **settings)[1]
    assert "no p is above 1" in message
    assert warnings_of(TofuPov.algorithm_1, dim=8192, **settings)[1] == []


def test_the_warning_points_to_the_caller():
    with pytest.warns(PremiseWarning) as caught:
        TofuPov.algorithm_1(**WIDE, burn_in=30)
    assert [each.filename for each in caught] == [__file__]


def test_a_larger_incoherence_needs_a_larger_p():
    _, messages = warnings_of(TofuPov.algorithm_1, **WIDE, incoherence=5.0)  # .029 · 25 = .72
    assert len(messages) == 1
    assert "and p is 0.5" in messages[0]


def test_an_arm_that_is_longer_than_its_bound_is_reported_once():
    settings = {"dim": 4, "rank": 1, "observe_prob": 0.5, "arm_bound": 1.0, "last_eigenvalue": 0.5}
    policy, _ = warnings_of(TofuPov.algorithm_1, **settings, burn_in=5)
    fitting, long = np.full((2, 4), 0.5), np.array([[3.0, 4.0, np.nan, np.nan]])
    policy.choose(fitting)
    with pytest.warns(PremiseWarning, match="length of at least 5, and arm_bound is 1") as caught:
        policy.choose(long)
    policy.absorb(long)
    policy.choose(long)
    assert len(caught) == 1


def test_other_forms_do_not_look_at_lengths():
    policy = TofuPov(dim=4, rank=1, observe_prob=0.5)
    policy.choose(np.full((2, 4), 1e6))


# The whole list for a world


def premises(world, **settings):
    return premises_of(world.realize(0).problem(), **settings)


def test_the_main_study_violates_every_premise_of_the_upper_bound():
    found = premises(LowRankWorld())
    assert [premise.name for premise in found.upper if not premise.holds] == [
        "bounded arms",
        "condition on p",
        "burn-in",
    ]
    assert math.isinf(found.upper[0].factor)
    assert set(found.vacuous) == set(found.shares)


def test_factors_are_what_is_needed_over_what_there_is():
    found = premises(LowRankWorld(latent="uniform"), burn_in=30)
    bounded, masks, burn_in = found.upper
    assert bounded.holds
    assert masks.factor == pytest.approx(masks.needed / LowRankWorld().observe_prob)
    assert masks.factor > 50
    assert burn_in.factor == pytest.approx(burn_in.needed / 30)
    assert all(share > 1 for share in found.shares.values() if share != 1.0)


def test_a_long_horizon_and_a_wide_world_meet_all_premises():
    sizes = {"dim": 32_768, "rank": 1, "n_arms": 8, "horizon": 10**9, "observe_prob": 0.9}
    world = LowRankWorld(**sizes, latent="uniform", loadings=(1.0, 1.0))
    found = premises(world)
    assert all(premise.holds for premise in found.upper)
    assert found.vacuous == ()


def test_hard_instances_meet_the_lower_bound_and_not_the_condition_of_the_upper_one():
    found = premises(HardInstanceWorld(observe_prob=0.1, noise_scale=2.0, n_arms=8))
    assert all(premise.holds for premise in found.lower)
    assert not found.upper[1].holds


def test_a_single_estimate_before_the_theorems_burn_in_proves_nothing():
    # t_b is about two million rounds, so that the formula would be below 1 where it is not proved.
    sizes = {"dim": 30, "rank": 1, "n_arms": 1000, "horizon": 10**6, "observe_prob": 0.2}
    world = LowRankWorld(**sizes, latent="uniform", loadings=(1.0, 1.0))
    found = premises(world)
    assert found.upper[2].needed > 10**6
    assert found.shares["one estimate"] == pytest.approx(1.0)
    assert "one estimate" in found.vacuous
