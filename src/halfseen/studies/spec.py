"""What a study is: worlds, methods and seeds as data, and how a method becomes a policy."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from halfseen.policies.ambient import AmbientOful
from halfseen.policies.base import Policy
from halfseen.policies.tofu import TofuPov
from halfseen.policies.uniform import Uniform
from halfseen.worlds.lowrank import LowRankWorld

# What each kind of method may be told of its world.
_TOLD: dict[str, tuple[type[Policy], tuple[str, ...]]] = {
    "zero-filled": (AmbientOful, ("dim", "noise_scale")),
    "tofu": (TofuPov, ("dim", "noise_scale", "observe_prob", "horizon")),
    "uniform": (Uniform, ("dim",)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One world of a study and the settings of each method in it.

    Attributes
    ----------
    world : LowRankWorld
    methods : mapping
        By the method's key its kind ("tofu", "zero-filled", "uniform") and its further settings.
    """

    world: LowRankWorld
    methods: Mapping[str, tuple[str, Mapping[str, Any]]]

    def build(self, method: str) -> Policy:
        """Return a fresh policy of a method, told of the world what its kind may know."""
        kind, settings = self.methods[method]
        policy, told = _TOLD[kind]
        known = {name: getattr(self.world, name) for name in told}
        return policy(**known, **settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Methods compared on the same realizations.

    Attributes
    ----------
    name : str
    settings : mapping
        By name.
    seeds : range
    """

    name: str
    settings: Mapping[str, Setting]
    seeds: range
