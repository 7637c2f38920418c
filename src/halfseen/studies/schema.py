"""A study file as one schema: what it may say, and everything that is wrong with it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
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
from halfseen.studies.figures import Comparison, Figure


class Shared(Table):
    """A method takes the settings that were chosen for another one."""

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


NAMED = "*"
"""A place in a table whose key is the first word of the message."""

_NAMES = {"setting": "setting", "comparison": "comparison"} | dict.fromkeys(
    ("method", "methods", "than", "relative_to", "against", "total", "plus", "minus", "ranks"),
    "method",
)
"""Keys of figures, claims and comparisons whose values are names, and what they name."""


def file_from(data: Any) -> tuple[StudyFile | None, dict[Place, str]]:
    """Return a study file without what is wrong in it, and all that is wrong, by place.

    There is no file if the data are not a table.
    """
    mistakes = other_types(data)
    for place, text in _mistakes_in(data).items():
        mistakes.setdefault(_known_place(place, mistakes), text)
    if () in mistakes:
        return None, mistakes
    left, found = data, mistakes
    while found:
        wrong = [_existing(place, left) for place in found]
        left = {"name": "nameless"} | _without(left, wrong)
        found = _mistakes_in(left)  # these only follow from what was taken out
    return StudyFile.model_validate(left), mistakes


def _mistakes_in(data: Any) -> dict[Place, str]:
    """Return what is wrong with plain data: the first mistake of every place."""
    found: dict[Place, str] = {}
    try:
        StudyFile.model_validate(data)
    except ValidationError as error:
        for each in error.errors():
            tag = ("kind",) if each["type"].startswith("union_tag") else ()
            found.setdefault(_place(each["loc"], data) + tag, _words(each))
    return found


def _without(value: Any, wrong: Collection[Place], place: Place = ()) -> Any:
    """Return plain data without what stands at some places."""
    if isinstance(value, Mapping):
        kept = {key: (*place, key) for key in value if (*place, key) not in wrong}
        return {key: _without(value[key], wrong, inner) for key, inner in kept.items()}
    if isinstance(value, list | tuple):
        inner = [(item, (*place, at)) for at, item in enumerate(value)]
        return [_without(item, wrong, at) for item, at in inner if at not in wrong]
    return value


def _existing(place: Place, data: Any) -> Place:
    """Return a place, or that of the table in which it is missing."""
    for step in place[:-1]:
        data = data[step]
    last = place[-1]
    there = last in data if isinstance(data, Mapping) else isinstance(last, int)
    return place if there else place[:-1]


def method_keys(data: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the keys of all methods by setting, also of those with mistakes."""
    settings = _table(data.get("settings", {"default": {}}))
    shared, found = data.get("methods"), {}
    for name, given in settings.items():
        both = (_table(each) or _list(each) for each in (shared, _table(given).get("methods")))
        keys = (key for table in both for key in table if isinstance(key, str))
        found[name] = list(dict.fromkeys(keys))
    return found


def unknown_names(
    data: Mapping[str, Any], known: Mapping[str, Collection[str]]
) -> dict[Place, str]:
    """Return the places of names that repeat, or that name what a study does not have.

    Parameters
    ----------
    data : mapping
        All that the file says.
    known : mapping
        The names of each "method" and "setting", where these are checked. A part of a study keeps
        the figures and claims of the whole, so that it may name others.
    """
    compared = [_table(each).get("name") for each in _list(data.get("comparisons"))]
    names: dict[str, Collection[Any]] = {"comparison": compared, **known}
    found = _repeated(data, "figures", "label") | _repeated(data, "comparisons", "name")
    for part in ("figures", "claims", "comparisons"):
        for place, kind, name in _mentioned(data.get(part), (part,)):
            if kind in names and name not in names[kind]:
                found[place] = _not_among(names[kind], name)
    settings = method_keys(data).keys()
    for name in _list(_table(data.get("smoke")).get("settings")):
        if isinstance(name, str) and name not in settings:
            found["smoke", "settings"] = _not_among(settings, name)
    return found


def _mentioned(value: Any, place: Place) -> Iterator[tuple[Place, str, str]]:
    """Yield names in plain data with their places and what they name."""
    if isinstance(value, list | tuple):
        for at, item in enumerate(value):
            yield from _mentioned(item, (*place, at))
    for key, item in _table(value).items():
        inner = (*place, key)
        if key in _NAMES and isinstance(item, str):
            yield inner, _NAMES[key], item
        elif key in _NAMES and isinstance(item, list | tuple):
            names = ((at, name) for at, name in enumerate(item) if isinstance(name, str))
            yield from (((*inner, at), _NAMES[key], name) for at, name in names)
        else:
            yield from _mentioned(item, inner)


def _not_among(known: Collection[Any], name: str) -> str:
    words = ", ".join(repr(each) for each in known) or "those of the study, which has none"
    return f"must be one of {words}, got {name!r}{checks.did_you_mean(name, map(str, known))}"


def _repeated(data: Mapping[str, Any], table: str, key: str) -> dict[Place, str]:
    names = [_table(each).get(key) for each in _list(data.get(table))]
    files = [name.removeprefix("fig:") if isinstance(name, str) else None for name in names]
    return {
        (table, at, key): f"must differ from all before, because it names a file, got {name!r}"
        for at, name in enumerate(files)
        if name is not None and name in files[:at]
    }


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else [] if value is None else [value]


def refusal(mistakes: Sequence[str], source: str = "") -> StudyError:
    """Return the error that lists mistakes, each once, after the name of their source."""
    listed = list(dict.fromkeys(mistakes))
    if len(listed) == 1:
        return StudyError(f"{source}: {listed[0]}" if source else listed[0])
    return StudyError(
        "\n  ".join([f"{source or 'the study'} has {len(listed)} mistakes:", *listed])
    )


def located(path: str, error: Exception) -> str:
    """Return the message of an error after the path of the table to which it belongs."""
    return f"{path}.{error}" if getattr(error, "name", "") else f"{path}: {error}"


def sentence(place: Place, text: str) -> str:
    """Return a mistake with its place in front.

    >>> sentence(("claims", 2, "p"), "must be a probability in (0, 1], got 3")
    'claims[2].p must be a probability in (0, 1], got 3'
    """
    if place and place[-1] == NAMED:
        return f"{path_of(place[:-1])}.{text}"
    return f"{path_of(place) or 'a study'} {text}"


def path_of(place: Place) -> str:
    """Return a place as people read it, such as "claims[2].p"."""
    steps = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in place]
    return "".join(steps).removeprefix(".")


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
    """Return the place of a known mistake at or below this place, or the place itself."""
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
