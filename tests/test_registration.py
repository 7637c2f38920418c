"""Whoever adds a policy or a world does not replace one of halfseen by accident."""

import pytest

from halfseen import InvalidSettingError, LowRankWorld, Uniform, register_policy, register_world
from halfseen.policies.registry import _CLASSES
from halfseen.worlds.base import _KINDS


def test_the_name_of_a_policy_of_halfseen_is_taken():
    own = type("Uniform", (Uniform,), {"__module__": "mine"})
    with pytest.raises(
        InvalidSettingError, match="the name 'Uniform' belongs to halfseen's Uniform"
    ):
        register_policy(own)
    assert _CLASSES["Uniform"] is Uniform


def test_only_policies_can_be_registered():
    with pytest.raises(InvalidSettingError, match="only a subclass of Policy"):
        register_policy(int)


@pytest.mark.parametrize("world", [lambda: 0, int, LowRankWorld()])
def test_only_subclasses_of_world_can_be_worlds(world):
    with pytest.raises(InvalidSettingError, match="only a subclass of World"):
        register_world("mine")(world)


def test_a_world_without_a_name_is_not_registered():
    with pytest.raises(InvalidSettingError, match="registered by a name"):
        register_world(LowRankWorld)


def test_the_name_of_a_world_of_halfseen_is_taken():
    class OwnWorld(LowRankWorld):
        pass

    with pytest.raises(
        InvalidSettingError, match="the name 'low-rank' belongs to halfseen's LowRankWorld"
    ):
        register_world("low-rank")(OwnWorld)
    assert _KINDS["low-rank"] is LowRankWorld


def test_one_s_own_policy_may_be_defined_again(monkeypatch):
    monkeypatch.setattr("halfseen.policies.registry._CLASSES", dict(_CLASSES))
    for _ in range(2):  # a cell of a notebook that is run twice
        register_policy(type("Mine", (Uniform,), {"__module__": "mine"}))
