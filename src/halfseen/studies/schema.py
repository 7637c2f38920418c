"""A study file as one schema: the tables and keys that it may have."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self, TypeAlias

from pydantic import Discriminator, Field, PlainValidator, Tag, model_validator

from halfseen.errors import InvalidSettingError
from halfseen.simulation.tune import Candidate, Search
from halfseen.studies.claims import Claim
from halfseen.studies.fields import (
    NAMED,
    MethodTables,
    Name,
    Points,
    Probs,
    Seeds,
    Settings,
    Table,
    Text,
    TextList,
    Texts,
    as_table,
    refuse,
)
from halfseen.studies.figures import Comparison, Figure


class Shared(Table):
    """A method takes the settings that were chosen for another one."""

    shared_with: Text


@dataclass(frozen=True, slots=True)
class ByProb:
    """Settings of a method that were chosen elsewhere, for each observation probability."""

    settings: Mapping[float, Candidate]


def _search(given: Any) -> Search | Shared | ByProb:
    """Return which values are tried for a method, or whose settings it takes."""
    if not isinstance(given, Mapping):
        refuse({(): f"must be a table of settings to try, got {given!r}"})
    if "shared_with" in given:
        others = [name for name in given if name != "shared_with"]
        taken = f"what {given['shared_with']!r} is given is taken (shared_with)"
        refuse({(name,): f"cannot be tried: {taken}" for name in others})
        return Shared.model_validate(given)
    if "by_p" in given:
        refuse({(name,): "cannot be tried beside by_p" for name in given if name != "by_p"})
        return _by_prob(given["by_p"])
    grid = {name: values for name, values in given.items() if name != "ties"}
    try:
        return Search(grid=_flat(grid), ties=given.get("ties", "first"))
    except InvalidSettingError as error:
        refuse({(NAMED,): str(error)})
        raise


def _by_prob(given: Any) -> ByProb:
    tables = {} if not isinstance(given, Mapping) else given
    try:
        found = {float(p): _flat(as_table(table)) for p, table in tables.items()}
    except ValueError:
        found = {}
    if not found or not all(found.values()):
        refuse({("by_p",): f"must be tables of settings by probability, got {given!r}"})
    return ByProb(found)


def _flat(grid: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a grid in which names with dots stand for tables within tables."""
    flat: dict[str, Any] = {}
    for name, values in grid.items():
        inner = _flat(values, f"{prefix}{name}.") if isinstance(values, Mapping) else None
        flat |= {f"{prefix}{name}": values} if inner is None else inner
    return flat


class TuningTable(Table):
    """Which methods are tuned on which seeds."""

    seeds: Seeds
    methods: Annotated[
        dict[str, Annotated[Search | Shared | ByProb, PlainValidator(_search)]],
        Field(min_length=1),
    ]

    @model_validator(mode="after")
    def _sources_are_tuned(self) -> Self:
        tuned = [key for key, given in self.methods.items() if isinstance(given, Search)]
        refuse(
            {
                ("methods", key, "shared_with"): f"must be one of the tuned methods {tuned}, got "
                f"{given.shared_with!r}"
                for key, given in self.methods.items()
                if isinstance(given, Shared) and given.shared_with not in tuned
            }
        )
        return self


class SettingTable(Table):
    """One world with its methods, on top of what the study says for all settings."""

    world: Settings = Field(default_factory=dict)
    observe_prob: Probs | None = None
    methods: MethodTables = Field(default_factory=dict)
    seeds: Seeds | None = None
    tuning: TuningTable | None = None


class TakenTable(Table):
    """The one setting of another study, with some of its methods."""

    study: Text
    methods: TextList | None = None


def _taken(given: Any) -> str:
    return "taken" if isinstance(given, TakenTable) or "study" in as_table(given) else "own"


AnySetting: TypeAlias = Annotated[
    Annotated[TakenTable, Tag("taken")] | Annotated[SettingTable, Tag("own")],
    Discriminator(_taken),
]


class SmallTuning(Table):
    """Other validation seeds for the small form."""

    seeds: Seeds


class SmokeTable(Table):
    """How the small form of a study differs."""

    seeds: Seeds | None = None
    points: Points | None = None
    world: Settings = Field(default_factory=dict)
    observe_prob: Probs | None = None
    methods: MethodTables = Field(default_factory=dict)
    settings: Texts | None = None
    tuning: SmallTuning | None = None


def _one_setting() -> dict[str, TakenTable | SettingTable]:
    return {"default": SettingTable()}


class StudyFile(Table):
    """All that a study file says."""

    name: Name
    title: Text | None = None
    seeds: Seeds = tuple(range(10))
    points: Points = 100
    notes: TextList = ()
    plugins: TextList = ()
    world: Settings = Field(default_factory=dict)
    observe_prob: Probs = ()
    methods: MethodTables = Field(default_factory=dict)
    settings: dict[str, AnySetting] = Field(default_factory=_one_setting, min_length=1)
    tuning: TuningTable | None = None
    figures: tuple[Figure, ...] = ()
    claims: tuple[Claim, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    smoke: SmokeTable = SmokeTable()
