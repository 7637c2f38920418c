"""New features: which policies take them, and what is refused."""

import numpy as np
import pytest

from halfseen import AmbientOful, Greedy, InvalidInputError, InvalidSettingError, TofuPov


def test_a_policy_that_cannot_grow_names_one_that_can():
    policy = TofuPov(dim=4, rank=1, observe_prob=0.5)
    with pytest.raises(InvalidSettingError, match=r"TofuPov cannot grow from 4 to 5.*LatentUcb"):
        policy.widen(5)


@pytest.mark.parametrize(
    ("dim", "levels", "message"),
    [
        (3, {}, r"dim must be an integer in \[4"),
        (6, {3: 0}, r"a further level must be an integer in \[4"),
        (6, {6: 0}, r"a further level must be an integer in \[4, 5\]"),
        (6, {4: 5}, r"the first feature of a category must be an integer in \[0, 3\]"),
    ],
)
def test_features_do_not_disappear_and_levels_are_new(dim, levels, message):
    policy = Greedy(dim=4)
    with pytest.raises(InvalidSettingError, match=message):
        policy.widen(dim, levels=levels)
    assert policy.dim == 4


def test_a_regression_in_many_features_grows():
    policy, known = AmbientOful(dim=200), AmbientOful(dim=300)
    random = np.random.default_rng(0)
    arms, rewards = random.standard_normal((20, 200)), random.standard_normal(20)
    policy.learn_logged(arms, rewards)
    known.learn_logged(np.pad(arms, ((0, 0), (0, 100)), constant_values=np.nan), rewards)
    policy.widen(300)
    late = random.standard_normal((9, 300))
    np.testing.assert_allclose(policy.score(late), known.score(late), rtol=1e-9)


def test_no_policy_drops_a_context_silently():
    with pytest.raises(InvalidInputError, match="Greedy cannot use a context"):
        Greedy(dim=2).choose([[1.0, 2.0]], context=[1.0])
