"""A study file as one schema: what it may say, and everything that is wrong with one."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self, TypeAlias

from pydantic import Discriminator, Field, PlainValidator, Tag, ValidationError, model_validator

from halfseen import checks
from halfseen.errors import InvalidSettingError, StudyError
from halfseen.simulation.tune import Search
from halfseen.studies.claims import Claim
from halfseen.studies.fields import (
    MethodTables,
    Name,
    Place,
    Points,
    Probs,
    Seeds,
    Settings,
    Table,
    Text,
    TextList,
    Texts,
    other_types,
    refuse,
)
from halfseen.studies.figures import Comparison, Figure, check_names


class Shared(Table):
    """Another method's chosen settings are taken."""

    shared_with: Text


def _search(given: Any) -> Search | Shared:
    """Return which values are tried for a method, or whose settings it takes."""
    if not isinstance(given, Mapping):
        refuse({(): f"must be a table of settings to try, got {given!r}"})
    if "shared_with" in given:
        others = [name for name in given if name != "shared_with"]
        taken = f"what {given['shared_with']!r} is given is taken (shared_with)"
        refuse({(name,): f"cannot be tried: {taken}" for name in others})
        return Shared.model_validate(given)
    grid = {name: values for name, values in given.items() if name != "ties"}
    try:
        return Search(grid=_flat(grid), ties=given.get("ties", "first"))
    except InvalidSettingError as error:
        refuse({(NAMED,): str(error)})
        raise


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
        dict[str, Annotated[Search | Shared, PlainValidator(_search)]], Field(min_length=1)
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
    """One world with its methods; laid over what the study says for all settings."""

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
    return "taken" if isinstance(given, TakenTable) or "study" in _table(given) else "own"


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


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

    @model_validator(mode="after")
    def _names_fit(self) -> Self:
        check_names(self.figures, self.comparisons)
        wanted, known = self.smoke.settings or (), list(self.settings)
        if not set(wanted) <= set(known):
            refuse({("smoke", "settings"): f"must be names of settings {known}, got {wanted}"})
        return self


NAMED = "*"
"""A place in a table whose key is the first word of the message."""


_WORLDS_AND_METHODS = {"world", "methods", "settings", "smoke", "tuning", "plugins"}


def file_from(data: Any) -> tuple[StudyFile | None, list[str]]:
    """Return a study file from plain data, and all that is wrong with it.

    If only keys are wrong that have nothing to do with worlds and methods, the file is returned
    without them, so that mistakes in worlds and methods can be found as well.
    """
    mistakes = other_types(data)
    try:
        file = StudyFile.model_validate(data)
    except ValidationError as error:
        for each in error.errors():
            place = _place(each["loc"], data)
            if each["type"].startswith("union_tag"):
                place = (*place, "kind")
            mistakes.setdefault(_known_place(place, mistakes), _words(each))
    found = [sentence(place, text) for place, text in mistakes.items()]
    if not found:
        return file, []
    wrong = {place[0] if place else "world" for place in mistakes}
    if wrong & _WORLDS_AND_METHODS:
        return None, found
    left = {key: value for key, value in data.items() if key not in wrong}
    return StudyFile.model_validate({"name": "nameless", **left}), found


def refusal(mistakes: Sequence[str], source: str = "") -> StudyError:
    """Return the error that lists mistakes, each once, after the name of their source."""
    listed = list(dict.fromkeys(mistakes))
    if len(listed) == 1:
        return StudyError(f"{source}: {listed[0]}" if source else listed[0])
    return StudyError(
        "\n  ".join([f"{source or 'the study'} has {len(listed)} mistakes:", *listed])
    )


def sentence(place: Place, text: str) -> str:
    """Return a mistake with its place in front.

    >>> sentence(("claims", 2, "p"), "must be a probability in (0, 1], got 3")
    'claims[2].p must be a probability in (0, 1], got 3'
    """
    path = ""
    for step in place:
        if step == NAMED:
            return f"{path}.{text}"
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else str(step)
    return f"{path or 'a study'} {text}"


def _place(loc: Place, data: Any) -> Place:
    """Return where an error is in the data: its location without the tags of unions."""
    place: list[str | int] = []
    for at, step in enumerate(loc):
        table, last = isinstance(data, Mapping), at == len(loc) - 1
        if (table and step in data) or isinstance(step, int):
            data = data[step]
        elif not (table and last):
            continue  # the tag of a union
        place.append(step)
    return tuple(place)


def _known_place(place: Place, mistakes: Mapping[Place, str]) -> Place:
    """Return the place of a mistake that is known already and lies at or below this one, if any."""
    return next((known for known in mistakes if known[: len(place)] == place), place)


def _words(error: Any) -> str:
    """Return what is wrong in the words of this project."""
    kind, value, context = error["type"], error["input"], error.get("ctx", {})
    if kind == "mistake":
        return str(error["msg"])
    if kind in ("missing", "union_tag_not_found"):
        return "must be given"
    if kind == "union_tag_invalid":
        known = context["expected_tags"]
        words = [word.strip("'") for word in known.split(", ")]
        near = checks.did_you_mean(context["tag"], words)
        return f"must be one of {known}, got {context['tag']!r}{near}"
    if kind in ("tuple_type", "list_type"):
        return f"must be a list of tables, got {value!r}"
    if kind == "too_short":
        return f"must have at least one entry, got {value!r}"
    return f"must be a table, got {value!r}"
