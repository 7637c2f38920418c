"""New features: which policies take them, and what is refused."""

import pytest

from halfseen import Greedy, InvalidSettingError, TofuPov


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
