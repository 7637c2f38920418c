"""Methods as data: a policy by name, its view and its settings."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from halfseen import checks, params
from halfseen.errors import InvalidSettingError
from halfseen.params import Value
from halfseen.policies.base import Policy
from halfseen.policies.registry import all_policies, registered
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

    `settings` are arguments of the constructor, perhaps as plain JSON types. What the policy needs
    to know of its world (`Policy.needs`) may be left out; a value given here takes precedence.
    `facts` are what else of the world the constructor is given, by the names of `Facts`.

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

    def classes(self) -> list[type]:
        """Return the classes of its policy, and of all policies and rules in its settings.

        >>> inner = {"policy": "Uniform", "settings": {"dim": 4}}
        >>> method = Method(policy="TofuPov", settings={"burn_in_policy": inner})
        >>> [each.__name__ for each in method.classes()]
        ['TofuPov', 'Uniform']
        """
        if self.policy == MEASURE:
            return []
        rules = [type(value) for value in self._checked() if isinstance(value, Value)]
        return [registered(self.policy), *map(registered, _policies_in(self.settings)), *rules]

    def build(self, facts: Facts) -> Policy:
        """Return a fresh policy, given what it may know of the realization.

        Raises
        ------
        InvalidSettingError
            A setting is unknown, out of range, or missing because the world does not know it.
        """
        make = registered(self.policy)
        self._check_names(make)
        wanted = [each for each in (*make.needs, *self.facts) if each not in self.settings]
        known = {each: value for each in wanted if (value := getattr(facts, each)) is not None}
        for name in set(wanted) & set(self.facts) - set(known):
            raise InvalidSettingError(
                f"must be known to the world: {self.policy} cannot be given {name!r} here",
                name="facts",
            )
        return make(**known, **self.settings)

    def check(self) -> None:
        """Raise InvalidSettingError for an unknown name, or a setting wrong in every world."""
        if self.policy != MEASURE:
            self._check_names(registered(self.policy))
            self._checked()

    def _checked(self) -> list[Any]:
        """Return the settings that the policy declares, after their checks."""
        known = registered(self.policy).parameters
        return [known[name].checked(self.settings[name]) for name in self.settings if name in known]

    def _check_names(self, make: type[Policy]) -> None:
        known = inspect.signature(make).parameters
        takes_any = any(each.kind is each.VAR_KEYWORD for each in known.values())
        for name in () if takes_any else (*self.settings, *self.facts):
            if name not in known:
                raise InvalidSettingError(
                    f"is not a setting of {self.policy}, which has {sorted(known)}"
                    f"{checks.did_you_mean(name, known)}",
                    name=name,
                )

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


# The settings of the published studies, where these do not sweep them.
_TOFU = {"burn_in": 30, "replay": "burn-in-once"}
_TOFU_FH = {"burn_in": 30, "replay": "full"}
_ADAPTIVE = {"rule": "PracticalThreshold", "constant": 0.22, "scale": 1.5, "cap": 8}
_PSLB = {"burn_in": 30}
_PSLB_ADAPTIVE = _PSLB | {"rank": {"rule": "ConstantThreshold", "value": 0.06, "cap": 8}}


def _scaled(imputer: str, **settings: Any) -> Method:
    return Method(policy="Standardized", settings={"imputer": imputer, **settings})


def _per_arm(radius: float, **settings: Any) -> Method:
    return Method(policy="PerArmRidge", settings={"radius": radius, **settings})


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
    "sign-seeker": Method(policy="SignSeeker"),
    "uniform": Method(policy="Uniform"),
    "impute-mean": Method(policy="Imputed", settings={"imputer": "mean"}),
    "clbbf": Method(policy="Imputed", settings={"imputer": "gaussian", "first_fit": 1}),
    "scaled-zero": _scaled("zero"),
    "scaled-mean": _scaled("mean"),
    "scaled-indicators": _scaled("mean", indicators=True),
    "scaled-iterative": _scaled("iterative"),
    "scaled-greedy": _scaled("mean", exploration="greedy"),
    "scaled-thompson": _scaled("mean", exploration="thompson"),
    "per-arm": _per_arm(1.0),
    "per-arm-greedy": _per_arm(0.0),
    "per-arm-thompson": _per_arm(0.3, exploration="thompson"),
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


class OwnMethod(Method):
    """A method that is a function from facts to a fresh policy, for quick experiments."""

    make: Callable[[Facts], Policy] = params.custom(check=lambda _, value: value, kind="callable")

    def build(self, facts: Facts) -> Policy:
        """Return a fresh policy."""
        return self.make(facts)

    def check(self) -> None:
        """Do nothing: what it makes is known when it is built."""

    def classes(self) -> list[type]:
        """Raise InvalidSettingError: a function cannot be recognized in a later run."""
        raise InvalidSettingError(f"the function {self.policy!r} has no class that is known")


def method_from(key: str, given: Any = None) -> Method:
    """Return the method that is meant by a key and what is given for it.

    Parameters
    ----------
    key : str
        A standard key, or the name of a registered policy ("MyPolicy" or "my-policy"), unless
        `given` names one of these as "method", or a class as "policy".
    given : mapping, Method, function or None
        Settings that differ from the standard ones; or the method itself, or a function from
        `Facts` to a fresh policy.

    Examples
    --------
    >>> method_from("over", {"method": "tofu", "rank": 6}).settings["rank"]
    6
    """
    if isinstance(given, Method):
        return given
    if callable(given):
        return OwnMethod(policy=key, make=given)
    if not isinstance(given, Mapping | None):
        raise InvalidSettingError(f"must be settings, a Method or a function, got {given!r}")
    settings = dict(given or {})
    base = settings.pop("method", key)
    if "policy" in settings:
        return Method(policy=settings["policy"]).changed(settings)
    if isinstance(base, str) and base in METHODS:
        return METHODS[base].changed(settings)
    names = all_policies()
    for name in names:
        if name.lower() == str(base).replace("-", "").lower():
            return Method(policy=name).changed(settings)
    near = checks.did_you_mean(base, [*METHODS, *names])
    known = f"must be one of {sorted(METHODS)}, or a policy: one of {sorted(names)}"
    raise InvalidSettingError(f"{known}, got {base!r}{near}", name="method")
