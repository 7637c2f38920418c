"""Algorithm 1 says when its theorem does not apply."""

import warnings

import numpy as np
import pytest

from halfseen import PremiseWarning, TofuPov

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
