"""What a study is: worlds, methods and seeds as data, and what is drawn and claimed from them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from halfseen.errors import HalfseenError, InvalidSettingError, StudyError
from halfseen.simulation.cells import Cell, CellKey
from halfseen.simulation.methods import Method
from halfseen.simulation.simulate import prob_of
from halfseen.simulation.tune import Task, applied, check_apart
from halfseen.studies.tuning import Tuning
from halfseen.worlds.base import Facts
from halfseen.worlds.registry import world_from

Place = tuple[str, float | None, str]
"""Setting, observation probability and method."""


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
    """

    world: Mapping[str, Any]
    observe_probs: tuple[float, ...]
    methods: Mapping[str, Method]
    unreported: Mapping[str, Method] = field(default_factory=dict)

    def worlds(self) -> dict[float | None, dict[str, Any]]:
        """Return the plain worlds of the sweep by observation probability."""
        if self.observe_probs:
            return {p: {**self.world, "observe_prob": p} for p in self.observe_probs}
        return {prob_of(world_from(self.world)): dict(self.world)}

    def part(self, keys: Iterable[str], tuning: Tuning | None) -> "Setting":
        """Return the setting with these methods, and those on whose tuning they depend."""
        known = {**self.methods, **self.unreported}
        methods = {key: self.methods[key] for key in keys if key in self.methods}
        sources = [] if tuning is None else [tuning.source(key) for key in methods]
        others = [key for key in dict.fromkeys(sources) if key is not None and key not in methods]
        unreported = {key: known[key] for key in others if key in known}
        return replace(self, methods=methods, unreported=unreported)


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
    tuning : Tuning, optional
        Which methods are tuned first, on other seeds.

    Raises
    ------
    StudyError
        A seed is for validation and reported as well.
    """

    name: str
    title: str
    seeds: tuple[int, ...]
    settings: Mapping[str, Setting]
    points: int = 100
    notes: tuple[str, ...] = ()
    figures: tuple[Mapping[str, Any], ...] = ()
    claims: tuple[Mapping[str, Any], ...] = ()
    tuning: Tuning | None = None

    def __post_init__(self) -> None:
        if self.tuning is not None:
            try:
                check_apart(self.tuning.seeds, self.seeds, "tuning.seeds")
            except InvalidSettingError as error:
                raise StudyError(str(error)) from None

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

    def cells(self, chosen: Mapping[Place, Mapping[str, Any]] | None = None) -> list[Cell]:
        """Return all cells in the order of the tables.

        Parameters
        ----------
        chosen : mapping, optional
            What tuning found, by place; without it methods have the settings of the study.
        """
        found = chosen or {}
        return [
            Cell(
                key=CellKey(self.name, name, p, key, seed),
                world=world,
                method=applied(method, found.get((name, p, self._source(key)), {})),
                horizon=_horizon(world),
                points=self.points,
            )
            for name, setting in self.settings.items()
            for p, world in setting.worlds().items()
            for key, method in setting.methods.items()
            for seed in self.seeds
        ]

    def tasks(self) -> list[Task]:
        """Return what is to be tuned first."""
        if self.tuning is None:
            return []
        return [
            Task(
                place=CellKey(self.name, name, p, key, 0),
                method=method,
                search=self.tuning.searches[key],
                world=world,
                horizon=_horizon(world),
                seeds=self.tuning.seeds,
            )
            for name, setting in self.settings.items()
            for p, world in setting.worlds().items()
            for key, method in {**setting.methods, **setting.unreported}.items()
            if key in self.tuning.searches
        ]

    def _source(self, key: str) -> str:
        """Return whose chosen settings a method takes: its own, unless they are shared."""
        return key if self.tuning is None else self.tuning.source(key) or key

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
                self._check_candidates(setting, facts)

    def _check_candidates(self, setting: Setting, facts: Facts) -> None:
        if self.tuning is None:
            return
        for key, method in {**setting.methods, **setting.unreported}.items():
            search = self.tuning.searches.get(self._source(key))
            for candidate in search.candidates() if search else ():
                try:
                    applied(method, candidate).build(facts)
                except Exception as error:
                    raise StudyError(f"tuning.methods.{key}: {error}") from error

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
        study = self if methods is None else self._with_methods(tuple(methods))
        if seeds is not None:
            study = replace(study, seeds=tuple(seeds))
        if observe_probs is not None:
            study = study._with_probs(tuple(observe_probs))
        if study.tuning is not None:
            study = replace(study, tuning=study.tuning.part(study.methods))
        if not study.settings or not study.seeds:
            raise StudyError(f"nothing is left of {self.name} with these seeds, p and methods")
        return study

    def _with_methods(self, keys: tuple[str, ...]) -> "Study":
        for key in keys:
            if key not in self.methods:
                raise StudyError(
                    f"methods must be among those of {self.name}, {list(self.methods)}, got {key!r}"
                )
        tuning = None if self.tuning is None else self.tuning.part(keys)
        parts = {name: setting.part(keys, tuning) for name, setting in self.settings.items()}
        settings = {name: part for name, part in parts.items() if part.methods}
        return replace(self, settings=settings, tuning=tuning)

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
        plain: dict[str, Any] = {
            "name": self.name,
            "title": self.title,
            "seeds": list(self.seeds),
            "points": self.points,
            "notes": list(self.notes),
            "settings": {name: _plain(setting) for name, setting in self.settings.items()},
            "figures": [dict(figure) for figure in self.figures],
            "claims": [dict(claim) for claim in self.claims],
        }
        return plain if self.tuning is None else plain | {"tuning": self.tuning.to_dict()}


def _plain(setting: Setting) -> dict[str, Any]:
    methods = {key: method.to_dict() for key, method in setting.methods.items()}
    skipped = {key: method.to_dict() | {"skip": True} for key, method in setting.unreported.items()}
    return {
        "world": dict(setting.world),
        "observe_prob": list(setting.observe_probs),
        "methods": methods | skipped,
    }


def _horizon(world: Mapping[str, Any]) -> int:
    """Return the rounds of a plain world without reading its data."""
    horizon: int | None = getattr(world_from(world), "horizon", None)
    return horizon or 1
