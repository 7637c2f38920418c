"""The catalogue of methods: every key builds, and no policy is given more than it declares."""

import inspect

import numpy as np
import pytest

from halfseen import HalfseenError, InvalidSettingError, LowRankWorld, Uniform
from halfseen.policies import registry
from halfseen.simulation.methods import METHODS, Method, method_from
from halfseen.worlds.base import Facts

WORLD = LowRankWorld(dim=6, rank=2, n_arms=4, horizon=200, observe_prob=0.5, noise_scale=0.1)
FACTS = WORLD.realize(7).facts


@pytest.fixture
def asked_for(monkeypatch):
    """Return what the constructor of a policy got when a method was built."""

    def spy(method, facts=FACTS):
        make, got = registry.registered(method.policy), {}

        class Spy(make):
            def __init__(self, **arguments):
                got.update(arguments)
                super().__init__(**arguments)

        # The method looks at the signature to tell which settings there are.
        Spy.__signature__ = inspect.signature(make)
        monkeypatch.setitem(registry._CLASSES, method.policy, Spy)
        method.build(facts)
        return got

    return spy


@pytest.mark.parametrize("key", METHODS)
def test_every_standard_method_builds_a_fresh_policy_on_the_facts_of_a_low_rank_world(key):
    METHODS[key].check()
    assert method_from("another key", METHODS[key].to_dict()) == METHODS[key]
    first, second = METHODS[key].build(FACTS), METHODS[key].build(FACTS)
    assert first is not second
    assert first.round == 0
    first.choose(next(WORLD.realize(7).rounds()).slate)  # some learn the dimension from it
    assert (first.dim, first.round) == (6, 1)


@pytest.mark.parametrize("key", METHODS)
def test_a_policy_is_given_what_class_and_method_declare_and_only_the_oracle_the_basis(
    key, asked_for
):
    method = METHODS[key]
    given = {*registry.registered(method.policy).needs, *method.facts}
    got = asked_for(method)
    assert set(got) == given | set(method.settings)
    for name in given - set(method.settings):
        assert got[name] is getattr(FACTS, name) or got[name] == getattr(FACTS, name)
    tables = [name for name, value in got.items() if np.ndim(value) == 2]
    assert tables == (["basis"] if method.policy == "Oracle" else [])


GIVEN = Method(policy="AmbientOful", settings={"ridge": 2.0}, facts=("noise_scale", "dim"))


def test_a_method_tells_its_policy_more(asked_for):
    assert asked_for(Method(policy="Greedy", facts=("dim",))) == {"dim": 6}
    given = Method(policy="Imputed", facts=("observe_prob",))
    with pytest.raises(InvalidSettingError, match="observe_prob is not a setting of Imputed"):
        given.build(FACTS)


def test_facts_are_part_of_a_methods_plain_form_only_if_there_are_any():
    assert GIVEN.to_dict()["facts"] == ["noise_scale", "dim"]
    assert method_from("any", GIVEN.to_dict()) == GIVEN
    assert "facts" not in METHODS["zf-oful"].to_dict()
    assert GIVEN.changed({"ridge": 1.0}).facts == GIVEN.facts


def test_what_the_world_does_not_know_cannot_be_given():
    facts = Facts(seed=0, dim=4, horizon=20)
    method = Method(policy="AmbientOful", facts=("noise_scale",))
    with pytest.raises(InvalidSettingError, match="AmbientOful cannot be given 'noise_scale' here"):
        method.build(facts)
    assert method.changed({"noise_scale": 0.1}).build(facts).dim == 4


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        (("truth",), "facts must be one of 'seed', .* got 'truth'"),
        (("rank", "rank"), "facts must be a list of different names"),
        (None, "facts must be a list of different names, got None"),
    ],
)
def test_only_facts_can_be_given(facts, says):
    with pytest.raises(InvalidSettingError, match=says):
        method_from("uniform", {"facts": facts})


@pytest.mark.parametrize(
    ("key", "plain", "message"),
    [
        ("nobody", {}, "method must be one of .*'tofu'.*, got 'nobody'"),
        ("mine", {"method": ["tofu"]}, r"method must be one of .*, got \['tofu'\]"),
        ("mine", {"policy": 3}, "policy must be a string, got 3"),
        ("tofu", {"view": "half"}, "view must be one of 'masked', 'full', got 'half'"),
    ],
)
def test_a_method_that_does_not_exist_is_refused_with_those_that_do(key, plain, message):
    with pytest.raises(InvalidSettingError, match=message):
        method_from(key, plain)


def test_what_neither_the_method_nor_the_world_knows_must_be_given():
    facts = Facts(seed=0, dim=6, horizon=200, observe_prob=0.5)
    with pytest.raises(InvalidSettingError, match="rank must be given to TofuPov"):
        METHODS["tofu"].build(facts)
    with pytest.raises(InvalidSettingError, match="basis must be given to Oracle"):
        METHODS["oracle-masked"].build(facts)


def test_a_class_that_hands_its_arguments_on_takes_any_setting(monkeypatch):
    class Handing(Uniform):
        def __init__(self, **settings):
            super().__init__(**settings)

    monkeypatch.setitem(registry._CLASSES, "Handing", Handing)
    policy = Method(policy="Handing", settings={"seed": 3}).build(FACTS)
    assert (policy.dim, policy.seed) == (6, 3)


@pytest.mark.parametrize(
    ("policy", "settings", "says"),
    [
        ("TofuPov", {"burnin": 3}, "burnin is not a setting .*did you mean 'burn_in'?"),
        ("TofuPov", {"ridge": -1}, "ridge must be"),
        ("TofuPov", {"growth": "fast"}, "growth must be"),
        ("Clever", {}, "Clever"),
    ],
)
def test_what_is_wrong_in_every_world_is_found_before_anything_runs(policy, settings, says):
    with pytest.raises(HalfseenError, match=says):
        Method(policy=policy, settings=settings).check()
