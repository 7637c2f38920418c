"""What a study is: worlds, methods and seeds as data, and what is drawn and claimed from them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from halfseen.errors import InvalidSettingError, StudyError
from halfseen.simulation.cells import Cell, CellKey
from halfseen.simulation.tune import Task, applied, check_apart
from halfseen.studies.claims import Claim
from halfseen.studies.figures import Comparison, Figure
from halfseen.studies.mistakes import located, refusal
from halfseen.studies.setting import Setting, Tuning

Place = tuple[str, float | None, str]
"""Setting, observation probability and method."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Methods compared on the same realizations.

    Attributes
    ----------
    settings : mapping
        By name.
    points : int
        In how many rounds regret over time is kept.
    notes : tuple of str
        What a reader of the report should know, such as where published code and text differ.
    figures, claims, comparisons : tuple of Figure, of Claim, of Comparison
        What the report draws, which statements it checks, which methods it compares seed by seed.
    tuning : Tuning, optional
        Which methods are tuned first, on other seeds.
    plugins : tuple of str
        Files and modules that define its policies and worlds.

    Raises
    ------
    StudyError
        A validation seed is also reported on.
    """

    name: str
    title: str
    seeds: tuple[int, ...]
    settings: Mapping[str, Setting]
    points: int = 100
    notes: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    claims: tuple[Claim, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    tuning: Tuning | None = None
    plugins: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, setting in self.settings.items():
            tuning = self.tuning_of(setting)
            own = f"settings.{name}." if setting.tuning else ""
            try:
                check_apart(
                    tuning.seeds if tuning else (), self.seeds_of(setting), f"{own}tuning.seeds"
                )
            except InvalidSettingError as error:
                raise StudyError(str(error)) from None

    def seeds_of(self, setting: Setting) -> tuple[int, ...]:
        """Return the seeds of a setting."""
        return self.seeds if setting.seeds is None else setting.seeds

    def tuning_of(self, setting: Setting) -> Tuning | None:
        """Return what is tuned in a setting."""
        return setting.tuning or self.tuning

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

        `chosen` is what tuning found, by place; without it methods have the settings of the study,
        and those that were chosen elsewhere.
        """
        found = chosen or {}

        def settings_of(name: str, p: float | None, key: str) -> Mapping[str, Any]:
            tuning = self.tuning_of(self.settings[name])
            if tuning is None:
                return {}
            return found.get((name, p, tuning.source(key) or key)) or tuning.given(key, p)

        return [
            Cell(
                key=CellKey(self.name, name, p, key, seed),
                world=setting.built[p],
                method=applied(method, settings_of(name, p, key)),
                points=self.points,
            )
            for name, setting in self.settings.items()
            for p in setting.worlds()
            for key, method in setting.methods.items()
            for seed in self.seeds_of(setting)
        ]

    def tasks(self) -> list[Task]:
        """Return what is to be tuned first."""
        return [
            Task(
                place=CellKey(self.name, name, p, key, 0),
                method=method,
                search=tuning.searches[key],
                world=setting.built[p],
                seeds=tuning.seeds,
            )
            for name, setting in self.settings.items()
            if (tuning := self.tuning_of(setting)) is not None
            for p in setting.worlds()
            for key, method in {**setting.methods, **setting.unreported}.items()
            if key in tuning.searches
        ]

    def check(self) -> None:
        """Build every policy once: a mistake shows before hours of work, not after.

        Raises
        ------
        StudyError
            With all mistakes, each with its setting and method.
        """
        found = [
            located(f"settings.{name}.{what}" if _own(setting, what) else what, error)
            for name, setting in self.settings.items()
            for what, error in setting.mistakes(self.seeds_of(setting)[0], self.tuning)
        ]
        if found:
            raise refusal(found)

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
            settings = {name: replace(s, seeds=None) for name, s in study.settings.items()}
            study = replace(study, seeds=tuple(seeds), settings=settings)
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
        if set(self.observe_probs) == {None}:
            raise StudyError(
                f"{self.name} sets no observe_prob: leave out p, or add it to the study"
            )
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
            "settings": {name: setting.to_dict() for name, setting in self.settings.items()},
            "figures": [figure.to_dict() for figure in self.figures],
            "claims": [claim.to_dict() for claim in self.claims],
            "comparisons": [each.to_dict() for each in self.comparisons],
        }
        if self.plugins:
            plain["plugins"] = list(self.plugins)
        return plain if self.tuning is None else plain | {"tuning": self.tuning.to_dict()}


def _own(setting: Setting, what: str) -> bool:
    return setting.tuning is not None or not what.startswith("tuning.")
