"""Not every policy can do everything; what is refused changes nothing."""

import pytest

from halfseen import Greedy, InvalidInputError, InvalidSettingError
from policy_runs import few_arms, tofu


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda policy, _: policy.widen(7), "grow from 6 to 7"),
        (lambda policy, table: policy.explain(table), "explain"),
        (lambda policy, table: policy.choose(table, context=[1.0]), "use a context"),
        (lambda policy, table: policy.choose(table, explore=False), ".*explore=False"),
    ],
    ids=["widen", "explain", "context", "explore"],
)
def test_a_policy_that_cannot_says_who_can(ask, says):
    policy = tofu()
    with pytest.raises(InvalidInputError, match=rf"TofuPov cannot {says}.*LatentUcb"):
        ask(policy, few_arms(1)[0].table)
    assert (policy.round, policy.dim) == (0, 6)


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
