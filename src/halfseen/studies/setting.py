"""One world of a study with the methods in it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from halfseen.simulation.methods import Method
from halfseen.simulation.simulate import prob_of
from halfseen.studies.tuning import Tuning
from halfseen.worlds.base import World
from halfseen.worlds.registry import world_from


def build_worlds(
    plain: Mapping[str, Any], observe_probs: Iterable[float]
) -> dict[float | None, World]:
    """Return a world for each probability, or the one with its own."""
    worlds: dict[float | None, World] = {
        p: world_from({**plain, "observe_prob": p}) for p in observe_probs
    }
    if not worlds:
        world = world_from(plain)
        worlds[prob_of(world)] = world
    return worlds


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One world of a study, swept over observation probabilities, and the methods in it.

    Attributes
    ----------
    world : mapping
        The plain form of a world.
    observe_probs : tuple of float
        Replaces the world's own; empty where the world keeps what it has.
    methods : mapping
        By key.
    unreported : mapping
        Methods that are only tuned, because others take what is chosen for them.
    seeds : tuple of int, optional
        Where they are not the study's.
    tuning : Tuning, optional
        Where it is not the study's.
    built : mapping, optional
        The worlds by observation probability, where they were built before.
    """

    world: Mapping[str, Any]
    observe_probs: tuple[float, ...]
    methods: Mapping[str, Method]
    unreported: Mapping[str, Method] = field(default_factory=dict)
    seeds: tuple[int, ...] | None = None
    tuning: Tuning | None = None
    built: Mapping[float | None, World] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.built:
            object.__setattr__(self, "built", build_worlds(self.world, self.observe_probs))

    @property
    def all_methods(self) -> list[str]:
        """Keys of all methods, also of those that are only tuned."""
        return [*self.methods, *self.unreported]

    def worlds(self) -> dict[float | None, dict[str, Any]]:
        """Return the plain worlds of the sweep by observation probability."""
        if self.observe_probs:
            return {p: {**self.world, "observe_prob": p} for p in self.observe_probs}
        return {prob: dict(self.world) for prob in self.built}

    def part(self, keys: Iterable[str], shared: Tuning | None) -> "Setting":
        """Return the setting with these methods, and those on whose tuning they depend.

        Parameters
        ----------
        keys : iterable of str
        shared : Tuning, optional
            That of the study, where the setting has none of its own.
        """
        known = {**self.methods, **self.unreported}
        methods = {key: self.methods[key] for key in keys if key in self.methods}
        tuning = self.tuning or shared
        sources = [] if tuning is None else [tuning.source(key) for key in methods]
        others = [key for key in dict.fromkeys(sources) if key is not None and key not in methods]
        unreported = {key: known[key] for key in others if key in known}
        own = None if self.tuning is None else self.tuning.part(methods)
        return replace(self, methods=methods, unreported=unreported, tuning=own)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        methods = {key: method.to_dict() for key, method in self.methods.items()}
        skipped = {
            key: method.to_dict() | {"skip": True} for key, method in self.unreported.items()
        }
        plain: dict[str, Any] = {
            "world": dict(self.world),
            "observe_prob": list(self.observe_probs),
            "methods": methods | skipped,
        }
        if self.seeds is not None:
            plain["seeds"] = list(self.seeds)
        if self.tuning is not None:
            plain["tuning"] = self.tuning.to_dict()
        return plain
