"""What a study is: worlds, methods and seeds as data, and what is drawn and claimed from them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from halfseen.errors import HalfseenError, StudyError
from halfseen.simulation.cells import Cell, CellKey
from halfseen.simulation.methods import Method
from halfseen.worlds.registry import world_from


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
    """

    world: Mapping[str, Any]
    observe_probs: tuple[float, ...]
    methods: Mapping[str, Method]

    def worlds(self) -> dict[float | None, dict[str, Any]]:
        """Return the plain worlds of the sweep by observation probability."""
        if self.observe_probs:
            return {p: {**self.world, "observe_prob": p} for p in self.observe_probs}
        prob = getattr(world_from(self.world), "observe_prob", None)
        return {float(prob) if isinstance(prob, float | int) else None: dict(self.world)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Methods compared on the same realizations.

    Attributes
    ----------
    name, title : str
    seeds : tuple of int
    settings : mapping
        By name.
    points : int
        In how many rounds regret over time is kept.
    notes : tuple of str
        What a reader of the report should know, such as where published code and text differ.
    figures, claims : tuple of mapping
        What the report draws and which statements it checks, as plain data (`report` reads it).
    """

    name: str
    title: str
    seeds: tuple[int, ...]
    settings: Mapping[str, Setting]
    points: int = 100
    notes: tuple[str, ...] = ()
    figures: tuple[Mapping[str, Any], ...] = ()
    claims: tuple[Mapping[str, Any], ...] = ()

    @property
    def methods(self) -> tuple[str, ...]:
        """Keys of all methods, in order of first appearance."""
        keys = (key for setting in self.settings.values() for key in setting.methods)
        return tuple(dict.fromkeys(keys))

    @property
    def observe_probs(self) -> tuple[float | None, ...]:
        """All observation probabilities, in order of first appearance."""
        probs = (p for setting in self.settings.values() for p in setting.worlds())
        return tuple(dict.fromkeys(probs))

    def cells(self) -> list[Cell]:
        """Return all cells in the order of the tables."""
        return [
            Cell(
                key=CellKey(self.name, name, p, key, seed),
                world=world,
                method=method,
                horizon=_horizon(world),
                points=self.points,
            )
            for name, setting in self.settings.items()
            for p, world in setting.worlds().items()
            for key, method in setting.methods.items()
            for seed in self.seeds
        ]

    def check(self) -> None:
        """Build every policy once, so that a mistake shows before hours of work, not after.

        Raises
        ------
        StudyError
            The message names setting and method.
        """
        for name, setting in self.settings.items():
            for world in setting.worlds().values():
                try:
                    facts = world_from(world).realize(self.seeds[0]).facts
                except HalfseenError as error:
                    raise StudyError(f"settings.{name}.world: {error}") from error
                for key, method in setting.methods.items():
                    try:
                        method.build(facts)
                    except Exception as error:
                        raise StudyError(f"settings.{name}.methods.{key}: {error}") from error

    def narrowed(
        self,
        *,
        seeds: Iterable[int] | None = None,
        observe_probs: Iterable[float] | None = None,
        methods: Iterable[str] | None = None,
    ) -> "Study":
        """Return a part of the study, perhaps on other seeds.

        Raises
        ------
        StudyError
            A method or probability is not in the study, or nothing is left.
        """
        study = self if seeds is None else replace(self, seeds=tuple(seeds))
        if methods is not None:
            study = study._with_methods(tuple(methods))
        if observe_probs is not None:
            study = study._with_probs(tuple(observe_probs))
        if not study.settings or not study.seeds:
            raise StudyError(f"nothing is left of {self.name} with these seeds, p and methods")
        return study

    def _with_methods(self, keys: tuple[str, ...]) -> "Study":
        for key in keys:
            if key not in self.methods:
                raise StudyError(
                    f"methods must be among those of {self.name}, {list(self.methods)}, got {key!r}"
                )
        settings = {
            name: replace(
                setting,
                methods={key: setting.methods[key] for key in keys if key in setting.methods},
            )
            for name, setting in self.settings.items()
        }
        return replace(self, settings={n: s for n, s in settings.items() if s.methods})

    def _with_probs(self, probs: tuple[float, ...]) -> "Study":
        for p in probs:
            if p not in self.observe_probs:
                raise StudyError(
                    f"p must be among those of {self.name}, {list(self.observe_probs)}, got {p!r}"
                )
        settings = {
            # One that sweeps nothing stays as it is: its cells are the same ones.
            name: replace(
                setting, observe_probs=tuple(p for p in setting.observe_probs if p in probs)
            )
            for name, setting in self.settings.items()
            if set(setting.worlds()) & set(probs)
        }
        return replace(self, settings=settings)

    def to_dict(self) -> dict[str, Any]:
        """Return the study as plain JSON types, from which `study_from` makes it again."""
        return {
            "name": self.name,
            "title": self.title,
            "seeds": list(self.seeds),
            "points": self.points,
            "notes": list(self.notes),
            "settings": {
                name: {
                    "world": dict(setting.world),
                    "observe_prob": list(setting.observe_probs),
                    "methods": {key: method.to_dict() for key, method in setting.methods.items()},
                }
                for name, setting in self.settings.items()
            },
            "figures": [dict(figure) for figure in self.figures],
            "claims": [dict(claim) for claim in self.claims],
        }


def _horizon(world: Mapping[str, Any]) -> int:
    """Return the rounds of a plain world without reading its data."""
    horizon: int | None = getattr(world_from(world), "horizon", None)
    return horizon or 1
