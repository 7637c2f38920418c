"""What is wrong with a study file, in words: each mistake with its place and what is allowed."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from halfseen import checks
from halfseen.errors import InvalidSettingError, StudyError
from halfseen.studies.fields import NAMED, Place, other_types
from halfseen.studies.schema import StudyFile
from halfseen.worlds.base import world_from


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
    return f"{path}.{error}" if _setting_of(error) else f"{path}: {error}"


def _setting_of(error: Exception) -> str:
    return error.name if isinstance(error, InvalidSettingError) else ""


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


def mistakes_in_world(
    left: dict[str, Any], places: Mapping[Place, Mapping[str, Any]], incomplete: bool
) -> list[str]:
    """Return all mistakes in a plain world, each with the layer that gives the setting.

    A setting that is wrong is left out before the next mistake is looked for. What is missing is
    no mistake of an incomplete world.
    """
    mistakes: list[str] = []
    while True:
        try:
            world_from(left)
            return mistakes
        except InvalidSettingError as error:
            name = re.split(r"[.\[]", error.name)[0]
            if name in left or not (mistakes or incomplete):
                mistakes.append(described(places, name, error))
            if name not in left:
                return mistakes
            del left[name]


def described(places: Mapping[Place, Mapping[str, Any]], name: str, error: Exception) -> str:
    """Return a mistake in a setting after the path of the last layer that gives it."""
    given = [place for place, layer in places.items() if name in layer] or list(places)[:1]
    path = path_of(given[-1])
    inner = name and not _setting_of(error).startswith(name)
    return f"{path}.{name}: {error}" if inner else located(path, error)
