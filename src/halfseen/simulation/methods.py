"""Methods as data: a policy by name, its view and its settings."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from halfseen import checks, params
from halfseen.errors import InvalidSettingError
from halfseen.params import Value
from halfseen.policies.base import Policy
from halfseen.policies.registry import registered
from halfseen.worlds.base import Facts

MEASURE = "measure"
"""Stands for a policy in a method that measures instead of playing."""

MEASURES: dict[str, Callable[..., dict[str, list[float]]]] = {}
"""Functions from a realization (and settings) to named lists of numbers, which end up in
`diagnostics.csv`, as those of the policies do; by name."""

VIEWS = ("masked", "full")
"""What a policy sees of each round: the slate, or all arms with nothing hidden."""


def _facts(name: str, value: Any) -> tuple[str, ...]:
    known = tuple(field.name for field in fields(Facts))
    if not isinstance(value, list | tuple) or len(set(map(str, value))) < len(value):
        raise InvalidSettingError(f"must be a list of different names, got {value!r}", name=name)
    return tuple(checks.one_of(name, each, known) for each in value)


class Method(Value):
    """A policy by the name of its class, what it sees, and its settings.

    Attributes
    ----------
    policy : str
        Name in the registry.
    view : "masked" or "full"
    settings : mapping
        Arguments of the constructor, perhaps as plain JSON types. What the policy needs to know of
        its world (`Policy.needs`) may be left out; a value given here takes precedence.
    facts : tuple of str
        What else of the world the constructor is given, by the names of `Facts`.

    Examples
    --------
    >>> method = Method(policy="TofuPov", settings={"rank": 2, "burn_in": 5})
    >>> method.build(Facts(seed=0, dim=4, horizon=20, observe_prob=0.5)).dim
    4
    """

    policy: str = params.custom(check=checks.text, kind="str")
    view: str = params.choice(default="masked", words=VIEWS)
    settings: Mapping[str, Any] = params.custom(  # type: ignore[assignment]
        default={}, check=lambda _, value: dict(value), kind="mapping"
    )
    facts: tuple[str, ...] = params.custom(default=(), check=_facts, kind="tuple of str")

    def policies(self) -> tuple[str, ...]:
        """Return the names of its policy and of all policies in its settings.

        >>> inner = {"policy": "Uniform", "settings": {}}
        >>> Method(policy="TofuPov", settings={"burn_in_policy": inner}).policies()
        ('TofuPov', 'Uniform')
        """
        own = () if self.policy == MEASURE else (self.policy,)
        return tuple(dict.fromkeys((*own, *_policies_in(self.settings))))

    def parts(self) -> list[type]:
        """Return the classes of the objects among its settings, such as rules of TOFU-POV."""
        known = {} if self.policy == MEASURE else registered(self.policy)._params
        given = (
            known[name].checked(self.settings[name]) for name in self.settings if name in known
        )
        return [type(value) for value in given if isinstance(value, Value)]

    def build(self, facts: Facts) -> Policy:
        """Return a fresh policy, given what it may know of the realization.

        Raises
        ------
        InvalidSettingError
            A setting is unknown, out of range, or missing because the world does not know it.
        """
        make = registered(self.policy)
        known = self._known(make, facts)
        self._check_names(make)
        for each in _parameters(make):
            needed = each.kind is not each.VAR_KEYWORD and each.default is each.empty
            if needed and each.name not in {*known, *self.settings}:
                raise InvalidSettingError(
                    f"must be given: {self.policy} needs it and this world does not know it",
                    name=each.name,
                )
        return make(**known, **self.settings)

    def check(self) -> None:
        """Raise InvalidSettingError for an unknown name, or a setting wrong in every world."""
        if self.policy == MEASURE:
            return
        make = registered(self.policy)
        self._check_names(make)
        for name, param in make._params.items():
            if name in self.settings:
                param.checked(self.settings[name])

    def _check_names(self, make: type[Policy]) -> None:
        """Raise InvalidSettingError for a setting that the constructor does not take."""
        parameters = _parameters(make)
        known = sorted(each.name for each in parameters if each.kind is not each.VAR_KEYWORD)
        if len(known) < len(parameters):  # it takes any
            return
        for name in (*self.settings, *self.facts):
            if name not in known:
                raise InvalidSettingError(
                    f"is not a setting of {self.policy}, which has {known}"
                    f"{checks.did_you_mean(name, known)}",
                    name=name,
                )

    def _known(self, make: type[Policy], facts: Facts) -> dict[str, Any]:
        """Return the facts that the constructor is given, as far as the world knows them."""
        known = {}
        for name in dict.fromkeys((*make.needs, *self.facts)):
            value = None if name in self.settings else getattr(facts, name)
            if value is not None:
                known[name] = value
            elif name in self.facts and name not in self.settings:
                raise InvalidSettingError(
                    f"must be known to the world: {self.policy} cannot be given {name!r} here",
                    name="facts",
                )
        return known

    def to_dict(self) -> dict[str, Any]:
        """Return the method as plain JSON types."""
        plain: dict[str, Any] = {"policy": self.policy, "view": self.view}
        if self.facts:
            plain["facts"] = list(self.facts)
        return plain | {
            name: value.to_dict() if hasattr(value, "to_dict") else value
            for name, value in self.settings.items()
        }

    def changed(self, settings: Mapping[str, Any]) -> "Method":
        """Return the method with some settings (or the other attributes) replaced."""
        merged = self.to_dict() | dict(self.settings) | dict(settings)
        names = ("policy", "view", "facts")
        own = {name: merged.pop(name) for name in names if name in merged}
        return Method(settings=merged, **own)


def _policies_in(value: Any) -> Iterator[str]:
    """Yield the names of policies in plain data: of tables with the key "policy"."""
    if isinstance(value, Mapping):
        if isinstance(value.get("policy"), str):
            yield value["policy"]
        value = value.values()
    elif not isinstance(value, list | tuple):
        return
    for inner in value:
        yield from _policies_in(inner)


def _parameters(make: type[Policy]) -> list[inspect.Parameter]:
    return list(inspect.signature(make).parameters.values())


# The settings of the published studies, where these do not sweep them.
_TOFU = {"burn_in": 30, "replay": "burn-in-once"}
_TOFU_FH = {"burn_in": 30, "replay": "full"}
_ADAPTIVE = {"rule": "PracticalThreshold", "constant": 0.22, "scale": 1.5, "cap": 8}
_PSLB = {"burn_in": 30}
_PSLB_ADAPTIVE = {
    "burn_in": 30,
    "rank": {"rule": "ConstantThreshold", "value": 0.06, "cap": 8},
}

METHODS: Mapping[str, Method] = {
    "tofu": Method(policy="TofuPov", settings=_TOFU),
    "tofu-fh": Method(policy="TofuPov", settings=_TOFU_FH),
    "ra-tofu": Method(policy="TofuPov", settings={**_TOFU, "rank": _ADAPTIVE}),
    "ra-tofu-fh": Method(policy="TofuPov", settings={**_TOFU_FH, "rank": _ADAPTIVE}),
    "zf-oful": Method(policy="AmbientOful"),
    "full-oful": Method(policy="AmbientOful", view="full"),
    "zf-pslb": Method(policy="Pslb", settings=_PSLB),
    "zf-pslb-adaptive": Method(policy="Pslb", settings=_PSLB_ADAPTIVE),
    "pslb": Method(policy="Pslb", view="full", settings=_PSLB),
    "oracle-masked": Method(policy="Oracle"),
    "oracle-full": Method(policy="Oracle", view="full"),
    "two-phase": Method(policy="TwoPhase"),
    "uniform": Method(policy="Uniform"),
    "impute-mean": Method(policy="Imputed", settings={"imputer": "mean"}),
    "scaled-zero": Method(policy="Standardized", settings={"imputer": "zero"}),
    "scaled-mean": Method(policy="Standardized", settings={"imputer": "mean"}),
    "scaled-indicators": Method(
        policy="Standardized", settings={"imputer": "mean", "indicators": True}
    ),
    "scaled-iterative": Method(policy="Standardized", settings={"imputer": "iterative"}),
    "scaled-greedy": Method(
        policy="Standardized", settings={"imputer": "mean", "exploration": "greedy"}
    ),
    "scaled-thompson": Method(
        policy="Standardized", settings={"imputer": "mean", "exploration": "thompson"}
    ),
    "per-arm": Method(policy="PerArmRidge", settings={"radius": 1.0}),
    "per-arm-greedy": Method(policy="PerArmRidge", settings={"radius": 0.0}),
    "per-arm-thompson": Method(
        policy="PerArmRidge", settings={"radius": 0.3, "exploration": "thompson"}
    ),
    "boosted-trees": Method(policy="EpsilonGreedy", settings={"estimator": "boosted-trees"}),
    "forest": Method(policy="EpsilonGreedy", settings={"estimator": "forest"}),
    "row-memory": Method(
        policy="LatentUcb", settings={"rank": 0, "groups": ["filled", "mask", "item"]}
    ),
    "same-arm": Method(policy="SameArm"),
    "zf-thompson": Method(policy="LinearThompson"),
    "zf-greedy": Method(policy="Greedy"),
    "latent-ucb": Method(policy="LatentUcb"),
    "latent-ucb-told": Method(
        policy="LatentUcb", facts=("rank",), settings={"through_origin": True}
    ),
}
"""The standard methods by key; a study changes their settings or adds its own."""


def method_from(key: str, plain: Mapping[str, Any]) -> Method:
    """Return the method that a study describes under a key.

    Parameters
    ----------
    key : str
        A standard key, unless `plain` names one as "method" or a class as "policy".
    plain : mapping
        Settings that differ from the standard ones.

    Examples
    --------
    >>> method_from("over", {"method": "tofu", "rank": 6}).settings["rank"]
    6
    """
    settings = dict(plain)
    base = settings.pop("method", key)
    if "policy" in settings:
        return Method(policy=settings["policy"]).changed(settings)
    if not isinstance(base, str) or base not in METHODS:
        raise InvalidSettingError(
            f"must be one of {sorted(METHODS)}, got {base!r}{checks.did_you_mean(base, METHODS)}",
            name="method",
        )
    return METHODS[base].changed(settings)
