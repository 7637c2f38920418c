"""One world of a study with the methods in it, and what is tuned there."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from halfseen.errors import HalfseenError
from halfseen.simulation.methods import Method
from halfseen.simulation.simulate import prob_of
from halfseen.simulation.tune import Candidate, Search, applied
from halfseen.studies.schema import ByProb, Shared, TuningTable
from halfseen.worlds.base import World, world_from


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """What is tuned before anything is reported, for each setting and probability anew."""

    seeds: tuple[int, ...]  # for validation
    searches: Mapping[str, Search]  # by key of the tuned method
    shared: Mapping[str, str] = field(
        default_factory=dict
    )  # from the key of a method to that of the one whose chosen settings it takes
    by_p: Mapping[str, Mapping[float, Candidate]] = field(
        default_factory=dict
    )  # settings that were chosen elsewhere, by key and probability

    def source(self, key: str) -> str | None:
        """Return whose chosen settings a method takes; None where it keeps its own."""
        return key if key in self.searches else self.shared.get(key)

    def part(self, keys: Collection[str]) -> "Tuning | None":
        """Return what some methods need; None where that is nothing."""
        shared = {key: source for key, source in self.shared.items() if key in keys}
        needed = {*keys, *shared.values()}
        searches = {key: search for key, search in self.searches.items() if key in needed}
        by_p = {key: given for key, given in self.by_p.items() if key in keys}
        part = replace(self, searches=searches, shared=shared, by_p=by_p)
        return part if searches or by_p else None

    def given(self, key: str, p: float | None) -> Candidate:
        """Return the settings of a method at a probability that were chosen elsewhere."""
        return {} if p is None else self.by_p.get(key, {}).get(p, {})

    def mistakes(self, settings: Mapping[str, Collection[str]]) -> list[str]:
        """Return what is wrong because a setting lacks a method, from the keys of its methods."""
        known = list(dict.fromkeys(key for keys in settings.values() for key in keys))
        found = [
            f"tuning.methods.{key} is not a method of this study: {known}"
            for key in (*self.searches, *self.shared, *self.by_p)
            if key not in known
        ]
        return found + [
            f"tuning.methods.{key}.shared_with must name a method of settings.{name}, "
            f"{list(keys)}, got {source!r}"
            for key, source in self.shared.items()
            for name, keys in settings.items()
            if key in keys and source not in keys
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types, from which `tuning_from` makes it again."""
        methods: dict[str, Any] = {
            key: {"ties": search.ties, **{name: list(each) for name, each in search.grid.items()}}
            for key, search in self.searches.items()
        }
        methods |= {key: {"shared_with": source} for key, source in self.shared.items()}
        methods |= {
            key: {"by_p": {str(p): dict(settings) for p, settings in given.items()}}
            for key, given in self.by_p.items()
        }
        return {"seeds": list(self.seeds), "methods": methods}


def tuning_from(table: TuningTable | None, seeds: tuple[int, ...] | None = None) -> Tuning | None:
    """Return what a table says, perhaps with other seeds; None where there is no table."""
    if table is None:
        return None
    given = table.methods.items()
    return Tuning(
        seeds=table.seeds if seeds is None else seeds,
        searches={key: each for key, each in given if isinstance(each, Search)},
        shared={key: each.shared_with for key, each in given if isinstance(each, Shared)},
        by_p={key: each.settings for key, each in given if isinstance(each, ByProb)},
    )


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
    methods, unreported : mapping
        By key. Unreported methods are only tuned, because others take what is chosen for them.
    seeds, tuning : optional
        Where they are not the study's.
    built : mapping, optional
        The worlds by observation probability, if they were built before.
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

    def worlds(self) -> dict[float | None, dict[str, Any]]:
        """Return the plain worlds of the sweep by observation probability."""
        if self.observe_probs:
            return {p: {**self.world, "observe_prob": p} for p in self.observe_probs}
        return {prob: dict(self.world) for prob in self.built}

    def part(self, keys: Iterable[str], shared: Tuning | None) -> "Setting":
        """Return the setting with these methods, and those on whose tuning they depend.

        `shared` is the tuning of the study, which counts where the setting has none of its own.
        """
        known = {**self.methods, **self.unreported}
        methods = {key: self.methods[key] for key in keys if key in self.methods}
        tuning = self.tuning or shared
        sources = [] if tuning is None else [tuning.source(key) for key in methods]
        others = [key for key in dict.fromkeys(sources) if key is not None and key not in methods]
        unreported = {key: known[key] for key in others if key in known}
        own = None if self.tuning is None else self.tuning.part(methods)
        return replace(self, methods=methods, unreported=unreported, tuning=own)

    def mistakes(self, seed: int, shared: Tuning | None) -> Iterator[tuple[str, Exception]]:
        """Build every policy and yield what fails: "world", "methods.KEY" or "tuning.methods.KEY".

        Worlds are realized with `seed`; `shared` is as in `part`.
        """
        tuning = self.tuning or shared
        for p, world in self.built.items():
            try:
                facts = world.realize(seed).facts
            except HalfseenError as error:
                yield "world", error
                continue
            for key, method in {**self.methods, **self.unreported}.items():
                search = tuning.searches.get(tuning.source(key) or "") if tuning else None
                candidates = search.candidates() if search else []
                if tuning and (given := tuning.given(key, p)):
                    candidates = [given]
                for candidate in ({}, *candidates) if key in self.methods else candidates:
                    try:
                        applied(method, candidate).build(facts)
                    except Exception as error:
                        yield f"{'tuning.' if candidate else ''}methods.{key}", error

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
